// Which page it is, when it is asked for anew, and what is shown while there is no answer.
import { el, own, patch } from "./dom.js";
import { addressOf } from "./find.js";
import { follow, isFollowing, isLive, leave, tagOf } from "./live.js";
import { ages, TIME_S, ZONE } from "./values.js";
import * as delivery from "./delivery.js";
import * as home from "./home.js";
import * as metrics from "./metrics.js";
import * as pipeline from "./pipeline.js";
import * as pr from "./pr.js";
import * as prs from "./prs.js";
import * as repo from "./repo.js";
import * as since from "./since.js";

const REFRESH_MS = 5000, REDRAW_MS = 60000, ANSWER_MS = 15000;
const byId = (id) => document.getElementById(id);
const content = byId("main"), banner = byId("banner"), auto = byId("auto");

// A page: api(match, query) is where its data is, show(data, query) its elements, and more(data,
// get, query), where it has one, asks for what belongs to it. partial: it shows what it can get where data is missing. paths.c
// knows the same paths.
const PAGES = [
  [/^\/repo\/([^/]+\/[^/]+)\/since\/?$/, since, (m) => `No job of ${m[1]} is known: its jobs are on its own page, the backends on the first one.`],
  [/^\/repo\/([^/]+\/[^/]+)\/?$/, repo, (m) => `No backend ${m[1]} is listed or has reported: the list is on the first page.`],
  [/^\/prs\/?$/, prs, () => ""],
  [/^\/pipeline\/?$/, pipeline, () => ""],
  [/^\/pr\/(\d+)\/?$/, pr, (m) => `Nothing is known of pull request ${m[1]}: nothing was dispatched for it, or longer ago than CRCR_STATUS_TTL.`],
  [/^\/delivery\/([A-Za-z0-9-]+)\/?$/, delivery, (m) => `Nothing is known of delivery ${m[1]}: it is older than CRCR_STATUS_TTL, or was for no backend. ` +
    `The first 8 characters of an id are enough where it was dispatched. Trace: crcrctl trace ${m[1]}`],
  [/^\/metrics-board\/?$/, metrics, () => ""],
  [/^\/$/, home, () => ""],
];

const LIST = [["/", "is the relay OK, and all backends"], ["/prs", "pull requests"], ["/pipeline", "what waits, and the dead-letter queue"],
  ["/metrics-board", "all backends over time"]];
const LIST_OF_ONE = [["/pr/<number>", "a pull request"], ["/delivery/<id>", "what became of one event"], ["/repo/<owner>/<name>", "a backend"],
  ["/repo/<owner>/<name>/since", "since when it fails"]];

function pageOf(path) {
  for (const [pattern, page, unknown] of PAGES) {
    const match = path.match(pattern);
    if (match) return { page, match, unknown: () => unknown(match) };
  }
  return null;
}

const address = () => location.pathname + location.search;
let shown = null;  // the address that is on the page; null: no good data is
let drawn = null;  // what it was made from, and when: { page, data, json, at }; null: from no data
let seenAt = null; // when the server last said that it is so; null: it has not
let turn = 0;      // of the newest question: answers to others are not shown
let asking = false;

// ---- what is on the page ------------------------------------------------------------------------

function tell(text) {
  if (banner.textContent !== text) banner.textContent = text;
  banner.hidden = text === "";
}

function showFresh() {
  const how = !seenAt ? "" : isLive() ? "Live, as of" : "As of", asked = auto.checked && !isFollowing() ? ", asked every 5 s" : "";
  const text = seenAt ? `${how} ${TIME_S.format(seenAt)}${asked}.` : "", node = byId("fresh");
  if (node.textContent !== text) node.textContent = text;
}

// Nobody reads, points or types there.
const mayMove = () => !content.matches(":hover") && (!content.contains(document.activeElement) || document.activeElement === content) &&
  getSelection().isCollapsed;

// Shows another page, or other data of the same one.
function put(nodes, isNew) {
  if (isNew) content.replaceChildren(...nodes);
  else patch(content, nodes, mayMove());
  document.title = `${content.querySelector("h1").textContent.trim()} – Cross-repository CI`;
}

// The last good data stays below it.
function problem(text) {
  const stays = shown === address(), since = stays ? ` The data below is of ${TIME_S.format(seenAt)}.` : "";
  tell(`${text}${since}${auto.checked ? " It is asked for again every 5 s." : ""}`);
  if (!stays) {
    put([el("h1", "Nothing to show yet")], true);
    shown = drawn = seenAt = null;
  }
  showFresh();
}

function unknown(text) {
  tell("");
  put([el("h1", "Nothing to show"), el("p", text, { class: "error", role: "alert" })], true);
  shown = drawn = null;
}

function noSuchPage() {
  if (shown === address()) return;
  tell("");
  drawn = seenAt = null;
  showFresh();
  put([el("h1", "No such page"), el("p", ["There is nothing at ", el("code", location.pathname), ". These are the pages:"], { class: "error", role: "alert" }),
    el("ul", [...LIST.map(([path, what]) => el("li", [own(path, path), `: ${what}`])),
              ...LIST_OF_ONE.map(([path, what]) => el("li", [el("code", path), `: ${what}`]))])], true);
  shown = address();
}

// what: { page, data, json }.
function redraw(what, isNew) {
  put(what.page.show(what.data, new URLSearchParams(location.search)), isNew);
  drawn = { ...what, at: Date.now() };
}

function draw(page, data, entered) {
  const json = JSON.stringify(data), isNew = shown !== address();
  if (isNew || json !== drawn.json) redraw({ page, data, json }, isNew);
  tell("");
  shown = address();
  if (!isNew) return;
  if (history.state?.top) window.scrollTo(0, history.state.top);
  else if (location.hash) location.replace(location.hash); // it could not be scrolled to before it was there
  else window.scrollTo(0, 0);
  if (entered) content.focus({ preventScroll: true });
}

// ---- asking -------------------------------------------------------------------------------------

// null: there is nothing of that name. Throws what to say when there is no answer. answers: gets the
// URL, and the digest of what came.
async function get(url, answers) {
  const seen = { url, tag: "" };
  answers.push(seen);
  let answer;
  try {
    answer = await fetch(url, { headers: { Accept: "application/json" }, signal: AbortSignal.timeout(ANSWER_MS) });
  } catch (error) {
    throw new Error(`No answer from the server (${error.message}).`, { cause: error });
  }
  const data = await answer.json().catch(() => null);
  seen.tag = tagOf(answer);
  if (answer.status === 404 && data?.detail) return null;
  if (!answer.ok || !data) throw new Error(`The server said ${answer.status}: ${data?.detail || "no JSON"}.`);
  return data;
}

// What is on the page is now, until the server says that it has changed; where it cannot say that,
// it is asked for every 5 s.
function keepUp(answers) {
  if (auto.checked && !document.hidden) follow(answers, { changed: () => ask(false), unchanged: confirmed, failed: again });
  confirmed();
}

function confirmed() {
  seenAt = new Date();
  showFresh();
}

// What a page goes on with when its first answer is missing: the last good one.
function without(page, error) {
  if (!page.partial) throw error;
  const old = shown === address() && drawn ? drawn.data : {};
  return { ...old, missing: error.message, asOf: old.asOf ?? seenAt?.toISOString() };
}

// entered: the reader has come here by a link of ours.
async function ask(entered) {
  const found = pageOf(location.pathname), mine = ++turn;
  byId("raw").hidden = !found;
  if (!found) {
    leave();
    noSuchPage();
    return;
  }
  const url = found.page.api(found.match, location.search);
  byId("raw").href = url;
  asking = true;
  try {
    const answers = [], data = await get(url, answers).catch((error) => without(found.page, error));
    if (data && found.page.more) await found.page.more(data, (more, live = true) => get(more, live ? answers : []), new URLSearchParams(location.search));
    if (mine !== turn) return;
    if (data) draw(found.page, data, entered);
    else unknown(found.unknown());
    keepUp(answers);
  } catch (error) {
    if (mine !== turn) return;
    leave();
    problem(error.message);
  } finally {
    if (mine === turn) asking = false;
  }
}

// A page that nobody sees is not kept up to date. What is late or old becomes so without any news:
// once a minute the same data is drawn again.
function again() {
  ages();
  if (!auto.checked || document.hidden) leave();
  else if (!asking && !isFollowing()) ask(false);
  if (!document.hidden && drawn && shown === address() && Date.now() - drawn.at >= REDRAW_MS) redraw(drawn, false);
  showFresh();
}

// ---- going elsewhere ----------------------------------------------------------------------------

function go(path) {
  history.replaceState({ top: window.scrollY }, "");
  history.pushState(null, "", path);
  ask(true);
}

// The button itself answers: the footer may be off the screen.
function copy(button) {
  const answer = (text, more) => {
    button.textContent = text;
    byId("said").textContent = `${text}: ${more}`;
    setTimeout(() => { button.textContent = "copy"; }, 2000);
  };
  navigator.clipboard.writeText(button.dataset.copy).then(() => answer("copied", button.dataset.copy), (error) => answer("not copied", error.message));
}

// Before the browser shows the popover of a button: what it says, and where.
function define(button) {
  const node = byId("tip"), at = button.getBoundingClientRect(), below = at.bottom < 0.7 * innerHeight;
  node.textContent = button.dataset.tip;
  node.style.cssText = `left: ${Math.max(16, Math.min(at.left, innerWidth - 336))}px; ${below ? `top: ${at.bottom + 8}px` : `bottom: ${innerHeight - at.top + 8}px`}`;
}

document.addEventListener("click", (event) => {
  const term = event.target.closest("[data-tip]"), button = event.target.closest("[data-copy]"), anchor = event.target.closest("a");
  if (button) copy(button);
  if (term) define(term);
  if (!anchor || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (anchor.origin !== location.origin || !pageOf(anchor.pathname) || anchor.hash) return;
  event.preventDefault();
  go(anchor.pathname + anchor.search);
});
byId("find").addEventListener("submit", async (event) => {
  event.preventDefault();
  go(await addressOf(byId("what").value, (url) => get(url, [])));
});
// A filter is an address, too: so "Back" shows the box as it was.
content.addEventListener("submit", (event) => {
  event.preventDefault();
  const given = [...new FormData(event.target)].filter(([, value]) => value.trim());
  go(`${event.target.getAttribute("action")}${given.length ? `?${new URLSearchParams(given)}` : ""}`);
});
window.addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  shown = null; // what was typed into it is not its address
  ask(false);
});
window.addEventListener("popstate", () => {
  if (shown !== address()) ask(true); // else it is another part of the same page
});
document.addEventListener("visibilitychange", again);
auto.addEventListener("change", again);
setInterval(again, REFRESH_MS);

// Links of before these paths: /#/pr/1
history.scrollRestoration = "manual";
byId("zone").textContent = `Times: ${ZONE}, 24 h`;
if (location.pathname === "/" && pageOf(location.hash.slice(1))) history.replaceState(null, "", location.hash.slice(1));
ask(false);
