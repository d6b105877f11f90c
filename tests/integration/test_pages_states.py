"""What the JSON of the pages says of back ends that get no events, of check runs, and while Redis is stopped."""
import json
import signal
import time

import pytest

from lib.processes import wait_for
from test_pages_api import get
from test_reporter import ALLOWLIST, Job, Reporter, label_event

CANARY = b"pytorch/crcr-test"


def serving(kind, folder, brokers):
    """A reporter whose allowlist has the canary, too, and a backend that reports nothing; until it is closed."""
    one = kind(folder, brokers)
    one.put("allowlist", "allowlist", ALLOWLIST.replace(b"L2: [org/two]", b"L2: [org/two, org/quiet, pytorch/crcr-test]"),
            {"source": "test", "sha": "1" * 40, "fetched_ms": "2"})
    try:
        yield one
    finally:
        one.close()


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    yield from serving(Reporter, tmp_path_factory.mktemp("states"), kafka_node.brokers)


def row_of(reporter, repo):
    rows = (reporter.relay.api("/api/crcr/summary") or {"repos": []})["repos"]
    return next((one for one in rows if one["repo"].lower() == repo), None)


def dispatches_of(reporter, repo):
    return (row_of(reporter, repo) or {}).get("dispatches")


def downstream_of(reporter, job):
    data = reporter.relay.api(f"/api/crcr/deliveries/{job.delivery}") or {"downstreams": []}
    return next((one for one in data["downstreams"] if one["repo"] == job.repo), None)


def check_of(reporter, job):
    return (downstream_of(reporter, job) or {}).get("check_run")


def test_the_summary_knows_the_calls_that_failed_in_a_row(reporter):
    job = Job(reporter, "org/five", pr=901).outcome("dispatched", 1000)
    for i in range(3):
        Job(reporter, "org/five", pr=902 + i).outcome("failed", 5000 + i * 1000, http_status=404, error="404 Not Found")
    found = wait_for("three", lambda: (one := dispatches_of(reporter, "org/five")) and one["failed_in_a_row"] == 3 and one)
    assert (found["last"]["outcome"], found["last"]["http_status"], found["last"]["error"]) == ("failed", 404, "404 Not Found")
    assert found["dispatched_at"] and not found["breaker_open"] and found["silent_since"] is None
    Job(reporter, "org/five", pr=905).outcome("waiting", 20_000, reason="breaker", error="its breaker is open", http_status=None)
    wait_for("the breaker", lambda: dispatches_of(reporter, "org/five")["breaker_open"])
    Job(reporter, "org/five", pr=906).outcome("dispatched", 30_000)
    wait_for("it to be well", lambda: (one := dispatches_of(reporter, "org/five"))["failed_in_a_row"] == 0 and not one["breaker_open"])
    assert job.repo == "org/five"


def test_the_summary_knows_who_gets_events_and_never_reports(reporter):
    job = Job(reporter, "org/quiet", "L2", pr=907)
    job.started_ms -= 20 * 3_600_000
    job.outcome("dispatched", action="opened")
    assert wait_for("it to be silent", lambda: (dispatches_of(reporter, "org/quiet") or {}).get("silent_since"))
    one = wait_for("the delivery", lambda: downstream_of(reporter, job))
    assert one["never_reported"] and one["dispatch"]["report_due_at"]


def test_a_check_run_is_shown_as_github_has_it(reporter):
    job = Job(reporter, pr=908).outcome("dispatched", action="opened")
    label_event(job, "opened", [], "", 1)
    wait_for("queued", lambda: (one := check_of(reporter, job)) and (one["status"], one["blocks"]) == ("queued", True) and one["id"])
    job.call("in_progress", 1000)
    wait_for("running", lambda: (one := check_of(reporter, job))["status"] == "in_progress" and one["blocks"])
    job.call("completed", 3000, conclusion="failure", run_complete=True)
    one = wait_for("failed", lambda: (one := check_of(reporter, job))["status"] == "completed" and one)
    assert (one["conclusion"], one["blocks"], one["absent"]) == ("failure", True, None) and "ailure" in one["title"]
    again = {"run_id": job.workflow["run_id"] + 1, "check_run_id": "again"}
    job.call("in_progress", 20_000, **again).call("completed", 30_000, conclusion="success", run_complete=True, **again)
    wait_for("passed", lambda: ((one := check_of(reporter, job))["status"], one["conclusion"], one["blocks"]) == ("completed", "success", False))
    client, key = reporter.redis.client(), f"crcr:check:{job.sha}/crcr/org/four"
    new = client.hget(key, "aggregate")
    client.hset(key, "aggregate", " ".join(new.split(" ")[:3]))  # as an older program writes it
    one = wait_for("the old form", lambda: (one := check_of(reporter, job))["title"] is None and one)
    assert (one["status"], one["conclusion"], one["blocks"]) == ("completed", "success", False)
    client.hset(key, "aggregate", new)
    row = wait_for("the list", lambda: next((one for one in reporter.relay.api("/api/crcr/prs?q=908")["prs"]), None))
    assert [one["blocks"] for one in row["downstreams"]] == [False]


def test_no_answer_seen_is_tried_again_and_says_when(reporter):
    next_ms = int(time.time() * 1000) + 60_000
    job = Job(reporter, pr=909).outcome("unknown", action="opened", http_status=None, error="no answer", next_ms=next_ms)
    one = wait_for("the delivery", lambda: (one := downstream_of(reporter, job)) and one["dispatch"]["next_at"] and one)
    assert one["dispatch"]["outcome"] == "unknown" and not one["never_reported"]
    Job.outcome(job, "dispatched", 5000, action="opened")
    wait_for("it to be sent", lambda: downstream_of(reporter, job)["dispatch"]["next_at"] is None)


def test_the_health_knows_the_canary_and_the_metric_its_last_result(reporter):
    repo = CANARY.decode()
    job = Job(reporter, repo, "L2", pr=910, name="canary").outcome("dispatched")
    job.call("completed", 3000, conclusion="failure", job_name="l2-xfail", run_id=777)
    job.call("completed", 3000, conclusion="failure", job_name="l2-pass", run_id=777, check_run_id="2")

    def canary():
        return json.loads(get(reporter, "/api/crcr/health")[2]).get("canary")
    found = wait_for("its run", lambda: (one := canary()) and one["jobs"] == 2 and one, 100)  # looked at once a minute
    assert (found["repo"], found["unexpected"], found["running"]) == (repo, 1, 0) and found["result_at"]
    assert reporter.relay.metric("reporter", "crcr_canary_result_timestamp_seconds") == pytest.approx(job.started_ms / 1000 + 3, abs=1)


def test_pipeline_and_health_say_that_redis_is_stopped(reporter):
    def redis(path):
        return json.loads(get(reporter, path)[2]).get("redis")
    paths = ("/api/crcr/pipeline", "/api/crcr/health")
    wait_for("Redis to be there", lambda: all(redis(path) == {"error": None, "since": None} for path in paths))
    reporter.redis.process.signal(signal.SIGSTOP)
    try:
        for path in paths:
            found = wait_for("Redis to be gone", lambda path=path: (one := redis(path))["error"] and one)
            assert found["error"] == "the view is unavailable" and found["since"]
    finally:
        reporter.redis.process.signal(signal.SIGCONT)
    wait_for("Redis to be back", lambda: all(redis(path)["error"] is None for path in paths))
