// The cards of "/": is the relay well? The numbers are those of /api/crcr/health; what counts as well is said here, once, and
// under "Definitions". Critical is where an alert of deploy/monitoring calls somebody.
import { el, own, slots } from "./dom.js";
import { clock, count, plural, said, seconds, TIME, when } from "./values.js";

// ---- well, or not -------------------------------------------------------------------------------

export const GOOD = 0, UNKNOWN = 1, LOOK = 2, BAD = 3;
const WORDS = [["good", "✓", "OK"], ["quiet", "?", "No data"], ["warn", "!", "Warning"], ["bad", "✗", "Critical"]];
export const lookOf = (well) => WORDS[well][0];

// In words and colour.
export function wellness(well) {
  const [look, mark, word] = WORDS[well];
  return el("span", [el("span", `${mark} `, { "aria-hidden": "true" }), word], { class: `state ${look}` });
}

const MINUTE = 60, WAITS_LONG = { router: 30, l1: 30, l2: 30, l3: 30, l4: 5 };
export const WAITS_HELP = "L4 is critical when a record has waited 5 min, router and L1 to L3 30 min, the others 10 min; each is a warning from a tenth of that on.";
export function waits(role, waited) {
  const long = (WAITS_LONG[role] || 10) * MINUTE;
  return waited > long ? BAD : waited > long / 10 ? LOOK : GOOD;
}

const isOlder = (text, minutes) => text !== null && Date.now() - Date.parse(text) > minutes * MINUTE * 1000;
const worstRole = (roles) => [...roles].sort((a, b) => waits(b.role, b.seconds) - waits(a.role, a.seconds) || b.seconds - a.seconds)[0];

// ---- a backend ----------------------------------------------------------------------------------

const IN_A_ROW = 3, CALLS_MAX = 20; // as many as the server counts
export const CONDITION_HELP = "Whether events reach it, and whether it reports: critical (L3, L4) or a warning (L1, L2) when its last 3 dispatches failed, its breaker is open, " +
  "or GitHub took dispatches and it has reported nothing since, for as long as a job may be silent. Of 24 hours.";

// [well, why, dead]: whether it gets events, and reports; dead: none, or nothing.
export function condition(repo) {
  const sent = repo.dispatches, worst = Number((repo.level || "L1").slice(1)) >= 3 ? BAD : LOOK;
  if (!sent) return [GOOD, "", false];
  const why = sent.last?.http_status ? `HTTP ${sent.last.http_status}` : sent.last?.error || "no answer";
  const failed = `${sent.failed_in_a_row >= CALLS_MAX ? "at least " : ""}${plural(sent.failed_in_a_row, "dispatch", "dispatches")} failed in a row`;
  return sent.breaker_open ? [worst, `gets no events: its breaker is open${sent.failed_in_a_row ? `, ${failed}` : ""}`, true]
    : sent.failed_in_a_row >= IN_A_ROW || (sent.failed_in_a_row && !sent.dispatched_at) ? [worst, `gets no events: ${failed} (${why})`, true]
    : sent.silent_since ? [worst, repo.last_run ? "reports nothing any more" : "has never reported", true]
    : sent.failed_in_a_row ? [LOOK, `the last dispatch failed (${why})`, false] : [GOOD, "", false];
}

// ---- the cards ----------------------------------------------------------------------------------

export const READING = "The topic is still being read; try again in a minute.";
export const NOT_REACHED = "The topics have not been read since the start.";
export const DLQ_OLDER = "Older entries are not counted here: ";
const CANARY_HOURS = 30;
const REDIS_TEXT = "Pages of results and check runs stop; what comes waits in Kafka, and nothing is lost.";

const bucketName = (name) => name.replace("content", "content-creating calls").replace("_", " an ").replace("an minute", "a minute");
// "1,192 of 1,250 requests an hour are left, …": what a full bucket holds is a quarter of the limit.
const bucketText = (one) => [`${count(one.left)} of ${count(one.of)} ${bucketName(one.bucket)} left`, one.account === "*" ? "" : ` for ${one.account}`, one.full_at ? [", all at ", clock(one.full_at)] : "",
  ` (limit ${count(one.limit)})`, one.l4_at ? [": L4 waits until ", clock(one.l4_at)] : one.rest_at ? [": L1 to L3 wait until ", clock(one.rest_at)] : ""];
const newest = (list) => list.filter(Boolean).sort().at(-1);

// The card has those that make somebody wait, if any do.
function tight(buckets = []) {
  const some = buckets.filter((one) => one.l4_at || one.rest_at);
  return some.length ? some : buckets;
}

export function budgetOf(one) {
  if (one.error) return [UNKNOWN, ["Not known: ", said(one.error), "."]];
  const l4 = newest(one.buckets.map((bucket) => bucket.l4_at)), rest = newest(one.buckets.map((bucket) => bucket.rest_at));
  const short = one.limited_until ? ["GitHub asked us to wait until ", clock(one.limited_until)] : l4 ? ["GitHub budget back at ", clock(l4)] : rest ? ["GitHub budget for L1 to L3 back at ", clock(rest)] : "";
  return [l4 ? BAD : rest || one.limited_until ? LOOK : GOOD,
    [one.limited_until ? ["GitHub asked us to wait until ", when(one.limited_until), ". "] : "", one.buckets.length ? "" : "No limit of ours is set."], one.buckets.map(bucketText), short];
}

export const redisOf = (one) => (!one.error ? [GOOD, "Answers."]
  : one.since ? [BAD, [`Has not answered since ${TIME.format(new Date(one.since))}. ${REDIS_TEXT}`], [], ["Redis has not answered since ", clock(one.since)]]
  : [LOOK, [said(one.error), ". Pages and check runs wait until that is done."], [], [said(one.error)]]);

// Each: [title, where one looks next, definition, (health) => [well, text, items of a list, what it says in the sentence on top]].
const CARDS = [
  ["Relay", "/pipeline", `How long the oldest record has waited that a role's consumer group has not committed; in delay topics since its time came. ${WAITS_HELP}`,
   ({ roles, error }) => {
     const worst = worstRole(roles);
     if (!worst) return [error ? BAD : UNKNOWN, NOT_REACHED, [], "what waits is not known"];
     const shown = roles.filter((role) => role.records || waits(role.role, role.seconds)), late = `${worst.role} is ${seconds(worst.seconds)} late`;
     return [error ? BAD : waits(worst.role, worst.seconds), worst.seconds ? `${worst.role}: the oldest record has waited ${seconds(worst.seconds)}.` : "Nothing is late.",
       shown.map((role) => [wellness(waits(role.role, role.seconds)), ` ${role.role}: ${seconds(role.seconds)}, ${plural(role.records, "record")}`]), error ? "Kafka does not answer" : late];
   }],
  ["Redis", "/pipeline", "Holds the view that pages and check runs are made of. Critical when it does not answer; a warning while the view is being rebuilt.", ({ redis }) => redisOf(redis)],
  ["Dispatches today", "/prs", "Calls that GitHub took, in this hour and the 23 before. Times are from the webhook's last byte to the call, within 5 %, and not below 0.1 s, " +
    "without what was redelivered or replayed. Critical when 5 or more fail and more than succeed; a warning when one in 20 fails, or p99 is above 30 s.",
   ({ dispatches: one }) => (one.dispatched === null ? [UNKNOWN, READING]
     : [one.failed >= 5 && one.failed > one.dispatched ? BAD : one.failed * 20 > one.dispatched || one.p99_seconds > 30 ? LOOK : GOOD, [`${count(one.dispatched)} in 24 h, ${count(one.failed)} failed. `,
       one.p50_seconds === null ? "" : `From receipt to dispatch p50 ${seconds(one.p50_seconds)}, p99 ${seconds(one.p99_seconds)}.`], [],
       one.failed * 20 > one.dispatched ? `${count(one.failed)} of ${plural(one.dispatched + one.failed, "dispatch", "dispatches")} failed` : `dispatches take ${seconds(one.p99_seconds)}`])],
  ["GitHub budget", "/pipeline#budget", "Calls left before our own limit, for the account with the fewest. A bucket holds a quarter of the limit; the rest comes evenly. A warning when nothing " +
    "is left for L1 to L3, or GitHub asked us to wait; critical when nothing is left for L4.", ({ budget }) => budgetOf({ ...budget, buckets: tight(budget.buckets) })],
  ["Breakers", "/pipeline", "Downstreams whose owner's last 5 calls had no answer: a sender puts their tasks off. A warning while there is one; critical 30 min after the last answer, where there was one in 24 h.",
   ({ breakers: one }) => (one.open === null ? [UNKNOWN, READING] : !one.open ? [GOOD, "Each downstream answers."]
     : [one.downstreams.some((row) => isOlder(row.answered_at, 30)) ? BAD : LOOK,
       `${plural(one.open, "downstream does", "downstreams do")} not answer. One call every 10 s asks whether it is back.`,
       one.downstreams.map((row) => [own(row.repo, `/repo/${row.repo}`), ": last answer ", row.answered_at ? when(row.answered_at) : "more than 24 h ago"]), plural(one.open, "open breaker")])],
  ["Dead-letter queue", "/pipeline#dlq", "Records that could not be worked off, and that nobody has replayed or dropped, of the last 30 days.",
   ({ dlq: one }) => (one.open === null ? [UNKNOWN, READING] : !one.open && !one.more ? [GOOD, "Nothing is left over."]
     : !one.open ? [LOOK, [DLQ_OLDER, el("code", "crcrctl dlq list")], [], "old dead letters"]
     : [LOOK, [`${one.more ? "More than " : ""}${plural(one.open, "entry is", "entries are")} not resolved, the newest of `, when(one.newest_at), "."], [], plural(one.open, "dead letter")])],
  ["Allowlist", "/", "Which version is in force, and when the file was last seen complete. A warning when the newest file is not in force, or none was seen " +
    "for 2 h; critical when there is none.",
   ({ allowlist: one }) => (!one.caught_up ? [UNKNOWN, "It is being read."] : !one.sha ? [BAD, "None has been published.", [], "no allowlist"]
     : [one.error || isOlder(one.fetched_at, 120) ? LOOK : one.fetched_at ? GOOD : UNKNOWN,
       [el("code", one.sha.slice(0, 10)), `, ${plural(one.repositories, "repository", "repositories")}`, one.fetched_at ? [", fetched ", when(one.fetched_at)] : ", not known when it was fetched",
        one.error ? [". The newest is not in force: ", said(one.error)] : ". Valid."], [], one.error ? "the newest allowlist is not in force" : "the allowlist is old"])],
  ["Canary", "/repo/", `The repository whose runs try the relay from end to end; some of its jobs should fail. Critical when none of its jobs ended for ${CANARY_HOURS} h, a warning when one of its newest run ended otherwise than it should.`,
   ({ canary: one }) => (one.result_at === null ? [UNKNOWN, "No result of it is known."]
     : [isOlder(one.result_at, CANARY_HOURS * 60) ? BAD : one.unexpected ? LOOK : GOOD,
       ["Last result ", when(one.result_at), `. Its newest run: ${plural(one.jobs, "job")}, ${one.unexpected} not as expected${one.running ? `, ${one.running} running` : ""}.`,
        one.delivery_id ? [" ", own("What became of it", `/delivery/${one.delivery_id}`)] : ""], [],
       isOlder(one.result_at, CANARY_HOURS * 60) ? "the canary is overdue" : plural(one.unexpected, "canary job is", "canary jobs are") + " not as expected"])],
];

// Each: { title, path, help, well, text, items, short }; the worst first.
export function assessed(health) {
  const list = CARDS.filter(([title]) => title !== "Canary" || health.canary).map(([title, path, , look]) => {
    const [well, text, items, short] = look(health);
    return { title, path: title === "Canary" ? `/repo/${health.canary.repo}` : path, well, text, items, short };
  });
  return list.sort((a, b) => b.well - a.well);
}

const card = ({ title, path, well, text, items }) => el("section", slots([
  el("h2", [own(title, path), " ", wellness(well)]), el("p", text),
  items?.length ? el("ul", items.map((item) => el("li", item))) : null]), { class: `card ${lookOf(well)}-edge`, key: title });

// health: of /api/crcr/health; what the topics said may be old. Those that are well are one line.
export function cards(health) {
  if (!health || health.missing) return el("p", ["How the relay does is not known: ", health ? health.missing : "nobody said."], { class: "quiet" });
  const all = assessed(health), good = all.filter((one) => one.well === GOOD);
  return el("div", slots([
    health.error ? el("p", ["What waits could not be looked at: ", said(health.error), ". It is ", health.looked_at ? ["of ", when(health.looked_at)] : "not known", "."],
      { class: "error", role: "alert" }) : null,
    el("div", all.filter((one) => one.well !== GOOD).map(card), { class: "cards" }),
    good.length ? el("details", [el("summary", [wellness(GOOD), ` ${good.map((one) => one.title).join(", ")}`]), el("div", good.map(card), { class: "cards" })], { class: "fold" }) : null,
    el("details", [el("summary", "Definitions"), el("dl", CARDS.flatMap((one) => [el("dt", one[0]), el("dd", one[2])]))]),
  ]));
}
