"""A coordinator that will not tell where partitions were committed, in a real Kafka's words: it names no partition
(brokers in memory name each, test_broker_errors.py)."""
import json

import pytest

from lib.kafka import Kafka, kafka_acls, read_topic, write
from lib.ports import free_port
from lib.processes import wait_for
from lib.redis_server import redis_server
from lib.relay import Relay

pytestmark = pytest.mark.long  # a Kafka of its own, and a JVM for each right
JOBS = [f"d-{number}" for number in range(40)]  # more than partitions, so that each has one


def callback(delivery):
    return {"event_type": "pull_request", "delivery_id": delivery, "payload": {},
            "workflow": {"schema_version": "1", "name": "ci", "job_name": "build", "run_id": 1, "run_attempt": 1,
                         "status": "completed", "conclusion": "success"}}


def call_back(relay, delivery):
    write(relay.kafka, relay.topic("callbacks"), f"{delivery}/org/two", json.dumps(callback(delivery)).encode(),
          {"repo": "org/two", "level": "L2", "issuer": "test", "provenance": "token", "delivery": delivery, "pr": "7",
           "head_sha": "a" * 40, "dispatched_ms": "1000", "received_ms": "2000"})


def acl(relay, *arguments):
    kafka_acls("--bootstrap-server", relay.kafka, "--group", relay.group("crcr-fold"), "--force", *arguments)


@pytest.fixture
def relay(tmp_path):
    """Two reporters, each with some of the partitions."""
    node = Kafka(tmp_path / "kafka")
    node.properties |= {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                        "allow.everyone.if.no.acl.found": "true"}
    node.start()
    with redis_server(tmp_path / "redis") as redis:
        one = Relay(tmp_path, node.brokers, redis, environment={"CRCR_ROLES": "fold"})
        try:
            write(one.kafka, one.topic("allowlist"), "allowlist", b"L2: [org/two]\n",
                  {"source": "test", "sha": "0" * 40, "fetched_ms": "1"})
            one.start("reporter")
            one.start("reporter", "reporter2", CRCR_HUD_LISTEN=f"127.0.0.1:{free_port()}")
            for part in ("reporter", "reporter2"):
                one.wait_ready(part)
                wait_for("its share", lambda part=part: one.metric(part, "crcr_role_partitions", role="fold") == 3 * Relay.partitions / 2, 60)
            yield one
        finally:
            one.stop()
            node.stop()


def test_a_reporter_that_never_hears_of_its_offsets_ends_and_reads_on_when_it_is_started_again(relay):
    """librdkafka (2.0.2; its issue 5586) never asks again: the watchdog sees that there is more, and that nothing is read."""
    acl(relay, "--add", "--allow-principal", "User:ANONYMOUS", "--operation", "All")
    acl(relay, "--add", "--deny-principal", "User:ANONYMOUS", "--operation", "Describe")
    assert relay.parts["reporter2"].stop() == 0
    wait_for("the other's share", lambda: relay.metric("reporter", "crcr_role_partitions", role="fold") == 3 * Relay.partitions, 60)

    def rows():
        found = {json.loads(row.value)["delivery_id"] for row in read_topic(relay.kafka, relay.topic("results"))}
        return found == set(JOBS)
    for delivery in JOBS:
        call_back(relay, delivery)
    reporter = relay.parts["reporter"]
    wait_for("it to give up", lambda: not reporter.running(), 200)
    assert '"stalled"' in reporter.text() and "has records that are not read" in reporter.text()
    assert reporter.popen.returncode == 1
    acl(relay, "--remove", "--deny-principal", "User:ANONYMOUS", "--operation", "Describe")
    relay.start("reporter")
    wait_for("the rows of all", rows, 60)
