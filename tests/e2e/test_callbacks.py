"""Callbacks from the request to the row and the check run. They are sent in the shape of the upstream's own action."""
import json
import os
import signal
import urllib.parse

import jwt
import pytest

from lib import upstream_action
from lib.vendor import Downstream, sha_of
from lib.kafka import read_topic
from lib.processes import wait_for
from lib.redis_server import RedisServer
from lib.relay import Relay

L2, L4 = "org-two/backend-two", "org-four/backend-four"
OLD, NEW = "k1:" + "0" * 32, "k2:" + "1" * 32
NAMES = ["linux: py3.12 / gpu", "12345", "0", "größer ✓", "اختبار الأجهزة", "🚀 rocket 👩🏽‍🔬", "%2F\\\"|", "a" * 500]


@pytest.fixture(scope="module")
def admitting(relay):
    Downstream(relay, "org-one/backend-one", relay.folder).wait_admitted()
    return relay


@pytest.fixture
def downstream(admitting, tmp_path):
    return lambda repo: Downstream(admitting, repo, tmp_path)


# ---- the lattice --------------------------------------------------------------------------------------
def test_duplicates_and_reversals_leave_one_row_and_one_check_run(relay, downstream):
    four = downstream(L4)
    payload = four.opened(6001)
    delivery = payload["delivery_id"]
    assert four.report(payload, "completed", "failure") == (200, {"ok": True, "status": "completed"})
    four.wait_rows(delivery, ("completed", "failure"))
    for status, conclusion in (("in_progress", None), ("completed", "failure"), ("in_progress", None)):
        assert four.report(payload, status, conclusion) == (200, {"ok": True, "status": "duplicate"})
    status, answer = four.report(payload, "completed", "success")
    assert status == 409 and "failure" in answer["detail"]
    [row] = four.wait_rows(delivery, ("completed", "failure"))
    assert row["pytorch_head_sha"] == sha_of(6001)
    wait_for("the check run", lambda: four.check_runs(sha_of(6001)))
    assert [(run["status"], run["conclusion"]) for run in four.check_runs(sha_of(6001))] == [("completed", "failure")]


@pytest.mark.parametrize("conclusion", [None, "", ...], ids=["null", "empty", "absent"])
def test_completed_without_a_conclusion_is_a_failure_that_says_why(relay, downstream, conclusion):
    """A step that fails before it sets the output that the report takes the conclusion from."""
    four, number = downstream(L4), {None: 6015, "": 6016, ...: 6017}[conclusion]
    payload = four.opened(number)
    assert four.report(payload, "in_progress")[0] == 200
    assert four.report(payload, "completed", conclusion) == (200, {
        "ok": True, "status": "completed", "warnings": ["workflow.conclusion is missing: counts as failure"]})
    [row] = four.wait_rows(payload["delivery_id"], ("completed", "failure"))
    assert row["no_conclusion"] is True
    says = lambda: [run for run in four.check_runs(sha_of(number)) if run["conclusion"] == "failure"]  # noqa: E731
    [run] = wait_for("the check run", says)
    assert run["output"]["title"] == "Failure: reported without a conclusion"
    assert "reported without a conclusion" in run["output"]["summary"]
    assert four.report(payload, "completed", "failure") == (200, {"ok": True, "status": "duplicate"})
    assert four.report(payload, "completed", "success")[0] == 409


def test_two_attempts_are_two_rows_and_only_the_first_was_queued(relay, downstream):
    two = downstream(L2)
    payload = two.opened(6002)
    for attempt, conclusion in (("1", "failure"), ("2", "success")):
        assert two.report(payload, "in_progress", run_attempt=attempt)[0] == 200
        assert two.report(payload, "completed", conclusion, run_attempt=attempt)[0] == 200
    first, second = two.wait_rows(payload["delivery_id"], ("completed", "failure"), ("completed", "success"))
    assert first["conclusion"] == "failure" and first["queue_time"] is not None
    assert second["conclusion"] == "success" and second["queue_time"] is None
    assert second["execution_time"] is not None


def test_a_job_of_actions_reports_on_its_own_run_only(relay, downstream):
    """Whoever holds a token of one run cannot speak for another run of the same repository."""
    two = downstream(L2)
    payload = two.opened(6003)
    assert two.report(payload, "in_progress", run_id="811", run_attempt="2")[0] == 200
    two.wait_rows(payload["delivery_id"], ("in_progress", None))
    for claims, says in (({"run_id": "812"}, "accepted is 812"), ({"run_attempt": "1"}, "accepted is 1")):
        status, answer = two.report(payload, "completed", "success", run_id="811", run_attempt="2", claims=claims)
        assert status == 403 and says in answer["detail"]
    assert two.report(payload, "completed", "failure", run_id="811", run_attempt="2")[0] == 200
    [row] = two.wait_rows(payload["delivery_id"], ("completed", "failure"))
    assert (row["run_id"], row["run_attempt"]) == ("811", 2)


def test_an_attempt_that_the_report_lacks_is_the_tokens(relay, downstream):
    two = downstream(L2)
    payload = two.opened(6014)
    assert two.report(payload, "completed", "success", run_id="813", run_attempt=..., check_run_id=...,
                      claims={"run_attempt": "3"})[0] == 200
    [row] = two.wait_rows(payload["delivery_id"], ("completed", "success"))
    assert (row["run_attempt"], row["check_run_id"], row["queue_time"]) == (3, "813-3", None)


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_any_name_of_a_job_comes_through_whole(relay, downstream, name):
    four, number = downstream(L4), 6100 + NAMES.index(name)
    payload = four.opened(number)
    assert four.report(payload, "in_progress", job_name=name)[0] == 200
    assert four.report(payload, "completed", "success", job_name=name)[0] == 200
    [row] = four.wait_rows(payload["delivery_id"], ("completed", "success"))
    assert row["job_name"] == name and row["execution_time"] is not None
    run = wait_for("the check run", lambda: [one for one in four.check_runs(sha_of(number))
                                             if one["status"] == "completed"])[0]
    assert run["name"].startswith(f"crcr/{L4}/PyTorch CI/")
    keys = {record.key for record in read_topic(relay.kafka, relay.topic("results"))
            if json.loads(record.value)["delivery_id"] == payload["delivery_id"]}
    parts = [row[part] for part in ("downstream_repo", "delivery_id", "workflow_name", "job_name", "check_run_id")]
    assert row["dynamoKey"] == "/".join(parts), "raw, as the HUD of today joins it"
    assert keys == {"/".join(urllib.parse.quote(part, safe="-._~") for part in parts)}


def test_a_completed_after_a_time_out_is_taken_and_wins(kafka_node, tmp_path):
    with own_relay(kafka_node, tmp_path, {"ZOMBIE_TIMEOUT_SECONDS": "2", "CRCR_SWEEP_SECONDS": "1"}) as relay:
        four = Downstream(relay, L4, tmp_path)
        payload = four.opened(6004)
        assert four.report(payload, "in_progress")[0] == 200
        four.wait_rows(payload["delivery_id"], ("timed_out", "timed_out"))
        assert four.report(payload, "completed", "success") == (200, {"ok": True, "status": "completed"})
        four.wait_rows(payload["delivery_id"], ("completed", "success"))
        wait_for("the check run to be green",
                 lambda: [run["conclusion"] for run in four.check_runs(sha_of(6004))] == ["success"])


# ---- what proves where a callback belongs -----------------------------------------------------------------
class own_relay:
    """A relay with a Redis of its own, for tests that restart or freeze parts of it."""

    def __init__(self, kafka_node, folder, environment=None):
        self.redis = RedisServer(folder / "redis").start()
        self.relay = Relay(folder, kafka_node.brokers, self.redis.endpoint, environment=environment)
        self.relay.redis_server = self.redis

    def __enter__(self):
        self.relay.start_all()
        Downstream(self.relay, "org-one/backend-one", self.relay.folder).wait_admitted()
        return self.relay

    def __exit__(self, *_):
        self.relay.stop()
        self.redis.stop()


def restart(relay, keys, *names):
    for name in names:
        assert relay.parts[name].stop() == 0
        relay.start(name, CRCR_CALLBACK_TOKEN_KEY=keys)
    for name in names:
        relay.wait_ready(name)
    Downstream(relay, "org-one/backend-one", relay.folder).wait_admitted()


def kid(payload):
    return jwt.get_unverified_header(payload["callback_token"])["kid"]


def test_token_keys_rotate_without_refusing_anyone(kafka_node, tmp_path):
    with own_relay(kafka_node, tmp_path, {"CRCR_CALLBACK_TOKEN_KEY": OLD}) as relay:
        two = Downstream(relay, L2, tmp_path)
        before = two.opened(6005)
        restart(relay, f"{NEW},{OLD}", "ingest", "dispatcher")
        after = two.opened(6006)
        assert (kid(before), kid(after)) == ("k1", "k2")
        for payload in (before, after):  # the old key is still accepted
            assert two.report(payload, "in_progress") == (200, {"ok": True, "status": "in_progress"})
        restart(relay, NEW, "ingest")
        status, answer = two.report(before, "completed", "success")
        assert status == 403 and "callback_token" in answer["detail"]
        assert two.report(after, "completed", "success")[0] == 200
        # The key is gone, the dispatch is not: without the token its record is asked.
        without = {name: value for name, value in before.items() if name != "callback_token"}
        assert two.report(without, "completed", "success")[0] == 200
        for payload in (before, after):
            two.wait_rows(payload["delivery_id"], ("completed", "success"))
        kinds = {record.headers["delivery"]: record.headers["provenance"]
                 for record in read_topic(relay.kafka, relay.topic("callbacks"))}
        assert kinds == {before["delivery_id"]: "record", after["delivery_id"]: "token"}


def test_target_and_labels_are_never_taken_from_the_echo(relay, downstream):
    three = downstream("org-three/backend-three")
    payload = three.opened(6007)
    forged = json.loads(json.dumps(payload))
    request = forged["payload"]["pull_request"]
    request["number"] = forged["payload"]["number"] = 1
    request["head"]["sha"] = "f" * 40
    request["labels"] = [{"name": "ciflow/crcr/npu"}]
    assert three.report(forged, "completed", "success")[0] == 200
    [row] = three.wait_rows(payload["delivery_id"], ("completed", "success"))
    assert (row["pr_number"], row["pytorch_head_sha"]) == (6007, sha_of(6007))
    assert not three.check_runs("f" * 40) and not three.check_runs(sha_of(6007))


def test_while_redis_hangs_callbacks_are_accepted_and_resolved_afterwards(kafka_node, tmp_path):
    with own_relay(kafka_node, tmp_path) as relay:
        four = Downstream(relay, L4, tmp_path)
        with_token, without = four.opened(6008), four.opened(6009)
        del without["callback_token"]
        wait_for("both dispatches to be known", lambda: all(
            relay.api(f"/api/crcr/deliveries/{one['delivery_id']}") for one in (with_token, without)))
        os.kill(relay.redis_server.process.pid, signal.SIGSTOP)
        try:
            for payload in (with_token, without):
                assert four.report(payload, "completed", "success") == (200, {"ok": True, "status": "completed"})
        finally:
            os.kill(relay.redis_server.process.pid, signal.SIGCONT)
        kinds = {record.headers["delivery"]: record.headers["provenance"]
                 for record in read_topic(relay.kafka, relay.topic("callbacks"))}
        assert kinds == {with_token["delivery_id"]: "token", without["delivery_id"]: "pending"}
        for number, payload in ((6008, with_token), (6009, without)):
            [row] = four.wait_rows(payload["delivery_id"], ("completed", "success"))
            assert (row["pr_number"], row["pytorch_head_sha"]) == (number, sha_of(number))
            wait_for("the check run", lambda number=number: four.check_runs(sha_of(number)))


# ---- nightly and periodic -----------------------------------------------------------------------------
@pytest.mark.parametrize("event_type", ["nightly", "periodic"])
def test_a_self_report_has_a_row_and_never_a_check_run(relay, downstream, event_type):
    four, sha = downstream(L4), sha_of(event_type)
    payload = upstream_action.self_report(event_type, sha)
    assert four.report(payload, "completed", "failure") == (200, {"ok": True, "status": "completed"})
    [row] = four.wait_rows(sha, ("completed", "failure"))
    assert (row["event_type"], row["pr_number"], row["queue_time"]) == (event_type, None, None)
    assert four.report(upstream_action.self_report(event_type, sha_of(event_type + "2")), "completed")[0] == 200
    four.wait_rows(sha_of(event_type + "2"), ("completed", None))
    assert four.report(payload, "in_progress")[0] == 400
    after = four.opened(6012 if event_type == "nightly" else 6013)  # what comes next has its check run
    assert four.report(after, "completed", "success")[0] == 200
    wait_for("the check run", lambda: four.check_runs(sha_of(after["payload"]["number"])))
    assert not four.check_runs(sha)


def test_the_commit_of_a_self_report_is_a_claim_that_no_check_run_follows(relay, downstream):
    """One build, a delivery id a job; it claims to be of the head of an open pull request."""
    four, head = downstream(L4), sha_of(6018)
    opened = four.opened(6018)
    ids = [f"build-7-job-{number}" for number in range(7)]
    for number, delivery in enumerate(ids):
        claim = {"event_type": "nightly", "delivery_id": delivery, "payload": {"head_sha": head}}
        assert four.report(claim, "completed", "failure" if number else "success", job_name=f"job {number}",
                           run_id="7007", check_run_id=f"7007-{number}")[0] == 200
    wait_for("the whole run under each of its deliveries", lambda: all(len(four.rows(one)) == 7 for one in ids))
    assert {row["pytorch_head_sha"] for row in four.rows(ids[0])} == {head}
    assert {row["delivery_id"] for row in four.rows(ids[3])} == set(ids)
    assert four.report(opened, "completed", "success", run_id="7008")[0] == 200
    runs = lambda: [(run["name"].split("/")[-1], run["conclusion"]) for run in four.check_runs(head)]  # noqa: E731
    wait_for("the check run of the dispatched job", lambda: runs() == [("test", "success")])


# ---- failed tests and verdict -------------------------------------------------------------------------
def test_failed_tests_and_verdict_are_cut_to_their_caps(relay, downstream):
    four = downstream(L4)
    payload = four.opened(6010)
    tests = [{"name": f"test_{i}", "classname": "TestOps", "message": "m" * 1100, "duration": 0.5} for i in range(1100)]
    tests[0]["stacktrace"] = "s" * 5000
    verdict = {"schema_version": 1, "category": "upstream", "confidence": "high", "summary": "é" * 1500,
               "suspected_upstream": {"pr": 6010, "commit": "abcdef0", "reason": "r" * 400},
               "evidence": [{"job": "j", "test": f"t{i}", "excerpt": "x" * 1200,
                             "log_url": "https://ci.example/log" + "g" * (500 if i == 0 else 0)}
                            for i in range(12)], "reproduced_on_retry": True}
    fields = upstream_action.workflow("completed", "failure", failed_tests_detail=tests, triage_verdict=verdict)
    assert four.report(payload, "completed", fields=fields)[0] == 200
    [row] = four.wait_rows(payload["delivery_id"], ("completed", "failure"))
    kept = json.loads(row["failed_tests_json"])
    assert [len(one["message"]) for one in kept] == [1024] * 20 and len(kept[0]["stacktrace"]) == 4096
    cut = json.loads(row["triage_verdict_json"])
    assert len(cut["summary"]) == 1000 and len(cut["suspected_upstream"]["reason"]) == 300
    assert len(json.dumps(cut, ensure_ascii=False).encode()) <= 16 * 1024
    assert 1 <= len(cut["evidence"]) <= 10 and {len(one["excerpt"]) for one in cut["evidence"]} == {1000}
    assert "log_url" not in cut["evidence"][0] and cut["evidence"][1]["log_url"] == "https://ci.example/log"
    [record] = [one for one in read_topic(relay.kafka, relay.topic("callbacks"))
                if one.headers["delivery"] == payload["delivery_id"]]
    assert len(json.loads(record.value)["workflow"]["failed_tests_detail"]) == 1100  # the topic has all
    run = wait_for("the check run", lambda: four.check_runs(sha_of(6010)))[0]
    assert "and 1080 more" in run["output"]["summary"] and len(run["output"]["summary"]) <= 65535


BROKEN_VERDICTS = [{"category": "gremlins"}, {"confidence": "sure"}, {"schema_version": 2}, {"summary": ""},
                   {"evidence": [{"log_url": "https://user@evil.example/"}]},
                   {"suspected_upstream": {"commit": "abcdef0"}}]


@pytest.mark.parametrize("fault", BROKEN_VERDICTS, ids=range(len(BROKEN_VERDICTS)))
def test_a_broken_verdict_is_dropped_and_the_callback_stays(relay, downstream, fault):
    two = downstream(L2)
    payload = two.opened(6200 + BROKEN_VERDICTS.index(fault))
    verdict = {"schema_version": 1, "category": "backend", "confidence": "high", "summary": "s", **fault}
    assert two.report(payload, "completed", "failure", triage_verdict=verdict,
                      artifact_url="https://ci.example/a")[0] == 200
    [row] = two.wait_rows(payload["delivery_id"], ("completed", "failure"))
    assert row["triage_verdict_json"] is None and row["artifact_url"] == "https://ci.example/a"
