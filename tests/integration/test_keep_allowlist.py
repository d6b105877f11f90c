"""deploy/keep-allowlist: what comes back into a new Kafka is what stood in the old one, tenure included."""
import secrets
import subprocess

import pytest

from lib.ctl import Ctl
from lib.processes import ROOT, Process, wait_for

DAY_MS = 86_400_000
LISTS = ("L1: [org/a]\n", "# two lines, \"quotes\", a tab\there, ü\nL2:\n  org/a: {}\n", '{"schema_version":1,"demoted":[]}')


def relay(kafka_node):
    return Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.").create_topics(partitions=1)


def keep(ctl, *arguments, given="", code=0, **more):
    done = subprocess.run([ROOT / "deploy/keep-allowlist", *arguments], input=given, capture_output=True, text=True, timeout=60,
                          env=ctl.environment(**more))
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def old(kafka_node):
    ctl = relay(kafka_node)
    for number, (key, text) in enumerate(zip(("allowlist", "allowlist", "demotions"), LISTS)):
        ctl.write("allowlist", key, text.encode(), source="https://example.org/a?b=c", sha=f"{number}" * 64,
                  fetched_ms=1_700_000_000_000 + number * DAY_MS)
    return ctl


def printed(ctl):
    return [(r.key, r.value, r.headers) for r in ctl.read("allowlist")]


def test_what_is_played_back_is_what_was_kept(old, kafka_node):
    kept = keep(old, "save")
    new = relay(kafka_node)
    assert keep(new, "restore", given=kept) == f"3 records written to {new.prefix}allowlist\n"
    assert len(printed(new)) == 3 and printed(new) == printed(old)
    assert "is not empty" in keep(new, "restore", given=kept, code=1), "twice would make tenure begin anew"
    assert printed(new) == printed(old)


def test_an_empty_topic_is_not_taken_for_a_copy(kafka_node):
    assert "nothing of" in keep(relay(kafka_node), "save", code=1)


def test_a_copy_a_day_is_kept_and_the_newest_30_of_them(old, tmp_path):
    for day in range(40):
        (tmp_path / f"allowlist-2024-01-{day:02}.jsonl").write_text("an old one")
    assert "3 records kept in" in keep(old, "keep", tmp_path)
    *rest, newest = sorted(tmp_path.iterdir())
    assert newest.read_text() == keep(old, "save") and len(rest) == 29 and rest[0].name == "allowlist-2024-01-11.jsonl"


def test_a_copy_that_is_not_whole_takes_the_place_of_none(kafka_node, tmp_path):
    assert "nothing of" in keep(relay(kafka_node), "keep", tmp_path, code=1)
    assert list(tmp_path.iterdir()) == []


def test_again_and_again_until_sigterm(old, tmp_path):
    process = Process("keep", [ROOT / "deploy/keep-allowlist", "keep", tmp_path, "--every", "1"], tmp_path, old.environment())
    wait_for("two copies", lambda: process.text().count("3 records kept") > 1)
    assert process.stop() == 0


def test_settings_are_those_of_the_daemons(old, tmp_path):
    """A password from a file, an empty one where there is none, as systemd and compose hand it over."""
    (tmp_path / "none").write_text("\n")
    more = {"CRCR_KAFKA_SASL_PASSWORD_FILE": str(tmp_path / "none"), "CRCR_KAFKA_CLIENT_RACK": "a"}
    assert keep(old, "save", **more) == keep(old, "save")
    (tmp_path / "wrong").write_text("no-such-protocol\n")
    assert "security.protocol" in keep(old, "save", code=1, CRCR_KAFKA_SECURITY_PROTOCOL_FILE=str(tmp_path / "wrong"))


def test_wrong_usage(old):
    assert "usage" in keep(old, code=2) and "usage" in keep(old, "save", "more", code=2)
