// Elements, and a page that changes in place. Text from outside becomes a text node or a checked
// link; nothing is ever parsed as HTML.

// Marks that turn the direction of what follows are shown, and turn nothing.
const plain = (part) => (typeof part === "string" ? part.replace(/[\u202a-\u202e\u2066-\u2069]/g, (mark) => `⟨U+${mark.codePointAt(0).toString(16).toUpperCase()}⟩`) : part);

const isThere = (part) => part !== null && part !== undefined && part !== "";

// content: a string, a node, or a list of them; null is left out. The attribute key names the
// element among its siblings, for patch().
export function el(tag, content, attributes) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {}))
    if (value !== null && value !== undefined) node.setAttribute(name === "key" ? "data-key" : name, value);
  node.append(...[content].flat(9).filter(isThere).map(plain));
  return node;
}

// A list with fixed slots: null leaves its slot empty, so that patch() still finds the others when
// it is filled.
export function slots(list) {
  list.forEach((node, i) => { if (isThere(node)) node.dataset.key ??= `slot ${i}`; });
  return list.filter(isThere);
}

// To a page of ours: path begins with a slash.
export const own = (text, path, attributes) => el("a", text, { href: path, ...attributes });

// The attributes of a link to elsewhere; null where it is no plain http(s) URL.
export const outside = (url) => (/^https?:\/\/[^/@\\]+(\/|$)/.test(url || "") ? { href: url, rel: "noopener noreferrer" } : null);

// To elsewhere; plain text where it is no plain http(s) URL.
export const link = (text, url, attributes) => (outside(url) ? el("a", text, { ...outside(url), ...attributes }) : el("span", text));

// What help says comes where it is asked for, by mouse, finger or key: main.js fills the one popover, the browser shows it.
export const tip = (text, help) => (help ? el("button", text, { type: "button", class: "tip", popovertarget: "tip", popovertargetaction: "show", "data-tip": help }) : text);

// One row of headings, or two where columns have a group, of which short is theirs.
function heads(columns) {
  const head = (text, column, more) => el("th", tip(text, column.help), { scope: "col", role: "columnheader", class: column.look, ...more });
  const grouped = columns.filter((column) => column.group);
  if (!grouped.length) return el("tr", columns.map((column) => head(column.name, column)), { role: "row" });
  const top = columns.flatMap((column, i) => (!column.group ? head(column.name, column, { rowspan: 2 })
    : columns[i - 1]?.group === column.group ? []
      : head(column.group, {}, { scope: "colgroup", colspan: grouped.filter((one) => one.group === column.group).length, class: "group" })));
  return [el("tr", top, { role: "row" }), el("tr", grouped.map((column) => head(column.short, column)), { role: "row" })];
}

// columns: [{ name, look, help, group, short }]; rows: [{ key, cells }]; name: for those who do not see the
// caption. On a narrow screen each row is a card, with the column's name before each value. The
// roles stay those of a table when CSS makes blocks of it.
export function table(name, caption, columns, rows) {
  const body = rows.map(({ key, cells }) => el("tr", cells.map((cell, i) => el(i ? "td" : "th", el("div", cell), {
    class: columns[i].look, "data-label": columns[i].name,
    ...(i ? { role: "cell" } : { role: "rowheader", scope: "row" }) })), { key, role: "row" }));
  return el("div", el("table", [
    el("caption", caption), el("thead", heads(columns), { role: "rowgroup" }),
    el("tbody", body, { role: "rowgroup" })], { role: "table" }),
    { class: "scroll rows", tabindex: "0", role: "region", "aria-label": name });
}

// The numbers of a table in words: on a phone it has no heads.
export const glossary = (columns) => el("details", [el("summary", "Definitions"),
  el("dl", columns.filter((column) => column.help).flatMap((column) => [el("dt", column.name), el("dd", column.help)]))]);

// ---- changing a page in place -------------------------------------------------------------------

function patchAttributes(old, fresh) {
  for (const { name, value } of fresh.attributes)
    if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes])
    if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
}

// Makes old say what fresh says, and keeps it: with its focus, selection and scroll. Whether details
// are open is the reader's own.
function patchNode(old, fresh, mayMove) {
  if (old.isEqualNode(fresh)) return; // most are, of thousands
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  patchAttributes(old, fresh);
  if (old.take) old.take(fresh); // what it holds is its own (charts.js)
  else patch(old, [...fresh.childNodes], mayMove);
}

const keyOf = (node) => node.dataset?.key;

// Those that are there stay where they stand unless they may move; a new one comes before the one
// that it precedes.
function patchByKey(parent, fresh, mayMove) {
  const wanted = new Set(fresh.map(keyOf)), there = new Map();
  for (const node of [...parent.childNodes])
    if (wanted.has(keyOf(node)) && !there.has(keyOf(node))) there.set(keyOf(node), node);
    else node.remove();
  let next = null;
  for (const node of [...fresh].reverse()) {
    let old = there.get(keyOf(node));
    if (old && old.nodeName !== node.nodeName) {
      old.replaceWith(node);
      old = node;
    } else if (old) patchNode(old, node, mayMove);
    if (!old || (mayMove && old.nextSibling !== next)) parent.insertBefore(old || node, next);
    next = old || node;
  }
}

function patchByIndex(parent, fresh, mayMove) {
  fresh.forEach((node, i) => {
    const old = parent.childNodes[i];
    if (!old) parent.append(node);
    else if (old.nodeName === node.nodeName && keyOf(old) === keyOf(node)) patchNode(old, node, mayMove);
    else old.replaceWith(node);
  });
  while (parent.childNodes.length > fresh.length) parent.lastChild.remove();
}

// Makes the children of parent equal to the fresh nodes. mayMove: nobody is reading there, so they
// may be moved into their new order.
export function patch(parent, fresh, mayMove) {
  const keys = new Set(fresh.map(keyOf));
  if (fresh.length && fresh.every(keyOf) && keys.size === fresh.length) patchByKey(parent, fresh, mayMove);
  else patchByIndex(parent, fresh, mayMove);
}
