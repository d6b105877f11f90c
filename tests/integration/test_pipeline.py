"""What the relay shows of itself: /api/crcr/pipeline and /api/crcr/health, and the page. A reporter alone: what is written for
the dispatcher waits."""
import struct
import time

import pytest

from lib.kafka import Kafka
from lib.ports import free_port
from lib.processes import wait_for
from lib.relay import http
from test_pages_browser import NARROW, Page, chromium  # noqa: F401 (a fixture)
from test_reporter import Job, Reporter

BREAKER_OPEN = "the downstream failed again and again: its breaker is open"  # dispatcher/dispatch_decide.c
HOSTILE = "<img src=x onerror=document.title='taken'>"


def now_ms():
    return int(time.time() * 1000)


def pipeline(reporter):
    return reporter.relay.api("/api/crcr/pipeline")


def health(reporter):
    return reporter.relay.api("/api/crcr/health")


def waiting(reporter, role, topic):
    group, = [one for one in pipeline(reporter)["groups"] if one["role"] == role]
    found, = [one for one in group["topics"] if one["topic"] == reporter.relay.topic(topic)]
    return found


def open_entries(reporter):
    """Of the dead-letter queue, by delivery."""
    return {one["delivery"]: one for one in pipeline(reporter)["dlq"]["entries"]}


def park(reporter, delivery, error):
    reporter.put("dlq", f"{delivery}/org/four", b"{}", {
        "delivery": delivery, "repos": "org/four", "tier": "L4", "source_topic": reporter.relay.topic("dispatch.l4"),
        "class": "refused", "error": error, "parked_ms": str(now_ms())})


def fill(reporter):
    """Everything that the tests look at: a look at it comes every 5 s only."""
    for number in range(3):
        reporter.put("dispatch.l4", f"key-{number}", b"{}", {"delivery": f"lag-{number}", "repos": "org/four,org/five", "attempt": "2"},
                     timestamp_ms=now_ms() - 400_000 + number * 1000)
    reporter.put("delay.1h", "later", b"{}", {
        "delivery": "later", "repos": "org/four", "to_topic": reporter.relay.topic("dispatch.l4"), "error": "503 from GitHub",
        "not_before_ms": str(now_ms() + 3_600_000)}, timestamp_ms=now_ms() - 1_000_000)
    park(reporter, "d-dropped", "404 Not Found")
    park(reporter, "d-shown", HOSTILE)
    for _ in range(3):
        job = Job(reporter)
        job.outcome("dispatched", received_ms=job.started_ms - 60_000)
    job = Job(reporter)
    job.outcome("dispatched", received_ms=job.started_ms - 7_200_000, source="redelivered")
    Job(reporter, "org/five").outcome("waiting", 1000, http_status=None, error=BREAKER_OPEN, reason="breaker")
    client = reporter.redis.client(reporter.relay.prefix)
    client.set("crcr:budget:us:org", struct.pack("<5d", 0, (now_ms() + 36_000_000) * 1000, 0, 0, 0))
    client.hset("crcr:allowlist", mapping={"error": "allowlist.yml:3:1: no level", "fetched_at": "2026-11-21T03:20:00.000Z"})
    Job(reporter).call("completed", 2000, conclusion="success").wait_result()


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Reporter(tmp_path_factory.mktemp("pipeline"), kafka_node.brokers)
    try:
        fill(one)
        wait_for("a look at all of it", lambda: (seen := health(one)) and seen["dispatches"]["dispatched"] == 4 and
                 seen["breakers"]["open"] and seen["dlq"]["open"] == 2 and seen["allowlist"]["error"] and
                 waiting(one, "l4", "dispatch.l4")["records"] == 3 and waiting(one, "delay", "delay.1h")["records"] == 1 and
                 [topic["records"] for group in pipeline(one)["groups"] if group["role"] == "fold" for topic in group["topics"]] ==
                 [0, 0, 0])
        yield one
    finally:
        one.close()


def test_a_group_that_lags_is_shown_with_its_seconds_and_its_oldest_record(reporter):
    found = waiting(reporter, "l4", "dispatch.l4")
    assert found["seconds"] >= 400 and found["oldest"]["delivery"] == "lag-0"
    assert (found["oldest"]["repos"], found["oldest"]["attempt"]) == ("org/four,org/five", 2)
    roles = {one["role"]: one for one in health(reporter)["roles"]}
    assert (roles["l4"]["records"], roles["l1"]["records"], roles["l1"]["seconds"]) == (3, 0, 0)
    assert roles["l4"]["seconds"] >= 400
    rows = {one["topic"]: one for one in pipeline(reporter)["topics"]}
    assert len(rows) == 18 and rows[reporter.relay.topic("callbacks")]["records"] == 1, "what is done is kept, and does not wait"
    assert rows[reporter.relay.topic("allowlist")]["oldest_at"] == rows[reporter.relay.topic("allowlist")]["newest_at"]


def test_what_is_put_off_says_until_when_and_why(reporter):
    found = waiting(reporter, "delay", "delay.1h")
    assert (found["seconds"], found["oldest"]["error"]) == (0, "503 from GitHub")
    assert found["oldest"]["due_at"] > pipeline(reporter)["looked_at"] and found["oldest"]["to_topic"].endswith("dispatch.l4")


def test_dispatches_of_today_have_their_times_and_an_open_breaker_is_named(reporter):
    seen = health(reporter)
    for percentile in ("p50_seconds", "p99_seconds"):
        assert 56 <= seen["dispatches"][percentile] <= 64  # of 60 s, dated by whole seconds; within 5 %
    assert [(one["repo"], one["answered_at"]) for one in seen["breakers"]["downstreams"]] == [("org/five", None)]


def test_budget_and_allowlist_come_from_redis(reporter):
    seen = health(reporter)
    requests = seen["budget"]["buckets"][0]
    assert (requests["bucket"], requests["account"], requests["left"], requests["left_l4"]) == ("requests_hour", "org", 0, 0)
    assert (seen["allowlist"]["repositories"], seen["allowlist"]["fetched_at"]) == (4, "2026-11-21T03:20:00.000Z")
    assert seen["allowlist"]["error"] == "allowlist.yml:3:1: no level"


def test_the_page_and_the_cards_say_it_in_words(reporter, chromium):  # noqa: F811
    page, place = Page(reporter, chromium), open_entries(reporter)["d-shown"]["position"]
    shown = page.open("/pipeline").wait("dispatch.l4", "Critical", f"crcrctl dlq replay {place}", HOSTILE)
    assert f"crcrctl dlq show {place}" in shown and "not before" in shown
    assert page.js("return document.querySelectorAll('main img').length") == 0 and "taken" not in page.driver.title
    assert page.js("return document.querySelector(arguments[0]) !== null", f"[data-copy='crcrctl dlq replay {place}']")
    cards = page.open("/", NARROW).wait("Relay", "Critical", "GitHub budget", "Breakers", "Dead-letter queue",
                                        "Warning", "Allowlist", selector=".cards")
    assert "l4: the oldest record has waited" in cards and "org/five" in cards
    assert page.js("const terms = [...document.querySelectorAll('main dt')].map((one) => one.textContent);"
                   "return [...document.querySelectorAll('.card h2 a')].every((one) => terms.includes(one.textContent))"), "each has its definition"
    assert page.js("return document.documentElement.scrollWidth <= innerWidth")
    page.click(".card a[href='/pipeline']")
    page.wait("What waits")


def test_what_is_dropped_or_answers_is_shown_no_more(reporter):
    entry = open_entries(reporter)["d-dropped"]
    assert (entry["class"], entry["error"], entry["repos"]) == ("refused", "404 Not Found", "org/four")
    reporter.relay.ctl("dlq", "drop", entry["position"])
    Job(reporter, "org/five").outcome("dispatched", 59_000)
    wait_for("both to be gone", lambda: "d-dropped" not in open_entries(reporter) and health(reporter)["breakers"]["open"] == 0)
    assert "d-shown" in open_entries(reporter)


def test_an_allowlist_that_is_still_being_read_is_not_known_and_not_missing(reporter, chromium, monkeypatch):  # noqa: F811
    """After a start while Kafka is unavailable."""
    relay, port = reporter.relay, free_port()
    relay.start("reporter", "late", CRCR_ROLES="web", CRCR_HUD_LISTEN=f"127.0.0.1:{port}", KAFKA_BROKERS=f"127.0.0.1:{free_port()}")
    monkeypatch.setitem(relay.ports, "hud", port)
    try:
        summary = wait_for("an answer", lambda: relay.api("/api/crcr/summary"))
        assert summary["allowlist"]["caught_up"] is False
        assert http("GET", relay.url("hud", "/repo/org/four/badge.svg")) == (503, b'{"detail":"the allowlist is being read, try again"}')
        assert wait_for("a look", lambda: health(reporter))["allowlist"]["caught_up"] is False
        Page(reporter, chromium).open("/", NARROW).wait("The allowlist is being read", "It is being read.")
    finally:
        relay.parts.pop("late").stop()
    monkeypatch.undo()
    assert health(reporter)["allowlist"]["caught_up"] and relay.api("/api/crcr/summary")["allowlist"]["caught_up"]


@pytest.mark.long  # a Kafka of its own, which is frozen
def test_without_kafka_the_last_look_stays_with_its_age_and_the_reason(tmp_path):
    node = Kafka(tmp_path / "kafka").start()
    one = Reporter(tmp_path, node.brokers)
    try:
        wait_for("a look", lambda: (pipeline(one) or {}).get("groups"))
        node.freeze()
        after = wait_for("the reason", lambda: (seen := pipeline(one))["error"] and seen)
        assert after["groups"] and after["looked_at"] and after["error"] == "the topics are unavailable"
        assert [health(one)[name] for name in ("error", "looked_at")] == [after["error"], after["looked_at"]]
        until = time.monotonic() + 30  # HEALTH_SILENT_MS, and more
        while time.monotonic() < until:
            began = time.monotonic()
            assert pipeline(one)["looked_at"] == after["looked_at"]
            assert time.monotonic() - began < 1, "no request waits for Kafka"
            assert one.relay.metric("reporter", "crcr_role_healthy", role="pipeline") == 1
            time.sleep(0.5)
        node.thaw()
        wait_for("another look", lambda: (seen := pipeline(one))["error"] is None and seen["looked_at"] > after["looked_at"])
    finally:
        node.thaw()
        one.close()
        node.stop()
