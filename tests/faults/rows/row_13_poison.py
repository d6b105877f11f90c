"""One record in a hundred is poison: in what comes in, and straight in our topics."""
import collections
import hashlib
import hmac
import json
import random
import socket
import time

from load import PULL_REQUESTS, body as webhook
from lib.kafka import write_all
from lib.relay import SECRET, http

ROW, NAME = "13", "poison, 1 %"
RSS_MAX_MB = 256
WAIT_MAX_MS = 30_000  # of a webhook for its slowest dispatch, in each tier
BUSY_MAX_MS = 90_000  # the short form, beside others
BODY_MAX_BYTES = 25 << 20
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
TOPICS = ("events", "dispatch.l1", "dispatch.l2", "dispatch.l3", "dispatch.l4", "callbacks", "dispatches", "reconcile", "results",
          "delay.10s", "delay.1m", "delay.10m", "delay.1h")
DAEMONS = ("ingest", "dispatcher", "reporter")

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


def poison_allowlist(case):
    """Under the key of the list in force; how many there are. "nothing" is none: an empty list is a valid one."""
    every = [("allowlist", body, headers, int(time.time() * 1000)) for kind, body in BODIES.items() if kind != "nothing"
             for headers in HEADINGS]
    write_all(case.kafka.brokers, case.relay.topic("allowlist"), every)
    return len(every)


def allowlist_problems(case, unreadable):
    """Each daemon reads the topic, refuses each of those, and goes on with the list that it has."""
    said = {part: case.relay.parts[part].text().count('"allowlist_record_refused"') for part in DAEMONS}
    in_force = case.relay.metric("dispatcher", "crcr_allowlist_repositories")
    return ([f"of {unreadable} unreadable allowlists {part} refused {n}" for part, n in said.items() if n < unreadable] +
            ([f"{in_force:.0f} repositories are in force"] if in_force != len(case.downstreams) else []))


def without(case, header):
    """The answer to a webhook that is good but for a header that is missing."""
    raw = json.dumps(webhook(1, 999_998)).encode()
    headers = {"Content-Type": "application/json", "X-GitHub-Event": "pull_request", "X-GitHub-Delivery": f"without-{header}",
               "X-Hub-Signature-256": "sha256=" + hmac.new(SECRET.encode(), raw, hashlib.sha256).hexdigest()}
    del headers[header]
    return http("POST", case.relay.url("ingest", "/github/webhook"), raw, headers)[0]


def over_the_limit(case):
    """The answer to a webhook of more than 25 MiB; it comes before the body is sent."""
    head = ("POST /github/webhook HTTP/1.1", "Host: x", "X-GitHub-Event: pull_request", "X-GitHub-Delivery: too-large",
            f"X-Hub-Signature-256: sha256={'0' * 64}", f"Content-Length: {BODY_MAX_BYTES + 1}", "", "")
    with socket.create_connection((case.relay.host("ingest"), case.relay.ports["ingest"]), 20) as connection:
        connection.sendall("\r\n".join(head).encode())
        return int(connection.recv(4096).split()[1])


def odd_webhooks(case):
    """What is wrong with the answers to webhooks that are no JSON, incomplete or too large."""
    answers = {f"with {kind}": (case.relay.send_webhook(raw)[0], (400, 200)) for kind, raw in BODIES.items()}
    for header in ("X-GitHub-Event", "X-GitHub-Delivery", "X-Hub-Signature-256"):
        answers[f"without {header}"] = without(case, header), (400,)
    answers["of more than 25 MiB"] = over_the_limit(case), (413,)
    return len(answers), [f"a webhook {kind} was answered {status}" for kind, (status, good) in answers.items() if status not in good]


def slowest_ms(case):
    """Tier → the slowest dispatch after its webhook was taken."""
    slowest = collections.Counter()
    for (_, repo), ms in case.checker.waits_ms().items():
        tier = f"L{1 + 4 * case.downstreams.index(repo) // len(case.downstreams)}"  # a quarter in each: world.ALLOWLIST
        slowest[tier] = max(slowest[tier], ms)
    return slowest


def big_body(case, short):
    """25 MiB of pull request: arrives, or is refused by name; never stops anything."""
    raw = json.dumps(webhook(PULL_REQUESTS + 1, 999_999, "x" * (24 << 20))).encode()  # one that no load supersedes
    status, _, delivery = case.relay.deliver(raw, timeout=60 if short else 0)  # a busy broker may refuse it once
    assert status == 202, status
    return delivery


def run(world, short=False):
    count = 400 if short else 10_000 if world.long else 3000
    chance = random.Random(f"{world.seed}.poison")
    case = world.case("row-13", gives_up=True, hud=True).start()  # with a HUD: without one nobody reads results
    load = case.load(rate=200, on=0.5, off=2.0, count=count)
    odd, problems = odd_webhooks(case)
    foreign, unreadable = poison_topics(case, chance), poison_allowlist(case)
    big = big_body(case, short)
    load.wait()
    case.wait_done()
    from rows.row_04_broker_unavailable import rss_mb
    used = {part: rss_mb(case.relay.parts[part]) for part in DAEMONS}
    problems += allowlist_problems(case, unreadable)
    result = case.result(ROW, NAME, f"{foreign + unreadable} records in {len(TOPICS) + 1} topics, {odd} webhooks, 25 MB",
                         note=", ".join(f"{part} {mb:.0f} MB" for part, mb in used.items()))
    result.problems += problems
    slowest = slowest_ms(case)
    result.note += "; slowest dispatch " + ", ".join(f"{tier} {ms / 1000:.1f} s" for tier, ms in sorted(slowest.items()))
    result.problems += [f"{tier} stood still: a dispatch came {ms / 1000:.1f} s after its webhook"
                        for tier, ms in slowest.items() if ms > (BUSY_MAX_MS if short else WAIT_MAX_MS)]
    if given_up := case.checker.given_up(case.checker.acknowledged.keys() | {big}):
        result.problems.append(f"{len(given_up)} × given up of valid webhooks, such as {given_up[0]}")
    if taken := [one for one in case.checker.stored if one.startswith(("without-", "too-large"))]:
        result.problems.append(f"refused, but stored: {taken}")
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
    if not all((big, repo) in case.checker.dispatches for repo in case.checker.eligible):
        result.problems.append("the webhook of 25 MB was not dispatched everywhere")
    return result
