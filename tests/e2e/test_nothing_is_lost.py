"""Daemons end in the middle, by SIGKILL and by SIGTERM; every stored event still arrives."""
import pytest

from lib.kafka import read_topic
from lib.processes import wait_for
from lib.relay import pull_request

EVENTS = 30


def per_delivery(relay):
    """delivery → {repo: [dispatch, …]}"""
    seen = {}
    for dispatch in relay.state()["dispatches"]:
        payload = dispatch["client_payload"]
        seen.setdefault(payload["delivery_id"], {}).setdefault(dispatch["repo"], []).append(dispatch)
    return seen


def rows_completed(relay, delivery):
    """Of all three that report; a dispatch that was made twice has two runs, and so two rows."""
    view = relay.api(f"/api/crcr/deliveries/{delivery}") or {"jobs": []}
    return len({job["downstream_repo"] for job in view["jobs"]}) == 3 and \
        all(job["status"] == "completed" for job in view["jobs"])


# In tests/run it is row 1 of tests/faults that kills each of them, under load.
@pytest.mark.long
@pytest.mark.parametrize("victim", ["ingest", "dispatcher", "reporter"])
def test_kill_9_in_the_middle_loses_nothing(fresh_relay, victim):
    relay = fresh_relay()
    relay.start_all()
    deliveries = []
    for number in range(EVENTS):
        if number == EVENTS // 2:
            relay.parts[victim].kill()
            relay.start(victim)
            if victim == "ingest":
                relay.wait_ready("ingest")
        status, _, delivery = relay.send_webhook(pull_request(number=1000 + number))
        assert status == 202
        deliveries.append(delivery)
    wait_for("every event to reach all four downstreams",
             lambda: all(len(per_delivery(relay).get(d, {})) == 4 for d in deliveries), 90)
    wait_for("every callback to be in the view",
             lambda: all(rows_completed(relay, d) for d in deliveries), 90)
    twice = [calls for repos in per_delivery(relay).values() for calls in repos.values()
             if len(calls) > 1]
    unknown = relay.metric("dispatcher", "crcr_dispatches_maybe_duplicate_total")
    assert len(twice) <= unknown, "a second dispatch where the first was not unknown"
    assert victim == "dispatcher" or not twice


def test_sigterm_drains_without_loss_or_duplicate(fresh_relay):
    relay = fresh_relay()
    relay.start_all()
    deliveries = []
    for number in range(EVENTS):
        if number in (10, 20):
            for name in ("dispatcher", "reporter"):
                process = relay.parts[name]
                assert process.stop() == 0, process.tail()
                relay.start(name)
        status, _, delivery = relay.send_webhook(pull_request(number=2000 + number))
        assert status == 202
        deliveries.append(delivery)
    wait_for("every event to reach all four downstreams",
             lambda: all(len(per_delivery(relay).get(d, {})) == 4 for d in deliveries), 90)
    assert all(len(calls) == 1 for repos in per_delivery(relay).values() for calls in repos.values())
    wait_for("every callback to be in the view",
             lambda: all(rows_completed(relay, d) for d in deliveries), 90)


def test_two_dispatchers_share_the_work_without_a_duplicate(fresh_relay):
    relay = fresh_relay()
    relay.start_all()
    relay.start("dispatcher", instance="dispatcher2")
    relay.wait_ready("dispatcher2")
    deliveries = [relay.send_webhook(pull_request(number=3000 + n))[2] for n in range(EVENTS)]
    wait_for("every event to reach all four downstreams",
             lambda: all(len(per_delivery(relay).get(d, {})) == 4 for d in deliveries), 90)
    assert all(len(calls) == 1 for repos in per_delivery(relay).values() for calls in repos.values())


def test_a_refused_dispatch_is_parked_with_the_reason(fresh_relay):
    relay = fresh_relay()
    relay.start_all()
    relay.script({"method": "POST", "path": "/repos/org-two/backend-two/dispatches", "status": 404})
    _, _, delivery = relay.send_webhook(pull_request(number=4000))
    wait_for("the refused dispatch in the dead-letter queue", lambda: [
        r for r in read_topic(relay.kafka, relay.topic("dlq"))
        if r.headers.get("class") == "refused" and r.headers.get("delivery") == delivery])
    wait_for("the other three", lambda: set(per_delivery(relay).get(delivery, {})) >= {
        "org-one/backend-one", "org-three/backend-three", "org-four/backend-four"})


def test_a_5xx_is_unknown_and_sent_again_marked(fresh_relay):
    relay = fresh_relay()
    relay.start_all()
    relay.script({"method": "POST", "path": "/repos/org-two/backend-two/dispatches", "status": 502,
                  "count": 1})
    _, _, delivery = relay.send_webhook(pull_request(number=4001))
    wait_for("the second try to arrive",
             lambda: "org-two/backend-two" in per_delivery(relay).get(delivery, {}), 60)
    wait_for("it to be counted", lambda: relay.metric("dispatcher", "crcr_dispatches_maybe_duplicate_total") >= 1)


def test_retry_after_is_obeyed(fresh_relay):
    relay = fresh_relay()
    relay.start_all()
    relay.script({"method": "POST", "path": "/repos/org-two/backend-two/dispatches", "status": 429,
                  "headers": {"Retry-After": "3"}, "count": 1})
    _, _, delivery = relay.send_webhook(pull_request(number=4002))
    wait_for("the dispatch after the wait",
             lambda: "org-two/backend-two" in per_delivery(relay).get(delivery, {}), 60)
    times = [r["at_ms"] for r in relay.requests()
             if r["path"] == "/repos/org-two/backend-two/dispatches"]
    assert len(times) == 2 and times[1] - times[0] >= 3000
