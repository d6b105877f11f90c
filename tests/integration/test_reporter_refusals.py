"""What GitHub refuses of check runs for good, and Kafka of what others wrote; and what follows."""
import pytest

from lib.processes import wait_for
from test_reporter import Job, Reporter, wait_idle


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
    wait_for("the refusal", lambda: [one for one in check_run_calls(reporter, job.sha, "POST") if one["status"] == 422])
    for _ in range(3):
        reporter.put("reconcile", f"{job.sha}/org/four", b"looked at again")
    wait_idle(reporter)
    assert len(check_run_calls(reporter, job.sha, "POST")) == 1
    assert not [r for r in reporter.topic("dlq") if (r.key or "").startswith(job.sha)]
    job.call("completed", 2000, conclusion="success").wait_check()


def test_a_search_that_github_refused_is_not_made_again_until_there_is_news(reporter):
    """The commit is gone: GitHub knows none of that SHA."""
    job = Job(reporter)
    searches = lambda: [one for one in reporter.relay.requests() if f"/commits/{job.sha}/check-runs" in one["path"]]  # noqa: E731
    reporter.relay.script({"method": "GET", "path": f"*/commits/{job.sha}/check-runs", "status": 422, "count": 9,
                           "body": {"message": f"No commit found for SHA: {job.sha}"}})
    job.call("in_progress", 1000)
    wait_for("the refusal", searches)
    for _ in range(3):
        reporter.put("reconcile", f"{job.sha}/org/four", b"looked at again")
        wait_idle(reporter)
    assert len(searches()) == 1
    reporter.relay.script({"clear": True})
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
    wait_idle(reporter)
    assert len(job.wait_check(count=2)) == 2  # and it is the one that is remembered
    reporter.relay.script({"clear": True})


# The broker measures what it is sent: what others compress may be larger than what we can write.
@pytest.mark.parametrize("topic", ["callbacks", "dispatches", "reconcile", "results"])
def test_poison_too_large_for_us_to_write_is_parked_in_part(reporter, topic):
    mark = f"{topic}-too-large"
    reporter.put(topic, "k", bytes(30_000_000), {"mark": mark}, compression="gzip")
    row, = wait_for("it in the dlq", lambda: [r for r in reporter.topic("dlq") if r.headers.get("mark") == mark])
    assert row.headers["class"] == "poison" and "a value of 30000000" in row.headers["cut"]
    assert len(row.value) < 100_000
    Job(reporter).call("completed", 2000, conclusion="success").wait_check()


def test_what_is_too_large_to_be_put_off_is_parked_and_many_headers_leave_room_for_ours(reporter):
    large, many = Job(reporter), Job(reporter)
    for job, more in ((large, {"large": bytes(30_000_000)}), (many, {f"foreign{i}": "x" for i in range(60)})):
        job.call("completed", 2000, "pending", more, conclusion="success")
    parked, = wait_for("it in the dlq", lambda: [
        r for r in reporter.topic("dlq") if r.headers.get("delivery") == large.delivery], 40)
    assert parked.headers["error"] == "too large to be put off" and "cut" in parked.headers
    delayed, = wait_for("the other to be put off", lambda: [
        r for r in reporter.topic("rdelay.1m") if r.headers.get("delivery") == many.delivery], 40)
    assert delayed.headers["to_topic"] == reporter.relay.topic("callbacks") and delayed.headers["attempt"] == "2"


def test_two_jobs_whose_names_join_to_the_same_text_get_two_check_runs(reporter):
    one = Job(reporter, name="CI", job_name="a/b", check_run_id="5-1").call("completed", 2000, conclusion="success")
    one.call("completed", 2500, conclusion="failure", name="CI/a", job_name="b")
    runs = one.wait_check(count=2)
    assert {run["name"] for run in runs} == {"crcr/org/four/CI/a/b"}
    assert sorted(run["conclusion"] for run in runs) == ["failure", "success"]
    client = reporter.redis.client()
    client.delete(*client.keys("crcr:check:*"))  # found again, each its own
    one.call("completed", 3000, conclusion="success", artifact_url="https://example.org/a")
    wait_idle(reporter)
    assert sorted(run["conclusion"] for run in one.wait_check(count=2)) == ["failure", "success"]
