"""What holds up one replica of crcr-reporter, and what it may hold up: a limit that GitHub tells one holds for all, since they
call for one installation; one back end's commits leave room for others'."""
import time

import pytest

from lib.processes import wait_for
from test_reporter import Job, Reporter, settled

LIMIT_S = 8
HEARD_MS = 2500  # by then others have heard of it, and what they had in hand has lapsed


@pytest.fixture
def reporter(kafka_node, tmp_path):
    one = Reporter(tmp_path, kafka_node.brokers)
    try:
        yield one
    finally:
        one.close()


def check_run_calls(reporter):
    return [one for one in reporter.relay.requests() if "/check-runs" in one["path"]]


def test_a_limit_that_github_tells_one_reporter_holds_for_both(reporter):
    relay = reporter.relay
    relay.start("reporter", "second", CRCR_HUD_LISTEN="127.0.0.1:0")
    for part in ("reporter", "second"):
        wait_for(f"{part} to have a share",
                 lambda: relay.metric(part, "crcr_role_partitions", role="reconcile") in (1, 2, 3))
    relay.script({"method": "POST", "path": "*/check-runs", "status": 429, "retry_after": LIMIT_S, "count": 1})
    first = Job(reporter).call("completed", 2000, conclusion="success")
    limited, = wait_for("the limit", lambda: [one for one in check_run_calls(reporter) if one["status"] == 429])
    wait_for("both to have heard", lambda: time.time() * 1000 > limited["at_ms"] + HEARD_MS)
    jobs = [first] + [Job(reporter).call("completed", 2000, conclusion="success") for _ in range(24)]
    for job in jobs:
        job.wait_check()
    settled(reporter)
    early = [one["at_ms"] - limited["at_ms"] for one in check_run_calls(reporter)]
    assert not [ms for ms in early if HEARD_MS < ms < 1000 * LIMIT_S - 100]
    for part in ("reporter", "second"):
        assert relay.metric(part, "crcr_check_runs_total") > 0, f"{part} had its share"
        assert "check_runs_failed" not in relay.parts[part].text()
    assert reporter.topic("dlq") == []


def test_half_of_what_is_asked_at_a_time_is_left_to_other_back_ends(reporter):
    """Twelve commits of one back end; GitHub takes long over each. A thirteenth, of another, does not wait for them."""
    relay = reporter.relay
    slow = [Job(reporter) for _ in range(12)]
    for job in slow:
        relay.script({"method": "GET", "path": f"*/commits/{job.sha}/check-runs", "delay_ms": 15_000})
    for job in slow:
        job.call("completed", 2000, conclusion="success")
    wait_for("the twelve to be in the hands of reconcile",
             lambda: sum(row["lag"] or 0 for row in relay.lag("crcr-reconcile")) >= len(slow))
    other = Job(reporter, repo="org/five").call("completed", 2000, conclusion="success")
    other.wait_check()
    assert [one for job in slow for one in reporter.checks(job.sha)] == []
