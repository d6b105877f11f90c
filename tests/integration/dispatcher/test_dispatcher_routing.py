"""Where events go: routing, one dispatch, and order."""
import base64
import json
import re
import subprocess
import time
import uuid

import pytest

from dispatcher_env import REPOS, SHA
from lib.kafka import configure_topic, write, write_all
from lib.processes import BIN, ROOT, wait_for
from lib.relay import http, payload, pull_request


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

    def test_callback_token_names_delivery_repo_commit_and_the_moment_of_the_call(self, bench):
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
        trace = json.loads(bench.relay.ctl("trace", "--json", delivery).stdout)
        assert {one["repo"]: one["state"] for one in trace["downstreams"]} == dict.fromkeys(REPOS.values(), "dispatched")
        assert [step["outcome"] for step in trace["steps"][-4:]] == ["duplicate"] * 4

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
        actions = ("opened", "synchronize", "closed", "reopened")  # none makes another needless
        deliveries = [bench.pull_request(number, action=action, updated_at=f"2026-11-21T03:20:{second:02d}Z")
                      for second, action in enumerate(actions)]
        bench.wait_outcome(deliveries[-1], repo, "dispatched")
        calls = [one for one in bench.calls(repo) if one["delay_ms"] == 400]
        assert [one["body"]["client_payload"]["delivery_id"] for one in calls] == deliveries
        starts = [one["at_ms"] for one in calls]
        assert all(later - earlier >= 390 for earlier, later in zip(starts, starts[1:]))

    def test_what_repeats_itself_while_it_waits_is_sent_once(self, bench):
        """Closed and opened again and again while a call is out: of each action the last goes out."""
        repo, number = REPOS["L2"], next(bench.numbers)
        bench.script({"path": "*/dispatches", "repo": repo, "delay_ms": 8000, "count": 1})
        first = bench.pull_request(number, updated_at="2026-11-21T03:20:00Z")
        wait_for("its call", lambda: [one for one in bench.calls(repo) if one["delay_ms"] == 8000])
        waiting = bench.all_at_once(pull_request(number=number, action=action, updated_at=f"2026-11-21T03:20:{second + 1:02d}Z")
                                    for second, action in enumerate(["closed", "reopened"] * 4))
        wait_for("all to wait", lambda: bench.metric("crcr_tasks_in_hand", tier="L2") >= 9, 8, every=0.1)
        ends = [bench.wait_outcomes(delivery, 4) for delivery in (first, *waiting)]
        of_repo = [one["outcome"] for end in ends for one in end if one["repo"] == repo]
        assert of_repo == ["dispatched"] + ["superseded"] * 6 + ["dispatched"] * 2

    def test_a_delivery_is_not_overtaken_by_its_own_repeat(self, bench):
        """GitHub may deliver one twice, and redeliver asks for it: the repeats say again what came of the call."""
        repo, number = REPOS["L2"], next(bench.numbers)
        bench.script({"path": "*/dispatches", "repo": repo, "delay_ms": 3000, "count": 1})
        bench.pull_request(number, updated_at="2026-11-21T03:20:00Z")
        wait_for("its call", lambda: [one for one in bench.calls(repo) if one["delay_ms"] == 3000])
        for _ in range(3):
            bench.pull_request(number, delivery=f"again-{number}", updated_at="2026-11-21T03:20:01Z")
        ends = bench.wait_outcomes(f"again-{number}", 3, repo)
        assert {one["outcome"] for one in ends} <= {"dispatched", "duplicate"}
        assert len(bench.dispatches(f"again-{number}", repo)) == 1

    def test_different_pull_requests_do_not_wait_for_each_other(self, bench):
        repo = REPOS["L2"]
        bench.script({"path": "*/dispatches", "repo": repo, "delay_ms": 1500})
        deliveries = bench.pull_requests(6)
        for delivery in deliveries:
            bench.wait_outcome(delivery, repo, "dispatched")
        starts = [one["at_ms"] for one in bench.calls(repo) if one["body"]["client_payload"]["delivery_id"] in deliveries]
        assert len(starts) == 6 and max(starts) - min(starts) < 5 * 1500

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

    # The broker measures what it is sent: what others compress may be larger than what we can write.
    @pytest.mark.parametrize("large", ["value", "key", "headers"])
    def test_too_large_for_us_to_write_goes_to_the_dlq_in_part_and_holds_up_nobody(self, bench, large):
        number, mark = next(bench.numbers), uuid.uuid4().hex
        key, zeros = f"pytorch/pytorch#{number}", bytes(30_000_000)
        headers = {"mark": mark, "size": zeros if large == "headers" else "x", **{f"foreign{i}": "x" for i in range(60)}}
        write(bench.kafka.brokers, bench.relay.topic("events"), zeros if large == "key" else key,
              zeros if large == "value" else b"{}", headers, compression="gzip")
        bench.wait_outcomes(bench.pull_request(number), 4)
        buried, = wait_for("it in the dlq", lambda: [one for one in bench.topic("dlq") if
                                                     one.headers.get("mark") == mark])
        assert (buried.headers["class"], buried.headers["source_topic"]) == ("poison", bench.relay.topic("events"))
        assert buried.headers["error"] and "parked_ms" in buried.headers
        assert "30000" in buried.headers["cut"] and len(buried.key) + len(buried.value) < 100_000

    def test_a_foreign_record_in_a_dispatch_topic_is_poison(self, bench):
        write(bench.kafka.brokers, bench.relay.topic("dispatch.l1"), "who|knows", b"{}", {"hello": "x"})
        wait_for("the foreign record in the dlq", lambda: [
            one for one in bench.topic("dlq") if one.headers.get("hello") == "x"
            and one.headers["class"] == "poison"])

    def test_what_cannot_be_fitted_goes_to_the_dlq_and_counts_once_as_refused(self, bench):
        def routed():
            return {result: bench.metric("crcr_events_routed_total", event="pull_request", result=result) or 0
                    for result in ("refused", "routed", "skipped")}
        before = routed()
        delivery = bench.event(pull_request(number=next(bench.numbers), labels=["x" * 70_000]))
        assert {one["outcome"] for one in bench.wait_outcomes(delivery, 4)} == {"failed"}
        assert routed() == {**before, "refused": before["refused"] + 1}
        buried, = [one for one in bench.topic("dlq") if one.headers.get("delivery") == delivery]
        assert buried.headers["class"] == "refused" and "must stay" in buried.headers["error"]

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

    def test_reads_the_examples_of_the_page_about_both_files(self, bench, tmp_path):
        page = (ROOT / "deploy" / "ALLOWLIST.md").read_text()
        allowlist, providers, _ = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
        (tmp_path / "allowlist.yml").write_text(allowlist)
        (tmp_path / "providers.yml").write_text(providers)
        files = {"ALLOWLIST_URL": str(tmp_path / "allowlist.yml"), "CI_PROVIDERS_URL": str(tmp_path / "providers.yml")}
        done = self.check(bench, **files)
        assert done.returncode == 0, done.stderr
        (tmp_path / "providers.yml").write_text(providers.replace("repo: org-four/backend-four", "repo: backend-four"))
        done = self.check(bench, **files)
        assert done.returncode == 2 and "providers.yml:7:15: " in done.stderr

    def test_refuses_a_private_key_that_is_none(self, bench, tmp_path):
        file = tmp_path / "key.pem"
        file.write_text("not a key")
        done = self.check(bench, GITHUB_APP_PRIVATE_KEY_FILE=str(file))
        assert done.returncode == 2 and "GITHUB_APP_PRIVATE_KEY" in done.stderr


class TestDelay:
    def test_what_it_cannot_bring_back_goes_to_the_dlq_and_holds_up_nothing(self, bench):
        good = {"to_topic": bench.relay.topic("dispatch.l1"), "not_before_ms": "1", "mark": uuid.uuid4().hex}
        wrong = [dict(good, to_topic="elsewhere"), dict(good, not_before_ms="soon"),
                 dict(good, not_before_ms=str(-2**63)),
                 dict(good, not_before_ms=str(int(time.time() * 1000) + 48 * 3600_000))]
        more_than_in_hand = [*wrong, *[wrong[-1]] * 270, good]
        write_all(bench.kafka.brokers, bench.relay.topic("delay.1m"),
                  [("same|key", b"{}", headers, 0) for headers in more_than_in_hand])

        def of_this(topic):
            return [one for one in bench.topic(topic) if one.headers.get("mark") == good["mark"]]
        # The last is no task, but it comes back.
        wait_for("it to come back", lambda: of_this("dispatch.l1"))
        assert {one.headers["class"] for one in of_this("dlq")} == {"poison"}
        wait_for("the others", lambda: len(of_this("dlq")) >= 273)

    def test_what_is_too_large_to_be_put_back_goes_to_the_dlq_in_part(self, bench):
        headers = {"to_topic": bench.relay.topic("dispatch.l1"), "not_before_ms": "1", "mark": uuid.uuid4().hex}
        write(bench.kafka.brokers, bench.relay.topic("delay.10s"), "a|key", bytes(30_000_000), headers, compression="gzip")
        buried, = wait_for("it in the dlq", lambda: [one for one in bench.topic("dlq") if
                                                     one.headers.get("mark") == headers["mark"]])
        assert buried.headers["error"] == "too large to be put back" and "a value of 30000000" in buried.headers["cut"]

    def test_what_the_topic_it_goes_back_to_does_not_take_goes_to_the_dlq(self, own):
        bench = own().start().ready()
        configure_topic(bench.kafka.brokers, bench.relay.topic("reconcile"), **{"max.message.bytes": "1048588"})
        headers = {"to_topic": bench.relay.topic("reconcile"), "not_before_ms": "1", "mark": uuid.uuid4().hex}
        value = bytes(2 << 20)
        write(bench.kafka.brokers, bench.relay.topic("delay.1m"), "a|key", value, headers)
        buried, = wait_for("it in the dlq", lambda: [one for one in bench.topic("dlq") if
                                                     one.headers.get("mark") == headers["mark"]])
        assert buried.headers["class"] == "refused" and buried.key == "a|key" and buried.value == value
        assert buried.headers["source_topic"] == bench.relay.topic("delay.1m")
        assert "cannot be put back to" in buried.headers["error"] and "too large" in buried.headers["error"]

    def test_l4_waits_behind_no_other_tier(self, own):
        many, one = "org-many/backend", "org-one/backend"
        bench = own(allowlist=f"L1: [{many}]\nL4: [{one}]\n").start().ready()
        limit = {"path": "*/dispatches", "count": 1, "status": 403,
                 "body": {"message": "You have exceeded a secondary rate limit"}}
        bench.script({**limit, "repo": many, "retry_after": 58})
        delivery = bench.pull_request()
        bench.wait_outcome(delivery, many, "waiting")
        limited_ms = bench.calls(many)[0]["at_ms"]
        task, = bench.topic("dispatch.l1")
        more = [(f"{task.key}-{i}", task.value, {**task.headers, "delivery": str(uuid.uuid4())}, 0) for i in range(600)]
        write_all(bench.kafka.brokers, bench.relay.topic("dispatch.l1"), more)
        wait_for("L1's to be put off", lambda: bench.metric("crcr_parked_total", delay="delay.1m") == 601)

        bench.script({**limit, "repo": one, "retry_after": 11})
        delivery = bench.pull_request()
        bench.wait_outcome(delivery, one, "dispatched")
        back_ms = bench.calls(one)[1]["at_ms"]
        assert back_ms < limited_ms + 58_000
        assert not [call for call in bench.calls(many)[1:] if call["at_ms"] < back_ms]
        parked, = [record for record in bench.topic("delay.1m") if record.headers["repos"] == one]
        assert parked.key.startswith("pytorch/pytorch#") and parked.partition == 0

    def test_a_time_from_a_clock_that_ran_ahead_waits_no_longer_than_its_topic(self, bench):
        headers = {"to_topic": bench.relay.topic("reconcile"), "mark": uuid.uuid4().hex,
                   "not_before_ms": str(int(time.time() * 1000) + 600_000)}
        write(bench.kafka.brokers, bench.relay.topic("delay.10s"), "a|key", b"{}", headers)
        began = time.monotonic()
        wait_for("it to come back", lambda: [one for one in bench.topic("reconcile")
                                             if one.headers.get("mark") == headers["mark"]], 60)
        assert time.monotonic() - began > 8

    @pytest.mark.parametrize("topic", ["callbacks", "reconcile"])
    def test_brings_back_what_the_reporter_put_off(self, bench, topic):
        for delay in ("rdelay.1m", "rdelay.10m", "rdelay.1h", "delay.1m"):  # the last: an older reporter
            headers = {"to_topic": bench.relay.topic(topic), "not_before_ms": "1", "error": "later",
                       "mark": uuid.uuid4().hex}
            write(bench.kafka.brokers, bench.relay.topic(delay), "a|key", b"{}", headers)
            back = wait_for("it to come back", lambda mark=headers["mark"]: [
                one for one in bench.topic(topic) if one.headers.get("mark") == mark])
            assert back[0].key == "a|key" and set(back[0].headers) == {"mark"}

    @pytest.mark.parametrize("delay", ["rdelay.1m", "rdelay.10m", "rdelay.1h"])
    def test_from_a_topic_that_the_reporter_writes_nothing_becomes_a_task(self, bench, delay):
        delivery = bench.pull_request()
        bench.wait_outcome(delivery, REPOS["L4"], "dispatched")
        task, = [one for one in bench.topic("dispatch.l4") if one.headers.get("delivery") == delivery]
        forged = {**task.headers, "delivery": str(uuid.uuid4()), "not_before_ms": "1"}
        write_all(bench.kafka.brokers, bench.relay.topic(delay), [
            (task.key, task.value, {**forged, "to_topic": bench.relay.topic(f"dispatch.l{tier}")}, 0) for tier in range(1, 5)])
        refused = wait_for("them in the dlq", lambda: [one for one in bench.topic("dlq") if one.headers.get("delivery") ==
                                                       forged["delivery"]][3:] and bench.topic("dlq"))
        assert {one.headers["class"] for one in refused if one.headers.get("delivery") == forged["delivery"]} == {"poison"}
        assert not [one for tier in range(1, 5) for one in bench.topic(f"dispatch.l{tier}")
                    if one.headers.get("delivery") == forged["delivery"]]


class TestUpstream:
    def test_a_payload_of_another_repository_is_not_sent(self, bench):
        delivery = bench.pull_request()
        bench.wait_outcome(delivery, REPOS["L4"], "dispatched")
        task, = [one for one in bench.topic("dispatch.l4") if one.headers.get("delivery") == delivery]
        body = json.loads(task.value)
        body["repository"]["full_name"] = "mallory/pytorch"
        spelled = {**json.loads(task.value), "repository": {**body["repository"], "full_name": "PyTorch/pytorch"}}
        values = {str(uuid.uuid4()): value for value in
                  (json.dumps(body).encode(), b"{}", b"", task.value + b',"payload":' + task.value)}
        good = str(uuid.uuid4())
        write_all(bench.kafka.brokers, bench.relay.topic("dispatch.l4"), [
            (task.key, value, {**task.headers, "delivery": one}, 0)
            for one, value in [*values.items(), (good, json.dumps(spelled).encode())]])
        bench.wait_outcome(good, REPOS["L4"], "dispatched")  # GitHub takes a name in any case
        refused = wait_for("the others in the dlq", lambda: [
            one for one in bench.topic("dlq") if one.headers.get("delivery") in values][3:] and bench.topic("dlq"))
        refused = {one.headers["delivery"]: one.headers for one in refused if one.headers.get("delivery") in values}
        assert set(refused) == set(values) and {one["class"] for one in refused.values()} == {"poison"}
        assert refused[next(iter(values))]["error"] == \
            "the payload is of 'mallory/pytorch', not of the upstream pytorch/pytorch"
        assert not [sent for one in values for sent in bench.dispatches(one)]
