"""`crcrctl dlq` against a real broker: list, show, replay, drop, and what a resolution is."""
import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import time

import pytest

from lib.ctl import Ctl
from lib.kafka import configure_topic
from lib.processes import BIN, Process, wait_for

NOW = int(time.time() * 1000)


class Queue(Ctl):
    """A prefix of its own with a dead-letter queue."""

    def park(self, number=1, source="dispatch.l2", cls="refused", repos="org/a", error="404 Not Found", value=b"{}",
             parked_ms=None, key=None, **more):
        headers = {"event": "pull_request", "action": "opened", "delivery": f"d-{number}", "pr": number,
                   "head_sha": "a" * 40, "received_ms": NOW, "source": "webhook", "repos": repos, "tier": "L2",
                   "kind": "dispatch", "attempt": 5, "seq": "1:0:1", "maybe_duplicate": 1,
                   "source_topic": self.prefix + source, "class": cls, "error": error,
                   "parked_ms": parked_ms or NOW + number, **more}
        self.write("dlq", key or f"pytorch/pytorch#{number}", value,
                   **{name: text for name, text in headers.items() if text is not None})

    def dlq(self, *arguments, expect=0, **environment):
        return self("dlq", *arguments, expect=expect, **environment)

    def rows(self, *arguments):
        return [json.loads(line) for line in self.dlq("list", "--json", *arguments).stdout.splitlines()]

    def place(self, number):
        return next(row["position"] for row in self.rows("--all") if row["delivery"] == f"d-{number}")

    def resolutions(self):
        return [r for r in self.read("dlq") if "resolves" in r.headers]

    def refuse(self, topic):
        """From now on it takes no record of more than 100 bytes."""
        configure_topic(self.brokers, self.prefix + topic, **{"max.message.bytes": "100"})


@pytest.fixture
def queue(kafka_node):
    return Queue(kafka_node.brokers, f"t{secrets.token_hex(4)}.").create_topics()


@pytest.fixture(scope="module")
def nobody(kafka_node):
    """For what is printed before a topic is looked at."""
    return Queue(kafka_node.brokers, "nowhere.")


@pytest.fixture(scope="module")
def full(kafka_node):
    """A queue that is only looked at."""
    one = Queue(kafka_node.brokers, f"t{secrets.token_hex(4)}.").create_topics()
    one.park(1)
    one.park(2, cls="poison", source="events")
    one.park(3, repos="org/b,org/c", cls="exhausted")
    one.park(4, parked_ms=NOW - 2 * 3600 * 1000)
    return one


# ---- list ---------------------------------------------------------------------------------------------------
def test_list_shows_what_is_open_the_oldest_first(queue):
    queue.park(2)
    queue.park(1, cls="exhausted", error="503\x1b[31m red", repos="org/b")
    lines = queue.dlq("list").stdout.splitlines()
    assert lines[0].split()[:4] == ["WHERE", "WHEN", "CLASS", "SOURCE"]
    assert [line.split()[4] for line in lines[1:3]] == ["d-1", "d-2"]
    for part in ("exhausted", "dispatch.l2", "org/b", "503 [31m red"):
        assert part in lines[1]
    assert lines[3] == "2 open, 0 resolved"


def test_an_empty_queue_is_no_problem(queue):
    assert queue.dlq("list").stdout == "0 open, 0 resolved\n"
    assert queue.rows() == []


@pytest.mark.parametrize("filters,expected", (
    ([], {1, 2, 3, 4}), (["--class", "poison"], {2}), (["--repo", "ORG/B"], {3}), (["--repo", "org/c"], {3}), (["--delivery", "d-1"], {1}),
    (["--source", "events"], {2}), (["--since", "1h"], {1, 2, 3}), (["--class", "refused", "--repo", "org/a"], {1, 4}),
    (["--source", "callbacks"], set())), ids=str)
def test_list_filters(full, filters, expected):
    assert {int(row["delivery"][2:]) for row in full.rows(*filters)} == expected


def test_json_has_what_the_table_has(queue):
    queue.park(7)
    row, = queue.rows()
    partition, offset = row["position"].split("@")
    assert (row["partition"], row["offset"]) == (int(partition), int(offset))
    assert (row["class"], row["source"], row["delivery"], row["repo"], row["error"], row["state"], row["key"]) == (
        "refused", "dispatch.l2", "d-7", "org/a", "404 Not Found", "open", "pytorch/pytorch#7")
    assert row["repos"] == ["org/a"]


def test_which_downstreams_are_parked_and_why(queue):
    """A record that a delay could not read is for several; what GitHub refuses is parked one by one."""
    queue.park(1, source="delay.1m", repos="org/a,org/b,org/c", cls="poison", error="not_before_ms")
    queue.park(2, repos="org/b")
    table = queue.dlq("list").stdout.splitlines()
    assert "  org/a +2  " in table[1] and table[1].endswith("not_before_ms; for org/a, org/b, org/c")
    assert table[2].endswith("  org/b                     404 Not Found")
    assert [(row["repo"], row["repos"]) for row in queue.rows()] == [(None, ["org/a", "org/b", "org/c"]), ("org/b", ["org/b"])]
    assert [row["delivery"] for row in queue.rows("--repo", "org/c")] == ["d-1"]
    assert [row["delivery"] for row in queue.rows("--repo", "org/b")] == ["d-1", "d-2"]
    assert "repos: org/a,org/b,org/c\n" in queue.dlq("show", queue.place(1)).stdout


def test_records_that_others_wrote_are_shown_too(queue):
    queue.write("dlq", "foreign", b"\x00\xff")
    assert queue.dlq("list").stdout.splitlines()[-1] == "1 open, 0 resolved"


# ---- show ---------------------------------------------------------------------------------------------------
def test_show_prints_headers_and_the_body_pretty_and_harmless(queue):
    queue.park(1, value=json.dumps({"title": "\x1b[2J\x9b31m é", "n": [1]}).encode(), error="bad\x1b]0;x\x07")
    text = queue.dlq("show", queue.place(1)).stdout
    assert "delivery: d-1\n" in text and "error: bad ]0;x \n" in text
    assert '  "n": [\n    1\n  ]' in text and "é" in text
    assert not any(ord(c) < 32 and c not in "\n\t" or 0x7f <= ord(c) < 0xa0 for c in text)
    assert text.rstrip().endswith("state: open")


def test_show_of_what_is_not_json_escapes_it(queue):
    queue.park(1, value=b"\x1b[31m{")
    assert "\\x1b[31m{" in queue.dlq("show", queue.place(1)).stdout


def test_show_of_nothing_is_exit_1(full):
    assert "nothing is there" in full.dlq("show", "1@17", expect=1).stderr


# ---- replay -------------------------------------------------------------------------------------------------
def test_replay_puts_a_task_back_as_a_first_attempt_and_resolves_it(queue):
    queue.park(1, value=b'{"a": 1}')
    queue.park(2)
    place = queue.place(1)
    assert "1 replayed, 0 resolved before" in queue.dlq("replay", place).stdout
    task, = queue.read("dispatch.l2")
    assert (task.key, task.value) == ("pytorch/pytorch#1", b'{"a": 1}')
    assert task.headers["attempt"] == "1" and task.headers["seq"] == "1:0:1"
    assert task.headers["maybe_duplicate"] == "1" and task.headers["dlq"] == place
    assert not {"class", "source_topic", "error", "parked_ms"} & set(task.headers)
    resolution, = queue.resolutions()
    assert resolution.headers["resolves"] == place and resolution.headers["class"] == "replayed"
    assert resolution.partition == int(place.split("@")[0]) and resolution.key == task.key
    assert resolution.headers["delivery"] == "d-1" and not resolution.value
    assert [row["delivery"] for row in queue.rows()] == ["d-2"]
    assert {row["delivery"]: row["state"] for row in queue.rows("--all")} == {"d-1": "replayed", "d-2": "open"}


def test_replay_and_drop_keep_all_downstreams_of_a_record(queue):
    queue.park(1, repos="org/a,org/b")
    queue.park(2, repos="org/a,org/b")
    one, two = queue.place(1), queue.place(2)
    queue.dlq("replay", "--repo", "org/b", one)
    queue.dlq("drop", "--repo", "ORG/A")
    task, = queue.read("dispatch.l2")
    assert (task.key, task.headers["repos"], task.headers["dlq"]) == ("pytorch/pytorch#1", "org/a,org/b", one)
    assert {(r.headers["resolves"], r.headers["class"], r.headers["repos"]) for r in queue.resolutions()} == {
        (one, "replayed", "org/a,org/b"), (two, "dropped", "org/a,org/b")}
    states = {row["repo"]: row["state"] for row in json.loads(queue("trace", "--json", "d-2").stdout)["downstreams"]}
    assert states == {"org/a": "dropped", "org/b": "dropped"}


def test_a_task_of_the_old_form_is_shown_and_put_back_as_it_was(queue):
    """As before 2026-12: one downstream, in the header repo and in the key."""
    queue.park(1, repos=None, repo="org/a", key="org/a|pytorch/pytorch#1")
    queue.park(2, repos=None, repo="org/a", key="org/a|pytorch/pytorch#2")
    place = queue.place(1)
    row, _ = queue.rows("--repo", "org/a")
    assert (row["repo"], row["repos"], row["key"]) == ("org/a", ["org/a"], "org/a|pytorch/pytorch#1")
    assert queue.rows("--repo", "org/b") == []
    queue.dlq("replay", place)
    queue.dlq("drop", queue.place(2))
    task, = queue.read("dispatch.l2")
    assert (task.key, task.headers["repo"], task.headers["dlq"]) == ("org/a|pytorch/pytorch#1", "org/a", place)
    assert "repos" not in task.headers
    assert {(r.key, r.headers["repo"]) for r in queue.resolutions()} == {(f"org/a|pytorch/pytorch#{n}", "org/a") for n in (1, 2)}
    assert "resolved    L2 org/a  replayed" in queue("trace", "d-1").stdout


def test_what_was_replayed_is_never_replayed_again(queue):
    queue.park(1)
    place = queue.place(1)
    queue.dlq("replay", "--class", "refused")
    assert "0 replayed, 1 resolved before" in queue.dlq("replay", "--class", "refused").stdout
    assert "0 replayed, 1 resolved before" in queue.dlq("replay", place).stdout
    assert "0 dropped, 1 resolved before" in queue.dlq("drop", place).stdout
    assert len(queue.read("dispatch.l2")) == 1 and len(queue.resolutions()) == 1


@pytest.mark.parametrize("source", ["events", "callbacks", "reconcile", "dispatch.l4"])
def test_replay_goes_to_the_topic_that_the_record_came_from(queue, source):
    queue.park(1, source=source)
    queue.dlq("replay", "--delivery", "d-1")
    assert [r.headers["delivery"] for r in queue.read(source)] == ["d-1"]


def test_what_a_delay_parked_goes_where_the_delay_would_have_sent_it(queue):
    queue.park(1, source="delay.1m", to_topic=queue.prefix + "dispatch.l3", not_before_ms="never")
    assert "replayed to dispatch.l3" in queue.dlq("replay", "--source", "delay.1m").stdout
    task, = queue.read("dispatch.l3")
    assert not {"to_topic", "not_before_ms"} & set(task.headers)


def test_what_was_kept_in_part_does_not_go_back_and_says_why(queue):
    queue.park(1, cut="too large to keep: a value of 30000000")
    done = queue.dlq("replay", "--since", "1d", expect=1)
    assert "0 replayed, 0 resolved before, 1 cannot be" in done.stdout
    assert "only a part of it is here: too large to keep: a value of 30000000" in done.stderr
    assert "cut: too large to keep" in queue.dlq("show", queue.place(1)).stdout
    assert queue.read("dispatch.l2") == []


def test_a_row_does_not_go_back_and_says_what_to_do(queue):
    """The newest of its job may be in `results` already, and an older one would take its place."""
    queue.park(1, source="results", value=b'{"status": "in_progress"}')
    queue.park(2)
    done = queue.dlq("replay", "--since", "1d", expect=1)
    assert "1 replayed, 0 resolved before, 1 cannot be" in done.stdout
    assert "crcrctl replay --topic callbacks" in done.stderr and queue.read("results") == []
    assert [row["delivery"] for row in queue.rows()] == ["d-1"]
    queue.dlq("drop", "--source", "results")
    assert queue.rows() == []


def test_what_its_topic_refuses_stays_and_holds_up_no_other(queue):
    queue.park(1)
    queue.park(2, source="events")
    queue.refuse("dispatch.l2")
    done = queue.dlq("replay", "--since", "1d", expect=1)
    assert "1 replayed, 0 resolved before, 1 cannot be" in done.stdout
    assert f"{queue.place(1)}: topic {queue.prefix}dispatch.l2: " in done.stderr and "too large" in done.stderr
    assert [row["delivery"] for row in queue.rows()] == ["d-1"]


def test_a_queue_that_refuses_to_note_what_was_put_back_ends_the_replay(queue):
    queue.park(1)
    queue.park(2)
    queue.refuse("dlq")
    done = queue.dlq("replay", "--since", "1d", expect=1)
    task, = queue.read("dispatch.l2")  # the other would come twice, too
    assert f"crcrctl dlq replay: {task.headers['dlq']} is put back, but not noted: topic {queue.prefix}dlq: " in done.stderr
    assert "too large" in done.stderr
    assert "0 replayed, 0 resolved before, 0 cannot be" in done.stdout and "2 are left" in done.stderr
    assert queue.resolutions() == []


def test_what_can_go_nowhere_stays_and_is_exit_1(queue):
    queue.park(1, source="allowlist")
    queue.park(2)
    done = queue.dlq("replay", "--since", "1d", expect=1)
    assert "1 replayed, 0 resolved before, 1 cannot be" in done.stdout
    assert "where nothing can be put back" in done.stderr
    assert [row["delivery"] for row in queue.rows()] == ["d-1"]
    queue.dlq("drop", queue.place(1))
    assert queue.rows() == []


def test_filters_choose_what_is_replayed(queue):
    for number, cls in ((1, "refused"), (2, "exhausted"), (3, "refused")):
        queue.park(number, cls=cls, repos="org/b" if number == 3 else "org/a")
    queue.dlq("replay", "--class", "refused", "--repo", "org/a")
    assert [r.headers["delivery"] for r in queue.read("dispatch.l2")] == ["d-1"]


def test_a_dry_run_writes_nothing(queue):
    queue.park(1)
    said = queue.dlq("replay", "--dry-run", "--class", "refused").stdout
    assert "would be replayed to dispatch.l2" in said and "1 would be replayed" in said and "d-1" in said
    assert "would be dropped" in queue.dlq("drop", "--dry-run", "--class", "refused").stdout
    assert queue.read("dispatch.l2") == [] and queue.resolutions() == []


VERBS = pytest.mark.parametrize("verb,done", [("replay", "replayed"), ("drop", "dropped")], ids=["replay", "drop"])


@VERBS
def test_the_rate_holds(queue, verb, done):
    for number in range(6):
        queue.park(number + 1)
    began = time.monotonic()
    assert f"6 {done}" in queue.dlq(verb, "--rate", "5/s", "--since", "1d").stdout
    assert time.monotonic() - began >= 0.95
    assert len(queue.read("dispatch.l2")) == (6 if verb == "replay" else 0)


@VERBS
def test_what_takes_long_tells_how_far_it_is(queue, verb, done):
    for number in range(8):
        queue.park(number + 1)
    said = queue.dlq(verb, "--rate", "1", "--since", "1d").stderr
    assert re.search(rf"crcrctl dlq {verb}: {done} … [1-7] of 8\n", said), said
    assert "\r" not in said, "in place only on a terminal"


@VERBS
@pytest.mark.parametrize("how", ["kill", pytest.param("interrupt", marks=pytest.mark.long)])
def test_what_was_ended_in_the_middle_is_gone_on_with(queue, tmp_path, how, verb, done):
    for number in range(30):
        queue.park(number + 1)
    # So slow that a busy machine sees it in the middle.
    process = Process(verb, [BIN / "crcrctl", "dlq", verb, "--rate", "2", "--since", "1d"], tmp_path,
                      queue.environment())
    wait_for("some to be resolved", lambda: len(queue.resolutions()) >= 2)
    if how == "kill":
        process.kill()
    else:
        process.signal(signal.SIGINT)
        assert process.popen.wait(60) == 1
        assert "run it again to go on" in process.tail()
    resolved = len(queue.resolutions())
    assert 0 < resolved < 30
    assert f"{30 - resolved} {done}, {resolved} resolved before" in queue.dlq(verb, "--since", "1d").stdout
    sent = [r.headers["delivery"] for r in queue.read("dispatch.l2")]
    assert set(sent) == ({f"d-{n + 1}" for n in range(30)} if verb == "replay" else set())
    assert len(sent) <= 31, "only the one that was in hand may come twice"
    if how == "interrupt" and verb == "replay":
        assert len(sent) == 30
    assert queue.rows() == []


# ---- drop -----------------------------------------------------------------------------------------------------
def test_drop_only_notes_it(queue):
    queue.park(1)
    assert "1 dropped" in queue.dlq("drop", queue.place(1)).stdout
    assert queue.read("dispatch.l2") == []
    assert queue.rows("--all")[0]["state"] == "dropped" and queue.rows() == []
    assert "state: dropped" in queue.dlq("show", queue.place(1)).stdout


# ---- in tail and trace ------------------------------------------------------------------------------------------
def test_tail_and_trace_show_resolutions(queue):
    queue.park(1, repos="org/a,org/b")
    queue.park(2)
    one, two = queue.place(1), queue.place(2)
    queue.dlq("replay", one)
    queue.dlq("drop", two)
    lines = queue("tail", "dlq").stdout
    assert f"replayed    by hand: dlq {one}, from {queue.prefix}dispatch.l2" in lines
    trace = queue("trace", "d-1").stdout
    assert "parked      L2 org/a, org/b  parked  refused from" in trace
    assert f"replayed from dlq {one}" in trace and f"resolved    L2 org/a, org/b  replayed  by hand: dlq {one}" in trace
    for repo in ("org/a", "org/b"):
        assert f"{repo}  routed" in trace[trace.index("downstreams"):]
    trace = queue("trace", "d-2").stdout
    assert "org/a  dropped  somebody took it out" in trace[trace.index("downstreams"):]


# ---- usage ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("arguments", (
    [], ["nonsense"], ["list", "--class", "bad"], ["list", "--source", "nowhere"], ["list", "--since", "soon"],
    ["list", "--rate", "5"], ["list", "--repo", "org"], ["replay", "--repo", "org"], ["show"], ["show", "1@2", "1@3"], ["show", "1"], ["replay"], ["drop"], ["replay", "one"],
    ["replay", "--rate", "0", "1@1"], ["replay", "--all"]), ids=" ".join)
def test_wrong_arguments_are_exit_2_and_say_why(nobody, arguments):
    assert nobody.dlq(*arguments, expect=2).stderr.strip()


def test_positions_where_nothing_is_are_named_and_exit_1(queue):
    queue.park(1)
    place = queue.place(1)
    done = queue.dlq("replay", place, "1@17", "0@71", expect=1)
    assert "1 replayed" in done.stdout
    for absent in ("1@17", "0@71"):
        assert f"crcrctl dlq replay: {absent}: no entry is there" in done.stderr
    assert place + ":" not in done.stderr


@VERBS
@pytest.mark.parametrize("arguments", (["--delivery", "d-17"], ["--repo", "org/nobody"], ["--class", "poison"]), ids=" ".join)
def test_a_filter_that_nothing_passes_is_exit_1(queue, verb, done, arguments):
    queue.park(1)
    assert f"crcrctl dlq {verb}: nothing like that is there" in queue.dlq(verb, *arguments, expect=1).stderr
    assert queue.resolutions() == []


def test_lines_do_not_run_into_the_progress_on_a_terminal(queue):
    for number in range(4):
        queue.park(number + 1)
    terminal, theirs = os.openpty()
    process = subprocess.Popen([BIN / "crcrctl", "dlq", "replay", "--rate", "3", "--since", "1d"], stdout=theirs,
                               stderr=theirs, env=queue.environment())
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # Linux tells the end so
        while part := os.read(terminal, 4096):
            said += part
    os.close(terminal)
    assert process.wait(60) == 0
    assert said.count(b"replayed to") == 4 and b" of 4\x1b[K" in said, said
    assert b" of 4\x1b[Kreplayed to" not in said, said


@pytest.mark.parametrize("verb", ["list", "show", "replay", "drop"])
def test_each_has_help(nobody, verb):
    assert "Exit codes" in nobody.dlq(verb, "--help").stdout


def test_an_unreachable_broker_is_exit_3(nobody):
    assert "cannot reach Kafka" in nobody.dlq("list", expect=3, KAFKA_BROKERS="127.0.0.1:1").stderr
