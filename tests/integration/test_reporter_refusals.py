"""What GitHub refuses of check runs for good, and what follows."""
import pytest

from lib.processes import wait_for
from test_reporter import Job, Reporter, settled


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Reporter(tmp_path_factory.mktemp("refusals"), kafka_node.brokers)
    try:
        yield one
    finally:
        one.close()


def check_run_calls(reporter, sha=None, method=None):
    return [one for one in reporter.relay.requests() if "/check-runs" in one["path"]
            and one["method"] == method and (sha is None or (one["body"] or {}).get("head_sha") == sha)]


def test_a_content_that_github_refused_is_not_sent_again_and_a_new_one_is(reporter):
    reporter.relay.script({"method": "POST", "path": "*/check-runs", "status": 422, "count": 1,
                           "body": {"message": "Validation Failed"}})
    job = Job(reporter).call("in_progress", 1000)
    wait_for("the refusal", lambda: [r for r in reporter.topic("dlq") if (r.key or "").startswith(job.sha)])
    for _ in range(3):
        reporter.put("reconcile", f"{job.sha}/org/four", b"looked at again")
    settled(reporter)
    assert len(check_run_calls(reporter, job.sha, "POST")) == 1
    assert len([r for r in reporter.topic("dlq") if (r.key or "").startswith(job.sha)]) == 1
    job.call("completed", 2000, conclusion="success").wait_check()


@pytest.mark.parametrize("status", [404, 403])
def test_a_check_run_that_takes_no_update_any_more_is_made_anew(reporter, status):
    job = Job(reporter).call("in_progress", 1000)
    first = job.wait_check("in_progress")[0]["id"]
    reporter.relay.script({"method": "PATCH", "path": f"*/check-runs/{first}", "status": status,
                           "body": {"message": "Not Found"}})
    job.call("completed", 2000, conclusion="success")
    runs = job.wait_check(count=2)
    assert runs[-1]["conclusion"] == "success" and runs[-1]["id"] != first
    reporter.put("reconcile", f"{job.sha}/org/four", b"looked at again")
    settled(reporter)
    assert len(job.wait_check(count=2)) == 2  # and it is the one that is remembered
    reporter.relay.script({"clear": True})
