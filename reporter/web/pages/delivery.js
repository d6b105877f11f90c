// "/delivery/<id>": what became of one event, a box for each backend; pr.js shows the same boxes.
import { el, link, own, slots } from "./dom.js";
import { neverReported, timeline, waterfall } from "./timeline.js";
import { clock, copyButton, count, demoted, isBad, jobKey, jobName, jobsByRepo, jobState, newestAttempts, NO_CONCLUSION, plural, prLink, rank, repoLink, said, seconds,
         state, stateName, tally, tier, when, worst } from "./values.js";

// ?limit=: how many jobs are asked for.
export const api = (match, query) => `/api/crcr/deliveries/${match[1]}${query}`;

const JOBS_MAX = 10000; // what the server gives of one delivery
const SHOWN = 100;      // of a backend, the worst; the others are one click away
const GREEN = 5;        // more that ended well are folded where one did not
const TESTS = 5;        // failed tests of a job; likewise

// ---- a job --------------------------------------------------------------------------------------

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const textOf = (value) => (typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value));

// Those with one message together, the most first; at most max of all. A message is said once.
function testGroups(rows, max) {
  const groups = new Map();
  for (const row of rows) groups.set(textOf(row?.message), [...(groups.get(textOf(row?.message)) ?? []), row]);
  let left = max;
  return el("ul", [...groups].sort((a, b) => b[1].length - a[1].length).map(([message, tests], i) => {
    const shown = tests.slice(0, left);
    left -= shown.length;
    return shown.length ? el("li", [
      shown.map((row, k) => [k ? ", " : "", el("code", [textOf(row?.classname), textOf(row?.name)].filter(Boolean).join("::"))]),
      message ? el("pre", message) : null,
      shown[0]?.stacktrace ? el("details", [el("summary", "Stack trace"), el("pre", textOf(shown[0].stacktrace))]) : null], { key: i }) : null;
  }), { class: "tests" });
}

function failedTests(job) {
  const rows = parsed(job.failed_tests_json);
  if (!Array.isArray(rows) || !rows.length) return null;
  const rest = Math.max(job.failed_tests || 0, rows.length) - TESTS, unsent = (job.failed_tests || 0) - rows.length;
  return el("div", [testGroups(rows, TESTS), rest > 0 ? el("details", [el("summary", `${count(rest)} more`), rows.length > TESTS ? testGroups(rows, Infinity) : null,
    unsent > 0 ? el("p", `${count(unsent)} are only in the log.`) : null]) : null]);
}

// What the backend says of the cause; it is only advice.
function verdict(job) {
  const read = parsed(job.triage_verdict_json), suspect = read?.suspected_upstream, rows = Array.isArray(read?.evidence) ? read.evidence : [];
  if (!read || typeof read !== "object") return null;
  return el("div", [
    el("p", ["The backend says: ", el("strong", textOf(read.category) || "no category"),
             read.confidence === undefined ? "" : ` (confidence ${textOf(read.confidence)})`, read.summary ? [". ", said(textOf(read.summary))] : "",
             job.environment ? [" · environment: ", said(job.environment)] : ""]),
    suspect ? el("p", ["Suspected upstream change: ", suspect.pr ? [prLink(suspect.pr), " "] : "", suspect.commit ? el("code", textOf(suspect.commit).slice(0, 10)) : "",
                       suspect.reason ? [": ", said(textOf(suspect.reason))] : ""]) : null,
    rows.length ? el("details", [el("summary", `Evidence: ${plural(rows.length, "excerpt")}`), el("ul", rows.map((row) => el("li", [
      el("code", [textOf(row?.job), textOf(row?.test)].filter(Boolean).join(" ")), row?.log_url ? [" ", link("log", row.log_url)] : "", row?.excerpt ? el("pre", textOf(row.excerpt)) : null])))]) : null]);
}

function links(job) {
  const name = jobName(job);
  return [job.workflow_run_url ? [" · ", link("log", job.workflow_run_url, { "aria-label": `log of ${name}` })] : null,
          job.artifact_url ? [" · ", link("artifacts", job.artifact_url, { "aria-label": `artifacts of ${name}` })] : null];
}

function counts(job) {
  if (job.total_tests === null) return null;
  return el("small", ` ${count(job.failed_tests)} failed, ${count(job.passed_tests)} passed, ${count(job.skipped_tests)} skipped`);
}

// Whether its failure is known elsewhere: the same words as in the check run.
export const known = (job) => (job.known?.sentence ? el("span", job.known.sentence, { class: job.known.reason === "only_here" ? "bad" : "warn" }) : null);

// One attempt, and what failed in it.
function attempt(job) {
  const more = [verdict(job), failedTests(job)].filter(Boolean), elsewhere = !more.length && isBad(stateName(job)) && job.failed_tests > 0;
  return { more, about: el("small", [`queued ${seconds(job.queue_time)}, ran ${seconds(job.execution_time)}`, job.no_conclusion ? ` · ${NO_CONCLUSION}` : null, links(job),
    elsewhere ? [" · ", own("failed tests", `/delivery/${job.delivery_id}`)] : null], { class: "quiet" }) };
}

// earlier: those that it has replaced, the newest first.
function jobItem({ job, earlier }) {
  const { more, about } = attempt(job), bad = isBad(stateName(job)), again = earlier.length > 0 && job.status === "completed" && !bad;
  const title = [again ? [el("span", `Passed on attempt ${job.run_attempt > 1 ? job.run_attempt : earlier.length + 1}`, { class: "state good" }), " "] : [jobState(job), " "],
                 el("bdi", jobName(job), { class: "job" }), counts(job)];
  return el("li", [
    more.length ? el("details", [el("summary", title), ...more], { open: bad ? "" : null }) : el("div", title),
    bad && known(job) ? el("div", known(job)) : null, about,
    earlier.map((one) => {
      const old = attempt(one);
      return el("details", [el("summary", [`Attempt ${one.run_attempt}: `, jobState(one), counts(one)]), ...old.more, old.about], { class: "earlier", key: jobKey(one) });
    })], { key: jobKey(job) });
}

// ---- a backend ----------------------------------------------------------------------------------

const ABSENT = {
  not_dispatched: "nothing was dispatched for this commit", refused: "GitHub refused to make it", newer_commit: "the pull request has a newer commit",
  budget: "our budget for GitHub is used up", not_yet: "it has not been made yet",
};

// What its check run means for the merge; row.check_run is as GitHub has it.
function checkSentence(row, delivery) {
  const check = row.check_run, name = el("code", `crcr/${row.repo}`), failed = check.blocks && check.status === "completed";
  const at = delivery.upstream_repo && check.id ? link("on GitHub", `https://github.com/${delivery.upstream_repo}/runs/${check.id}`) : null;
  const how = check.of_other_delivery ? " is about a newer delivery of this commit."
    : check.status === "absent" ? [` is not on the pull request: ${ABSENT[check.absent] || check.absent}`, check.until ? `, until ${clock(check.until)}` : "",
                                   check.blocks ? ". A merge that requires it waits." : "."]
    : check.status === "queued" ? " is queued. It blocks the merge until it has passed."
    : check.status === "in_progress" ? " is running. It blocks the merge until it has passed."
    : failed ? [` ended as ${check.conclusion.replaceAll("_", " ")} and blocks the merge. “Re-run” on GitHub runs it again.`]
    : ` ended as ${check.conclusion} and does not block the merge.`;
  return ["Its check ", name, how, at ? [" ", at] : ""];
}

// What it means for the pull request, and what the reader can do. labels: null where they are not
// known.
function advice(row, delivery, labels) {
  if (row.level === "L1") return "L1 gets the events and reports nothing.";
  if (row.level === "L2") return "L2: its results are only on these pages. A new push runs it again, or its owners do in their own CI.";
  if (row.check_run) return checkSentence(row, delivery);
  if (!delivery.pr_number || delivery.event_type !== "pull_request" || row.level !== "L3" || !row.device) return "";
  if (row.demoted) return ["It gets no new check runs until it recovers: ", said(row.demoted)];
  const label = `ciflow/crcr/${row.device}`;
  const has = labels && labels.some((one) => one.toLowerCase() === label.toLowerCase()); // as GitHub compares them
  if (has) return ["Its checks ", el("code", `crcr/${row.repo}/…`), " do not block the merge. The pull request has the label ", el("code", label), ". “Re-run” there runs it again."];
  return [labels ? "Add the label " : "Shown on the pull request when that has the label ", el("code", label),
          labels ? " to see its check on the pull request. " : ". ", labels ? copyButton(label, "the label") : null];
}

function dispatch(row) {
  const sent = row.dispatch;
  if (!sent) return el("p", "No dispatch is known.", { class: "quiet" });
  return el("p", ["Dispatch ", state(sent.outcome), " ", when(sent.dispatched_at || sent.at), sent.attempt > 1 ? `, attempt ${sent.attempt}` : "",
    sent.http_status && sent.outcome !== "dispatched" ? `, HTTP ${sent.http_status}` : "", sent.error ? [": ", said(sent.error)] : "",
    sent.maybe_duplicate ? `; may have been sent twice (${sent.maybe_duplicate})` : ""], { class: "quiet" });
}

// What the backends of a delivery came to: [{ row, jobs, how }]; those that block first, then the worst. jobs: [{ job, earlier }].
export function backEnds(delivery) {
  const byRepo = jobsByRepo(delivery.jobs);
  const all = delivery.downstreams.map((row) => {
    const mine = byRepo.get(row.repo.toLowerCase()) ?? [], title = (job) => `${job.workflow_name}\n${job.job_name}`;
    const named = new Map(), jobs = newestAttempts(mine).sort((a, b) => rank(stateName(a)) - rank(stateName(b))).map((job) => ({ job, earlier: [] }));
    for (const one of jobs) named.set(title(one.job), named.get(title(one.job)) ?? one);
    for (const job of mine.filter((one) => one.replaced).reverse()) named.get(title(job))?.earlier.push(job);
    const undone = neverReported(row) ? "never_reported" : row.dispatch && row.dispatch.outcome !== "dispatched" ? row.dispatch.outcome : null;
    return { row, jobs, how: jobs.length ? worst(jobs.map((one) => stateName(one.job))) : undone };
  });
  const blocks = ({ row }) => (row.check_run?.blocks ? 0 : 1);
  return all.sort((a, b) => blocks(a) - blocks(b) || rank(a.how) - rank(b.how) || a.row.repo.localeCompare(b.row.repo));
}

// What is said of a backend of which there is neither a job nor a failed dispatch, and that may still report.
export const noJob = (row, delivery) => el("span", row.level === "L1" ? "sent"
  : delivery.more_jobs ? `none of the first ${count(delivery.jobs.length)} jobs` : "no job yet", { class: "quiet" });

function artifacts(jobs) {
  const those = jobs.map((one) => one.job).filter((job) => job.artifact_url);
  return those.length > 1 ? el("details", [el("summary", `Artifacts of ${count(those.length)} jobs`),
    el("ul", those.map((job) => el("li", link(jobName(job), job.artifact_url), { key: jobKey(job) })))]) : null;
}

// Those that did not end well, at most SHOWN; what follows is one click away.
function cut(jobs) {
  const first = jobs.findIndex(({ job }) => ["success", "neutral", "skipped"].includes(stateName(job)));
  return first > 0 && jobs.length - first > GREEN ? Math.min(first, SHOWN) : SHOWN;
}

function box({ row, jobs, how }, delivery, labels, named) {
  const shown = cut(jobs);
  return el("section", slots([
    el("h3", [repoLink(row.repo), " ", tier(row.level), " ", demoted(row.demoted), " ",
      how ? state(how) : noJob(row, delivery), " ", row.check_run?.blocks ? el("span", "blocks", { class: "chip bad" }) : null]),
    el("p", advice(row, delivery, labels), { class: "quiet" }),
    row.oncalls.length ? el("p", `On call: ${row.oncalls.join(", ")}`, { class: "quiet" }) : null,
    dispatch(row),
    el("ul", jobs.slice(0, shown).map(jobItem), { class: "jobs" }),
    jobs.length > shown ? el("details", [el("summary", ["And ", ...tally(jobs.slice(shown).map((one) => stateName(one.job)))]),
                                         el("ul", jobs.slice(shown).map(jobItem), { class: "jobs" })]) : null,
    artifacts(jobs),
  ]), { key: row.repo.toLowerCase(), id: named ? row.repo : null, class: "box" });
}

const isGreen = ({ row, how }) => !row.check_run?.blocks && ["success", "neutral", "skipped"].includes(how);

// named: their addresses are #<owner>/<repo>. Where something else is worse, those that passed are folded.
export function boxes(delivery, labels, named) {
  const all = backEnds(delivery), green = all.filter(isGreen), draw = (list) => list.map((one) => box(one, delivery, labels, named));
  if (!all.length) return el("p", "Nothing has been dispatched for this delivery.");
  if (green.length < 2 || green.length === all.length) return el("div", draw(all), { class: "boxes" });
  return el("div", [...draw(all.filter((one) => !isGreen(one))), el("details", [
    el("summary", [state("success"), ` ${green.length} backends: ${green.map((one) => one.row.repo).join(", ")}`]),
    el("div", draw(green), { class: "boxes" })], { key: "green", class: "fold" })], { class: "boxes" });
}

// ---- the page -----------------------------------------------------------------------------------

export const summary = (delivery) => ["Jobs: ",
  ...(delivery.jobs.length ? tally(newestAttempts(delivery.jobs).map(stateName)) : ["none yet"]),
  ...(delivery.more_jobs ? [`. There may be more than these ${count(delivery.jobs.length)}`, delivery.jobs.length < JOBS_MAX
    ? [": ", own("show them", `/delivery/${delivery.delivery_id}?limit=${JOBS_MAX}`)] : ""] : [])];
// When its webhook came; where that is not known, of its first dispatch.
export function startOf(delivery) {
  const sent = delivery.downstreams.find((row) => row.dispatch)?.dispatch;
  return sent?.received_at || sent?.at;
}

// A nightly or periodic run names the commit itself, if any: the relay looks whether the upstream has it.
function selfReported(data) {
  if (data.event_type !== "nightly" && data.event_type !== "periodic") return [];
  if (!data.head_sha) return ", no commit was reported";
  return [", ", data.commit_exists === null ? "not looked up yet whether the upstream has this commit"
    : data.commit_exists ? "the upstream has this commit" : el("span", "the upstream has no such commit", { class: "bad" })];
}

// An id of which only the beginning was given.
function several(ids) {
  return slots([
    el("h1", "Several deliveries start with these characters"),
    el("ul", ids.map((id) => el("li", el("code", own(id, `/delivery/${id}`)), { key: id }))),
    el("p", "At most 20 are shown, the newest days first.", { class: "quiet" })]);
}

export function show(data) {
  if (data.matches) return several(data.matches);
  const trace = `crcrctl trace ${data.delivery_id}`;
  return slots([
    el("h1", ["Delivery ", el("code", data.delivery_id)]),
    el("p", [data.event_type || "event", data.pr_number ? [", pull request ", prLink(data.pr_number)] : "", ", commit ",
             el("code", (data.head_sha || "–").slice(0, 10)), ", ", when(startOf(data)),
             ...selfReported(data), " ", copyButton(data.delivery_id, "the delivery's id")], { class: "quiet" }),
    data.clocks ? waterfall(data) : null,
    el("h2", "Backends"),
    el("p", summary(data)),
    boxes(data, null, true),
    data.clocks ? timeline(data) : null,
    el("p", ["Trace: ", el("code", trace), " ", copyButton(trace, "the command")], { class: "quiet" }),
  ]);
}
