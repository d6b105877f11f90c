"""Records that Kafka removes before a role has read them, by retention or by hand: what the daemons say of it. On a real
broker."""
import json
import secrets
import signal

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from lib.kafka import configure_topic, delete_records, read_topic, write_all
from lib.processes import wait_for
from lib.redis_server import RedisServer
from lib.relay import Relay, pull_request
from test_reporter import Job, Reporter, wait_idle

L4 = "/repos/org-four/backend-four/dispatches"


@pytest.fixture
def relay(kafka_node, tmp_path):
    """All of it; one pull request has gone all the way."""
    redis = RedisServer(tmp_path / "redis").start()
    one = Relay(tmp_path, kafka_node.brokers, redis.endpoint).start_all()
    send(one, 1)
    wait_for("it to be dispatched", lambda: dispatched(one) == [1])
    no_lag(one, "crcr-router", "crcr-fold")
    yield one
    one.stop()
    redis.stop()


def send(relay, number, events=1):
    """So many events of one pull request: they share a partition."""
    for minute in range(events):
        status, _, _ = relay.deliver(pull_request(number=number, updated_at=f"2026-11-21T03:{minute:02}:00Z"))
        assert status == 202


def dispatched(relay):
    """The pull requests that the L4 heard of."""
    return sorted({one["body"]["client_payload"]["payload"]["number"] for one in relay.requests()
                   if one["path"] == L4 and one["status"] == 204})


def no_lag(relay, *groups):
    wait_for("no lag", lambda: all(row.get("lag") in (0, None) for row in relay.lag(*groups)))


def cut(relay, topic, keep=lambda record: False):
    """Removes the records of a topic, in each partition up to the first that is to be kept."""
    ends, done = {}, set()
    for record in read_topic(relay.kafka, relay.topic(topic)):
        if keep(record):
            done.add(record.partition)
        if record.partition not in done:
            ends[record.partition] = record.offset + 1
    delete_records(relay.kafka, relay.topic(topic), ends)


def said(relay, part, event):
    lines = (json.loads(line) for line in relay.parts[part].text().splitlines() if line.startswith("{"))
    return [line for line in lines if line["event"] == event]


def lost(relay, part):
    """By role and topic: how many records, as the log has it, each hole once."""
    holes = {}
    for line in said(relay, part, "records_lost"):
        assert line["level"] == "error"
        key = line["role"], line["topic"].removeprefix(relay.prefix)
        assert (line["partition"], line["from"]) not in [hole[:2] for hole in holes.get(key, [])]
        holes.setdefault(key, []).append((line["partition"], line["from"], line["records"]))
    return {key: sum(hole[2] for hole in of) for key, of in holes.items()}


def counted(relay, part, role, topic):
    return relay.metric(part, "crcr_records_lost_total", role=role, topic=relay.topic(topic))


def test_what_was_removed_while_no_daemon_ran_is_reported_at_the_start_and_once(relay):
    for part in ("dispatcher", "reporter"):
        assert relay.parts[part].stop() == 0
    send(relay, 2, events=3)
    send(relay, 3, events=3)
    of_three = [one for one in read_topic(relay.kafka, relay.topic("events")) if one.headers["pr"] == "3"]
    cut(relay, "events", keep=lambda record: record in of_three[2:])
    for part, role in (("dispatcher", "router"), ("reporter", "fold")):
        relay.start(part)
        relay.wait_ready(part)
        wait_for(f"{role} to say what is gone", lambda: lost(relay, part) == {(role, "events"): 5})
        assert counted(relay, part, role, "events") == 5
    wait_for("the one that is left to be dispatched", lambda: dispatched(relay) == [1, 3])
    no_lag(relay, "crcr-router", "crcr-fold")
    for part in ("dispatcher", "reporter"):
        assert relay.parts[part].stop() == 0
        relay.start(part)
        relay.wait_ready(part)
    send(relay, 4)
    wait_for("it to be dispatched", lambda: dispatched(relay) == [1, 3, 4])
    no_lag(relay, "crcr-router", "crcr-fold")
    assert lost(relay, "dispatcher") == lost(relay, "reporter") == {}
    assert counted(relay, "dispatcher", "router", "events") == 0


def test_what_is_removed_while_they_run_is_reported(relay):
    """They are frozen for less than a session. A fetch that was under way may still bring the first of the four."""
    daemons = [relay.parts[part] for part in ("dispatcher", "reporter")]
    for daemon in daemons:
        daemon.signal(signal.SIGSTOP)
    try:
        send(relay, 2, events=4)
        cut(relay, "events")
    finally:
        for daemon in daemons:
            daemon.signal(signal.SIGCONT)
    for part, role in (("dispatcher", "router"), ("reporter", "fold")):
        holes = wait_for(f"{role} to say what is gone", lambda: lost(relay, part))
        assert list(holes) == [(role, "events")] and 1 <= holes[role, "events"] <= 4
        assert counted(relay, part, role, "events") == holes[role, "events"]
    send(relay, 5)
    wait_for("it to be dispatched", lambda: 5 in dispatched(relay))
    no_lag(relay, "crcr-router", "crcr-fold")
    assert (2 in dispatched(relay)) == (lost(relay, "dispatcher")["router", "events"] < 4)


def test_a_topic_that_is_made_anew_is_read_from_its_beginning_and_that_is_said(relay):
    topic = relay.topic("events")
    admin = AdminClient({"bootstrap.servers": relay.kafka})
    send(relay, 1, events=5)
    no_lag(relay, "crcr-router", "crcr-fold")
    partitions = len(admin.list_topics(topic, 10).topics[topic].partitions)
    admin.delete_topics([topic])[topic].result(20)

    def made():
        try:
            admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(20)
        except KafkaException as error:  # the one of that name is not quite gone yet
            assert error.args[0].name() == "TOPIC_ALREADY_EXISTS", error
            return False
        return True
    wait_for("it to be made anew", made)
    send(relay, 1)  # into the same partition
    for part, role in (("dispatcher", "router"), ("reporter", "fold")):
        line, = wait_for(f"{role} to say so", lambda: said(relay, part, "offsets_went_back"))
        assert (line["role"], line["topic"], line["from"]) == (role, topic, 6)
        assert lost(relay, part) == {}
    no_lag(relay, "crcr-router", "crcr-fold")


def test_compaction_and_transactions_raise_no_alarm(kafka_node, tmp_path):
    reporter = Reporter(tmp_path, kafka_node.brokers)
    relay, topic = reporter.relay, reporter.relay.topic("results")
    try:
        job = Job(reporter).call("completed", 2000, conclusion="success")
        job.wait_result()
        wait_idle(reporter)
        assert relay.parts["reporter"].stop() == 0
        row = reporter.topic("results")[-1]
        cut(relay, "results")  # what was read: the log begins above 0
        configure_topic(relay.kafka, topic, **{"cleanup.policy": "compact,delete", "segment.ms": "100",
                                               "min.cleanable.dirty.ratio": "0.01", "max.compaction.lag.ms": "100"})
        write_all(relay.kafka, topic, [(row.key, row.value, {}, 0)] * 20)
        producer = Producer({"bootstrap.servers": relay.kafka, "transactional.id": secrets.token_hex(4),
                             "partitioner": "murmur2_random"})
        producer.init_transactions(30)
        for number in range(4):
            producer.begin_transaction()
            producer.produce(topic, key=f"{row.key}-{number}", value=row.value, partition=row.partition)
            producer.flush(30)
            (producer.abort_transaction if number % 2 else producer.commit_transaction)(30)

        def compacted():
            """The last segment never is: each look adds one."""
            write_all(relay.kafka, topic, [(row.key, row.value, {}, 0)])
            offsets = [one.offset for one in reporter.topic("results") if one.partition == row.partition]
            return offsets[0] > row.offset + 2 and len(offsets) < 20
        wait_for("the broker to compact", compacted, 90, every=1)
        reporter.start()
        wait_idle(reporter)
        assert lost(relay, "reporter") == {} and said(relay, "reporter", "offsets_went_back") == []
        assert counted(relay, "reporter", "forward", "results") == 0
    finally:
        reporter.close()
