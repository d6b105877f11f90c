"""What a broker's refusals and silence do to a daemon, from brokers in memory that refuse, or answer late, on request
(tests/faults row 6 has all refusals, under load)."""
import json
import signal
import time

import pytest

from lib.ctl import Ctl
from lib.kafka import read_topic, write
from lib.mock_kafka import MockKafka
from lib.processes import wait_for
from lib.redis_server import client_of, redis_server
from lib.relay import Relay, pull_request
from lib.pauses import HeldThread

ALLOWLIST = b"L2: [org/two]\n"
CALLBACK = {"event_type": "pull_request", "delivery_id": "d-1", "payload": {},
            "workflow": {"schema_version": "1", "name": "ci", "job_name": "build", "run_id": 1, "run_attempt": 1,
                         "status": "completed", "conclusion": "success"}}
HEADERS = {"repo": "org/two", "level": "L2", "issuer": "test", "provenance": "token", "delivery": "d-1", "pr": "7",
           "head_sha": "a" * 40, "dispatched_ms": "1000", "received_ms": "2000"}
SESSION_S, HEARTBEAT_S = 6, 1.5  # common/io/topic_reader.c
SILENT = {"status": "in_progress", "downstream_repo": "org/two", "downstream_repo_level": "L2", "delivery_id": "d-1",
          "event_type": "pull_request", "workflow_name": "ci", "job_name": "build", "check_run_id": "1", "run_id": "1",
          "run_attempt": "1"}


@pytest.fixture
def relay(tmp_path, request):
    """As many brokers as the test asks for, one without."""
    kafka = MockKafka(tmp_path / "kafka", getattr(request, "param", 1)).start()
    with redis_server(tmp_path / "redis") as redis:
        one = Relay(tmp_path, kafka.brokers, redis, prefix=kafka.prefix)
        one.broker = kafka
        try:
            one.start_github()
            write(kafka.brokers, one.topic("allowlist"), "allowlist", ALLOWLIST,
                  {"source": "test", "sha": "0" * 40, "fetched_ms": "1"})
            one.start("reporter")
            one.wait_ready("reporter")
            yield one
        finally:
            one.stop()
            kafka.stop()


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    kafka = MockKafka(tmp_path_factory.mktemp("broker"), 2).start()
    yield kafka
    kafka.stop()


def call_back(relay):
    write(relay.kafka, relay.topic("callbacks"), "d-1/org/two", json.dumps(CALLBACK).encode(), HEADERS)


def fold_one_under(relay, error):
    """A callback whose row the broker refuses three times."""
    relay.parts["reporter"].signal(signal.SIGSTOP)  # or the errors would meet our own record
    call_back(relay)
    relay.broker.errors("produce", error, 3)
    relay.parts["reporter"].signal(signal.SIGCONT)
    wait_for("the errors to be met", lambda: relay.broker.left("produce") == 0, 60)


@pytest.mark.parametrize("error, text", [
    ("TOPIC_AUTHORIZATION_FAILED", "Topic authorization failed"),
    ("INVALID_TIMESTAMP", "Invalid timestamp")])  # our clock is more than an hour ahead, says Kafka 4
def test_a_row_that_may_not_be_written_now_is_put_again_and_not_given_up(relay, error, text):
    fold_one_under(relay, error)
    (row, *_) = wait_for("the row", lambda: read_topic(relay.kafka, relay.topic("results")), 60)
    assert json.loads(row.value)["conclusion"] == "success"
    assert read_topic(relay.kafka, relay.topic("dlq")) == []
    assert text in relay.parts["reporter"].text()


def test_a_row_that_is_too_large_goes_to_the_dead_letter_queue_with_the_reason(relay):
    fold_one_under(relay, "MSG_SIZE_TOO_LARGE")
    (dead, *_) = wait_for("the record in the queue", lambda: read_topic(relay.kafka, relay.topic("dlq")), 60)
    assert dead.headers["class"] == "refused" and "too large" in dead.headers["error"]


@pytest.mark.parametrize("relay", [2], indirect=True)
def test_no_row_is_written_while_the_coordinator_has_been_silent_for_long(relay):
    """It may have given the partition to another by then, whose newer row this one would come behind."""
    for topic in ("callbacks", "results"):
        for partition in range(12):
            relay.broker.order("leader", relay.topic(topic), partition, 1)
    relay.broker.order("coordinator", relay.group("crcr-fold"), 2)
    time.sleep(2 * HEARTBEAT_S)  # until the group is known to be there
    relay.broker.order("slow", 2, 1000 * int(SESSION_S - HEARTBEAT_S))
    time.sleep(SESSION_S / 2)  # a row that is put now may wait for 3 s, too
    call_back(relay)
    time.sleep(1)  # in which the row would be put
    spoken_ms = time.time() * 1000
    relay.broker.order("slow", 2, 0)
    (row, *_) = wait_for("the row", lambda: read_topic(relay.kafka, relay.topic("results")), 60)
    assert row.at_ms >= spoken_ms


@pytest.mark.long  # two minutes until the watchdog is sure
@pytest.mark.parametrize("error", ["NOT_COORDINATOR", "GROUP_AUTHORIZATION_FAILED", "COORDINATOR_NOT_AVAILABLE"])
def test_a_reporter_whose_committed_offsets_were_refused_ends_and_reads_on_when_it_is_started_again(relay, error):
    assert relay.parts["reporter"].stop() == 0
    relay.broker.errors("offset_fetch", error, 3)  # fold, reconcile and forward ask once; more would meet the next start
    reporter = relay.start("reporter")
    call_back(relay)
    wait_for("it to give up", lambda: not reporter.running(), 200)
    assert reporter.popen.returncode == 1 and '"stalled"' in reporter.text()
    relay.start("reporter")
    wait_for("the row", lambda: read_topic(relay.kafka, relay.topic("results")), 60)


def test_a_role_that_seldom_writes_sees_that_it_may_not_write_at_all(relay):
    """What is due at it is lost to nobody, but comes only from a process that may write."""
    assert relay.parts["reporter"].stop() == 0
    relay.broker.errors("init_producer_id", "CLUSTER_AUTHORIZATION_FAILED", 20)
    sweep = relay.start("reporter", CRCR_ROLES="sweep")
    wait_for("it to end", lambda: not sweep.running(), 60)
    assert sweep.popen.returncode == 1 and "Cluster authorization failed" in sweep.text()


class Refused:
    """A sweep whose producer asks in vain so often, every 0.5 s, and is then refused for good."""

    def __init__(self, relay, questions):
        self.relay, self.broker = relay, relay.broker
        self.redis = client_of(relay.redis, relay.prefix)
        assert relay.parts["reporter"].stop() == 0
        self.broker.errors("init_producer_id", "COORDINATOR_LOAD_IN_PROGRESS", questions)
        self.broker.errors("init_producer_id", "CLUSTER_AUTHORIZATION_FAILED", 20)

    def start(self):
        self.process = self.relay.start("reporter", CRCR_ROLES="sweep", CRCR_SWEEP_SECONDS="1")

    def put_due(self, jobs):
        """So many jobs that have been silent for too long, and a commit that is to be looked at again."""
        with self.redis.pipeline() as at_once:
            for key in map(str, range(jobs)):
                at_once.hset(f"crcr:job:{key}", mapping=SILENT)
                at_once.zadd("crcr:zombies", {key: 1})
            at_once.zadd("crcr:due", {"commit/org/two": 1})
            at_once.execute()

    def wait_refused(self):
        def asked_no_more():
            before = self.broker.left("init_producer_id")
            time.sleep(1)  # in which it would ask again
            return before < 20 and self.broker.left("init_producer_id") == before
        wait_for("it to take the refusal", asked_no_more)

    def wait_end(self):
        wait_for("it to end", lambda: not self.process.running(), 60)
        assert self.process.popen.returncode == 1 and "Cluster authorization failed" in self.process.text()

    def leased(self):
        """How many of the jobs, and whether the commit."""
        return self.redis.zcard("crcr:leases:zombies"), self.redis.zcard("crcr:leases:due") > 0


def test_a_sweep_that_may_not_write_leases_nothing(relay):
    """Another that may would find it only when the lease has run out."""
    sweep = Refused(relay, 12)
    sweep.start()
    relay.wait_ready("reporter")
    held = HeldThread(sweep.process, "sweep")  # between two looks
    try:
        sweep.put_due(1)
        sweep.wait_refused()
    finally:
        held.let_go()
    sweep.wait_end()
    assert sweep.leased() == (0, False)


def test_a_sweep_that_learns_that_it_may_not_write_leases_no_more(relay):
    sweep = Refused(relay, 4)
    sweep.put_due(250)
    sweep.start()
    sweep.wait_end()
    jobs, commit = sweep.leased()
    assert jobs <= 100 and not commit


def test_a_daemon_that_never_gets_into_its_group_ends_in_order(relay):
    """librdkafka 2.0.2 aborts when it is destroyed between the answer to JoinGroup and the first assignment."""
    assert relay.parts["reporter"].stop() == 0
    relay.broker.errors("sync_group", "REBALANCE_IN_PROGRESS", 100)
    relay.start("reporter")
    wait_for("the group to be refused", lambda: relay.broker.left("sync_group") < 95, 60)
    assert relay.parts["reporter"].stop() == 0


@pytest.mark.parametrize("order", [
    ("errors", "produce", "NO_SUCH_ERROR", 1), ("errors", "no_such_api", "REQUEST_TIMED_OUT", 1),
    ("errors", "produce", "REQUEST_TIMED_OUT", 0), ("left",), ("nonsense",)])
def test_an_order_that_makes_no_sense_is_refused(broker, order):
    with pytest.raises(AssertionError, match="refused"):
        broker.order(*order)


def test_errors_are_counted_at_each_broker(broker):
    broker.errors("join_group", "NOT_COORDINATOR", 3)
    assert broker.left("join_group") == 6 and broker.left("produce") == 0


@pytest.fixture
def front(tmp_path):
    """ingest alone, at a broker in memory."""
    kafka = MockKafka(tmp_path / "kafka").start()
    with redis_server(tmp_path / "redis") as redis:
        one = Relay(tmp_path, kafka.brokers, redis, prefix=kafka.prefix)
        one.broker = kafka
        try:
            one.start("ingest")
            one.wait_ready("ingest")
            yield one
        finally:
            one.stop()
            kafka.stop()


def test_a_producer_that_librdkafka_gives_up_is_replaced_and_says_why(front):
    wait_for("a webhook to be taken", lambda: front.send_webhook(pull_request())[0] == 202, 30)
    front.broker.errors("produce", "OUT_OF_ORDER_SEQUENCE_NUMBER", 1)
    assert front.send_webhook(pull_request())[0] == 503
    wait_for("webhooks to be taken again", lambda: front.send_webhook(pull_request())[0] == 202, 30)
    assert front.parts["ingest"].running() and "sequence desynchronization" in front.parts["ingest"].text()
    assert len(read_topic(front.kafka, front.topic("events"))) >= 2


def test_a_producer_that_may_not_write_at_all_stops_the_daemon_with_the_reason(front):
    assert front.parts["ingest"].stop() == 0
    front.broker.errors("init_producer_id", "CLUSTER_AUTHORIZATION_FAILED", 20)
    ingest = front.start("ingest")
    wait_for("ingest to end", lambda: not ingest.running(), 60)
    assert ingest.popen.returncode == 1 and "Cluster authorization failed" in ingest.text()


def test_offsets_by_time_are_asked_again_of_a_broker_that_leads_nothing_yet(broker):
    broker.errors("list_offsets", "LEADER_NOT_AVAILABLE", 3)
    Ctl(broker.brokers, broker.prefix)("tail", "events", "--since", "1h")
    assert broker.left("list_offsets") == 0
