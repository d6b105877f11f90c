"""Jobs as parts of their run, on real Kafka and Redis and the simulated GitHub and HUD: one queue time a
run, one job reported under two check run ids, and jobs that end with their run."""
import pytest

from lib.processes import wait_for
from test_reporter import Job, Reporter, wait_idle

ACTIONS = "https://token.actions.githubusercontent.com"
QUIET_MS = -11 * 60_000  # received so long ago, a run is asked about at once


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Reporter(tmp_path_factory.mktemp("runs"), kafka_node.brokers)
    try:
        yield one
    finally:
        one.close()


def run_path(job):
    return f"/repos/{job.repo}/actions/runs/{job.workflow['run_id']}"


def run_says(reporter, job, status, conclusion=None, attempt=1, **rule):
    """What GitHub says of the job's run from now on."""
    reporter.relay.script({"method": "GET", "path": run_path(job), "status": 200, "body": {
        "id": job.workflow["run_id"], "status": status, "conclusion": conclusion, "run_attempt": attempt}, **rule})


def asked(reporter, job):
    return [one for one in reporter.relay.requests() if one["path"] == run_path(job)]


def due(reporter, job):
    return reporter.redis.client().zscore("crcr:due", f"{job.sha}/{job.repo}")


def rows(reporter, job):
    """The last row of each job of the delivery: check_run_id → row."""
    view = reporter.relay.api(f"/api/crcr/deliveries/{job.delivery}")
    return {row["check_run_id"]: row for row in view["jobs"]}


# ---- the queue ------------------------------------------------------------------------------------
def test_every_job_of_a_run_has_the_queue_time_of_its_run(reporter):
    job = Job(reporter, "org/two", "L2")
    job.call("in_progress", 1500, job_name="build", check_run_id="1")
    job.call("completed", 9000, job_name="build", check_run_id="1", conclusion="success")
    job.call("in_progress", 30_000, job_name="test", check_run_id="2")
    job.call("completed", 40_000, job_name="test", check_run_id="2", conclusion="success")
    job.call("completed", 41_000, job_name="report", check_run_id="3", conclusion="success")
    job.call("in_progress", 50_000, job_name="test", check_run_id="4", run_attempt=2)
    wait_idle(reporter)
    assert {key: row["queue_time"] for key, row in rows(reporter, job).items()} == \
        {"1": 1.5, "2": 1.5, "3": 1.5, "4": None}
    posts = reporter.posts(job.delivery)
    queue = [(post["untrusted"]["callback_payload"]["workflow"]["check_run_id"],
              post["trusted"]["ci_metrics"]["queue_time"]) for post in posts]
    assert sorted(queue) == [("1", 1.5), ("1", 1.5), ("2", 1.5), ("2", 1.5), ("3", 1.5), ("4", None)]


# ---- two check run ids ----------------------------------------------------------------------------
def test_a_job_reported_by_two_jobs_of_its_ci_is_one_job_with_one_check_run(reporter):
    job = Job(reporter, job_name="npu").outcome("dispatched", action="opened")
    job.call("in_progress", 1000, check_run_id="101").wait_check("in_progress", count=2)
    job.call("completed", 9000, check_run_id="202", conclusion="success", run_complete=True)
    runs = wait_for("both check runs to end", lambda: [
        run for run in reporter.checks(job.sha) if run["conclusion"] == "success"][1:] and reporter.checks(job.sha))
    assert sorted(run["name"] for run in runs) == ["crcr/org/four", "crcr/org/four/ci/npu"]
    assert not [key for key in reporter.redis.client().zrange("crcr:zombies", 0, -1) if job.delivery in key]
    wait_idle(reporter)
    assert list(rows(reporter, job)) == ["101"] and job.wait_result()["execution_time"] == 8.0
    posted = reporter.posts(job.delivery)[-1]["untrusted"]["callback_payload"]["workflow"]
    assert (posted["status"], posted["check_run_id"]) == ("completed", "101")


def test_it_is_one_job_after_the_view_was_lost_too(reporter):
    job = Job(reporter, job_name="npu").call("in_progress", 1000, check_run_id="101")
    job.call("completed", 9000, check_run_id="202", conclusion="failure").wait_check()
    wait_idle(reporter)
    reporter.redis.client().flushall()
    wait_for("the view to be rebuilt", lambda: reporter.redis.client().exists("crcr:epoch"), 60)
    job.call("completed", 9500, check_run_id="202", conclusion="success")
    wait_idle(reporter)
    assert [(key, row["conclusion"]) for key, row in rows(reporter, job).items()] == [("101", "failure")]


# ---- the end of the run ---------------------------------------------------------------------------
@pytest.mark.parametrize("repo, level", [("org/two", "L2"), ("org/four", "L4")])
def test_a_job_ends_with_its_run(reporter, repo, level):
    job = Job(reporter, repo, level, issuer=ACTIONS)
    run_says(reporter, job, "completed", "cancelled")
    job.call("in_progress", QUIET_MS)
    row = job.wait_result("timed_out")
    assert (row["conclusion"], row["execution_time"]) == ("cancelled", None)
    posted = wait_for("the HUD to hear", lambda: reporter.posts(job.delivery)[1:])[-1]
    workflow = posted["untrusted"]["callback_payload"]["workflow"]
    assert (workflow["status"], workflow["conclusion"]) == ("completed", "cancelled")
    if level == "L4":
        assert job.wait_check()[0]["conclusion"] == "cancelled"
    said = [r for r in reporter.topic("callbacks") if r.headers["delivery"] == job.delivery][1:]
    assert {r.headers["provenance"] for r in said} == {"sweeper"} and len({r.value for r in said}) == 1
    wait_idle(reporter)
    assert len(asked(reporter, job)) == 1 and due(reporter, job) is None


def test_a_completed_that_comes_later_wins(reporter):
    job = Job(reporter, issuer=ACTIONS)
    run_says(reporter, job, "completed", "failure")
    job.call("in_progress", QUIET_MS)
    assert job.wait_check()[0]["conclusion"] == "failure"
    job.call("completed", 1000, conclusion="success")
    wait_for("the report to win", lambda: job.wait_check()[0]["conclusion"] == "success")
    assert job.wait_result()["conclusion"] == "success"


def test_a_run_that_goes_on_is_asked_again_in_10_min(reporter):
    job = Job(reporter, "org/two", "L2", issuer=ACTIONS)
    run_says(reporter, job, "in_progress")
    job.call("in_progress", QUIET_MS)
    first = wait_for("the run to be asked about", lambda: asked(reporter, job))[0]
    wait_idle(reporter)
    wait_for("the next time to be noted", lambda: due(reporter, job))
    assert abs(due(reporter, job) - first["at_ms"] - 600_000) < 5000
    assert rows(reporter, job).popitem()[1]["status"] == "in_progress"


def test_a_job_that_just_began_is_not_asked_for_yet(reporter):
    job = Job(reporter, "org/two", "L2", issuer=ACTIONS).call("in_progress", 0)
    wait_for("the time to be noted", lambda: due(reporter, job))
    assert abs(due(reporter, job) - job.started_ms - 600_000) < 2
    assert asked(reporter, job) == []


def test_the_time_to_look_comes_back_with_a_view_that_was_lost(reporter):
    job = Job(reporter, "org/two", "L2", issuer=ACTIONS).call("in_progress", 0)
    wait_for("the time to be noted", lambda: due(reporter, job))
    wait_idle(reporter)
    reporter.redis.client().flushall()
    wait_for("the time to be noted again", lambda: due(reporter, job), 60)


def test_runs_of_other_cis_are_not_asked_about(reporter):
    job = Job(reporter, "org/two", "L2", issuer="https://agent.buildkite.com").call("in_progress", QUIET_MS)
    job.wait_result("in_progress")
    wait_idle(reporter)
    assert asked(reporter, job) == [] and due(reporter, job) is None
