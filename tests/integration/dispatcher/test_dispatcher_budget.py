"""GitHub's budget, shared by all dispatchers: a bucket holds a quarter of its limit and is refilled with the rest in a
minute and two seconds (common/model/budget.h), and L4 never waits for a lower tier."""
import time

import pytest

from dispatcher_env import REPOS, Bench
from lib.processes import wait_for
from lib.redis_server import RedisServer
from lib.relay import http

POINTS = 5  # of a dispatch
ROOM = {"L1": 0.5, "L2": 0.5, "L3": 0.5, "L4": 0.9}  # of a bucket, for its class


@pytest.fixture
def redis_node(tmp_path):
    """One of the test's own: what is used up in it here would hold back the other tests for an hour."""
    node = RedisServer(tmp_path / "redis").start()
    yield node
    node.stop()


def limits(bucket, replicas=8, **others):
    """A bucket of so many dispatches."""
    return {"CRCR_BUDGET_POINTS_MINUTE": str(bucket * 4 * POINTS), "CRCR_BUDGET_REPLICAS": str(replicas), **others}


def assert_kept(calls, room, bucket):
    """No stretch of time has more than what the bucket gave and the refill; a call is 2 s on its way at most."""
    at = sorted(one["at_ms"] / 1000 for one in calls)
    for i, start in enumerate(at):
        for k in range(i, len(at)):
            assert k - i + 1 <= room + 3 * bucket / 62 * (at[k] - start + 2) + 1, f"{k - i + 1} in {at[k] - start} s"


def wait_sent(bench, repo, count, timeout=90):
    return wait_for(f"{count} dispatches to {repo}",
                    lambda: len(bench.calls(repo)) >= count and bench.calls(repo), timeout)


class TestShared:
    def test_two_dispatchers_together_keep_the_limit_and_waits_cost_no_attempt(self, own):
        bench = own(environment=limits(bucket=40))
        bench.start().start("dispatcher-two").ready().ready("dispatcher-two")
        deliveries = bench.pull_requests(45)
        for tier in ("L1", "L4"):
            calls = wait_sent(bench, REPOS[tier], 45)
            assert len(calls) == 45 and {one["status"] for one in calls} == {204}
            assert_kept(calls, ROOM[tier] * 40, 40)
        wait_for("all outcomes", lambda: len(bench.pairs(lambda one: one["outcome"] == "dispatched")) == 4 * 45, 60)
        outcomes = [one for delivery in deliveries for one in bench.outcomes(delivery)]
        assert {one["attempt"] for one in outcomes} == {1} and not any(one["maybe_duplicate"] for one in outcomes)
        waiting = [one["error"] for one in outcomes if one["outcome"] == "waiting"]
        for org, name in (("org-one", "rest"), ("org-four", "l4")):
            said = f"our own budget of 800 points a minute for {org} is used up for class {name} until 20"
            of_org = [error for error in waiting if f" for {org} " in error]
            # On a machine that is too slow to use up nine tenths of a bucket none of L4's waits.
            assert all(said in error for error in of_org) and (of_org or name == "l4"), waiting
        held = sum(bench.metric("crcr_budget_waits_total", one, bucket="points_minute")
                   for one in ("dispatcher", "dispatcher-two"))
        assert held == len(waiting)
        assert bench.topic("dlq") == []

    def test_l4_goes_while_the_lower_tiers_have_used_up_their_share(self, own):
        bench = own(environment=limits(bucket=20, CRCR_BUDGET_SCOPE="app"))
        bench.start().ready()
        deliveries = bench.pull_requests(7)
        four = wait_sent(bench, REPOS["L4"], 7, timeout=30)
        low = [call for tier in ("L1", "L2", "L3") for call in wait_sent(bench, REPOS[tier], 7)]
        assert_kept(low, 10, 20)
        assert max(one["at_ms"] for one in four) - min(one["at_ms"] for one in four) < 3000, "none of L4's waited"
        assert max(one["at_ms"] for one in low) - max(one["at_ms"] for one in four) > 5000
        kinds = [one["outcome"] for delivery in deliveries for one in bench.outcomes(delivery, REPOS["L4"])]
        assert set(kinds) == {"dispatched"}

    @pytest.mark.long
    def test_a_long_wait_is_parked_and_the_dispatcher_stays_healthy(self, own):
        bench = own(environment=limits(bucket=2))
        bench.start().ready()
        for _ in range(5):
            bench.pull_request()
        calls = wait_sent(bench, REPOS["L2"], 5)
        assert_kept(calls, 1, 2)
        parked = [one for one in bench.topic("delay.1m") if one.headers["repos"] == REPOS["L2"]]
        assert len(parked) >= 2 and {one.headers["attempt"] for one in parked} == {"1"}
        assert http("GET", bench.relay.url("admin_dispatcher", "/healthz"))[0] == 200

    def test_a_budget_of_0_is_none_and_asks_nobody(self, own):
        names = ("REQUESTS_HOUR", "POINTS_MINUTE", "CONTENT_MINUTE", "CONTENT_HOUR")
        bench = own(environment={f"CRCR_BUDGET_{name}": "0" for name in names})
        bench.start().ready()
        delivery = bench.pull_request()
        assert {one["outcome"] for one in bench.wait_outcomes(delivery, 4)} == {"dispatched"}
        assert list(bench.redis.scan_iter("crcr:budget:*")) == []

    def test_what_github_gives_is_never_overdrawn(self, own):
        """Our own limit is far above GitHub's, which is known from its first answer."""
        bench = own(sim_arguments=["--rate-limit", "40"])
        bench.start().ready()
        bench.wait_outcomes(bench.pull_request(), 4)
        deliveries = [bench.pull_request() for _ in range(13)]
        for tier, sent in (("L1", 1 + 5), ("L4", 1 + 9)):
            wait_for(f"{tier}: an outcome of all", lambda t=tier: all(
                bench.outcomes(delivery, REPOS[t]) for delivery in deliveries), 40)
            calls = bench.calls(REPOS[tier])
            assert len(calls) == sent, f"{tier}: a quarter of 40, less what the class leaves"
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
        wait_for("all to have heard", lambda: time.time() * 1000 > limited_ms + 2500)
        later = bench.pull_requests(8)
        wait_sent(bench, other, 9)
        wait_sent(bench, two, 10)
        called = [one["at_ms"] - limited_ms for repo in (two, four) for one in bench.calls(repo)]
        assert not [ms for ms in called if 2500 < ms < 11_900]
        assert max(one["at_ms"] for one in bench.calls(other)) < limited_ms + 11_900, "another's goes on"
        wait_sent(bench, four, 9)
        errors = [one["error"] for delivery in later for one in bench.outcomes(delivery, four) if one["outcome"] == "waiting"]
        assert any("GitHub asked us to wait for org-all until 20" in error or
                   "a rate limit of GitHub's holds" in error for error in errors)
        assert bench.topic("dlq") == []


class TestRedisAway:
    @pytest.mark.long
    def test_each_replica_takes_its_part(self, kafka_node, tmp_path):
        nowhere = RedisServer(tmp_path / "redis").start()
        bench = Bench(tmp_path, kafka_node, nowhere, environment=limits(bucket=160, replicas=20))
        nowhere.stop()
        try:
            bench.start().start("dispatcher-two").ready().ready("dispatcher-two")
            for _ in range(16):
                bench.pull_request()
            calls = wait_sent(bench, REPOS["L3"], 16)
            assert_kept(calls, 2 * 4, 2 * 8)  # two processes with a 20th of 160 each, and the half of that for L3
            outcomes = [one.value.decode() for one in bench.topic("dispatches")]
            assert any("our own budget of 160 points a minute without Redis for org-" in one for one in outcomes)
        finally:
            bench.close()
