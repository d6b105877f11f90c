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

function table(caption, columns, rows) {
  const head = el("tr", columns.map((c) =>
    el("th", c.name, c.number ? { scope: "col", class: "number" } : { scope: "col" })));
  const body = rows.map((row) => el("tr", row.map((cell, i) =>
    i === 0 ? el("th", cell, { scope: "row" })
            : el("td", cell, columns[i].number ? { class: "number" } : {}))));
  return el("div", el("table", [el("caption", caption), el("thead", head), el("tbody", body)]),
            { class: "scroll", tabindex: "0", role: "region", "aria-label": caption });
}

// ---- values -------------------------------------------------------------------------------------
const MARKS = {
  success: ["good", "✓"], failure: ["bad", "✗"], timed_out: ["bad", "⧖"], cancelled: ["warn", "⊘"],
  action_required: ["warn", "!"], neutral: ["quiet", "–"], skipped: ["quiet", "–"],
  stale: ["quiet", "–"], in_progress: ["busy", "●"], dispatched: ["busy", "➝"],
  unknown: ["warn", "?"], waiting: ["busy", "…"], failed: ["bad", "✗"],
};

function state(name) {
  if (!name) return el("span", "–", { class: "quiet" });
  const [look, mark] = MARKS[name] || ["quiet", "–"];
  return el("span", [el("span", mark + " ", { "aria-hidden": "true" }), name.replaceAll("_", " ")],
            { class: `state ${look}` });
}

const jobState = (job) => state(job.status === "completed" ? job.conclusion || "neutral" : job.status);
const tier = (level) => el("span", level || "–", { class: "tier" });
const percent = (rate) => (rate === null ? "–" : `${(rate * 100).toFixed(rate === 1 ? 0 : 1)} %`);

function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 60) return `${value.toFixed(1)} s`;
  const whole = Math.round(value);
  const hours = Math.floor(whole / 3600), minutes = Math.floor((whole % 3600) / 60);
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

function when(text) {
  const at = new Date(text || NaN);
  if (Number.isNaN(at.getTime())) return "–";
  const ago = (Date.now() - at.getTime()) / 1000;
  const near = ago < 60 ? "just now" : ago < 3600 ? `${Math.floor(ago / 60)} min ago`
    : ago < 86400 ? `${Math.floor(ago / 3600)} h ago` : at.toISOString().slice(0, 10);
  return el("time", near, { datetime: at.toISOString(), title: at.toISOString() });
}

const repoLink = (repo) => link(repo, `#/repo/${repo}`);
const prLink = (pr) => (pr ? link(`#${pr}`, `#/pr/${pr}`) : "–");
const deliveryLink = (id) => el("code", link(id || "–", `#/delivery/${id}`));
const shaLink = (upstream, sha) =>
  el("code", sha ? link(sha.slice(0, 10), `https://github.com/${upstream}/commit/${sha}`) : "–");

function tests(job) {
  const parts = [["failed_tests", "failed"], ["passed_tests", "passed"], ["skipped_tests", "skipped"]]
    .filter(([name]) => job[name]).map(([name, word]) => `${job[name]} ${word}`);
  return parts.join(", ") || "–";
}

function links(job) {
  const out = [];
  if (job.workflow_run_url) out.push(link("log", job.workflow_run_url));
  if (job.artifact_url) out.push(out.length ? " · " : null, link("artifacts", job.artifact_url));
  return out.length ? out : "–";
}

// ---- views --------------------------------------------------------------------------------------
function showSummary(data) {
  const rows = data.repos.map((repo) => [
    repoLink(repo.repo), tier(repo.level), repo.device || "–",
    repo.last ? jobState(repo.last) : el("span", "nothing yet", { class: "quiet" }),
    repo.last ? when(repo.last.completed_at || repo.last.started_at) : "–",
    repo.last ? prLink(repo.last.pr_number) : "–",
    percent(repo.pass_rate), String(repo.completed), seconds(repo.queue_time_mean),
  ]);
  const list = data.allowlist;
  return [
    el("h1", `Downstream CI of ${data.upstream_repo}`),
    el("p", list.sha ? ["Allowlist ", el("code", list.sha.slice(0, 10)), ", fetched ",
                        when(list.fetched_at)]
                     : "No allowlist has been published yet.", { class: "quiet" }),
    rows.length ? table("Downstreams, last active first", [
      { name: "Repository" }, { name: "Tier" }, { name: "Device" }, { name: "Last result" },
      { name: "When" }, { name: "Pull request" }, { name: "Pass rate", number: true },
      { name: "Jobs", number: true }, { name: "Mean queue", number: true }], rows)
      : el("p", "No downstream is listed, and none has reported."),
  ];
}

const JOB_COLUMNS = [
  { name: "Job" }, { name: "State" }, { name: "Tests" }, { name: "Queue", number: true },
  { name: "Ran", number: true }, { name: "Links" }];

function jobName(job) {
  const attempt = job.run_attempt && job.run_attempt !== "1" ? ` (attempt ${job.run_attempt})` : "";
  return job.job_name === job.workflow_name ? job.job_name + attempt
                                            : `${job.workflow_name} / ${job.job_name}${attempt}`;
}

const jobCells = (job) => [jobState(job), tests(job), seconds(job.queue_time),
                           seconds(job.execution_time), links(job)];

function showRepo(data) {
  const repo = data.downstream;
  return [
    el("h1", [repo.repo, " ", tier(repo.level)]),
    el("p", [`Pass rate ${percent(repo.pass_rate)} over ${repo.completed} finished jobs, mean queue `,
             seconds(repo.queue_time_mean),
             repo.oncalls.length ? `, on call: ${repo.oncalls.join(", ")}` : ""], { class: "quiet" }),
    data.jobs.length ? table("Newest jobs", [{ name: "Job" }, { name: "Pull request" },
      { name: "Delivery" }, ...JOB_COLUMNS.slice(1), { name: "When" }],
      data.jobs.map((job) => [jobName(job), prLink(job.pr_number), deliveryLink(job.delivery_id),
        ...jobCells(job), when(job.completed_at || job.started_at)]))
      : el("p", "No job has reported yet."),
  ];
}

function dispatchCell(dispatch) {
  if (!dispatch) return "–";
  const note = dispatch.error ? [el("br"), el("small", dispatch.error)]
    : dispatch.maybe_duplicate ? [el("br"), el("small", "may have been sent twice")] : [];
  return [state(dispatch.outcome), ...note];
}

function deliveryTable(delivery) {
  const rows = [];
  for (const row of delivery.downstreams) {
    const head = [repoLink(row.repo), tier(row.level), dispatchCell(row.dispatch)];
    const jobs = delivery.jobs.filter((job) =>
      job.downstream_repo.toLowerCase() === row.repo.toLowerCase());
    if (jobs.length === 0) rows.push([...head, el("span", "no job yet", { class: "quiet" }), "–", "–", "–", "–", "–"]);
    for (const job of jobs) rows.push([...head, jobName(job), ...jobCells(job)]);
  }
  return rows.length
    ? table(`Downstreams of delivery ${delivery.delivery_id}`,
            [{ name: "Repository" }, { name: "Tier" }, { name: "Dispatch" }, ...JOB_COLUMNS], rows)
    : el("p", "Nothing has been dispatched for this delivery.");
}

function showPr(data) {
  const number = data.pr_number, upstream = data.upstream_repo;
  return [
    el("h1", ["Pull request ", link(`${upstream}#${number}`, `https://github.com/${upstream}/pull/${number}`)]),
    data.labels.length ? el("ul", data.labels.map((label) => el("li", label)),
                            { class: "chips", "aria-label": "ciflow labels" }) : null,
    ...data.deliveries.flatMap((delivery) => [
      el("h2", [delivery.event_type || "event", " ", shaLink(upstream, delivery.head_sha), " ",
                deliveryLink(delivery.delivery_id)]),
      deliveryTable(delivery)]),
  ];
}

function showDelivery(data) {
  return [el("h1", ["Delivery ", el("code", data.delivery_id)]),
          el("p", [data.event_type || "event", ", pull request ", prLink(data.pr_number), ", commit ",
                   el("code", (data.head_sha || "–").slice(0, 10))], { class: "quiet" }),
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
let last = "";       // and the JSON it was made from

function problem(text) {
  main.replaceChildren(el("h1", "Nothing to show"), el("p", text, { class: "error", role: "alert" }));
  last = "";
}

async function refresh() {
  const hash = decodeURI(location.hash);
  const found = VIEWS.map(([pattern, api, show]) => [hash.match(pattern), api, show]).find(([m]) => m);
  if (!found) return problem("There is no such page.");
  const [match, api, show] = found;
  const url = api(match);
  document.getElementById("raw").href = url;
  try {
    const answer = await fetch(url, { headers: { Accept: "application/json" } });
    const text = await answer.text();
    if (hash !== decodeURI(location.hash)) return;
    fresh.textContent = `As of ${new Date().toLocaleTimeString()}.`;
    const data = JSON.parse(text);
    if (!answer.ok) return problem(`${answer.status}: ${data.detail}`);
    if (text === last) return;
    const moved = hash !== shown, scroll = window.scrollY;
    main.replaceChildren(...show(data).filter((part) => part !== null));
    document.title = `${main.querySelector("h1").textContent} – Cross-repository CI`;
    if (moved && shown !== null) main.focus();
    else window.scrollTo(0, scroll);
    shown = hash;
    last = text;
  } catch (error) {
    fresh.textContent = `No answer from the server (${error.message}); trying again.`;
  }
}

document.getElementById("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const what = document.getElementById("what").value.trim().replace(/^#/, "");
  location.hash = /^\d+$/.test(what) ? `#/pr/${what}`
    : what.includes("/") ? `#/repo/${what}` : `#/delivery/${what}`;
});
window.addEventListener("hashchange", refresh);
setInterval(() => {
  if (document.getElementById("auto").checked && !document.hidden) refresh();
}, REFRESH_MS);
refresh();
