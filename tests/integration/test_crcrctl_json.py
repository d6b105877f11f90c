"""`--json`: each verb of `crcrctl help` that prints something prints it as JSON, a document or one a line."""
import json
import re
import secrets

import pytest

from lib.ctl import Ctl
from lib.kafka import write_all
from lib.redis_server import client_of
from lib.sim import Inbox, Sim

TEXT = {"manual", "completion", "help"}  # for man, a shell, people
ELSEWHERE = {"app create", "app check", "allowlist restore"}  # test_crcrctl_app.py, test_crcrctl_allowlist.py
LISTED = "L1: [org/a]\nL3:\n  npu: { org/bad: [alice] }\n"
DELIVERY = {"event": "pull_request", "delivery": "d-1", "pr": 1, "received_ms": 1, "source": "webhook"}


@pytest.fixture(scope="module")
def tried(kafka_node, redis_node, tmp_path_factory):
    """verb → how it is run here, and with which exit code."""
    folder, inbox = tmp_path_factory.mktemp("json"), Inbox()
    ctl = Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.").create_topics()
    sim = Sim(folder, inbox)
    assert sim.send("POST", "/_sim/webhook", {"event": "ping", "guid": "d-9", "status_code": 502, "payload": {}})[0] == 201
    client_of(redis_node.endpoint, ctl.prefix).delete(f"{ctl.prefix[:-1]}:epoch")
    ctl.more = {"GITHUB_APP_ID": "12345", "GITHUB_APP_PRIVATE_KEY_FILE": str(sim.key), "REDIS_ENDPOINT": redis_node.endpoint,
                "CRCR_GITHUB_API_URL": f"http://127.0.0.1:{sim.port}"}
    ctl.write("events", "pytorch/pytorch#1", b"{}", **DELIVERY)
    for number in range(3):
        ctl.write("dlq", f"k{number}", [b'{"a": 1}', b"no JSON \xff", b"{}"][number], repo="org/a", tier="L1", error="404 \x1b", attempt=5,
                  source_topic=f"{ctl.prefix}dispatch.l1", parked_ms=1, **{**DELIVERY, "class": "refused"})
    write_all(ctl.brokers, ctl.prefix + "allowlist", [("allowlist", LISTED, {"source": "here", "fetched_ms": "1"}, 0)])
    positions = {row["key"]: row["position"] for row in lines(ctl, "dlq", "list")}
    for name, text in (("body.json", "{}"), ("allowlist.yml", LISTED), ("score.yml", 'platform: a\nrelease: "2.12"\nitems: {}\n')):
        (folder / name).write_text(text)
    (folder / "crcr").mkdir()
    (folder / "crcr/one.env").write_text("KAFKA_BROKERS=127.0.0.1:1\n")
    ctl.more["XDG_CONFIG_HOME"] = str(folder)
    send = ("--url", inbox.url + "/x")
    yield ctl, {
        "tail": (0, "all"), "trace": (0, "d-1"), "lag": (0,), "dlq list": (0,), "probe": (1, "org/a"), "levels": (0,), "version": (0,),
        "send-webhook": (0, folder / "body.json", *send), "score": (0, folder / "score.yml"), "config": (0,),
        "send-callback": (0, folder / "body.json", "--token-file", folder / "body.json", *send),
        "dlq show": (0, positions["k1"]), "dlq replay": (0, positions["k0"]), "dlq drop": (0, positions["k1"]),
        "replay": (0, "--topic", "events", "--pr", 1), "rebuild-hud": (0,), "redeliver": (0,), "topics check": (1,), "topics create": (0,),
        "context": (0,), "allowlist check": (0, folder / "allowlist.yml"), "allowlist save": (0, folder / "copy.jsonl")}
    inbox.close()
    assert sim.process.stop() == 0


def lines(ctl, *arguments, expect=0):
    return [json.loads(line) for line in ctl(*arguments, "--json", expect=expect, **getattr(ctl, "more", {})).stdout.splitlines()]


def test_every_verb_that_prints_something_prints_it_as_json(tried):
    ctl, commands = tried
    verbs = [re.match(r"  (\S+(?: \S+)?)  ", line)[1] for line in ctl("help").stdout.splitlines() if line.startswith("  ")]
    assert set(verbs) == set(commands) | TEXT | ELSEWHERE, "how is the new one run here?"
    for verb in verbs:
        if verb in commands:
            code, *arguments = commands[verb]
            assert lines(ctl, *verb.split(), *arguments, expect=code), verb


def test_json_has_what_the_line_has(tried):
    ctl, commands = tried
    answer, = lines(ctl, "send-webhook", *commands["send-webhook"][1:], "--delivery", "d-7")
    assert answer["status"] == 200 and answer["delivery"] == "d-7" and answer["answer"] == "{}"
    assert lines(ctl, "version") == [{"version": ctl("version").stdout.split()[1]}]
    first, *_ = lines(ctl, "config")
    assert first.keys() == {"name", "default", "secret", "meaning"}
    checked, = lines(ctl, "allowlist", "check", commands["allowlist check"][1])
    assert checked == {"valid": True, "repositories": 2, "L1": 1, "L2": 0, "L3": 1, "L4": 0}
    assert {row["state"] for row in lines(ctl, "topics", "check", expect=1)} == {"differs"}
    items = lines(ctl, "score", "--items")
    assert len(items) == 30 and items[0].keys() == {"name", "max", "p0"}


def test_json_of_the_dead_letter_queue(tried):
    ctl, _ = tried
    for number, body in ((10, '{"a": [1]}'), (11, "text"), (12, "{}")):
        ctl.write("dlq", f"k{number}", body.encode(), repo="org/new", source_topic=f"{ctl.prefix}dispatch.l1", error="404", parked_ms=1,
                  **{**DELIVERY, "class": "exhausted"})
    rows = {row["key"]: row["position"] for row in lines(ctl, "dlq", "list", "--repo", "org/new")}
    shown, = lines(ctl, "dlq", "show", rows["k10"])
    assert shown["key"] == "k10" and shown["body"] == {"a": [1]} and shown["state"] == "open" and shown["headers"]["repo"] == "org/new"
    assert lines(ctl, "dlq", "show", rows["k11"])[0]["body"] == "text"
    *dry, summary = lines(ctl, "dlq", "replay", "--dry-run", "--repo", "org/new")
    assert [row["state"] for row in dry] == ["open"] * 3 and summary["dry_run"] and summary["done"] == 3
    one, summary = lines(ctl, "dlq", "drop", rows["k11"])
    assert one["state"] == "dropped" and one["key"] == "k11"
    assert summary == {"done": 1, "state": "dropped", "resolved_before": 0, "cannot": 0, "left": 0, "dry_run": False}
    assert lines(ctl, "dlq", "show", rows["k11"])[0]["state"] == "dropped"


def test_json_of_what_brings_back(tried):
    ctl, _ = tried
    *rows, summary = lines(ctl, "replay", "--topic", "events", "--pr", 1, "--dry-run")
    assert [row["delivery"] for row in rows] == ["d-1"] and summary["dry_run"] and summary["replayed"] == 1
    *_, summary = lines(ctl, "redeliver", "--dry-run")
    assert summary["skipped"] == 1 and summary["published"] == 0 and summary["attempts"] == 1
    wanted, looked = lines(ctl, "rebuild-hud", "--wait", "--timeout", "1s", expect=1)
    assert not wanted["consistent"] and not looked["consistent"] and looked.keys() == {"consistent", "running", "phase", "done", "total"}
