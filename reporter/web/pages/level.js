// Part of the page of a back end: whether its figures are good enough for L3, and its levels so far.
import { el, table } from "./dom.js";
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

const value = (n, unit) => (n === null ? "not measured" : unit === "percent" ? `${n.toFixed(n > 0 && n < 1 ? 2 : 1)} %` : seconds(n));

const verdict = (ok) => (ok === null ? "–" : el("span", [el("span", ok ? "✓ " : "✗ ", { "aria-hidden": "true" }), ok ? "met" : "not met"],
                           { class: `state ${ok ? "good" : "bad"}` }));

const COLUMNS = [
  { name: "Criterion" }, { name: "Measured", look: "number" }, { name: "Wanted", look: "number" }, { name: "Over", look: "number" }, { name: "Verdict" },
];

const row = (one) => ({ key: one.name, cells: [
  el("span", CRITERIA[one.name][0], { title: CRITERIA[one.name][1] }), value(one.value, one.unit),
  `${one.wanted === ">=" ? "at least" : "below"} ${value(one.threshold, one.unit)}`, one.of ? `${one.over} ${one.of}` : "–", verdict(one.ok)] });

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
             data.measured_from ? [". Measured over jobs since ", when(data.measured_from), "."] : "."], { class: "quiet" }),
    data.criteria.length ? table("Criteria", "As crcrctl levels says, with the thresholds of rfcs#102", COLUMNS, data.criteria.map(row)) : null,
    history(data),
  ], { id: "level" });
}
