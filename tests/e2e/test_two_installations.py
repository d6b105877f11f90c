"""Two installations with prefixes of their own (CRCR_TOPIC_PREFIX) on one Kafka and one Redis: neither sees the other."""
import hashlib
import json

import pytest

from lib.kafka import read_topic
from lib.processes import wait_for
from lib.redis_server import RedisServer
from lib.relay import Relay, pull_request

SHA = hashlib.sha1(b"two installations").hexdigest()


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def two(kafka_node, redis, tmp_path_factory):
    made = []
    try:
        for name in ("one", "two"):
            made.append(Relay(tmp_path_factory.mktemp(name), kafka_node.brokers, redis.endpoint))
            made[-1].start_all()
        yield made
    finally:
        for relay in made:
            relay.stop()


def sent(relay, delivery):
    return [one["repo"] for one in relay.state()["dispatches"] if one["client_payload"]["delivery_id"] == delivery]


def completed(relay, delivery):
    shown = relay.api(f"/api/crcr/deliveries/{delivery}")
    return shown and [job["status"] for job in shown["jobs"]] == ["completed"] * 3


def test_the_same_delivery_goes_out_from_both(two):
    one, other = two
    _, _, delivery = one.deliver(pull_request(number=51, sha=SHA))
    wait_for("the first to show its rows", lambda: completed(one, delivery), 60)
    assert other.api("/api/crcr/prs/51") is None
    assert other.deliver(pull_request(number=51, sha=SHA), delivery=delivery)[0] == 202
    wait_for("the second to show its rows", lambda: completed(other, delivery), 60)
    for relay in two:
        assert len(sent(relay, delivery)) == 4
        outcomes = [json.loads(record.value) for record in read_topic(relay.kafka, relay.topic("dispatches"))]
        assert {outcome["outcome"] for outcome in outcomes} == {"dispatched"}, outcomes


def test_each_key_has_the_prefix_of_its_installation(two, redis):
    own = {relay.prefix.removesuffix(".") for relay in two}
    keys = redis.client().keys("*")
    assert {key.split(":")[0] for key in keys} == own
    for prefix in own:
        kinds = {key.split(":")[1] for key in keys if key.startswith(prefix)}
        missing = {"allowlist", "claim", "epoch", "job", "seq"} - kinds
        assert not missing  # a budget or a rate that is full again has no key


def test_a_view_that_is_lost_and_rebuilt_is_its_own(two, redis):
    one, other = two
    _, _, delivery = one.deliver(pull_request(number=52, sha=SHA))
    wait_for("the rows", lambda: completed(one, delivery), 60)
    ours, theirs = redis.client(one.prefix), redis.client(other.prefix)
    epoch = theirs.get("crcr:epoch")
    ours.delete(*ours.keys("crcr:*"))
    said = one.ctl("rebuild-hud", "--wait").stdout  # the reporter may have begun by itself
    assert "the view is consistent: " in said and ("will be rebuilt" in said or "under way already" in said)
    assert completed(one, delivery) and theirs.get("crcr:epoch") == epoch
    assert other.api("/api/crcr/prs/52") is None
