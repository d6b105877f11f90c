"""The aggregate check run of crcr-reporter, on real Kafka and Redis and the simulated GitHub: what a
branch can require, as it is seen on the pull request."""
import hashlib
import time

import pytest

from lib.processes import wait_for
from test_reporter import ALLOWLIST, Job, Reporter, label_event, wait_idle

ACTIONS = "https://token.actions.githubusercontent.com"
BUILDKITE = "https://agent.buildkite.com"
SILENT_S = 120
QUIET_S = 3


class Summing(Reporter):
    """A reporter that takes a run for ended after 3 quiet seconds, and a silent one after 120."""

    def start(self, instance=None, **environment):
        environment = {"ZOMBIE_TIMEOUT_SECONDS": str(SILENT_S),
                       "CRCR_RUN_QUIET_SECONDS": str(QUIET_S), **environment}
        self.relay.start("reporter", instance, **environment)
        self.relay.wait_ready(instance or "reporter")

    def allow(self, repo, level, text):
        """Another allowlist; waits until that repository has that level."""
        self.put("allowlist", "allowlist", text, {"source": "test", "sha": hashlib.sha1(text).hexdigest(),
                                                  "fetched_ms": str(int(time.time() * 1000))})
        wait_for(f"{repo} to be at {level}", lambda: {"repo": repo, "level": level} in [
            {"repo": one["repo"], "level": one["level"]} for one in self.relay.api("/api/crcr/summary")["repos"]])

    def aggregates(self, job):
        return [run for run in self.checks(job.sha) if run["name"] == f"crcr/{job.repo}"]

    def asked(self, job):
        """How often GitHub was asked about the job's run."""
        path = f"/repos/{job.repo}/actions/runs/{job.workflow['run_id']}"
        return len([one for one in self.relay.requests() if one["path"] == path])

    def run_says(self, job, status, conclusion=None, attempt=1, **rule):
        """What GitHub says of the job's run from now on."""
        self.relay.script({
            "method": "GET", "path": f"/repos/{job.repo}/actions/runs/{job.workflow['run_id']}",
            "status": 200, "body": {"id": job.workflow["run_id"], "status": status,
                                    "conclusion": conclusion, "run_attempt": attempt}, **rule})


class Sum(Job):
    """A job of a delivery whose dispatch is reported, and which its aggregate can be waited for."""

    def __init__(self, reporter, repo="org/four", level="L4", issuer=BUILDKITE, **workflow):
        super().__init__(reporter, repo, level, **workflow)
        self.issuer = issuer

    def sent(self, outcome="dispatched", at_ms=0, **fields):
        fields = {"action": "synchronize", "received_ms": self.started_ms, **fields}
        return self.outcome(outcome, at_ms, **fields)

    def ago(self, seconds):
        """at_ms of that long ago."""
        return int((time.time() - seconds) * 1000) - self.started_ms

    def wait(self, status, conclusion=None, count=1, title="", within=60):
        def there():
            runs = self.reporter.aggregates(self)
            return runs if len(runs) == count and runs[-1]["status"] == status and \
                runs[-1]["conclusion"] == conclusion and title in runs[-1]["output"]["title"] \
                else None
        return wait_for(f"{count} aggregate(s), the last {status} {conclusion} {title}", there,
                        within)[-1]


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Summing(tmp_path_factory.mktemp("aggregate"), kafka_node.brokers)
    try:
        yield one
    finally:
        one.close()


def test_queued_at_dispatch_in_progress_at_the_first_job_completed_after_the_last(reporter):
    job = Sum(reporter).sent()
    run = job.wait("queued", title="dispatched")
    assert run["external_id"] == f"d:{job.delivery}:7"
    job.call("in_progress", 1000)
    job.wait("in_progress", title="0 of 1 job ended")
    job.call("completed", 2000, conclusion="success", run_complete=True)
    assert job.wait("completed", "success")["id"] == run["id"]


def test_the_worst_of_a_matrix_counts_and_every_job_is_listed(reporter):
    job = Sum(reporter).sent()
    job.call("in_progress", 1000, job_name="mac", check_run_id="2")
    job.call("completed", 2000, conclusion="success", job_name="linux", check_run_id="1",
             test_results={"passed": 8, "failed": 0, "skipped": 1}, url="https://buildkite.com/org/four/builds/1")
    job.wait("in_progress", title="1 of 2 jobs")
    job.call("completed", 3000, conclusion="cancelled", job_name="<b>win</b> @all", check_run_id="3")
    job.wait("completed", "cancelled", title="1 of 3 jobs")
    job.call("completed", 3000, conclusion="failure", job_name="mac", check_run_id="2")
    summary = job.wait("completed", "failure")["output"]["summary"]
    assert summary.index("mac") < summary.index("win") < summary.index("linux")
    assert "8 passed, 1 skipped" in summary and "[Log](<https://buildkite.com/org/four/builds/1>)" in summary
    assert "<b>win" not in summary and "@all" not in summary
    assert len(reporter.checks(job.sha)) == 4


def test_a_run_of_actions_is_asked_until_it_has_ended(reporter):
    job = Sum(reporter, issuer=ACTIONS).sent()
    reporter.run_says(job, "in_progress", count=2)
    reporter.run_says(job, "completed", "failure")
    ended_ms = job.started_ms + job.ago(4)
    job.call("completed", job.ago(4), conclusion="success")
    job.wait("in_progress", title="the run has not")
    assert job.wait("completed", "failure", within=90)["output"]["title"].startswith("Failure: the run")
    asks = [one["at_ms"] for one in reporter.relay.requests()
            if one["path"].endswith(f"/actions/runs/{job.workflow['run_id']}")]
    assert len(asks) == 3
    assert all(at - ended_ms >= after * 1000 for at, after in zip(asks, (5, 15, 30)))
    wait_idle(reporter)
    assert reporter.redis.client().zscore("crcr:due", f"{job.sha}/org/four") is None


def test_a_refused_question_about_the_run_ends_with_the_quiet_and_says_so(reporter):
    job = Sum(reporter, issuer=ACTIONS).sent()  # the simulator knows no such run: 404
    job.call("completed", job.ago(6), conclusion="success")
    run = job.wait("completed", "success")
    assert reporter.asked(job) == 1
    assert "GitHub does not say how run" in run["output"]["summary"]


def test_a_silent_github_is_asked_again(reporter):
    job = Sum(reporter, issuer=ACTIONS).sent()
    reporter.run_says(job, "", reset=True, count=1)
    reporter.run_says(job, "completed", "success")
    job.call("completed", job.ago(14), conclusion="success").wait("completed", "success")
    assert reporter.asked(job) >= 2


def test_another_ci_without_run_complete_is_green_after_the_quiet(reporter):
    for ahead_s in (5, 30):  # so much longer than the quiet it stays so; a busy machine may miss the short one
        job = Sum(reporter).sent()
        job.call("completed", job.ago(-ahead_s), conclusion="success")
        first = wait_for("its aggregate", lambda: [run for run in reporter.aggregates(job) if run["status"] != "queued"])[0]
        if first["status"] == "in_progress":
            break
    assert first["status"] == "in_progress" and "others may follow" in first["output"]["title"]
    job.wait("completed", "success", within=90)
    assert reporter.asked(job) == 0


def test_another_ci_that_fails_shows_at_once(reporter):
    job = Sum(reporter).sent().call("in_progress", 1000, job_name="slow", check_run_id="slow")
    job.call("completed", job.ago(0), conclusion="failure")
    job.wait("completed", "failure", title="1 of 2 jobs")


def test_nobody_answering_is_timed_out(reporter):
    job = Sum(reporter)
    job.sent(at_ms=job.ago(SILENT_S - 3))
    job.wait("completed", "timed_out", title="no job reported within 2 min")
    job.call("completed", job.ago(0), conclusion="success", run_complete=True)
    job.wait("completed", "success")
    wait_idle(reporter)


def test_a_refused_dispatch_is_a_failure_with_the_reason(reporter):
    job = Sum(reporter).sent("failed", error="404 Not Found: is the App installed on org/four?")
    run = job.wait("completed", "failure")
    assert "is the App installed on org&#47;four" in run["output"]["summary"]


def test_a_waiting_dispatch_says_why(reporter):
    job = Sum(reporter).sent("waiting", error="403 secondary rate limit")
    assert "secondary rate limit" in job.wait("queued", title="waits")["output"]["summary"]
    job.sent("dispatched", at_ms=1000)
    job.wait("queued", title="dispatched")


def test_a_duplicate_dispatch_that_cancels_the_older_run_ends_with_the_newer(reporter):
    job = Sum(reporter).sent()
    job.call("in_progress", 1000)
    job.call("in_progress", 3000, run_id=str(job.workflow["run_id"] + 1))
    job.call("completed", 4000, conclusion="cancelled")
    job.call("completed", 9000, conclusion="success", run_id=str(job.workflow["run_id"] + 1),
             run_complete=True)
    assert "1 job of runs that newer ones replaced is not counted" in \
        job.wait("completed", "success")["output"]["summary"]


def test_a_rerun_makes_a_new_check_run_of_the_same_name(reporter):
    job = Sum(reporter).sent().call("completed", 2000, conclusion="failure")
    first = job.wait("completed", "failure")["id"]
    job.call("in_progress", 20_000, run_attempt=2)
    second = job.wait("in_progress", count=2)["id"]
    assert second > first
    job.call("completed", 30_000, conclusion="success", run_attempt=2, run_complete=True)
    assert job.wait("completed", "success", count=2)["id"] == second


def test_the_newest_delivery_of_a_commit_takes_the_check_run_over(reporter):
    job = Sum(reporter).sent()
    first = job.wait("queued")
    old = job.delivery
    job.delivery += "-again"
    job.sent(action="reopened", received_ms=job.started_ms + 1000)
    wait_for("the check run to be the newer one's", lambda: reporter.aggregates(job)[0]
             ["external_id"] == f"d:{job.delivery}:7")
    assert job.wait("queued")["id"] == first["id"]
    job.delivery = old
    job.call("completed", 2000, conclusion="failure").wait_check(count=2)
    wait_idle(reporter)
    job.wait("queued")


def test_closed_and_plain_pushes_have_none(reporter):
    closed = Sum(reporter).sent(action="closed")
    push = Sum(reporter, pr=0).sent(event_type="push", action=None)
    old = Sum(reporter).sent(action=None)
    for job in (closed, push, old):
        job.call("completed", 2000, conclusion="success").wait_result()
    wait_idle(reporter)
    for job in (closed, push, old):
        assert reporter.aggregates(job) == []


def test_a_ciflow_tag_push_has_one(reporter):
    Sum(reporter).sent(event_type="push", action=None).wait("queued")


@pytest.mark.parametrize("outcome", ["dispatched", "failed"])
def test_l3_has_none_labelled_or_not(reporter, outcome):
    job = Sum(reporter, "org/three", "L3", pr=61).sent(outcome)
    label_event(job, "labeled", ["ciflow/crcr/npu"], "ciflow/crcr/npu", 1)
    job.call("completed", 2000, conclusion="failure", run_complete=True).wait_check()
    wait_idle(reporter)
    assert [run["name"] for run in reporter.checks(job.sha)] == ["crcr/org/three/ci/build"]
    assert reporter.redis.client().zscore("crcr:due", f"{job.sha}/org/three") is None


@pytest.mark.parametrize("conclusion", [None, "failure"])
def test_one_of_a_back_end_that_left_l4_ends_as_neutral_and_no_other_is_made(reporter, conclusion):
    job = Sum(reporter, "org/five").sent().call("in_progress", 1000)
    if conclusion:
        job.call("completed", 2000, conclusion="failure", run_complete=True)
    made = job.wait("completed" if conclusion else "in_progress", conclusion)
    reporter.allow("org/five", "L3", ALLOWLIST.replace(b", { org/five: dave }", b"")
                   .replace(b"alice]", b"alice], org/five: dave"))
    try:
        job.call("completed", 3000, conclusion="failure", job_name="other", run_complete=True)
        assert job.wait("completed", "neutral", title="Not required")["id"] == made["id"]
        job.call("in_progress", 4000, job_name="late")
        wait_idle(reporter)
        assert [run["conclusion"] for run in reporter.aggregates(job)] == ["neutral"]
    finally:
        reporter.allow("org/five", "L4", ALLOWLIST)


def test_l2_has_none(reporter):
    job = Sum(reporter, "org/two", "L2").sent().call("completed", 2000, conclusion="success")
    job.wait_result()
    wait_idle(reporter)
    assert reporter.checks(job.sha) == []


def test_a_refused_job_check_does_not_keep_the_aggregate_back(reporter):
    job = Sum(reporter)
    reporter.relay.script({"method": "POST", "path": "*/check-runs", "status": 403, "count": 1,
                           "body": {"message": "no such job"}})
    job.call("completed", 2000, conclusion="success", run_complete=True)
    wait_for("the refusal to be parked", lambda: [
        row for row in reporter.topic("dlq") if (row.key or "").startswith(job.sha)])
    # The aggregate is searched first, so the second search is the job's.
    reporter.relay.script({"method": "GET", "path": f"*/commits/{job.sha}/check-runs", "status": 422,
                           "skip": 1, "count": 1, "body": {"message": "no such job"}})
    job.sent().wait("completed", "success")


def test_jobs_beyond_the_limit_are_listed_and_have_no_check_run_also_after_a_rebuild(reporter):
    reporter.relay.parts["reporter"].stop()
    reporter.start(CRCR_JOB_CHECKS_MAX="2")
    try:
        job = Sum(reporter).sent()
        for at_ms, name in ((1000, "z"), (1001, "y"), (1002, "a")):
            job.call("in_progress", at_ms, job_name=name, check_run_id=name)
        summary = job.wait("in_progress", title="0 of 3 jobs ended")["output"]["summary"]
        assert "1 job has no check run of its own: at most 2 of a commit have one." in summary
        assert "<code>a</code>" in summary
        reporter.redis.client().flushall()
        for name in "za":
            job.call("completed", 3000, conclusion="success", job_name=name, check_run_id=name)
        job.wait("in_progress", title="2 of 3 jobs ended")
        wait_idle(reporter)
        assert {(run["name"], run["status"]) for run in reporter.checks(job.sha)} == {
            ("crcr/org/four", "in_progress"), ("crcr/org/four/ci/z", "completed"),
            ("crcr/org/four/ci/y", "in_progress")}
    finally:
        reporter.relay.parts["reporter"].stop()
        reporter.start()


def test_a_lost_view_of_check_runs_finds_the_aggregate_again(reporter):
    job = Sum(reporter).sent()
    first = job.wait("queued")["id"]
    client = reporter.redis.client()
    client.delete(*client.keys("crcr:check:*"))
    job.call("in_progress", 1000)
    assert job.wait("in_progress")["id"] == first


def test_a_lost_view_of_what_is_due_comes_back_with_any_record(reporter):
    job = Sum(reporter)
    job.sent(at_ms=job.ago(0)).wait("queued")
    wait_idle(reporter)
    client, key = reporter.redis.client(), f"{job.sha}/org/four"
    due = client.zscore("crcr:due", key)
    assert due and client.zrem("crcr:due", key) == 1
    reporter.put("reconcile", key, b"rebuilt")
    assert wait_for("the look to be noted again", lambda: client.zscore("crcr:due", key)) == due


def test_a_flushed_redis_loses_no_time_to_look_again(reporter):
    job = Sum(reporter)
    job.call("completed", job.ago(-20), conclusion="success").wait_check()  # time enough to flush
    job.sent(at_ms=job.ago(SILENT_S + 4000))
    job.wait("in_progress", title="others may follow")
    reporter.redis.client().flushall()
    job.wait("completed", "success", within=60)


def test_unchanged_text_is_not_sent_again(reporter):
    job = Sum(reporter).sent()
    number = job.wait("queued")["id"]
    for _ in range(5):
        job.sent()
    wait_idle(reporter)
    patches = [one for one in reporter.relay.requests()
               if one["method"] == "PATCH" and one["path"].endswith(f"/{number}")]
    assert patches == []


def test_killed_in_the_middle_it_ends_the_same(reporter):
    jobs = [Sum(reporter, issuer=ACTIONS).sent() for _ in range(8)]
    for job in jobs:
        reporter.run_says(job, "completed", "success")
        job.call("in_progress", 1000)
    jobs[0].wait("in_progress")
    for job in jobs:
        job.call("completed", job.ago(3), conclusion="success")
    reporter.relay.parts["reporter"].kill()
    reporter.start()
    for job in jobs:
        job.wait("completed", "success", within=60)


def test_two_replicas_make_one(reporter):
    reporter.start("reporter2", CRCR_ROLES="fold,reconcile,sweep")
    try:
        jobs = [Sum(reporter, issuer=ACTIONS).sent() for _ in range(12)]
        for job in jobs:
            reporter.run_says(job, "completed", "success")
            job.call("in_progress", 1000).call("completed", job.ago(1), conclusion="success")
        for job in jobs:
            job.wait("completed", "success", within=60)
    finally:
        assert reporter.relay.parts["reporter2"].stop() == 0
