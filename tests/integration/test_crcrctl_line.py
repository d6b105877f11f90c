"""crcrctl's command line: what is answered without a configuration, what it suggests, ids cut short, the last lines."""
import fcntl
import json
import os
import re
import secrets
import struct
import subprocess
import termios
import time

import pytest

from lib.ctl import Ctl
from lib.processes import BIN, Process, wait_for

NOW = int(time.time() * 1000)


@pytest.fixture(scope="module")
def ctl(kafka_node):
    """Five events, a minute apart; one of them is in the dead-letter queue, too."""
    one = Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.").create_topics()
    for n, delivery in enumerate(("abc-1", "abc-11", "abd-2", "b-3", "c-4")):
        at = NOW - (10 - n) * 60_000
        one.write("events", f"pytorch/pytorch#{n}", b"{}", at, event="push", delivery=delivery, pr=n % 2 + 1, received_ms=at)
    one.write("dlq", "k", b"x", NOW, delivery="b-3", repo="org/a", source_topic="x", error="404", parked_ms=NOW, **{"class": "refused"})
    return one


BROKEN = {"KAFKA_BROKERS": "no address", "CRCR_NO_SUCH_NAME": "1"}


@pytest.mark.parametrize("arguments,code,says", (
    (["help"], 0, "usage: crcrctl VERB"), (["help", "tail"], 0, "--follow"), (["tail", "--help"], 0, "--follow"),
    (["version"], 0, "crcrctl "), (["--version"], 0, "crcrctl "), (["dlq", "--help"], 0, "crcrctl dlq drop"),
    (["tial"], 2, "no verb 'tial'; did you mean tail?"), (["dlq", "lst"], 2, "no verb 'dlq lst'; did you mean dlq list?"),
    (["help", "trase"], 2, "did you mean trace?"), (["topics", "drop"], 2, "did you mean topics"),
    (["nonsense"], 2, "no verb 'nonsense'; `crcrctl help` lists all"), ([""], 2, "usage: crcrctl VERB"), ([], 2, "usage: crcrctl VERB"),
    (["--context", "x", "lag"], 2, "options come after the verb"), (["tail", "--folow"], 2, "did you mean --follow?"), (["tail", "evnts"], 2, "did you mean events?"),
    (["lag", "crcr-fodl"], 2, "did you mean crcr-fold?"), (["dlq", "show", "x"], 2, "PARTITION@OFFSET"),
    (["send-webhook"], 2, "usage: crcrctl send-webhook"), (["tail", "events"], 2, "CRCR_NO_SUCH_NAME")), ids=str)
def test_arguments_come_before_the_configuration(arguments, code, says):
    done = Ctl("", "t.")(*arguments, expect=code, **BROKEN)
    assert says in (done.stderr if code else done.stdout) and "''" not in done.stderr


def test_with_the_configuration_a_topic_has_its_prefix_or_none(ctl):
    assert "topic 'other.events': accepted is events" in ctl("tail", "other.events", expect=2).stderr
    assert "group 'other-router'" in ctl("lag", "other-router", expect=2).stderr


@pytest.mark.parametrize("arguments", (
    ["tail", "--delivery", ""], ["tail", ""], ["lag", ""], ["dlq", "show", ""], ["probe", ""], ["trace", ""], ["trace"], ["replay"],
    ["dlq", "replay"], ["levels", "--dry-run"], ["score"], ["config"], ["rebuild-hud"], ["send-callback", "x"], ["dlq", ""],
    ["topics", "check", "--file", ""], ["send-webhook", "x", "--url", ""], ["score", ""],
    ["send-callback", "x", "--token-file", "y", "--conclusion", ""], ["send-webhook", ""], ["allowlist", "check", ""]), ids=str)
def test_no_message_has_empty_quotes(ctl, arguments):
    done = subprocess.run([BIN / "crcrctl", *arguments], capture_output=True, text=True, timeout=60, env=ctl.environment())
    assert done.returncode in (1, 2) and done.stderr.strip()
    assert "''" not in done.stderr and '""' not in done.stderr and " : " not in done.stderr and not done.stderr.startswith(":")


def test_an_empty_text_of_a_file_is_named_as_one(ctl):
    done = ctl("allowlist", "check", "-", input='L1: [""]\n', expect=1)
    assert done.stderr.startswith("-:1:6: an empty text is not a repository")


# ---- the last lines, until when, ids cut short --------------------------------------------------------
def deliveries(ctl, *arguments):
    return [json.loads(line)["delivery"] for line in ctl("tail", "--json", *arguments, "events").stdout.splitlines()]


@pytest.mark.parametrize("arguments,expected", (
    (["-n", 2], ["b-3", "c-4"]), (["--lines", 100], ["abc-1", "abc-11", "abd-2", "b-3", "c-4"]), (["-n1", "--pr", 2], ["b-3"]),
    (["-n", 1, "--until", "7m"], ["abd-2"]), (["--until", "8m"], ["abc-1", "abc-11"]),
    (["--since", "9m", "--until", "7m"], ["abc-11", "abd-2"])), ids=str)
def test_tail_shows_the_last_lines_and_ends_at_a_time(ctl, arguments, expected):
    moved = [f"{int(one[:-1]) * 60 + int(time.time() - NOW / 1000) + 30}s" if str(one).endswith("m") else one for one in arguments]
    assert deliveries(ctl, *moved) == expected


def test_tail_follow_begins_with_the_last_lines(ctl, tmp_path):
    process = Process("tail", [BIN / "crcrctl", "tail", "-f", "-n", "2", "events"], tmp_path, ctl.environment())
    process.wait_text("all read so far")
    before = [line for line in process.text().splitlines() if " events " in line]
    assert len(before) == 2 and " b-3 " in before[0] and " c-4 " in before[1]
    ctl.write("events", "k", b"{}", NOW - 15 * 60_000, event="push", delivery="late-5", received_ms=NOW)
    process.wait_text(" late-5 ")
    assert process.stop() == 0
    assert "--until" in ctl("tail", "-f", "--until", "1h", expect=2).stderr


def test_an_id_may_be_cut_short_while_only_one_begins_so(ctl):
    assert deliveries(ctl, "--delivery", "abd") == ["abd-2"]
    assert ctl("trace", "abd").stdout.startswith("delivery abd-2 ")
    assert json.loads(ctl("dlq", "list", "--json", "--delivery", "b").stdout)["delivery"] == "b-3"
    assert deliveries(ctl, "--delivery", "abc-1") == ["abc-1"], "one that is whole is taken as it is"
    done = ctl("trace", "ab", expect=2)
    assert "3 deliveries begin with 'ab': " in done.stderr and not done.stdout
    assert all(delivery in done.stderr for delivery in ("abc-1", "abc-11", "abd-2"))
    assert "nothing of delivery zz" in ctl("trace", "zz", expect=1).stderr


def test_lag_watch_goes_on_until_a_signal(ctl, tmp_path):
    process = Process("lag", [BIN / "crcrctl", "lag", "--watch", "--json", "crcr-router"], tmp_path, ctl.environment())
    process.wait_text("lag")
    first = len(process.text().splitlines())
    ctl.write("events", "k", b"{}", NOW - 20 * 60_000, event="push", delivery="late-6", received_ms=NOW)

    def again():
        rows = [json.loads(line) for line in process.text().splitlines()]
        return len(rows) >= 3 * first and len({row["at"] for row in rows}) >= 3
    wait_for("it to look again", again)
    assert process.stop() == 0


# ---- the terminal's width -----------------------------------------------------------------------------
def at_a_terminal(ctl, columns, *arguments, **environment):
    """What it prints to a terminal of that width, without colours; exit code 0 or 1."""
    terminal, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen([BIN / "crcrctl", *map(str, arguments)], stdout=theirs, stderr=subprocess.PIPE, env=ctl.environment(**environment))
    os.close(theirs)
    said = b""
    try:
        while part := os.read(terminal, 4096):
            said += part
    except OSError:  # the other end is closed
        pass
    os.close(terminal)
    assert process.wait(60) in (0, 1), process.stderr.read()
    process.stderr.close()
    return re.sub(r"\x1b\[\d*m", "", said.decode()).splitlines()


@pytest.mark.parametrize("arguments", (["tail", "all"], ["dlq", "list"], ["trace", "b-3"], ["probe", "org/a"], ["help", "levels"]),
                         ids=lambda arguments: arguments[0])
def test_lines_fit_the_terminal_and_are_whole_in_a_pipe(ctl, arguments):
    piped = subprocess.run([BIN / "crcrctl", *arguments], capture_output=True, text=True, env=ctl.environment(), timeout=60).stdout
    assert max(map(len, piped.splitlines())) > 60 and not any(line.endswith("…") for line in piped.splitlines())
    narrow, wide = at_a_terminal(ctl, 60, *arguments), at_a_terminal(ctl, 400, *arguments)
    assert max(map(len, narrow)) <= 60 < max(map(len, wide)), narrow
    assert len(at_a_terminal(ctl, 0, *arguments, COLUMNS="60")) == len(narrow)


def test_on_a_narrow_terminal_the_outcome_is_still_seen(ctl):
    line, = [line for line in at_a_terminal(ctl, 80, "tail", "dlq")]
    assert " dlq " in line and " b-3 " in line and " parked" in line and line.endswith("…")
    head, entry, _ = at_a_terminal(ctl, 80, "dlq", "list")
    assert head.split() == ["WHERE", "CLASS", "SOURCE", "DELIVERY", "REPO", "ERROR"] and entry.endswith("404")
