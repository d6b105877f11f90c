// The matrix of a backend's jobs, 50 rows a page; part of repo.js.
import { el, outside, own, tip } from "./dom.js";
import { count, DAY, isBad, jobKey, jobTitle, newestAttempts, NO_CONCLUSION, rank, said, seconds, stateMark, stateName, tally, when } from "./values.js";

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

// Asks for older jobs until the page is full: the view keeps 1,000 of a backend.
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

// The same page otherwise.
function to(name, query, change) {
  const address = new URLSearchParams(query);
  for (const [key, value] of Object.entries(change))
    if (value) address.set(key, value);
    else address.delete(key);
  return own(name, `${location.pathname}?${address}`);
}

function pageLinks(query, { all, first, rows }) {
  const end = first + rows.length;
  const links = [first > 0 ? to("Newer", query, { before: all[first - ROWS - 1]?.at }) : null,
                 rows.length && end < all.length ? to("Older", query, { before: all[end - 1].at }) : null];
  return links.some(Boolean) ? el("nav", links, { "aria-label": "pages of the matrix", class: "pages" }) : null;
}

// ---- cells --------------------------------------------------------------------------------------

function cell(name, job) {
  if (!job) return el("td", null);
  const how = stateName(job), { look, mark } = stateMark(how);
  const words = [`${name}: ${how.replaceAll("_", " ")}`, `ran ${seconds(job.execution_time)}`, job.no_conclusion ? NO_CONCLUSION : "",
                 job.failed_tests ? `${count(job.failed_tests)} tests failed` : ""].filter(Boolean).join(", ");
  return el("td", el("a", mark, { ...(outside(job.workflow_run_url) || { href: `/delivery/${job.delivery_id}` }), class: look, title: words, "aria-label": words }));
}

const timeOf = (row) => row.newest.completed_at || row.newest.started_at;

function commitHead(row, pulls) {
  const { newest } = row, pull = pulls.get(newest.pr_number), sha = commitOf(newest);
  return el("th", [
    el("div", newest.pr_number ? [own(`#${newest.pr_number}`, `/pr/${newest.pr_number}`), " ", said(pull?.title || "")]
      : own(said(newest.event_type || "run"), `/delivery/${newest.delivery_id}`)),
    el("small", [el("code", (sha || "–").slice(0, 10)), " ", pull?.author ? [said(pull.author), " "] : "", when(timeOf(row))], { class: "quiet" }),
  ], { scope: "row" });
}

// Rows of one day stand under its name.
function body(rows, names, pulls) {
  let day = null;
  return rows.flatMap((row) => {
    const at = new Date(timeOf(row) || NaN), today = Number.isNaN(at.getTime()) ? "No time" : DAY.format(at), line = [];
    if (today !== day) line.push(el("tr", el("th", today, { colspan: names.length + 1, scope: "rowgroup", class: "day" }), { key: today }));
    day = today;
    return [...line, el("tr", [commitHead(row, pulls), ...names.map((name) => cell(name, row.jobs.get(name)))], { key: row.key })];
  });
}

function matrix(name, given, pulls, query) {
  if (!given.length) return null;
  const failingOnly = query.get("only") === "failing", bad = (row) => [...row.jobs].filter(([, job]) => isBad(stateName(job))).map(([job]) => job);
  const rows = failingOnly ? given.filter((row) => bad(row).length) : given;
  const names = [...new Set(rows.flatMap((row) => (failingOnly ? bad(row) : [...row.jobs.keys()])))].sort();
  const caption = [`${name}: ${count(given.length)} ${given.length === 1 ? "commit or run" : "commits or runs"}, jobs `,
                   ...tally(given.flatMap((row) => [...row.jobs.values()].map(stateName))), ". ",
                   failingOnly ? to("Show all", query, { only: null }) : to("Failing only", query, { only: "failing" })];
  return el("section", [el("p", caption, { class: "quiet" }), el("div", el("table", [
    el("thead", el("tr", [el("th", "Commit", { scope: "col" }), ...names.map((one) => el("th", tip(one, one), { scope: "col" }))])),
    el("tbody", body(rows, names, pulls))]), { class: "scroll matrix", tabindex: "0", role: "region", "aria-label": `${name}, commits by jobs` })],
    { "aria-label": name });
}

// Two tables and the links to other pages; each may be null.
export function matrices(data, query) {
  const page = pageOf(data, query), pulls = new Map(data.pulls.map((pull) => [pull.pr_number, pull]));
  return [
    matrix("Pull requests and pushes", page.rows.filter((row) => !isNightly(row.newest)), pulls, query),
    matrix("Nightly and periodic", page.rows.filter((row) => isNightly(row.newest)), pulls, query),
    pageLinks(query, page)];
}
