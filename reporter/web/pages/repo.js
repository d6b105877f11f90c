// "/repo/<owner>/<name>": one back end: its newest jobs, its flaky ones, its badge.
import { el, glossary, own, places } from "./dom.js";
import { COLUMNS, fill, matrices } from "./matrix.js";
import { level } from "./level.js";
import { flakyGlossary, flakyTable } from "./since.js";
import { copyButton, demoted, passRate, said, seconds, tier, when } from "./values.js";

export const api = (match) => `/api/crcr/repos/${match[1]}`;

export async function more(data, get, query) {
  await fill(data, get, query);
  data.level = await get(`/api/crcr/repos/${data.downstream.repo}/level`);
  data.since = await get(`/api/crcr/repos/${data.downstream.repo}/since`);
}

const NUMBERS = [
  { name: "Pass rate", help: "Successful of the finished jobs of pull requests and pushes among the newest 100 jobs; nightly: the same of the runs that it starts itself." },
  { name: "Mean queue", help: "From the dispatch to the first report, by the relay's clock; first attempts only." },
];

function badge(repo) {
  const page = `${location.origin}/repo/${repo.repo}`, markdown = `[![crcr](${page}/badge.svg)](${page})`;
  return el("details", [el("summary", "Badge"),
    el("p", el("img", null, { src: `/repo/${repo.repo}/badge.svg`, alt: "crcr: its level, and how it does", height: "20", class: "badge" })),
    el("p", [el("code", markdown), " ", copyButton(markdown, "the Markdown of the badge")])]);
}

export function show(data, query) {
  const repo = data.downstream, failing = data.since?.failing.length || 0;
  return places([
    el("h1", [repo.repo, " ", tier(repo.level), " ", demoted(repo.demoted?.reason)]),
    repo.demoted ? el("p", ["Demoted ", when(repo.demoted.since), ": no new check runs until it recovers. ", said(repo.demoted.reason)]) : null,
    el("p", ["Pass rate ", passRate(repo), ", nightly ", passRate(repo.nightly), ", mean queue ", seconds(repo.queue_time_mean),
             repo.oncalls.length ? `, on call: ${repo.oncalls.join(", ")}` : ""], { class: "quiet" }),
    data.since ? el("p", [failing ? `${failing} ${failing === 1 ? "job fails" : "jobs fail"} on main: ` : "No job fails on main: ",
                          own("since when?", `/repo/${repo.repo}/since`)]) : null,
    ...matrices(data, query),
    data.since ? flakyTable(data.since) : null,
    level(data.level),
    data.jobs.length ? glossary([...NUMBERS, ...COLUMNS, ...flakyGlossary])
      : el("p", ["No job has reported yet. deploy/downstream says how a back end reports; ", el("code", "crcrctl probe"), " tries it."]),
    badge(repo),
  ]);
}
