"""Whatever a registered downstream reports, no daemon falls and nothing that was accepted gets lost: random reports from
odd parts, by a seed that a failure shows."""
import json
import random

import pytest

from lib import upstream_action
from lib.kafka import read_topic
from lib.processes import wait_for
from lib.redis_server import redis_server
from lib.relay import Relay, http, patient
from lib.vendor import Downstream
from openapi.validate import assert_conforms

SEED, REPORTS = 20261121, 240
REPOS = ["org-two/backend-two", "org-three/backend-three", "org-four/backend-four"]
ODD = [None, "", " ", "0", "-1", 0, 1, -1, 1.5, 2 ** 63, 10 ** 400, True, [], {}, [[]], {"a": None}, "\u202e\u200f", "\x01\x1b[31m",
       "🚀" * 200, "x" * 3000, "a/b:c%2F", "<script>@all</script>", "2026-02-30T00:00:00Z", "2026-11-21T03:20:00.123456Z",
       "9999-12-31T23:59:60+14:00", "0000-01-01T00:00:00Z", "https://a.example/" + "p" * 3000, "http://u@h/", "javascript:x"]
FIELDS = ["conclusion", "name", "url", "run_attempt", "job_name", "check_run_id", "run_id", "started_at", "completed_at",
          "test_results", "artifact_url", "failed_tests_detail", "triage_verdict", "environment", "run_complete", "extra"]
RESULTS = ["passed", "failed", "skipped", "total"]


@pytest.fixture(scope="module")
def relay(kafka_node, tmp_path_factory):
    folder = tmp_path_factory.mktemp("relay")
    with redis_server(folder / "redis") as redis:
        one = Relay(folder, kafka_node.brokers, redis, environment={"RATE_LIMIT_PER_MIN": "100000"})
        try:
            yield one.start_all()
        finally:
            one.stop()
        assert_conforms(folder)


def odd_workflow(chance):
    status = chance.choice(["in_progress", "completed"])
    fields = upstream_action.workflow(status, chance.choice(["success", "failure", "cancelled", "timed_out", "stale"])
                                      if status == "completed" else None, run_id=str(chance.randrange(1, 40)))
    for name in chance.sample(FIELDS, chance.randrange(5)):
        fields[name] = chance.choice(ODD)
    if chance.random() < 0.3:
        fields["test_results"] = {name: chance.choice(ODD) for name in chance.sample(RESULTS, 2)}
    if chance.random() < 0.3:
        row = {name: chance.choice(ODD) for name in ("name", "classname", "message", "stacktrace", "duration")}
        fields["failed_tests_detail"] = [row] * chance.choice([1, 30])
    if chance.random() < 0.3:
        fields["triage_verdict"] = {"schema_version": 1, "category": "backend", "confidence": "low", "summary": "s",
                                    chance.choice(["evidence", "analyzer", "analyzed_at", "summary"]): chance.choice(ODD)}
    return fields


def test_no_odd_report_fells_a_daemon_or_gets_lost(relay, tmp_path):
    chance = random.Random(SEED)
    downstreams = [Downstream(relay, repo, tmp_path) for repo in REPOS]
    downstreams[0].wait_admitted()
    payloads = {one.repo: one.opened(7100 + i, labels=["ciflow/crcr/npu"]) for i, one in enumerate(downstreams)}
    statuses, accepted = [], set()
    for number in range(REPORTS):
        one = chance.choice(downstreams)
        payload = payloads[one.repo]
        if chance.random() < 0.2:
            payload = upstream_action.self_report(chance.choice(["nightly", "periodic"]), f"{number:040x}")
        fields = odd_workflow(chance)
        body = json.dumps({**payload, "workflow": fields, "payload": chance.choice([payload["payload"], {}, None, []])})
        claims = upstream_action.run_claims(fields)  # of a run that may be odd, but is the one reported on
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {one.token(**claims)}"}
        status, answer = patient(lambda: http("POST", relay.url("ingest", "/github/callback"), body.encode(), headers))
        statuses.append(status)
        assert status in (200, 400, 409) and ("detail" in json.loads(answer)) == (status != 200), (SEED, number, body)
        if status == 200:
            accepted.add((payload["delivery_id"], one.repo))
    assert statuses.count(200) > REPORTS / 3 and statuses.count(400) > 10

    def is_idle():
        return all(row.get("lag") in (0, None) for row in relay.lag())
    wait_for("all to be done with", is_idle, 90)
    for name, process in relay.parts.items():
        assert process.running() and "Sanitizer" not in process.text(), f"seed {SEED}: {process.tail()}"
    rows = [json.loads(record.value) for record in read_topic(relay.kafka, relay.topic("results"))]
    assert accepted <= {(row["delivery_id"], row["downstream_repo"]) for row in rows}
    assert read_topic(relay.kafka, relay.topic("dlq")) == []
    for repo in REPOS:
        assert relay.api(f"/api/crcr/repos/{repo}")["jobs"]
    for payload in payloads.values():
        assert relay.api(f"/api/crcr/deliveries/{payload['delivery_id']}")["jobs"]
        number = payload["payload"]["pull_request"]["number"]
        assert relay.api(f"/api/crcr/prs/{number}")["deliveries"]
    assert relay.api("/api/crcr/summary")["repos"]
    assert len(relay.state()["hud"]) == len(rows)
