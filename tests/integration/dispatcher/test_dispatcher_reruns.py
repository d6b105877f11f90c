"""GitHub's re-run buttons. The check runs stand at the simulated GitHub; the jobs that the
reporter would have folded are written into Redis."""
import itertools
import json
import signal
import time
import uuid

import pytest

from dispatcher_env import REPOS, Bench
from lib.processes import wait_for
from lib.redis_server import RedisServer
from lib.relay import http, pull_request

OURS = 12345
UPSTREAM = "pytorch/pytorch"
L2, L3, L4 = REPOS["L2"], REPOS["L3"], REPOS["L4"]
TAKEN = {"method": "POST", "path": "*/actions/runs/*", "status": 201, "body": {}}
NOTHING_FAILED = {"path": "*/rerun-failed-jobs", "status": 403, "body": {"message": "This workflow run cannot be retried"}}
commits = itertools.count(1)


class Buttons:
    """One commit of the upstream, the check runs on it, and what is pressed there."""

    def __init__(self, bench):
        self.bench = bench
        self.sha = uuid.uuid4().hex + f"{next(commits):08x}"
        bench.redis.set("crcr:epoch", "1")
        bench.script(TAKEN)

    def control(self, path, body):
        status, answer = http("POST", self.bench.relay.url("github", path), json.dumps(body).encode())
        assert status in (200, 201), answer
        return json.loads(answer)

    def checks(self, *checks):
        """(name, external_id[, app_id]) each; gives the suite's id."""
        made = self.control("/_sim/check_runs", [
            {"repo": UPSTREAM, "head_sha": self.sha, "name": name, "external_id": external_id,
             "app_id": app[0] if app else OURS} for name, external_id, *app in checks])
        return made[0]["check_suite"]["id"]

    def _event(self, kind, noun, key=None, **changes):
        body = {"action": "rerequested", "repository": {"id": 1, "full_name": UPSTREAM},
                "sender": {"login": "alice"}, "installation": {"id": 7}, kind: dict(noun, head_sha=self.sha)}
        return self.bench.event(body, kind, key=f"{UPSTREAM}@{self.sha}", pr="0", head_sha=self.sha, **changes)

    def press_check(self, name, external_id, app_id=OURS, **changes):
        return self._event("check_run", {"id": 7, "name": name, "external_id": external_id, "app": {"id": app_id},
                                         "check_suite": {"id": 8}}, **changes)

    def press_all(self, suite, app_id=OURS, **changes):
        return self._event("check_suite", {"id": suite, "app": {"id": app_id}}, **changes)

    def press_aggregate(self, repo, pr, of="d-1", **changes):
        return self.press_check(f"crcr/{repo}", f"d:{of}:{pr}", **changes)

    def fold_job(self, repo, workflow, run_id, pr, delivery="d-1", issuer="https://token.actions.githubusercontent.com"):
        """One job in the view, as the reporter's fold leaves it."""
        redis, key = self.bench.redis, f"{repo.replace('/', '%2F')}/{delivery}/{workflow}/test/{uuid.uuid4().hex}"
        redis.hset(f"crcr:job:{key}", mapping={
            "dynamoKey": key, "status": "completed", "downstream_repo": repo, "event_type": "pull_request",
            "pr_number": pr, "pytorch_head_sha": self.sha, "delivery_id": delivery, "workflow_name": workflow,
            "job_name": "test", "run_id": run_id, "run_attempt": "1", "issuer": issuer})
        redis.sadd(f"crcr:head:{self.sha}/{repo}", key)

    def pull(self, number, sha=None, **changes):
        """What GitHub says of a pull request from now on."""
        body = pull_request(number=number, sha=sha or self.sha)
        body["pull_request"].update(changes)
        self.control("/_sim/pulls", body)

    # ---- what came of it ----
    def reruns(self, repo=None):
        """(repo, run, which) of every re-run that GitHub was asked for, in order."""
        found = []
        for one in self.bench.relay.requests():
            if one["method"] == "POST" and "/actions/runs/" in one["path"]:
                parts = one["path"].split("/")
                found.append(("/".join(parts[2:4]), int(parts[6]), parts[7]))
        return [one for one in found if repo in (None, one[0])]

    def listings(self, suite):
        return [one for one in self.bench.relay.requests()
                if one["path"] == f"/repos/{UPSTREAM}/check-suites/{suite}/check-runs"]

    def outcome(self, delivery, repo, kind, outcome="dispatched", timeout=60):
        def there():
            return [one for one in self.bench.outcomes(delivery, repo)
                    if (one["kind"], one["outcome"]) == (kind, outcome)]
        return wait_for(f"{kind} of {repo}: {outcome}", there, timeout)[0]


runs = itertools.count(1_000_001)
GITLAB = "https://gitlab.example"


@pytest.fixture
def buttons(bench):
    return Buttons(bench)


@pytest.fixture
def alone(kafka_node, tmp_path):
    """A dispatcher with a Redis of its own to break."""
    node = RedisServer(tmp_path / "redis").start()
    bench = Bench(tmp_path / "relay", kafka_node, node).start().ready()
    yield Buttons(bench)
    bench.close()
    node.process.signal(signal.SIGCONT)
    node.stop()


class TestOneCheck:
    def test_its_outcome_names_the_run(self, buttons):
        run = next(runs)
        delivery = buttons.press_check(f"crcr/{L4}/CI/test", f"{run}:1")
        outcome = buttons.outcome(delivery, L4, "rerun_failed")
        assert (outcome["run_id"], outcome["tier"], outcome["http_status"]) == (str(run), "L4", 201)
        assert [one for one in buttons.reruns(L4) if one[1] == run] == [(L4, run, "rerun-failed-jobs")]

    def test_of_which_nothing_failed_has_all_its_jobs_run_again(self, buttons):
        run = next(runs)
        buttons.bench.clear_script()
        buttons.bench.script(NOTHING_FAILED, TAKEN)
        delivery = buttons.press_check(f"crcr/{L4}/CI/test", f"{run}:1")
        assert buttons.outcome(delivery, L4, "rerun_failed")["http_status"] == 201
        assert [which for _, number, which in buttons.reruns(L4) if number == run] == ["rerun-failed-jobs", "rerun"]

    def test_that_github_never_repeats_is_refused_with_its_reason(self, buttons):
        run = next(runs)
        buttons.bench.clear_script()
        buttons.bench.script({"path": "*/actions/runs/*", "status": 403, "body": {
            "message": "Unable to retry this workflow run because it was created over a month ago"}})
        delivery = buttons.press_check(f"crcr/{L4}/CI/test", f"{run}:1")
        outcome = buttons.outcome(delivery, L4, "rerun_failed", "failed")
        assert "over a month ago" in outcome["error"]
        assert len([one for one in buttons.reruns(L4) if one[1] == run]) == 1

    def test_the_same_delivery_again_calls_once(self, buttons):
        run = next(runs)
        delivery = buttons.press_check(f"crcr/{L4}/CI/test", f"{run}:1")
        buttons.outcome(delivery, L4, "rerun_failed")
        buttons.press_check(f"crcr/{L4}/CI/test", f"{run}:1", delivery=delivery)
        buttons.outcome(delivery, L4, "rerun_failed", "duplicate")
        assert len([one for one in buttons.reruns(L4) if one[1] == run]) == 1

    def test_two_of_one_run_find_it_already_running(self, buttons):
        run = next(runs)
        buttons.bench.clear_script()
        buttons.bench.script(dict(TAKEN, count=1), {"path": "*/actions/runs/*", "status": 403,
                                                    "body": {"message": "This workflow is already running"}})
        deliveries = [buttons.press_check(f"crcr/{L4}/CI/{name}", f"{run}:1") for name in ("a", "b")]
        statuses = [buttons.outcome(delivery, L4, "rerun_failed")["http_status"] for delivery in deliveries]
        assert sorted(statuses) == [201, 403]

    @pytest.mark.parametrize("name, external_id, reason", [
        (f"crcr/{L2}/CI/test", "5:1", "levels 3 and 4"),
        (f"crcr/{L4}/CI/test", "0192-uuid:1", "no GitHub Actions run"),
        (f"crcr/{L4}/CI/test", "", "no GitHub Actions run"),
        (f"crcr/{L4}", "5:1", "names no delivery"),
        (f"crcr/{L2}", "d:x:1", "levels 3 and 4"),
    ], ids=["level 2", "other CI", "no run id", "aggregate without delivery", "aggregate of level 2"])
    def test_that_cannot_be_is_skipped_with_the_reason(self, buttons, name, external_id, reason):
        outcome = buttons.bench.wait_outcomes(buttons.press_check(name, external_id), 1)[0]
        assert outcome["outcome"] == "skipped" and reason in outcome["error"]

    @pytest.mark.parametrize("name, external_id, app_id", [
        (f"crcr/{L4}/CI/test", "77:1", 1), (f"crcr/{L4}", "d:x:1", 1), ("lint", "77:1", OURS),
        ("crcr/org/gone/CI/test", "77:1", OURS), ("crcr/org/gone", "d:x:1", OURS),
    ], ids=["another App's", "another App's aggregate", "no name of ours", "unlisted", "unlisted aggregate"])
    def test_not_ours_calls_nobody(self, buttons, name, external_id, app_id):
        delivery = buttons.press_check(name, external_id, app_id)
        after = buttons.press_check(f"crcr/{L4}/CI/test", f"{next(runs)}:1")
        buttons.outcome(after, L4, "rerun_failed")
        assert not buttons.bench.outcomes(delivery)
        assert not [one for one in buttons.reruns() if one[1] == 77]


    def test_of_another_ci_that_numbers_its_runs_is_skipped_with_the_reason(self, buttons):
        run = next(runs)
        buttons.fold_job(L4, "CI", run, 1, issuer=GITLAB)
        delivery = buttons.press_check(f"crcr/{L4}/CI/test", f"{run}:1")
        assert "no GitHub Actions run" in buttons.outcome(delivery, L4, "rerun_failed", "skipped")["error"]
        buttons.fold_job(L4, "CI", run + 500, 1)
        buttons.outcome(buttons.press_check(f"crcr/{L4}/CI/test", f"{run + 500}:1"), L4, "rerun_failed")
        assert not [one for one in buttons.reruns() if one[1] == run]

    def test_of_actions_goes_out_although_another_ci_has_a_run_of_that_number(self, buttons):
        run = next(runs)
        buttons.fold_job(L4, "CI", run, 1, issuer=GITLAB)
        buttons.fold_job(L4, "CI", run, 1, delivery="d-2")
        buttons.outcome(buttons.press_check(f"crcr/{L4}/CI/test", f"{run}:1"), L4, "rerun_failed")
        assert [one for one in buttons.reruns() if one[1] == run]

    def test_of_another_ci_is_refused_by_github_while_the_view_does_not_know_it(self, buttons):
        run = next(runs)
        buttons.bench.clear_script()
        buttons.bench.script({"method": "POST", "path": f"*/actions/runs/{run}/*", "status": 404,
                              "body": {"message": "Not Found"}})
        delivery = buttons.press_check(f"crcr/{L4}/CI/test", f"{run}:1")
        assert buttons.outcome(delivery, L4, "rerun_failed", "failed")["http_status"] == 404


class TestAllChecks:
    def test_become_one_rerun_a_repository_and_run_in_the_tier_of_each(self, buttons):
        a, b, c = next(runs), next(runs), next(runs)
        suite = buttons.checks((f"crcr/{L4}/CI/1", f"{a}:1"), (f"crcr/{L4}/CI/2", f"{a}:1"),
                               (f"crcr/{L4}/Docs/1", f"{b}:1"), (f"crcr/{L3}/CI/1", f"{c}:1"))
        delivery = buttons.press_all(suite)
        expand = buttons.outcome(delivery, UPSTREAM, "expand")
        assert (expand["run_id"], expand["tier"], expand["http_status"]) == (str(suite), "L4", 200)
        outcomes = wait_for("three re-runs", lambda: (found := [
            one for one in buttons.bench.outcomes(delivery) if one["kind"] == "rerun_all"])[2:] and found)
        assert sorted((one["repo"], one["run_id"], one["tier"], one["outcome"]) for one in outcomes) == sorted([
            (L4, str(a), "L4", "dispatched"), (L4, str(b), "L4", "dispatched"), (L3, str(c), "L3", "dispatched")])
        assert sorted(one for one in buttons.reruns() if one[1] in (a, b, c)) == sorted([
            (L4, a, "rerun"), (L4, b, "rerun"), (L3, c, "rerun")])
        tasks = [one for one in buttons.bench.topic("dispatch.l3") if one.headers["delivery"] == delivery]
        assert [(one.key, one.headers["repos"]) for one in tasks] == [(f"{UPSTREAM}@{buttons.sha}", L3)]

    def test_of_several_pages_are_all_found(self, buttons):
        first, last = next(runs), next(runs)
        suite = buttons.checks((f"crcr/{L3}/CI/last", f"{last}:1"),
                               *[(f"crcr/{L4}/CI/{n}", f"{first}:1") for n in range(220)])
        delivery = buttons.press_all(suite)
        buttons.outcome(delivery, L4, "rerun_all")
        assert buttons.outcome(delivery, L3, "rerun_all")["run_id"] == str(last)
        pages = buttons.listings(suite)
        assert [one["query"].get("page", "1") for one in pages] == ["1", "2", "3"]
        assert {(one["query"]["per_page"], one["query"]["filter"]) for one in pages} == {("100", "latest")}
        assert len([one for one in buttons.reruns() if one[1] == first]) == 1

    def test_that_cannot_be_are_skipped_with_the_reason_and_hold_up_nothing(self, buttons):
        run = next(runs)
        suite = buttons.checks((f"crcr/{L2}/CI/1", "91:1"), (f"crcr/{L2}/CI/2", "92:1"), (f"crcr/{L3}/CI/1", "uuid:1"),
                               ("crcr/org/gone/CI/1", "93:1"), (f"crcr/{L4}/CI/fake", "94:1", 1), ("lint", "95:1"),
                               (f"crcr/{L4}/CI/good", f"{run}:1"))
        counted = {"name": "crcr_dispatch_repo_outcomes_total", "repo": L2, "outcome": "skipped"}
        before = buttons.bench.metric(**counted)
        delivery = buttons.press_all(suite)
        buttons.outcome(delivery, L4, "rerun_all")
        assert "levels 3 and 4" in buttons.outcome(delivery, L2, "rerun_all", "skipped")["error"]
        assert "no GitHub Actions run" in buttons.outcome(delivery, L3, "rerun_all", "skipped")["error"]
        assert len(buttons.bench.outcomes(delivery)) == 4
        assert buttons.bench.metric(**counted) == before + 1
        assert not [one for one in buttons.reruns() if one[1] < 100]

    def test_of_a_suite_without_any_of_ours_say_why_nothing_came_of_it(self, buttons):
        delivery = buttons.press_all(buttons.checks(("lint", "95:1")))
        assert "name" in buttons.outcome(delivery, UPSTREAM, "expand", "skipped")["error"]

    def test_of_another_apps_suite_are_not_ours(self, buttons):
        suite = buttons.checks((f"crcr/{L4}/CI/1", f"{next(runs)}:1"))
        delivery = buttons.press_all(suite, app_id=1)
        buttons.outcome(buttons.press_all(suite), L4, "rerun_all")
        assert not buttons.bench.outcomes(delivery)

    def test_take_the_aggregate_of_a_repository_with_runs_for_done(self, buttons):
        run = next(runs)
        suite = buttons.checks((f"crcr/{L4}", "d:x:1"), (f"crcr/{L4}/CI/1", f"{run}:1"))
        delivery = buttons.press_all(suite)
        buttons.outcome(delivery, L4, "rerun_all")
        assert {one["kind"] for one in buttons.bench.outcomes(delivery, L4)} == {"rerun_all"}

    def test_take_the_aggregate_where_the_runs_are_another_cis(self, buttons):
        number, run = next(buttons.bench.numbers), next(runs)
        buttons.pull(number)
        buttons.fold_job(L4, "CI", run, number, issuer=GITLAB)
        suite = buttons.checks((f"crcr/{L4}", f"d:x:{number}"), (f"crcr/{L4}/CI/test", f"{run}:{number}"))
        delivery = buttons.press_all(suite)
        buttons.outcome(delivery, L4, "dispatch")
        assert "no GitHub Actions run" in buttons.outcome(delivery, L4, "rerun_all", "skipped")["error"]

    def test_dispatch_afresh_to_a_silent_repository(self, buttons):
        number, run = next(buttons.bench.numbers), next(runs)
        buttons.pull(number)
        suite = buttons.checks((f"crcr/{L3}", f"d:x:{number}"), (f"crcr/{L4}/CI/1", f"{run}:{number}"))
        delivery = buttons.press_all(suite)
        assert buttons.outcome(delivery, L3, "dispatch")["tier"] == "L3"
        sent = buttons.bench.dispatches(delivery)
        assert [one["repo"] for one in sent] == [L3]
        assert sent[0]["client_payload"]["payload"]["sender"]["login"] == "alice"

    def test_of_the_same_delivery_again_are_asked_for_once(self, buttons):
        run = next(runs)
        suite = buttons.checks((f"crcr/{L4}/CI/1", f"{run}:1"))
        delivery = buttons.press_all(suite)
        buttons.outcome(delivery, L4, "rerun_all")
        buttons.press_all(suite, delivery=delivery)
        assert buttons.outcome(delivery, UPSTREAM, "expand", "duplicate")["run_id"] == str(suite)
        assert len(buttons.listings(suite)) == 1
        assert len([one for one in buttons.reruns() if one[1] == run]) == 1

    def test_are_looked_for_again_when_github_fails_and_nothing_counts_as_a_duplicate(self, buttons):
        run = next(runs)
        suite = buttons.checks((f"crcr/{L4}/CI/1", f"{run}:1"))
        buttons.bench.script({"path": f"*/check-suites/{suite}/*", "status": 502, "count": 1})
        delivery = buttons.press_all(suite)
        waiting = buttons.outcome(delivery, UPSTREAM, "expand", "waiting")
        assert waiting["http_status"] == 502
        assert buttons.outcome(delivery, UPSTREAM, "expand")["attempt"] == 2
        buttons.outcome(delivery, L4, "rerun_all")
        assert not [one for one in buttons.bench.outcomes(delivery) if one["maybe_duplicate"]]

    def test_are_looked_for_when_a_limit_ends_and_no_attempt_is_spent(self, buttons):
        run = next(runs)
        suite = buttons.checks((f"crcr/{L4}/CI/1", f"{run}:1"))
        buttons.bench.script({"path": f"*/check-suites/{suite}/*", "status": 403, "retry_after": 2, "count": 1})
        delivery = buttons.press_all(suite)
        assert buttons.outcome(delivery, UPSTREAM, "expand", "waiting")["attempt"] == 1
        assert buttons.outcome(delivery, UPSTREAM, "expand")["attempt"] == 1
        buttons.outcome(delivery, L4, "rerun_all")
        asked = [one["at_ms"] for one in buttons.listings(suite)]
        assert len(asked) == 2 and asked[1] - asked[0] >= 2000

    def test_without_end_are_refused(self, buttons):
        path = f"/repos/{UPSTREAM}/check-suites/77/check-runs"
        link = f"<{buttons.bench.relay.url('github', path)}?page=2>; rel=\"next\""
        buttons.bench.script({"path": path, "status": 200, "headers": {"Link": link},
                              "body": {"total_count": 1, "check_runs": []}})
        delivery = buttons.press_all(77)
        assert "more check runs" in buttons.outcome(delivery, UPSTREAM, "expand", "failed")["error"]
        assert len(buttons.listings(77)) == 100

    def test_that_github_does_not_show_go_to_the_dlq(self, buttons):
        delivery = buttons.press_all(999999)
        outcome = buttons.outcome(delivery, UPSTREAM, "expand", "failed")
        assert outcome["http_status"] == 404
        wait_for("it in the dlq", lambda: [one for one in buttons.bench.topic("dlq") if
                                           one.headers["delivery"] == delivery and one.headers["class"] == "refused"])

    def test_past_the_maximum_age_are_skipped(self, buttons):
        delivery = buttons.press_all(8, received_ms=int(time.time() * 1000) - 4 * 86400000)
        outcome = buttons.outcome(delivery, UPSTREAM, "expand", "skipped")
        assert "CRCR_MAX_EVENT_AGE" in outcome["error"]


class TestTheAggregate:
    def test_runs_the_newest_run_of_each_workflow_again_whole(self, buttons):
        old, new, docs, other = [next(runs) for _ in range(4)]
        for workflow, run, pr in [("CI", old, 7), ("CI", new, 7), ("CI", new, 7), ("Docs", docs, 7), ("CI", other, 8)]:
            buttons.fold_job(L4, workflow, run, pr)
        delivery = buttons.press_aggregate(L4, 7)
        assert buttons.outcome(delivery, L4, "expand")["run_id"] == "d:d-1:7"
        wait_for("two re-runs", lambda: len([one for one in buttons.bench.outcomes(delivery)
                                             if one["kind"] == "rerun_all" and one["outcome"] == "dispatched"]) == 2)
        assert sorted(one for one in buttons.reruns(L4) if one[1] in (old, new, docs, other)) == [
            (L4, new, "rerun"), (L4, docs, "rerun")]
        assert not buttons.bench.dispatches(delivery)

    def test_of_a_silent_repository_is_a_fresh_dispatch_of_the_pull_request_as_it_is_now(self, buttons):
        number = next(buttons.bench.numbers)
        buttons.pull(number, title="As it is now")
        delivery = buttons.press_aggregate(L3, number)
        outcome = buttons.outcome(delivery, L3, "dispatch")
        assert (outcome["pr_number"], outcome["head_sha"], outcome["event_type"]) == \
            (number, buttons.sha, "pull_request")
        sent = buttons.bench.dispatches(delivery)
        assert [(one["repo"], one["event_type"]) for one in sent] == [(L3, "pull_request")]
        event = sent[0]["client_payload"]["payload"]
        assert (event["action"], event["number"], event["pull_request"]["title"]) == \
            ("reopened", number, "As it is now")
        assert event["pull_request"]["head"]["sha"] == buttons.sha
        assert (event["repository"]["full_name"], event["sender"]["login"]) == (UPSTREAM, "alice")
        claim = buttons.bench.redis.hgetall(f"crcr:claim:{delivery}|{L3}|dispatch|")
        assert (claim["state"], claim["pr"], claim["head_sha"]) == ("done", str(number), buttons.sha)

    def test_with_a_run_of_another_ci_is_one_fresh_dispatch_for_all(self, buttons):
        number, run = next(buttons.bench.numbers), next(runs)
        buttons.pull(number)
        buttons.fold_job(L4, "CI", run, number)
        buttons.fold_job(L4, "Buildkite", str(uuid.uuid4()), number)
        delivery = buttons.press_aggregate(L4, number)
        buttons.outcome(delivery, L4, "dispatch")
        assert len(buttons.bench.dispatches(delivery)) == 1
        assert not [one for one in buttons.reruns() if one[1] == run]

    @pytest.mark.parametrize("changes, reason", [({"sha": "e" * 40}, "moved on to " + "e" * 40),
                                                 ({"state": "closed"}, "closed")], ids=["moved on", "closed"])
    def test_of_a_pull_request_that_is_no_longer_so_is_skipped_with_the_reason(self, buttons, changes, reason):
        number = next(buttons.bench.numbers)
        buttons.pull(number, **changes)
        delivery = buttons.press_aggregate(L4, number)
        assert reason in buttons.outcome(delivery, L4, "expand", "skipped")["error"]
        assert len(buttons.bench.outcomes(delivery)) == 1 and not buttons.bench.dispatches(delivery)

    def test_of_a_pull_request_that_github_does_not_show_goes_to_the_dlq(self, buttons):
        delivery = buttons.press_aggregate(L4, 987654321)
        assert buttons.outcome(delivery, L4, "expand", "failed")["http_status"] == 404

    def test_of_a_large_pull_request_is_fitted(self, buttons):
        number = next(buttons.bench.numbers)
        buttons.pull(number, body="x" * 200_000)
        delivery = buttons.press_aggregate(L4, number)
        buttons.outcome(delivery, L4, "dispatch")
        sent = buttons.bench.dispatches(delivery)[0]["client_payload"]
        assert len(json.dumps(sent)) < 65536 and "pull_request.body" in sent["payload_trimmed"]
        assert sent["payload"]["pull_request"]["head"]["sha"] == buttons.sha

    def test_the_same_delivery_again_dispatches_once(self, buttons):
        number = next(buttons.bench.numbers)
        buttons.pull(number)
        delivery = buttons.press_aggregate(L4, number)
        buttons.outcome(delivery, L4, "dispatch")
        buttons.press_aggregate(L4, number, delivery=delivery)
        buttons.outcome(delivery, L4, "expand", "duplicate")
        assert len(buttons.bench.dispatches(delivery)) == 1

    def test_keeps_its_place_among_the_pull_requests_own_events(self, buttons):
        number, bench = next(buttons.bench.numbers), buttons.bench
        at = "2026-11-21T03:20:{:02d}Z".format
        bench.wait_outcome(bench.pull_request(number, updated_at=at(10)), L4, "dispatched")
        buttons.pull(number, updated_at=at(10))
        delivery = buttons.press_aggregate(L4, number)
        buttons.outcome(delivery, L4, "dispatch")
        bench.wait_outcome(bench.pull_request(number, updated_at=at(9)), L4, "superseded")
        bench.wait_outcome(bench.pull_request(number, updated_at=at(11)), L4, "dispatched")
        late = buttons.press_aggregate(L4, number)
        buttons.outcome(late, L4, "dispatch", "superseded")


class TestWhenSomethingIsAway:
    def test_the_aggregate_waits_for_a_view_that_is_being_rebuilt_and_spends_no_attempt(self, alone):
        run = next(runs)
        alone.bench.redis.delete("crcr:epoch")
        delivery = alone.press_aggregate(L4, 7)
        assert "rebuilt" in alone.outcome(delivery, L4, "expand", "waiting")["error"]
        alone.fold_job(L4, "CI", run, 7)
        alone.bench.redis.set("crcr:epoch", "2")
        assert alone.outcome(delivery, L4, "rerun_all")["run_id"] == str(run)
        assert alone.outcome(delivery, L4, "expand")["attempt"] == 1

    def test_the_aggregate_waits_for_redis_and_dispatches_nothing_meanwhile(self, alone):
        number, run = next(alone.bench.numbers), next(runs)
        alone.pull(number)
        alone.fold_job(L4, "CI", run, number)
        node = alone.bench.redis_node
        node.process.signal(signal.SIGSTOP)
        delivery = alone.press_aggregate(L4, number)
        waiting = alone.outcome(delivery, L4, "expand", "waiting")
        assert waiting["attempt"] == 1 and waiting["error"]
        node.process.signal(signal.SIGCONT)
        assert alone.outcome(delivery, L4, "rerun_all", timeout=60)["run_id"] == str(run)
        assert alone.outcome(delivery, L4, "expand")["attempt"] == 1
        assert not alone.bench.dispatches(delivery)

    def test_a_dispatcher_killed_between_two_pages_expands_again_at_once(self, own):
        buttons = Buttons(own().start().ready())
        bench, a, b = buttons.bench, next(runs), next(runs)
        suite = buttons.checks((f"crcr/{L3}/CI/last", f"{b}:1"),
                               *[(f"crcr/{L4}/CI/{n}", f"{a}:1") for n in range(120)])
        bench.script({"path": f"*/check-suites/{suite}/*", "skip": 1, "count": 1, "hang": True})
        delivery = buttons.press_all(suite)
        wait_for("the second page to be asked for", lambda: len(buttons.listings(suite)) == 2)
        bench.relay.parts["dispatcher"].kill()
        assert not bench.outcomes(delivery)
        bench.start().ready()
        buttons.outcome(delivery, L4, "rerun_all")
        buttons.outcome(delivery, L3, "rerun_all")
        expand = buttons.outcome(delivery, UPSTREAM, "expand")
        assert not expand["maybe_duplicate"] and expand["attempt"] == 1
        assert sorted(one for one in buttons.reruns() if one[1] in (a, b)) == sorted([
            (L4, a, "rerun"), (L3, b, "rerun")])

    def test_what_a_crash_left_stored_but_not_done_is_expanded_again_and_called_once(self, buttons):
        run, redis = next(runs), buttons.bench.redis
        suite = buttons.checks((f"crcr/{L3}/CI/1", f"{run}:1"))
        delivery = buttons.press_all(suite)
        buttons.outcome(delivery, L3, "rerun_all")
        claim = f"crcr:claim:{delivery}|{UPSTREAM}|expand|{suite}"
        wait_for("its end", lambda: redis.hget(claim, "state") == "done")
        redis.hset(claim, mapping={"state": "sending", "owner": "dead", "until_ms": "1"})
        buttons.press_all(suite, delivery=delivery)
        buttons.outcome(delivery, L3, "rerun_all", "duplicate")
        assert len(buttons.listings(suite)) == 2
        assert len([one for one in buttons.reruns() if one[1] == run]) == 1
