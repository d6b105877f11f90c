"""What holds up one replica of crcr-reporter, and what it may hold up: a limit that GitHub tells one holds for all, since they
call for one installation; one back end's commits leave room for others'."""
import time

import pytest

from lib.kafka import write_all
from lib.processes import wait_for
from test_reporter import Job, Reporter, label_event, wait_idle

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
    wait_idle(reporter)
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


def restart(reporter, **environment):
    reporter.relay.parts["reporter"].stop()
    reporter.start(**environment)


def test_searches_after_a_lost_view_take_nothing_of_what_creates(reporter):
    """They mostly find the check run. Of 12 an hour three are at hand, and nothing comes in the time of a test."""
    old = Job(reporter, pr=21).outcome("dispatched", action="opened").call("in_progress", 1000)
    old.wait_check("in_progress", count=2)  # the aggregate, too
    restart(reporter, CRCR_BUDGET_CONTENT_HOUR="12")
    reporter.redis.client().flushall()
    old.call("completed", 2000, conclusion="success", run_complete=True)
    wait_for("both to end", lambda: {run["status"] for run in reporter.checks(old.sha)} == {"completed"})
    new = Job(reporter, pr=22).outcome("dispatched", action="opened")
    wait_for("the aggregate of another", lambda: reporter.checks(new.sha))


def test_a_commit_that_waits_for_the_budget_and_is_reported_often_holds_up_no_other(reporter):
    """A thousand records in hand are the most that reconcile reads."""
    restart(reporter, CRCR_BUDGET_CONTENT_MINUTE="16")  # waits are short, so that it stays in hand
    held = [Job(reporter, pr=23, job_name=f"job {number}") for number in range(40)]
    for job in held:
        job.delivery, job.sha, job.workflow["run_id"] = held[0].delivery, held[0].sha, held[0].workflow["run_id"]
        job.call("in_progress", 1000)
    wait_for("the budget to hold it", lambda: reporter.relay.metric("reporter", "crcr_budget_waits_total", bucket="content_minute") > 0)
    write_all(reporter.relay.kafka, reporter.relay.topic("reconcile"),
              [(f"{held[0].sha}/org/four", b"looked at again", {}, 0)] * 1500)
    Job(reporter, "org/five", pr=24).call("completed", 2000, conclusion="success").wait_check()


def test_a_commit_that_its_pull_request_has_gone_past_begins_no_check_run_and_ends_those_it_has(reporter):
    job = Job(reporter, pr=25)
    job.outcome("dispatched", action="opened", received_ms=job.started_ms).call("in_progress", 1000)
    job.wait_check("in_progress", count=2)
    head = Job(reporter, pr=25)
    label_event(head, "synchronize", [], "", 2)
    wait_idle(reporter)
    job.call("in_progress", 1500, job_name="late").call("completed", 2000, conclusion="success")
    wait_for("its check run to end", lambda: [run for run in reporter.checks(job.sha)
                                             if run["name"].endswith("/build") and run["status"] == "completed"])
    wait_idle(reporter)
    assert {run["name"] for run in reporter.checks(job.sha)} == {"crcr/org/four", "crcr/org/four/ci/build"}
    head.outcome("dispatched", action="synchronize", received_ms=int(time.time() * 1000))
    wait_for("the head's", lambda: reporter.checks(head.sha))
