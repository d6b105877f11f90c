// "/repo/<owner>/<name>": one backend: its newest jobs, its flaky ones, its badge.
import { chart, daysChoice, daysOf, pointName } from "./charts.js";
import { el, glossary, link, own, slots, table } from "./dom.js";
import { fill, matrices } from "./matrix.js";
import { level, way } from "./level.js";
import { flakyGlossary, flakyTable } from "./since.js";
import { copyButton, count, deliveryLink, demoted, E2E_HELP, jobTitle, PASS_RATE_HELP, passRate, plural, prLink, QUEUE_HELP, said, seconds, state, tier, when } from "./values.js";

const DAYS = [7, 30, 90];

export const api = (match) => `/api/crcr/repos/${match[1]}`;

export async function more(data, get, query) {
  await fill(data, get, query);
  data.level = await get(`/api/crcr/repos/${data.downstream.repo}/level`);
  if (!data.jobs.length) return; // there are none of the others: each would be a 404
  data.trends = await get(`/api/crcr/repos/${data.downstream.repo}/trends?days=${daysOf(location.search, DAYS)}`);
  data.since = await get(`/api/crcr/repos/${data.downstream.repo}/since`);
}

const NUMBERS = [
  { name: "Pass rate", help: `${PASS_RATE_HELP} Of what ended in these days (UTC); pushes: the same of pushes; nightly: of the runs that it starts itself.` },
  { name: "Mean queue", help: QUEUE_HELP },
];

function trends({ step, points }, days) {
  const labels = points.map((point) => pointName(point.at, step)), by = step === "hour" ? "hour" : "day";
  const set = (name, kind, of, look) => ({ name, values: points.map((point) => of(point[kind])), look });
  const rate = (one) => (one.pass_rate === null ? null : 100 * one.pass_rate), prs = "pull_requests";
  const line = (unit, sets) => ({ type: "line", unit, labels, sets });
  const spans = (name) => [set("P95", prs, (one) => one[name].p95, "series2"), set("Mean", prs, (one) => one[name].mean, "series1")];
  return el("section", [
    el("h2", "Trends"), daysChoice(DAYS, days, "#trends"),
    el("div", [
      chart("Pass rate", `Successful of the jobs that ended in each ${by}.`, line("percent", [
        set("Pull requests", prs, rate, "series1"), set("Pushes", "pushes", rate, "series2"), set("Nightly and periodic", "nightly", rate, "series3")]), "h3"),
      chart("Failures", `Jobs of pull requests that ended in each ${by} and were not successful.`, { type: "bar", unit: "count", labels, sets: [
        set("failed", prs, (one) => one.failed, "bad"), set("cancelled", prs, (one) => one.cancelled, "warn"),
        set("timed out", prs, (one) => one.timed_out, "quiet")] }, "h3"),
      chart("Queue", QUEUE_HELP, line("seconds", spans("queue")), "h3"),
      chart("Duration", E2E_HELP, line("seconds", spans("e2e")), "h3")], { class: "charts" }),
  ], { id: "trends" });
}

function badge(repo) {
  const page = `${location.origin}/repo/${repo.repo}`, markdown = `[![crcr](${page}/badge.svg)](${page})`;
  return el("details", [el("summary", "Badge"),
    el("p", el("img", null, { loading: "lazy", src: `/repo/${repo.repo}/badge.svg`, alt: "crcr: its level, and how it does", height: "20", class: "badge" })),
    el("p", [el("code", markdown), " ", copyButton(markdown, "the Markdown of the badge")])]);
}

const EVENTS = [
  { name: "Event" }, { name: "When", look: "when", help: "When that was known of its dispatch." },
  { name: "GitHub's answer", help: "To the repository_dispatch, and which attempt it was." }, { name: "Next", look: "title" },
];

const checkOf = (event, upstream) => (event.check_run_id ? [" Check run: ", state(event.check_run_state || "sent"),
  upstream ? [" ", link("on GitHub", `https://github.com/${upstream}/runs/${event.check_run_id}`)] : ""] : "");

// What a vendor can do, who has no access to the relay.
function next(event, upstream) {
  if (event.outcome === "failed") return [event.error ? [said(event.error), ". "] : "", "Once that is mended the relay's operator sends it again: ask for delivery ", el("code", event.delivery_id), "."];
  if (event.outcome === "waiting") return ["It is tried again. ", said(event.error || "")];
  if (event.outcome !== "dispatched") return said(event.error || "");
  return event.reported ? ["It reported.", checkOf(event, upstream)] : "No report. Is there a workflow for repository_dispatch on the default branch, and did it run?";
}

const eventRow = (event, upstream) => ({ key: event.delivery_id, cells: [
  [event.pr_number ? [prLink(event.pr_number), " "] : "", said([event.event_type, event.action].filter(Boolean).join(" ")), " ", deliveryLink(event.delivery_id)], when(event.at),
  [state(event.outcome), " ", el("small", [event.http_status || "", event.attempt > 1 ? ` attempt ${event.attempt}` : ""], { class: "quiet" })], next(event, upstream)] });

// Open where something is wrong.
function events(data) {
  const wrong = data.events.filter((event) => event.outcome !== "dispatched").length, checked = data.events.find((event) => event.check_run_id);
  return el("details", [
    el("summary", [wrong ? el("span", "✗ ", { class: "bad", "aria-hidden": "true" }) : "", `${data.events.length - wrong} of the last ${plural(data.events.length, "event")} reached it`, data.jobs.length ? ["; last report ", when(new Date(data.received_ms[0]))] : "; it never reported",
      checked ? ["; last check run ", state(checked.check_run_state || "sent"), ` on #${checked.pr_number}`] : ""]),
    table("Events", "Of each of the newest pull requests the newest event", EVENTS, data.events.map((event) => eventRow(event, data.since?.upstream_repo)))], { id: "events", open: wrong ? "" : null });
}

const MOST = 10;

// names: of each failure those that it counts for; what failed most comes first.
function most(kind, failures, names) {
  const found = new Map(), title = `Top failing ${kind.toLowerCase()}s`;
  for (const one of failures)
    for (const name of new Set(names(one))) found.set(name, [...(found.get(name) ?? []), one]);
  const rows = [...found].sort((a, b) => b[1].length - a[1].length).slice(0, MOST);
  return rows.length ? table(title, title, [{ name: kind }, { name: "Failures", look: "number" }, { name: "Newest" }],
    rows.map(([name, all]) => ({ key: name, cells: [said(name), count(all.length), deliveryLink(all[0].delivery_id)] }))) : null;
}

const topFailures = ({ failures, downstream }) => (failures.length ? el("section", [
  el("h2", "Fails most"),
  el("p", `Today and the ${downstream.window.days - 1} days before (UTC), of the newest ${plural(failures.length, "failed job")} and their first 20 failed tests.`, { class: "quiet" }),
  most("Job", failures, (one) => [jobTitle(one)]),
  most("Test", failures, (one) => one.tests.map((test) => [test.classname, test.name].filter(Boolean).join("::")))], { id: "top" }) : null);

// Level, the way to the next one, and how it does.
function head(data) {
  const repo = data.downstream, prs = repo.window.pull_requests, night = repo.window.nightly, fails = data.since?.failing.length || 0;
  return [
    el("h1", [repo.repo, " ", tier(repo.level), " ", demoted(repo.demoted?.reason)]),
    repo.demoted ? el("p", ["Demoted ", when(repo.demoted.since), ": no new check runs until it recovers. ", said(repo.demoted.reason)], { class: "error" }) : null,
    el("p", [data.level && way(data.level) ? [own(way(data.level), "#level"), ". "] : "", `Today and the ${repo.window.days - 1} days before (UTC): pass rate of pull requests `, passRate(prs), ", pushes ", passRate(repo.window.pushes),
             ", nightly ", passRate(night), ", mean queue ", seconds(prs.queue.mean), repo.oncalls.length ? `. On call: ${repo.oncalls.join(", ")}` : "", "."]),
    data.since && data.jobs.length ? el("p", fails ? [el("span", ["✗ ", `${fails} ${fails === 1 ? "job fails" : "jobs fail"} on main`], { class: "state bad" }), ": ", own("since when, and what came in between", `/repo/${repo.repo}/since`)]
      : own("No job fails on main.", `/repo/${repo.repo}/since`)) : null];
}

export function show(data, query) {
  return slots([
    ...head(data),
    data.events.length ? events(data) : null,
    ...matrices(data, query),
    topFailures(data),
    data.since ? flakyTable(data.since) : null,
    data.jobs.length && data.trends ? trends(data.trends, daysOf(query, DAYS)) : null,
    level(data.level),
    data.jobs.length ? glossary([...NUMBERS, ...flakyGlossary])
      : el("p", ["No job has reported yet. deploy/downstream says how a backend reports; ", el("code", "crcrctl probe"), " tries it."]),
    badge(data.downstream),
  ]);
}
