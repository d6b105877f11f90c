// Charts of points of time, as SVG: they take the colours of the page. Below each large one is a table
// that says the same.
import { el, own, table } from "./dom.js";
import { count, DAY_UTC, seconds, TIME } from "./values.js";

// ---- the span of time -----------------------------------------------------------------------------

// The days that the address asks for; the first of those that there are, when it asks for none.
export function daysOf(search, choices) {
  const days = Number(new URLSearchParams(search).get("days"));
  return choices.includes(days) ? days : choices[0];
}

// Links to the same page with another value of a parameter; hash: where on it to go ("#trends").
export function choice(name, choices, now, hash = "") {
  const link = ([value, text]) => {
    const query = new URLSearchParams(location.search);
    query.set(name, value);
    return own(text, `${location.pathname}?${query}${hash}`, { "aria-current": value === now ? "true" : null });
  };
  return el("nav", [name === "days" ? null : el("span", `${name}:`, { class: "quiet" }), ...choices.map(link)], { class: "choice", "aria-label": name });
}

export const daysChoice = (choices, now, hash) =>
  choice("days", [...choices].sort((a, b) => a - b).map((days) => [days, days === 1 ? "1 day" : `${days} days`]), now, hash);

export const pointName = (at, step) => (step === "hour" ? TIME : DAY_UTC).format(new Date(at));

// ---- small ----------------------------------------------------------------------------------------

function svg(tag, attributes, content = []) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...content.filter(Boolean));
  return node;
}

const HEIGHT = 20, BAR = 4;

// A bar for each point: how many jobs ended, and of them, from below, how many not well.
export function spark(points) {
  const bad = points.map((point) => point.completed - point.successful);
  const all = points.reduce((sum, point) => sum + point.completed, 0), failed = bad.reduce((sum, n) => sum + n, 0);
  const scale = HEIGHT / Math.max(1, ...points.map((point) => point.completed));
  const bar = (n, i, look) => svg("rect", { x: i * BAR, width: BAR - 1, y: (HEIGHT - n * scale).toFixed(1), height: (n * scale).toFixed(1), class: look });
  const worst = bad.indexOf(Math.max(...bad));
  const step = points.length === 24 ? "hour" : "day";
  const text = all ? `By ${step}: of ${count(all)} jobs ${count(failed)} not successful` +
    (failed ? `, most on ${pointName(points[worst].at, step)}: ${count(bad[worst])} of ${count(points[worst].completed)}` : "") : "No job has ended";
  return svg("svg", { class: "spark", viewBox: `0 0 ${points.length * BAR} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": text },
             [svg("title", {}, [text]), ...points.flatMap((point, i) => [bar(point.completed, i, "all"), bar(bad[i], i, "bad")])]);
}

// ---- large ----------------------------------------------------------------------------------------

const UNITS = { percent: (value) => `${Number(value.toFixed(1))} %`, seconds, count };
const say = (unit, value) => (value === null || value === undefined ? "No data" : UNITS[unit](value));

// What an axis may be divided into: seconds as people say them.
const TIMES = [.1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000, 1728000];
const COUNTS = [1, 10, 100, 1e3, 1e4, 1e5, 1e6].flatMap((n) => [n, 2 * n, 5 * n]);

// The values at which the axis is marked, from 0 to what is not below the greatest value.
function axis(unit, greatest) {
  if (unit === "percent") return [0, 25, 50, 75, 100];
  const step = (unit === "seconds" ? TIMES : COUNTS).find((one) => greatest <= 4 * one) ?? greatest / 4;
  return Array.from({ length: Math.max(2, Math.ceil(greatest / step) + 1) }, (_, i) => i * step);
}

// The plot is 100 by 100 and is stretched; lines keep their width.
const middle = (i, n) => ((i + 0.5) * 100) / n;
const isKnown = (value) => value !== null && value !== undefined;
const place = (values, i, top) => `${middle(i, values.length).toFixed(2)} ${(100 - (100 * values[i]) / top).toFixed(2)}`;

// A line between neighbours that are known; a gap stays one, a point alone is a dot. The last point
// is not over yet: its line is dashed.
function line({ values, look }, top) {
  const last = values.length - 1, at = (i) => place(values, i, top), dots = [], parts = { line: [], "line open": [] };
  values.forEach((value, i) => {
    if (!isKnown(value)) return;
    const before = i > 0 && isKnown(values[i - 1]);
    if (before) parts[i === last ? "line open" : "line"].push(`M${at(i - 1)}L${at(i)}`);
    if (values.length <= 40 || (!before && !isKnown(values[i + 1]))) dots.push(`M${at(i)}h.01`);
  });
  return [...Object.entries(parts), ["dots", dots]].map(([kind, path]) => svg("path", { d: path.join(""), class: `${kind} ${look}` }));
}

function bars(sets, top) {
  const n = sets[0].values.length, width = 80 / n, below = new Array(n).fill(0);
  return sets.flatMap(({ values, look }) => values.map((value, i) => {
    const height = (100 * (value || 0)) / top;
    below[i] += height;
    return svg("rect", { x: (middle(i, n) - width / 2).toFixed(2), width: width.toFixed(2), y: (100 - below[i]).toFixed(2), height: height.toFixed(2),
                         class: i === n - 1 ? `${look} open` : look });
  }));
}

const legend = (sets) => (sets.length > 1 ? el("ul", sets.map((set) => el("li", set.name, { class: `key ${set.look}` })), { class: "legend" }) : null);

// plot: { type: "line" or "bar", unit, labels, sets: [{ name, values, look, help }], top }. Each point says its values on hover.
function drawing(plot, name) {
  const { labels, sets, unit } = plot, n = labels.length, values = sets.flatMap((set) => set.values.filter(isKnown));
  const sums = labels.map((_, i) => sets.reduce((sum, set) => sum + (set.values[i] || 0), 0));
  const marks = axis(unit, Math.max(0, ...(plot.type === "bar" ? sums : values))), top = marks.at(-1);
  const words = (i) => `${labels[i]}${i === n - 1 ? ", so far" : ""}: ${sets.map((set) => `${sets.length > 1 ? `${set.name} ` : ""}${say(unit, set.values[i])}`).join(", ")}`;
  const hits = labels.map((_, i) => svg("rect", { x: ((100 * i) / n).toFixed(2), width: (100 / n).toFixed(2), y: 0, height: 100, class: "hit" }, [svg("title", {}, [words(i)])]));
  const body = svg("svg", { y: "8%", height: "80%", width: "100%", viewBox: "0 0 100 100", preserveAspectRatio: "none" }, [
    svg("path", { d: marks.map((mark) => `M0 ${(100 - (100 * mark) / top).toFixed(2)}h100`).join(""), class: "grid" }),
    ...(plot.type === "bar" ? bars(sets, top) : sets.flatMap((set) => line(set, top))), ...hits]);
  const text = (x, y, anchor, said) => svg("text", { x: `${x}%`, y: `${y}%`, "text-anchor": anchor }, [said]);
  const shown = plot.small ? [marks[0], top] : marks;
  return svg("svg", { class: plot.small ? "plot small" : "plot", role: "img", "aria-label": `${name}; the table has the numbers` }, [
    ...shown.map((mark) => text(0, 7 + 80 * (1 - mark / top), "start", say(unit, mark))), body,
    ...(plot.small ? [] : [text(middle(0, n), 97, n > 1 ? "start" : "middle", labels[0]), n > 2 ? text(50, 97, "middle", labels[Math.floor(n / 2)]) : "",
                           n > 1 ? text(100, 97, "end", labels[n - 1]) : ""])]);
}

// One plot among many: two marks, no table.
export const smallPlot = (name, plot) => drawing({ ...plot, small: true }, name);

// help says what the whole shows; heading: "h3" where there is an h2 above it.
export function chart(name, help, plot, heading = "h2") {
  const columns = [{ name: "Time" }, ...plot.sets.map((set) => ({ name: set.name, look: "number", help: set.help }))];
  const rows = plot.labels.map((label, i) => ({ key: `${i} ${label}`, cells: [label, ...plot.sets.map((set) => say(plot.unit, set.values[i]))] }));
  const any = plot.sets.some((set) => set.values.some((value) => (plot.type === "line" ? value !== null : value))); // 0 % is a value
  return el("figure", [el("figcaption", [el(heading, name), el("p", help, { class: "quiet" }), legend(plot.sets)]),
                       any ? drawing(plot, name) : el("p", "No data in this span of time.", { class: "quiet" }),
                       any ? el("details", [el("summary", `${name} as a table`), table(name, name, columns, rows.reverse())]) : null], { key: name });
}
