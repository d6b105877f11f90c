"""What an operator brings back: webhooks that came to a closed door, parked dispatches, stored events."""
import datetime
import json

from lib.downstream import wait_idle
from lib.kafka import read_topic
from lib.processes import wait_for
from lib.relay import SECRET, http, pull_request

REPOS = {"org-one/backend-one", "org-two/backend-two", "org-three/backend-three", "org-four/backend-four"}
TWO = "org-two/backend-two"


def calls(relay, delivery, repo=None):
    """The repositories of the dispatches of a delivery, each as often as it was called."""
    return sorted(d["repo"] for d in relay.state()["dispatches"]
                  if d["client_payload"]["delivery_id"] == delivery and repo in (None, d["repo"]))


def outcomes(relay, delivery, repo):
    rows = [json.loads(r.value) for r in read_topic(relay.kafka, relay.topic("dispatches"))
            if r.headers["delivery"] == delivery and r.headers["repo"] == repo]
    return [row["outcome"] for row in rows]


def parked(relay, delivery):
    return [r for r in read_topic(relay.kafka, relay.topic("dlq"))
            if r.headers.get("delivery") == delivery and "resolves" not in r.headers]


def github_sends(relay, body):
    """A webhook from GitHub itself, which remembers what came of it; its GUID."""
    status, answer = http("POST", relay.url("github", "/_sim/webhook"),
                          json.dumps({"event": "pull_request", "payload": body}).encode(),
                          {"Content-Type": "application/json"})
    assert status == 201, answer
    return json.loads(answer)["guid"]


def test_what_came_while_the_front_door_was_down_is_brought_back_and_sent_once(fresh_relay):
    relay = fresh_relay()
    relay.sim_arguments = ["--webhook-url", relay.url("ingest", "/github/webhook"), "--webhook-secret", SECRET]
    relay.start_all()
    up = [github_sends(relay, pull_request(number=100 + n)) for n in range(5)]
    wait_for("those of the open door", lambda: all(set(calls(relay, d)) == REPOS for d in up), 60)
    relay.parts["ingest"].kill()
    down = [github_sends(relay, pull_request(number=200 + n)) for n in range(20)]
    wait_for("GitHub to have failed", lambda: all(
        row["status_code"] for row in relay.state()["deliveries"] if row["guid"] in down), 30)
    said = relay.ctl("redeliver", "--rate", "100").stdout
    assert "20 deliveries (20 attempts): 0 delivered, 0 already here, 20 published" in said, said
    wait_for("all that was lost", lambda: all(set(calls(relay, d)) == REPOS for d in down), 90)
    relay.start("ingest")
    relay.wait_ready("ingest")
    assert "20 already here, 0 published" in relay.ctl("redeliver").stdout
    assert all(calls(relay, d) == sorted(REPOS) for d in up + down), "one was sent twice"


def test_a_refused_dispatch_is_sent_after_its_replay_and_trace_tells_its_life(fresh_relay):
    relay = fresh_relay()
    relay.start_all()
    # Once a 5xx, which leaves an unknown call behind; then GitHub says never.
    relay.script({"method": "POST", "path": f"/repos/{TWO}/dispatches", "status": 502, "count": 1})
    relay.script({"method": "POST", "path": f"/repos/{TWO}/dispatches", "status": 422, "count": 1})
    _, _, delivery = relay.send_webhook(pull_request(number=300))
    wait_for("the refused dispatch in the queue", lambda: parked(relay, delivery), 60)
    assert calls(relay, delivery, TWO) == []
    rows = relay.ctl("dlq", "list", "--json", "--delivery", delivery).stdout.splitlines()
    row = json.loads(rows[0])
    assert len(rows) == 1 and row["class"] == "refused" and row["repo"] == TWO and "422" in row["error"]
    relay.ctl("dlq", "replay", row["position"])
    wait_for("the replay to be sent", lambda: calls(relay, delivery, TWO) == [TWO], 30)
    assert "0 replayed, 1 resolved before" in relay.ctl("dlq", "replay", "--delivery", delivery).stdout
    wait_for("its outcome", lambda: outcomes(relay, delivery, TWO)[-1:] == ["dispatched"], 30)
    assert calls(relay, delivery) == sorted(REPOS)
    trace = relay.ctl("trace", delivery).stdout
    place = 0
    for word in ("unknown  HTTP 502", "failed  HTTP 422", "parked  refused", "replayed from dlq", "dispatched  HTTP 204"):
        assert word in trace[place:], f"{word} is missing or too early:\n{trace}"
        place = trace.index(word, place)
    assert "by hand: dlq " in trace
    print(trace)


def test_trace_of_a_retry_the_queue_and_a_replay_ends_with_what_stands_in_redis_and_at_github(fresh_relay):
    four = "org-four/backend-four"
    relay = fresh_relay(environment={"CRCR_ONCALL_COMMENTS": "1"})
    relay.start_all()
    http("POST", relay.url("github", "/_sim/downstreams"),
         json.dumps([{"repo": four, "conclusion": "failure"}]).encode(), {"Content-Type": "application/json"})
    relay.script({"method": "POST", "path": f"/repos/{four}/dispatches", "status": 502, "count": 1})
    relay.script({"method": "POST", "path": f"/repos/{four}/dispatches", "status": 422, "count": 1})
    _, _, delivery = relay.send_webhook(pull_request(number=310))
    wait_for("the refused dispatch in the queue", lambda: parked(relay, delivery), 60)
    before = json.loads(relay.ctl("trace", "--json", delivery).stdout)
    stands = {row["repo"]: row for row in before["downstreams"]}[four]
    assert stands["state"] == "parked" and "422" in stands["why"], before
    relay.ctl("dlq", "replay", "--delivery", delivery)

    def life():
        seen = json.loads(relay.ctl("trace", "--json", delivery).stdout)
        done = [run for run in seen["check_runs"] if run["name"].startswith(f"crcr/{four}") and run["completed"]]
        return seen if len(done) == 2 and seen["comments"] else None
    seen = wait_for("check runs and comment", life, 90, every=1)
    outcomes_seen = [step["outcome"] for step in seen["steps"] if step.get("repo") == four]
    expected = ["routed", "unknown", "failed", "parked", "routed", "dispatched", "in_progress", "failure"]
    place = iter(outcomes_seen)
    assert all(outcome in place for outcome in expected), outcomes_seen
    assert {"repo": four, "what": "CI / test", "state": "completed failure", "known": "only here"} in seen["view"], seen["view"]
    at_github = {run["id"] for run in relay.state()["check_runs"]}
    assert {run["id"] for run in seen["check_runs"]} <= at_github
    comment, = [row for row in seen["comments"] if row["repo"] == four]
    assert comment["id"] in {row["id"] for row in relay.state()["comments"]} and comment["pr"] == 310
    text = relay.ctl("trace", "--pr", "310").stdout
    for line in ("replayed from dlq", "maybe a duplicate", "in Redis", "check runs at GitHub",
                 f"  {four}  #310  id {comment['id']}"):
        assert line in text, text


def test_a_refused_dispatch_leaves_no_claim_and_its_resolution_is_no_entry(fresh_relay):
    relay = fresh_relay()
    relay.start_all()
    relay.script({"method": "POST", "path": f"/repos/{TWO}/dispatches", "status": 422, "count": 1})
    _, _, delivery = relay.send_webhook(pull_request(number=301))
    wait_for("the refused dispatch in the queue", lambda: parked(relay, delivery), 60)
    entries = relay.metric("dispatcher", "crcr_dlq_total")
    assert entries == 1
    relay.ctl("dlq", "replay", "--class", "refused")
    wait_for("its outcome", lambda: outcomes(relay, delivery, TWO) == ["failed", "dispatched"], 30)
    assert calls(relay, delivery, TWO) == [TWO]
    assert relay.metric("dispatcher", "crcr_dlq_total") == entries


def test_a_replay_sends_nothing_twice_and_again_sends_all_once_more(fresh_relay):
    relay = fresh_relay()
    relay.start_all()
    older, newer = [relay.send_webhook(pull_request(number=400, action=action, updated_at=at))[2]
                    for action, at in (("opened", "2026-11-21T03:20:00Z"), ("synchronize", "2026-11-21T03:30:00Z"))]
    for delivery in (older, newer):
        wait_for("the dispatches", lambda d=delivery: set(calls(relay, d)) == REPOS, 60)
    relay.ctl("replay", "--topic", "events", "--pr", "400")
    wait_for("the repeats to be reported", lambda: all(
        "duplicate" in outcomes(relay, d, repo) for d in (older, newer) for repo in REPOS), 60)
    assert calls(relay, older) == calls(relay, newer) == sorted(REPOS)
    measured = relay.metric("dispatcher", "crcr_dispatch_latency_seconds_count")
    assert measured >= 8
    # A newer event of the pull request was sent: who says --again means the older one all the same.
    done = relay.ctl("replay", "--topic", "events", "--delivery", older, "--again", "--yes")
    assert "AGAIN" in done.stderr
    wait_for("the older event once more", lambda: calls(relay, older) == sorted(2 * list(REPOS)), 60)
    assert calls(relay, newer) == sorted(REPOS)
    assert "superseded" not in outcomes(relay, older, TWO)
    assert relay.metric("dispatcher", "crcr_dispatch_latency_seconds_count") == measured, "a replay is not our speed"


def test_again_sends_what_is_older_than_the_maximum_age(fresh_relay):
    relay = fresh_relay(environment={"CRCR_MAX_EVENT_AGE": "1h"})
    relay.sim_arguments = ["--webhook-secret", SECRET]
    relay.start_all()
    then = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=2)
    status, answer = http("POST", relay.url("github", "/_sim/webhook"), json.dumps({
        "event": "pull_request", "payload": pull_request(number=500), "status_code": 502,
        "delivered_at": then.isoformat(timespec="seconds").replace("+00:00", "Z")}).encode(),
        {"Content-Type": "application/json"})
    assert status == 201, answer
    delivery = json.loads(answer)["guid"]
    relay.ctl("redeliver")
    wait_for("the router to say that it is too old", lambda: outcomes(relay, delivery, TWO) == ["skipped"], 60)
    relay.ctl("replay", "--topic", "events", "--delivery", delivery, "--again", "--yes")
    wait_for("it to be sent all the same", lambda: calls(relay, delivery) == sorted(REPOS), 60)


def test_callbacks_are_replayed_without_a_trace_in_the_view(fresh_relay):
    relay = fresh_relay()
    relay.start_all()
    _, _, delivery = relay.send_webhook(pull_request(number=600))

    def view():
        return relay.api(f"/api/crcr/deliveries/{delivery}") or {"jobs": []}

    def rows():
        wait_for("fold to be through", lambda: all(row["lag"] == 0 for row in relay.lag("crcr-fold")
                                                   if row["topic"] == relay.topic("callbacks")))
        return [r for r in read_topic(relay.kafka, relay.topic("results")) if delivery in r.key]
    wait_for("the jobs to complete", lambda: [j["status"] for j in view()["jobs"]] == ["completed"] * 3, 90)
    wait_idle(relay)  # the view also tells their check runs
    before, known = view(), len(rows())
    relay.ctl("replay", "--topic", "callbacks", "--delivery", delivery)
    assert known and len(rows()) == 2 * known, "what the HUD refused comes to it so"
    assert view() == before


def test_rebuild_hud_brings_the_same_view_back_while_dispatching_goes_on(fresh_relay):
    relay = fresh_relay()
    relay.start_all()
    _, _, delivery = relay.send_webhook(pull_request(number=700))

    def view():
        return relay.api(f"/api/crcr/deliveries/{delivery}") or {"jobs": []}
    wait_for("the jobs to complete", lambda: [j["status"] for j in view()["jobs"]] == ["completed"] * 3, 90)
    before = view()
    said = relay.ctl("rebuild-hud", "--wait", "--timeout", "50s").stdout
    assert "will be rebuilt" in said and "the view is consistent" in said
    assert view() == before
    assert "the view is consistent" in relay.ctl("rebuild-hud", "--status").stdout
    _, _, later = relay.send_webhook(pull_request(number=701))
    wait_for("a dispatch afterwards", lambda: set(calls(relay, later)) == REPOS, 60)
