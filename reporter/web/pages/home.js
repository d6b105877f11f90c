// "/": how each back end does, L4 first, and among those the worst first.
import { daysChoice, daysOf, spark } from "./charts.js";
import { el, glossary, slots, table } from "./dom.js";
import { cards } from "./health.js";
import { count, demoted, E2E_HELP, P95_HELP, PASS_RATE_HELP, passRate, prLink, QUEUE_HELP, rank, repoLink, said, seconds, state, stateName, tally, tier,
         when } from "./values.js";

export { more } from "./health.js";
const DAYS = [7, 1, 30];

export const api = (match, search) => `/api/crcr/summary?days=${daysOf(search, DAYS)}`;

const COLUMNS = [
  { name: "Repository" },
  { name: "Level", help: "How far it is trusted. L1 gets the events. L2 reports, and its results are on these pages. L3 has check runs where a label asks for them, L4 always." },
  { name: "Last run", help: "The worst job of the run that reported last, and how many of its jobs were not successful or still run, of the newest 100 jobs." },
  { name: "When", look: "when", help: "When that job ended or began, by the clock of its CI." },
  { name: "Pull request", help: "That the last run was for." },
  { name: "Pass rate", look: "number", help: `In this span of time. ${PASS_RATE_HELP} Green from 95 %, amber from 80 %.` },
  { name: "Failures", look: "number", help: "Finished jobs that were not successful: failed, cancelled, timed out. Below, by hour (1 day) or day, how many jobs ended, and from below how many of them were not successful." },
  { name: "Queue", look: "number", help: `Mean and P95. ${QUEUE_HELP} ${P95_HELP}` },
  { name: "End to end", look: "number", help: `Mean and P95. ${E2E_HELP}` },
  { name: "Nightly", look: "number", help: "The pass rate of the runs that it starts itself: nightly and periodic." },
];

const lastState = (repo) => (repo.last_run ? stateName(repo.last_run.worst) : null);

function lastRun(repo) {
  const run = repo.last_run;
  if (!run) return el("span", "nothing yet", { class: "quiet" });
  const more = [run.failed ? `${run.failed} not successful` : null, run.running ? `${run.running} running` : null].filter(Boolean);
  return [state(lastState(repo)), " ",
          el("small", `${more.length ? `${more.join(", ")} of ` : ""}${run.more_jobs ? "its newest " : ""}${run.jobs} ${run.jobs === 1 ? "job" : "jobs"}`, { class: "quiet" })];
}

function row(repo) {
  const newest = repo.last_run ? repo.last_run.worst : null, prs = repo.window.pull_requests;
  return { key: repo.repo.toLowerCase(), cells: [
    repoLink(repo.repo), [tier(repo.level), " ", repo.device, " ", demoted(repo.demoted?.reason)], lastRun(repo),
    newest ? when(newest.completed_at || newest.started_at) : "–",
    newest ? (newest.pr_number ? prLink(newest.pr_number) : said(newest.event_type)) : "–",
    passRate(prs), prs.completed ? [count(prs.completed - prs.successful), spark(repo.spark)] : "–",
    spanOf(prs.queue), spanOf(prs.e2e), passRate(repo.window.nightly)] };
}

// A mean and a P95.
function spanOf({ mean, p95 }) {
  return mean === null ? "–" : [seconds(mean), el("small", [" P95 ", seconds(p95)], { class: "quiet" })];
}

const levelOf = (repo) => (repo.level ? Number(repo.level.slice(1)) : 0);

const rateOf = (repo) => repo.window.pull_requests.pass_rate ?? 2; // of those without jobs nobody knows it

export function show(data, query) {
  const list = data.allowlist;
  const repos = [...data.repos].sort((a, b) => levelOf(b) - levelOf(a) || rank(lastState(a)) - rank(lastState(b)) ||
                                               rateOf(a) - rateOf(b) || a.repo.localeCompare(b.repo));
  return slots([
    el("h1", `Back ends of ${data.upstream_repo}`),
    el("p", !list.caught_up ? "The allowlist is being read: until then no level is known." : list.sha ? ["Allowlist ", el("code", list.sha.slice(0, 10)), ", fetched ", when(list.fetched_at)]
                     : "No allowlist has been published yet: the log of the dispatcher's router says why.", { class: "quiet" }),
    cards(data.health),
    list.error ? el("p", ["The newest allowlist is not in force: ", said(list.error)], { class: "error", role: "alert" }) : null,
    daysChoice(DAYS, daysOf(query, DAYS)),
    repos.length ? table("Back ends", ["Last runs: ", ...tally(repos.map(lastState))], COLUMNS, repos.map(row))
      : el("p", "No back end is listed, and none has reported. The allowlist names them (ALLOWLIST_URL)."),
    glossary(COLUMNS),
  ]);
}
