"""The topic `audit`: who changed something by hand, when, why, and how it ended. rebuild-hud, redeliver and levels --apply:
in the files of their verbs."""
import getpass
import json
import secrets
import socket

import pytest

from lib.ctl import Ctl
from lib.kafka import configure_topic, create_topics

WHO = f"{getpass.getuser()}@{socket.gethostname()}"


@pytest.fixture
def ctl(kafka_node):
    one = Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.").create_topics()
    one.write("dlq", "pytorch/pytorch#1", b"{}", delivery="d-1", event="pull_request", action="opened", pr=1, repos="org/a",
              tier="L2", kind="dispatch", source_topic=one.prefix + "dispatch.l2", error="404", parked_ms=1, **{"class": "refused"})
    one.write("events", "pytorch/pytorch#7", b"{}", delivery="d-7", event="pull_request", action="opened", pr=7)
    return one


VERBS = pytest.mark.parametrize("verb,arguments,result,to", [
    ("dlq replay", ["--class", "refused"], "1 replayed, 0 cannot be, of 1", "dispatch.l2"),
    ("dlq drop", ["--class=refused"], "1 dropped, 0 cannot be, of 1", "dlq"),
    ("replay", ["--topic", "events", "--pr", "7"], "1 of 1 replayed as ", "events")], ids=lambda one: str(one).replace(" ", "_"))


@VERBS
def test_who_did_what_when_why_and_how_it_ended_are_noted(ctl, verb, arguments, result, to):
    ctl(*verb.split(), *arguments, "--reason", "the App is installed again")
    began, ended = ctl.read("audit")
    assert began.key == ended.key and len(began.key) == 16
    assert began.headers == {"state": "began", "verb": verb, "who": WHO, "arguments": " ".join(arguments),
                             "reason": "the App is installed again"}
    assert ended.headers.pop("result").startswith(result)
    assert ended.headers == {"state": "ended", "verb": verb, "who": WHO, "exit_code": "0"}
    first, second = (" ".join(line.split()) for line in ctl("tail", "audit").stdout.splitlines())
    assert f" audit - {verb} - - - began {WHO}: {' '.join(arguments)} (the App is installed again) [" in first
    assert f" audit - {verb} - - - ended {WHO}, exit 0: {result}" in second
    assert json.loads(ctl("tail", "--json", "audit").stdout.splitlines()[0])["outcome"] == "began"


@VERBS
def test_what_cannot_be_noted_is_not_done(ctl, verb, arguments, result, to):
    before = len(ctl.read(to))
    configure_topic(ctl.brokers, ctl.prefix + "audit", **{"max.message.bytes": "100"})
    said = ctl(*verb.split(), *arguments, expect=1).stderr
    assert f"crcrctl {verb}: nothing was done, for it cannot be noted who does it: topic {ctl.prefix}audit: " in said
    assert len(ctl.read(to)) == before and ctl.read("audit") == []


def test_where_it_is_missing_the_topic_is_named(kafka_node):
    one = Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.")
    create_topics(one.brokers, one.prefix, "dlq 1\n")
    one.write("dlq", "k", b"{}", source_topic=one.prefix + "dispatch.l2", **{"class": "refused"})
    said = one("dlq", "drop", "--class", "refused", expect=1).stderr
    assert f"missing in Kafka: {one.prefix}audit" in said and len(one.read("dlq")) == 1


def test_a_dry_run_and_what_finds_nothing_to_do_note_nothing(ctl):
    ctl("dlq", "drop", "--dry-run", "--class", "refused")
    ctl("dlq", "drop", "--class", "poison", expect=1)
    ctl("replay", "--topic", "events", "--pr", "8", expect=1)
    assert ctl.read("audit") == []


def test_behind_sudo_it_is_the_person(ctl):
    ctl("dlq", "drop", "--class", "refused", SUDO_USER="anna")
    assert {one.headers["who"] for one in ctl.read("audit")} == {f"anna@{socket.gethostname()}"}
