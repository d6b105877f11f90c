// "/pipeline": the stages in a line, each with how late it is; what waits, where, since when and why; the dead-letter queue by its
// causes, with the command for each.
import { el, glossary, slots, table, tip } from "./dom.js";
import { budgetOf, DLQ_OLDER, GOOD, NOT_REACHED, READING, redisOf, WAITS_HELP, waits, wellness } from "./health.js";
import { copyButton, count, deliveryLink, plural, said, seconds, when } from "./values.js";

export const api = () => "/api/crcr/pipeline";

const GROUPS = [
  { name: "Role", help: "Who reads. It says the name of its consumer group." },
  { name: "Topic" },
  { name: "State", help: WAITS_HELP },
  { name: "Records", look: "number", help: "Between what the group has committed and the end of the topic, of what is still there." },
  { name: "Waited", look: "number", help: "For how long the oldest record that is not committed has waited, by its time in Kafka; in delay topics since its time came." },
  { name: "Oldest", look: "title", help: "That record: when it was written, of which delivery, for which downstreams, and why it waits." },
];
const TOPICS = [
  { name: "Topic" }, { name: "Partitions", look: "number" },
  { name: "Records", look: "number", help: "Offsets between the oldest and the newest record. Compaction leaves gaps (results): there it is at most so many." },
  { name: "Oldest", look: "when", help: "The time of the oldest record, read once a minute." },
  { name: "Newest", look: "when", help: "The time of the newest record, read once a minute." },
];
const QUEUE = [
  { name: "Entries", look: "number" },
  { name: "Newest", look: "when", help: "When the newest of them was parked." },
  { name: "Class", help: "poison: it cannot be read, and would come back at once. refused: the other side said no. exhausted: all attempts are used up." },
  { name: "Where from" }, { name: "Why", look: "title" },
  { name: "What to do", look: "title", help: "show prints all of one; replay puts them back where they came from, when the cause is mended; drop says that nothing is to be done." },
];

function due(one) {
  if (!one.due_at) return "";
  return [Date.parse(one.due_at) > Date.now() ? ", not before " : ", due since ", when(one.due_at), one.to_topic ? [", then to ", said(one.to_topic)] : ""];
}

function oldest(one) {
  if (!one) return el("span", "–", { class: "quiet" });
  return [
    when(one.written_at), ` ${one.position} `, one.delivery ? ["delivery ", deliveryLink(one.delivery)] : said(one.key || ""),
    one.repos ? [" for ", said(one.repos)] : "", one.attempt > 1 ? `, attempt ${one.attempt}` : "", due(one), one.error ? [": ", said(one.error)] : ""];
}

const name = (topic) => el("code", topic, { class: "name" });
const groupRow = (group, topic) => ({ key: `${group.group} ${topic.topic}`, cells: [
  tip(group.role, `Consumer group ${group.group}`), name(topic.topic), wellness(waits(group.role, topic.seconds)), count(topic.records), seconds(topic.seconds), oldest(topic.oldest)] });

const topicRow = (topic) => ({ key: topic.topic, cells: [
  name(topic.topic), count(topic.partitions), count(topic.records), when(topic.oldest_at), when(topic.newest_at)] });

// ---- the line -----------------------------------------------------------------------------------

const STAGES = [["GitHub calls in", ["router"]], ["Dispatch", ["l4", "l3", "l2", "l1", "delay"]], ["Results", ["fold", "reconcile", "forward"]]];

// What a stage waits for: its roles, each with its lag; and what they all need.
function line(data) {
  const latest = new Map(data.groups.map((group) => [group.role, Math.max(...group.topics.map((topic) => topic.seconds))]));
  const item = (label, well, text, href) => el("li", [href ? el("a", label, { href }) : label, " ", wellness(well), " ", el("small", text, { class: "quiet" })], { class: "stage" });
  const [redis, , , redisShort] = redisOf(data.redis), [budget, , , budgetShort] = budgetOf(data.budget);
  return el("ol", [
    ...STAGES.map(([title, roles]) => el("li", [el("h2", title), el("ul", roles.filter((role) => latest.has(role)).map((role) =>
      item(role, waits(role, latest.get(role)), latest.get(role) ? `${seconds(latest.get(role))} late` : "")))])),
    el("li", [el("h2", "What all need"), el("ul", [item("Redis", redis, redisShort || ""), item("GitHub budget", budget, budgetShort || "", "#budget")])])],
    { class: "line", "aria-label": "stages" });
}

function budgetPart({ budget }) {
  const [well, text, items] = budgetOf(budget);
  return el("section", [el("h2", ["GitHub budget ", wellness(well)], { id: "budget" }), el("p", text), items?.length ? el("ul", items.map((item) => el("li", item))) : null]);
}

// ---- the dead-letter queue ----------------------------------------------------------------------

// Broken between words only.
const command = (text) => el("div", [el("code", text.split(" ").map((word, i) => [i ? " " : "", el("span", word, { class: "word" })])), " ", copyButton(text, text)]);
const shown = (topic) => (topic || "").split(".").slice(-2).join("."); // as crcrctl takes it: without a prefix

// Entries of one class, source, backend and error are one row: [entry, …], the newest first. A number in the error is no cause of its own.
function causes(entries) {
  const groups = new Map();
  for (const one of entries) {
    const key = [one.class, one.source_topic, one.repos, (one.error || "").replace(/\d{2,}/g, "#")].join("\n");
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return [...groups];
}

// A filter that takes this cause alone, where crcrctl has one; else their positions.
function chosenBy(all, group) {
  const [one] = group, source = shown(one.source_topic), same = all.filter((other) => other.class === one.class && other.source_topic === one.source_topic && other.repos === one.repos);
  return same.length === group.length && group.length > 1 && one.repos && !one.repos.includes(",") && source ? `--class ${one.class} --source ${source} --repo ${one.repos}`
    : group.slice(0, 20).map((other) => other.position).join(" ");
}

// What cannot be read comes back at once. A row does not go back: its job is folded once more, which publishes the newest one.
function whatToDo(all, group) {
  const [one] = group, by = chosenBy(all, group), show = command(`crcrctl dlq show ${one.position}`);
  if (one.class === "poison") return [show, command(`crcrctl dlq drop ${by}`)];
  if ((one.source_topic || "").endsWith("results") && one.delivery) return [command(`crcrctl replay --topic callbacks --delivery ${one.delivery}`), show];
  return [command(`crcrctl dlq replay ${by}`), show];
}

const causeRow = (all) => ([key, group]) => ({ key, cells: [
  group.length === 1 ? el("code", group[0].position) : count(group.length), when(group[0].parked_at), said(group[0].class || "–"),
  [name(group[0].source_topic || "–"), " ", group[0].repos ? [said(group[0].repos), " "] : "", group[0].delivery ? deliveryLink(group[0].delivery) : said(group[0].key || "")],
  said(group[0].error || "–"), whatToDo(all, group)] });

function queue(dlq) {
  if (dlq.open === null) return el("p", READING, { class: "quiet" });
  if (!dlq.open && dlq.more) return el("p", [DLQ_OLDER, el("code", "crcrctl dlq list")]);
  if (!dlq.open) return el("p", "Nothing is left over: every entry is replayed or dropped, or none came in 30 days.");
  const rest = dlq.open - dlq.entries.length, groups = causes(dlq.entries);
  return table("Dead-letter queue", [`${dlq.more ? "More than " : ""}${count(dlq.open)} not resolved, of ${plural(groups.length, "cause")}, the newest first`,
    rest > 0 ? [`; ${count(rest)} are not shown: `, el("code", "crcrctl dlq list")] : ""], QUEUE, groups.map(causeRow(dlq.entries)));
}

// ---- the page -----------------------------------------------------------------------------------

function waiting(groups) {
  const all = groups.flatMap((group) => group.topics.map((topic) => ({ group, topic }))), idle = ({ group, topic }) => !topic.records && waits(group.role, topic.seconds) === GOOD;
  const busy = all.filter((one) => !idle(one)), rows = (list) => list.map(({ group, topic }) => groupRow(group, topic)), rest = all.filter(idle);
  return [busy.length ? table("What waits", "What each role has not finished yet", GROUPS, rows(busy)) : null,
    rest.length ? el("details", [el("summary", `${plural(rest.length, "topic has", "topics have")} nothing that waits`), table("Nothing waits", "Read up to their end", GROUPS, rows(rest))], { class: "fold" }) : null];
}

export function show(data) {
  const [busy, idle] = waiting(data.groups);
  return slots([
    el("h1", "Pipeline"),
    el("p", data.looked_at ? ["Kafka as of ", when(data.looked_at)] : NOT_REACHED, { class: "quiet" }),
    data.error ? el("p", ["The topics could not be looked at again: ", said(data.error)], { class: "error", role: "alert" }) : null,
    data.redis.error ? el("p", ["Redis: ", ...redisOf(data.redis)[1]], { class: "error", role: "alert" }) : null,
    data.groups.length ? line(data) : null,
    el("h2", "What waits"), busy, idle,
    el("h2", "Dead-letter queue", { id: "dlq" }), queue(data.dlq),
    budgetPart(data),
    el("h2", "Topics"),
    data.topics.length ? table("Topics", "What is kept", TOPICS, data.topics.map(topicRow)) : null,
    glossary([...GROUPS, ...TOPICS, ...QUEUE]),
  ]);
}
