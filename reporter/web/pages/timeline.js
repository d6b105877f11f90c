// What happened to a delivery, by the relay's clock, and what it waits for; part of delivery.js.
import { el, slots, table } from "./dom.js";
import { count, jobKey, jobName, jobsByRepo, plural, rank, repoLink, said, seconds, state, stateName, when, worst } from "./values.js";

const OPEN_MAX = 40; // steps that are shown without being asked for
const LINES_MAX = 500; // of each list: a delivery may have ten thousand jobs, whose states are above
const andMore = (list, where) => (list.length > LINES_MAX ? el("p", `And ${count(list.length - LINES_MAX)} more: ${where}.`, { class: "quiet" }) : null);

// A step: { at, what }. what() makes its elements, which not every step needs.
function dispatched(row) {
  const sent = row.dispatch;
  if (!sent) return [];
  const again = sent.attempt > 1 ? `, attempt ${sent.attempt}` : "";
  return [{ at: sent.dispatched_at || sent.at, what: () => ["Dispatch to ", repoLink(row.repo), ": ", state(sent.outcome), again] }];
}

const ended = (job, clock) => [
  clock.timed_out ? { at: clock.timed_out, what: () => [repoLink(job.downstream_repo), ": ", said(jobName(job)), " was silent for too long: ", state("timed_out")] } : null,
  clock.completed ? { at: clock.completed, what: () => [repoLink(job.downstream_repo), ": ", said(jobName(job)), " ended: ", state(job.conclusion || "neutral")] } : null];

const cameAt = (data) => data.downstreams.map((row) => row.dispatch?.received_at).filter(Boolean).sort()[0];

// jobsOf(row): of that backend; clockOf: a Map, by job.
function steps(data, jobsOf, clockOf) {
  const came = cameAt(data);
  const first = data.downstreams.map((row) => {
    const times = jobsOf(row).flatMap((job) => Object.values(clockOf.get(job))).filter(Boolean).sort();
    return times.length ? { at: times[0], what: () => [repoLink(row.repo), ": first report"] } : null;
  });
  return [came ? { at: came, what: () => "The relay accepted the webhook." } : null, ...data.downstreams.flatMap(dispatched), ...first,
          ...data.jobs.flatMap((job) => ended(job, clockOf.get(job)))].filter(Boolean).sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
}

// ---- where its time went ------------------------------------------------------------------------

const PARTS = [["dispatch", "Dispatch", "From the webhook to GitHub's answer, or what it has waited since."],
               ["queue", "Queue", "From the dispatch to the first report."], ["run", "Run", "From the first report to the last one, or until now."]];

// Its first report was due, and none came. The server says which report is due; here the time has come meanwhile.
export const neverReported = (row) => row.never_reported || (!!row.dispatch?.report_due_at && Date.parse(row.dispatch.report_due_at) <= Date.now());

// Of a backend: [[part, from, to]], by the relay's clock, in milliseconds.
function spans(row, jobs, clockOf, now) {
  const sent = row.dispatch, at = (text) => (text ? Date.parse(text) : null);
  const times = jobs.flatMap((job) => Object.values(clockOf.get(job))).filter(Boolean).map(at).sort((a, b) => a - b);
  const came = at(sent?.received_at) ?? at(sent?.dispatched_at), called = at(sent?.dispatched_at) ?? times[0] ?? null, goes = jobs.some((job) => job.status === "in_progress");
  const waits = ["waiting", "unknown"].includes(sent?.outcome), due = at(sent?.report_due_at), last = goes ? now : times.at(-1);
  return [came ? ["dispatch", came, !times.length && waits ? now : called ?? at(sent.at)] : null,
          called && !waits && (times.length || (due && row.level !== "L1")) ? ["queue", called, times[0] ?? Math.min(now, due)] : null,
          times.length ? ["run", times[0], last] : null].filter((one) => one && one[2] >= one[1]);
}

// A line for each backend, on one scale; the seconds stand in the table, too.
export function waterfall(data) {
  const byRepo = jobsByRepo(data.jobs), jobsOf = (row) => byRepo.get(row.repo.toLowerCase()) ?? [], clockOf = new Map(data.jobs.map((job, i) => [job, data.clocks[i]])), now = Date.now();
  const rows = data.downstreams.map((row) => ({ row, jobs: jobsOf(row), list: spans(row, jobsOf(row), clockOf, now) })).filter((one) => one.list.length);
  if (!rows.length) return null;
  const from = Math.min(...rows.map((one) => one.list[0][1])), all = Math.max(1, Math.max(...rows.map((one) => one.list.at(-1)[2])) - from);
  const bar = (list) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 1000 10");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    for (const [part, begin, end] of list) {
      const rect = document.createElementNS(svg.namespaceURI, "rect");
      for (const [name, value] of [["x", 1000 * (begin - from) / all], ["width", Math.max(3, 1000 * (end - begin) / all)], ["height", 10], ["class", part]]) rect.setAttribute(name, value);
      svg.append(rect);
    }
    return svg;
  };
  const columns = [{ name: "Backend" }, { name: "Time", look: "fill" }, ...PARTS.map(([, name, help]) => ({ name, look: "number", help })), { name: "State" }];
  const took = (list, part) => { const one = list.find(([name]) => name === part); return one ? seconds((one[2] - one[1]) / 1000) : "–"; };
  const how = ({ row, jobs }) => (jobs.length ? worst(jobs.filter((job) => !job.replaced).map(stateName)) : neverReported(row) ? "never_reported" : row.dispatch?.outcome);
  return table("Where its time went", [PARTS.map(([part, name]) => [el("span", "■ ", { class: `key ${part}`, "aria-hidden": "true" }), `${name} `]), ` over ${seconds(all / 1000)}`], columns,
    rows.sort((a, b) => rank(how(a)) - rank(how(b)) || b.list.at(-1)[2] - a.list.at(-1)[2]).slice(0, LINES_MAX).map((one) => ({
      key: one.row.repo.toLowerCase(), cells: [repoLink(one.row.repo), bar(one.list), ...PARTS.map(([part]) => took(one.list, part)), state(how(one))] })));
}

// ---- what it waits for --------------------------------------------------------------------------

const later = (at, wait) => (at ? new Date(Date.parse(at) + wait * 1000).toISOString() : null);

// Of a dispatch that is tried again by itself: crcrctl trace says the same.
function nextTry(row, sent) {
  return [repoLink(row.repo), ": the dispatch itself. ", sent.outcome === "unknown" ? "The answer of GitHub was not seen; it is tried again" : "It is sent later",
    sent.next_at ? [", ", Date.parse(sent.next_at) > Date.now() ? "" : "due since ", when(sent.next_at)] : "", sent.error ? [": ", said(sent.error)] : "."];
}

// A list of functions that make the elements of one thing that is waited for. jobs: of that backend.
function waitsOf(row, jobs, clockOf, data) {
  const limit = data.silent_after_seconds, sent = row.dispatch, check = row.check_run;
  const open = jobs.filter((job) => job.status === "in_progress").map((job) =>
    () => [repoLink(row.repo), ": the end of ", said(jobName(job)), ", at the latest ", when(later(clockOf.get(job).in_progress, limit)), "; then it is timed out."]);
  if (jobs.length) return open;
  if (sent && ["waiting", "unknown"].includes(sent.outcome)) open.push(() => nextTry(row, sent));
  else if (sent?.report_due_at && !neverReported(row))
    open.push(() => [repoLink(row.repo), ": its first report, at the latest ", when(sent.report_due_at),
      check && !check.of_other_delivery ? check.status === "absent" ? "; it has no check run yet." : "; then its check run is timed out." : "; it has no check run, so no time-out is reported."]);
  return open;
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
    all.length ? el("details", [el("summary", plural(all.length, "step")), list, andMore(all, "crcrctl trace shows them")], { open: all.length <= OPEN_MAX ? "" : null }) : el("p", "No step is known.", { class: "quiet" }),
    data.jobs.length ? ownTimes(data) : null,
  ]));
}
