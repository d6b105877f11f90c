"""The on-call comments of crcr-reporter, on real Kafka and Redis and the simulated GitHub: one a pull request and
downstream, edited in place, never another's."""
import json
import time

import pytest

from lib.ports import free_port
from lib.processes import wait_for
from lib.relay import http, pull_request
from openapi.validate import problems
from test_reporter import Job, Reporter, label_event, wait_idle

FOUR = "<!-- crcr-oncall:org/four -->"


class Commenting(Reporter):
    """A reporter with on-call comments, and the allowlist of test_reporter: carol for org/four, alice for org/three."""

    def start(self, instance=None, **environment):
        environment = {"CRCR_ONCALL_COMMENTS": "1", **environment}
        self.relay.start("reporter", instance, **environment)
        self.relay.wait_ready(instance or "reporter")

    def restart(self, **environment):
        self.relay.parts["reporter"].stop()
        self.start(**environment)

    def comments(self, pr):
        return [one for one in self.relay.state()["comments"] if one["issue_url"].endswith(f"/issues/{pr}")]

    def wait_comment(self, pr, *texts, without=()):
        """The one comment on a pull request, once it says all of these texts and none of those."""
        def there():
            bodies = self.comments(pr)
            assert len(bodies) <= 1, bodies
            if not bodies:
                return None
            body = bodies[0]["body"]
            return bodies[0] if all(text in body for text in texts) and not any(
                text in body for text in without) else None
        return wait_for(f"a comment on {pr} with {texts}", there)

    def calls(self, what):
        """Requests about comments since the start: POST, PATCH or GET."""
        return [one for one in self.relay.requests() if one["method"] == what and "/issues/" in one["path"]]

    def somebody_comments(self, pr, body, **more):
        status, said = http("POST", self.relay.url("github", "/_sim/comments"), json.dumps(
            {"repo": "pytorch/pytorch", "number": pr, "login": "mallory", "body": body, **more}).encode(),
            {"Content-Type": "application/json"})
        assert status == 201, said
        return json.loads(said)["id"]


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Commenting(tmp_path_factory.mktemp("comments"), kafka_node.brokers)
    try:
        yield one
    finally:
        one.close()
    wrong = [problem for line in (one.relay.folder / "github-requests.jsonl").read_text().splitlines()
             for problem in problems(json.loads(line))]
    assert not wrong, wrong[:20]


def head(job, second, sha=None):
    """The webhook that makes a commit the head of the job's pull request."""
    body = pull_request(action="synchronize", number=job.pr, sha=sha or job.sha,
                        updated_at=f"2026-11-21T04:20:{second:02}Z")
    job.reporter.put("events", f"pytorch/pytorch#{job.pr}", body, {
        "event": "pull_request", "action": "synchronize", "delivery": f"h-{time.time_ns()}",
        "pr": str(job.pr), "head_sha": sha or job.sha, "received_ms": str(int(time.time() * 1000)),
        "source": "webhook"})


def test_one_comment_is_made_edited_as_jobs_fail_and_resolved_when_they_pass(reporter):
    job = Job(reporter, pr=100).call("completed", 1000, conclusion="failure")
    first = reporter.wait_comment(100, FOUR, "@carol", "1 job failed", "<code>build</code> | failure")
    job.call("completed", 2000, conclusion="cancelled", job_name="test", check_run_id="t")
    edited = reporter.wait_comment(100, "2 jobs failed", "<code>test</code> | cancelled")
    job.call("completed", 3000, conclusion="success", run_attempt=2)
    reporter.wait_comment(100, "1 job failed", without=("<code>build</code>",))
    job.call("in_progress", 4000, run_attempt=2, job_name="test", check_run_id="t")
    wait_idle(reporter)
    reporter.wait_comment(100, "1 job failed")
    job.call("completed", 5000, conclusion="success", run_attempt=2, job_name="test", check_run_id="t")
    last = reporter.wait_comment(100, FOUR, "Resolved", without=("@carol",))
    assert first["id"] == edited["id"] == last["id"]
    assert first["performed_via_github_app"]["id"] == 12345


def test_the_same_again_writes_nothing(reporter):
    job = Job(reporter, pr=101, job_name="again").call("completed", 1000, conclusion="failure")
    reporter.wait_comment(101, "1 job failed", "only here")  # and so it stays: no other test has a job of that name
    wait_idle(reporter)
    before = len(reporter.calls("POST")), len(reporter.calls("PATCH"))
    for at in (1000, 2000, 3000):
        job.call("completed", at, conclusion="failure")
    wait_idle(reporter)
    assert (len(reporter.calls("POST")), len(reporter.calls("PATCH"))) == before


def test_a_pull_request_on_which_nothing_fails_gets_no_comment(reporter):
    Job(reporter, pr=102).call("completed", 1000, conclusion="success").wait_check()
    wait_idle(reporter)
    assert reporter.comments(102) == []


@pytest.mark.parametrize("conclusion", ["neutral", "skipped", "action_required"])
def test_what_is_no_failure_asks_nobody(reporter, conclusion):
    pr = 103 + ["neutral", "skipped", "action_required"].index(conclusion)
    Job(reporter, pr=pr).call("completed", 1000, conclusion=conclusion).wait_check()
    wait_idle(reporter)
    assert reporter.comments(pr) == []


def test_a_job_that_timed_out_is_reported(reporter):
    Job(reporter, pr=106).call("completed", 1000, conclusion="timed_out")
    reporter.wait_comment(106, "<code>build</code> | timed_out")


def test_l2_and_l3_without_check_run_ask_nobody_and_l3_with_its_label_does(reporter):
    Job(reporter, "org/two", "L2", pr=107).call("completed", 1000, conclusion="failure")
    job = Job(reporter, "org/three", "L3", pr=107).call("completed", 1000, conclusion="failure")
    job.wait_result()
    wait_idle(reporter)
    assert reporter.comments(107) == []
    label_event(job, "labeled", ["ciflow/crcr/npu"], "ciflow/crcr/npu", 1)
    reporter.wait_comment(107, "<!-- crcr-oncall:org/three -->", "@alice")


def test_names_from_a_downstream_mention_nobody(reporter):
    Job(reporter, pr=108, name="@pytorch/everyone", job_name="<!-- crcr-oncall:org/x --> @bob |").call(
        "completed", 1000, conclusion="failure")
    body = reporter.wait_comment(108, FOUR, "1 job failed")["body"]
    assert body.count("@") == 1 and "@carol" in body
    assert body.count("<!--") == 3 and "<!-- known:only_here -->only here<!-- -->" in body  # with our own marker


def test_a_comment_is_found_again_after_a_lost_view(reporter):
    job = Job(reporter, pr=109).call("completed", 1000, conclusion="failure")
    first = reporter.wait_comment(109, "1 job failed")
    wait_idle(reporter)
    client = reporter.redis.client()
    client.delete(*client.keys("crcr:comment:*"))
    job.call("completed", 2000, conclusion="success", run_attempt=2)
    assert reporter.wait_comment(109, "Resolved")["id"] == first["id"]


def test_a_comment_that_is_found_to_say_it_already_is_not_edited(reporter):
    job = Job(reporter, pr=157).call("completed", 1000, conclusion="failure")
    first = reporter.wait_comment(157, "1 job failed")
    wait_idle(reporter)
    client = reporter.redis.client()
    client.delete(*client.keys("crcr:comment:*"))
    before = len(reporter.calls("GET"))
    job.call("completed", 1000, conclusion="failure")
    wait_for("it to be looked for", lambda: len(reporter.calls("GET")) > before)
    wait_idle(reporter)
    assert not [one for one in reporter.calls("PATCH") if one["path"].endswith(f"/comments/{first['id']}")]


def test_it_is_found_on_a_later_page(reporter):
    for number in range(105):
        reporter.somebody_comments(110, f"talk {number}")
    job = Job(reporter, pr=110).call("completed", 1000, conclusion="failure")
    def ours():
        found = [one for one in reporter.comments(110) if one["body"].startswith(FOUR)]
        assert len(found) <= 1
        return found
    (first,) = wait_for("the comment", ours)
    wait_idle(reporter)
    client = reporter.redis.client()
    client.delete(*client.keys("crcr:comment:*"))
    job.call("completed", 2000, conclusion="success", run_attempt=2)
    wait_for("it to be resolved", lambda: "Resolved" in ours()[0]["body"])
    assert ours()[0]["id"] == first["id"]


@pytest.mark.parametrize("by_another_app", [False, True])
def test_another_s_comment_with_the_same_marker_is_left_alone(reporter, by_another_app):
    pr = 111 + by_another_app
    theirs = f"{FOUR}\nthe upstream's bot says so"
    their_id = reporter.somebody_comments(pr, theirs, by_another_app=by_another_app)
    job = Job(reporter, pr=pr).call("completed", 1000, conclusion="failure")

    def both():
        return {one["id"]: one["body"] for one in reporter.comments(pr)} if len(reporter.comments(pr)) == 2 else None
    wait_for("a comment of our own", both)
    job.call("completed", 2000, conclusion="success", run_attempt=2)
    wait_for("ours to be resolved", lambda: any("Resolved" in body for body in both().values()))
    assert both()[their_id] == theirs
    assert all(one["status"] == 200 for one in reporter.calls("PATCH"))


def test_a_comment_that_somebody_deleted_is_made_anew_only_when_jobs_fail(reporter):
    job = Job(reporter, pr=113).call("completed", 1000, conclusion="failure")
    first = reporter.wait_comment(113, "1 job failed")
    wait_idle(reporter)
    reporter.relay.script({"method": "PATCH", "path": f"*/issues/comments/{first['id']}", "status": 404,
                           "body": {"message": "Not Found"}})
    reporter.relay.script({"method": "GET", "path": "*/issues/113/comments", "status": 200, "body": []})
    job.call("completed", 2000, conclusion="failure", job_name="test", check_run_id="t")
    again = wait_for("a second comment", lambda: [
        one for one in reporter.comments(113) if "2 jobs failed" in one["body"]])
    assert again[0]["id"] != first["id"]


def test_an_unanswered_create_makes_no_second_comment(reporter):
    reporter.relay.script({"method": "POST", "path": "*/issues/114/comments", "reset": True, "effect": True,
                           "count": 1})
    Job(reporter, pr=114).call("completed", 1000, conclusion="failure")
    reporter.wait_comment(114, "1 job failed")
    wait_idle(reporter)
    assert len(reporter.comments(114)) == 1


def test_a_rate_limit_is_waited_for(reporter):
    reporter.relay.script({"method": "POST", "path": "*/issues/115/comments", "status": 403, "count": 1,
                           "retry_after": 2, "body": {"message": "You have exceeded a secondary rate limit"}})
    Job(reporter, pr=115).call("completed", 1000, conclusion="failure")
    reporter.wait_comment(115, "1 job failed")
    posts = [one for one in reporter.calls("POST") if one["path"].endswith("/115/comments")]
    assert [one["status"] for one in posts] == [403, 201]
    assert posts[1]["at_ms"] - posts[0]["at_ms"] >= 2000


def of_issue(reporter, pr):
    return [one for one in reporter.relay.requests() if f"/issues/{pr}/comments" in one["path"]]


def of_dlq(reporter, *jobs):
    return [r for r in reporter.topic("dlq") if (r.key or "").startswith(tuple(job.sha for job in jobs))]


@pytest.mark.parametrize("pr, status", [(116, 403), (162, 404), (158, 410), (159, 422)])
def test_a_comment_that_is_refused_for_good_is_tried_once_a_pull_request(reporter, pr, status):
    reporter.relay.script({"method": "POST", "path": f"*/issues/{pr}/comments", "status": status,
                           "body": {"message": "Unable to create comment because issue is locked."}})
    job, next_push = Job(reporter, pr=pr), Job(reporter, pr=pr)
    job.call("completed", 1000, conclusion="failure").wait_check()
    wait_for("the refusal", lambda: [one for one in of_issue(reporter, pr) if one["status"] == status])
    job.call("completed", 2000, conclusion="failure", job_name="test", check_run_id="t").wait_check(count=2)
    next_push.call("completed", 1000, conclusion="failure").wait_check()
    wait_idle(reporter)
    assert [one["method"] for one in of_issue(reporter, pr)] == ["GET", "POST"]
    assert of_dlq(reporter, job, next_push) == []
    assert "refused_for_good" in reporter.relay.parts["reporter"].text()


def test_an_edit_that_is_refused_for_good_is_tried_once(reporter):
    job = Job(reporter, pr=160).call("completed", 1000, conclusion="failure")
    job.wait_check()
    comment = wait_for("the comment", lambda: reporter.comments(160))[0]
    reporter.relay.script({"method": "PATCH", "path": f"*/issues/comments/{comment['id']}", "status": 403,
                           "body": {"message": "This conversation has been locked"}})
    for n in range(3):
        job.call("completed", 2000, conclusion="failure", job_name=f"test {n}", check_run_id=f"t{n}").wait_check(count=2 + n)
        wait_idle(reporter)
    edits = [one for one in reporter.relay.requests() if one["method"] == "PATCH" and "/issues/comments/" in one["path"]
             and one["path"].endswith(f"/{comment['id']}")]
    assert len(edits) == 1 and of_dlq(reporter, job) == []


def test_comments_that_github_does_not_list_are_asked_for_once(reporter):
    reporter.relay.script({"method": "GET", "path": "*/issues/161/comments", "status": 404, "body": {"message": "Not Found"}})
    job = Job(reporter, pr=161).call("completed", 1000, conclusion="failure")
    job.wait_check()
    job.call("completed", 2000, conclusion="failure", job_name="test", check_run_id="t").wait_check(count=2)
    wait_idle(reporter)
    assert len(of_issue(reporter, 161)) == 1 and of_dlq(reporter, job) == []


def test_only_the_newest_commit_of_a_pull_request_speaks(reporter):
    old, new = Job(reporter, pr=117), Job(reporter, pr=117)
    head(old, 1)
    head(new, 2)
    wait_idle(reporter)
    old.call("completed", 1000, conclusion="failure").wait_check()
    wait_idle(reporter)
    assert reporter.comments(117) == []
    new.call("completed", 1000, conclusion="failure")
    reporter.wait_comment(117, f"`{new.sha[:10]}`")
    old.call("completed", 2000, conclusion="failure", job_name="test", check_run_id="t").wait_check(count=2)
    wait_idle(reporter)
    reporter.wait_comment(117, f"`{new.sha[:10]}`", "1 job failed")


def test_a_newer_commit_that_passes_resolves_it(reporter):
    old, new = Job(reporter, pr=118), Job(reporter, pr=118)
    head(old, 1)
    wait_idle(reporter)
    old.call("completed", 1000, conclusion="failure")
    first = reporter.wait_comment(118, "1 job failed")
    head(new, 2)
    wait_idle(reporter)
    new.call("completed", 1000, conclusion="success")
    assert reporter.wait_comment(118, "Resolved")["id"] == first["id"]


def test_two_replicas_make_one_comment(reporter):
    """Commits of one pull request lie in different partitions, and so with different replicas; the head is not known
    here, so all of them may speak."""
    reporter.start("reporter2", CRCR_HUD_LISTEN=f"127.0.0.1:{free_port()}")
    try:
        reporter.relay.script({"method": "GET", "path": "*/comments", "delay_ms": 300})
        for pr in range(120, 124):
            for _ in range(6):
                Job(reporter, pr=pr).call("completed", 1000, conclusion="failure")
        for pr in range(120, 124):
            wait_for("the comment", lambda pr=pr: reporter.comments(pr), 60)
        wait_idle(reporter)
        assert {pr: len(reporter.comments(pr)) for pr in range(120, 124)} == dict.fromkeys(range(120, 124), 1)
        made = [reporter.relay.parts[part].text().count('"oncall_comment_set"') for part in ("reporter", "reporter2")]
        assert made[1] > 0, made
    finally:
        reporter.relay.script({"clear": True})
        reporter.relay.parts["reporter2"].stop()


def test_killed_while_it_writes_it_makes_no_second_comment(reporter):
    jobs = [Job(reporter, pr=pr).call("completed", 1000, conclusion="failure") for pr in range(130, 136)]
    wait_for("one comment", lambda: any(reporter.comments(job.pr) for job in jobs))
    reporter.relay.parts["reporter"].kill()
    client = reporter.redis.client()
    client.delete("crcr:leases:comment")  # as two minutes later
    reporter.start()
    for job in jobs:
        reporter.wait_comment(job.pr, "1 job failed")
    wait_idle(reporter)
    assert [len(reporter.comments(job.pr)) for job in jobs] == [1] * len(jobs)


@pytest.mark.long
def test_a_comment_that_our_own_budget_holds_back_holds_up_no_check_run_and_comes_later(reporter):
    """Of ten at once a comment leaves five to check runs, and one comes back in two seconds."""
    reporter.restart(CRCR_BUDGET_CONTENT_MINUTE="40", CRCR_SWEEP_SECONDS="1")
    jobs = [Job(reporter, pr=pr).call("completed", 1000, conclusion="failure") for pr in range(150, 155)]
    for job in jobs:
        job.wait_check()
    wait_for("a comment to be held back", lambda: reporter.relay.metric(
        "reporter", "crcr_upstream_calls_total", call="comment_create", outcome="limited") > 0)
    for job in jobs:
        wait_for("its comment", lambda job=job: reporter.comments(job.pr), 60)
    wait_idle(reporter)
    assert [len(reporter.comments(job.pr)) for job in jobs] == [1] * len(jobs)


def test_a_comment_that_github_refuses_loses_no_check_run_that_our_budget_holds_back(reporter):
    """One check run in ten seconds; comments count for nothing here, and this one is refused."""
    reporter.relay.script({"method": "POST", "path": "*/issues/156/comments", "status": 403,
                           "body": {"message": "Unable to create comment because issue is locked."}})
    reporter.restart(CRCR_BUDGET_CONTENT_MINUTE="7", CRCR_BUDGET_CONTENT_CALLS="check_run")
    job = Job(reporter, pr=156).call("completed", 1000, conclusion="failure")
    job.call("completed", 1000, conclusion="failure", job_name="test", check_run_id="t").wait_check(count=2)


def test_without_the_setting_nobody_is_asked(reporter):
    reporter.restart(CRCR_ONCALL_COMMENTS="0")
    Job(reporter, pr=140).call("completed", 1000, conclusion="failure").wait_check()
    wait_idle(reporter)
    reporter.restart(CRCR_ONCALL_COMMENTS="")
    Job(reporter, pr=140).call("completed", 1000, conclusion="failure").wait_check()
    wait_idle(reporter)
    assert reporter.comments(140) == []
    assert not [one for one in reporter.relay.requests() if "/issues/140" in one["path"]]
