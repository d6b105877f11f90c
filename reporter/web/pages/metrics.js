// "/metrics-board": all back ends together.
import { chart, daysChoice, daysOf, pointName } from "./charts.js";
import { el, glossary, slots, table } from "./dom.js";
import { count, E2E_HELP, P95_HELP, PASS_RATE_HELP, passRate, QUEUE_HELP, repoLink, tier } from "./values.js";

const DAYS = [30, 7, 90], LINES = 12;

export const api = (match, search) => `/api/crcr/trends?days=${daysOf(search, DAYS)}`;

const COLUMNS = [
  { name: "Back end" },
  { name: "Level" },
  { name: "Pass rate", look: "number", help: PASS_RATE_HELP },
  { name: "Not successful", look: "number", help: "Finished jobs that ended otherwise: failed, cancelled, timed out and all else." },
  { name: "Finished", look: "number" },
];

const sum = (points, of) => points.reduce((total, point) => total + of(point), 0);
const rate = (point) => (point.completed ? (100 * point.successful) / point.completed : null);

function totalsOf(repo) {
  const completed = sum(repo.points, (point) => point.completed), successful = sum(repo.points, (point) => point.successful);
  return { ...repo, completed, successful, bad: completed - successful, pass_rate: completed ? successful / completed : null };
}

// Those that fail most, and all others as one.
function failures(repos, labels) {
  const shown = repos.filter((repo) => repo.bad).sort((a, b) => b.bad - a.bad);
  const sets = shown.slice(0, LINES).map((repo) => ({ name: repo.repo, values: repo.points.map((point) => point.completed - point.successful) }));
  const others = shown.slice(LINES);
  if (others.length)
    sets.push({ name: `${others.length} others`, look: "quiet", values: labels.map((_, i) => sum(others, (repo) => repo.points[i].completed - repo.points[i].successful)) });
  return sets;
}

const spans = (points, of) => [
  { name: "P95", values: points.map((point) => of(point).p95) }, { name: "Mean", values: points.map((point) => of(point).mean) }];

export function show(data, query) {
  const days = daysOf(query, DAYS), labels = data.points.map((point) => pointName(point.at, data.step));
  const repos = data.repos.map(totalsOf).filter((repo) => repo.completed)
    .sort((a, b) => a.pass_rate - b.pass_rate || a.repo.localeCompare(b.repo));
  const points = data.points.map((point) => ({ ...point.pull_requests, at: point.at }));
  const total = (name) => sum(points, (point) => point[name]), all = totalsOf({ points });
  const line = (unit, sets) => ({ type: "line", unit, labels, sets }), bars = (sets) => ({ type: "bar", stacked: true, unit: "count", labels, sets });
  const named = (name) => ({ name: name.replaceAll("_", " "), values: points.map((point) => point[name]) });
  const empty = el("p", "No job has ended in this span of time. What ends is counted here within seconds.");
  return slots([
    el("h1", "All back ends"), daysChoice(DAYS, days),
    el("p", [passRate(all), ` ${count(total("completed"))} jobs of ${count(total("runs"))} runs: ${count(total("successful"))} successful, `,
             `${count(total("failed"))} failed, ${count(total("cancelled"))} cancelled, ${count(total("timed_out"))} timed out. Pull requests; days are UTC.`]),
    ...(repos.length ? [
      chart("Pass rate", `Successful of the finished jobs of each day; the ${Math.min(LINES, repos.length)} back ends with the lowest, worst first.`,
            line("percent", repos.slice(0, LINES).map((repo) => ({ name: repo.repo, values: repo.points.map(rate) })))),
      chart("Failures", "Finished jobs that were not successful, of each day, by back end.", bars(failures(repos, labels))),
      chart("Jobs", "Finished jobs of each day, by how they ended.", bars([
        { ...named("successful"), look: "good" }, { ...named("failed"), look: "bad" }, { ...named("cancelled"), look: "warn" }, { ...named("timed_out"), look: "quiet" }])),
      chart("Queue", `${QUEUE_HELP} ${P95_HELP}`,
            line("seconds", spans(points, (point) => point.queue))),
      chart("End to end", E2E_HELP,
            line("seconds", spans(points, (point) => point.e2e))),
      table("Back ends", `${repos.length} back ends, the worst first`, COLUMNS, repos.map((repo) => ({ key: repo.repo.toLowerCase(), cells: [
        repoLink(repo.repo), tier(repo.level), passRate(repo), count(repo.bad), count(repo.completed)] }))),
      glossary(COLUMNS)] : [empty]),
  ]);
}
