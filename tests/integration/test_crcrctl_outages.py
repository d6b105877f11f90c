"""What crcrctl says when it is ended, or Kafka goes, in the middle; from a broker in memory."""
import contextlib
import re
import signal
import time

import pytest

from lib.ctl import Ctl
from lib.kafka import write
from lib.mock_kafka import MockKafka
from lib.processes import BIN, ROOT, Process, wait_for

MANY = 1000  # more than is asked in the test


@pytest.fixture
def broker(tmp_path):
    kafka = MockKafka(tmp_path / "kafka").start()
    yield kafka
    kafka.stop()


@pytest.fixture
def started(broker, tmp_path):
    """Starts crcrctl; what a test that failed has left is ended."""
    ctl, processes = Ctl(broker.brokers, broker.prefix), []

    def start(*arguments):
        processes.append(Process(arguments[0], [BIN / "crcrctl", *arguments], tmp_path, ctl.environment()))
        return processes[-1]
    start.ctl = ctl
    yield start
    for process in processes:
        process.kill()


def park(ctl, number):
    ctl.write("dlq", f"pytorch/pytorch#{number}", b"{}", **{
        "event": "pull_request", "action": "opened", "delivery": f"d-{number}", "pr": number, "repos": "org/a",
        "tier": "L2", "kind": "dispatch", "attempt": 5, "source_topic": ctl.prefix + "dispatch.l2",
        "class": "refused", "error": "404", "parked_ms": int(time.time() * 1000)})


def test_a_replay_that_kafka_ends_in_the_middle_says_what_is_left(broker, started):
    for number in range(6):
        park(started.ctl, number + 1)
    process = started("dlq", "replay", "--rate", "1", "--since", "1d")
    process.wait_text("replayed to dispatch.l2")
    broker.errors("produce", "REQUEST_TIMED_OUT", 1000)
    wait_for("the replay to end", lambda: not process.running())
    said = process.text()
    assert process.popen.returncode == 3, said
    done = said.count("replayed to dispatch.l2")
    assert f"{done} replayed" in said and f"{6 - done} are left; run it again to go on" in said


def test_a_coordinator_that_moves_while_it_is_asked_ends_nothing(broker, started):
    """librdkafka#5040: a client without a group of its own would crash; the daemons' watchdog and pages ask so, too."""
    broker.errors("offset_fetch", "NOT_COORDINATOR", 1)
    said = started.ctl("lag", "crcr-fold", expect=3).stderr
    assert "the group's coordinator is moving, ask again" in said
    assert "lag 0" in started.ctl("lag").stdout


@pytest.mark.parametrize("arguments", (["dlq", "list"], ["dlq", "drop", "--since", "1d"],
                                       ["replay", "--topic", "events", "--since", "1h"]), ids=" ".join)
def test_what_is_ended_while_it_reads_says_that_not_all_was_read(broker, started, arguments):
    park(started.ctl, 1)
    broker.errors("fetch", "LEADER_NOT_AVAILABLE", MANY)
    process = started(*arguments)
    wait_for("it to read", lambda: broker.left("fetch") < MANY)
    process.signal(signal.SIGINT)
    wait_for("it to end", lambda: not process.running())
    assert process.popen.returncode == 1 and "interrupted: not all was read" in process.text(), process.text()


def test_tail_that_follows_says_once_that_kafka_is_gone(broker, started):
    process = started("tail", "-f", "events")
    process.wait_text("all read so far")
    broker.stop()
    process.wait_text(f"crcrctl: cannot reach Kafka at {broker.brokers}")
    assert process.stop() == 0
    assert process.text().count("cannot reach Kafka") == 1 and "; waiting for it\n" in process.text()


# ---- one partition is unavailable ------------------------------------------------------------------------------------------
GROUPS = ("router", "l1", "l2", "l3", "l4", "delay", "fold", "reconcile", "forward")


@pytest.fixture
def without_one(tmp_path):
    """Two brokers; the second one leads crcr.events [3] and dlq [3] alone, and is unavailable."""
    kafka = MockKafka(tmp_path / "kafka", brokers=2).start()
    with open(ROOT / "deploy" / "topics" / "topics.conf", encoding="utf-8") as file:
        topics = [line.split()[:2] for line in file if re.match(r"[a-z][\w.]* +\d", line)]
    for topic, partitions in topics:
        for partition in range(int(partitions)):
            kafka.order("leader", kafka.prefix + topic, partition, 2 if topic in ("events", "dlq") and partition == 3 else 1)
    for group in GROUPS:
        kafka.order("coordinator", f"{kafka.prefix.removesuffix('.')}-{group}", 1)
    kafka.order("down", 2)
    yield kafka
    kafka.stop()


@pytest.mark.long
def test_lag_shows_the_groups_whose_partitions_are_all_there(without_one):
    done = Ctl(without_one.brokers, without_one.prefix)("lag", expect=3)
    stem = without_one.prefix.removesuffix(".")
    assert {line.split()[0] for line in done.stdout.splitlines()} == {f"{stem}-{group}" for group in GROUPS} - {f"{stem}-router", f"{stem}-fold"}
    assert f"{stem}-router: cannot get the ends of the 12 partitions of {without_one.prefix}events: " in done.stderr
    assert f"{stem}-fold: " in done.stderr


@pytest.mark.long
def test_a_read_ends_although_others_go_on_and_names_the_partition_that_is_unavailable(without_one, tmp_path):
    ctl = Ctl(without_one.brokers, without_one.prefix)
    process = Process("dlq", [BIN / "crcrctl", "dlq", "list"], tmp_path, ctl.environment())
    deadline = time.monotonic() + 60
    number = 0
    while process.running() and time.monotonic() < deadline:
        number += 1
        with contextlib.suppress(AssertionError):  # it may belong to the partition that is unavailable
            write(ctl.brokers, f"{ctl.prefix}dlq", f"k{number % 5}", b"{}", timeout=2)
    assert not process.running(), "it goes on for as long as there is something new"
    said = process.text()
    assert process.popen.returncode == 3 and f"does not answer for {ctl.prefix}dlq [3], of which not all was read" in said, said
