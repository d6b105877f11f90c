// "/prs": the newest pull requests: what blocks each, and a mark for each backend. What it is filtered by is part of the address.
import { el, glossary, own, slots, table } from "./dom.js";
import { count, plural, prLink, rank, said, state, stateName, when } from "./values.js";

export const api = (match, query) => `/api/crcr/prs${query}`;

const stateOf = (row) => (row.never_reported ? "never_reported" : row.status ? stateName(row) : row.dispatch === "dispatched" ? null : row.dispatch);

const COLUMNS = [
  { name: "Pull request" }, { name: "Title", look: "title" },
  { name: "Newest event", look: "when", help: "When its newest webhook came. The states are those of its newest commit." },
  { name: "Blocks", help: "Backends at L4 of which not all jobs have ended well, of the first 400: a merge that requires them waits, or is stopped." },
  { name: "Backends", help: "A mark each, L4 first: the worst of its jobs, of the first 400; or that it has not reported in time, or was not reached. The name on hover." },
];

const levelOf = (row) => Number((row.level || "L0").slice(1));

// One mark, and its name for who hovers or hears it.
function mark(pr, row) {
  const how = stateOf(row), words = `${row.repo}, ${row.level || "not listed"}: ${(how || "no job yet").replaceAll("_", " ")}`;
  const shown = state(how), sign = (shown.querySelector("[aria-hidden]")?.textContent || "·").trim();
  return own(sign, `/pr/${pr.pr_number}#${row.repo}`, { title: words, "aria-label": words, class: `mark ${shown.className}` });
}

function marks(pr) {
  const rows = [...pr.downstreams].sort((a, b) => levelOf(b) - levelOf(a) || rank(stateOf(a)) - rank(stateOf(b)) || a.repo.localeCompare(b.repo));
  return el("span", rows.flatMap((row, i) => [i && levelOf(row) !== levelOf(rows[i - 1]) ? el("span", " ", { class: "gap" }) : null, mark(pr, row)]), { class: "marks" });
}

function blocking(pr) {
  const rows = pr.downstreams.filter((row) => row.blocks).sort((a, b) => rank(stateOf(a)) - rank(stateOf(b)));
  return rows.length ? rows.map((row, i) => [i ? ", " : "", own(row.repo, `/pr/${pr.pr_number}#${row.repo}`), " ", state(stateOf(row) || "waiting")]) : "–";
}

const row = (pr) => ({ key: pr.pr_number, cells: [
  prLink(pr.pr_number), [said(pr.title || "–"), pr.author ? el("small", [" ", said(pr.author)], { class: "quiet" }) : null], when(pr.at), blocking(pr),
  [marks(pr), pr.more_jobs ? el("small", " of the first 400 jobs", { class: "quiet" }) : null]] });

// One failed; else one runs; else all ended well. Of the backends and levels that are asked for.
const STATES = ["all", "failing", "running", "passing"], LEVELS = ["all", "L4", "L3", "L2"];

function choice(query, name, values) {
  const chosen = values.includes(query.get(name)) ? query.get(name) : values[0];
  return el("nav", [el("span", `${name}:`, { class: "quiet" }), ...values.map((value) => {
    const next = new URLSearchParams(query);
    next.delete("before");
    if (value === values[0]) next.delete(name);
    else next.set(name, value);
    return own(value, `/prs?${next}`, { "aria-current": value === chosen ? "true" : null });
  })], { "aria-label": name, class: "choice" });
}

function filter(query) {
  const kept = ["state", "level"].filter((name) => query.get(name)).map((name) => el("input", null, { type: "hidden", name, value: query.get(name) }));
  return el("form", [
    el("label", "Number, title, author or commit ", { for: "q" }), el("input", null, { id: "q", name: "q", value: query.get("q"), autocomplete: "off" }),
    el("label", "Backend ", { for: "repo" }), el("input", null, { id: "repo", name: "repo", value: query.get("repo"), autocomplete: "off", placeholder: "owner/name, or a part" }),
    ...kept, el("button", "Filter")], { action: "/prs", method: "get", role: "search", "aria-label": "filter" });
}

function older(data, query) {
  if (data.before === null) return null;
  const next = new URLSearchParams(query);
  next.set("before", data.before);
  return el("p", own("Older ones", `/prs?${next}`));
}

export function show(data, query) {
  const asked = ["q", "repo", "level", "state", "before"].some((name) => query.get(name));
  return slots([
    el("h1", "Pull requests"), filter(query), choice(query, "state", STATES), choice(query, "level", LEVELS),
    data.prs.length ? table("Pull requests", data.total === null ? "Newest first" : [`${plural(data.total, "pull request")}, the newest first`, data.total >= 1000 ? `; older than the newest ${count(1000)} are not kept` : ""],
                            COLUMNS, data.prs.map(row))
      : el("p", data.before ? "No match in the 100 searched; older ones exist."
        : asked ? "No pull request of the newest 1,000 is like that."
        : ["No pull request has come yet. ", el("code", "crcrctl redeliver"), " fetches what GitHub could not deliver."]),
    older(data, query),
    glossary(COLUMNS),
  ]);
}
