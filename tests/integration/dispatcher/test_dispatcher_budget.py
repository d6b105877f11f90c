"""GitHub's budget, shared by all dispatchers: no window of a minute may hold more calls than its limit, and
L4 never waits for a lower tier. A minute is 5 or 6 seconds here."""
import time

import pytest

from dispatcher_env import REPOS, Bench
from lib.processes import wait_for
from lib.redis_server import RedisServer
from lib.relay import http

POINTS = 5  # of a dispatch


@pytest.fixture
def redis_node(tmp_path):
    """One of the test's own: what is used up in it here would hold back the other tests for an hour."""
    node = RedisServer(tmp_path / "redis").start()
    yield node
    node.stop()


def limits(minute, calls, kept=20, replicas=8, **others):
    """So many dispatches in so many seconds."""
    return {"CRCR_BUDGET_MINUTE": str(minute), "CRCR_BUDGET_POINTS_MINUTE": str(calls * POINTS),
            "CRCR_BUDGET_KEPT_PERCENT": str(kept), "CRCR_BUDGET_REPLICAS": str(replicas), **others}


def most_in_a_window(calls, seconds):
    at = [one["at_ms"] for one in calls]
    return max(sum(1 for other in at if start <= other < start + seconds * 1000) for start in at)


def wait_sent(bench, repo, count, timeout=90):
    return wait_for(f"{count} dispatches to {repo}",
                    lambda: len(bench.calls(repo)) >= count and bench.calls(repo), timeout)


class TestShared:
    def test_two_dispatchers_together_keep_the_limit_and_waits_cost_no_attempt(self, own):
        bench = own(environment=limits(minute=6, calls=10, CRCR_BUDGET_REQUESTS_HOUR="1000"))
        bench.start().start("dispatcher-two").ready().ready("dispatcher-two")
        deliveries = bench.pull_requests(20)
        for tier, at_once in (("L1", 8), ("L4", 10)):
            calls = wait_sent(bench, REPOS[tier], 20)
            assert len(calls) == 20 and {one["status"] for one in calls} == {204}
            assert at_once - 2 <= most_in_a_window(calls, 6) <= at_once, tier
        wait_for("all outcomes", lambda: len(bench.pairs(lambda one: one["outcome"] == "dispatched")) == 80, 60)
        outcomes = [one for delivery in deliveries for one in bench.outcomes(delivery)]
        assert {one["attempt"] for one in outcomes} == {1} and not any(one["maybe_duplicate"] for one in outcomes)
        waiting = [one["error"] for one in outcomes if one["outcome"] == "waiting"]
        assert any("our own budget of 50 points a minute (less 20 % for L4 and check runs) for org-one is used up "
                   "until 20" in error for error in waiting)
        assert any("our own budget of 50 points a minute for org-four" in error for error in waiting)
        held = sum(bench.metric("crcr_budget_waits_total", one, bucket="points_minute")
                   for one in ("dispatcher", "dispatcher-two"))
        assert held == len(waiting)
        assert bench.topic("dlq") == []

    def test_l4_goes_while_the_lower_tiers_have_used_up_their_share(self, own):
        bench = own(environment=limits(minute=6, calls=20, kept=50, CRCR_BUDGET_SCOPE="app"))
        bench.start().ready()
        deliveries = bench.pull_requests(8)
        four = wait_sent(bench, REPOS["L4"], 8, timeout=30)
        low = [call for tier in ("L1", "L2", "L3") for call in wait_sent(bench, REPOS[tier], 8)]
        assert most_in_a_window(low, 6) <= 10
        assert most_in_a_window(four, 6) == 8, "none of L4's waited"
        assert max(one["at_ms"] for one in low) - max(one["at_ms"] for one in four) > 5000
        kinds = [one["outcome"] for delivery in deliveries for one in bench.outcomes(delivery, REPOS["L4"])]
        assert set(kinds) == {"dispatched"}

    @pytest.mark.long
    def test_a_long_wait_is_parked_and_the_dispatcher_stays_healthy(self, own):
        bench = own(environment=limits(minute=20, calls=4, kept=0))
        bench.start().ready()
        for _ in range(6):
            bench.pull_request()
        calls = wait_sent(bench, REPOS["L2"], 6)
        assert most_in_a_window(calls, 20) == 4
        parked = [one for one in bench.topic("delay.1m") if one.headers["repo"] == REPOS["L2"]]
        assert len(parked) >= 2 and {one.headers["attempt"] for one in parked} == {"1"}
        assert http("GET", bench.relay.url("admin_dispatcher", "/healthz"))[0] == 200

    def test_a_budget_of_0_is_none_and_asks_nobody(self, own):
        names = ("REQUESTS_HOUR", "POINTS_MINUTE", "CONTENT_MINUTE", "CONTENT_HOUR")
        bench = own(environment={f"CRCR_BUDGET_{name}": "0" for name in names})
        bench.start().ready()
        delivery = bench.pull_request()
        assert {one["outcome"] for one in bench.wait_outcomes(delivery, 4)} == {"dispatched"}
        assert bench.metric("crcr_budget_slices_total") == 0

    def test_what_github_says_is_left_is_never_overdrawn(self, own):
        bench = own(sim_arguments=["--rate-limit", "10"])
        bench.start().ready()
        bench.wait_outcomes(bench.pull_request(), 4)
        deliveries = [bench.pull_request() for _ in range(13)]
        for tier, sent in (("L1", 8), ("L4", 10)):
            wait_for(f"{tier}: all told", lambda t=tier: all(
                bench.outcomes(delivery, REPOS[t]) for delivery in deliveries), 40)
            calls = bench.calls(REPOS[tier])
            assert len(calls) == sent, f"{tier}: 20 % are left to L4"
            assert {one["status"] for one in calls} == {204}, "GitHub had to refuse none"


    def test_a_limit_that_github_tells_one_tier_holds_for_all_and_for_all_dispatchers(self, own):
        """GitHub limits the installation, which is the owner's."""
        two, four, other = "org-all/two", "org-all/four", "org-other/four"
        bench = own(allowlist=f"L2: [{two}]\nL4: [{four}, {other}]\n")
        bench.start().start("dispatcher-two").ready().ready("dispatcher-two")
        bench.script({"path": "*/dispatches", "repo": two, "count": 1, "status": 429, "retry_after": 12})
        first = bench.pull_request()
        limited_ms = wait_sent(bench, two, 1)[0]["at_ms"]
        wait_for("the first one's outcomes", lambda: len(bench.outcomes(first)) >= 3)
        wait_for("what others have in hand to lapse", lambda: time.time() * 1000 > limited_ms + 2500)
        later = bench.pull_requests(8)
        wait_sent(bench, other, 9)
        wait_sent(bench, two, 10)
        called = [one["at_ms"] - limited_ms for repo in (two, four) for one in bench.calls(repo)]
        assert not [ms for ms in called if 2500 < ms < 11_900]
        assert max(one["at_ms"] for one in bench.calls(other)) < limited_ms + 11_900, "another's goes on"
        wait_sent(bench, four, 9)
        told = [one["error"] for delivery in later for one in bench.outcomes(delivery, four) if one["outcome"] == "waiting"]
        assert any("GitHub told us to wait for org-all until 20" in error or
                   "a rate limit of GitHub's stands" in error for error in told)
        assert bench.topic("dlq") == []


class TestRedisAway:
    @pytest.mark.long
    def test_each_replica_takes_its_part(self, kafka_node, tmp_path):
        nowhere = RedisServer(tmp_path / "redis").start()
        bench = Bench(tmp_path, kafka_node, nowhere, environment=limits(minute=5, calls=80, kept=0, replicas=20))
        nowhere.stop()
        try:
            bench.start().start("dispatcher-two").ready().ready("dispatcher-two")
            for _ in range(16):
                bench.pull_request()
            calls = wait_sent(bench, REPOS["L3"], 16)
            assert most_in_a_window(calls, 5) <= 2 * 4, "a part each of 80/20"
            assert sum(bench.metric("crcr_budget_slices_total", one, **{"from": "part"})
                       for one in ("dispatcher", "dispatcher-two")) > 0
        finally:
            bench.close()
