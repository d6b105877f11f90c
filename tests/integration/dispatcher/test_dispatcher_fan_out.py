"""One record for up to 16 downstreams of a tier: how it is written, what becomes of each of its
tasks, and how what is left of it leaves together."""
import concurrent.futures
import struct
import time
import uuid

import pytest

from lib.kafka import write
from lib.ports import free_port
from lib.processes import wait_for
from lib.relay import pull_request

MANY = [f"org-{number:02}/backend" for number in range(20)]
FEW = MANY[:4]
LIMITED = {"path": "*/dispatches", "status": 403, "body": {"message": "You have exceeded a secondary rate limit"}}


def allowlist(repos, tier="L2"):
    return f"{tier}: [{', '.join(repos)}]\n"


def repos_of(records):
    return [record.headers["repos"].split(",") for record in records]


def of(bench, topic, delivery):
    return [record for record in bench.topic(topic) if record.headers.get("delivery") == delivery]


def sent_once(bench, delivery, repos):
    sent = [one["repo"] for one in bench.dispatches(delivery)]
    return sorted(sent) == sorted(repos)


def test_an_event_is_one_record_for_16_downstreams_of_a_tier(own):
    bench = own(allowlist=allowlist(MANY) + allowlist(["org-four/backend"], "L4")).start().ready()
    delivery = bench.pull_request(number := next(bench.numbers))
    bench.wait_outcomes(delivery, 21)
    records = of(bench, "dispatch.l2", delivery)
    assert [len(repos) for repos in repos_of(records)] == [16, 4]
    assert sorted(sum(repos_of(records), [])) == MANY
    assert {record.key for record in records} == {f"pytorch/pytorch#{number}"}
    assert repos_of(of(bench, "dispatch.l4", delivery)) == [["org-four/backend"]]
    assert sent_once(bench, delivery, MANY + ["org-four/backend"])
    assert bench.metric("crcr_tasks_total", tier="L2") == 20


def batches(folder, topic):
    """(bytes, records) of each in the log of a broker (https://kafka.apache.org/documentation/#recordbatch)."""
    for log in folder.glob(f"data/{topic}-*/*.log"):
        data, at = log.read_bytes(), 0
        while at + 61 <= len(data) and (size := struct.unpack_from(">i", data, at + 8)[0]) > 0:
            yield size + 12, struct.unpack_from(">i", data, at + 57)[0]
            at += size + 12


def test_no_batch_is_larger_than_what_is_fetched_of_a_partition_at_once(own, kafka_node):
    """Of a larger one a broker gives nothing but to the first partition of a fetch: others would wait behind it."""
    bench = own(allowlist=allowlist(FEW))
    number = next(bench.numbers)
    bench.all_at_once([pull_request(number=number, pad="x" * 6000) for _ in range(200)])
    bench.start(CRCR_ROLES="router").ready()
    written = wait_for("the tasks", lambda: (found := list(batches(kafka_node.folder, bench.relay.topic("dispatch.l2")))) and
                       sum(records for _, records in found) == 200 and found, 60)
    assert max(records for _, records in written) > 1, "one a batch says nothing"
    assert max(size for size, _ in written) <= 65536


def test_each_downstream_of_a_record_gets_its_own_end(own):
    """Sent, refused, put off twice for one reason, put off for another."""
    done, refused, limited, also, failing = MANY[:5]
    bench = own(allowlist=allowlist([done, refused, limited, also, failing])).start().ready()
    bench.script({"path": "*/dispatches", "repo": refused, "status": 422, "body": {"message": "said no"}},
                 *({**LIMITED, "repo": repo, "count": 1, "retry_after": 15} for repo in (limited, also)),
                 {"path": "*/dispatches", "repo": failing, "status": 401})
    delivery = bench.pull_request()
    outcomes = {one["repo"]: one for one in bench.wait_outcomes(delivery, 5)}
    assert {repo: one["outcome"] for repo, one in outcomes.items()} == {
        done: "dispatched", refused: "failed", limited: "waiting", also: "waiting", failing: "waiting"}
    buried, = wait_for("the DLQ", lambda: of(bench, "dlq", delivery))
    assert repos_of([buried]) == [[refused]] and "said no" in buried.headers["error"]
    bench.clear_script()
    wait_for("the others", lambda: sent_once(bench, delivery, [done, limited, also, failing]))
    assert [one["attempt"] for one in bench.outcomes(delivery, failing) if one["outcome"] == "dispatched"] == [2]
    assert [one["attempt"] for one in bench.outcomes(delivery, also) if one["outcome"] == "dispatched"] == [1]


def test_what_waits_for_one_reason_is_put_off_as_one_record(own):
    bench = own(allowlist=allowlist(MANY)).start().ready()
    bench.script(*({"path": "*/dispatches", "repo": repo, "status": 503, "retry_after": 15} for repo in MANY))
    delivery = bench.pull_request()
    wait_for("each to have failed", lambda: len({one["repo"] for one in bench.outcomes(delivery)}) == 20)
    bench.clear_script()
    parked = wait_for("them to be put off", lambda: len(of(bench, "delay.1m", delivery)) >= 2 and of(bench, "delay.1m", delivery))
    assert sorted(len(repos) for repos in repos_of(parked)) == [4, 16] and sorted(sum(repos_of(parked), [])) == MANY
    assert {(record.headers["attempt"], record.headers["maybe_duplicate"]) for record in parked} == {("2", "answer_unseen")}
    back = wait_for("all of them", lambda: [one for one in bench.outcomes(delivery) if one["outcome"] == "dispatched"]
                    if len(bench.pairs(lambda one: one["outcome"] == "dispatched")) == 20 else None, 90)
    assert {(one["attempt"], one["maybe_duplicate"]) for one in back} == {(2, "answer_unseen")}


@pytest.mark.long
def test_what_waits_for_our_budget_is_put_off_as_a_record_for_each_delay_topic(own):
    """Each has a moment of its own, one every 20 s; none waits longer than the topic is long for another."""
    limits = {"CRCR_BUDGET_SCOPE": "app", "CRCR_BUDGET_POINTS_MINUTE": "20"}
    bench = own(allowlist=allowlist(MANY[:16]), environment=limits).start().ready()
    delivery = bench.pull_request()
    wait_for("each to have its turn", lambda: len({one["repo"] for one in bench.outcomes(delivery)}) == 16)
    delays = ("delay.10s", "delay.1m", "delay.10m")

    def put_off():
        records = [one for name in delays for one in of(bench, name, delivery)]
        sent = [one["repo"] for one in bench.outcomes(delivery) if one["outcome"] == "dispatched"]
        return {*sum(repos_of(records), []), *sent} == set(MANY[:16]) and records
    parked = wait_for("each to be sent or put off", put_off)
    repos = sum(repos_of(parked), [])
    assert len(parked) <= len(delays) and len(repos) == len(set(repos)) >= 14
    wait_for("the first to be sent", lambda: any(one["outcome"] == "dispatched" for one in bench.outcomes(delivery)))
    assert all("our own budget" in one.headers["error"] and one.headers["attempt"] == "1" for one in parked)


def test_what_was_not_begun_when_the_dispatcher_stops_is_a_record_of_its_own(own):
    """With Redis unavailable nothing else keeps the calls that were made from being made again."""
    nowhere = f"127.0.0.1:{free_port()}"
    bench = own(allowlist=allowlist(MANY[:12])).start(REDIS_ENDPOINT=nowhere).ready()
    slow, behind = MANY[0], MANY[1:12]
    number = next(bench.numbers)
    bench.script({"path": "*/dispatches", "repo": slow, "delay_ms": 15000})
    # The first one's call is under way at each downstream of `behind`: the second one's tasks wait in their lanes.
    for repo in behind:
        bench.script({"path": "*/dispatches", "repo": repo, "delay_ms": 3000, "count": 1})
    first = bench.pull_request(number, updated_at="2026-11-21T03:00:00Z")
    wait_for("the first one's calls", lambda: bench.metric("crcr_dispatches_in_flight", tier="L2") == 12)
    second = bench.pull_request(number, updated_at="2026-11-21T04:00:00Z")
    wait_for("all but one call of the second", lambda: len(bench.outcomes(second)) == 11)
    third = bench.pull_request(updated_at="2026-11-21T05:00:00Z")
    wait_for("all but one call of the third", lambda: len(bench.outcomes(third)) == 11)
    assert bench.relay.parts["dispatcher"].stop() == 0
    rest = [record for record in of(bench, "dispatch.l2", second) if record.headers["repos"] == slow]
    assert len(rest) == 1 and rest[0].key == f"pytorch/pytorch#{number}"
    assert bench.relay.parts["dispatcher"].text().count('"put_back"') == 1
    bench.clear_script()
    bench.start("second", REDIS_ENDPOINT=nowhere).ready("second")
    wait_for("the rest", lambda: sent_once(bench, second, MANY[:12]))
    for delivery in (first, second, third):
        bench.wait_outcomes(delivery, 12)
        assert sent_once(bench, delivery, MANY[:12])


def test_a_record_of_before_is_dispatched_also_when_a_new_one_says_the_same(own):
    """Senders are upgraded before routers: what an old router wrote is in the topics for 7 days."""
    bench = own(allowlist=allowlist(FEW)).start().ready()
    like = bench.pull_request()
    bench.wait_outcomes(like, 4)
    task, = of(bench, "dispatch.l2", like)
    delivery, number = str(uuid.uuid4()), next(bench.numbers)
    old = {name: value for name, value in task.headers.items() if name != "repos"} | {"delivery": delivery, "pr": str(number)}
    topic = bench.relay.topic("dispatch.l2")
    for repo in FEW[:2]:
        write(bench.kafka.brokers, topic, f"{repo}|pytorch/pytorch#{number}", task.value, old | {"repo": repo})
    write(bench.kafka.brokers, topic, f"pytorch/pytorch#{number}", task.value,
          task.headers | {"delivery": delivery, "pr": str(number)})
    outcomes = bench.wait_outcomes(delivery, 6)
    assert sent_once(bench, delivery, FEW)
    # A repeat says "dispatched" while nobody knows that the first one's outcome is stored.
    assert {one["outcome"] for one in outcomes} <= {"dispatched", "duplicate"}


def test_a_record_of_before_that_must_wait_comes_back_in_its_form(own):
    bench = own(allowlist=allowlist(FEW)).start().ready()
    like = bench.pull_request()
    bench.wait_outcomes(like, 4)
    task, = of(bench, "dispatch.l2", like)
    delivery, key = str(uuid.uuid4()), f"{FEW[0]}|pytorch/pytorch#{next(bench.numbers)}"
    old = {name: value for name, value in task.headers.items() if name != "repos"} | {"delivery": delivery, "repo": FEW[0]}
    bench.script({**LIMITED, "repo": FEW[0], "count": 1, "retry_after": 12})
    write(bench.kafka.brokers, bench.relay.topic("dispatch.l2"), key, task.value, old)
    bench.wait_outcome(delivery, FEW[0], "dispatched", timeout=90)
    parked, = of(bench, "delay.1m", delivery)
    assert parked.key == key and parked.headers["repo"] == FEW[0] and "repos" not in parked.headers


def test_two_that_group_an_event_in_another_way_send_it_once(own):
    bench = own(allowlist=allowlist(FEW)).start().ready()
    delivery = bench.pull_request()
    bench.wait_outcomes(delivery, 4)
    task, = of(bench, "dispatch.l2", delivery)
    for repos in (FEW[1:3], FEW[3:] + FEW[:1]):
        write(bench.kafka.brokers, bench.relay.topic("dispatch.l2"), task.key, task.value,
              task.headers | {"repos": ",".join(repos)})
    outcomes = bench.wait_outcomes(delivery, 8)
    assert sorted(one["outcome"] for one in outcomes) == ["dispatched"] * 4 + ["duplicate"] * 4
    assert sent_once(bench, delivery, FEW)


@pytest.mark.long
def test_replicas_that_come_and_go_without_redis_repeat_nothing(own):
    """Row 15 with Redis stopped: who leaves in order finishes its calls and hands over the rest, also beside others."""
    nowhere = f"127.0.0.1:{free_port()}"
    bench = own(allowlist=allowlist(MANY)).start(REDIS_ENDPOINT=nowhere).ready()
    bench.script({"path": "*/dispatches", "repo": MANY[0], "delay_ms": 4000}, {"path": "*/dispatches", "delay_ms": 100})
    deliveries = bench.pull_requests(20)
    for round_number in range(2):
        names = [f"replica-{round_number}-{i}" for i in range(3)]
        for name in names:
            bench.start(name, REDIS_ENDPOINT=nowhere)
        for name in names:
            bench.ready(name)
        deliveries += bench.pull_requests(10)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            assert list(pool.map(lambda name: bench.relay.parts[name].stop(), names)) == [0, 0, 0]
    wanted = len(deliveries) * len(MANY)
    wait_for("all of them", lambda: len(bench.dispatches()) >= wanted, 120)
    time.sleep(2)  # a repeat would come now
    assert len(bench.dispatches()) == wanted
    assert all(one["maybe_duplicate"] == "no_claim" for delivery in deliveries[:5] for one in bench.outcomes(delivery))
