// "/pr/<n>": what blocks a pull request, and its newest results in full; below, each commit and its other deliveries.
import { el, link, own, slots } from "./dom.js";
import { backEnds, boxes, known, noJob, startOf, summary } from "./delivery.js";
import { deliveryLink, isBad, jobName, plural, said, shaLink, state, stateName, when } from "./values.js";

export const api = (match) => `/api/crcr/prs/${match[1]}`;

const NAMED = 5; // failing jobs in the verdict

// Of the deliveries of the newest commit the newest that has jobs: closing a pull request, or a
// label, is a delivery too.
function chosen(deliveries) {
  const [newest] = deliveries;
  const found = deliveries.findIndex((one) => one.head_sha === newest.head_sha && one.jobs.length);
  return Math.max(found, 0);
}

// The list of deliveries leaves out failed tests, verdicts and check runs; this one is asked for with them.
export async function more(data, get) {
  const i = chosen(data.deliveries);
  const full = await get(`/api/crcr/deliveries/${data.deliveries[i].delivery_id}`);
  if (full) data.deliveries[i] = { ...full, upstream_repo: data.upstream_repo };
}

const title = (data, delivery) => [delivery.event_type || "event", " of ", shaLink(data.upstream_repo, delivery.head_sha),
  ", delivery ", deliveryLink(delivery.delivery_id), ", ", when(startOf(delivery))];

// What one commit came to, and its other deliveries. main: the delivery that is shown above.
function commit(data, deliveries, main) {
  const shown = deliveries[chosen(deliveries)];
  const states = backEnds(shown).map(({ row, how }) => el("li", [`${row.repo} `, how ? state(how) : noJob(row, shown)],
                                                          { key: row.repo.toLowerCase() }));
  return el("li", [
    el("h3", [shaLink(data.upstream_repo, shown.head_sha), ", ", when(startOf(deliveries.at(-1))),
              deliveries.includes(main) ? ", shown above" : ""]),
    el("ul", states, { class: "chips", "aria-label": "backends" }),
    ...deliveries.filter((one) => one !== main).map((one) => el("details", [
      el("summary", [one.event_type || "event", " ", el("code", one.delivery_id.slice(0, 8))]),
      el("p", ["Delivery ", deliveryLink(one.delivery_id), ". ", summary(one)]),
      boxes(one, data.labels, false)], { key: one.delivery_id }))], { key: shown.head_sha });
}

// The commits of the pull request that the relay saw, the newest first.
function commits(data, main) {
  const heads = [...new Set(data.deliveries.map((one) => one.head_sha))];
  return el("ol", heads.map((sha) => commit(data, data.deliveries.filter((one) => one.head_sha === sha), main)),
            { class: "commits", reversed: "" });
}

// ---- what blocks --------------------------------------------------------------------------------

const place = ({ row, how }) => [own(row.repo, `#${row.repo}`), how ? [" ", state(how)] : ""];
const list = (all) => all.map((one, i) => [i ? ", " : "", place(one)]);

// One sentence, in its colour, and the failing jobs of those that stop the merge, each with what is known of its failure.
function verdict(main) {
  const all = backEnds(main), stops = all.filter((one) => one.row.check_run?.blocks && isBad(one.how)), waits = all.filter((one) => one.row.check_run?.blocks && !isBad(one.how));
  const failing = all.filter((one) => isBad(one.how) && !stops.includes(one));
  const jobs = (stops.length ? stops : failing).flatMap((one) => one.jobs.map(({ job }) => job)).filter((job) => isBad(stateName(job)));
  const also = failing.length ? [` ${plural(failing.length, "other backend fails", "other backends fail")} without blocking: `, list(failing), "."] : "";
  const text = stops.length ? [`${plural(stops.length, "backend blocks", "backends block")} the merge: `, list(stops), ".", waits.length ? [" Still open: ", list(waits), "."] : "", also]
    : waits.length ? [`The merge waits for ${plural(waits.length, "backend")}: `, list(waits), ".", also]
    : failing.length ? ["Nothing blocks the merge. ", `${plural(failing.length, "backend fails", "backends fail")}: `, list(failing), "."]
    : all.some((one) => one.jobs.length) ? "Nothing blocks the merge." : "No backend has reported yet.";
  return el("section", [el("p", text), jobs.length ? el("ul", [
    ...jobs.slice(0, NAMED).map((job) => el("li", [said(`${job.downstream_repo} ${jobName(job)}`), ": ", known(job) ?? state(stateName(job)), job.workflow_run_url ? [" · ", link("log", job.workflow_run_url)] : ""])),
    jobs.length > NAMED ? el("li", `and ${plural(jobs.length - NAMED, "more job", "more jobs")}`) : null]) : null],
    { class: `verdict ${stops.length ? "bad" : waits.length ? "busy" : failing.length ? "warn" : "good"}`, "aria-label": "what blocks" });
}

export function show(data) {
  const number = data.pr_number, upstream = data.upstream_repo, main = data.deliveries[chosen(data.deliveries)];
  return slots([
    el("h1", [link(`#${number}`, `https://github.com/${upstream}/pull/${number}`), " ", data.title ? said(data.title) : "Pull request"]),
    el("p", [`Pull request of ${upstream}`, data.author ? [" by ", said(data.author)] : "", data.deliveries[0].action === "closed" ? ", closed" : ", open",
             ", commit ", shaLink(upstream, data.head_sha || main.head_sha)], { class: "quiet" }),
    verdict(main),
    data.labels.length ? el("ul", data.labels.map((label) => el("li", label, { key: label })),
                            { class: "chips", "aria-label": "ciflow labels" }) : null,
    el("h2", title(data, main)),
    el("p", summary(main)),
    boxes(main, data.labels, true),
    el("h2", "Commits"),
    commits(data, main),
  ]);
}
