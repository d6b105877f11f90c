// The HUD page: fetches the JSON of this server and shows it. Everything from outside goes through
// textContent or a checked http(s) link; nothing is ever parsed as HTML.
"use strict";

const main = document.getElementById("main");
const fresh = document.getElementById("fresh");
const REFRESH_MS = 5000;

// ---- making elements ----------------------------------------------------------------------------
function el(tag, content, attributes) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  for (const part of [content].flat())
    if (part !== null && part !== undefined) node.append(part);
  return node;
}

function link(text, url) {
  if (!/^(https?:\/\/|#\/)/.test(url || "")) return document.createTextNode(text);
  return url.startsWith("#") ? el("a", text, { href: url })
                             : el("a", text, { href: url, rel: "noopener noreferrer" });
}

function cellOf(column, content, isFirst, rows) {
  const attributes = column.look ? { class: column.look } : {};
  if (rows > 1) attributes.rowspan = rows;
  if (isFirst) attributes.scope = rows > 1 ? "rowgroup" : "row";
  return el(isFirst ? "th" : "td", content, attributes);
}

const nameOf = (caption) => [caption].flat().map((part) => part.textContent || part).join("");

// groups: [{ cells, rows }]: cells stand once at the left of all rows; each has a body of its own.
function groupedTable(caption, columns, groups) {
  const head = el("tr", columns.map((c) =>
    el("th", c.name, c.look ? { scope: "col", class: c.look } : { scope: "col" })));
  const bodies = groups.map(({ cells, rows }) => el("tbody", rows.map((row, r) => el("tr", [
    ...(r > 0 ? [] : cells.map((cell, i) => cellOf(columns[i], cell, i === 0, rows.length))),
    ...row.map((cell, i) => cellOf(columns[cells.length + i], cell, cells.length + i === 0, 1))]))));
  return el("div", el("table", [el("caption", caption), el("thead", head), ...bodies]),
            { class: "scroll", tabindex: "0", role: "region", "aria-label": nameOf(caption) });
}

const table = (caption, columns, rows) => groupedTable(caption, columns, [{ cells: [], rows }]);

// ---- values -------------------------------------------------------------------------------------
const MARKS = {
  failure: ["bad", "✗"], timed_out: ["bad", "✗"], cancelled: ["warn", "!"],
  action_required: ["warn", "!"], in_progress: ["busy", "●"], success: ["good", "✓"],
  neutral: ["quiet", "–"], skipped: ["quiet", "–"], stale: ["quiet", "–"],
  dispatched: ["plain", "✓"], unknown: ["warn", "?"], waiting: ["busy", "…"], failed: ["bad", "✗"],
};

function state(name) {
  if (!name) return el("span", "–", { class: "quiet" });
  const [look, mark] = MARKS[name] || ["quiet", "–"];
  return el("span", [el("span", mark + " ", { "aria-hidden": "true" }), name.replaceAll("_", " ")],
            { class: `state ${look}` });
}

const stateName = (job) => (job.status === "completed" ? job.conclusion || "neutral" : job.status);
const jobState = (job) => state(stateName(job));
const count = (n) => (n === null || n === undefined ? "–" : n.toLocaleString("en"));

// "2 failure, 1 in progress, 5 success": the worst first, in the order of MARKS.
function tally(jobs) {
  const names = jobs.map(stateName);
  return Object.keys(MARKS).filter((name) => names.includes(name)).flatMap((name, i) => [
    i ? ", " : "", `${names.filter((one) => one === name).length} `, state(name)]);
}
const tier = (level) => el("span", level || "–", { class: "tier" });
const percent = (rate) => (rate === null ? "–" : `${(rate * 100).toFixed(rate === 1 ? 0 : 1)} %`);

function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 60) return `${value.toFixed(1)} s`;
  const whole = Math.round(value);
  const hours = Math.floor(whole / 3600), minutes = Math.floor((whole % 3600) / 60);
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

function age(at) {
  const ago = (Date.now() - at.getTime()) / 1000;
  return ago < 60 ? "just now" : ago < 3600 ? `${Math.floor(ago / 60)} min ago`
    : ago < 172800 ? `${Math.floor(ago / 3600)} h ago` : `${Math.floor(ago / 86400)} days ago`;
}

// "7 min ago 2026-11-21 05:18Z": the age is kept true by ages().
function when(text) {
  const at = new Date(text || NaN);
  if (Number.isNaN(at.getTime())) return "–";
  const iso = at.toISOString();
  return el("time", [el("span", age(at), { class: "age" }), " ",
                     el("small", `${iso.slice(0, 10)} ${iso.slice(11, 16)}Z`, { class: "quiet" })],
            { datetime: iso, title: iso });
}

function ages() {
  for (const node of document.querySelectorAll("time"))
    node.querySelector(".age").textContent = age(new Date(node.dateTime));
}

const demoted = (repo) => (repo.demoted ? el("span", "demoted", { class: "bad", title: repo.demoted.reason }) : null);

function repoLink(repo) {
  const slash = repo.indexOf("/") + 1;
  return el("a", [repo.slice(0, slash), el("wbr"), repo.slice(slash)], { href: `#/repo/${repo}` });
}


const prLink = (pr) => (pr ? link(`#${pr}`, `#/pr/${pr}`) : "–");
const deliveryLink = (id) => el("code", link((id || "–").slice(0, 8), `#/delivery/${id}`), { title: id });
const shaLink = (upstream, sha) =>
  el("code", sha ? link(sha.slice(0, 10), `https://github.com/${upstream}/commit/${sha}`) : "–");

function links(job) {
  const out = [];
  if (job.workflow_run_url) out.push(link("log", job.workflow_run_url));
  if (job.artifact_url) out.push(out.length ? " · " : null, link("artifacts", job.artifact_url));
  return out.length ? out : "–";
}

// ---- views --------------------------------------------------------------------------------------
function showSummary(data) {
  const rows = data.repos.map((repo) => [
    repoLink(repo.repo), [tier(repo.level), " ", demoted(repo)], repo.device || "–",
    repo.last ? jobState(repo.last) : el("span", "nothing yet", { class: "quiet" }),
    repo.last ? when(repo.last.completed_at || repo.last.started_at) : "–",
    repo.last ? prLink(repo.last.pr_number) : "–",
    percent(repo.pass_rate), count(repo.completed), seconds(repo.queue_time_mean),
  ]);
  const list = data.allowlist;
  return [
    el("h1", `Downstream CI of ${data.upstream_repo}`),
    el("p", list.sha ? ["Allowlist ", el("code", list.sha.slice(0, 10)), ", fetched ",
                        when(list.fetched_at)]
                     : "No allowlist has been published yet.", { class: "quiet" }),
    ...(list.error ? [el("p", `The newest allowlist is not in force: ${list.error}`,
                         { class: "error", role: "alert" })] : []),
    rows.length ? table(["Last results: ", ...tally(data.repos.map((repo) => repo.last).filter(Boolean))], [
      { name: "Repository" }, { name: "Tier" }, { name: "Device" }, { name: "Last result" },
      { name: "When", look: "when" }, { name: "Pull request" }, { name: "Pass rate", look: "number" },
      { name: "Finished jobs", look: "number" }, { name: "Mean queue", look: "number" }], rows)
      : el("p", "No downstream is listed, and none has reported."),
  ];
}

const JOB_COLUMNS = [
  { name: "Job", look: "name" }, { name: "State" }, { name: "Failed", look: "number" },
  { name: "Passed", look: "number" }, { name: "Skipped", look: "number" },
  { name: "Queue", look: "number" }, { name: "Ran", look: "number" }, { name: "When", look: "when" },
  { name: "Links", look: "links" }];

function jobName(job) {
  const attempt = job.run_attempt && String(job.run_attempt) !== "1" ? ` (attempt ${job.run_attempt})` : "";
  return job.job_name === job.workflow_name ? job.job_name + attempt
                                            : `${job.workflow_name} / ${job.job_name}${attempt}`;
}

const failed = (n) => (n > 0 ? el("strong", count(n), { class: "bad" }) : count(n));
const jobCells = (job) => [jobState(job), failed(job.failed_tests), count(job.passed_tests),
                           count(job.skipped_tests), seconds(job.queue_time),
                           seconds(job.execution_time), when(job.completed_at || job.started_at),
                           links(job)];

function showRepo(data) {
  const repo = data.downstream;
  return [
    el("h1", [repo.repo, " ", tier(repo.level)]),
    repo.demoted ? el("p", [demoted(repo), " since ", when(repo.demoted.since), `: no new check runs until it recovers. ${repo.demoted.reason}`])
                 : null,
    el("p", [`Pass rate ${percent(repo.pass_rate)} over ${repo.completed} finished jobs, mean queue `,
             seconds(repo.queue_time_mean),
             repo.oncalls.length ? `, on call: ${repo.oncalls.join(", ")}` : ""], { class: "quiet" }),
    data.jobs.length ? table(["Newest jobs: ", ...tally(data.jobs)],
      [JOB_COLUMNS[0], { name: "Pull request" }, { name: "Delivery" }, ...JOB_COLUMNS.slice(1)],
      data.jobs.map((job) => [jobName(job), prLink(job.pr_number), deliveryLink(job.delivery_id),
        ...jobCells(job)]))
      : el("p", "No job has reported yet."),
  ];
}

function dispatchCell(dispatch) {
  if (!dispatch) return "–";
  const note = dispatch.error ? [el("br"), el("small", dispatch.error)]
    : dispatch.maybe_duplicate ? [el("br"), el("small", `may have been sent twice: ${dispatch.maybe_duplicate}`)] : [];
  return [state(dispatch.outcome), ...note];
}

function deliveryTable(delivery) {
  const none = (level) =>
    el("span", level === "L1" ? "L1 reports nothing" : "no job yet", { class: "quiet" });
  const groups = delivery.downstreams.map((row) => {
    const jobs = delivery.jobs.filter((job) =>
      job.downstream_repo.toLowerCase() === row.repo.toLowerCase());
    return { cells: [repoLink(row.repo), tier(row.level), dispatchCell(row.dispatch)],
             rows: jobs.length ? jobs.map((job) => [jobName(job), ...jobCells(job)])
                               : [[none(row.level), ...JOB_COLUMNS.slice(1).map(() => "–")]] };
  });
  return groups.length
    ? groupedTable(delivery.jobs.length ? ["Jobs: ", ...tally(delivery.jobs)] : "No job has reported yet",
                   [{ name: "Repository" }, { name: "Tier" }, { name: "Dispatch", look: "dispatch" },
                    ...JOB_COLUMNS], groups)
    : el("p", "Nothing has been dispatched for this delivery.");
}

const startOf = (delivery) =>
  (delivery.downstreams.find((row) => row.dispatch) || { dispatch: {} }).dispatch.at;

function showPr(data) {
  const number = data.pr_number, upstream = data.upstream_repo;
  return [
    el("h1", ["Pull request ", link(`${upstream}#${number}`, `https://github.com/${upstream}/pull/${number}`)]),
    data.labels.length ? el("ul", data.labels.map((label) => el("li", label)),
                            { class: "chips", "aria-label": "ciflow labels" }) : null,
    ...data.deliveries.flatMap((delivery) => [
      el("h2", [delivery.event_type || "event", " of ", shaLink(upstream, delivery.head_sha),
                ", delivery ", deliveryLink(delivery.delivery_id), ", ", when(startOf(delivery))]),
      deliveryTable(delivery)]),
  ];
}

// A nightly or periodic run names the commit itself: the relay looks whether the upstream has it.
function selfReported(data) {
  if (data.event_type !== "nightly" && data.event_type !== "periodic") return [];
  const said = data.commit_exists === null ? "not looked up yet whether the upstream has this commit"
    : data.commit_exists ? "the upstream has this commit" : el("span", "the upstream has no such commit", { class: "bad" });
  return [", ", said];
}

function showDelivery(data) {
  return [el("h1", ["Delivery ", el("code", data.delivery_id)]),
          el("p", [data.event_type || "event", ", pull request ", prLink(data.pr_number), ", commit ",
                   el("code", (data.head_sha || "–").slice(0, 10)), ", ", when(startOf(data)), ...selfReported(data)],
             { class: "quiet" }),
          deliveryTable(data)];
}

// ---- which view, and when -----------------------------------------------------------------------
const VIEWS = [
  [/^#\/repo\/([^/]+\/[^/]+)$/, (m) => `/api/crcr/repos/${m[1]}`, showRepo],
  [/^#\/pr\/(\d+)$/, (m) => `/api/crcr/prs/${m[1]}`, showPr],
  [/^#\/delivery\/([A-Za-z0-9-]+)$/, (m) => `/api/crcr/deliveries/${m[1]}`, showDelivery],
  [/^(#\/?)?$/, () => "/api/crcr/summary", showSummary],
];

let shown = null;    // the hash that is on the page
let last = "";       // and the JSON it was made from, but for when that was made
let asked = null;    // the hash whose answer is awaited

function problem(text) {
  main.replaceChildren(el("h1", "Nothing to show"), el("p", text, { class: "error", role: "alert" }));
  last = "";
}

async function refresh() {
  const hash = location.hash;
  if (asked === hash) return;
  const found = VIEWS.map(([pattern, api, show]) => [hash.match(pattern), api, show]).find(([m]) => m);
  if (!found) return problem("There is no such page.");
  const [match, api, show] = found;
  const url = api(match);
  document.getElementById("raw").href = url;
  asked = hash;
  try {
    const answer = await fetch(url, { headers: { Accept: "application/json" } });
    const text = await answer.text();
    if (hash !== location.hash) return;
    fresh.textContent = `As of ${new Date().toLocaleTimeString()}.`;
    const data = JSON.parse(text);
    if (!answer.ok) return problem(`${answer.status}: ${data.detail}`);
    const same = JSON.stringify({ ...data, generated_at: null });
    ages();
    if (hash === shown && same === last) return;
    const moved = hash !== shown, scroll = window.scrollY;
    main.replaceChildren(...show(data).filter((part) => part !== null));
    document.title = `${main.querySelector("h1").textContent} – Cross-repository CI`;
    if (moved && shown !== null) main.focus();
    else window.scrollTo(0, scroll);
    shown = hash;
    last = same;
  } catch (error) {
    fresh.textContent = `No answer from the server (${error.message}); trying again.`;
  } finally {
    if (asked === hash) asked = null;
  }
}

document.getElementById("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const typed = document.getElementById("what").value.trim();
  const what = (/\/pull\/(\d+)/.exec(typed) || [null, typed.replace(/^#/, "")])[1];
  location.hash = what === "" ? "#/" : /^\d+$/.test(what) ? `#/pr/${what}`
    : what.includes("/") ? `#/repo/${what}` : `#/delivery/${what}`;
});
window.addEventListener("hashchange", refresh);
setInterval(() => {
  if (document.getElementById("auto").checked && !document.hidden) refresh();
}, REFRESH_MS);
refresh();
