"""What follows each answer of GitHub's."""
import datetime
import json

import jwt
import pytest

from dispatcher_env import REPOS
from lib.kafka import write
from lib.processes import wait_for


class TestAnswers:
    def test_5xx_is_unknown_and_is_sent_again_as_perhaps_a_duplicate(self, bench):
        repo = REPOS["L4"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "status": 502})
        delivery = bench.pull_request()
        sent = bench.wait_outcome(delivery, repo, "dispatched")
        unknown = bench.wait_outcome(delivery, repo, "unknown")
        assert unknown["http_status"] == 502 and unknown["attempt"] == 1
        assert sent["attempt"] == 2 and sent["maybe_duplicate"]
        assert bench.metric("crcr_dispatches_maybe_duplicate_total", tier="L4") >= 1
        assert len(bench.wait_outcomes(delivery, 5)) == 5  # nobody else waited

    def test_a_reset_after_it_was_taken_is_unknown_too(self, bench):
        repo = REPOS["L1"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "reset": True, "effect": True})
        delivery = bench.pull_request()
        sent = bench.wait_outcome(delivery, repo, "dispatched", timeout=40)
        assert bench.wait_outcome(delivery, repo, "unknown") and sent["maybe_duplicate"]
        assert len(bench.dispatches(delivery, repo)) == 2  # what "unknown" means

    def test_no_answer_in_20_s_is_unknown(self, bench):
        repo = REPOS["L2"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "hang": True, "hang_ms": 60000})
        delivery = bench.pull_request()
        unknown = bench.wait_outcome(delivery, repo, "unknown", timeout=90)
        assert 20_000 <= unknown["latency_ms"] < 50_000 and unknown["http_status"] in (None, 0)
        assert bench.wait_outcome(delivery, repo, "dispatched")["maybe_duplicate"]

    @pytest.mark.parametrize("status", [403, 404, 410, 422])
    def test_a_refusal_goes_to_the_dlq_with_the_reason(self, bench, status):
        repo = REPOS["L2"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "status": status,
                      "body": {"message": "said no"}})
        delivery = bench.pull_request()
        failed = bench.wait_outcome(delivery, repo, "failed")
        assert failed["http_status"] == status and "said no" in failed["error"]
        buried = wait_for("it in the dlq", lambda: [one for one in bench.topic("dlq") if
                                                    one.headers.get("delivery") == delivery])
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

    def test_what_others_wrote_is_parked_with_our_headers_or_is_written_to_the_dlq_when_it_is_too_large(self, bench):
        repo, foreign = REPOS["L3"], {f"foreign{i}": "x" for i in range(60)}
        delivery = bench.pull_request()
        bench.wait_outcome(delivery, repo, "dispatched")
        task, = [one for one in bench.topic("dispatch.l3") if one.headers.get("delivery") == delivery]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 2, "status": 403, "retry_after": 15,
                      "body": {"message": "You have exceeded a secondary rate limit"}})
        for name, more in (("large", {"large": bytes(30_000_000)}), ("many", foreign)):
            write(bench.kafka.brokers, bench.relay.topic("dispatch.l3"), f"{task.key}-{name}", task.value,
                  {**task.headers, "delivery": f"{delivery}-{name}", **more}, compression="gzip")
        assert bench.wait_outcome(f"{delivery}-many", repo, "dispatched", timeout=45)
        assert [one for one in bench.topic("delay.1m") if one.headers.get("delivery") == f"{delivery}-many"]
        buried, = wait_for("it in the dlq", lambda: [one for one in bench.topic("dlq") if
                                                     one.headers.get("delivery") == f"{delivery}-large"])
        assert buried.headers["class"] == "refused" and "cut" in buried.headers

    def test_a_limit_holds_back_the_whole_installation(self, bench):
        repo = REPOS["L1"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "status": 429, "retry_after": 7})
        first = bench.pull_request()
        bench.wait_outcome(first, repo, "waiting")
        second = bench.pull_request()
        bench.wait_outcome(second, repo, "waiting")
        begin = [one["at_ms"] for one in bench.calls(repo)][-1]
        for delivery in (first, second):
            bench.wait_outcome(delivery, repo, "dispatched", timeout=90)
        assert all(one["at_ms"] - begin >= 7000 for one in bench.calls(repo) if one["at_ms"] > begin)

    def test_a_limit_leaves_no_claim_behind_of_those_it_held_back(self, bench):
        repo = REPOS["L2"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "status": 429, "retry_after": 4})
        first = bench.pull_request()
        bench.wait_outcome(first, repo, "waiting")
        deliveries = [bench.pull_request() for _ in range(12)]
        for delivery in [first, *deliveries]:
            sent = bench.wait_outcome(delivery, repo, "dispatched")
            assert sent["attempt"] == 1 and not sent["maybe_duplicate"]
            assert len(bench.dispatches(delivery, repo)) == 1

    def test_a_token_that_is_refused_is_fetched_anew_once(self, bench):
        repo = REPOS["L4"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "status": 401})
        delivery = bench.pull_request()
        assert bench.wait_outcome(delivery, repo, "dispatched")["attempt"] == 1
        assert len(bench.outcomes(delivery, repo)) == 1

    def test_a_payload_that_github_finds_too_large_is_fitted_to_half_once(self, bench):
        repo = REPOS["L3"]
        too_large = {"path": "*/dispatches", "repo": repo, "status": 422,
                     "body": {"message": "client_payload is too large."}}
        bench.script({**too_large, "count": 1})
        delivery = bench.pull_request()
        assert bench.wait_outcome(delivery, repo, "dispatched")["attempt"] == 1
        sent, = bench.dispatches(delivery, repo)
        task, = [one for one in bench.topic("dispatch.l3") if one.headers.get("delivery") == delivery]
        fitted = sent["client_payload"]
        assert len(json.dumps(fitted["payload"], separators=(",", ":"))) <= len(task.value) // 2
        assert fitted["payload_trimmed"] and fitted["payload"]["pull_request"]["head"]["sha"]
        bench.script({**too_large, "count": 2})
        second = bench.pull_request()
        failed = bench.wait_outcome(second, repo, "failed")
        assert "too large" in failed["error"] and failed["http_status"] == 422

    def test_dispatched_at_is_the_moment_of_the_call_not_of_the_claim(self, own):
        bench, repo = own().start().ready(), REPOS["L4"]
        bench.script({"path": "*/access_tokens", "delay_ms": 1500, "count": 8})
        delivery = bench.pull_request()
        outcome = bench.wait_outcome(delivery, repo, "dispatched")
        called, = bench.calls(repo)
        at_ms = datetime.datetime.fromisoformat(outcome["at"]).timestamp() * 1000
        assert abs(at_ms - called["at_ms"]) < 1000
        sent, = bench.dispatches(delivery, repo)
        claims = jwt.decode(sent["client_payload"]["callback_token"], options={"verify_signature": False})
        assert abs(claims["dispatched_at"] - at_ms) < 1000

    def test_a_refused_installation_refuses_its_call_and_the_next_ones_wait(self, own):
        bench, repo = own().start().ready(), REPOS["L4"]
        bench.script({"path": f"/repos/{repo}/installation", "status": 404, "count": 1})
        first = bench.pull_request()
        assert bench.wait_outcome(first, repo, "failed")["http_status"] == 404
        second = bench.pull_request()
        waiting = bench.wait_outcome(second, repo, "waiting")
        assert waiting["attempt"] == 1 and "404" in waiting["error"]
        assert not [one for one in bench.topic("dlq") if one.headers.get("delivery") == second]

    def test_a_token_is_for_one_repository_and_for_dispatches(self, own):
        bench, repo = own().start().ready(), REPOS["L4"]
        delivery = bench.pull_request()
        bench.wait_outcome(delivery, repo, "dispatched")
        asked = [one["body"] for one in bench.relay.requests() if one["path"].endswith("/access_tokens")]
        reads, writes = ([one["repositories"] for one in asked if one["permissions"] == {"contents": may}]
                         for may in ("read", "write"))
        assert len(asked) == len(reads) + len(writes)
        assert reads == [["pytorch"]]  # the allowlist
        assert [repo.split("/")[1]] in writes and all(len(names) == 1 for names in writes)

    def test_a_repository_that_was_renamed_is_called_with_a_token_for_its_installation(self, own):
        bench, repo = own().start().ready(), REPOS["L4"]
        bench.script({"path": "*/access_tokens", "status": 422, "count": 1,
                      "body": {"message": "There is at least one repository that does not exist"}})
        delivery = bench.pull_request()
        assert bench.wait_outcome(delivery, repo, "dispatched")["attempt"] == 1
        asked = [one["body"] for one in bench.relay.requests() if one["path"].endswith("/access_tokens")]
        whole, = [one for one in asked if "repositories" not in one]
        assert whole == {"permissions": {"contents": "write"}}

    def test_a_permission_that_the_app_was_not_given_is_named_in_the_dlq(self, own):
        bench, repo = own().start().ready(), REPOS["L4"]
        bench.script({"path": "*/access_tokens", "status": 422,
                      "body": {"message": "The permissions requested are not granted to this installation."}})
        delivery = bench.pull_request()
        failed = bench.wait_outcome(delivery, repo, "failed")
        assert failed["http_status"] == 422 and "not granted to this installation" in failed["error"]

    @pytest.mark.parametrize("status", [301, 307, 308])
    def test_a_redirect_to_the_same_origin_is_followed_once(self, bench, status):
        repo = REPOS["L4"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "status": status,
                      "headers": {"Location": f"/repos/{repo}/dispatches"}})
        delivery = bench.pull_request()
        assert bench.wait_outcome(delivery, repo, "dispatched")["attempt"] == 1
        assert len(bench.dispatches(delivery, repo)) == 1

    @pytest.mark.parametrize("status", [302, 303])
    def test_a_redirect_that_would_change_the_method_is_refused(self, bench, status):
        repo = REPOS["L4"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "status": status,
                      "headers": {"Location": f"/repos/{repo}/dispatches"}})
        delivery = bench.pull_request()
        assert bench.wait_outcome(delivery, repo, "failed")["http_status"] == status

    def test_a_second_redirect_is_refused(self, bench):
        repo = REPOS["L4"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 2, "status": 307,
                      "headers": {"Location": f"/repos/{repo}/dispatches"}})
        delivery = bench.pull_request()
        assert bench.wait_outcome(delivery, repo, "failed")["http_status"] == 307

    def test_a_redirect_elsewhere_is_refused_and_sees_no_token(self, bench):
        repo = REPOS["L4"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "status": 307,
                      "headers": {"Location": "http://127.0.0.1:1/repos/x/y/dispatches"}})
        delivery = bench.pull_request()
        assert bench.wait_outcome(delivery, repo, "failed")["http_status"] == 307

    def test_a_2xx_with_more_body_than_anyone_reads_is_still_a_dispatch(self, bench):
        repo = REPOS["L4"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "status": 200,
                      "body": {"garbage": "x" * (3 << 19)}})
        delivery = bench.pull_request()
        assert bench.wait_outcome(delivery, repo, "dispatched")["attempt"] == 1
