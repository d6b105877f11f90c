"""maybe_duplicate, the reason why a call may be the second one (dispatcher/README.md, the mark), and what is called
while Redis is unavailable."""
import time
import uuid

import pytest
from dispatcher_env import REPOS
from lib.kafka import write, write_all
from lib.ports import free_port
from lib.processes import wait_for
from lib.redis_server import RedisServer

REPO = REPOS["L2"]


def rebuilt(bench):
    """The view is consistent again, since a millisecond ago: an event of the very millisecond may be one it forgot."""
    bench.redis.set("crcr:epoch", time.time_ns() // 1000 - 1000)


def claim_of(delivery):
    return f"crcr:claim:{delivery}|{REPO}|dispatch|"


def killed_in_the_call(bench):
    """A dispatcher that ends while GitHub has the call for REPO; the delivery."""
    bench.start().ready()
    bench.wait_outcomes(bench.pull_request(), 4)
    bench.script({"path": "*/dispatches", "repo": REPO, "delay_ms": 15000})
    delivery = bench.pull_request()
    wait_for("the call to be under way", lambda: bench.redis.hget(claim_of(delivery), "state") == "sending")
    bench.relay.parts["dispatcher"].kill()
    bench.clear_script()
    return delivery


def test_a_task_that_is_read_again_after_a_flush_is_marked_and_a_new_one_is_not(own):
    bench = own()
    delivery = killed_in_the_call(bench)
    bench.redis.flushall()
    bench.start("second").ready("second")
    assert bench.wait_outcome(delivery, REPO, "dispatched", timeout=60)["maybe_duplicate"] == "no_claim"
    rebuilt(bench)
    later = bench.pull_request()
    assert not any(one["maybe_duplicate"] for one in bench.wait_outcomes(later, 4))


def test_a_call_of_before_a_flush_is_marked_also_when_the_view_is_consistent_again(own):
    """Its claim went with the flush, and no outcome tells of it."""
    bench = own()
    delivery = killed_in_the_call(bench)
    bench.redis.flushall()
    rebuilt(bench)
    bench.start("second").ready("second")
    assert bench.wait_outcome(delivery, REPO, "dispatched", timeout=60)["maybe_duplicate"] == "no_claim"


def test_a_call_whose_owner_died_in_it_is_marked_when_its_claim_has_run_out(own):
    bench = own()
    delivery = killed_in_the_call(bench)
    bench.redis.hset(claim_of(delivery), "until_ms", "1")  # as if the 60 s of its owner had passed
    bench.start("second").ready("second")
    assert bench.wait_outcome(delivery, REPO, "dispatched", timeout=60)["maybe_duplicate"] == "claim_expired"


def test_a_task_that_is_read_again_is_not_marked_while_redis_knows(own):
    """Nobody had claimed it: the process ended before."""
    bench = own()
    delivery = bench.pull_request()
    bench.start().ready()
    assert not any(one["maybe_duplicate"] for one in bench.wait_outcomes(delivery, 4))
    assert bench.metric("crcr_claims_total", verdict="forgotten") in (None, 0)


def test_a_claim_that_is_given_back_while_it_is_waited_for_is_no_mark(own):
    bench = own().start().ready()
    delivery = str(uuid.uuid4())
    bench.redis.hset(claim_of(delivery), mapping={
        "state": "sending", "owner": "another", "until_ms": str(int(time.time() * 1000) + 6000)})
    bench.pull_request(delivery=delivery)
    bench.wait_claim_met(claim_of(delivery))
    bench.redis.delete(claim_of(delivery))
    assert not bench.wait_outcome(delivery, REPO, "dispatched", timeout=60)["maybe_duplicate"]


def without_redis(own):
    return own().start(REDIS_ENDPOINT=f"127.0.0.1:{free_port()}").ready()


def test_every_call_without_redis_is_marked(own):
    bench = without_redis(own)
    outcomes = bench.wait_outcomes(bench.pull_request(), 4)
    assert {(one["outcome"], one["maybe_duplicate"]) for one in outcomes} == {("dispatched", "no_claim")}
    assert bench.metric("crcr_dispatches_maybe_duplicate_total", tier="L2") == 1
    assert bench.metric("crcr_claims_total", tier="L2", verdict="none") == 1


def test_the_first_reason_of_a_mark_stays(own):
    bench = without_redis(own)
    bench.script({"path": "*/dispatches", "repo": REPO, "status": 502, "count": 1})
    delivery = bench.pull_request()
    assert bench.wait_outcome(delivery, REPO, "unknown")["maybe_duplicate"] == "no_claim"
    assert bench.wait_outcome(delivery, REPO, "dispatched", timeout=60)["maybe_duplicate"] == "no_claim"


def test_a_mark_of_an_older_dispatcher_is_understood(own):
    bench = own().start().ready()
    first = bench.pull_request()
    bench.wait_outcomes(first, 4)
    task = next(record for record in bench.topic("dispatch.l2") if record.headers["delivery"] == first)
    delivery = str(uuid.uuid4())
    write(bench.kafka.brokers, bench.relay.topic("dispatch.l2"), task.key, task.value,
          task.headers | {"delivery": delivery, "maybe_duplicate": "1", "reread": "1"})
    assert bench.wait_outcome(delivery, REPO, "dispatched")["maybe_duplicate"] == "answer_unseen"


def test_a_call_without_a_claim_is_known_to_a_redis_that_is_back_when_it_is_answered(own, tmp_path):
    """The outcome, and the seq: an older event of the pull request is superseded."""
    late = RedisServer(tmp_path / "late")
    bench = own().start(REDIS_ENDPOINT=late.endpoint).ready()
    bench.script({"path": "*/dispatches", "repo": REPO, "delay_ms": 10000})
    number = next(bench.numbers)
    newer = bench.pull_request(number, updated_at="2026-11-21T04:00:00Z")
    wait_for("the call to be under way", lambda: bench.metric("crcr_dispatches_in_flight", tier="L2") == 1)
    late.start()
    try:
        redis = late.client(bench.relay.prefix)
        redis.set("crcr:epoch", "1")
        assert bench.wait_outcome(newer, REPO, "dispatched")["maybe_duplicate"] == "no_claim"
        bench.clear_script()
        wait_for("its claim", lambda: redis.hget(claim_of(newer), "state") == "done")
        older = bench.pull_request(number, updated_at="2026-11-21T03:00:00Z")
        bench.wait_outcome(older, REPO, "superseded")
        bench.pull_request(number, delivery=newer, updated_at="2026-11-21T04:00:00Z")
        bench.wait_outcome(newer, REPO, "duplicate")
        assert not bench.dispatches(older, REPO) and len(bench.dispatches(newer, REPO)) == 1
        assert bench.relay.parts["dispatcher"].stop() == 0
    finally:
        late.stop()


def test_each_call_of_a_batch_without_claims_is_known_to_a_redis_that_is_back(own, tmp_path):
    """Also what became of none is known: whoever claims it next is the second."""
    late, repos = RedisServer(tmp_path / "late"), [f"org-{letter}/backend" for letter in "abcd"]
    bench = own(allowlist=f"L2: [{', '.join(repos)}]\n").start(REDIS_ENDPOINT=late.endpoint).ready()
    bench.script({"path": "*/dispatches", "repo": repos[2], "delay_ms": 10000, "status": 503, "count": 1},
                 {"path": "*/dispatches", "delay_ms": 10000})
    delivery = bench.pull_request()
    wait_for("the calls", lambda: bench.metric("crcr_dispatches_in_flight", tier="L2") == 4)
    late.start()
    try:
        redis = late.client(bench.relay.prefix)
        redis.set("crcr:epoch", "1")
        wait_for("their claims", lambda: [redis.hget(f"crcr:claim:{delivery}|{repo}|dispatch|", "state") for repo in repos]
                 == ["done", "done", "unknown", "done"], 30)
        bench.clear_script()
        bench.wait_outcome(delivery, repos[2], "dispatched")
        assert bench.relay.parts["dispatcher"].stop() == 0
    finally:
        late.stop()


def committed(bench):
    """All that was read is finished, and a commit (one a second) has followed."""
    wait_for("nothing in hand", lambda: not bench.metric("crcr_tasks_in_hand"))
    time.sleep(2)


def test_a_restart_without_redis_repeats_nothing(own):
    bench = without_redis(own)
    bench.script({"path": "*/dispatches", "delay_ms": 300})
    deliveries = bench.pull_requests(60)
    wait_for("some dispatches", lambda: len(bench.dispatches()) >= 60)
    assert bench.relay.parts["dispatcher"].stop() == 0
    bench.start("second", REDIS_ENDPOINT=f"127.0.0.1:{free_port()}")
    wait_for("all of them", lambda: len(bench.dispatches()) >= 240, 60)
    for delivery in deliveries:
        bench.wait_outcomes(delivery, 4)
    assert len(bench.dispatches()) == 240


@pytest.mark.long
def test_a_dispatcher_that_dies_without_redis_repeats_what_it_had_under_way(own):
    bench = without_redis(own)
    before = bench.pull_requests(20)
    for delivery in before:
        bench.wait_outcomes(delivery, 4)
    committed(bench)
    bench.script({"path": "*/dispatches", "delay_ms": 15000})
    under_way = bench.pull_requests(3)
    wait_for("the calls", lambda: bench.metric("crcr_dispatches_in_flight") == 12)
    bench.relay.parts["dispatcher"].kill()
    bench.clear_script()
    bench.start("second", REDIS_ENDPOINT=f"127.0.0.1:{free_port()}")
    for delivery in under_way:
        assert {one["maybe_duplicate"] for one in bench.wait_outcomes(delivery, 4)} == {"no_claim"}
    for delivery in before:
        assert len(bench.dispatches(delivery)) == 4


def tasks_of_one_partition(bench, like, repos):
    """Tasks of L2 for these repos in that order, each of a pull request of its own, in one partition: their deliveries."""
    task = next(record for record in bench.topic("dispatch.l2") if record.headers["delivery"] == like)
    made = [(f"pytorch/pytorch#{1_000_000 + number}", task.value,
             task.headers | {"delivery": str(uuid.uuid4()), "repos": repo}, 0) for number, repo in enumerate(repos)]
    write_all(bench.kafka.brokers, bench.relay.topic("dispatch.l2"), made, partition=0)
    return [headers["delivery"] for _, _, headers, _ in made]


def test_without_redis_nothing_is_read_200_records_past_the_oldest_open_one(own):
    """A crash repeats what was called behind it; with Redis its claims would say so."""
    hangs, quick = "org-hangs/backend", "org-quick/backend"
    bench = own(allowlist=f"L2: [{hangs}, {quick}]\n").start(REDIS_ENDPOINT=f"127.0.0.1:{free_port()}").ready()
    first = bench.pull_request()
    bench.wait_outcomes(first, 2)
    bench.script({"path": "*/dispatches", "repo": hangs, "hang": True})  # 20 s, and once more after 10 s in hand
    oldest, *others = tasks_of_one_partition(bench, first, [hangs] + 400 * [quick])
    # What was paused for another reason goes on only when half of the 200 is free.
    wait_for("what may be called", lambda: len(bench.calls(quick)) >= 1 + 90 and
             bench.metric("crcr_dispatches_in_flight", tier="L2") <= 1 and bench.metric("crcr_tasks_in_hand", tier="L2") == 1, 45)
    assert len(bench.calls(quick)) - 1 <= 200 and not bench.pairs(lambda one: one["delivery_id"] == oldest
                                                                         and one["outcome"] == "dispatched")
    bench.relay.parts["dispatcher"].kill()
    bench.clear_script()
    bench.start("second", REDIS_ENDPOINT=f"127.0.0.1:{free_port()}")
    wanted = {(oldest, hangs)} | {(delivery, quick) for delivery in others}
    wait_for("all of them", lambda: wanted <= bench.pairs(lambda one: one["outcome"] == "dispatched"), 120)
    assert 0 < len(bench.calls(quick)) - 1 - len(others) <= 200
