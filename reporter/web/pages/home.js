// "/": is all well, and how does each backend do: by level, and of each level the worst first.
import { daysChoice, daysOf, spark } from "./charts.js";
import { el, glossary, own, slots, table, tip } from "./dom.js";
import { BAD, cards, condition, CONDITION_HELP, GOOD, assessed, LOOK, lookOf, UNKNOWN, wellness } from "./health.js";
import { count, demoted, E2E_HELP, P95_HELP, PASS_RATE_HELP, passRate, plural, prLink, QUEUE_HELP, rank, repoLink, said, seconds, state, stateName, when } from "./values.js";

const DAYS = [7, 1, 30], LEVELS_MS = 60000;

export const api = (match, search) => `/api/crcr/summary?days=${daysOf(search, DAYS)}`;
export const partial = true; // without its answer the rest of the page is shown all the same

let levels = { at: -LEVELS_MS, of: new Map() };

// How far each L2 is on its way is read once a minute: it is made of all their jobs.
async function levelsOf(get) {
  if (performance.now() - levels.at < LEVELS_MS) return levels.of;
  const answer = await get("/api/crcr/level-status", false).catch(() => null);
  if (answer) levels = { at: performance.now(), of: new Map(answer.repos.filter((one) => one.level === "L2" && !one.noData).map((one) => [one.repo.toLowerCase(), one.criteria])) };
  return levels.of;
}

export async function more(data, get) {
  data.health = await get("/api/crcr/health").catch((error) => ({ missing: error.message }));
  if (data.missing && data.health.missing) throw new Error(data.missing);
  data.ready = data.missing ? {} : Object.fromEntries([...await levelsOf(get)].map(([repo, all]) => [repo, [all.filter((one) => one.met).length, all.length]]));
}

const COLUMNS = [
  { name: "Backend" },
  { name: "State", help: CONDITION_HELP },
  { name: "Last run", help: "The worst job of the run that reported last, and how many of its jobs were not successful or still run, of the newest 100 jobs." },
  { name: "When", look: "when", help: "When that job ended or began, by the clock of its CI." },
  { name: "Pass rate", look: "number", help: `In this span of time. ${PASS_RATE_HELP} Green from 95 %, amber from 80 %.` },
  { name: "Failures", look: "number", help: "Finished jobs that were not successful: failed, cancelled, timed out. Beside it, by hour (1 day) or day, how many jobs ended, and from below how many of them were not successful." },
  { name: "Queue", look: "number", help: `Mean; it says its P95. ${QUEUE_HELP} ${P95_HELP}` },
  { name: "End to end", look: "number", help: `Mean; it says its P95. ${E2E_HELP}` },
  { name: "Nightly", look: "number", help: "The pass rate of the runs that it starts itself: nightly and periodic." },
];

const LEVELS = [
  ["L4", "its check run can block the merge"], ["L3", "check runs where a label asks for them; none blocks"], ["L2", "reports; its results are on these pages"],
  ["L1", "gets the events"], [null, "not listed any more"],
];

const lastState = (repo) => (repo.last_run ? stateName(repo.last_run.worst) : null);

function lastRun(repo) {
  const run = repo.last_run;
  if (!run) return el("span", "No data", { class: "quiet" });
  const more = [run.failed ? `${run.failed} failed` : null, run.running ? `${run.running} running` : null].filter(Boolean);
  return [state(lastState(repo)), " ", run.worst.pr_number ? prLink(run.worst.pr_number) : said(run.worst.event_type), " ",
          el("small", `${more.length ? `${more.join(", ")} of ` : ""}${run.more_jobs ? "its newest " : ""}${plural(run.jobs, "job")}`, { class: "quiet" })];
}

// A mean, with its P95.
const spanOf = ({ mean, p95 }) => (mean === null ? "–" : tip(seconds(mean), `P95 ${seconds(p95)}`));

function row(repo, ready) {
  const newest = repo.last_run ? repo.last_run.worst : null, prs = repo.window.pull_requests, [well, why] = condition(repo);
  return { key: repo.repo.toLowerCase(), cells: [
    repoLink(repo.repo),
    [wellness(why || repo.dispatches || repo.last_run ? well : UNKNOWN), " ", why ? [said(why), " "] : null, demoted(repo.demoted?.reason), " ",
     ready ? own(`${ready[0]} of ${ready[1]} for L3`, `/repo/${repo.repo}`, { class: "chip" }) : null, repo.device ? el("small", repo.device, { class: "quiet" }) : null], lastRun(repo),
    newest ? when(newest.completed_at || newest.started_at) : "–",
    passRate(prs), prs.completed ? [count(prs.completed - prs.successful), " ", spark(repo.spark)] : "–",
    spanOf(prs.queue), spanOf(prs.e2e), passRate(repo.window.nightly)] };
}

const rateOf = (repo) => repo.window.pull_requests.pass_rate ?? 2; // of those without jobs nobody knows it
const worstFirst = (a, b) => condition(b)[0] - condition(a)[0] || rank(lastState(a)) - rank(lastState(b)) || rateOf(a) - rateOf(b) || a.repo.localeCompare(b.repo);

// The heads of the first table alone explain themselves: those of the others say the same.
const PLAIN = COLUMNS.map(({ name, look }) => ({ name, look }));

function section([level, meaning], columns, repos, ready) {
  const mine = repos.filter((repo) => repo.level === level).sort(worstFirst), name = level || "Others";
  return mine.length ? el("section", [el("h2", name, { id: name }),
    table(name, [`${plural(mine.length, "backend")}: `, meaning], columns, mine.map((repo) => row(repo, ready[repo.repo.toLowerCase()])))], { class: "front", key: name }) : null;
}

// One sentence: what is wrong, each part a link to where one does something about it.
function headline(data, repos) {
  const parts = data.health.missing ? [{ well: UNKNOWN, text: "the relay's own state is not known", path: "/pipeline" }]
    : assessed(data.health).filter((one) => one.well >= LOOK && one.short).map((one) => ({ well: one.well, text: one.short, path: one.path }));
  for (const [level] of LEVELS) {
    const mine = repos.filter((repo) => repo.level === level), dead = mine.filter((repo) => condition(repo)[2]);
    const silent = dead.every((repo) => repo.dispatches.silent_since && !repo.dispatches.failed_in_a_row && !repo.dispatches.breaker_open);
    if (dead.length) parts.push({ well: condition(dead[0])[0], path: `#${level || "Others"}`,
      text: `${dead.length} of ${plural(mine.length, `${level || "other"} backend`)} ${dead.length > 1 ? silent ? "report nothing" : "get no events" : silent ? "reports nothing" : "gets no events"}` });
  }
  if (data.missing && !data.repos) parts.push({ well: BAD, text: "backends are not known", path: "#backends" });
  parts.sort((a, b) => b.well - a.well);
  const well = parts.length ? parts[0].well : GOOD;
  return el("p", parts.length ? [wellness(well), " ", parts.map((one, i) => [i ? "; " : "", own(one.text, one.path)])]
    : [wellness(GOOD), ` The relay is OK, and events reach all ${count(repos.length)} backends.`], { class: `verdict ${lookOf(well)}`, role: "status" });
}

const NOTES = (list) => (!list.caught_up ? "The allowlist is being read: until then no level is known." : list.sha ? null : "No allowlist has been published yet: the log of the dispatcher's router says why.");

export function show(data, query) {
  const list = data.allowlist, part = (query.get("q") || "").toLowerCase(), canary = data.health.canary?.repo.toLowerCase();
  const all = (data.repos || []).filter((repo) => repo.repo.toLowerCase() !== canary), repos = all.filter((repo) => repo.repo.toLowerCase().includes(part));
  const first = LEVELS.find(([level]) => repos.some((repo) => repo.level === level))?.[0];
  return slots([
    el("h1", data.upstream_repo ? `Backends of ${data.upstream_repo}` : "Backends"),
    headline(data, all),
    cards(data.health),
    data.missing ? el("p", ["The backends could not be read: ", data.missing, data.repos ? [" Those below are of ", when(data.asOf), "."] : ""], { class: "error", role: "alert", id: "backends" }) : null,
    list && NOTES(list) ? el("p", NOTES(list), { class: "quiet" }) : null,
    list?.error ? el("p", ["The newest allowlist is not in force: ", said(list.error)], { class: "error", role: "alert" }) : null,
    part ? el("p", [`Backends with “${part}” in their name. `, own("All", "/")]) : null,
    data.repos ? daysChoice(DAYS, daysOf(query, DAYS)) : null,
    ...LEVELS.map((one) => section(one, one[0] === first ? COLUMNS : PLAIN, repos, data.ready)),
    data.repos && !repos.length ? el("p", part ? "None." : "No backend is listed, and none has reported. The allowlist names them (ALLOWLIST_URL).") : null,
    repos.length ? glossary(COLUMNS) : null,
  ]);
}
