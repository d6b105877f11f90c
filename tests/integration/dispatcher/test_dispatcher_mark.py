"""maybe_duplicate: on every call that may be the second one, and on no other (dispatcher/README.md, the mark)."""
import time
import uuid

from dispatcher_env import REPOS, Bench
from lib.kafka import Kafka, write
from lib.ports import free_port
from lib.processes import wait_for
from lib.redis_server import RedisServer
from lib.relay import http

REPO = REPOS["L2"]


def rebuilt(bench):
    """The view is whole again, since a millisecond ago: an event of the very millisecond may be one it forgot."""
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
    assert bench.wait_outcome(delivery, REPO, "dispatched", timeout=60)["maybe_duplicate"]
    rebuilt(bench)
    later = bench.pull_request()
    assert not any(one["maybe_duplicate"] for one in bench.wait_outcomes(later, 4))


def test_a_call_of_before_a_flush_is_marked_also_when_the_view_is_whole_again(own):
    """Its claim went with the flush, and no outcome tells of it."""
    bench = own()
    delivery = killed_in_the_call(bench)
    bench.redis.flushall()
    rebuilt(bench)
    bench.start("second").ready("second")
    assert bench.wait_outcome(delivery, REPO, "dispatched", timeout=60)["maybe_duplicate"]


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


def new_delivery(bench, old):
    """The same event once more, as another: of a time after any assignment, whatever the clocks say."""
    event = {record.headers["delivery"]: record for record in bench.topic("events")}[old]
    new = str(uuid.uuid4())
    write(bench.kafka.brokers, bench.relay.topic("events"), event.key, event.value,
          event.headers | {"delivery": new}, timestamp_ms=int(time.time() * 1000) + 60_000)
    return new


def test_tasks_of_an_event_that_may_have_been_read_before_say_so(own):
    """Their twins may be stored already, and Redis may forget which was sent."""
    bench = own()
    old = bench.pull_request()
    bench.start().ready()
    bench.wait_outcomes(old, 4)
    new = new_delivery(bench, old)
    bench.wait_outcomes(new, 4)
    tasks = {(record.headers["delivery"], record.headers.get("reread"))
             for tier in ("l1", "l2", "l3", "l4") for record in bench.topic(f"dispatch.{tier}")}
    assert tasks == {(old, "1"), (new, None)}


def test_a_call_without_a_claim_is_marked_by_the_next_sender(own):
    """Redis has it all when the task is read again, but not that call."""
    bench = own().start(REDIS_ENDPOINT=f"127.0.0.1:{free_port()}").ready()
    bench.script({"path": "*/dispatches", "repo": REPO, "delay_ms": 10000})
    delivery = bench.pull_request()
    wait_for("the call to be under way", lambda: bench.metric("crcr_dispatches_in_flight", tier="L2") == 1)
    assert bench.metric("crcr_claims_total", tier="L2", verdict="none") == 1
    bench.relay.parts["dispatcher"].kill()
    bench.clear_script()
    bench.start("second").ready("second")
    assert bench.wait_outcome(delivery, REPO, "dispatched", timeout=60)["maybe_duplicate"]
    assert bench.metric("crcr_dispatches_maybe_duplicate_total", "second", tier="L2") == 1
    never_called = new_delivery(bench, delivery)  # of the same partition
    assert not any(one["maybe_duplicate"] for one in bench.wait_outcomes(never_called, 4))


def test_nothing_is_called_that_neither_redis_nor_kafka_would_know_of(redis_node, tmp_path):
    kafka = Kafka(tmp_path / "kafka")
    kafka.properties["offset.metadata.max.bytes"] = 4  # it refuses to be told, and works otherwise
    late = RedisServer(tmp_path / "late")
    bench = Bench(tmp_path / "bench", kafka.start(), redis_node)
    try:
        bench.start(REDIS_ENDPOINT=late.endpoint).ready()
        delivery = bench.pull_request()
        wait_for("calls to be held back", lambda: "calls_held_back" in bench.relay.parts["dispatcher"].text())
        assert http("GET", bench.relay.url("admin_dispatcher", "/healthz"))[0] == 200
        assert not bench.outcomes(delivery) and not bench.dispatches(delivery)
        late.start().client(bench.relay.prefix).set("crcr:epoch", "1")
        assert {one["outcome"] for one in bench.wait_outcomes(delivery, 4)} == {"dispatched"}
        assert bench.metric("crcr_claims_total", verdict="none") in (None, 0)
    finally:
        bench.close()
        late.stop()
        kafka.stop()


def test_an_older_event_does_not_follow_one_that_was_sent_without_a_claim(own, tmp_path):
    """Neither while Redis is away nor when it is back."""
    late = RedisServer(tmp_path / "late")
    bench = own().start(REDIS_ENDPOINT=late.endpoint).ready()
    number = next(bench.numbers)
    newer = bench.pull_request(number, updated_at="2026-11-21T04:00:00Z")
    assert {one["outcome"] for one in bench.wait_outcomes(newer, 4)} == {"dispatched"}
    older = bench.pull_request(number, updated_at="2026-11-21T03:00:00Z")
    assert {one["outcome"] for one in bench.wait_outcomes(older, 4)} == {"superseded"}
    late.start()
    try:
        redis = late.client(bench.relay.prefix)
        redis.set("crcr:epoch", "1")
        wait_for("Redis to learn of the order", lambda: len(list(redis.scan_iter("crcr:seq:*"))) == 4)
        bench.start("second", REDIS_ENDPOINT=late.endpoint).ready("second")
        assert bench.relay.parts["dispatcher"].stop() == 0
        oldest = bench.pull_request(number, updated_at="2026-11-21T02:00:00Z")
        assert {one["outcome"] for one in bench.wait_outcomes(oldest, 4)} == {"superseded"}
        assert not bench.dispatches(older) and not bench.dispatches(oldest)
        assert bench.relay.parts["second"].stop() == 0
    finally:
        late.stop()


def write_task(bench, like, **headers):
    """A task of L2 as that of an earlier delivery, but of a time after any assignment."""
    task = next(record for record in bench.topic("dispatch.l2") if record.headers["delivery"] == like)
    known = {name: value for name, value in task.headers.items() if name != "reread"}
    write(bench.kafka.brokers, bench.relay.topic("dispatch.l2"), task.key, task.value, known | headers,
          timestamp_ms=int(time.time() * 1000) + 60_000)


def test_the_twin_of_a_task_that_was_sent_is_not_sent_while_redis_is_away(own):
    """The broker has a record twice; both look new."""
    bench = own().start(REDIS_ENDPOINT=f"127.0.0.1:{free_port()}").ready()
    delivery = bench.pull_request()
    assert {one["outcome"] for one in bench.wait_outcomes(delivery, 4)} == {"dispatched"}
    write_task(bench, delivery)
    assert not bench.wait_outcome(delivery, REPO, "duplicate")["maybe_duplicate"]
    assert len(bench.dispatches(delivery, REPO)) == 1


def test_a_webhook_that_came_twice_is_sent_once_while_redis_is_away(own):
    """Ingest keeps both, for a webhook is stored before it is answered; the second has a place of its own in its lane."""
    bench = own().start(REDIS_ENDPOINT=f"127.0.0.1:{free_port()}").ready()
    number = next(bench.numbers)
    delivery = bench.pull_request(number)
    assert {one["outcome"] for one in bench.wait_outcomes(delivery, 4)} == {"dispatched"}
    bench.pull_request(number, delivery=delivery)
    again = bench.wait_outcomes(delivery, 8)
    assert [one["outcome"] for one in again].count("duplicate") == 4
    assert len(bench.dispatches(delivery, REPO)) == 1


def test_events_of_one_second_that_came_twice_are_sent_once_while_redis_is_away(own):
    """A batch that Kafka has twice: the second time none of its events is older than the last one that was sent."""
    bench = own().start(REDIS_ENDPOINT=f"127.0.0.1:{free_port()}").ready()
    number, second = next(bench.numbers), "2026-11-21T04:00:00Z"
    deliveries = [bench.pull_request(number, updated_at=second) for _ in range(3)]
    for delivery in deliveries:
        assert {one["outcome"] for one in bench.wait_outcomes(delivery, 4)} == {"dispatched"}
    for delivery in deliveries:
        bench.pull_request(number, updated_at=second, delivery=delivery)
    for delivery in deliveries:
        again = bench.wait_outcomes(delivery, 8)
        assert [one["outcome"] for one in again].count("duplicate") == 4
        assert len(bench.dispatches(delivery, REPO)) == 1


def test_the_twin_is_not_sent_either_when_redis_lost_the_claim(own):
    """And the claim that was taken for the twin says afterwards what became of the task."""
    bench = own().start().ready()
    delivery = bench.pull_request()
    assert {one["outcome"] for one in bench.wait_outcomes(delivery, 4)} == {"dispatched"}
    wait_for("the claim to be told", lambda: bench.redis.hget(claim_of(delivery), "state") == "done")
    bench.redis.delete(claim_of(delivery))
    write_task(bench, delivery)
    assert not bench.wait_outcome(delivery, REPO, "duplicate")["maybe_duplicate"]
    assert len(bench.dispatches(delivery, REPO)) == 1
    wait_for("the claim to be told again", lambda: bench.redis.hget(claim_of(delivery), "state") == "done")


def test_an_older_event_does_not_follow_one_that_was_sent_before_redis_went_away(own, tmp_path):
    node = RedisServer(tmp_path / "node").start()
    bench = own()
    node.client(bench.relay.prefix).set("crcr:epoch", "1")
    bench.start(REDIS_ENDPOINT=node.endpoint).ready()
    number = next(bench.numbers)
    newer = bench.pull_request(number, updated_at="2026-11-21T04:00:00Z")
    assert {one["outcome"] for one in bench.wait_outcomes(newer, 4)} == {"dispatched"}
    assert not bench.metric("crcr_claims_total", verdict="none")
    node.stop()
    older = bench.pull_request(number, updated_at="2026-11-21T03:00:00Z")
    assert {one["outcome"] for one in bench.wait_outcomes(older, 4)} == {"superseded"}
    assert not bench.dispatches(older)


def test_an_older_event_does_not_follow_one_that_was_sent_before_redis_was_emptied(own):
    """And Redis, which took the older one for the last of its pull request, is told better."""
    bench = own().start().ready()
    number = next(bench.numbers)
    newer = bench.pull_request(number, updated_at="2026-11-21T04:00:00Z")
    assert {one["outcome"] for one in bench.wait_outcomes(newer, 4)} == {"dispatched"}

    def lasts():
        return {bench.redis.get(key) for key in bench.redis.scan_iter(f"crcr:seq:*#{number}")}
    last = lasts()
    assert len(last) == 1
    bench.redis.flushall()
    older = bench.pull_request(number, updated_at="2026-11-21T03:00:00Z")
    assert {one["outcome"] for one in bench.wait_outcomes(older, 4)} == {"superseded"}
    assert not bench.dispatches(older)
    wait_for("Redis to be told", lambda: lasts() == last)
    bench.relay.parts["dispatcher"].stop()
    bench.start("second").ready("second")
    later = bench.pull_request(number, updated_at="2026-11-21T03:30:00Z")
    assert {one["outcome"] for one in bench.wait_outcomes(later, 4)} == {"superseded"}


def test_what_was_parked_is_marked_when_it_comes_back_and_redis_is_away(own):
    """Who parked it may have had to read its source again: there are two of it, and another may have sent one."""
    bench = own().start(REDIS_ENDPOINT=f"127.0.0.1:{free_port()}").ready()
    first = bench.pull_request()
    bench.wait_outcomes(first, 4)
    bench.script({"path": "*/dispatches", "repo": REPO, "status": 429, "retry_after": 12, "count": 1})
    delivery = str(uuid.uuid4())
    write_task(bench, first, delivery=delivery, seq="1900000000000:0:1")
    assert not bench.wait_outcome(delivery, REPO, "waiting")["maybe_duplicate"]
    assert bench.wait_outcome(delivery, REPO, "dispatched", timeout=90)["maybe_duplicate"]
