// Part of the page of a backend: whether its figures are good enough for L3, and its levels so far.
import { el, table, tip } from "./dom.js";
import { E2E_HELP, QUEUE_HELP, seconds, tier, when } from "./values.js";

// By the names of the API.
const CRITERIA = {
  tenure: ["Time at L2", "Since the allowlist gave it this level."],
  pass_rate: ["Pass rate", "Successful of the jobs that ended; the newest attempt of each, cancelled and timed out count against it."],
  e2e_p50: ["E2E, median", `${E2E_HELP} Half of the runs took less.`],
  overrun: ["Jobs over 3 h", "Of the jobs that ended and did not time out."],
  queue_mean: ["Mean queue", QUEUE_HELP],
  timeouts: ["Time-outs", "Of the jobs that ended."],
};

const value = (n, unit) => (unit === "percent" ? `${n.toFixed(n > 0 && n < 1 ? 2 : 1)} %` : seconds(n));

// Two values that look the same are not: what decides is said.
function measured({ value: n, threshold, unit }) {
  if (n === null) return "No data";
  const text = value(n, unit);
  return text !== value(threshold, unit) ? text : n === threshold ? `exactly ${text}` : `just ${n > threshold ? "over" : "under"} ${text}`;
}

const VERDICTS = new Map([[true, ["good", "✓", "met"]], [false, ["bad", "✗", "not met"]], [null, ["quiet", "?", "No data"]]]);

function verdict(one) {
  if (one.ok === null && one.value !== null) return "–"; // at L4 nothing follows
  const [look, mark, word] = VERDICTS.get(one.ok);
  return el("span", [el("span", `${mark} `, { "aria-hidden": "true" }), word], { class: `state ${look}` });
}

const COLUMNS = [
  { name: "Criterion" }, { name: "Measured", look: "number" }, { name: "Threshold", look: "number" }, { name: "Over", look: "number" }, { name: "Verdict" },
];

const plural = { jobs: "job", runs: "run" };
const row = (one) => ({ key: one.name, cells: [
  tip(...CRITERIA[one.name]), measured(one),
  `${one.wanted === ">=" ? "at least" : "below"} ${value(one.threshold, one.unit)}`, one.of ? `${one.over} ${one.over === 1 ? plural[one.of] : one.of}` : "–", verdict(one)] });

// Of what is asked at L2: "4 of 6 for L3", and which are missing.
export function way({ question, criteria }) {
  if (question !== "ready_for_l3") return null;
  const missing = criteria.filter((one) => one.ok !== true).map((one) => CRITERIA[one.name][0]);
  return [`${criteria.length - missing.length} of ${criteria.length} for L3`, missing.length ? `, missing: ${missing.join(", ")}` : ""];
}

const TITLES = { ready_for_l3: "Ready for L3?", stays_at_l3: "Good enough for L3?" };
const answer = (data) => (data.answer === null ? "no job has ended in that time"
  : data.question === "ready_for_l3" ? (data.answer ? "ready: every criterion is met" : "not ready") : data.answer ? "yes" : "no");

function history(data) {
  return el("details", [
    el("summary", "Levels so far"),
    el("ul", data.history.map((one) => el("li", [one.level ? tier(one.level) : "not listed", " since ", when(one.since)]))),
  ], { id: "levels" });
}

// data: of /api/crcr/repos/<owner>/<repo>/level; null: it was never listed.
export function level(data) {
  if (!data) return null;
  return el("section", [
    el("h2", data.question ? `${TITLES[data.question]} ${answer(data)}` : "Level"),
    el("p", [data.level ? ["At ", tier(data.level), " since ", when(data.level_since)] : "Not listed any more",
             data.measured_from ? [". Measured over jobs of pull requests since ", when(data.measured_from), "; the figures on top count whole days."] : "."], { class: "quiet" }),
    data.criteria.length ? table("Criteria", "As crcrctl levels says, with the thresholds of rfcs#102", COLUMNS, data.criteria.map(row)) : null,
    history(data),
  ], { id: "level" });
}
