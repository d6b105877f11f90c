"""`crcrctl allowlist save` and `restore`: what comes back into a new Kafka is what was in the old one, tenure included."""
import datetime
import json
import secrets
import subprocess

import pytest

from lib.ctl import Ctl
from lib.processes import BIN, Process, wait_for

DAY_MS = 86_400_000
LISTS = ("L1: [org/a]\n", "", "# two lines, \"quotes\", a tab\there, ü\nL2: [org/a]\n")
RECORDS = [*(("allowlist", text) for text in LISTS), ("providers", "{}\n"), ("demotions", '{"schema_version":1,"demoted":[]}')]


def relay(kafka_node):
    return Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.").create_topics(partitions=1)


@pytest.fixture(scope="module")
def old(kafka_node):
    one = relay(kafka_node)
    for number, (key, text) in enumerate(RECORDS):
        one.write("allowlist", key, text.encode(), source="https://example.org/a?b=c", sha=f"{number}" * 64,
                  fetched_ms=1_700_000_000_000 + number * DAY_MS)
    return one


@pytest.fixture
def new(kafka_node):
    return relay(kafka_node)


def inside(ctl):
    return [(one.key, one.value, one.headers) for one in ctl.read("allowlist")]


def today():
    return datetime.datetime.now(datetime.timezone.utc).strftime("allowlist-%d.jsonl")


def mode(path):
    return oct(path.stat().st_mode & 0o777)


# ---- there and back ----------------------------------------------------------------------------------------------------
def test_what_is_restored_is_what_was_saved_and_who_did_it_is_noted(old, new, tmp_path):
    file = tmp_path / "copy.jsonl"
    assert old("allowlist", "save", file).stdout == f"5 records saved in {file}\n"
    assert mode(file) == "0o600" and list(tmp_path.iterdir()) == [file]
    said = new("allowlist", "restore", file, "--reason", "Kafka was lost").stdout
    assert said == f"5 records restored to {new.prefix}allowlist\n"
    assert len(inside(new)) == 5 and inside(new) == inside(old)
    began, ended = new.read("audit")
    assert began.headers["verb"] == "allowlist restore" and began.headers["reason"] == "Kafka was lost"
    assert ended.headers["result"] == "5 records restored" and ended.headers["exit_code"] == "0"


def test_standard_output_and_input_do_as_well(old, new):
    copy = old("allowlist", "save").stdout
    assert copy == old("allowlist", "save", "-", "--json").stdout and len(copy.splitlines()) == 5
    assert json.loads(new("allowlist", "restore", "-", "--json", input=copy).stdout) == {"records": 5}
    assert new("allowlist", "save").stdout == copy


def test_a_copy_made_by_kcat_is_taken(new):
    line = {"topic": "crcr.allowlist", "partition": 0, "offset": 7, "tstype": "create", "ts": 1, "broker": 0, "key": "allowlist",
            "headers": ["source", "here", "fetched_ms", "17"], "payload": LISTS[2]}
    new("allowlist", "restore", "-", input=json.dumps(line, ensure_ascii=False) + "\n")
    assert inside(new) == [("allowlist", LISTS[2].encode(), {"source": "here", "fetched_ms": "17"})]


def test_what_no_daemon_takes_is_in_no_copy(kafka_node):
    one = relay(kafka_node)
    for key, text in (("allowlist", "L1: ["), ("allowlist", LISTS[0]), ("demotions", "{}"), ("other", "x")):
        one.write("allowlist", key, text.encode())
    done = one("allowlist", "save")
    saved, = map(json.loads, done.stdout.splitlines())
    assert saved["payload"] == LISTS[0] and saved["headers"][0] == "fetched_ms" and int(saved["headers"][1]) > 1_700_000_000_000
    assert "3 records that no daemon takes were left out" in done.stderr


# ---- a folder of copies ------------------------------------------------------------------------------------------------
def test_a_folder_gets_a_copy_for_the_day_of_the_month(old, tmp_path):
    before = today()
    for name in (before, "allowlist-00.jsonl"):
        (tmp_path / name).write_text("last month's")
    said = json.loads(old("allowlist", "save", tmp_path, "--json").stdout)
    assert said["records"] == 5 and said["file"] in (f"{tmp_path}/{before}", f"{tmp_path}/{today()}")
    with open(said["file"]) as file:
        assert file.read() == old("allowlist", "save").stdout
    assert (tmp_path / "allowlist-00.jsonl").read_text() == "last month's"


def test_again_and_again_until_sigterm(old, tmp_path):
    process = Process("keep", [BIN / "crcrctl", "allowlist", "save", tmp_path, "--every", "1s"], tmp_path, old.environment())
    wait_for("two copies", lambda: process.text().count("5 records saved") > 1)
    assert process.stop() == 0


def test_with_every_a_failure_ends_nothing(new, tmp_path):
    process = Process("keep", [BIN / "crcrctl", "allowlist", "save", tmp_path, "--every", "1s"], tmp_path, new.environment())
    wait_for("an empty topic", lambda: "nothing is in" in process.text())
    new.write("allowlist", "allowlist", LISTS[0].encode())
    wait_for("a copy", lambda: "1 records saved" in process.text())
    assert process.stop() == 0


# ---- what goes wrong ---------------------------------------------------------------------------------------------------
def test_an_empty_topic_takes_the_place_of_no_copy(new, tmp_path):
    file = tmp_path / "copy.jsonl"
    file.write_text("yesterday's")
    assert f"nothing is in {new.prefix}allowlist" in new("allowlist", "save", file, expect=1).stderr
    assert file.read_text() == "yesterday's" and list(tmp_path.iterdir()) == [file]
    assert "nothing is in" in new("allowlist", "save", expect=1).stderr


def test_where_it_cannot_write_it_says_so(old, tmp_path):
    said = old("allowlist", "save", tmp_path / "none/x", expect=1).stderr
    assert f"{tmp_path}/none/x.part-" in said and "No such file" in said
    (tmp_path / "link").symlink_to("/dev/null")
    assert f"{tmp_path}/link is no regular file" in old("allowlist", "save", tmp_path / "link", expect=1).stderr
    assert [one.name for one in tmp_path.iterdir()] == ["link"]
    with open("/dev/full", "w") as full:
        done = subprocess.run([BIN / "crcrctl", "allowlist", "save"], env=old.environment(), stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "it cannot be written: No space left" in done.stderr


def test_every_without_a_file_is_wrong_usage(old):
    assert "--every" in old("allowlist", "save", "--every", "1d", expect=2).stderr
    old("allowlist", "restore", expect=2)


GOOD = json.dumps({"key": "allowlist", "headers": ["fetched_ms", "17"], "payload": LISTS[0]})


@pytest.mark.parametrize("lines,fault", [
    (["L1: [org/a]"], ":1: not JSON: "), ([GOOD, "[]"], ":2: "), ([GOOD, '{"key":"x","payload":"x"}'], ":2: its key is none of allowlist, "),
    ([GOOD, '{"key":"allowlist"}'], ":2: it has no payload"), ([], ": nothing is in it"),
    ([GOOD, json.dumps({"key": "allowlist", "payload": LISTS[2]})], ":2: it has no header fetched_ms"),
    ([GOOD, json.dumps({"key": "demotions", "payload": RECORDS[4][1]}), GOOD], ":3: the first line again"),
    ([GOOD, json.dumps({"key": "allowlist", "payload": "L1:\n  - x\n"})], ":2: allowlist:2:5: "),
    ([GOOD, json.dumps({"key": "providers", "payload": "- x"})], ":2: providers:1:1: "),
    ([GOOD, json.dumps({"key": "demotions", "payload": "{}"})], ":2: ")], ids=lambda one: one if isinstance(one, str) else "")
def test_of_a_wrong_file_nothing_is_written(new, tmp_path, lines, fault):
    file = tmp_path / "copy.jsonl"
    file.write_text("".join(line + "\n" for line in lines))
    assert f"crcrctl allowlist restore: {file}{fault}" in new("allowlist", "restore", file, expect=1).stderr
    assert inside(new) == new.read("audit") == []


def test_a_missing_file_is_named(new, tmp_path):
    assert f"{tmp_path}/none: " in new("allowlist", "restore", tmp_path / "none", expect=1).stderr


def test_what_is_not_empty_stays_as_it_is(old):
    before = inside(old)
    said = old("allowlist", "restore", "-", input=GOOD, expect=1).stderr
    assert f"{old.prefix}allowlist is not empty, and a copy goes into a new topic: nothing was written" in said, "twice would make tenure begin anew"
    assert inside(old) == before and old.read("audit") == []
