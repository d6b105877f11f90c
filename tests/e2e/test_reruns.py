"""GitHub's re-run buttons over the whole relay: what is pressed on the pull request ends as new attempts in the
downstream's CI, whose results supersede the old ones."""

import json

import pytest

from lib.downstream import post
from lib.kafka import read_topic
from lib.processes import wait_for
from lib.redis_server import redis_server
from lib.relay import Relay
from lib.upstream import PullRequest
from openapi.validate import assert_conforms

L1, L2, L3, L4, SILENT = "org/one", "org/two", "org/three", "org/four", "org/silent"
GREEN = "org/green"
ALLOWLIST = f"""\
L1: [{L1}]
L2: [{L2}]
L3:
  npu: {{ {L3}: [alice] }}
L4:
  - {L4}: carol
  - {GREEN}: carol
  - {SILENT}: dave
"""
QUICK = {"delay_ms": 20, "run_ms": 20, "after_ms": 20}
# Two jobs fail at first; what is run again passes.
DOWNSTREAMS = [
    {"repo": SILENT, "answer": "never", **QUICK},
    {"repo": L1, "reports": False, **QUICK},
    {"repo": L3, "conclusion": "failure", "again": "success", **QUICK},
    {"repo": L4, **QUICK, "jobs": [{"name": "linux", "conclusion": "failure", "again": "success"},
                                   {"name": "mac", "conclusion": "failure", "again": "success"},
                                   {"name": "docs"}]},
    {"repo": "*", **QUICK},
]


@pytest.fixture(scope="module")
def relay(kafka_node, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reruns")
    with redis_server(folder / "redis") as redis:
        one = Relay(folder, kafka_node.brokers, redis, allowlist=ALLOWLIST)
        try:
            one.start_all()
            post(one, "/_sim/downstreams", DOWNSTREAMS)
            yield one
        finally:
            one.stop()
        assert_conforms(folder)


class Scene:
    """A pull request of which every downstream that answers has ended its first attempt."""

    def __init__(self, relay):
        self.relay, self.pr = relay, PullRequest(relay)
        self.pr.labels.append("ciflow/crcr/npu")
        body = self.pr.event("opened")
        post(relay, "/_sim/pulls", body)
        self.delivery = self.pr.send(body)
        self.wait_ended(L3, "test", 1, "failure")
        for job in ("linux", "mac"):
            self.wait_ended(L4, job, 1, "failure")
        self.wait_ended(L4, "docs", 1, "success")
        self.wait_ended(GREEN, "test", 1, "success")

    def checks(self, repo, job):
        """The check runs of that job, oldest first."""
        return [run for run in self.relay.state()["check_runs"]
                if (run["head_sha"], run["name"]) == (self.pr.sha, f"crcr/{repo}/CI/{job}")]

    def wait_ended(self, repo, job, attempt, conclusion):
        """The attempt's check run."""
        def ended():
            runs = self.checks(repo, job)
            assert len(runs) <= attempt, runs
            return runs[attempt - 1:] and runs[-1]["conclusion"] == conclusion and runs[-1]
        return wait_for(f"attempt {attempt} of {repo} {job}: {conclusion}", ended, 60)

    def runs(self, repo):
        """What the downstream's CI made of it: (id, attempt)."""
        ids = {run["external_id"].split(":")[0] for run in self.relay.state()["check_runs"]
               if run["head_sha"] == self.pr.sha and run["name"].startswith(f"crcr/{repo}/")}
        return [(run["id"], run["attempt"]) for run in self.relay.state()["runs"] if str(run["id"]) in ids]

    def wait_run_ended(self, repo):
        ids = [number for number, _ in self.runs(repo)]
        wait_for(f"the runs of {repo} to end", lambda: all(
            run["status"] == "completed" for run in self.relay.state()["runs"] if run["id"] in ids))

    def seed(self, *checks):
        return post(self.relay, "/_sim/check_runs", [
            {"repo": "pytorch/pytorch", "head_sha": self.pr.sha, "status": "completed", "conclusion": "failure", **check}
            for check in checks])

    def aggregate(self, repo):
        """Its aggregate check."""
        return wait_for(f"the aggregate of {repo}", lambda: [
            run for run in self.relay.state()["check_runs"]
            if (run["head_sha"], run["name"]) == (self.pr.sha, f"crcr/{repo}")][-1:])[0]

    def outcomes(self, delivery):
        return [json.loads(row.value) for row in read_topic(self.relay.kafka, self.relay.topic("dispatches"))
                if row.headers["delivery"] == delivery]

    def wait_outcome(self, delivery, repo, kind, outcome):
        return wait_for(f"{kind} of {repo}: {outcome}", lambda: [
            one for one in self.outcomes(delivery) if
            (one["repo"], one["kind"], one["outcome"]) == (repo, kind, outcome)], 60)[0]

    def rows(self, repo):
        answer = self.relay.api(f"/api/crcr/deliveries/{self.delivery}")
        return [row for row in answer["jobs"] if row["downstream_repo"] == repo]


@pytest.fixture
def scene(relay):
    return Scene(relay)


def test_one_check_is_run_again_and_its_new_result_supersedes(scene):
    for repo in (L4, GREEN):
        scene.wait_run_ended(repo)
    old = scene.checks(L4, "linux")[0]
    delivery = scene.relay.press(check_run=old["id"])
    new = scene.wait_ended(L4, "linux", 2, "success")
    assert new["external_id"] == old["external_id"] and new["id"] != old["id"]
    assert scene.checks(L4, "linux")[0]["conclusion"] == "failure"  # what was said stays said
    outcome = scene.wait_outcome(delivery, L4, "rerun_failed", "dispatched")
    assert outcome["run_id"] == old["external_id"].split(":")[0]
    scene.wait_ended(L4, "mac", 2, "success")  # GitHub knows failed jobs of a run only
    assert len(scene.checks(L4, "docs")) == 1
    wait_for("the second attempt in the view", lambda: ("linux", 2, "success") in {
        (row["job_name"], row["run_attempt"], row["conclusion"]) for row in scene.rows(L4)})


def test_a_check_that_passed_is_run_again_too(scene):
    scene.wait_run_ended(GREEN)
    scene.relay.press(check_run=scene.checks(GREEN, "test")[0]["id"])
    scene.wait_ended(GREEN, "test", 2, "success")


@pytest.fixture
def slow_scene(relay):
    """Makes one whose runs take so long that a second press finds them running."""
    def make(run_ms):
        post(relay, "/_sim/downstreams", [dict(one, run_ms=run_ms) for one in DOWNSTREAMS])
        return Scene(relay)
    yield make
    post(relay, "/_sim/downstreams", DOWNSTREAMS)


def test_failed_checks_pressed_together_start_each_run_once(slow_scene):
    for run_ms in (4000, 15_000):  # the short ones may be over on a busy machine
        scene = slow_scene(run_ms)
        for repo in (L3, L4):
            scene.wait_run_ended(repo)
        pressed = [scene.relay.press(check_run=scene.checks(repo, job)[0]["id"])
                   for repo, job in ((L4, "linux"), (L4, "mac"), (L3, "test"))]
        answers = [scene.wait_outcome(delivery, repo, "rerun_failed", "dispatched")["http_status"]
                   for delivery, repo in zip(pressed, (L4, L4, L3))]
        if 403 in answers:
            break
    assert sorted(answers) == [201, 201, 403]
    for repo, job in ((L4, "linux"), (L4, "mac"), (L3, "test")):
        scene.wait_ended(repo, job, 2, "success")
    assert len(scene.checks(L4, "docs")) == 1


def test_all_checks_are_run_again_one_call_a_run(scene):
    for repo in (L3, L4, GREEN):
        scene.wait_run_ended(repo)
    delivery = scene.relay.press(check_suite=scene.checks(L4, "docs")[0]["check_suite"]["id"])
    for repo, job in ((L3, "test"), (L4, "linux"), (L4, "mac"), (GREEN, "test")):
        scene.wait_ended(repo, job, 2, "success")
    reported = [(one["repo"], one["kind"]) for one in scene.outcomes(delivery) if one["kind"] == "rerun_all"]
    assert sorted(reported) == [(L4, "rerun_all"), (GREEN, "rerun_all"), (L3, "rerun_all")]
    assert scene.wait_outcome(delivery, "pytorch/pytorch", "expand", "dispatched")["tier"] == "L4"


def test_trace_tells_what_a_button_became(scene):
    scene.wait_run_ended(L4)
    check = scene.checks(L4, "linux")[0]
    delivery = scene.relay.press(check_suite=check["check_suite"]["id"])
    scene.wait_outcome(delivery, L4, "rerun_all", "dispatched")
    text = scene.relay.ctl("trace", delivery).stdout
    for words in (f"expand of check suite {check['check_suite']['id']}",
                  f"rerun_all of run {check['external_id'].split(':')[0]}", "it runs again"):
        assert words in text, text


def test_the_aggregate_runs_all_jobs_of_its_known_runs_again(scene):
    scene.wait_run_ended(L4)
    delivery = scene.relay.press(check_run=scene.aggregate(L4)["id"])
    for job in ("linux", "mac", "docs"):
        scene.wait_ended(L4, job, 2, "success")
    scene.wait_outcome(delivery, L4, "rerun_all", "dispatched")
    assert [one["kind"] for one in scene.outcomes(delivery)].count("dispatch") == 0
    wait_for("the aggregate to be green", lambda: scene.aggregate(L4)["conclusion"] == "success", 90)


def test_the_aggregate_of_a_silent_downstream_is_dispatched_afresh(scene):
    check = scene.aggregate(SILENT)
    assert check["conclusion"] is None
    post(scene.relay, "/_sim/downstreams", {"repo": SILENT, **QUICK})
    delivery = scene.relay.press(check_run=check["id"])
    scene.wait_outcome(delivery, SILENT, "dispatch", "dispatched")
    scene.wait_ended(SILENT, "test", 1, "success")
    post(scene.relay, "/_sim/downstreams", {"repo": SILENT, "answer": "never", **QUICK})
    sent = [one for one in scene.relay.state()["dispatches"] if one["client_payload"]["delivery_id"] == delivery]
    assert [(one["repo"], one["event_type"], one["client_payload"]["payload"]["action"]) for one in sent] == [
        (SILENT, "pull_request", "reopened")]
    wait_for("the aggregate of the new delivery to be green", lambda: (
        scene.aggregate(SILENT)["external_id"], scene.aggregate(SILENT)["conclusion"]) == (
            f"d:{delivery}:{scene.pr.number}", "success"), 90)


def test_the_aggregate_of_a_pull_request_that_has_moved_on_is_skipped(scene):
    check = scene.aggregate(SILENT)
    post(scene.relay, "/_sim/pulls", scene.pr.pushed_event())
    outcome = scene.wait_outcome(scene.relay.press(check_run=check["id"]), SILENT, "expand", "skipped")
    assert scene.pr.sha in outcome["error"]


def test_checks_on_a_second_page_are_run_again(scene):
    for repo in (L3, L4):
        scene.wait_run_ended(repo)
    run = scene.checks(L4, "linux")[0]["external_id"]
    made = scene.seed(*[{"name": f"crcr/{L4}/CI/leg {n}", "external_id": run} for n in range(110)])
    suite = made[0]["check_suite"]["id"]
    scene.relay.press(check_suite=suite)
    scene.wait_ended(L3, "test", 2, "success")  # the oldest stand at the end
    scene.wait_ended(L4, "linux", 2, "success")
    pages = [one["query"].get("page", "1") for one in scene.relay.requests()
             if one["path"].endswith(f"/check-suites/{suite}/check-runs")]
    assert pages == ["1", "2"]


def test_a_run_that_is_already_running_is_left_to_run(scene):
    scene.wait_run_ended(L4)
    post(scene.relay, "/_sim/script", {"path": "*/rerun-failed-jobs", "repo": L4, "count": 1, "status": 403,
                                       "body": {"message": "This workflow is already running"}})
    delivery = scene.relay.press(check_run=scene.checks(L4, "linux")[0]["id"])
    outcome = scene.wait_outcome(delivery, L4, "rerun_failed", "dispatched")
    assert outcome["http_status"] == 403
    assert not [record for record in read_topic(scene.relay.kafka, scene.relay.topic("dlq"))
                if record.headers.get("delivery") == delivery]


def test_a_check_of_another_app_under_our_name_starts_nothing(scene):
    scene.wait_run_ended(L4)
    run = scene.checks(L4, "linux")[0]["external_id"]
    fake = scene.seed({"name": f"crcr/{L4}/CI/linux 2", "external_id": run, "app_id": 1})[0]
    faked = scene.relay.press(check_run=fake["id"])
    after = scene.relay.press(check_run=scene.seed({"name": f"crcr/{L2}/CI/test", "external_id": "5:1"})[0]["id"])
    scene.wait_outcome(after, L2, "rerun_failed", "skipped")
    assert scene.outcomes(faked) == []
    assert [attempt for _, attempt in scene.runs(L4)] == [1]


def test_a_check_of_level_2_is_skipped_with_the_reason(scene):
    check = scene.seed({"name": f"crcr/{L2}/CI/test", "external_id": "5:1"})[0]
    outcome = scene.wait_outcome(scene.relay.press(check_run=check["id"]), L2, "rerun_failed", "skipped")
    assert "levels 3 and 4" in outcome["error"]


@pytest.mark.long
def test_a_dispatcher_killed_in_the_middle_of_an_expand_loses_nothing(scene):
    for repo in (L3, L4, GREEN):
        scene.wait_run_ended(repo)
    suite = scene.checks(L4, "docs")[0]["check_suite"]["id"]
    post(scene.relay, "/_sim/script", {"path": f"*/check-suites/{suite}/*", "count": 1, "hang": True})
    delivery = scene.relay.press(check_suite=suite)
    wait_for("the suite to be asked for", lambda: [one for one in scene.relay.requests()
                                                   if f"/check-suites/{suite}/" in one["path"]])
    scene.relay.parts["dispatcher"].kill()
    scene.relay.start("dispatcher")
    scene.relay.wait_ready("dispatcher")
    for repo, job in ((L3, "test"), (L4, "linux"), (L4, "mac"), (L4, "docs"), (GREEN, "test")):
        scene.wait_ended(repo, job, 2, "success")
    assert not [one for one in scene.outcomes(delivery) if one["maybe_duplicate"]]
