// "/metrics-board": all backends together, then a pair of small plots each, the worst first. ?days=, ?level= and ?runs=.
import { chart, choice, daysChoice, daysOf, pointName, smallPlot } from "./charts.js";
import { el, glossary, slots } from "./dom.js";
import { count, E2E_HELP, P95_HELP, PASS_RATE_HELP, passRate, QUEUE_HELP, repoLink, tier } from "./values.js";

const DAYS = [30, 7, 90], LEVELS = ["all", "L4", "L3", "L2", "L1"];
const RUNS = { pull_requests: "pull requests", pushes: "pushes", nightly: "nightly" };
const runsOf = (query) => (RUNS[query.get("runs")] ? query.get("runs") : "pull_requests");
const levelOf = (query) => (LEVELS.includes(query.get("level")) ? query.get("level") : "all");

export const api = (match, search) => `/api/crcr/trends?days=${daysOf(search, DAYS)}&runs=${runsOf(new URLSearchParams(search))}`;

const HELP = [
  { name: "Pass rate", help: PASS_RATE_HELP },
  { name: "Not successful", help: "Finished jobs that ended otherwise: failed, cancelled, timed out and all else." },
  { name: "Queue", help: `${QUEUE_HELP} ${P95_HELP}` },
  { name: "End to end", help: E2E_HELP },
];

const sum = (points, of) => points.reduce((total, point) => total + of(point), 0);

function totalsOf(repo) {
  const completed = sum(repo.points, (point) => point.completed), successful = sum(repo.points, (point) => point.successful);
  return { ...repo, completed, successful, pass_rate: completed ? successful / completed : null };
}

function small(repo, labels) {
  const rate = repo.points.map((point) => (point.completed ? (100 * point.successful) / point.completed : null));
  const bad = repo.points.map((point) => point.completed - point.successful);
  return el("section", [
    el("h3", [repoLink(repo.repo), " ", tier(repo.level)]),
    el("p", [passRate(repo), ` ${count(sum(repo.points, (point) => point.completed - point.successful))} not successful`], { class: "quiet" }),
    smallPlot(`Pass rate of ${repo.repo}`, { type: "line", unit: "percent", labels, sets: [{ name: "Pass rate", values: rate, look: "series1" }] }),
    smallPlot(`Failures of ${repo.repo}`, { type: "bar", unit: "count", labels, sets: [{ name: "Not successful", values: bad, look: "bad" }] }),
  ], { key: repo.repo.toLowerCase() });
}

export function show(data, query) {
  const labels = data.points.map((point) => pointName(point.at, data.step)), runs = runsOf(query), level = levelOf(query);
  const repos = data.repos.map(totalsOf).filter((repo) => repo.completed && (level === "all" || repo.level === level))
    .sort((a, b) => a.pass_rate - b.pass_rate || a.repo.localeCompare(b.repo));
  const points = data.points.map((point) => point[runs]);
  const total = (name) => sum(points, (point) => point[name]), all = totalsOf({ points });
  const set = (name, of, look) => ({ name, values: points.map(of), look });
  const spans = (name) => [set("P95", (point) => point[name].p95, "series2"), set("Mean", (point) => point[name].mean, "series1")];
  return slots([
    el("h1", "Metrics"), daysChoice(DAYS, daysOf(query, DAYS)),
    choice("runs", Object.entries(RUNS), runs), choice("level", LEVELS.map((one) => [one, one]), level),
    el("p", [passRate(all), ` ${count(total("completed"))} jobs of ${count(total("runs"))} runs: ${count(total("successful"))} successful, `,
             `${count(total("failed"))} failed, ${count(total("cancelled"))} cancelled, ${count(total("timed_out"))} timed out. Days are UTC; today so far.`]),
    el("h2", `Backends, ${RUNS[runs]}, worst first`),
    repos.length ? el("div", repos.map((repo) => small(repo, labels)), { class: "smalls" })
      : el("p", "No job has ended in this span of time. What ends is counted here within seconds.", { class: "quiet" }),
    el("h2", "All together"),
    el("div", [
      chart("Jobs", "Finished jobs of each day, by how they ended.", { type: "bar", unit: "count", labels, sets: [
        set("successful", (point) => point.successful, "good"), set("failed", (point) => point.failed, "bad"),
        set("cancelled", (point) => point.cancelled, "warn"), set("timed out", (point) => point.timed_out, "series1")] }, "h3"),
      chart("Queue", QUEUE_HELP, { type: "line", unit: "seconds", labels, sets: spans("queue") }, "h3"),
      chart("End to end", E2E_HELP, { type: "line", unit: "seconds", labels, sets: spans("e2e") }, "h3")], { class: "charts" }),
    glossary(HELP),
  ]);
}
