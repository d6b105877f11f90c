"""One record in a hundred is poison: in what comes in, and straight in our topics."""
import collections
import json
import random
import time

from lib.kafka import write_all
from lib.relay import http

ROW, NAME = "13", "poison, 1 %"
RSS_MAX_MB = 256
HEADERS = {"event": "pull_request", "action": "opened", "delivery": "poison", "pr": "1",
           "head_sha": "c" * 40, "received_ms": "1", "source": "webhook"}

# What JSON can do to a reader.
BODIES = {
    "bad JSON": b'{"number": 1,',
    "nesting 100,000": b"[" * 100_000 + b"]" * 100_000,
    "a NUL": b'{"number": 1, "title": "a\x00b"}',
    "a lone surrogate": b'{"number": 1, "title": "\\ud800"}',
    "duplicate keys": b'{"number": 1, "number": 2, "action": "opened", "action": "closed"}',
    "a huge number": b'{"number": ' + b"9" * 5000 + b"}",
    "no UTF-8": b'{"title": "\xff\xfe"}',
    "nothing": b"",
    "not an object": b'"text"',
}
TOPICS = ("events", "dispatch.l1", "dispatch.l4", "callbacks", "dispatches", "reconcile", "delay.10s")


# With our headers, with some of them, with some that are none, with none.
HEADINGS = (HEADERS, {}, {"event": "pull_request"}, {"delivery": "x" * 10_000, "event": "push"})
A_TOPIC = len(BODIES) * len(HEADINGS)
KEYS = ("pytorch/pytorch#1", "", "\u202eevil", "org-a/backend|pytorch/pytorch#1")
# A record of reconcile says nothing but its key: one is parked for all that have the same.
PARKED = {topic: len(KEYS) if topic == "reconcile" else A_TOPIC for topic in TOPICS}


def poison_topics(case, chance):
    """Each kind of body under each kind of headers in each topic, shuffled; a key at random."""
    for topic in TOPICS:
        every = [(chance.choice(KEYS), body, {**headers, "kind_of_poison": f"{kind}, headers {number}"}, int(time.time() * 1000))
                 for kind, body in BODIES.items() for number, headers in enumerate(HEADINGS)]
        chance.shuffle(every)
        write_all(case.kafka.brokers, case.relay.topic(topic), every)
    return len(TOPICS) * A_TOPIC


def big_body(case):
    """25 MiB of pull request: arrives, or is refused by name; never stops anything."""
    from load import body
    raw = json.dumps(body(1, 999_999, "x" * (24 << 20))).encode()
    status, _, delivery = case.relay.send_webhook(raw)
    assert status == 202, status
    return delivery


def run(world, short=False):
    count = 1000 if short else 10_000 if world.long else 3000
    chance = random.Random(f"{world.seed}.poison")
    case = world.case("row-13", gives_up=True).start()
    load = case.load(rate=200, on=0.5, off=2.0, count=count)
    refused = {}
    for kind, body in BODIES.items():
        status, _, _ = case.relay.send_webhook(body)
        refused[kind] = status
    foreign = poison_topics(case, chance)
    big = big_body(case)
    load.wait()
    case.settle()
    from rows.row_04_broker_away import rss_mb
    used = {part: rss_mb(case.relay.parts[part]) for part in ("ingest", "dispatcher", "reporter")}
    result = case.result(ROW, NAME, f"{foreign} records in {len(TOPICS)} topics, {len(BODIES)} webhooks, 25 MB",
                         note=", ".join(f"{part} {mb:.0f} MB" for part, mb in used.items()))
    dead = case.checker.counts["dlq poison"]
    result.note += f"; {dead} in the DLQ as poison"
    buried = collections.Counter(topic for topic, _ in {
        (headers.get("source_topic", "").removeprefix(case.relay.prefix), headers.get("kind_of_poison"))
        for parked in case.checker.parked.values() for headers in parked if headers.get("class") == "poison"})
    if few := {topic: f"{buried[topic]} of {all_of_them}" for topic, all_of_them in PARKED.items()
               if buried[topic] < all_of_them}:
        result.problems.append(f"parked as poison were {few}")
    if max(used.values()) > RSS_MAX_MB:
        result.problems.append(f"memory: {used}")
    for kind, status in refused.items():
        if status not in (400, 200):
            result.problems.append(f"a webhook with {kind} was answered {status}")
    if not all((big, repo) in case.checker.dispatches for repo in case.checker.eligible):
        result.problems.append("the webhook of 25 MB was not dispatched everywhere")
    return result
