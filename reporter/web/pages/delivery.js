// "/delivery/<id>": what became of one event, a box for each back end; pr.js shows the same boxes.
import { el, link, own, slots } from "./dom.js";
import { neverReported, timeline } from "./timeline.js";
import { copyButton, count, demoted, isBad, jobKey, jobName, jobsByRepo, jobState, newestAttempts, NO_CONCLUSION, prLink, rank, repoLink, said, seconds,
         state, stateName, tally, tier, when, worst } from "./values.js";

// ?limit=: how many jobs are asked for.
export const api = (match, query) => `/api/crcr/deliveries/${match[1]}${query}`;

const JOBS_MAX = 10000; // what the server gives of one delivery
const SHOWN = 100;      // of a back end, the worst; the others are one click away

// ---- a job --------------------------------------------------------------------------------------

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const textOf = (value) => (typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value));

function testItem(row, i) {
  return el("li", [
    el("code", [textOf(row?.classname), textOf(row?.name)].filter(Boolean).join("::")),
    row?.message ? el("pre", textOf(row.message)) : null,
    row?.stacktrace ? el("details", [el("summary", "Stack trace"), el("pre", textOf(row.stacktrace))]) : null], { key: i });
}

function failedTests(job) {
  const rows = parsed(job.failed_tests_json);
  if (!Array.isArray(rows) || !rows.length) return null;
  const left = (job.failed_tests || 0) - rows.length;
  return el("div", [el("ul", rows.map(testItem), { class: "tests" }), left > 0 ? el("p", `And ${count(left)} more: in the log.`) : null]);
}

function verdict(job) {
  const read = parsed(job.triage_verdict_json);
  if (!read || typeof read !== "object") return null;
  return el("p", ["The back end says: ", el("strong", textOf(read.category) || "no category"),
                  read.confidence === undefined ? "" : ` (confidence ${textOf(read.confidence)})`,
                  read.summary ? [". ", said(textOf(read.summary))] : ""]);
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

function jobItem(job) {
  const title = [jobState(job), " ", el("bdi", jobName(job), { class: "job" }), counts(job)];
  const more = [verdict(job), failedTests(job)].filter(Boolean);
  const elsewhere = !more.length && isBad(stateName(job)) && job.failed_tests > 0;
  return el("li", [
    more.length ? el("details", [el("summary", title), ...more], { open: isBad(stateName(job)) ? "" : null }) : el("div", title),
    el("small", [`queued ${seconds(job.queue_time)}, ran ${seconds(job.execution_time)}`, job.no_conclusion ? ` · ${NO_CONCLUSION}` : null, links(job),
                 elsewhere ? [" · ", own("failed tests", `/delivery/${job.delivery_id}`)] : null], { class: "quiet" })],
    { key: jobKey(job) });
}

// ---- a back end ---------------------------------------------------------------------------------

// What it means for the pull request, and what the reader can do. labels: null where they are not
// known.
function advice(row, delivery, labels) {
  const again = " “Re-run” there runs it again.";
  if (row.level === "L1") return "L1 gets the events and reports nothing.";
  if (row.level === "L2") return "L2: its results are only on these pages. A new push runs it again, or its owners do in their own CI.";
  const check = row.level === "L4"
    ? ["Its check ", el("code", `crcr/${row.repo}`), row.check_run ? ` is ${row.check_run} and` : "", " can block the merge."]
    : ["Its checks ", el("code", `crcr/${row.repo}/…`), " do not block the merge."];
  if (!delivery.pr_number || delivery.event_type !== "pull_request") return row.level === "L4" && row.check_run ? check : "";
  if (row.level === "L4") return [check, again];
  if (row.level !== "L3" || !row.device) return "";
  if (row.demoted) return ["It gets no new check runs until it recovers: ", said(row.demoted)];
  const label = `ciflow/crcr/${row.device}`;
  const has = labels && labels.some((one) => one.toLowerCase() === label.toLowerCase()); // as GitHub compares them
  if (has) return [check, " The pull request has the label ", el("code", label), ".", again];
  return [labels ? "Add the label " : "Shown on the pull request when that has the label ", el("code", label),
          labels ? " to see its check on the pull request. " : ". ", labels ? copyButton(label, "the label") : null];
}

function dispatch(row) {
  const sent = row.dispatch;
  if (!sent) return el("p", "No dispatch is known.", { class: "quiet" });
  return el("p", ["Dispatch ", state(sent.outcome), " ", when(sent.dispatched_at || sent.at),
    sent.error ? [": ", said(sent.error)] : "",
    sent.maybe_duplicate ? `; may have been sent twice (${sent.maybe_duplicate})` : ""], { class: "quiet" });
}

// What the back ends of a delivery came to, the worst first: [{ row, jobs, how }].
export function backEnds(delivery) {
  const byRepo = jobsByRepo(delivery.jobs);
  const all = delivery.downstreams.map((row) => {
    const jobs = newestAttempts(byRepo.get(row.repo.toLowerCase()) ?? [])
      .sort((a, b) => rank(stateName(a)) - rank(stateName(b)));
    const undone = row.dispatch && row.dispatch.outcome !== "dispatched" ? row.dispatch.outcome
      : neverReported(row, delivery) ? "never_reported" : null;
    return { row, jobs, how: jobs.length ? worst(jobs.map(stateName)) : undone };
  });
  return all.sort((a, b) => rank(a.how) - rank(b.how) || a.row.repo.localeCompare(b.row.repo));
}

// What is said of a back end of which there is neither a job nor a failed dispatch, and that may still report.
export const noJob = (row, delivery) => el("span", row.level === "L1" ? "sent"
  : delivery.more_jobs ? `none of the first ${count(delivery.jobs.length)} jobs` : "no job yet", { class: "quiet" });

function artifacts(jobs) {
  const those = jobs.filter((job) => job.artifact_url);
  return those.length > 1 ? el("details", [el("summary", `Artifacts of ${count(those.length)} jobs`),
    el("ul", those.map((job) => el("li", link(jobName(job), job.artifact_url), { key: jobKey(job) })))]) : null;
}

function box({ row, jobs, how }, delivery, labels, named) {
  return el("section", slots([
    el("h3", [repoLink(row.repo), " ", tier(row.level), " ", demoted(row.demoted), " ",
      how ? state(how) : noJob(row, delivery)]),
    el("p", advice(row, delivery, labels), { class: "quiet" }),
    row.oncalls.length ? el("p", `On call: ${row.oncalls.join(", ")}`, { class: "quiet" }) : null,
    dispatch(row),
    el("ul", jobs.slice(0, SHOWN).map(jobItem), { class: "jobs" }),
    jobs.length > SHOWN ? el("details", [el("summary", ["And ", ...tally(jobs.slice(SHOWN).map(stateName))]),
                                         el("ul", jobs.slice(SHOWN).map(jobItem), { class: "jobs" })]) : null,
    artifacts(jobs),
  ]), { key: row.repo.toLowerCase(), id: named ? row.repo : null, class: "box" });
}

// named: their addresses are #<owner>/<repo>.
export function boxes(delivery, labels, named) {
  const all = backEnds(delivery);
  if (!all.length) return el("p", "Nothing has been dispatched for this delivery.");
  return el("div", all.map((one) => box(one, delivery, labels, named)), { class: "boxes" });
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
             el("code", (data.head_sha || "–").slice(0, 10), { title: data.head_sha }), ", ", when(startOf(data)),
             ...selfReported(data), " ", copyButton(data.delivery_id, "the delivery's id")], { class: "quiet" }),
    el("h2", "Back ends"),
    el("p", summary(data)),
    boxes(data, null, true),
    data.clocks ? timeline(data) : null,
    el("p", ["Its way through the topics: ", el("code", trace), " ", copyButton(trace, "the command")], { class: "quiet" }),
  ]);
}
