"""What crcrctl says when it is ended, or Kafka goes, in the middle; from a broker in memory."""
import signal
import time

import pytest

from lib.ctl import Ctl
from lib.mock_kafka import MockKafka
from lib.processes import BIN, Process, wait_for

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
    ctl.write("dlq", f"org/a|pytorch/pytorch#{number}", b"{}", **{
        "event": "pull_request", "action": "opened", "delivery": f"d-{number}", "pr": number, "repo": "org/a",
        "tier": "L2", "kind": "dispatch", "attempt": 5, "source_topic": ctl.prefix + "dispatch.l2",
        "class": "refused", "error": "404", "parked_ms": int(time.time() * 1000)})


def test_a_replay_that_kafka_ends_in_the_middle_says_what_is_left_and_what_may_come_twice(broker, started):
    for number in range(6):
        park(started.ctl, number + 1)
    process = started("dlq", "replay", "--rate", "1", "--since", "1d")
    process.wait_text("replayed to dispatch.l2")
    broker.errors("produce", "REQUEST_TIMED_OUT", 1000)
    wait_for("the replay to end", lambda: not process.running())
    said = process.text()
    assert process.popen.returncode == 3 and "may be put back already" in said, said
    done = said.count("replayed to dispatch.l2")
    assert f"{done} replayed" in said and f"{6 - done} are left; run it again to go on" in said


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
