"""A dispatcher beside one of before, on the same topics and the same Redis: what that one left there is understood, and it
understands what is left now."""
import json
import time
import uuid

from dispatcher_env import REPOS, SHA
from lib.processes import wait_for

AT, AT_MS = "2026-11-21T04:00:00.123Z", 1795233600123
FIELDS_READ_BEFORE = {"state", "owner", "until_ms", "outcome", "pr", "head_sha", "level", "dispatched_ms"}


def outcome_of_before(delivery, repo, tier, outcome):
    return {"delivery_id": delivery, "repo": repo, "tier": tier, "kind": "dispatch", "run_id": "", "event_type": "pull_request",
            "pr_number": 17, "head_sha": SHA, "outcome": outcome, "http_status": 202, "attempt": 3, "latency_ms": 530, "error": "",
            "at": AT, "maybe_duplicate": "answer_unseen", "action": "opened", "received_ms": AT_MS - 530}


def left_behind(redis, delivery, state, outcome=None, until_ms=1):
    """The claims of a delivery, in all tiers, as a dispatcher of before writes them."""
    for tier, repo in REPOS.items():
        claim = {"state": state, "owner": "before.1", "until_ms": until_ms, "pr": 17, "head_sha": SHA, "level": tier[1],
                 "event_type": "pull_request", "dispatched_ms": AT_MS}
        if outcome:
            claim["outcome"] = json.dumps(outcome_of_before(delivery, repo, tier, outcome))
        redis.hset(f"crcr:claim:{delivery}|{repo}|dispatch|", mapping=claim)


# What it left → outcomes of each task that comes twice, as (outcome, mark); calls of each.
CALLED, MARKED = ("dispatched", None), ("dispatched", "claim_expired")
KNOWN, KNOWN_MARKED, BEFORE = ("duplicate", None), ("duplicate", "claim_expired"), ("duplicate", "answer_unseen")
LEFT = {
    "nothing": (lambda redis, one: None, [CALLED, KNOWN], 1),
    "done, not published": (lambda redis, one: left_behind(redis, one, "done", "dispatched"), [BEFORE, BEFORE], 0),
    "done and published": (lambda redis, one: left_behind(redis, one, "done", "duplicate"), [BEFORE, BEFORE], 0),
    "unknown": (lambda redis, one: left_behind(redis, one, "unknown", "unknown"), [MARKED, KNOWN_MARKED], 1),
    "it died in the call": (lambda redis, one: left_behind(redis, one, "sending"), [MARKED, KNOWN_MARKED], 1),
    "it is calling": (lambda redis, one: left_behind(redis, one, "sending", until_ms=int(time.time() * 1000) + 6000),
                      [MARKED, KNOWN_MARKED], 1),
}


def test_what_a_dispatcher_of_before_left_is_understood_under_load(own):
    bench = own().start().ready()
    deliveries = {str(uuid.uuid4()): kind for _ in range(8) for kind in LEFT}
    for delivery, kind in deliveries.items():
        LEFT[kind][0](bench.redis, delivery)
        number = next(bench.numbers)
        for _ in range(2):
            bench.pull_request(number, delivery=delivery)
    for delivery, kind in deliveries.items():
        _, said, calls = LEFT[kind]
        outcomes = bench.wait_outcomes(delivery, 2 * len(REPOS))
        assert sorted((one["outcome"], one["maybe_duplicate"]) for one in outcomes) == sorted(said * len(REPOS), key=str), kind
        assert len(bench.dispatches(delivery)) == calls * len(REPOS), kind
        if not calls:
            assert {(one["at"], one["http_status"], one["attempt"]) for one in outcomes} == {(AT, 202, 3)}


def test_a_dispatcher_of_before_takes_what_is_done_as_done(own):
    """It asks for state and outcome, and takes one that it cannot read as a duplicate. An ingest of before needs the level."""
    bench = own().start().ready()
    delivery = bench.pull_request()
    bench.wait_outcomes(delivery, len(REPOS))
    for repo in REPOS.values():
        claim = bench.redis.hgetall(f"crcr:claim:{delivery}|{repo}|dispatch|")
        assert claim.keys() == FIELDS_READ_BEFORE and claim["state"] == "done" and claim["outcome"] == "204 1 "
    wait_for("nothing in hand", lambda: not bench.metric("crcr_tasks_in_hand"))
