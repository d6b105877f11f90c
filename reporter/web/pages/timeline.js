// What happened to a delivery, by the relay's clock, and what it waits for; part of delivery.js.
import { el, slots, table } from "./dom.js";
import { count, jobKey, jobName, jobsByRepo, repoLink, said, seconds, state, when } from "./values.js";

const OPEN_MAX = 40; // steps that are shown without being asked for
const LINES_MAX = 500; // of each list: a delivery may have ten thousand jobs, whose states are above
const andMore = (list, where) => (list.length > LINES_MAX ? el("p", `And ${count(list.length - LINES_MAX)} more: ${where}.`, { class: "quiet" }) : null);

// A step: { at, what }. what() makes its elements, which not every step needs.
function dispatched(row) {
  const sent = row.dispatch;
  if (!sent) return [];
  const again = sent.attempt > 1 ? `, try ${sent.attempt}` : "";
  return [{ at: sent.dispatched_at || sent.at, what: () => ["Dispatch to ", repoLink(row.repo), ": ", state(sent.outcome), again] }];
}

const ended = (job, clock) => [
  clock.timed_out ? { at: clock.timed_out, what: () => [repoLink(job.downstream_repo), ": ", said(jobName(job)), " was silent for too long: ", state("timed_out")] } : null,
  clock.completed ? { at: clock.completed, what: () => [repoLink(job.downstream_repo), ": ", said(jobName(job)), " ended: ", state(job.conclusion || "neutral")] } : null];

// jobsOf(row): of that back end; clockOf: a Map, by job.
function steps(data, jobsOf, clockOf) {
  const came = data.downstreams.map((row) => row.dispatch?.received_at).filter(Boolean).sort()[0];
  const first = data.downstreams.map((row) => {
    const times = jobsOf(row).flatMap((job) => Object.values(clockOf.get(job))).filter(Boolean).sort();
    return times.length ? { at: times[0], what: () => [repoLink(row.repo), ": first report"] } : null;
  });
  return [came ? { at: came, what: () => "The relay accepted the webhook." } : null, ...data.downstreams.flatMap(dispatched), ...first,
          ...data.jobs.flatMap((job) => ended(job, clockOf.get(job)))].filter(Boolean).sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
}

// ---- what it waits for --------------------------------------------------------------------------

const later = (at, wait) => (at ? new Date(Date.parse(at) + wait * 1000).toISOString() : null);

// Of a back end without a job: whether its first report should have come by now. Its check run, where it has one, is timed out then.
// Nobody tests what was closed.
export function neverReported(row, data) {
  if (row.level === "L1" || data.action === "closed" || data.more_jobs || !row.dispatch?.dispatched_at || !data.silent_after_seconds) return false;
  return Date.parse(later(row.dispatch.dispatched_at, data.silent_after_seconds)) <= Date.now();
}

// A list of functions that make the elements of one thing that is waited for. jobs: of that back end.
function waitsOf(row, jobs, clockOf, data) {
  const limit = data.silent_after_seconds, sent = row.dispatch;
  const open = jobs.filter((job) => job.status === "in_progress").map((job) =>
    () => [repoLink(row.repo), ": the end of ", said(jobName(job)), ", at the latest ", when(later(clockOf.get(job).in_progress, limit)), "; then it is timed out."]);
  if (sent?.outcome === "waiting") open.push(() => [repoLink(row.repo), ": the dispatch itself. ", sent.error ? said(sent.error) : "It is tried again."]);
  if (!sent?.dispatched_at || row.level === "L1" || jobs.length || data.action === "closed" || data.more_jobs || neverReported(row, data)) return open;
  return [...open, () => [repoLink(row.repo), ": its first report", row.check_run === "open"
    ? [", at the latest ", when(later(sent.dispatched_at, limit)), "; then its check run is timed out."]
    : row.check_run ? "; the check run of its commit has ended without it." : "; it has no check run, so no time-out is reported."]];
}

// ---- the clock of the CI ------------------------------------------------------------------------

const OWN = [{ name: "Job" }, { name: "Began", look: "when", help: "As the CI said of itself, by its own clock; where it said nothing, when the relay got the report." },
             { name: "Ended", look: "when", help: "The same of its end." }];

function ownTimes(data) {
  const rows = data.jobs.slice(0, LINES_MAX).map((job) => ({ key: jobKey(job), cells: [[said(job.downstream_repo), " ", said(jobName(job))], when(job.started_at), when(job.completed_at)] }));
  return el("details", [el("summary", "Times that the CI reported of itself"), table("Times of the CI", "By the clock of each CI, not the relay's", OWN, rows),
    andMore(data.jobs, "in the JSON of this page")]);
}

export function timeline(data) {
  const byRepo = jobsByRepo(data.jobs), jobsOf = (row) => byRepo.get(row.repo.toLowerCase()) ?? [];
  const clockOf = new Map(data.jobs.map((job, i) => [job, data.clocks[i]]));
  const all = steps(data, jobsOf, clockOf), open = data.downstreams.flatMap((row) => waitsOf(row, jobsOf(row), clockOf, data));
  const nothing = data.more_jobs ? `Nothing among the first ${count(data.jobs.length)} jobs.` : "Nothing: every job that reported has ended.";
  const list = el("ol", all.slice(0, LINES_MAX).map((step) => el("li", [when(step.at), " ", el("small", `+${seconds((Date.parse(step.at) - Date.parse(all[0].at)) / 1000)}`), " ", el("span", step.what())])),
                  { class: "steps" });
  return el("div", slots([
    el("h2", "Waiting for"),
    open.length ? el("ul", open.slice(0, LINES_MAX).map((one) => el("li", one()))) : el("p", nothing, { class: "quiet" }),
    andMore(open, "the jobs in progress above"),
    el("h2", "Timeline, by the relay's clock"),
    all.length ? el("details", [el("summary", `${count(all.length)} steps`), list, andMore(all, "crcrctl trace shows them")], { open: all.length <= OPEN_MAX ? "" : null }) : el("p", "No step is known.", { class: "quiet" }),
    data.jobs.length ? ownTimes(data) : null,
  ]));
}
