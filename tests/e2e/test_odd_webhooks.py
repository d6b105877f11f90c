"""Whatever GitHub may come to send, no daemon falls and each event that was accepted has one end for every downstream: real
payloads with odd values in random places, by a seed that a failure shows."""
import copy
import json
import random

import pytest

from lib.kafka import read_topic
from lib.processes import ROOT, wait_for
from lib.redis_server import redis_server
from lib.relay import Relay, http, pull_request
from openapi.validate import assert_conforms

SEED, WEBHOOKS = 20261121, 150
ODD = [None, "", "x" * 5000, 0, -1, 2 ** 62, 1.5, True, [], {}, [[]], [None], {"a": {"b": []}}, "\u202e", "\x01", "a/b/c", "🚀" * 99,
       "refs/tags/ciflow/crcr/npu/7", "0" * 40, "../..", "2026-13-01T00:00:00Z", "9999-12-31T23:59:59Z"]
KINDS = ["pull_request"] * 4 + ["push"] * 3 + ["check_run", "check_suite"]
ENDS = {"dispatched", "failed", "superseded", "skipped", "duplicate"}


@pytest.fixture(scope="module")
def relay(kafka_node, tmp_path_factory):
    folder = tmp_path_factory.mktemp("relay")
    with redis_server(folder / "redis") as redis:
        one = Relay(folder, kafka_node.brokers, redis)
        try:
            yield one.start_all()
        finally:
            one.stop()
        assert_conforms(folder)


def places(value, path=()):
    """Every path within a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        yield (*path, name)
        yield from places(one, (*path, name))


def odd_webhook(chance):
    kind = chance.choice(KINDS)
    body = json.loads(chance.choice(sorted((ROOT / "tests" / "payloads" / kind).glob("*.json"))).read_text())
    paths = list(places(body))
    chosen = chance.sample(paths, chance.randrange(3))
    if chance.random() < 0.5:  # near the top stands what the relay reads
        chosen += chance.sample([path for path in paths if len(path) < 3], 1)
    for path in chosen:
        owner = body
        try:
            for name in path[:-1]:
                owner = owner[name]
            if chance.random() < 0.3:
                del owner[path[-1]]
            else:
                owner[path[-1]] = copy.deepcopy(chance.choice(ODD))
        except (KeyError, IndexError, TypeError):
            pass  # an earlier change took the place away
    if isinstance(body.get("repository"), dict):
        body["repository"]["full_name"] = "pytorch/pytorch"
    return kind, body


def is_dispatched(kind, body):
    action = body.get("action")
    return kind == "push" or (kind == "pull_request" and action in ("opened", "reopened", "synchronize", "closed"))


def test_no_odd_webhook_fells_a_daemon_or_gets_lost(relay):
    chance = random.Random(SEED)
    http("POST", relay.url("github", "/_sim/downstreams"), json.dumps({"repo": "*", "reports": False}).encode())
    accepted, statuses = {}, []
    for number in range(WEBHOOKS):
        kind, body = odd_webhook(chance)
        status, answer, delivery = relay.deliver(body, event=kind)
        statuses.append(status)
        assert status in (200, 202, 400), (SEED, number, status, answer)
        if status == 202 and is_dispatched(kind, body):
            accepted[delivery] = (number, kind)
    assert len(accepted) > WEBHOOKS / 5 and statuses.count(400) >= 1

    def unfinished():
        ended = {}
        for record in read_topic(relay.kafka, relay.topic("dispatches")):
            outcome = json.loads(record.value)
            if outcome["outcome"] in ENDS:
                ended.setdefault(outcome["delivery_id"], set()).add(outcome["repo"])
        parked = {record.headers.get("delivery") for record in read_topic(relay.kafka, relay.topic("dlq"))}
        return {delivery: accepted[delivery] for delivery in accepted
                if len(ended.get(delivery, ())) < 4 and delivery not in parked}
    wait_for(f"each event to have its ends (seed {SEED}; {unfinished()})", lambda: not unfinished(), 90, every=1)
    for name, process in relay.parts.items():
        assert process.running() and "Sanitizer" not in process.text(), f"seed {SEED}: {process.tail()}"
    for dispatch in relay.state()["dispatches"]:
        assert dispatch["client_payload"]["payload"]["repository"]["full_name"] == "pytorch/pytorch"


def test_nul_and_half_a_surrogate_pair_go_out_as_text_that_may_come_back(relay):
    """Into a title, a body and a member's name, at both doors: the downstream echoes what it was sent, and adds some of its own."""
    http("POST", relay.url("github", "/_sim/downstreams"), json.dumps({"repo": "*", "reports": True}).encode())
    body = pull_request(number=4711, sha="4" * 40)
    body["pull_request"]["title"] = "before TITLE after"
    raw = json.dumps(body).encode().replace(b"TITLE", b"\\u0000\\ud83d").replace(b'{"', b'{"action\\u0000":"\\udc00","', 1)
    status, _, delivery = relay.deliver(raw)
    assert status == 202
    rows = wait_for("every downstream to have reported", lambda: [
        row for row in (relay.api(f"/api/crcr/deliveries/{delivery}") or {"jobs": []})["jobs"]
        if row["status"] == "completed"][2:])
    assert rows
    for sent in (one for one in relay.state()["dispatches"] if one["client_payload"]["delivery_id"] == delivery):
        assert sent["client_payload"]["payload"]["pull_request"]["title"] == "before  after"
        assert sent["client_payload"]["payload"]["action\ufffd000"] == ""
        assert sent["client_payload"]["payload"]["action"] == "opened"
    posted = [one for one in relay.state()["hud"] if one["untrusted"]["callback_payload"]["delivery_id"] == delivery]
    assert posted, "the HUD got the rows"
