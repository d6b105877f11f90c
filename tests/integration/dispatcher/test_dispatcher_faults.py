"""When something is wrong: the allowlist's source, Redis, the process itself."""
import datetime
import hashlib
import json
import signal
import time
import uuid

import pytest

from dispatcher_env import REPOS, SHA
from lib.kafka import write
from lib.processes import wait_for
from lib.redis_server import RedisServer
from lib.relay import ALLOWLIST, http, payload
from lib.pauses import Link, go_on

CLAIM_HALF_S = 30  # CLAIM_HALF_MS: a claim that is older is taken again


def push_the_allowlist(bench):
    push = payload("push/1.json")
    push.update(ref="refs/heads/main", deleted=False)
    push["repository"].update(full_name="pytorch/pytorch", default_branch="main")
    push["commits"] = [{"id": SHA, "added": [], "removed": [], "modified": [".github/allowlist.yml"]}]
    bench.event(push, "push", key="pytorch/pytorch@refs/heads/main")


def unchanged(bench):
    """The requests for the allowlist that GitHub answered with 304: what was read last is in force."""
    return [one for one in bench.relay.requests() if "/contents/" in one["path"] and one["status"] == 304]


class TestAllowlist:
    def test_first_start_without_a_file_is_not_ready_and_loses_nothing(self, own):
        bench = own()
        bench.relay.allowlist_file.unlink()
        bench.start()
        delivery = bench.pull_request()
        wait_for("the reason", lambda: bench.not_ready("no allowlist yet"))
        assert http("GET", bench.relay.url("admin_dispatcher", "/readyz"))[0] == 503
        bench.relay.allowlist_file.write_text(ALLOWLIST)
        assert len(bench.wait_outcomes(delivery, 4, timeout=60)) == 4

    def test_a_bad_file_keeps_the_last_good_one_also_over_a_restart(self, own):
        bench = own().start().ready()
        bench.wait_outcomes(bench.pull_request(), 4)
        bench.relay.allowlist_file.write_text("L1:\n  - @nobody\n")
        wait_for("the refusal", lambda: "allowlist.yml:2:5" in bench.relay.parts["dispatcher"].text())
        assert bench.metric("crcr_allowlist_valid", file="allowlist") == 0
        wait_for("Redis to have it", lambda: "allowlist.yml:2:5" in (bench.redis.hget("crcr:allowlist", "error") or ""))
        bench.wait_outcomes(bench.pull_request(), 4)
        assert bench.relay.parts["dispatcher"].stop() == 0
        bench.start().ready()
        bench.wait_outcomes(bench.pull_request(), 4)

    def test_a_file_that_cannot_be_had_since_the_start_grows_old_from_its_last_publication(self, own):
        bench = own()
        bench.relay.allowlist_file.unlink()
        published = int(time.time()) - 86400
        write(bench.kafka.brokers, bench.relay.topic("allowlist"), "allowlist", ALLOWLIST.encode(),
              {"source": "test", "sha": "0" * 64, "fetched_ms": str(published * 1000)})
        providers = "https://github.com/pytorch/pytorch/blob/main/.github/no-such-file.yml"
        bench.start(CI_PROVIDERS_URL=providers).ready()
        wait_for("both to be asked for in vain", lambda: all(bench.metric(
            "crcr_allowlist_fetches_total", file=file, result="unreachable") for file in ("allowlist", "providers")))
        wait_for("the pages to say so, without a path", lambda: bench.redis.hget("crcr:allowlist", "error") == "it cannot be fetched")
        _, text = http("GET", bench.relay.url("admin_dispatcher", "/metrics"))
        name = "crcr_allowlist_fetched_timestamp_seconds"
        assert f'{name}{{file="allowlist"}} {published}\n' in text.decode()
        assert f'{name}{{file="providers"}} 0\n' in text.decode()  # never
        bench.relay.allowlist_file.write_text(ALLOWLIST)
        wait_for("it to be seen", lambda: bench.metric(name, file="allowlist") > published + 80000)

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
        ttl_s = 7
        bench = own(environment={"ALLOWLIST_TTL_SECONDS": str(ttl_s)}).start().ready()
        bench.relay.allowlist_file.write_text("L1: [org-one/backend-one]\n")
        push_the_allowlist(bench)
        wait_for("it to be held", lambda: bench.metric("crcr_allowlist_held", file="allowlist") == 1)
        bench.wait_outcomes(bench.pull_request(), 4)
        new = wait_for("it in force", lambda: bench.topic("allowlist")[1:])[0]
        log = bench.relay.parts["dispatcher"].text().splitlines()
        held = datetime.datetime.fromisoformat(next(json.loads(line)["at"] for line in log if "allowlist_held" in line))
        assert int(new.headers["fetched_ms"]) / 1000 - held.timestamp() >= ttl_s - 1
        wait_for("the router to have it", lambda: bench.metric("crcr_allowlist_repositories") == 1)
        delivery = bench.pull_request()
        bench.wait_outcome(delivery, REPOS["L1"], "dispatched")
        assert len(bench.outcomes(delivery)) == 1

    def test_a_push_that_touches_the_file_has_it_fetched_at_once(self, own):
        bench = own(environment={"ALLOWLIST_TTL_SECONDS": "3600"}).start().ready()
        bench.relay.allowlist_file.write_text(ALLOWLIST + "  - org-four/new: dave\n")
        push_the_allowlist(bench)
        wait_for("the new version", lambda: len(bench.topic("allowlist")) == 2)

    def test_an_unchanged_file_is_asked_for_with_its_etag(self, own):
        bench = own(environment={"ALLOWLIST_TTL_SECONDS": "1"}).start().ready()
        wait_for("a 304", lambda: unchanged(bench))
        assert len(bench.topic("allowlist")) == 1
        bench.redis.hset("crcr:allowlist", mapping={"fetched_at": "2020-01-01T00:00:00.000Z", "error": "no answer"})
        wait_for("the pages to have it as new", lambda: bench.redis.hget("crcr:allowlist", "fetched_at") > "2021")
        assert bench.redis.hget("crcr:allowlist", "error") == ""

    @pytest.mark.parametrize("named", ["by its own sha", "by the sha of the list in force"])
    def test_what_another_router_left_in_force_gives_way_to_what_github_has(self, own, named):
        bench = own(environment={"ALLOWLIST_TTL_SECONDS": "1"}).start().ready()
        wait_for("a 304", lambda: unchanged(bench))
        left = ALLOWLIST + "  - org-four/another: dave\n"  # by a router that is gone; no longer at GitHub
        write(bench.kafka.brokers, bench.relay.topic("allowlist"), "allowlist", left.encode(),
              {"source": "test", "sha": hashlib.sha256((left if "own" in named else ALLOWLIST).encode()).hexdigest(),
               "fetched_ms": "1"})
        def versions():
            return [one.value.decode() for one in bench.topic("allowlist")]
        wait_for("GitHub's version again", lambda: versions()[2:])
        assert versions()[:2] == [ALLOWLIST, left] and set(versions()[2:]) == {ALLOWLIST}
        before = len(unchanged(bench))
        wait_for("it to be in force", lambda: len(unchanged(bench)) > before)
        assert bench.metric("crcr_allowlist_repositories") == 4


class TestNothingIsLost:
    @pytest.mark.long
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
        assert len(bench.pairs(lambda one: one["outcome"] == "dispatched")) == 160

    @pytest.mark.long
    def test_over_kill_9_and_each_call_that_may_be_a_second_one_says_so(self, own):
        bench = own().start().ready()
        bench.wait_outcomes(bench.pull_request(), 4)
        # 20 are answered at once. The next are still under way at the kill; 5 s would make their downstreams slow.
        bench.script({"path": "*/dispatches", "skip": 20, "delay_ms": 4000})
        deliveries = bench.pull_requests(20)
        wait_for("some dispatches", lambda: len(bench.dispatches()) >= 40)
        bench.relay.parts["dispatcher"].kill()
        bench.clear_script()
        in_flight = set()
        for key in bench.redis.scan_iter("crcr:claim:*"):
            delivery, repo, _, _ = key[len("crcr:claim:"):].split("|")
            if delivery in deliveries and bench.redis.hget(key, "state") == "sending":
                in_flight.add((delivery, repo))
                bench.redis.hset(key, "until_ms", "1")  # as if the 60 s of its owner had passed
        assert in_flight
        bench.start("second")
        wanted = {(delivery, repo) for delivery in deliveries for repo in REPOS.values()}
        wait_for("all of them", lambda: wanted <= bench.pairs(lambda one: one["outcome"] == "dispatched"), 120)
        marked = bench.pairs(lambda one: one["maybe_duplicate"])
        assert marked == in_flight
        for delivery in deliveries:
            for repo in REPOS.values():
                calls = len(bench.dispatches(delivery, repo))
                assert calls == 1 or (calls == 2 and (delivery, repo) in marked)

    def test_a_claim_that_a_flush_took_while_it_was_waited_for_counts_as_perhaps_called(self, own):
        bench = own().start().ready()
        bench.wait_outcomes(bench.pull_request(), 4)
        bench.script({"path": "*/dispatches", "repo": REPOS["L2"], "delay_ms": 15000})
        delivery = bench.pull_request()
        claim = f"crcr:claim:{delivery}|{REPOS['L2']}|dispatch|"
        wait_for("the call to be under way", lambda: bench.redis.hget(claim, "state") == "sending")
        bench.relay.parts["dispatcher"].kill()
        bench.clear_script()
        bench.start("second").wait_claim_met(claim, "second")
        bench.redis.flushall()
        assert bench.wait_outcome(delivery, REPOS["L2"], "dispatched", timeout=90)["maybe_duplicate"]

    @pytest.mark.long
    def test_a_call_that_was_perhaps_made_stays_marked_over_a_later_refusal_and_kill_9(self, own):
        bench = own().start().ready()
        repo = REPOS["L2"]
        bench.script({"path": "*/dispatches", "repo": repo, "count": 1, "reset": True, "effect": True},
                     {"path": "*/dispatches", "repo": repo, "count": 1, "status": 429, "retry_after": 8})
        delivery = bench.pull_request()
        bench.wait_outcome(delivery, repo, "waiting", timeout=40)  # the second attempt, certainly not made
        bench.relay.parts["dispatcher"].kill()
        bench.start("second")
        assert bench.wait_outcome(delivery, repo, "dispatched", timeout=60)["maybe_duplicate"]

    def test_while_redis_is_unavailable_dispatch_goes_on_without_claims(self, own, tmp_path):
        bench = own(environment={"REDIS_ENDPOINT": "127.0.0.1:1"}).start().ready()
        delivery = bench.pull_request()
        assert {one["outcome"] for one in bench.wait_outcomes(delivery, 4)} == {"dispatched"}
        assert bench.metric("crcr_claims_total", verdict="none") >= 4

    def test_a_redis_that_hangs_slows_nobody_down_for_long(self, own, tmp_path):
        node = RedisServer(tmp_path / "hung").start()
        bench = own(environment={"REDIS_ENDPOINT": node.endpoint})
        node.client(bench.relay.prefix).set("crcr:epoch", "1")
        bench.start().ready()
        bench.wait_outcomes(bench.pull_request(), 4)
        node.process.signal(signal.SIGSTOP)
        try:
            deliveries = bench.pull_requests(40)
            wanted = {(delivery, repo) for delivery in deliveries for repo in REPOS.values()}
            wait_for("all of them", lambda: wanted <= bench.pairs(lambda one: one["outcome"] == "dispatched"), 25)
            assert http("GET", bench.relay.url("admin_dispatcher", "/healthz"))[0] == 200
        finally:
            node.process.signal(signal.SIGCONT)

        def claims_again():  # it is asked again after a pause
            bench.wait_outcomes(bench.pull_request(), 4)
            return bench.metric("crcr_claims_total", verdict="taken") > 4
        wait_for("claims again", claims_again, every=1)
        node.stop()

    def test_what_was_claimed_before_the_process_was_paused_is_claimed_again(self, own):
        """Another may have had its partition, waited for the claim, and called meanwhile."""
        bench = own().start().ready()
        bench.wait_outcomes(bench.pull_request(), 4)
        assert bench.relay.parts["dispatcher"].stop() == 0
        link = Link(bench.redis_node.port)
        process = bench.start(REDIS_ENDPOINT=link.endpoint).ready().relay.parts["dispatcher"]
        delivery = str(uuid.uuid4())
        link.catch(f"claim:{delivery}|{REPOS['L4']}", process)
        bench.pull_request(delivery=delivery)
        link.wait_caught()
        link.let_go()
        time.sleep(CLAIM_HALF_S + 1)
        go_on(process)
        said = bench.wait_outcomes(delivery, 2, repo=REPOS["L4"])
        kinds = [(one["outcome"], one["attempt"]) for one in said]
        assert kinds[:2] == [("waiting", 1), ("dispatched", 1)]
        # Its session was over: what was read is read again, and what was sent is said again.
        assert set(kinds[2:]) <= {("duplicate", 1), ("dispatched", 1)}
        assert "was paused" in said[0]["error"] and not said[1]["maybe_duplicate"]
        assert len(bench.calls(REPOS["L4"])) == 2

    def test_two_replicas_share_the_work_and_dispatch_once(self, own):
        bench = own().start().start("second").ready().ready("second")
        deliveries = [bench.pull_request() for _ in range(30)]
        for delivery in deliveries:
            bench.wait_outcomes(delivery, 4)
        assert len(bench.dispatches()) == 120


class TestBulkhead:
    def test_a_downstream_that_hangs_takes_no_place_of_the_others(self, own):
        slow, quick = "org-slow/backend", "org-quick/backend"
        bench = own(allowlist=f"L1: [{slow}, {quick}]\n").start().ready()
        bench.script({"path": "*/dispatches", "repo": slow, "hang": True})
        deliveries = [bench.pull_request() for _ in range(100)]
        wait_for("all of the other's", lambda: len(bench.dispatches(repo=quick)) == 100)
        called_ms = [one["at_ms"] for one in bench.calls(slow)]
        assert 1 <= sum(at < called_ms[0] + 19_000 for at in called_ms) <= 8  # time-outs are 20 s
        assert bench.pairs(lambda one: one["outcome"] == "dispatched") <= \
            {(delivery, quick) for delivery in deliveries}
        bench.clear_script()

    @pytest.mark.long
    def test_a_slow_downstream_with_more_work_than_fits_in_hand_holds_up_no_other(self, own):
        slow, quick = "org-slow/backend", "org-quick/backend"
        bench = own(allowlist=f"L1: [{slow}, {quick}]\n").start().ready()
        bench.script({"path": "*/dispatches", "repo": slow, "delay_ms": 15000})
        for _ in range(200):
            bench.pull_request()
        wait_for("all of the other's", lambda: len(bench.dispatches(repo=quick)) == 200, 20)
        put_off = [one for one in bench.topic("dispatches") if b"all its slots are taken" in one.value]
        assert put_off and all(one.headers["repo"] == slow for one in put_off)
        back = sorted(int(one.headers["not_before_ms"]) for topic in ("delay.10s", "delay.1m")
                      for one in bench.topic(topic) if one.headers["repos"] == slow)
        assert len(back) > 20 and back[-1] - back[0] > 5000  # not all at once
        bench.clear_script()

    @pytest.mark.long
    def test_a_downstream_that_fails_is_left_alone_but_for_probes_until_it_answers(self, own):
        broken, sound = "org-broken/backend", "org-sound/backend"
        bench = own(allowlist=f"L1: [{broken}, {sound}]\n").start().ready()
        bench.script({"path": "*/dispatches", "repo": broken, "status": 500})
        deliveries = [bench.pull_request() for _ in range(30)]
        wait_for("the breaker to open", lambda: bench.metric("crcr_breaker_open", account="org-broken") == 1)
        opened = len(bench.calls(broken))
        assert opened <= 5 + 8  # what was under way
        wait_for("the probe", lambda: len(bench.calls(broken)) > opened, 60)
        times = sorted(one["at_ms"] for one in bench.calls(broken))
        assert len(times) == opened + 1 and times[-1] - times[4] >= 10000
        bench.clear_script()
        wanted = {(delivery, repo) for delivery in deliveries for repo in (broken, sound)}
        wait_for("all of them", lambda: wanted <= bench.pairs(lambda one: one["outcome"] == "dispatched"), 150)
        assert bench.metric("crcr_breaker_open", account="org-broken") == 0
        outcomes = [one for delivery in deliveries for one in bench.outcomes(delivery, broken)]
        assert max(one["attempt"] for one in outcomes if one["outcome"] == "dispatched") <= 3
        text = bench.relay.parts["dispatcher"].text()
        assert text.count("breaker_opened") == text.count("breaker_closed") == 1
