// Charts of points of time. Small ones are SVG. Large ones are drawn by Chart.js, which is loaded when
// the first of them is shown; below each is a table that says the same.
import { el, own, table } from "./dom.js";
import { count, seconds } from "./values.js";

// ---- the span of time -----------------------------------------------------------------------------

// The days that the address asks for; the first of those that there are, when it asks for none.
export function daysOf(search, choices) {
  const days = Number(new URLSearchParams(search).get("days"));
  return choices.includes(days) ? days : choices[0];
}

// Links to the same page with other days; hash: where on it to go ("#trends").
export function daysChoice(choices, now, hash = "") {
  const link = (days) => {
    const query = new URLSearchParams(location.search);
    query.set("days", days);
    return own(days === 1 ? "1 day" : `${days} days`, `${location.pathname}?${query}${hash}`,
               { "aria-current": days === now ? "true" : null });
  };
  return el("nav", [...choices].sort((a, b) => a - b).map(link), { class: "choice", "aria-label": "span of time" });
}

const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" });
const HOUR = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
export const pointName = (at, step) => (step === "hour" ? HOUR : DAY).format(new Date(at));

// ---- small ----------------------------------------------------------------------------------------

function svg(tag, attributes, content = []) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...content);
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

const UNITS = {
  percent: (value) => `${value.toFixed(value === 100 || value === 0 ? 0 : 1)} %`,
  seconds,
  count,
};
const say = (unit, value) => (value === null || value === undefined ? "–" : UNITS[unit](value));
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const DARK = matchMedia("(prefers-color-scheme: dark)");
// They differ by dashes and points too, not by colours alone.
const COLORS = 6, DASHES = [[], [6, 3], [2, 2], [9, 3, 2, 3]], POINTS = ["circle", "triangle", "rect", "rectRot", "crossRot", "star"];

let library = null; // one promise for all
function loadLibrary() {
  library ??= import("/assets/chart.min.js").then(() => globalThis.Chart);
  library.catch(() => { library = null; });
  return library;
}

function dataset({ name, values, look }, i, plot) {
  const line = color(look ? `--${look}` : `--series${(i % COLORS) + 1}`);
  return { label: name, data: values, borderColor: line, backgroundColor: plot.type === "bar" ? line : "transparent", borderWidth: 2,
           borderDash: plot.type === "bar" ? [] : DASHES[Math.floor(i / COLORS + i) % DASHES.length], pointStyle: POINTS[i % POINTS.length],
           pointRadius: values.length > 40 ? 0 : 3, spanGaps: true, tension: 0 };
}

// Nothing moves: a chart that is changed shows its new values at once.
function options(plot) {
  const text = color("--quiet"), grid = { color: color("--line") };
  const ticks = (more) => ({ color: text, ...more });
  return {
    animation: false, responsive: true, maintainAspectRatio: false, interaction: { mode: "index", intersect: false },
    plugins: { legend: { labels: { color: color("--ink"), usePointStyle: plot.type !== "bar" } },
               tooltip: { callbacks: { label: (item) => `${item.dataset.label}: ${say(plot.unit, item.parsed.y)}` } } },
    scales: { x: { stacked: plot.stacked, grid, ticks: ticks({ maxRotation: 0, autoSkipPadding: 16 }) },
              y: { stacked: plot.stacked, grid, beginAtZero: true, max: plot.unit === "percent" ? 100 : undefined,
                   ticks: ticks({ callback: (value) => say(plot.unit, value), precision: plot.unit === "count" ? 0 : undefined }) } },
  };
}

// Holds its canvas; patch() gives it what is new by take().
class ChartPlot extends HTMLElement {
  connectedCallback() {
    this.again = () => this.draw();
    DARK.addEventListener("change", this.again);
    this.draw();
  }

  disconnectedCallback() {
    DARK.removeEventListener("change", this.again);
    this.chart?.destroy();
    this.chart = null;
  }

  take(fresh) {
    this.plot = fresh.plot;
    this.draw();
  }

  async draw() {
    let Chart;
    try {
      Chart = await loadLibrary();
    } catch {
      this.textContent = "The chart could not be loaded: the table below has its numbers.";
      return;
    }
    if (!this.isConnected) return;
    const { plot } = this, sets = plot.sets.map((set, i) => dataset(set, i, plot));
    if (!this.chart) {
      const canvas = el("canvas");
      this.replaceChildren(canvas);
      this.chart = new Chart(canvas, { type: plot.type, data: { labels: plot.labels, datasets: sets }, options: options(plot) });
      return;
    }
    const old = this.chart.data.datasets; // one that the reader has hidden stays so
    this.chart.data = { labels: plot.labels, datasets: sets.map((set) => Object.assign(old.find((one) => one.label === set.label) ?? {}, set)) };
    this.chart.options = options(plot);
    this.chart.update("none");
  }
}
customElements.define("chart-plot", ChartPlot);

// plot: { type: "line" or "bar", stacked, unit, labels, sets: [{ name, values, look, help }] }; help
// says what the chart shows; heading: "h3" where there is an h2 above it.
export function chart(name, help, plot, heading = "h2") {
  const node = el("chart-plot", null, { role: "img", "aria-label": `${name}; the table below it has the numbers` });
  node.plot = plot;
  const columns = [{ name: "Time" }, ...plot.sets.map((set) => ({ name: set.name, look: "number", help: set.help }))];
  const rows = plot.labels.map((label, i) => ({ key: `${i} ${label}`, cells: [label, ...plot.sets.map((set) => say(plot.unit, set.values[i]))] }));
  return el("figure", [el("figcaption", [el(heading, name, { title: help }), el("p", help, { class: "quiet" })]), node,
                       el("details", [el("summary", `${name} as a table`), table(name, name, columns, rows.reverse())])], { key: name });
}
