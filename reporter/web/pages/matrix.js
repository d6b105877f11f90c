// The matrix of a back end's jobs, 50 rows a page; part of repo.js.
import { el, link, own, table } from "./dom.js";
import { count, jobKey, jobTitle, newestAttempts, NO_CONCLUSION, prLink, rank, said, seconds, state, stateName, tally, when } from "./values.js";

const ROWS = 50;

const isNightly = (job) => job.event_type === "nightly" || job.event_type === "periodic";
// A run that it starts itself claims its commit; where an older relay stored it, as its delivery.
const COMMIT = /^([0-9a-f]{40}|[0-9a-f]{64})$/i;
const commitOf = (job) => job.pytorch_head_sha || (isNightly(job) && COMMIT.test(job.delivery_id) ? job.delivery_id : null);
const worse = (a, b) => (!a || rank(stateName(b)) < rank(stateName(a)) ? b : a);

// ---- rows and pages -----------------------------------------------------------------------------

// When each run ended, or began, by the clock of its CI.
function runTimes(jobs) {
  const at = new Map();
  for (const job of jobs)
    at.set(job.run_id, Math.max(at.get(job.run_id) || 0, Date.parse(job.completed_at || job.started_at) || 0));
  return at;
}

// A row for each commit, of a pull request or of the nightly and periodic runs, the newest first; for
// each run where the commit is not known. Of several jobs of one name the worst is shown; of nightly
// and periodic ones only those of the newest run count. While there are older jobs the last row may
// lack some, and is left out.
function rowsOf(data) {
  const rows = new Map(), at = new Map(data.jobs.map((job, i) => [job, data.received_ms[i]])), ran = runTimes(data.jobs);
  for (const job of newestAttempts(data.jobs)) {
    const key = [isNightly(job), job.pr_number, commitOf(job)?.toLowerCase() || job.run_id].join(" ");
    if (!rows.has(key)) rows.set(key, { key, newest: job, at: at.get(job), jobs: new Map() });
    const { jobs } = rows.get(key), other = jobs.get(jobTitle(job));
    const later = isNightly(job) && other ? ran.get(job.run_id) - ran.get(other.run_id) : 0; // 0: of one run
    jobs.set(jobTitle(job), later > 0 ? job : later < 0 ? other : worse(other, job));
  }
  const all = [...rows.values()];
  return data.more_jobs && all.length > 1 ? all.slice(0, -1) : all;
}

// The rows of the page that begins behind ?before=, a time of the relay's clock in ms.
function pageOf(data, query) {
  const before = Number(query.get("before")) || Infinity, all = rowsOf(data);
  const begin = all.findIndex((row) => row.at < before), first = begin < 0 ? all.length : begin;
  return { all, first, rows: all.slice(first, first + ROWS) };
}

// Asks for older jobs until the page is full: the view keeps 1,000 of a back end.
export async function fill(data, get, query) {
  const seen = new Set(data.jobs.map(jobKey));
  while (data.more_jobs && pageOf(data, query).all.length <= pageOf(data, query).first + ROWS) {
    const older = await get(`/api/crcr/repos/${data.downstream.repo}?before=${data.before}`);
    if (!older) break;
    older.jobs.forEach((job, i) => {
      if (seen.has(jobKey(job))) return; // it has moved to the front meanwhile
      data.jobs.push(job);
      data.received_ms.push(older.received_ms[i]);
    });
    data.more_jobs = older.more_jobs;
    data.before = older.before;
  }
}

function pageLinks(data, query, { all, first, rows }) {
  const end = first + rows.length;
  const to = (name, before) => { // the same page otherwise, of as many days
    const address = new URLSearchParams(query);
    if (before) address.set("before", before);
    else address.delete("before");
    return own(name, `/repo/${data.downstream.repo}?${address}`);
  };
  const links = [first > 0 ? to("Newer", all[first - ROWS - 1]?.at) : null, rows.length && end < all.length ? to("Older", all[end - 1].at) : null];
  return links.some(Boolean) ? el("nav", links, { "aria-label": "pages of the matrix", class: "pages" }) : null;
}

// ---- cells --------------------------------------------------------------------------------------

function cell(job) {
  if (!job) return el("span", "–", { class: "quiet" });
  const title = [`ran ${seconds(job.execution_time)}`, job.no_conclusion ? NO_CONCLUSION : "", job.failed_tests ? `${count(job.failed_tests)} tests failed` : ""]
    .filter(Boolean).join(", ");
  return job.workflow_run_url ? link(state(stateName(job)), job.workflow_run_url, { title })
                              : own(state(stateName(job)), `/delivery/${job.delivery_id}`, { title });
}

export const COLUMNS = [
  { name: "Commit" },
  { name: "When", look: "when", help: "When its newest job ended or began, by the clock of its CI." },
];

// "test (gpu, 1)" and "test (gpu, 2)" stand under one heading.
function columnsOf(names) {
  const groupOf = (name) => (name.endsWith(")") && name.indexOf(" (") > 0 ? name.slice(0, name.indexOf(" (")) : null);
  const groups = names.map(groupOf);
  return names.map((name, i) => (groups[i] !== null && groups.filter((one) => one === groups[i]).length > 1
    ? { name, group: groups[i], short: name.slice(groups[i].length + 2, -1) } : { name }));
}

function matrix(name, rows) {
  if (!rows.length) return null;
  const names = [...new Set(rows.flatMap((row) => [...row.jobs.keys()]))].sort();
  const caption = [`${name}, ${rows.length} commits or runs: `, ...tally(rows.flatMap((row) => [...row.jobs.values()].map(stateName)))];
  return table(name, caption, [{ name: "For" }, ...COLUMNS, ...columnsOf(names)], rows.map((row) => ({
    key: row.key, cells: [
      row.newest.pr_number ? prLink(row.newest.pr_number) : own(said(row.newest.event_type || "run"), `/delivery/${row.newest.delivery_id}`),
      el("code", (commitOf(row.newest) || "–").slice(0, 10), { title: commitOf(row.newest) }),
      when(row.newest.completed_at || row.newest.started_at), ...names.map((one) => cell(row.jobs.get(one)))] })));
}

// Two tables and the links to other pages; each may be null.
export function matrices(data, query) {
  const page = pageOf(data, query);
  return [
    matrix("Pull requests and pushes", page.rows.filter((row) => !isNightly(row.newest))),
    matrix("Nightly and periodic", page.rows.filter((row) => isNightly(row.newest))),
    pageLinks(data, query, page)];
}
