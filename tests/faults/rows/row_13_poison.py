"""One record in a hundred is poison: in what comes in, and straight in our topics."""
import json
import random

from lib.kafka import write
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


def poison_topics(case, chance, count):
    """Foreign records, with our headers, with some of them, with none."""
    for number in range(count):
        kind, body = chance.choice(sorted(BODIES.items()))
        topic = TOPICS[number % len(TOPICS)]
        headers = chance.choice([HEADERS, {}, {"event": "pull_request"},
                                 {"delivery": "x" * 10_000, "event": "push"}])
        key = chance.choice(["pytorch/pytorch#1", "", "\u202eevil", "org-a/backend|pytorch/pytorch#1"])
        write(case.kafka.brokers, case.relay.topic(topic), key, body, {**headers, "kind_of_poison": kind})


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
    case = world.case("row-13").start()
    load = case.load(rate=200, on=0.5, off=2.0, count=count)
    refused = {}
    for kind, body in BODIES.items():
        status, _, _ = case.relay.send_webhook(body)
        refused[kind] = status
    poison_topics(case, chance, count // 100)
    big = big_body(case)
    load.wait()
    case.settle()
    from rows.row_04_broker_away import rss_mb
    used = {part: rss_mb(case.relay.parts[part]) for part in ("ingest", "dispatcher", "reporter")}
    result = case.result(ROW, NAME, f"{count // 100} records in {len(TOPICS)} topics, {len(BODIES)} webhooks, 25 MB",
                         note=", ".join(f"{part} {mb:.0f} MB" for part, mb in used.items()))
    dead = case.checker.counts["dlq poison"]
    result.note += f"; {dead} in the DLQ as poison"
    if not dead:
        result.problems.append("nothing was parked as poison")
    if max(used.values()) > RSS_MAX_MB:
        result.problems.append(f"memory: {used}")
    for kind, status in refused.items():
        if status not in (400, 200):
            result.problems.append(f"a webhook with {kind} was answered {status}")
    if not all((big, repo) in case.checker.dispatches for repo in case.checker.eligible):
        result.problems.append("the webhook of 25 MB was not dispatched everywhere")
    return result
