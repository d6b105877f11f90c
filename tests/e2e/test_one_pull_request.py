"""The main job: one webhook, four tiers, and what each promises."""
import hashlib
import json

import pytest

from lib.kafka import read_topic
from lib.processes import wait_for
from lib.relay import pull_request

SHA = hashlib.sha1(b"one pull request").hexdigest()
REPOS = {1: "org-one/backend-one", 2: "org-two/backend-two", 3: "org-three/backend-three",
         4: "org-four/backend-four"}


@pytest.fixture(scope="module")
def delivered(relay):
    """A pull request labelled for the L3 device, and everything that followed from it."""
    body = pull_request(number=171269, sha=SHA, labels=["ciflow/crcr/npu"])
    status, answer, delivery = relay.deliver(body)
    assert (status, answer) == (202, {"ok": True, "delivery_id": delivery})

    def all_there():
        runs = check_runs(relay)
        rows = jobs(relay, delivery)
        return (len(runs) == 3 and all(run["status"] == "completed" for run in runs)
                and len(rows) == 3 and all(row["status"] == "completed" for row in rows))
    wait_for("three completed rows, two completed check runs of jobs and the aggregate", all_there, 60)
    return delivery


def check_runs(relay, sha=SHA):
    return [run for run in relay.state()["check_runs"] if run["head_sha"] == sha]


def jobs(relay, delivery):
    return (relay.api(f"/api/crcr/deliveries/{delivery}") or {"jobs": []})["jobs"]


def test_every_tier_is_dispatched_exactly_once(relay, delivered):
    sent = sorted(d["repo"] for d in relay.state()["dispatches"]
                  if d["client_payload"]["delivery_id"] == delivered)
    assert sent == sorted(REPOS.values())


def test_a_dispatch_carries_the_webhook_and_a_token(relay, delivered):
    for dispatch in relay.state()["dispatches"]:
        payload = dispatch["client_payload"]
        assert dispatch["event_type"] == payload["event_type"] == "pull_request"
        assert payload["payload"]["pull_request"]["head"]["sha"] == SHA
        assert payload["callback_token"].count(".") == 2


def test_each_token_is_for_one_repository_and_one_permission(relay, delivered):
    """deploy/downstream/SECURITY.md: what the App is used for, and on whose repository."""
    asked = [one["body"] for one in relay.requests() if one["path"].endswith("/access_tokens")]
    used = {}
    for body in asked:
        assert set(body) == {"repositories", "permissions"} and len(body["repositories"]) == len(body["permissions"]) == 1, body
        [name], [[permission, how]] = body["repositories"], body["permissions"].items()
        used.setdefault(name, set()).add(f"{permission}: {how}")
    upstream, yours = used.pop("pytorch"), {repo.split("/")[1]: level for level, repo in REPOS.items()}
    assert {"contents: read", "checks: write"} <= upstream <= {"contents: read", "checks: write", "pull_requests: read"}
    assert set(yours) <= set(used)
    for name, permissions in used.items():
        assert "contents: write" in permissions and permissions <= {"contents: write", "actions: write"}, name
    assert "actions: write" in used["backend-four"], "an aggregate ends with the run that is asked for"


def test_l1_has_no_row_and_no_check_run(relay, delivered):
    assert REPOS[1] not in {row["downstream_repo"] for row in jobs(relay, delivered)}
    assert not [run for run in check_runs(relay) if REPOS[1] in run["name"]]


def test_l2_has_a_row_and_no_check_run(relay, delivered):
    assert [row["conclusion"] for row in jobs(relay, delivered)
            if row["downstream_repo"] == REPOS[2]] == ["success"]
    assert not [run for run in check_runs(relay) if REPOS[2] in run["name"]]


@pytest.mark.parametrize("level", [3, 4])
def test_l3_with_its_label_and_l4_have_one_check_run(relay, delivered, level):
    runs = [run for run in check_runs(relay) if run["name"].startswith(f"crcr/{REPOS[level]}/")]
    assert [(run["status"], run["conclusion"]) for run in runs] == [("completed", "success")]


def test_l4_has_one_aggregate_that_ends_with_the_run_and_l3_none(relay, delivered):
    assert not [run for run in check_runs(relay) if run["name"] == f"crcr/{REPOS[3]}"]
    [run] = [run for run in check_runs(relay) if run["name"] == f"crcr/{REPOS[4]}"]
    assert (run["status"], run["conclusion"], run["external_id"]) == \
        ("completed", "success", f"d:{delivered}:171269")
    assert "1 job" in run["output"]["title"] and "GitHub says that run" in run["output"]["summary"]


def test_l3_without_the_label_has_no_check_run(relay, delivered):
    sha = hashlib.sha1(b"no label").hexdigest()
    _, _, delivery = relay.send_webhook(pull_request(number=99, sha=sha))
    wait_for("three completed rows",
             lambda: [row["status"] for row in jobs(relay, delivery)] == ["completed"] * 3, 60)
    wait_for("the L4 check run", lambda: [run for run in check_runs(relay, sha)
                                          if run["status"] == "completed"], 30)
    assert {run["name"].split("/")[2] for run in check_runs(relay, sha)} == {"backend-four"}


def test_hud_api_got_the_rows_of_l2_and_up(relay, delivered):
    def seen():
        return {record["trusted"]["verified_repo"] for record in relay.state()["hud"]
                if record["untrusted"]["callback_payload"]["delivery_id"] == delivered}
    wait_for("the HUD API to have three repositories", lambda: len(seen()) == 3)
    assert seen() == {REPOS[2], REPOS[3], REPOS[4]}


def test_hud_row_has_times_and_target_from_trusted_data(relay, delivered):
    for row in jobs(relay, delivered):
        assert row["pytorch_head_sha"] == SHA
        assert row["pr_number"] == 171269
        assert row["queue_time"] is not None and row["queue_time"] >= 0
        assert row["execution_time"] is not None and row["execution_time"] >= 0


def test_events_topic_reads_like_a_log(relay, delivered):
    record = [r for r in read_topic(relay.kafka, relay.topic("events"))
              if r.headers.get("delivery") == delivered]
    assert len(record) == 1
    assert record[0].key == "pytorch/pytorch#171269"
    headers = dict(record[0].headers)
    assert int(headers.pop("received_ms")) > 0
    assert headers == {"event": "pull_request", "action": "opened", "delivery": delivered,
                       "pr": "171269", "head_sha": SHA, "source": "webhook"}


def test_dispatches_topic_tells_the_outcome_of_each_call(relay, delivered):
    import json
    def outcomes():
        return {json.loads(r.value)["repo"]: json.loads(r.value)["outcome"]
                for r in read_topic(relay.kafka, relay.topic("dispatches"))
                if r.headers.get("delivery") == delivered}
    wait_for("four outcomes", lambda: len(outcomes()) == 4)
    assert outcomes() == {repo: "dispatched" for repo in REPOS.values()}


def test_nothing_went_to_the_dead_letter_queue(relay, delivered):
    assert read_topic(relay.kafka, relay.topic("dlq")) == []


def test_trace_tells_the_whole_life(relay, delivered):
    text = relay.ctl("trace", delivered).stdout
    for word in ["events", *REPOS.values(), "dispatched", "in_progress", "success"]:
        assert word in text, text


def test_lag_is_zero_when_all_is_done(relay, delivered):
    def is_idle():
        rows = relay.lag()
        return rows and all(row.get("lag") in (0, None) for row in rows)
    wait_for("no lag in any group", is_idle)


def test_the_same_delivery_again_dispatches_nothing(relay, delivered):
    before = len(relay.state()["dispatches"])
    body = pull_request(number=171269, sha=SHA, labels=["ciflow/crcr/npu"])
    assert relay.send_webhook(body, delivery=delivered)[0] == 202
    wait_for("four outcomes more, all duplicate", lambda: len(
        [r for r in read_topic(relay.kafka, relay.topic("dispatches"))
         if b'"duplicate"' in r.value]) == 4)
    assert len(relay.state()["dispatches"]) == before
