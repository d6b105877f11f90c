// "/pr/<n>": the newest results of a pull request in full; below, each commit and its other deliveries.
import { el, link, slots } from "./dom.js";
import { backEnds, boxes, noJob, startOf, summary } from "./delivery.js";
import { deliveryLink, shaLink, state, when } from "./values.js";

export const api = (match) => `/api/crcr/prs/${match[1]}`;

// Of the deliveries of the newest commit the newest that has jobs: closing a pull request, or a
// label, is a delivery too.
function chosen(deliveries) {
  const [newest] = deliveries;
  const found = deliveries.findIndex((one) => one.head_sha === newest.head_sha && one.jobs.length);
  return Math.max(found, 0);
}

// The list of deliveries leaves out failed tests, verdicts and check runs; this one is asked for with them. How long a back end may
// be silent is the same for all.
export async function more(data, get) {
  const i = chosen(data.deliveries);
  const full = await get(`/api/crcr/deliveries/${data.deliveries[i].delivery_id}`);
  if (!full) return;
  data.deliveries[i] = full;
  for (const one of data.deliveries) one.silent_after_seconds = full.silent_after_seconds;
}

const title = (data, delivery) => [delivery.event_type || "event", " of ", shaLink(data.upstream_repo, delivery.head_sha),
  ", delivery ", deliveryLink(delivery.delivery_id), ", ", when(startOf(delivery))];

// What one commit came to, and its other deliveries. main: the delivery that is shown above.
function commit(data, deliveries, main) {
  const named = deliveries[chosen(deliveries)];
  const states = backEnds(named).map(({ row, how }) => el("li", [`${row.repo} `, how ? state(how) : noJob(row, named)],
                                                          { key: row.repo.toLowerCase() }));
  return el("li", [
    el("h3", [shaLink(data.upstream_repo, named.head_sha), ", ", when(startOf(deliveries.at(-1))),
              deliveries.includes(main) ? ", shown above" : ""]),
    el("ul", states, { class: "chips", "aria-label": "back ends" }),
    ...deliveries.filter((one) => one !== main).map((one) => el("details", [
      el("summary", [one.event_type || "event", " ", el("code", one.delivery_id.slice(0, 8))]),
      el("p", ["Delivery ", deliveryLink(one.delivery_id), ". ", summary(one)]),
      boxes(one, data.labels, false)], { key: one.delivery_id }))], { key: named.head_sha });
}

// The commits of the pull request that the relay saw, the newest first.
function commits(data, main) {
  const heads = [...new Set(data.deliveries.map((one) => one.head_sha))];
  return el("ol", heads.map((sha) => commit(data, data.deliveries.filter((one) => one.head_sha === sha), main)),
            { class: "commits", reversed: "" });
}

export function show(data) {
  const number = data.pr_number, upstream = data.upstream_repo, at = chosen(data.deliveries);
  const main = data.deliveries[at];
  return slots([
    el("h1", ["Pull request ", link(`${upstream}#${number}`, `https://github.com/${upstream}/pull/${number}`)]),
    data.labels.length ? el("ul", data.labels.map((label) => el("li", label, { key: label })),
                            { class: "chips", "aria-label": "ciflow labels" }) : null,
    el("h2", title(data, main)),
    el("p", summary(main)),
    boxes(main, data.labels, true),
    el("h2", "Commits"),
    commits(data, main),
  ]);
}
