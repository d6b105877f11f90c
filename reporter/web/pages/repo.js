// "/repo/<owner>/<name>": the newest jobs of one back end, a row a commit, a column a job.
import { el, glossary, link, own, places, table } from "./dom.js";
import { level } from "./level.js";
import { count, demoted, jobName, newestAttempts, passRate, prLink, rank, said, seconds, stateName, state, tally, tier,
         when } from "./values.js";

const ROWS = 50;

export const api = (match) => `/api/crcr/repos/${match[1]}`;

export async function more(data, get) {
  data.level = await get(`/api/crcr/repos/${data.downstream.repo}/level`);
}

const isNightly = (job) => job.event_type === "nightly" || job.event_type === "periodic";
const columnOf = (job) => jobName({ ...job, run_attempt: 1 });
const worse = (a, b) => (!a || rank(stateName(b)) < rank(stateName(a)) ? b : a);

function cell(job) {
  if (!job) return el("span", "–", { class: "quiet" });
  const title = [`ran ${seconds(job.execution_time)}`, job.failed_tests ? `${count(job.failed_tests)} tests failed` : ""]
    .filter(Boolean).join(", ");
  return job.workflow_run_url ? link(state(stateName(job)), job.workflow_run_url, { title })
                              : own(state(stateName(job)), `/delivery/${job.delivery_id}`, { title });
}

// A row for each commit of a pull request, and for each run of a nightly. Of several jobs of one
// name the worst is shown. jobs: newest first, more: there are older ones, so that the last row may
// lack some.
function rowsOf(jobs, more) {
  const rows = new Map();
  for (const job of newestAttempts(jobs)) {
    const key = [job.pr_number, job.pytorch_head_sha, job.pr_number ? "" : job.run_id].join(" ");
    if (!rows.has(key)) rows.set(key, { key, newest: job, jobs: new Map() });
    const row = rows.get(key);
    row.jobs.set(columnOf(job), worse(row.jobs.get(columnOf(job)), job));
  }
  const all = [...rows.values()];
  return all.slice(0, Math.min(ROWS, more && all.length > 1 ? all.length - 1 : all.length));
}

const COLUMNS = [
  { name: "Commit" },
  { name: "When", look: "when", help: "When its newest job ended or began, by the clock of its CI." },
];

function matrix(name, jobs, more) {
  const rows = rowsOf(jobs, more);
  const names = [...new Set(rows.flatMap((row) => [...row.jobs.keys()]))].sort();
  const caption = [`${name}, newest ${rows.length} commits or runs: `, ...tally(rows.flatMap((row) => [...row.jobs.values()].map(stateName)))];
  return table(name, caption, [{ name: "For" }, ...COLUMNS, ...names.map((one) => ({ name: one }))], rows.map((row) => ({
    key: row.key, cells: [
      row.newest.pr_number ? prLink(row.newest.pr_number) : own(said(row.newest.event_type || "run"), `/delivery/${row.newest.delivery_id}`),
      el("code", (row.newest.pytorch_head_sha || "–").slice(0, 10), { title: row.newest.pytorch_head_sha }),
      when(row.newest.completed_at || row.newest.started_at), ...names.map((one) => cell(row.jobs.get(one)))] })));
}

const NUMBERS = [
  { name: "Pass rate", help: "Successful of the finished jobs of pull requests and pushes among the newest 100 jobs; nightly: the same of the runs that it starts itself." },
  { name: "Mean queue", help: "From the dispatch to the first report, by the relay's clock; first attempts only." },
];

export function show(data) {
  const repo = data.downstream;
  const dispatched = data.jobs.filter((job) => !isNightly(job)), nightly = data.jobs.filter(isNightly);
  return places([
    el("h1", [repo.repo, " ", tier(repo.level), " ", demoted(repo.demoted?.reason)]),
    repo.demoted ? el("p", ["Demoted ", when(repo.demoted.since), ": no new check runs until it recovers. ", said(repo.demoted.reason)]) : null,
    el("p", ["Pass rate ", passRate(repo), ", nightly ", passRate(repo.nightly), ", mean queue ", seconds(repo.queue_time_mean),
             repo.oncalls.length ? `, on call: ${repo.oncalls.join(", ")}` : ""], { class: "quiet" }),
    dispatched.length ? matrix("Pull requests and pushes", dispatched, data.more_jobs) : null,
    nightly.length ? matrix("Nightly and periodic", nightly, data.more_jobs) : null,
    level(data.level),
    data.jobs.length ? glossary([...NUMBERS, ...COLUMNS])
      : el("p", ["No job has reported yet. deploy/downstream says how a back end reports; ", el("code", "crcrctl probe"), " tries it."]),
  ]);
}
