// "/pipeline": what waits, where, since when and why; what is in the dead-letter queue, and the command that puts it back.
import { el, glossary, slots, table } from "./dom.js";
import { DLQ_OLDER, NOT_REACHED, READING, WAITS_HELP, waits, wellness } from "./health.js";
import { copyButton, count, deliveryLink, said, seconds, when } from "./values.js";

export const api = () => "/api/crcr/pipeline";

const GROUPS = [
  { name: "Role", help: "Who reads. Its consumer group has the name on hover." },
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
  { name: "Entry", help: "PARTITION@OFFSET, as crcrctl dlq takes it." },
  { name: "When", look: "when", help: "When it was parked." },
  { name: "Class", help: "poison: it cannot be read. refused: the other side said no. exhausted: all attempts are used up." },
  { name: "Where from" }, { name: "Why", look: "title" },
  { name: "What to do", look: "title", help: "show prints all of it; replay puts it back where it came from, when the cause is mended; dlq drop says that nothing is to be done." },
];

function oldest(one) {
  if (!one) return el("span", "–", { class: "quiet" });
  return [
    when(one.written_at), ` ${one.position} `, one.delivery ? ["delivery ", deliveryLink(one.delivery)] : said(one.key || ""),
    one.repos ? [" for ", said(one.repos)] : "", one.attempt > 1 ? `, attempt ${one.attempt}` : "",
    one.due_at ? [", not before ", when(one.due_at), one.to_topic ? [", then to ", said(one.to_topic)] : ""] : "",
    one.error ? [": ", said(one.error)] : ""];
}

const groupRows = (groups) => groups.flatMap((group) => group.topics.map((topic) => ({ key: `${group.group} ${topic.topic}`, cells: [
  el("span", group.role, { title: group.group }), el("code", topic.topic), wellness(waits(group.role, topic.seconds)), count(topic.records), seconds(topic.seconds), oldest(topic.oldest)] })));

const topicRow = (topic) => ({ key: topic.topic, cells: [
  el("code", topic.topic), count(topic.partitions), count(topic.records), when(topic.oldest_at), when(topic.newest_at)] });

const command = (text) => el("div", [el("code", text), " ", copyButton(text, text)]);

// A row does not go back: its job is folded once more, which publishes the newest one.
const putBack = (entry) => ((entry.source_topic || "").endsWith("results") && entry.delivery
  ? `crcrctl replay --topic callbacks --delivery ${entry.delivery}` : `crcrctl dlq replay ${entry.position}`);

const entryRow = (entry) => ({ key: entry.position, cells: [
  el("code", entry.position), when(entry.parked_at), said(entry.class || "–"),
  [said(entry.source_topic || "–"), " ", entry.delivery ? deliveryLink(entry.delivery) : said(entry.key || ""), entry.repos ? [" ", said(entry.repos)] : ""],
  said(entry.error || "–"), [command(putBack(entry)), command(`crcrctl dlq show ${entry.position}`)]] });

function queue(dlq) {
  if (dlq.open === null) return el("p", READING, { class: "quiet" });
  if (!dlq.open && dlq.more) return el("p", [DLQ_OLDER, el("code", "crcrctl dlq list")]);
  if (!dlq.open) return el("p", "Nothing is left over: every entry is replayed or dropped, or none came in 30 days.");
  const rest = dlq.open - dlq.entries.length;
  return table("Dead-letter queue", [`${dlq.more ? "More than " : ""}${count(dlq.open)} not resolved, the newest first`,
    rest > 0 ? [`; ${count(rest)} are not shown: `, el("code", "crcrctl dlq list")] : ""], QUEUE, dlq.entries.map(entryRow));
}

export function show(data) {
  return slots([
    el("h1", "Pipeline"),
    el("p", data.looked_at ? ["Kafka as of ", when(data.looked_at)] : NOT_REACHED, { class: "quiet" }),
    data.error ? el("p", ["The topics could not be looked at again: ", said(data.error)], { class: "error", role: "alert" }) : null,
    el("h2", "What waits"),
    data.groups.length ? table("What waits", "What each role has not finished yet", GROUPS, groupRows(data.groups)) : null,
    el("h2", "Dead-letter queue", { id: "dlq" }), queue(data.dlq),
    el("h2", "Topics"),
    data.topics.length ? table("Topics", "What is kept", TOPICS, data.topics.map(topicRow)) : null,
    glossary([...GROUPS, ...TOPICS, ...QUEUE]),
  ]);
}
