// How single values look: states, numbers, times, links; and what the numbers mean that several pages show.
import { el, link, own, tip } from "./dom.js";

export const PASS_RATE_HELP = "Successful of the finished jobs of pull requests. The newest attempt of each counts; cancelled and timed out " +
  "count against it; what still runs does not count.";
export const QUEUE_HELP = "From the dispatch to the first report, by the relay's clock; first attempts only.";
export const E2E_HELP = "Of a run, end to end: its longest queue, and from the first start to the last end of its jobs, as its CI reported them.";
export const P95_HELP = "P95: 95 % took no longer, within 5 %.";

// Worst first; those that run come before those that ended well.
const MARKS = {
  failure: ["bad", "✗"], failed: ["bad", "✗"], timed_out: ["bad", "✗"], never_reported: ["bad", "✗"], cancelled: ["warn", "!"],
  action_required: ["warn", "!"], unknown: ["warn", "?"], in_progress: ["busy", "●"], waiting: ["busy", "…"],
  dispatched: ["plain", "→"], success: ["good", "✓"], neutral: ["quiet", "–"], skipped: ["quiet", "–"],
  stale: ["quiet", "–"],
};
const NAMES = Object.keys(MARKS);

export function stateMark(name) {
  const [look, mark] = MARKS[name] || ["quiet", "–"];
  return { look, mark };
}

export function state(name) {
  if (!name) return el("span", "–", { class: "quiet" });
  const { look, mark } = stateMark(name);
  return el("span", [el("span", `${mark} `, { "aria-hidden": "true" }), name.replaceAll("_", " ")],
            { class: `state ${look}` });
}

export const NO_CONCLUSION = "reported without a conclusion";
export const stateName = (job) => (job.status === "completed" ? job.conclusion || "neutral" : job.status);
export const jobState = (job) => state(stateName(job));
export const rank = (name) => (NAMES.includes(name) ? NAMES.indexOf(name) : name ? NAMES.length : NAMES.length + 1);
export const worst = (names) => [...names].sort((a, b) => rank(a) - rank(b))[0] || null;
export const isBad = (name) => ["bad", "warn"].includes((MARKS[name] || [])[0]);

// "2 failure, 1 in progress, 5 success": the worst first.
export function tally(names) {
  return NAMES.filter((name) => names.includes(name)).flatMap((name, i) => [
    i ? ", " : "", `${names.filter((one) => one === name).length} `, state(name)]);
}

export const count = (n) => (n === null || n === undefined ? "–" : n.toLocaleString("en"));
// "1 job", "2 jobs".
export const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many || `${one}s`}`;
export const tier = (level) => el("span", level || "–", { class: "tier" });
// Words of others: their direction ends with them.
export const said = (text) => el("bdi", text);

// What is below 80 % is red, below 95 % amber; the text says it too.
export function passRate(score) {
  if (score.pass_rate === null) return el("span", "–", { class: "quiet" });
  const percent = score.pass_rate * 100;
  const look = percent >= 95 ? "good" : percent >= 80 ? "warn" : "bad";
  const text = percent > 99.9 && percent < 100 ? "99.9" : percent.toFixed(percent === 100 ? 0 : 1);
  return el("span", [`${text} %`, el("small", ` of ${count(score.completed)}`)], { class: `chip ${look}` });
}

// "0.4 s", "5 min", "1 h 20 min", "3 days".
export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 59.95) return `${Number(value.toFixed(1))} s`;
  const whole = Math.round(value), parts = (a, unit, b, less) => `${a} ${unit}${b ? ` ${b} ${less}` : ""}`;
  if (whole < 3600) return parts(Math.floor(whole / 60), "min", whole % 60, "s");
  const minutes = Math.round(whole / 60), hours = Math.floor(minutes / 60);
  return hours < 48 ? parts(hours, "h", minutes % 60, "min") : parts(Math.floor(hours / 24), "days", hours % 24, "h");
}

const about = (span) => (span < 3600 ? `${Math.floor(span / 60)} min` : span < 172800 ? `${Math.floor(span / 3600)} h` : `${Math.floor(span / 86400)} days`);

// A CI's own clock may be ahead of ours.
function age(at) {
  const ago = (Date.now() - at.getTime()) / 1000;
  return ago < -60 ? `in ${about(59 - ago)}` : ago < 60 ? "just now" : `${about(ago)} ago`;
}

// One way to write a time: that of the reader, of 24 hours. The footer says its zone, once.
const format = (parts) => new Intl.DateTimeFormat("en", { hourCycle: "h23", ...parts });
const DATE = { month: "short", day: "numeric" }, CLOCK = { hour: "2-digit", minute: "2-digit" };
export const TIME = format({ ...DATE, ...CLOCK }), TIME_S = format({ ...DATE, ...CLOCK, second: "2-digit" });
const HOURS = format(CLOCK);
export const clock = (text) => HOURS.format(new Date(text));
export const DAY = format({ ...DATE, weekday: "short" }), DAY_UTC = format({ ...DATE, timeZone: "UTC" });
export const ZONE = format({ timeZoneName: "shortOffset" }).formatToParts().find((part) => part.type === "timeZoneName").value.replace("GMT", "UTC").replace("+0", "");

// "7 min ago Nov 21, 05:18"; UTC on hover.
export function when(text) {
  const at = new Date(text || NaN);
  if (Number.isNaN(at.getTime())) return el("span", "–", { class: "quiet" });
  return el("time", [el("span", age(at), { class: "age" }), " ", el("small", TIME.format(at), { class: "quiet" })],
            { datetime: at.toISOString(), title: at.toISOString() });
}

// The ages go on while nothing else changes.
export function ages() {
  for (const node of document.querySelectorAll("time")) {
    const text = node.querySelector(".age").firstChild, now = age(new Date(node.dateTime));
    if (text.data !== now) text.data = now;
  }
}

export const demoted = (reason) => (reason ? el("span", tip("demoted", reason), { class: "state bad" }) : null);

export function repoLink(repo) {
  const slash = repo.indexOf("/") + 1;
  return own([repo.slice(0, slash), el("wbr"), repo.slice(slash)], `/repo/${repo}`);
}

export const prLink = (pr) => (pr ? own(`#${pr}`, `/pr/${pr}`) : "–");
export const deliveryLink = (id) => (id ? el("code", own(id.slice(0, 8), `/delivery/${id}`)) : "–");
export const shaLink = (upstream, sha) => el("code", sha ? link(sha.slice(0, 10), `https://github.com/${upstream}/commit/${sha}`) : "–");

// Only where the browser lets a page copy: on https, and on this machine.
export function copyButton(text, what) {
  return navigator.clipboard ? el("button", "copy", { type: "button", class: "copy", "data-copy": text, "aria-label": `copy ${what}` })
    : null;
}

// A job in all its attempts, and in one of them.
export const jobTitle = (job) => (job.job_name === job.workflow_name ? job.job_name : `${job.workflow_name} / ${job.job_name}`);
export const jobName = (job) =>
  jobTitle(job) + (job.run_attempt && String(job.run_attempt) !== "1" ? ` (attempt ${job.run_attempt})` : "");

// What one job of one attempt is known by.
export const jobKey = (job) => [job.downstream_repo.toLowerCase(), job.delivery_id, job.run_id, job.workflow_name, job.job_name,
                                job.check_run_id, job.run_attempt].join("\n");

// The jobs of each backend, by its name in lower case.
export function jobsByRepo(jobs) {
  const byRepo = new Map();
  for (const job of jobs) {
    const repo = job.downstream_repo.toLowerCase();
    if (!byRepo.has(repo)) byRepo.set(repo, []);
    byRepo.get(repo).push(job);
  }
  return byRepo;
}

// Without those that a later attempt or a newer run has replaced, as the aggregate check run counts.
export const newestAttempts = (jobs) => jobs.filter((job) => !job.replaced);
