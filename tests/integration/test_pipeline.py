"""What the relay shows of itself: /api/crcr/pipeline and /api/crcr/health, and the page. A reporter alone: what is written for
the dispatcher waits."""
import time

import pytest

from lib.kafka import Kafka
from lib.processes import wait_for
from test_pages_browser import NARROW, Page, chromium  # noqa: F401 (a fixture)
from test_reporter import Job, Reporter

BREAKER_OPEN = "the downstream failed again and again: its breaker is open"  # dispatcher/dispatch_decide.c
HOSTILE = "<img src=x onerror=document.title='taken'>"


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Reporter(tmp_path_factory.mktemp("pipeline"), kafka_node.brokers)
    try:
        yield one
    finally:
        one.close()


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


def park(reporter, delivery, error="404 Not Found"):
    """An entry of the dead-letter queue; its place once it is shown."""
    reporter.put("dlq", f"{delivery}/org/four", b"{}", {
        "delivery": delivery, "repos": "org/four", "tier": "L4", "source_topic": reporter.relay.topic("dispatch.l4"),
        "class": "refused", "error": error, "parked_ms": str(now_ms())})
    return wait_for("the entry", lambda: [one for one in pipeline(reporter)["dlq"]["entries"] if one["delivery"] == delivery])[0]


def test_a_group_that_lags_is_shown_with_its_seconds_and_its_oldest_record(reporter):
    at = now_ms() - 400_000
    for number in range(3):
        reporter.put("dispatch.l4", f"key-{number}", b"{}", {"delivery": f"lag-{number}", "repos": "org/four,org/five", "attempt": "2"},
                     timestamp_ms=at + number * 1000)
    found = wait_for("the records to wait", lambda: (one := waiting(reporter, "l4", "dispatch.l4"))["records"] == 3 and one)
    assert found["seconds"] >= 400 and found["oldest"]["delivery"] == "lag-0"
    assert (found["oldest"]["repos"], found["oldest"]["attempt"]) == ("org/four,org/five", 2)
    roles = {one["role"]: one for one in health(reporter)["roles"]}
    assert (roles["l4"]["records"], roles["l1"]["records"], roles["l1"]["seconds"]) == (3, 0, 0)
    assert roles["l4"]["seconds"] >= 400


def test_what_is_put_off_says_until_when_and_why(reporter):
    reporter.put("delay.1h", "later", b"{}", {
        "delivery": "later", "repos": "org/four", "to_topic": reporter.relay.topic("dispatch.l4"), "error": "503 from GitHub",
        "not_before_ms": str(now_ms() + 3_600_000)}, timestamp_ms=now_ms() - 1_000_000)
    found = wait_for("the record", lambda: (one := waiting(reporter, "delay", "delay.1h"))["oldest"] and one)
    assert (found["seconds"], found["oldest"]["error"]) == (0, "503 from GitHub")
    assert found["oldest"]["due_at"] and found["oldest"]["to_topic"].endswith("dispatch.l4")


def test_what_is_done_waits_no_more(reporter):
    """The role fold runs; its topics have records, and their ages."""
    Job(reporter).call("completed", 2000, conclusion="success").wait_result()
    wait_for("fold to have nothing left", lambda: [one["records"] for group in pipeline(reporter)["groups"] if group["role"] == "fold"
                                                   for one in group["topics"]] == [0, 0, 0])
    rows = {one["topic"]: one for one in pipeline(reporter)["topics"]}
    assert len(rows) == 15 and rows[reporter.relay.topic("callbacks")]["records"] >= 1
    assert rows[reporter.relay.topic("allowlist")]["oldest_at"] <= rows[reporter.relay.topic("allowlist")]["newest_at"]


def test_a_dlq_entry_is_shown_until_it_is_dropped(reporter):
    entry = park(reporter, "d-dropped")
    assert (entry["class"], entry["error"], entry["repos"]) == ("refused", "404 Not Found", "org/four")
    assert health(reporter)["dlq"]["open"] == 1
    reporter.relay.ctl("dlq", "drop", entry["position"])
    wait_for("it to be gone", lambda: entry["position"] not in [one["position"] for one in pipeline(reporter)["dlq"]["entries"]])


def test_dispatches_of_today_have_their_times_and_an_open_breaker_is_named(reporter):
    before = wait_for("the topic to be read", lambda: (one := health(reporter)["dispatches"])["dispatched"] is not None and one)
    at = now_ms() - 60_000  # as Job dates it
    for _ in range(3):
        Job(reporter).outcome("dispatched", received_ms=at - 2000)
    Job(reporter).outcome("dispatched", received_ms=at - 7_200_000, source="redelivered")
    Job(reporter, "org/five").outcome("waiting", 1000, http_status=None, error=BREAKER_OPEN)
    after = wait_for("them to count", lambda: (one := health(reporter)) and one["breakers"]["open"] and
                     one["dispatches"]["dispatched"] == before["dispatched"] + 4 and one)
    assert 1 <= after["dispatches"]["p50_seconds"] <= 4 and after["dispatches"]["p99_seconds"] < 10
    assert [one["repo"] for one in after["breakers"]["downstreams"]] == ["org/five"]
    Job(reporter, "org/five").outcome("dispatched", 59_000)
    wait_for("it to answer", lambda: health(reporter)["breakers"]["open"] == 0)


def test_budget_and_allowlist_come_from_redis(reporter):
    client = reporter.redis.client(reporter.relay.prefix)
    full = (now_ms() + 10 * 3600_000) * 1000
    client.hset("crcr:budget:org", mapping={"1": full, "2": 0, "3": 0, "4": 0, "limited": 0})
    client.hset("crcr:allowlist", mapping={"error": "allowlist.yml:3:1: no level", "fetched_at": "2026-11-21T03:20:00.000Z"})
    found = wait_for("both", lambda: (one := health(reporter))["allowlist"]["error"] and one)
    requests = found["budget"]["buckets"][0]
    assert (requests["bucket"], requests["account"], requests["left"], requests["left_l4"]) == ("requests_hour", "org", 0, 0)
    assert (found["allowlist"]["repositories"], found["allowlist"]["fetched_at"]) == (4, "2026-11-21T03:20:00.000Z")
    client.delete("crcr:budget:org", "crcr:allowlist")


def test_the_page_and_the_cards_say_it_in_words(reporter, chromium):  # noqa: F811
    page = Page(reporter, chromium)
    entry = park(reporter, "d-shown", error=HOSTILE)
    shown = page.open("/pipeline").wait("dispatch.l4", "not well", f"crcrctl dlq replay {entry['position']}", HOSTILE)
    assert f"crcrctl dlq show {entry['position']}" in shown and "not before" in shown
    assert page.js("return document.querySelectorAll('main img').length") == 0 and "taken" not in page.driver.title
    assert page.js("return document.querySelector(\"[data-copy^='crcrctl dlq replay']\").dataset.copy").endswith(entry["position"])
    cards = page.open("/", NARROW).wait("Relay", "not well", "Dispatches today", "GitHub budget", "Breakers", "Dead-letter queue",
                                        "needs a look", "Allowlist", selector=".cards")
    assert "l4: the oldest record has waited" in cards
    assert page.js("return [...document.querySelectorAll('.card')].every((one) => one.title)"), "each has its definition"
    assert page.js("return document.documentElement.scrollWidth <= innerWidth")
    page.click(".card a[href='/pipeline']")
    page.wait("What waits")


@pytest.mark.long  # a Kafka of its own, which is frozen
def test_without_kafka_the_last_look_stays_with_its_age_and_the_reason(tmp_path):
    node = Kafka(tmp_path / "kafka").start()
    one = Reporter(tmp_path, node.brokers)
    try:
        wait_for("a look", lambda: pipeline(one)["groups"])
        node.freeze()
        after = wait_for("the reason", lambda: (seen := pipeline(one))["error"] and seen)
        assert after["groups"] and after["looked_at"] and "Kafka" in after["error"]
        assert health(one)["error"] == after["error"]
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
