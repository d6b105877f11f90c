// The cards of "/": is the relay well? The numbers are those of /api/crcr/health; what counts as well is said here, once, and on
// hover. "not well" is where an alert of deploy/monitoring calls somebody.
import { el, own, slots } from "./dom.js";
import { count, said, seconds, when } from "./values.js";

// Without an answer the page is about the back ends all the same.
export async function more(data, get) {
  data.health = await get("/api/crcr/health").catch((error) => ({ missing: error.message }));
}

// ---- well, or not -------------------------------------------------------------------------------

const GOOD = 0, UNKNOWN = 1, LOOK = 2, BAD = 3;
const WORDS = [["good", "✓", "well"], ["quiet", "?", "not known"], ["warn", "!", "needs a look"], ["bad", "✗", "not well"]];

// In words and colour.
export function wellness(well) {
  const [look, mark, word] = WORDS[well];
  return el("span", [el("span", `${mark} `, { "aria-hidden": "true" }), word], { class: `state ${look}` });
}

const MINUTE = 60, WAITS_LONG = { router: 30, l1: 30, l2: 30, l3: 30, l4: 5 };
export const WAITS_HELP = "L4 is not well when a record has waited 5 min, router and L1 to L3 30 min, the others 10 min; each needs a look from a tenth of that on.";
export function waits(role, waited) {
  const long = (WAITS_LONG[role] || 10) * MINUTE;
  return waited > long ? BAD : waited > long / 10 ? LOOK : GOOD;
}

const isOlder = (text, minutes) => text !== null && Date.now() - Date.parse(text) > minutes * MINUTE * 1000;
const worstRole = (roles) => [...roles].sort((a, b) => waits(b.role, b.seconds) - waits(a.role, a.seconds) || b.seconds - a.seconds)[0];

// ---- the cards ----------------------------------------------------------------------------------

const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;
export const READING = "The topic is still being read; try again in a minute.";
export const NOT_REACHED = "The topics have not been read since the start.";
export const DLQ_OLDER = "Older entries are not counted here: ";

// Each: [title, where one looks next, definition, (health) => [well, text, items of a list]].
const CARDS = [
  ["Relay", "/pipeline", `How long the oldest record has waited that a role's consumer group has not committed; in delay topics since its time came. ${WAITS_HELP}`,
   ({ roles, error }) => {
     const worst = worstRole(roles);
     if (!worst) return [error ? BAD : UNKNOWN, NOT_REACHED];
     const shown = roles.filter((role) => role.records || waits(role.role, role.seconds));
     return [error ? BAD : waits(worst.role, worst.seconds), worst.seconds ? `${worst.role}: the oldest record has waited ${seconds(worst.seconds)}.` : "Nothing is late.",
       shown.map((role) => [wellness(waits(role.role, role.seconds)), ` ${role.role}: ${seconds(role.seconds)}, ${plural(role.records, "record", "records")}`])];
   }],
  ["Dispatches today", "/prs", "Calls that GitHub took, in this hour and the 23 before. Times are from the webhook's last byte to the call, within 5 %, and not below 0.1 s, " +
    "without what was redelivered or replayed. Not well when 5 or more fail and more than succeed; needs a look when p99 is above 30 s.",
   ({ dispatches: one }) => (one.dispatched === null ? [UNKNOWN, READING]
     : [one.failed >= 5 && one.failed > one.dispatched ? BAD : one.p99_seconds > 30 ? LOOK : GOOD, [`${count(one.dispatched)} in 24 h, ${count(one.failed)} failed. `,
       one.p50_seconds === null ? "" : `From receipt to dispatch p50 ${seconds(one.p50_seconds)}, p99 ${seconds(one.p99_seconds)}.`]])],
  ["GitHub budget", "/pipeline", "Calls left before our own limit, for the account with the fewest; refilled all the time. Needs a look when nothing " +
    "is left for L1 to L3, or GitHub asked us to wait; not well when nothing is left for L4.",
   ({ budget: one }) => {
     if (one.error) return [UNKNOWN, ["Not known: ", said(one.error), "."]];
     const least = (name) => Math.min(...one.buckets.map((bucket) => bucket[name]));
     return [least("left_l4") === 0 ? BAD : least("left_rest") === 0 || one.limited_until ? LOOK : GOOD,
       [one.limited_until ? ["GitHub asked us to wait until ", when(one.limited_until), ". "] : "", one.buckets.length ? "" : "No limit of ours is set."],
       one.buckets.map((bucket) => `${count(bucket.left)} of ${count(bucket.of)} ${bucket.bucket.replace("_", " an ").replace("an minute", "a minute")}, ${bucket.account}${
         bucket.left_l4 === 0 ? ": L4 waits" : bucket.left_rest === 0 ? ": L1 to L3 wait" : ""}`)];
   }],
  ["Breakers", "/pipeline", "Downstreams whose owner's last 5 calls had no answer: a sender puts their tasks off. Needs a look while there is one; not well 30 min after the last answer, where there was one in 24 h.",
   ({ breakers: one }) => (one.open === null ? [UNKNOWN, READING] : !one.open ? [GOOD, "Each downstream answers."]
     : [one.downstreams.some((row) => isOlder(row.answered_at, 30)) ? BAD : LOOK,
       `${plural(one.open, "downstream does", "downstreams do")} not answer. One call every 10 s asks whether it is back.`,
       one.downstreams.map((row) => [own(row.repo, `/repo/${row.repo}`), ": last answer ", row.answered_at ? when(row.answered_at) : "more than 24 h ago"])])],
  ["Dead-letter queue", "/pipeline#dlq", "Records that could not be worked off, and that nobody has replayed or dropped, of the last 30 days.",
   ({ dlq: one }) => (one.open === null ? [UNKNOWN, READING] : !one.open && !one.more ? [GOOD, "Nothing is left over."]
     : !one.open ? [LOOK, [DLQ_OLDER, el("code", "crcrctl dlq list")]]
     : [LOOK, [`${one.more ? "More than " : ""}${plural(one.open, "entry is", "entries are")} not resolved, the newest of `, when(one.newest_at), "."]])],
  ["Allowlist", "/", "Which version is in force, and when the file was last seen complete. Needs a look when the newest file is not in force, or none was seen " +
    "for 2 h; not well when there is none.",
   ({ allowlist: one }) => (!one.caught_up ? [UNKNOWN, "It is being read."] : !one.sha ? [BAD, "None has been published."]
     : [one.error || isOlder(one.fetched_at, 120) ? LOOK : one.fetched_at ? GOOD : UNKNOWN,
       [el("code", one.sha.slice(0, 10)), `, ${plural(one.repositories, "repository", "repositories")}, fetched `, when(one.fetched_at),
        one.error ? [". The newest is not in force: ", said(one.error)] : ". Valid."]])],
];

function card(health, [title, path, help, look]) {
  const [well, text, items] = look(health);
  return el("section", slots([
    el("h2", [own(title, path), " ", wellness(well)]), el("p", text),
    items?.length ? el("ul", items.map((item) => el("li", item))) : null]), { class: "card", key: title, title: help });
}

// health: of /api/crcr/health; what the topics said may be old.
export function cards(health) {
  if (!health || health.missing) return el("p", ["How the relay does is not known: ", health ? health.missing : "nobody said."], { class: "quiet" });
  return el("div", slots([
    health.error ? el("p", ["What waits could not be looked at: ", said(health.error), ". It is ", health.looked_at ? ["of ", when(health.looked_at)] : "not known", "."],
      { class: "error", role: "alert" }) : null,
    el("div", CARDS.map((one) => card(health, one)), { class: "cards" }),
    el("details", [el("summary", "What the cards mean"), el("dl", CARDS.flatMap((one) => [el("dt", one[0]), el("dd", one[2])]))]),
  ]));
}
