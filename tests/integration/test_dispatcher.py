"""crcr-dispatcher against real Kafka, real Redis and the simulated GitHub: behaviour.md, routing and sending,
and design.md, delivery rules. Events are written into the topic as ingest writes them."""
import base64
import json
import pathlib
import subprocess
import sys
import time
import uuid

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib.kafka import Kafka, read_topic, write  # noqa: E402
from lib.processes import BIN, wait_for  # noqa: E402
from lib.redis_server import RedisServer  # noqa: E402
from lib.relay import ALLOWLIST, Relay, http, payload, pull_request  # noqa: E402
from openapi.validate import problems  # noqa: E402

REPOS = {"L1": "org-one/backend-one", "L2": "org-two/backend-two",
         "L3": "org-three/backend-three", "L4": "org-four/backend-four"}
SHA = "c" * 40


@pytest.fixture(scope="module")
def kafka(tmp_path_factory):
    node = Kafka(tmp_path_factory.mktemp("kafka")).start()
    yield node
    node.stop()


@pytest.fixture(scope="module")
def redis_node(tmp_path_factory):
    node = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield node
    node.stop()


class Bench:
    """A dispatcher and a GitHub; what is written, and what came of it."""

    def __init__(self, folder, kafka, redis_node, **options):
        self.kafka, self.redis = kafka, redis_node.client()
        self.relay = Relay(folder, kafka.brokers, redis_node.endpoint, **options)
        self.relay.start_github()
        # Nobody calls back here, and nothing but our calls is in GitHub's record.
        http("POST", self.relay.url("github", "/_sim/downstreams"),
             json.dumps({"repo": "*", "reports": False, "run_ms": 1}).encode())
        self.numbers = iter(range(1, 1000))

    def start(self, instance="dispatcher", **environment):
        self.relay.start("dispatcher", instance, **environment)
        return self

    def ready(self, instance="dispatcher"):
        self.relay.wait_ready(instance)
        return self

    def close(self):
        self.relay.stop()
        record = self.relay.folder / "github-requests.jsonl"
        wrong = []
        for line in record.read_text().splitlines():
            request = json.loads(line)
            wrong += [f"{request['method']} {request['path']}: {problem}" for problem in problems(request)]
        assert not wrong, "\n".join(wrong[:20])

    # ---- what goes in ----
    def event(self, body, kind="pull_request", delivery=None, key=None, received_ms=None, **headers):
        delivery = delivery or str(uuid.uuid4())
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        number = body.get("number", 0) if isinstance(body, dict) else 0
        known = {"event": kind, "action": body.get("action", "") if isinstance(body, dict) else "",
                 "delivery": delivery, "pr": str(number), "head_sha": SHA,
                 "received_ms": str(received_ms or int(time.time() * 1000)), "source": "webhook"}
        known.update(headers)
        write(self.kafka.brokers, self.relay.topic("events"), key or f"pytorch/pytorch#{number}", raw,
              {name: value for name, value in known.items() if value is not None})
        return delivery

    def pull_request(self, number=None, delivery=None, **changes):
        return self.event(pull_request(number=number or next(self.numbers), **changes), delivery=delivery)

    # ---- what came out ----
    def topic(self, name):
        return read_topic(self.kafka.brokers, self.relay.topic(name))

    def outcomes(self, delivery, repo=None):
        found = [json.loads(record.value) for record in self.topic("dispatches")
                 if record.headers["delivery"] == delivery]
        return [outcome for outcome in found if repo in (None, outcome["repo"])]

    def wait_outcomes(self, delivery, count, repo=None, timeout=30):
        def there():
            found = self.outcomes(delivery, repo)
            return found if len(found) >= count else None
        return wait_for(f"{count} outcomes of {delivery}", there, timeout)

    def wait_outcome(self, delivery, repo, kind, timeout=30):
        def there():
            return [one for one in self.outcomes(delivery, repo) if one["outcome"] == kind]
        return wait_for(f"{repo}: {kind}", there, timeout)[0]

    def dispatches(self, delivery=None, repo=None):
        """What GitHub took, each with its repo, from its record of requests."""
        taken = []
        for one in self.relay.requests():
            if one["path"].endswith("/dispatches") and (one["status"] == 204 or one["fault"] == "reset"):
                name = one["path"][len("/repos/"):-len("/dispatches")]
                if repo in (None, name) and \
                        delivery in (None, one["body"]["client_payload"]["delivery_id"]):
                    taken.append(dict(one["body"], repo=name))
        return taken

    def calls(self, repo, ending="/dispatches"):
        """Every request for it, answered or not."""
        return [one for one in self.relay.requests()
                if one["path"] == f"/repos/{repo}{ending}"]

    def script(self, *rules):
        for rule in rules:
            self.relay.script(rule)

    def clear_script(self):
        self.relay.script({"clear": True})

    def metric(self, name, instance="dispatcher", **labels):
        return self.relay.metric(instance, name, **labels)


@pytest.fixture(scope="module")
def shared(kafka, redis_node, tmp_path_factory):
    bench = Bench(tmp_path_factory.mktemp("shared"), kafka, redis_node).start().ready()
    yield bench
    bench.close()


@pytest.fixture
def bench(shared):
    yield shared
    shared.clear_script()


@pytest.fixture
def own(kafka, redis_node, tmp_path):
    """A bench that the test starts, and breaks, itself."""
    made = []

    def make(**options):
        made.append(Bench(tmp_path / str(len(made)), kafka, redis_node, **options))
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == "call" and report.failed:
        for value in item.funcargs.values():
            if isinstance(value, Bench):
                report.sections.append(("relay", value.relay.logs()))


class TestEachTier:
    def test_gets_the_event_once_with_the_payload_as_it_came(self, bench):
        body = pull_request(number=next(bench.numbers))
        delivery = bench.event(body)
        bench.wait_outcomes(delivery, 4)
        sent = bench.dispatches(delivery)
        assert sorted(one["repo"] for one in sent) == sorted(REPOS.values())
        for one in sent:
            assert one["event_type"] == "pull_request"
            assert one["client_payload"]["payload"] == body
            assert set(one["client_payload"]) == {"event_type", "delivery_id", "payload",
                                                  "callback_token"}

    def test_outcome_says_when_it_was_sent_and_to_whom(self, bench):
        before = time.time()
        delivery = bench.pull_request()
        outcomes = bench.wait_outcomes(delivery, 4)
        assert sorted(one["tier"] for one in outcomes) == ["L1", "L2", "L3", "L4"]
        for one in outcomes:
            assert REPOS[one["tier"]] == one["repo"]
            assert (one["outcome"], one["http_status"], one["attempt"]) == ("dispatched", 204, 1)
            assert one["latency_ms"] <= (time.time() - before) * 1000 + 1
            assert one["head_sha"] == SHA and not one["maybe_duplicate"]

    def test_callback_token_names_delivery_repo_commit_and_the_moment_of_the_claim(self, bench):
        delivery = bench.pull_request()
        outcomes = {one["repo"]: one for one in bench.wait_outcomes(delivery, 4)}
        for one in bench.dispatches(delivery):
            part = one["client_payload"]["callback_token"].split(".")[1]
            claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
            assert (claims["delivery_id"], claims["repo"]) == (delivery, one["repo"])
            assert claims["head_sha"] == SHA
            claim = bench.redis.hgetall(f"crcr:claim:{delivery}|{one['repo']}|dispatch|")
            assert claim["state"] == "done"
            assert int(claim["dispatched_ms"]) == claims["dispatched_at"]
            assert outcomes[one["repo"]]["at"].endswith(f".{claims['dispatched_at'] % 1000:03d}Z")

    def test_a_push_and_a_closed_pull_request_are_dispatched_like_the_rest(self, bench):
        push = payload("push/1.json")
        push["repository"]["full_name"] = "pytorch/pytorch"
        push["deleted"] = False
        pushed = bench.event(push, "push", key="pytorch/pytorch@refs/heads/main")
        closed = bench.pull_request(action="closed")
        assert len(bench.wait_outcomes(pushed, 4)) == len(bench.wait_outcomes(closed, 4)) == 4
        assert {one["event_type"] for one in bench.dispatches(pushed)} == {"push"}

    def test_labels_are_never_dispatched(self, bench):
        label = bench.pull_request(action="labeled")
        after = bench.pull_request()
        bench.wait_outcomes(after, 4)
        assert not bench.dispatches(label) and not bench.outcomes(label)


class TestOneDispatch:
    def test_of_a_delivery_that_comes_again_and_the_repeat_says_so(self, bench):
        number = next(bench.numbers)
        delivery = bench.pull_request(number)
        bench.wait_outcomes(delivery, 4)
        assert bench.pull_request(number, delivery) == delivery
        outcomes = bench.wait_outcomes(delivery, 8)
        assert len(bench.dispatches(delivery)) == 4
        kinds = sorted(one["outcome"] for one in outcomes)
        assert kinds == ["dispatched"] * 4 + ["duplicate"] * 4

    def test_costs_one_call_once_the_tokens_are_cached(self, bench):
        bench.wait_outcomes(bench.pull_request(), 4)
        before = len(bench.relay.requests())
        for _ in range(5):
            bench.wait_outcomes(bench.pull_request(), 4)
        calls = [one["path"] for one in bench.relay.requests()[before:] if "/contents/" not in one["path"]]
        assert len(calls) == 20 and all(path.endswith("/dispatches") for path in calls)


class TestOrder:
    def test_of_one_pull_request_and_downstream_is_kept_and_one_call_is_out_at_a_time(self, bench):
        repo, number = REPOS["L2"], next(bench.numbers)
        bench.script({"path": "*/dispatches", "repo": repo, "delay_ms": 400})
        deliveries = [bench.pull_request(number, updated_at=f"2026-11-21T03:20:{second:02d}Z")
                      for second in range(4)]
        bench.wait_outcome(deliveries[-1], repo, "dispatched")
        calls = [one for one in bench.calls(repo) if one["delay_ms"] == 400]
        assert [one["body"]["client_payload"]["delivery_id"] for one in calls] == deliveries
        starts = [one["at_ms"] for one in calls]
        assert all(later - earlier >= 390 for earlier, later in zip(starts, starts[1:]))

    def test_different_pull_requests_do_not_wait_for_each_other(self, bench):
        repo = REPOS["L2"]
        bench.script({"path": "*/dispatches", "repo": repo, "delay_ms": 1500})
        begin = time.monotonic()
        deliveries = [bench.pull_request() for _ in range(6)]
        for delivery in deliveries:
            bench.wait_outcome(delivery, repo, "dispatched")
        assert time.monotonic() - begin < 6 * 1.5

    def test_an_older_state_of_a_pull_request_is_superseded(self, bench):
        number = next(bench.numbers)
        newer = bench.pull_request(number, updated_at="2026-11-21T04:00:00Z")
        bench.wait_outcomes(newer, 4)
        older = bench.pull_request(number, updated_at="2026-11-21T03:59:59Z")
        outcomes = bench.wait_outcomes(older, 4)
        assert {one["outcome"] for one in outcomes} == {"superseded"}
        assert not bench.dispatches(older)

    def test_a_push_is_never_superseded(self, bench):
        push = payload("push/1.json")
        push["repository"]["full_name"], push["deleted"] = "pytorch/pytorch", False
        for _ in range(2):
            delivery = bench.event(push, "push", key="pytorch/pytorch@refs/heads/topic")
            assert {one["outcome"] for one in bench.wait_outcomes(delivery, 4)} == {"dispatched"}


class TestAnswers:
    def test_5xx_is_unknown_and_is_sent_again_as_perhaps_a_duplicate(self, bench):
        repo = REPOS["L4"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "status": 502})
        delivery = bench.pull_request()
        sent = bench.wait_outcome(delivery, repo, "dispatched", timeout=40)
        unknown = bench.wait_outcome(delivery, repo, "unknown")
        assert unknown["http_status"] == 502 and unknown["attempt"] == 1
        assert sent["attempt"] == 2 and sent["maybe_duplicate"]
        assert bench.metric("crcr_dispatches_maybe_duplicate_total", tier="L4") >= 1
        assert len(bench.outcomes(delivery)) == 5  # nobody else waited

    def test_a_reset_after_it_was_taken_is_unknown_too(self, bench):
        repo = REPOS["L1"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "reset": True, "effect": True})
        delivery = bench.pull_request()
        sent = bench.wait_outcome(delivery, repo, "dispatched", timeout=40)
        assert bench.wait_outcome(delivery, repo, "unknown") and sent["maybe_duplicate"]
        assert len(bench.dispatches(delivery, repo)) == 2  # what "unknown" means

    @pytest.mark.parametrize("status", [403, 404, 410, 422])
    def test_a_refusal_goes_to_the_dlq_with_the_reason(self, bench, status):
        repo = REPOS["L2"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "status": status,
                      "body": {"message": "said no"}})
        delivery = bench.pull_request()
        failed = bench.wait_outcome(delivery, repo, "failed")
        assert failed["http_status"] == status and "said no" in failed["error"]
        buried = [one for one in bench.topic("dlq") if one.headers.get("delivery") == delivery]
        assert [one.headers["class"] for one in buried] == ["refused"]
        assert buried[0].headers["source_topic"] == bench.relay.topic("dispatch.l2")
        assert "said no" in buried[0].headers["error"]
        assert not bench.redis.exists(f"crcr:claim:{delivery}|{repo}|dispatch|")

    def test_retry_after_is_obeyed_and_costs_no_attempt(self, bench):
        repo = REPOS["L3"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "status": 429, "retry_after": 3})
        delivery = bench.pull_request()
        sent = bench.wait_outcome(delivery, repo, "dispatched")
        assert sent["attempt"] == 1 and not sent["maybe_duplicate"]
        first, second = [one["at_ms"] for one in bench.calls(repo)
                         if one["body"]["client_payload"]["delivery_id"] == delivery]
        assert second - first >= 3000
        assert bench.wait_outcome(delivery, repo, "waiting")["http_status"] == 429

    def test_a_longer_wait_is_parked_and_comes_back(self, bench):
        repo = REPOS["L3"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "status": 403, "retry_after": 12,
                      "body": {"message": "You have exceeded a secondary rate limit"}})
        delivery = bench.pull_request()
        sent = bench.wait_outcome(delivery, repo, "dispatched", timeout=45)
        parked = [one for one in bench.topic("delay.1m") if one.headers.get("delivery") == delivery]
        assert [one.headers["to_topic"] for one in parked] == [bench.relay.topic("dispatch.l3")]
        assert parked[0].headers["attempt"] == "1" and sent["attempt"] == 1
        first, second = [one["at_ms"] for one in bench.calls(repo)
                         if one["body"]["client_payload"]["delivery_id"] == delivery]
        assert second - first >= 12000

    def test_a_limit_holds_back_the_whole_installation(self, bench):
        repo = REPOS["L1"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "status": 429, "retry_after": 4})
        first = bench.pull_request()
        bench.wait_outcome(first, repo, "waiting")
        second = bench.pull_request()
        bench.wait_outcome(second, repo, "waiting")
        begin = [one["at_ms"] for one in bench.calls(repo)][-1]
        for delivery in (first, second):
            bench.wait_outcome(delivery, repo, "dispatched")
        assert all(one["at_ms"] - begin >= 4000 for one in bench.calls(repo) if one["at_ms"] > begin)

    def test_a_token_that_is_refused_is_fetched_anew_once(self, bench):
        repo = REPOS["L4"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "status": 401})
        delivery = bench.pull_request()
        assert bench.wait_outcome(delivery, repo, "dispatched")["attempt"] == 1
        assert len(bench.outcomes(delivery, repo)) == 1

    def test_a_redirect_to_the_same_origin_is_followed_once(self, bench):
        repo = REPOS["L4"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "status": 307,
                      "headers": {"Location": f"/repos/{repo}/dispatches"}})
        delivery = bench.pull_request()
        assert bench.wait_outcome(delivery, repo, "dispatched")["attempt"] == 1
        assert len(bench.dispatches(delivery, repo)) == 1

    def test_a_redirect_elsewhere_is_refused_and_sees_no_token(self, bench):
        repo = REPOS["L4"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "status": 307,
                      "headers": {"Location": "http://127.0.0.1:1/repos/x/y/dispatches"}})
        delivery = bench.pull_request()
        assert bench.wait_outcome(delivery, repo, "failed")["http_status"] == 307


class TestRerun:
    def check_run(self, bench, name, external_id, app_id=12345):
        body = {"action": "rerequested", "repository": {"full_name": "pytorch/pytorch"},
                "check_run": {"id": 7, "name": name, "head_sha": SHA, "external_id": external_id,
                              "app": {"id": app_id}, "check_suite": {"id": 8}}}
        return bench.event(body, "check_run", key=f"pytorch/pytorch@{SHA}", pr="0")

    def test_of_a_check_run_of_ours_runs_the_failed_jobs_again(self, bench):
        repo = REPOS["L3"]
        http("POST", bench.relay.url("github", "/_sim/downstreams"),
             json.dumps({"repo": repo, "reports": False, "run_ms": 1, "conclusion": "failure"}).encode())
        bench.wait_outcomes(bench.pull_request(), 4)
        run = wait_for("a failed run", lambda: [one for one in bench.relay.state()["runs"]
                                                if one["repo"] == repo and one["conclusion"] == "failure"])
        delivery = self.check_run(bench, f"crcr/{repo}/CI/test", f"{run[0]['id']}:1")
        outcome = bench.wait_outcomes(delivery, 1)[0]
        assert (outcome["kind"], outcome["outcome"], outcome["http_status"]) == \
            ("rerun_failed", "dispatched", 201)
        assert bench.calls(repo, f"/actions/runs/{run[0]['id']}/rerun-failed-jobs")

    def test_already_running_is_what_was_wanted(self, bench):
        repo = REPOS["L4"]
        bench.script({"path": "*/rerun-failed-jobs", "status": 403,
                      "body": {"message": "This workflow is already running"}})
        delivery = self.check_run(bench, f"crcr/{repo}/CI/test", "99:1")
        assert bench.wait_outcomes(delivery, 1)[0]["outcome"] == "dispatched"

    def test_below_l3_is_skipped_with_the_reason(self, bench):
        delivery = self.check_run(bench, f"crcr/{REPOS['L2']}/CI/test", "99:1")
        outcome = bench.wait_outcomes(delivery, 1)[0]
        assert outcome["outcome"] == "skipped" and "level" in outcome["error"]

    def test_of_another_app_is_not_ours(self, bench):
        delivery = self.check_run(bench, f"crcr/{REPOS['L3']}/CI/test", "99:1", app_id=1)
        bench.wait_outcomes(bench.pull_request(), 4)
        assert not bench.outcomes(delivery)


class TestPoison:
    @pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"a":"\xff"}', b"[" * 100000],
                             ids=["empty", "cut", "array", "utf8", "deep"])
    def test_goes_to_the_dlq_and_holds_up_nobody(self, bench, body):
        number = next(bench.numbers)
        poison = bench.event(body, key=f"pytorch/pytorch#{number}")
        good = bench.pull_request(number)
        bench.wait_outcomes(good, 4)
        buried = [one for one in bench.topic("dlq") if one.headers.get("delivery") == poison]
        assert [one.headers["class"] for one in buried] == ["poison"]
        assert buried[0].value == body

    def test_a_foreign_record_in_a_dispatch_topic_is_poison(self, bench):
        write(bench.kafka.brokers, bench.relay.topic("dispatch.l1"), "who|knows", b"{}", {"hello": "x"})
        wait_for("the foreign record in the dlq", lambda: [
            one for one in bench.topic("dlq") if one.headers.get("hello") == "x"
            and one.headers["class"] == "poison"])

    def test_an_event_past_the_maximum_age_is_skipped_and_says_so(self, bench):
        body = pull_request(number=next(bench.numbers))
        delivery = bench.event(body, received_ms=int(time.time() * 1000) - 4 * 86400000)
        outcomes = bench.wait_outcomes(delivery, 4)
        assert {one["outcome"] for one in outcomes} == {"skipped"}
        assert all("CRCR_MAX_EVENT_AGE" in one["error"] for one in outcomes)

    def test_a_large_payload_is_fitted_and_says_what_went(self, bench):
        body = pull_request(number=next(bench.numbers))
        body["pull_request"]["body"] = "x" * 3_000_000
        delivery = bench.event(body)
        bench.wait_outcomes(delivery, 4)
        for one in bench.dispatches(delivery):
            assert len(json.dumps(one["client_payload"])) < 65536
            assert one["client_payload"]["payload_trimmed"]
            assert one["client_payload"]["payload"]["pull_request"]["head"]["sha"]


class TestAllowlist:
    def test_first_start_without_a_file_is_not_ready_and_loses_nothing(self, own):
        bench = own()
        bench.relay.allowlist_file.unlink()
        bench.start()
        delivery = bench.pull_request()
        wait_for("the reason", lambda: b"allowlist" in
                 http("GET", bench.relay.url("admin_dispatcher", "/readyz"))[1].lower())
        assert http("GET", bench.relay.url("admin_dispatcher", "/readyz"))[0] == 503
        bench.relay.allowlist_file.write_text(ALLOWLIST)
        assert len(bench.wait_outcomes(delivery, 4, timeout=60)) == 4

    def test_a_bad_file_keeps_the_last_good_one_also_over_a_restart(self, own):
        bench = own().start().ready()
        bench.wait_outcomes(bench.pull_request(), 4)
        bench.relay.allowlist_file.write_text("L1:\n  - @nobody\n")
        wait_for("the refusal", lambda: "allowlist.yml:2:5" in bench.relay.parts["dispatcher"].text())
        assert bench.metric("crcr_allowlist_valid", file="allowlist") == 0
        assert "allowlist.yml:2:5" in bench.redis.hget("crcr:allowlist", "error")
        bench.wait_outcomes(bench.pull_request(), 4)
        assert bench.relay.parts["dispatcher"].stop() == 0
        bench.start().ready()
        bench.wait_outcomes(bench.pull_request(), 4)

    def test_a_new_version_is_published_and_a_dropped_repo_is_skipped(self, own):
        bench = own().start().ready()
        bench.wait_outcomes(bench.pull_request(), 4)
        bench.relay.allowlist_file.write_text(ALLOWLIST.replace("  - org-two/backend-two\n",
                                                                "  - org-two/another\n"))
        wait_for("two versions", lambda: len(bench.topic("allowlist")) == 2)
        delivery = bench.pull_request()
        assert {one["repo"] for one in bench.wait_outcomes(delivery, 4)} == \
            {"org-two/another", REPOS["L1"], REPOS["L3"], REPOS["L4"]}

    def test_a_version_that_loses_most_repos_is_held_for_one_ttl(self, own):
        bench = own(environment={"ALLOWLIST_TTL_SECONDS": "4"}).start().ready()
        bench.relay.allowlist_file.write_text("L1: [org-one/backend-one]\n")
        wait_for("it to be held", lambda: bench.metric("crcr_allowlist_held", file="allowlist") == 1)
        held = time.monotonic()
        bench.wait_outcomes(bench.pull_request(), 4)
        wait_for("it in force", lambda: len(bench.topic("allowlist")) == 2)
        assert time.monotonic() - held >= 2
        delivery = bench.pull_request()
        bench.wait_outcome(delivery, REPOS["L1"], "dispatched")
        assert len(bench.outcomes(delivery)) == 1

    def test_a_push_that_touches_the_file_has_it_fetched_at_once(self, own):
        bench = own(environment={"ALLOWLIST_TTL_SECONDS": "3600"}).start().ready()
        bench.relay.allowlist_file.write_text(ALLOWLIST + "  - org-four/new: dave\n")
        push = payload("push/1.json")
        push.update(ref="refs/heads/main", deleted=False)
        push["repository"].update(full_name="pytorch/pytorch", default_branch="main")
        push["commits"] = [{"id": SHA, "added": [], "removed": [], "modified": [".github/allowlist.yml"]}]
        bench.event(push, "push", key="pytorch/pytorch@refs/heads/main")
        wait_for("the new version", lambda: len(bench.topic("allowlist")) == 2, 15)

    def test_an_unchanged_file_is_asked_for_with_its_etag(self, own):
        bench = own(environment={"ALLOWLIST_TTL_SECONDS": "1"}).start().ready()
        wait_for("a 304", lambda: [one for one in bench.relay.requests()
                                   if "/contents/" in one["path"] and one["status"] == 304])
        assert len(bench.topic("allowlist")) == 1


class TestNothingIsLost:
    def test_over_a_restart_in_the_middle(self, own):
        bench = own().start().ready()
        bench.script({"path": "*/dispatches", "delay_ms": 100})
        deliveries = [bench.pull_request() for _ in range(40)]
        wait_for("some dispatches", lambda: len(bench.dispatches()) >= 20)
        assert bench.relay.parts["dispatcher"].stop() == 0
        bench.start()
        wait_for("all of them", lambda: len(bench.dispatches()) >= 160, 60)
        bench.ready()
        for delivery in deliveries:
            assert len(bench.dispatches(delivery)) == 4
        seen = {}
        for record in bench.topic("dispatches"):
            seen.setdefault(record.key, []).append(json.loads(record.value)["outcome"])
        assert len(seen) == 160 and all("dispatched" in outcomes for outcomes in seen.values())

    def test_over_kill_9_and_each_call_that_may_be_a_second_one_says_so(self, own):
        bench = own().start().ready()
        bench.wait_outcomes(bench.pull_request(), 4)
        bench.script({"path": "*/dispatches", "delay_ms": 150})
        deliveries = [bench.pull_request() for _ in range(20)]
        wait_for("some dispatches", lambda: len(bench.dispatches()) >= 20)
        bench.relay.parts["dispatcher"].kill()
        bench.start("second")
        # Claims of the dead owner are honoured until they run out (60 s).
        wait_for("all of them", lambda: all(len({one["repo"] for one in bench.dispatches(delivery)}) == 4
                                            for delivery in deliveries), 100)
        marked = {}
        for delivery in deliveries:
            for outcome in bench.wait_outcomes(delivery, 4):
                if outcome["maybe_duplicate"]:
                    marked.setdefault((delivery, outcome["repo"]), outcome)
            for repo in REPOS.values():
                twice = len(bench.dispatches(delivery, repo)) > 1
                assert not twice or (delivery, repo) in marked

    def test_while_redis_is_away_dispatch_goes_on_without_claims(self, own, tmp_path):
        bench = own(environment={"REDIS_ENDPOINT": "127.0.0.1:1"}).start().ready()
        delivery = bench.pull_request()
        assert {one["outcome"] for one in bench.wait_outcomes(delivery, 4)} == {"dispatched"}
        assert bench.metric("crcr_claims_total", verdict="none") >= 4

    def test_two_replicas_share_the_work_and_dispatch_once(self, own):
        bench = own().start().start("second").ready().ready("second")
        deliveries = [bench.pull_request() for _ in range(30)]
        for delivery in deliveries:
            bench.wait_outcomes(delivery, 4)
        assert len(bench.dispatches()) == 120


class TestCheckConfig:
    def check(self, bench, **environment):
        values = bench.relay.environment("admin_dispatcher")
        values.update(environment)
        return subprocess.run([BIN / "crcr-dispatcher", "--check-config"], env=values,
                              capture_output=True, text=True, timeout=30)

    def test_accepts_what_the_dispatcher_runs_with(self, bench):
        done = self.check(bench)
        assert done.returncode == 0, done.stderr

    @pytest.mark.parametrize("name, value", [
        ("ALLOWLIST_URL", "https://github.com/pytorch/pytorch"),
        ("CRCR_CALLBACK_TOKEN_KEY", "no-colon"),
        ("CRCR_TOPIC_PREFIX", "a b"),
    ])
    def test_names_what_is_wrong(self, bench, name, value):
        done = self.check(bench, **{name: value})
        assert done.returncode == 2 and name in done.stderr

    def test_reads_an_allowlist_that_is_a_file(self, bench, tmp_path):
        file = tmp_path / "list.yml"
        file.write_text("L1: [org/a, org/a]\n")
        done = self.check(bench, ALLOWLIST_URL=str(file))
        assert done.returncode == 2 and "list.yml:1:" in done.stderr

    def test_refuses_a_private_key_that_is_none(self, bench, tmp_path):
        file = tmp_path / "key.pem"
        file.write_text("not a key")
        done = self.check(bench, GITHUB_APP_PRIVATE_KEY_FILE=str(file))
        assert done.returncode == 2 and "GITHUB_APP_PRIVATE_KEY" in done.stderr
