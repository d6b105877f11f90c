// "/repo/<owner>/<name>/since": since when each job fails on the upstream's main, and what came in
// between; also the table of flaky jobs, which repo.js shows.
import { el, glossary, link, own, slots, table, tip } from "./dom.js";
import { count, jobTitle, plural, prLink, repoLink, said, shaLink, when } from "./values.js";

export const api = (match) => `/api/crcr/repos/${match[1]}/since`;

const FEW = 5; // pull requests that are shown at once

const COLUMNS = [
  { name: "Job", help: "A job that failed on the newest commit of main that it ran on. Nightly runs are jobs of their own. Cancelled and skipped jobs say nothing; one whose re-run passed is flaky and does not fail." },
  { name: "Newest commits", look: "title", help: "A mark for each of the newest 20 commits that it ran on, the oldest first: ✓ success, ✗ failure, ≈ both. The first red one has a frame." },
  { name: "First red commit", help: "The oldest commit of an unbroken run of failures, up to now. Commits on which the job did not run lie between." },
  { name: "Last green commit", help: "The newest commit before that on which the job succeeded." },
  { name: "What came in between", look: "title", help: "The commits after the last green one, up to and with the first red one: one of them broke the job, or the CI environment did." },
];

const flag = (text, title) => el("span", [el("span", "! ", { "aria-hidden": "true" }), tip(text, title)], { class: "state warn" });
const keyOf = (job) => `${job.event_type}\n${job.workflow_name}\n${job.job_name}`;
const result = (text, job) => (!job ? null : job.workflow_run_url ? [" ", link(text, job.workflow_run_url)]
  : [" ", own(text, `/delivery/${job.delivery_id}`)]);

function commit(upstream, one, text, job) {
  if (!one) return el("span", "none is known", { class: "quiet" });
  return [shaLink(upstream, one.sha), one.pr_number ? [" ", prLink(one.pr_number)] : "", " ", when(one.at), result(text, job),
    one.order_known ? "" : [" ", flag("order not known", "The relay has seen no push of this commit to main: it is older than the list, or of another branch. The time is that of its first report.")],
    one.title ? el("small", said(one.title), { class: "quiet about" }) : null];
}

const RESULTS = { success: ["good", "✓"], failure: ["bad", "✗"], flaky: ["warn", "≈"] };

// One mark a commit, and below it how long it has failed.
function strip(row) {
  const marks = row.strip.map((one) => {
    const first = one.sha === row.first_red.sha, [look, sign] = RESULTS[one.result];
    const words = `${one.sha.slice(0, 10)}: ${one.result}${first ? ", the first red commit" : ""}`;
    return own(sign, `/delivery/${one.delivery_id}`, { title: words, "aria-label": words, class: `mark ${look}${first ? " first" : ""}` });
  });
  const older = row.strip.every((one) => one.sha !== row.first_red.sha);
  return [el("span", marks, { class: "marks" }), el("small", `Failed on ${plural(row.failing_commits, "commit")} in a row${older ? ", the first is older than these" : ""}.`, { class: "quiet about" })];
}

// What GitHub says of all between the two, also where the relay does not know their order.
const compare = (upstream, { first_red: bad, last_green: good }) =>
  (bad.sha === good.sha ? null : el("div", link("Compare on GitHub", `https://github.com/${upstream}/compare/${good.sha}...${bad.sha}`)));

const pull = (upstream, one) => el("li", [one.pr_number ? prLink(one.pr_number) : shaLink(upstream, one.sha), " ", said(one.title || "")],
  { key: one.sha });

function between(upstream, row) {
  if (!row.last_green) return el("span", "No successful run is known.", { class: "quiet" });
  if (row.n_commits === null) return [el("span", "The order is not known.", { class: "quiet" }), compare(upstream, row)];
  if (!row.n_commits) return el("span", "Nothing: the same commit has both results.", { class: "quiet" });
  const list = el("ul", row.commits.map((one) => pull(upstream, one)), { class: "plain-list" });
  const left = row.n_commits - row.commits.length;
  return [compare(upstream, row), row.n_commits > FEW ? el("details", [el("summary", `${count(row.n_commits)} commits`), list]) : list,
          left > 0 ? el("small", `And ${count(left)} more.`, { class: "quiet" }) : null,
          row.push_missing ? flag("a push is missing", "Between two of these commits there was a push that the relay has not seen: there may be more.") : null];
}

function rowOf(upstream, row) {
  const job = row.first_red.failure;
  const notes = [job.event_type === "push" ? "" : el("small", ` ${job.event_type}`, { class: "quiet" }),
    row.flaky ? [" ", flag("flaky", "One commit has both results: the newest, or the last green one.")] : "",
    row.not_run_commits ? el("small", `Not run on the newest ${row.not_run_commits > 1 ? `${count(row.not_run_commits)} commits` : "commit"}.`, { class: "quiet about" }) : ""];
  return { key: keyOf(job), cells: [
    [said(jobTitle(job)), ...notes], strip(row), commit(upstream, row.first_red, "failure", job),
    commit(upstream, row.last_green, "success", row.last_green?.success), between(upstream, row)] };
}

const FLAKY = [
  { name: "Job", help: "A job that both succeeded and failed on the same commit, in several attempts or runs, among the newest 1,000 jobs." },
  { name: "Flaky on", look: "number", help: "On how many commits it has both results, and on how many it has any." },
  { name: "Newest example" },
];

export function flakyTable(data) {
  const rows = data.flaky.map((row) => ({ key: keyOf(row.failure), cells: [
    said(jobTitle(row.failure)), `${count(row.flaky_commits)} of ${count(row.commits)}`, [result("failure", row.failure), result("success", row.success)]] }));
  return rows.length ? table("Flaky jobs", `Flaky jobs, of the newest ${count(data.jobs_seen)} jobs`, FLAKY, rows) : null;
}
export const flakyGlossary = FLAKY.slice(1, 2);

export function show(data) {
  const upstream = data.upstream_repo;
  return slots([
    el("h1", ["Since when does ", repoLink(data.repo), " fail?"]),
    el("p", ["Jobs of pushes to main and of nightly runs, from the newest ", count(data.jobs_seen), " jobs. The order of main is known of ",
             count(data.main_commits), " commits", data.main_from ? [", since ", when(data.main_from)] : "", "."], { class: "quiet" }),
    data.failing.length ? table("Failing jobs", `${plural(data.failing.length, "job fails", "jobs fail")} on main`, COLUMNS, data.failing.map((row) => rowOf(upstream, row)))
      : el("p", data.jobs_seen ? "No job fails on the newest commit of main that it ran on." : "No job has reported yet."),
    data.failing.length ? glossary(COLUMNS) : null,
  ]);
}
