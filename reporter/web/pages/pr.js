// "/pr/<n>": the newest results of a pull request in full, its other deliveries below.
import { el, link, places } from "./dom.js";
import { boxes, startOf, summary } from "./delivery.js";
import { deliveryLink, shaLink, when } from "./values.js";

export const api = (match) => `/api/crcr/prs/${match[1]}`;

// Of the deliveries of the newest commit the newest that has jobs: closing a pull request, or a
// label, is a delivery too.
function chosen(deliveries) {
  const [newest] = deliveries;
  const found = deliveries.findIndex((one) => one.head_sha === newest.head_sha && one.jobs.length);
  return Math.max(found, 0);
}

// The list of deliveries leaves out failed tests and verdicts; this one is asked for with them.
export async function more(data, get) {
  const i = chosen(data.deliveries);
  const full = await get(`/api/crcr/deliveries/${data.deliveries[i].delivery_id}`);
  if (full) data.deliveries[i] = full;
}

const title = (data, delivery) => [delivery.event_type || "event", " of ", shaLink(data.upstream_repo, delivery.head_sha),
  ", delivery ", deliveryLink(delivery.delivery_id), ", ", when(startOf(delivery))];

function other(data, delivery) {
  return el("section", [
    el("h3", title(data, delivery)),
    el("details", [el("summary", summary(delivery)), boxes(delivery, data.labels, false)])], { key: delivery.delivery_id });
}

export function show(data) {
  const number = data.pr_number, upstream = data.upstream_repo, at = chosen(data.deliveries);
  const main = data.deliveries[at], others = data.deliveries.filter((_, i) => i !== at);
  return places([
    el("h1", ["Pull request ", link(`${upstream}#${number}`, `https://github.com/${upstream}/pull/${number}`)]),
    data.labels.length ? el("ul", data.labels.map((label) => el("li", label, { key: label })),
                            { class: "chips", "aria-label": "ciflow labels" }) : null,
    el("h2", title(data, main)),
    el("p", summary(main)),
    boxes(main, data.labels, true),
    others.length ? el("h2", "Other deliveries") : null,
    others.length ? el("div", others.map((delivery) => other(data, delivery)), { class: "others" }) : null,
  ]);
}
