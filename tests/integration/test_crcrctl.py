"""crcrctl against a real broker: what it says, and with which exit code."""
import datetime
import hashlib
import hmac
import http.server
import json
import os
import re
import secrets
import signal
import subprocess
import threading
import time

import confluent_kafka
import pytest

from lib.ctl import Ctl
from lib.kafka import create_topics, few_partitions, write_all
from lib.processes import BIN, ROOT, Process, wait_for

DELIVERY = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
SHA = "a" * 40


@pytest.fixture(scope="module")
def ctl(kafka_node):
    one = Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.")
    create_topics(one.brokers, one.prefix)
    return one


@pytest.fixture(scope="module")
def life(ctl):
    """One delivery: of its downstreams one has completed, two of one record are to be sent, one waits, one is of
    the form of before 2026-12."""
    now = int(time.time() * 1000)
    event = {"event": "pull_request", "action": "opened", "delivery": DELIVERY, "pr": 4242,
             "head_sha": SHA, "received_ms": now, "source": "webhook"}
    ctl.write("events", "pytorch/pytorch#4242", b"{}", **event)
    ctl.write("events", "pytorch/pytorch#1", b"{}", **{**event, "delivery": "another", "pr": 1})
    for tier, repos in ((2, "org/done"), (4, "org/stuck,org/late,org/more")):
        ctl.write(f"dispatch.l{tier}", "pytorch/pytorch#4242", b"{}", **event, repos=repos,
                  tier=f"L{tier}", kind="dispatch", attempt=1, seq=f"{now}:0:0")
    ctl.write("dispatch.l1", "org/old|pytorch/pytorch#4242", b"{}", **event, repo="org/old",
              tier="L1", kind="dispatch", attempt=1, seq=f"{now}:0:0")
    ctl.write("delay.1m", "pytorch/pytorch#4242", b"{}", **event, repos="org/late", tier="L4", kind="dispatch",
              attempt=1, seq=f"{now}:0:0", to_topic=ctl.prefix + "dispatch.l4", not_before_ms=now + 60_000,
              error="HTTP 429 \x1b[31m")
    ctl.write("dispatches", f"{DELIVERY}/org/done", json.dumps({
        "delivery_id": DELIVERY, "repo": "org/done", "tier": "L2", "kind": "dispatch",
        "event_type": "pull_request", "pr_number": 4242, "head_sha": SHA, "outcome": "dispatched",
        "http_status": 204, "attempt": 1, "latency_ms": 35, "error": None,
        "maybe_duplicate": False,
        "at": datetime.datetime.now(datetime.timezone.utc).isoformat()}).encode(),
        delivery=DELIVERY, repo="org/done")
    for offset, (status, conclusion) in enumerate((("in_progress", None), ("completed", "success"))):
        ctl.write("callbacks", f"{DELIVERY}/org/done", json.dumps({
            "event_type": "pull_request", "delivery_id": DELIVERY,
            "workflow": {"status": status, "conclusion": conclusion, "name": "CI",
                         "job_name": "linux", "run_id": "1"}}).encode(),
            repo="org/done", level="L2", delivery=DELIVERY, pr=4242, head_sha=SHA,
            received_ms=now + 2000 + offset)
    return now


# ---- topics -----------------------------------------------------------------------------------------
def test_topics_are_created_once_and_then_found(kafka_node):
    def made():
        ctl = Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.")
        missing = ctl("topics", "check", expect=1).stdout.splitlines()
        assert len(missing) == 19 and all(line.startswith("missing ") for line in missing)
        done = subprocess.run([BIN / "crcrctl", "topics", "create"], capture_output=True, text=True, timeout=120,
                              env=ctl.environment())
        assert done.returncode in (0, 3), done.stdout + done.stderr
        return done.returncode == 0 and (ctl, done.stdout.splitlines())
    # 3: not in time. Other topics then: of these some may be there.
    ctl, created = wait_for("the topics to be made in time", made, 120)
    assert all(line.startswith("created ") for line in created)
    assert all(line.startswith("ok ") for line in ctl("topics", "create").stdout.splitlines())
    assert all(line.startswith("ok ") for line in ctl("topics", "check").stdout.splitlines())


def test_topics_that_tests_make_like_the_first_are_as_deploy_has_them(ctl):
    copy = Ctl(ctl.brokers, f"t{secrets.token_hex(4)}.")
    create_topics(copy.brokers, copy.prefix)
    lines = copy("topics", "check").stdout.splitlines()
    assert len(lines) == 19 and all(line.startswith("ok ") for line in lines)


def test_a_topic_that_differs_is_named_with_both_values(ctl, tmp_path):
    other = tmp_path / "topics.conf"
    other.write_text("events 6 retention.ms=1d\n")
    line = ctl("topics", "check", "--file", other, expect=1).stdout.strip()
    assert line.startswith(f"differs  {ctl.prefix}events: partitions is 12, not 6; ")
    assert "retention.ms is 604800000, not 86400000" in line


def test_what_a_back_end_can_fill_takes_a_fraction_of_the_disk(kafka_node):
    ctl = Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.")
    create_topics(ctl.brokers, ctl.prefix, few_partitions(1))
    body = json.dumps({"workflow": {"failed_tests_detail": [
        {"name": f"test_{n}", "message": "AssertionError: Tensor-likes are not close!"} for n in range(300)]}})
    for topic in ("callbacks", "dlq"):
        write_all(kafka_node.brokers, ctl.prefix + topic, [(f"k-{n}", body, {}, 0) for n in range(50)], partition=0)
        on_disk = sum(file.stat().st_size for file in (kafka_node.folder / "data").glob(f"{ctl.prefix}{topic}-0/*.log"))
        assert 0 < on_disk < 50 * len(body) / 5


def test_topics_of_an_older_file_differ_and_are_no_failure_of_create(ctl, tmp_path):
    newer = tmp_path / "topics.conf"
    newer.write_text("events 24\n")
    done = ctl("topics", "create", "--file", newer)
    assert done.stdout.strip() == f"differs  {ctl.prefix}events: partitions is 12, not 24"
    newer.write_text("events 24 retention.ms=1d\n")
    done = ctl("topics", "create", "--file", newer)
    assert "partitions is 12, not 24; retention.ms is " in done.stdout
    assert "warning: 1 topic differ" in done.stderr and "deploy/README.md" in done.stderr
    ctl("topics", "check", "--file", newer, expect=1)


def test_create_raises_what_keeps_more_and_leaves_the_rest(kafka_node, tmp_path):
    ctl = Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.")
    older, newer = tmp_path / "older.conf", tmp_path / "newer.conf"
    older.write_text("one 1 retention.ms=1d max.message.bytes=1048576 cleanup.policy=compact\n")
    newer.write_text("one 1 retention.ms=7d max.message.bytes=2097152 cleanup.policy=delete\n")
    ctl("topics", "create", "--file", older)
    said = ctl("topics", "create", "--file", newer).stdout
    assert said.startswith(f"differs  {ctl.prefix}one: ") and "retention.ms raised from 86400000 to 604800000" in said
    assert "max.message.bytes raised from 1048576 to 2097152" in said and "cleanup.policy is compact, not delete" in said
    left = wait_for("the broker to go by it", lambda: "retention" not in ctl(
        "topics", "check", "--file", newer, expect=1).stdout and ctl("topics", "check", "--file", newer, expect=1).stdout)
    assert left.strip() == f"differs  {ctl.prefix}one: cleanup.policy is compact, not delete"
    older.write_text("one 1 retention.ms=1d max.message.bytes=2097152 cleanup.policy=compact\n")
    assert "retention.ms is 604800000, not 86400000" in ctl("topics", "create", "--file", older).stdout


def test_a_fault_in_the_topics_file_is_named_with_its_place(ctl, tmp_path):
    other = tmp_path / "topics.conf"
    other.write_text("# comment\nevents many\n")
    assert f"{other}:2:8: partitions" in ctl("topics", "check", "--file", other, expect=1).stderr


def test_more_copies_than_brokers_are_refused_by_name(kafka_node):
    ctl = Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.")
    assert "eplication factor" in ctl("topics", "create", "--replication", 3, expect=1).stderr


# ---- errors -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("verb", (pytest.param(["topics", "check"], marks=pytest.mark.long), ["tail"], ["lag"],
                                  ["trace", "x"]), ids=lambda verb: verb[0])
def test_an_unreachable_broker_is_exit_3_with_the_remedy(ctl, verb):
    done = ctl(*verb, expect=3, KAFKA_BROKERS="127.0.0.1:1")
    assert "cannot reach Kafka at 127.0.0.1:1" in done.stderr
    assert "set KAFKA_BROKERS" in done.stderr


@pytest.mark.parametrize("verb", (
    ["tail"], ["trace", "x"], ["dlq", "list"], ["replay", "--topic", "events", "--pr", "1"], ["redeliver"], ["lag"],
    ["topics", "check"], ["probe", "org/a"], ["levels"]), ids=lambda verb: verb[0])
def test_what_needs_kafka_without_its_address_is_exit_2(verb):
    assert "KAFKA_BROKERS is not set" in Ctl("", "t.")(*verb, expect=2).stderr


@pytest.mark.parametrize("verb", (["tail"], ["trace", "x"], ["lag"]), ids=lambda verb: verb[0])
def test_missing_topics_are_named(kafka_node, verb):
    ctl = Ctl(kafka_node.brokers, "nowhere.")
    assert "missing in Kafka: nowhere." in ctl(*verb, expect=1).stderr


@pytest.mark.parametrize("arguments", (
    [], ["nonsense"], ["tail", "--nonsense"], ["tail", "nowhere"], ["tail", "--tier", "5"],
    ["tail", "--since", "soon"], ["trace"], ["trace", "a", "b"], ["trace", "a", "--pr", "1"],
    ["topics"], ["topics", "drop"], ["lag", "nobody"], ["allowlist", "check"],
    ["send-webhook"], ["config"]), ids=" ".join)
def test_wrong_usage_is_exit_2_and_says_why(ctl, arguments):
    assert ctl(*arguments, expect=2).stderr.strip()


def test_every_verb_has_help(ctl):
    listed = [line.split()[0] for line in ctl("--help").stdout.splitlines() if line.startswith("  ")]
    assert len(listed) >= 7
    for verb in listed:
        assert ctl(verb, "--help").stdout.startswith(f"usage: crcrctl {verb}")
        assert ctl("help", verb).stdout == ctl(verb, "--help").stdout
    assert ctl("help").stdout == ctl("--help").stdout and ctl("help", "dlq", "list").stdout == ctl("dlq", "list", "--help").stdout


# ---- tail, trace, lag ---------------------------------------------------------------------------------
def test_tail_shows_what_is_there_and_ends(ctl, life):
    lines = ctl("tail", "events", "dispatch.l4", "dispatches", "callbacks").stdout.splitlines()
    assert len(lines) == 6
    outcome = next(line for line in lines if " dispatches " in line)
    for part in (DELIVERY, "org/done", "L2", "dispatched", "HTTP 204", "35 ms"):
        assert part in outcome
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()[:8]
    assert all(line.startswith(today) for line in lines), "its topics span days"


@pytest.mark.parametrize("filters,expected", (
    (["--pr", "1"], 1), (["--delivery", DELIVERY], 8), (["--repo", "ORG/DONE"], 4), (["--repo", "org/stuck"], 1),
    (["--repo", "ORG/LATE"], 2), (["--repo", "org/old"], 1), (["--tier", "4"], 2), (["--tier", "2", "--delivery", "another"], 0)), ids=str)
def test_tail_filters(ctl, life, filters, expected):
    done = ctl("tail", *filters, "all")
    assert len(done.stdout.splitlines()) == expected, done.stdout


def test_tail_since_shows_that_time_and_later(either_broker):
    ctl = Ctl(either_broker.brokers, either_broker.prefix)
    now = int(time.time() * 1000)
    for minutes in (90, 40, 20):
        ctl.write("events", f"pytorch/pytorch#{minutes}", b"{}", now - minutes * 60_000, event="push", delivery=f"d-{minutes}",
                  received_ms=now - minutes * 60_000)

    def seen(since, *more):
        return [json.loads(line)["delivery"] for line in
                ctl("tail", "--json", "--since", since, *more, "events").stdout.splitlines()]
    assert seen("1h") == ["d-40", "d-20"] and seen("2h") == ["d-90", "d-40", "d-20"] and seen("10m") == []
    assert seen("1h", "--delivery", "d-90") == []


def test_tail_is_in_order_of_time_across_topics_and_partitions(ctl, life):
    rows = [json.loads(line)["at"] for line in ctl("tail", "--json", "all").stdout.splitlines()]
    assert len(rows) >= 7 and rows == sorted(rows)


def test_tail_names_every_downstream_of_a_record(ctl, life):
    line, = ctl("tail", "dispatch.l4").stdout.splitlines()
    assert " L4 org/stuck +2 " in line and "routed" in line and "; for org/stuck, org/late, org/more  [" in line
    for filters in (["--repo", "org/more"], ["--tier", "4"]):
        row, = [json.loads(line) for line in ctl("tail", "--json", *filters, "dispatch.l4").stdout.splitlines()]
        assert row["repo"] is None and row["repos"] == ["org/stuck", "org/late", "org/more"]
    line, = ctl("tail", "delay.1m").stdout.splitlines()
    assert " L4 org/late " in line and "for crcr" not in line and "HTTP 429" in line


def test_tail_of_a_record_of_the_old_form(ctl, life):
    line, = ctl("tail", "dispatch.l1").stdout.splitlines()
    assert " L1 org/old " in line and "; for " not in line
    row = json.loads(ctl("tail", "--json", "dispatch.l1").stdout)
    assert row["repo"] == "org/old" and row["repos"] == ["org/old"]


def test_tail_json_has_what_the_line_has(ctl, life):
    rows = [json.loads(line) for line in ctl("tail", "--json", "callbacks").stdout.splitlines()]
    assert [row["outcome"] for row in rows] == ["in_progress", "success"]
    assert rows[0]["repo"] == "org/done" and rows[0]["pr"] == 4242 and rows[0]["head_sha"] == SHA


def test_tail_follow_shows_what_comes_and_ends_on_sigterm(ctl, life, tmp_path):
    process = Process("tail", [BIN / "crcrctl", "tail", "-f", "--delivery", DELIVERY, "dlq"], tmp_path,
                      ctl.environment())
    ctl.write("dlq", "k", b"x", delivery=DELIVERY, repo="org/parked", source_topic="crcr.dispatch.l1",
              error="HTTP 404", parked_ms=life, **{"class": "refused"})
    process.wait_text("refused from crcr.dispatch.l1: HTTP 404")
    assert process.stop() == 0


def test_a_topic_that_grows_all_the_time_is_read_to_where_it_ended_at_the_start(ctl, life):
    """No fetch brings nothing, which is what librdkafka calls the end of a partition."""
    producer, stop = confluent_kafka.Producer({"bootstrap.servers": ctl.brokers, "linger.ms": 0}), threading.Event()

    def write_on():
        while not stop.wait(0.03):
            producer.produce(ctl.prefix + "allowlist", b"{}", str(time.time()), partition=0)
            producer.poll(0)
    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        began = time.monotonic()
        ctl("tail", "allowlist", CRCR_KAFKA_FETCH_WAIT_MAX_MS="5000")
        assert time.monotonic() - began < 30
    finally:
        stop.set()
        writer.join()
        producer.flush(10)


def said_at(terminal):
    """What comes until the other end is closed, which Linux tells as an error."""
    try:
        while part := os.read(terminal, 4096):
            yield part
    except OSError:
        pass


def test_tail_tells_how_far_it_is_and_an_interrupted_one_is_exit_1(kafka_node, tmp_path):
    ctl = Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.").create_topics()
    # One record a fetch, and no fetch ahead: so long for all that a busy machine interrupts it in time.
    write_all(kafka_node.brokers, ctl.prefix + "events",
              [(f"k{number}", b"{}", {"delivery": f"d-{number}"}, 0) for number in range(500)], batch=1)
    slow = ctl.environment(CRCR_KAFKA_QUEUED_MIN_MESSAGES="1", CRCR_KAFKA_FETCH_MESSAGE_MAX_BYTES="1")
    terminal, theirs = os.openpty()
    process = subprocess.Popen([BIN / "crcrctl", "tail", "events"], stdout=subprocess.PIPE, stderr=theirs, env=slow)
    os.close(theirs)
    said = b""
    for part in said_at(terminal):
        said += part
        if b"reading" in part:
            process.send_signal(signal.SIGINT)
    lines = process.communicate(timeout=60)[0].splitlines()
    os.close(terminal)
    assert b" records" in said and b"interrupted: not all was read" in said, said
    assert process.returncode == 1 and 0 < len(lines) < 500


def test_nothing_from_outside_reaches_the_terminal_raw(ctl, life):
    assert "429" in ctl("tail", "delay.1m").stdout and "\x1b" not in ctl("tail", "delay.1m").stdout
    assert "\x1b" not in ctl("trace", DELIVERY).stdout


def test_trace_shows_each_step_and_where_each_downstream_stands(ctl, life):
    text = ctl("trace", DELIVERY).stdout
    order = ["accepted", "published", "routed", "dispatched", "in_progress", "success", "downstreams"]
    place = 0
    for word in order:
        assert word in text[place:], f"{word} is missing or too early:\n{text}"
        place = text.index(word, place)
    assert f"{ctl.prefix}events[" in text and "#4242" in text
    assert "another" not in text
    states = text[text.index("downstreams"):]
    assert "routed      L4 org/stuck, org/late, org/more  routed" in text and "routed      L1 org/old  routed" in text
    assert "org/done  success" in states and "L1  org/old  routed" in states and "L4  org/more  routed" in states
    assert f"L4  org/late  waits  until " in states
    assert "org/stuck  routed" in states and f"waits for its sender in {ctl.prefix}dispatch.l4[" in states


def test_trace_json_says_the_same(ctl, life):
    trace = json.loads(ctl("trace", "--json", "--pr", 4242).stdout)
    assert trace["delivery"] == DELIVERY and trace["received_ms"] == life
    states = {row["repo"]: row["state"] for row in trace["downstreams"] if row["tier"]}
    assert states == {"org/done": "success", "org/stuck": "routed", "org/late": "waits", "org/more": "routed", "org/old": "routed"}


def test_trace_of_one_downstream_shows_its_steps_and_those_of_all(ctl, life):
    trace = json.loads(ctl("trace", "--json", "--repo", "Org/Late", DELIVERY).stdout)
    assert [step["outcome"] for step in trace["steps"]] == ["accepted", "routed", "waits"]
    assert trace["steps"][1]["repos"] == ["org/stuck", "org/late", "org/more"]
    assert [(row["repo"], row["state"]) for row in trace["downstreams"]] == [("org/late", "waits")]
    text = ctl("trace", "--repo", "org/done", "--pr", 4242).stdout
    assert "accepted" in text and "org/done  success" in text and "org/stuck" not in text
    assert "org/old  routed" in ctl("trace", "--repo", "org/old", DELIVERY).stdout


def test_trace_reads_nothing_of_before_the_delivery_came_where_events_knows_when(kafka_node):
    """Nothing of it can be older: what is here stands for all that the topics keep of before."""
    ctl = Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.").create_topics()
    now, hour = int(time.time() * 1000), 3_600_000
    for minutes in (2 * 1440, 90, 30):
        ctl.write("dlq", "k", b"x", now - minutes * 60_000, delivery="d-1", pr=7, repo="org/a", source_topic="x", error=minutes)

    def parked(*arguments):
        trace = json.loads(ctl("trace", "--json", *arguments).stdout)
        return [step["detail"].rsplit(" ", 1)[1] for step in trace["steps"] if step["topic"].endswith("dlq")]
    assert parked("d-1") == ["2880", "90", "30"], "nobody knows when it came"
    ctl.write("events", "k", b"{}", now, event="pull_request", delivery="another", received_ms=now - 9 * hour, source="webhook")
    for received_ms in (now, now - hour):  # replayed, and as it came: the earliest counts
        ctl.write("events", "k", b"{}", now, event="pull_request", delivery="d-1", pr=7, received_ms=received_ms, source="replay")
    assert parked("d-1") == ["90", "30"], "an hour before it came, for clocks may differ"
    assert parked("d-1", "--since", "3d") == parked("--pr", "7") == ["2880", "90", "30"]


def steps(delivery, n):
    """Parked records of one delivery, each as long in JSON as it can be: 2.6 kB."""
    return (("k", b"x", {"delivery": delivery, "pr": "9", "repo": "org/much", "error": "\x01" * 500},
             int(time.time() * 1000)) for _ in range(n))


@pytest.mark.long
def test_trace_prints_what_fits_delivery_by_delivery_and_says_what_does_not(kafka_node):
    ctl = Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.").create_topics()
    write_all(ctl.brokers, ctl.prefix + "dlq", [*steps("a", 4000), *steps("b", 4000)])
    traces = [json.loads(line) for line in ctl("trace", "--json", "--pr", 9).stdout.splitlines()]
    assert [(trace["delivery"], len(trace["steps"])) for trace in traces] == [("a", 4000), ("b", 4000)]
    write_all(ctl.brokers, ctl.prefix + "dlq", steps("b", 4000))
    done = ctl("trace", "--json", "--pr", 9, expect=1)
    assert [json.loads(line)["delivery"] for line in done.stdout.splitlines()] == ["a"]
    assert "delivery b has 8000 steps, which is more than can be shown" in done.stderr


def test_trace_of_what_is_not_known_is_exit_1(ctl, life):
    assert "nothing of delivery unknown" in ctl("trace", "unknown", expect=1).stderr


def test_lag_counts_what_a_group_has_not_done(ctl, life):
    rows = [json.loads(line) for line in ctl("lag", "--json", "crcr-router").stdout.splitlines()]
    assert len(rows) == 12 and all(row["group"] == f"{ctl.prefix.removesuffix('.')}-router" for row in rows)
    assert sum(row["lag"] for row in rows) == 2 and all(row["committed"] == -1 for row in rows)
    assert "lag 2" in ctl("lag", "crcr-router").stdout and "lag 2" in ctl("lag", rows[0]["group"]).stdout
    assert len(ctl("lag").stdout.splitlines()) == 17


# ---- send-webhook, allowlist ------------------------------------------------------------------------------
class Front(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen = (dict(self.headers), body)
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_):
        pass


@pytest.fixture
def front():
    server = http.server.HTTPServer(("127.0.0.1", 0), Front)
    server.status, server.seen, server.body = 202, None, b'{"ok":true}'
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.url = f"http://127.0.0.1:{server.server_port}/github/webhook"
    yield server
    server.shutdown()
    server.server_close()


def test_send_webhook_signs_the_bytes_of_the_file_as_github_does(ctl, front, tmp_path):
    body = tmp_path / "body.json"
    body.write_bytes(b'{"a": "\xc3\xa9"}\n')
    done = ctl("send-webhook", body, "--event", "push", "--delivery", DELIVERY, "--url", front.url)
    headers, sent = front.seen
    assert sent == body.read_bytes()
    assert headers["X-Hub-Signature-256"] == "sha256=" + hmac.new(b"one", sent, hashlib.sha256).hexdigest()
    assert headers["X-GitHub-Event"] == "push" and headers["X-GitHub-Delivery"] == DELIVERY
    assert done.stdout.startswith("202 in ") and DELIVERY in done.stdout and '{"ok":true}' in done.stdout


def test_send_webhook_tells_a_refusal_from_no_answer(ctl, front, tmp_path):
    body = tmp_path / "body.json"
    body.write_text("{}")
    front.status = 401
    assert ctl("send-webhook", body, "--url", front.url, expect=1).stdout.startswith("401 in ")
    done = ctl("send-webhook", body, "--url", "http://127.0.0.1:1/github/webhook", expect=3)
    assert "is crcr-ingest running there?" in done.stderr
    assert "GITHUB_APP_SECRET" in ctl("send-webhook", body, expect=2, GITHUB_APP_SECRET="").stderr


def test_what_a_server_answers_reaches_the_terminal_without_controls(ctl, front, tmp_path):
    body = tmp_path / "body.json"
    body.write_text("{}")
    front.body = b'{"detail": "\x1b[31mred\r\xc2\x9b"}'
    printed = ctl("send-webhook", body, "--url", front.url).stdout
    assert '{"detail": "\\x1b[31mred\\x0d' in printed and not set(printed) & set("\x1b\r\x9b")


def test_allowlist_check_names_the_place_of_a_fault(ctl, tmp_path):
    good, bad = tmp_path / "good.yml", tmp_path / "bad.yml"
    good.write_text("L1: [org/a, org/b]\nL3:\n  npu: { org/c: [alice] }\n")
    bad.write_text("L1:\n  - org/a\n  - ORG/A\n")
    assert "valid: 3 repositories (L1 2, L2 0, L3 1, L4 0)" in ctl("allowlist", "check", good).stdout
    assert f"{bad}:3:5: " in ctl("allowlist", "check", bad, expect=1).stderr
    ctl("allowlist", "check", tmp_path / "none.yml", expect=1)


def test_allowlist_check_says_of_the_examples_what_their_page_says(ctl, tmp_path):
    page = (ROOT / "deploy" / "ALLOWLIST.md").read_text()
    good, _, bad = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (fault, summary), file = re.findall(r"    \$ crcrctl allowlist check allowlist.yml\n    (.*)", page), tmp_path / "allowlist.yml"
    file.write_text(good)
    assert ctl("allowlist", "check", file).stdout == f"{tmp_path}/{summary}\n"
    file.write_text(bad)
    assert ctl("allowlist", "check", file, expect=1).stderr == f"{tmp_path}/{fault}\n"
