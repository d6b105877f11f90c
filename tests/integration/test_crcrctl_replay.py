"""`crcrctl replay` against a real broker: what is written again, as what, and how a replay is gone on with."""
import os
import re
import secrets
import signal
import subprocess
import time

import pytest

from lib.ctl import Ctl
from lib.processes import BIN, Process, wait_for

NOW = int(time.time() * 1000)


class Topics(Ctl):
    def event(self, number, pr=7, at_ms=None, topic="events", **more):
        headers = {"event": "pull_request", "action": "opened", "delivery": f"d-{number}", "pr": pr,
                   "head_sha": "a" * 40, "received_ms": NOW, "source": "webhook", **more}
        self.write(topic, f"pytorch/pytorch#{pr}", b'{"n": %d}' % number, timestamp_ms=at_ms, **headers)

    def replay(self, *arguments, topic="events", expect=0, **environment):
        return self("replay", "--topic", topic, *arguments, expect=expect, **environment)

    def replays(self, topic="events"):
        return [record for record in self.read(topic) if "replay" in record.headers]


@pytest.fixture
def topics(kafka_node):
    return Topics(kafka_node.brokers, f"t{secrets.token_hex(4)}.").create_topics()


@pytest.fixture(scope="module")
def nobody(kafka_node):
    """For what is printed before a topic is looked at."""
    return Topics(kafka_node.brokers, "nowhere.")


def test_an_event_is_written_again_under_its_key_as_a_replay(topics):
    topics.event(1)
    topics.event(2, pr=8)
    assert re.search(r"1 replayed as [0-9a-f]{8}\n", topics.replay("--delivery", "d-1").stdout)
    first, again = [r for r in topics.read("events") if r.headers["delivery"] == "d-1"]
    assert (again.key, again.value, again.partition) == (first.key, first.value, first.partition)
    assert again.headers["source"] == "replay"
    assert again.headers["replay_of"] == f"{first.partition}@{first.offset}"
    assert "again" not in again.headers
    same = set(first.headers) - {"source"}
    assert {name: again.headers[name] for name in same} == {name: first.headers[name] for name in same}


def test_callbacks_keep_their_headers_and_all_states_of_a_job_come_again(topics):
    for number in (1, 1, 2):
        topics.event(number, topic="callbacks", repo="org/a", level="L2", provenance="token")
    assert "2 replayed as" in topics.replay("--delivery", "d-1", topic="callbacks").stdout
    for record in topics.replays("callbacks"):
        assert record.headers["source"] == "webhook" and record.headers["provenance"] == "token"


def test_a_replay_is_not_replayed_and_a_delivery_stored_twice_comes_once(topics):
    topics.event(1)
    topics.event(1, source="redelivered")
    for _ in range(3):
        assert "1 replayed as" in topics.replay("--pr", "7").stdout
    assert len(topics.replays()) == 3


@pytest.mark.parametrize("arguments,expected", (
    (["--pr", "8"], {3}), (["--since", "90m"], {2, 3}), (["--since", "4h"], {1, 2, 3}),
    (["--since", "4h", "--until", "90m"], {1}), (["--since", "4h", "--pr", "7"], {1, 2})), ids=str)
def test_what_is_chosen(topics, arguments, expected):
    topics.event(1, at_ms=NOW - 3 * 3600 * 1000)
    topics.event(2, at_ms=NOW - 3600 * 1000)
    topics.event(3, pr=8)
    topics.replay(*arguments)
    assert {int(r.headers["delivery"][2:]) for r in topics.replays()} == expected


def test_a_dry_run_writes_nothing_and_asks_nothing(topics):
    topics.event(1)
    said = topics.replay("--pr", "7", "--again", "--dry-run").stdout
    assert "would replay" in said and "d-1" in said and "1 would be replayed" in said
    assert topics.replays() == []


def test_again_wants_a_yes_where_there_is_no_terminal_and_is_loud(topics):
    topics.event(1)
    done = topics.replay("--pr", "7", "--again", expect=2)
    assert "1 events will be dispatched to every downstream AGAIN" in done.stderr and "--yes" in done.stderr
    assert topics.replays() == []
    done = topics.replay("--pr", "7", "--again", "--yes")
    assert "AGAIN" in done.stderr and "1 replayed as again " in done.stdout
    record, = topics.replays()
    assert record.headers["again"] == record.headers["replay"]


@pytest.mark.parametrize("answer,code,written", (("yes", 0, 1), ("no", 2, 0), ("", 2, 0)))
def test_again_asks_at_a_terminal(topics, answer, code, written):
    topics.event(1)
    outside, inside = os.openpty()
    try:
        os.write(outside, answer.encode() + b"\n")
        done = subprocess.run([BIN / "crcrctl", "replay", "--topic", "events", "--pr", "7", "--again"], stdin=inside,
                              capture_output=True, text=True, timeout=60, env=topics.environment())
    finally:
        os.close(outside)
        os.close(inside)
    assert "Go on? [yes/no]" in done.stderr
    assert done.returncode == code, done.stderr
    assert len(topics.replays()) == written


def test_each_again_is_a_replay_of_its_own(topics):
    topics.event(1)
    for _ in range(2):
        topics.replay("--pr", "7", "--again", "--yes")
    one, two = topics.replays()
    assert one.headers["again"] != two.headers["again"]


def test_a_plain_replay_of_what_was_replayed_again_is_plain(topics):
    topics.event(1, again="old")
    topics.replay("--pr", "7")
    assert "again" not in topics.replays()[0].headers


@pytest.mark.parametrize("how", ["kill", "interrupt"])
def test_a_replay_ended_in_the_middle_is_gone_on_with_by_what_it_printed(topics, tmp_path, how):
    for number in range(30):
        topics.event(number + 1, pr=number + 1)
    # So slow that a busy machine sees it in the middle.
    process = Process("replay", [BIN / "crcrctl", "replay", "--topic", "events", "--since", "1h", "--rate", "2",
                                 "--again", "--yes"], tmp_path, topics.environment())
    wait_for("some to be replayed", lambda: len(topics.replays()) >= 2)
    if how == "kill":
        process.kill()
    else:
        process.signal(signal.SIGINT)
        assert process.popen.wait(60) == 1
        assert re.search(r"are left; run it again with: crcrctl replay --resume \S+ --topic events", process.tail())
    before = len(topics.replays())
    assert 0 < before < 30
    command = re.search(r"ended, run it again with: crcrctl (replay .*)", process.text()).group(1)
    assert " --rate 2 " in command
    command = command.replace("--rate 2", "").split()
    assert "30 replayed as again" in topics(*command, "--yes").stdout
    replays = topics.replays()
    assert {int(r.headers["delivery"][2:]) for r in replays} == set(range(1, 31)) and len(replays) == before + 30
    assert len({r.headers["again"] for r in replays}) == 1, "claims know the same replay by it"


def test_the_rate_holds(topics):
    for number in range(6):
        topics.event(number + 1)
    began = time.monotonic()
    topics.replay("--pr", "7", "--rate", "5/s")
    assert time.monotonic() - began >= 0.95
    assert len(topics.replays()) == 6


def test_what_takes_long_tells_how_far_it_is(topics):
    for number in range(8):
        topics.event(number + 1)
    said = topics.replay("--pr", "7", "--rate", "1").stderr
    assert re.search(r"crcrctl replay: replayed … [1-7] of 8\n", said), said


def test_nothing_like_that_is_exit_1(topics):
    assert "nothing like that is in" in topics.replay("--pr", "7", expect=1).stderr


def test_tail_and_trace_show_replays(topics):
    topics.event(1)
    topics.replay("--pr", "7", "--again", "--yes")
    again = topics.replays()[0].headers["again"]
    assert f"replay, again {again}" in topics("tail", "events").stdout
    trace = topics("trace", "d-1").stdout
    assert trace.count("published") == 2 and f"published   replay, again {again}" in trace


@pytest.mark.parametrize("arguments", (
    ["--pr", "7"], ["--topic", "dlq", "--pr", "7"], ["--topic", "events"], ["--topic", "events", "--pr", "none"],
    ["--topic", "events", "--until", "1h"], ["--topic", "events", "--since", "1h", "--until", "2h"],
    ["--topic", "callbacks", "--pr", "7", "--again"], ["--topic", "events", "--pr", "7", "--rate", "0"],
    ["--topic", "events", "--pr", "7", "--resume", "a|b"], ["--topic", "events", "--pr", "7", "more"]), ids=" ".join)
def test_wrong_arguments_are_exit_2_and_say_why(nobody, arguments):
    assert nobody("replay", *arguments, expect=2).stderr.strip()


def test_an_unreachable_broker_and_a_missing_topic_are_named(nobody):
    assert "cannot reach Kafka" in nobody.replay("--pr", "7", expect=3, KAFKA_BROKERS="127.0.0.1:1").stderr
    assert "nowhere.events" in nobody.replay("--pr", "7", expect=1).stderr
