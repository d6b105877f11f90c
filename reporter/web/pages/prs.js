// "/prs": the newest pull requests, and how each back end does with them. ?q=, ?state= and ?before=
// are part of the address.
import { el, glossary, own, slots, table } from "./dom.js";
import { prLink, rank, said, state, stateName, when, worst } from "./values.js";

export const api = (match, query) => `/api/crcr/prs${query}`;

const stateOf = (row) => (row.status ? stateName(row) : row.dispatch === "dispatched" ? null : row.dispatch);

const COLUMNS = [
  { name: "Pull request" }, { name: "Title", look: "title" }, { name: "Author" },
  { name: "Newest event", look: "when", help: "When its newest webhook came. The states are those of its newest commit." },
  { name: "Worst", help: "The worst job of all back ends, of the first 400; timed out, too, where a back end at L3 or L4 did not report in time." }, { name: "Back ends", look: "title" },
];

function backEnds(pr) {
  const rows = pr.downstreams.filter((row) => stateOf(row)).sort((a, b) => rank(stateOf(a)) - rank(stateOf(b)));
  const silent = pr.downstreams.length - rows.length;
  return [rows.map((row, i) => [i ? ", " : "", own(row.repo, `/pr/${pr.pr_number}#${row.repo}`), " ", state(stateOf(row))]),
          silent ? el("small", `${rows.length ? ", " : ""}${silent} without ${pr.more_jobs ? "one of the first 400 jobs" : "a job"}`, { class: "quiet" }) : null];
}

const row = (pr) => ({ key: pr.pr_number, cells: [
  prLink(pr.pr_number), said(pr.title || "–"), said(pr.author || "–"), when(pr.at),
  [state(worst(pr.downstreams.map(stateOf).filter(Boolean))), pr.more_jobs ? el("small", " of the first 400 jobs", { class: "quiet" }) : null],
  backEnds(pr)] });

// One failed; else one runs; else all ended well.
const STATES = ["all", "failing", "running", "passing"];

function states(query) {
  const chosen = STATES.includes(query.get("state")) ? query.get("state") : "all";
  return el("nav", STATES.map((name) => {
    const address = new URLSearchParams([["q", query.get("q")], ["state", name]].filter(([key, value]) => value && !(key === "state" && name === "all")));
    return own(name, `/prs?${address}`, { "aria-current": name === chosen ? "true" : null });
  }), { "aria-label": "state", class: "pages" });
}

function filter(query) {
  return el("form", [
    el("label", "Number, title or author ", { for: "q" }),
    el("input", null, { id: "q", name: "q", value: query.get("q"), autocomplete: "off" }),
    query.get("state") ? el("input", null, { type: "hidden", name: "state", value: query.get("state") }) : null,
    el("button", "Filter")], { action: "/prs", method: "get", role: "search", "aria-label": "filter" });
}

function older(data, query) {
  if (data.before === null) return null;
  const next = new URLSearchParams(query);
  next.set("before", data.before);
  return el("p", own("Older ones", `/prs?${next}`));
}

export function show(data, query) {
  return slots([
    el("h1", "Pull requests"), filter(query), states(query),
    data.prs.length ? table("Pull requests", "Newest first", COLUMNS, data.prs.map(row))
      : el("p", data.before ? "No match in the 100 searched; older ones exist."
        : query.get("q") || query.get("state") || query.get("before") ? "No pull request of the newest 1,000 is like that."
        : ["No pull request has come yet. ", el("code", "crcrctl redeliver"), " fetches what GitHub could not deliver."]),
    older(data, query),
    glossary(COLUMNS),
  ]);
}
