"""Nightly and periodic runs name a commit that no webhook vouches for: crcr-reporter asks the upstream, once a commit,
whether it has it, and says so on its pages. Real Kafka and Redis, the simulated GitHub."""
import hashlib
import json
import time

import pytest

from lib.processes import wait_for
from openapi.validate import problems
from test_reporter import Job, Reporter, wait_idle


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Reporter(tmp_path_factory.mktemp("commits"), kafka_node.brokers)
    try:
        yield one
    finally:
        one.close()
    wrong = [problem for line in (one.relay.folder / "github-requests.jsonl").read_text().splitlines()
             for problem in problems(json.loads(line))]
    assert not wrong, wrong[:20]


def sha_of(text):
    return "c" + hashlib.sha1(text.encode()).hexdigest()[1:]


def report(reporter, sha, repo="org/four", level="L4", event_type="nightly", **workflow):
    """A self-report: its delivery is the commit, and nothing in its headers vouches for that."""
    reporter.put("callbacks", f"{sha}/{repo}", {
        "event_type": event_type, "delivery_id": sha,
        "payload": {"repository": {"full_name": "pytorch/pytorch"}, "head_sha": sha},
        "workflow": {"schema_version": "1", "name": "nightly", "job_name": "build", "run_id": 7, "run_attempt": 1,
                     "status": "completed", "conclusion": "success", **workflow}}, {
        "repo": repo, "level": level, "issuer": "test", "provenance": "self", "delivery": sha,
        "received_ms": str(int(time.time() * 1000))})


def claim(reporter, delivery, sha, repo="org/four", level="L4", event_type="nightly", **workflow):
    """A self-report that claims a commit and has a delivery id of its own: the header is ingest's."""
    reporter.put("callbacks", f"{delivery}/{repo}", {
        "event_type": event_type, "delivery_id": delivery, "payload": {"head_sha": sha},
        "workflow": {"schema_version": "1", "name": "nightly", "job_name": "build", "run_id": 7, "run_attempt": 1,
                     "status": "completed", "conclusion": "success", **workflow}}, {
        "repo": repo, "level": level, "issuer": "test", "provenance": "self", "delivery": delivery, "head_sha": sha,
        "received_ms": str(int(time.time() * 1000))})


def push_event(reporter, before, commits, pushed_at=None):
    """A push to main. commits: (sha, message), oldest first."""
    now, after = time.time(), commits[-1][0]
    reporter.put("events", "pytorch/pytorch@refs/heads/main", {
        "ref": "refs/heads/main", "before": before, "after": after,
        "commits": [{"id": sha, "message": message} for sha, message in commits],
        "repository": {"full_name": "pytorch/pytorch", "default_branch": "main", "pushed_at": int(pushed_at or now)}}, {
        "event": "push", "delivery": f"p-{after[:12]}", "head_sha": after, "received_ms": str(int(now * 1000)), "source": "webhook"})


def shown(reporter, sha):
    return (reporter.relay.api(f"/api/crcr/deliveries/{sha}") or {}).get("commit_exists", "not there")


def asked(reporter, sha):
    return [one for one in reporter.relay.requests()
            if one["method"] == "GET" and one["path"] == f"/repos/pytorch/pytorch/commits/{sha}"]


@pytest.mark.parametrize("event_type", ["nightly", "periodic"])
def test_a_commit_that_the_upstream_has_is_shown_as_such(reporter, event_type):
    sha = sha_of(event_type)
    report(reporter, sha, event_type=event_type)
    wait_for("the answer", lambda: shown(reporter, sha) is True)


def test_a_commit_that_the_upstream_does_not_have_is_shown_as_such(reporter):
    sha = "0000" + "a" * 36
    report(reporter, sha)
    wait_for("the answer", lambda: shown(reporter, sha) is False)
    assert [one["status"] for one in asked(reporter, sha)] == [422]


def test_404_is_an_answer_too(reporter):
    sha = sha_of("404")
    reporter.relay.script({"method": "GET", "path": f"*/commits/{sha}", "status": 404, "body": {"message": "Not Found"}})
    before = len(reporter.topic("dlq"))
    report(reporter, sha)
    wait_for("the answer", lambda: shown(reporter, sha) is False)
    wait_idle(reporter)
    assert len(reporter.topic("dlq")) == before


def test_it_is_asked_once_a_commit_whoever_reports_how_often(reporter):
    sha = sha_of("once")
    for number in range(5):
        report(reporter, sha, job_name=f"job {number}", check_run_id=f"j{number}")
        report(reporter, sha, repo="org/two", level="L2", job_name=f"job {number}", check_run_id=f"j{number}")
    wait_for("the answer", lambda: shown(reporter, sha) is True)
    wait_idle(reporter)
    report(reporter, sha, job_name="later", check_run_id="later")
    wait_idle(reporter)
    assert len(asked(reporter, sha)) == 1
    key = f"crcr:commit:{sha}"
    assert reporter.redis.client().get(key) == "1"
    assert 0 < reporter.redis.client().ttl(key) <= 35 * 86400


def test_until_it_is_known_null_is_shown(reporter):
    sha = sha_of("slow")
    reporter.relay.script({"method": "GET", "path": f"*/commits/{sha}", "status": 503, "count": 1})
    report(reporter, sha)
    wait_for("the first question", lambda: asked(reporter, sha))
    wait_for("the row", lambda: shown(reporter, sha) != "not there")
    assert shown(reporter, sha) is None or len(asked(reporter, sha)) > 1
    wait_for("the answer", lambda: shown(reporter, sha) is True)


def test_a_limit_is_waited_for(reporter):
    sha = sha_of("limited")
    reporter.relay.script({"method": "GET", "path": f"*/commits/{sha}", "status": 403, "count": 1, "retry_after": 2,
                           "body": {"message": "You have exceeded a secondary rate limit"}})
    report(reporter, sha)
    wait_for("the answer", lambda: shown(reporter, sha) is True)
    questions = asked(reporter, sha)
    assert [one["status"] for one in questions] == [403, 200]
    assert questions[1]["at_ms"] - questions[0]["at_ms"] >= 2000


def test_a_repository_has_twenty_questions_an_hour_and_takes_none_of_anothers(reporter):
    shas = [sha_of(f"flood {number}") for number in range(30)]
    for sha in shas:
        report(reporter, sha, repo="org/two", level="L2")
    for sha in shas:
        wait_for("the row", lambda sha=sha: shown(reporter, sha) != "not there")
    wait_idle(reporter)
    answered = [sha for sha in shas if shown(reporter, sha) is True]
    assert len(answered) == 20 or len(answered) == 21  # one comes back each three minutes
    assert all(len(asked(reporter, sha)) == (sha in answered) for sha in shas)
    left = next(sha for sha in shas if sha not in answered)
    report(reporter, left, repo="org/four")
    wait_for("the answer", lambda: shown(reporter, left) is True)


def test_what_is_no_commit_is_not_asked_for(reporter):
    delivery = f"night-{time.time_ns()}"
    report(reporter, delivery)
    wait_for("the row", lambda: shown(reporter, delivery) is None)
    wait_idle(reporter)
    assert asked(reporter, delivery) == []


def test_a_commit_that_is_claimed_is_looked_up_once_whatever_the_deliveries_are(reporter):
    exists, absent = sha_of("claimed"), "0000" + "b" * 36
    for number in range(3):
        claim(reporter, f"claims-{number}", exists, job_name=f"job {number}", check_run_id=f"c{number}", run_id="claimed")
        claim(reporter, f"absent-{number}", absent, job_name=f"job {number}", check_run_id=f"c{number}", run_id="absent")
    for number in range(3):
        wait_for("the answer", lambda number=number: shown(reporter, f"claims-{number}") is True)
        wait_for("the answer", lambda number=number: shown(reporter, f"absent-{number}") is False)
    wait_idle(reporter)
    assert len(asked(reporter, exists)) == len(asked(reporter, absent)) == 1
    page = reporter.relay.api("/api/crcr/deliveries/claims-0")
    assert page["head_sha"] == exists and {job["pytorch_head_sha"] for job in page["jobs"]} == {exists}


def test_a_claimed_commit_changes_no_check_run_of_that_commit(reporter):
    job = Job(reporter)
    job.outcome("dispatched", action="synchronize", received_ms=job.started_ms)
    job.call("completed", 1000, conclusion="success", run_complete=True)
    green = {"crcr/org/four": "success", "crcr/org/four/ci/build": "success"}
    runs = lambda: {run["name"]: run["conclusion"] for run in reporter.checks(job.sha)}  # noqa: E731
    wait_for("the check runs", lambda: runs() == green)
    wait_idle(reporter)
    before = reporter.checks(job.sha)
    for name in ("build", "another"):
        claim(reporter, f"attack-{name}", job.sha, name="ci", job_name=name, conclusion="failure", run_id=job.workflow["run_id"])
    claim(reporter, job.delivery, job.sha, name="ci", job_name="a third", conclusion="failure", run_id=job.workflow["run_id"])
    wait_for("the rows", lambda: all(shown(reporter, f"attack-{name}") is True for name in ("build", "another")))
    wait_idle(reporter)
    assert reporter.checks(job.sha) == before
    assert len(reporter.redis.client().smembers(f"crcr:head:{job.sha}/org/four")) == 1
    job.call("completed", 5000, conclusion="success", job_name="more", check_run_id="more")  # looks at all of them again
    wait_for("the check runs", lambda: runs() == {**green, "crcr/org/four/ci/more": "success"})


def test_a_self_report_never_makes_a_check_run(reporter):
    sha = sha_of("no check run")
    report(reporter, sha, conclusion="failure")
    wait_for("the answer", lambda: shown(reporter, sha) is True)
    wait_idle(reporter)
    assert reporter.checks(sha) == []


def test_a_dispatched_delivery_has_no_such_question(reporter):
    job = Job(reporter).call("completed", 1000, conclusion="success")
    job.wait_check()
    assert shown(reporter, job.delivery) is None
    assert asked(reporter, job.sha) == []
