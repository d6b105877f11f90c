"""What hostile downstreams can do to Redis: each fills its part of the view, never the room of claims."""
import json
import secrets
import time

import pytest

from lib.kafka import write_all
from lib.processes import wait_for
from lib.redis_server import RedisServer
from lib.relay import Relay, pull_request
from test_reporter import Job, Reporter

HOSTILE = [f"evil-{n}/backend" for n in range(5)]
ALLOWLIST = f"L2: [{', '.join(HOSTILE)}]\nL4:\n  - org/four: carol\n"
MAX_BYTES = 48 << 20
HOUR_MS = 3_600_000


class Loaded(Reporter):
    def __init__(self, folder, brokers):
        self.redis = RedisServer(folder / "redis").start()
        self.relay = Relay(folder, brokers, self.redis.endpoint, allowlist=ALLOWLIST)
        self.redis.topic_prefix = self.relay.prefix
        self.db = self.redis.client()
        self.relay.start_github()
        self.put("allowlist", "allowlist", ALLOWLIST.encode(), {"source": "test", "sha": "0" * 40, "fetched_ms": "1"})
        self.start(HUD_API_URL="")  # it would only slow it down

    def log(self):
        return self.relay.parts["reporter"].log.read_text()

    def refused(self):
        return [one for one in self.topic("dlq") if "its part of the view" in one.headers.get("error", "")]


@pytest.fixture
def reporter(kafka_node, tmp_path):
    one = Loaded(tmp_path, kafka_node.brokers)
    try:
        yield one
    finally:
        one.close()


def callbacks_of_an_hour(count):
    """What five L2 write in an hour, each job with all the text that the view takes of it."""
    began_ms = int(time.time() * 1000) - HOUR_MS
    text = [{"name": f"test_{n}", "message": secrets.token_hex(500)} for n in range(8)]
    for n in range(count):
        for repo in HOSTILE:
            delivery, at_ms = f"evil-{n:05}", began_ms + n * HOUR_MS // count
            headers = {"repo": repo, "level": "L2", "issuer": "test", "provenance": "token", "delivery": delivery,
                       "received_ms": str(at_ms), "pr": "7", "head_sha": f"{n:040x}", "dispatched_ms": str(at_ms - 1000)}
            body = {"event_type": "pull_request", "delivery_id": delivery, "payload": {}, "workflow": {
                "schema_version": "1", "name": "ci", "job_name": "build", "run_id": n + 1, "run_attempt": 1,
                "status": "completed", "conclusion": "failure", "failed_tests_detail": text}}
            yield f"{delivery}/{repo}", json.dumps(body), headers, 0


@pytest.mark.long
def test_five_hostile_back_ends_for_an_hour_leave_room_for_claims_and_for_the_others(reporter):
    relay = reporter.relay
    reporter.db.config_set("maxmemory", MAX_BYTES)
    for part in ("ingest", "dispatcher"):
        relay.start(part)
        relay.wait_ready(part)
    write_all(relay.kafka, relay.topic("callbacks"), callbacks_of_an_hour(1200))
    fullest, sent = 0, []

    def all_read():
        nonlocal fullest
        fullest = max(fullest, reporter.db.info("memory")["used_memory"])
        if len(sent) < 20:
            sent.append(relay.deliver(pull_request(number=len(sent) + 1))[2])
        return all(row["lag"] == 0 for row in relay.lag("crcr-fold"))
    wait_for("the flood to be folded", all_read, 240, every=0.5)
    assert reporter.refused(), "an hour of theirs is more than their part"
    print(f"flood: Redis was filled to {100 * fullest / MAX_BYTES:.0f} % at most, {len(reporter.refused())} of 6,000 jobs refused")
    assert fullest < 0.8 * MAX_BYTES

    def outcomes():
        rows = [json.loads(one.value) for one in reporter.topic("dispatches")]
        rows = [row for row in rows if row["delivery_id"] in sent and row["repo"] == "org/four"]
        return {row["delivery_id"] for row in rows} == set(sent) and rows
    rows = wait_for("the pull requests that came meanwhile to be dispatched", outcomes)
    assert {(row["outcome"], bool(row["maybe_duplicate"])) for row in rows} == {("dispatched", False)}
    Job(reporter).call("completed", 10, conclusion="success").wait_check()
    assert "view_full" not in reporter.log()


def test_where_redis_is_nearly_full_no_job_is_new_and_room_is_noticed(reporter):
    known = Job(reporter).call("in_progress", 10)
    known.wait_check("in_progress")
    reporter.db.config_set("maxmemory", int(reporter.db.info("memory")["used_memory"] / 0.85))

    def said_after_a_new_job(what):
        Job(reporter).call("in_progress", 10)  # it looks when there is something to fold, once a second
        return what in reporter.log()
    wait_for("the log to say so", lambda: said_after_a_new_job("view_full"), every=0.5)
    wait_for("a new job to be in the DLQ", reporter.refused)
    known.call("completed", 20, conclusion="success").wait_check("completed")
    reporter.db.config_set("maxmemory", 0)
    wait_for("the log to say so", lambda: said_after_a_new_job("view_has_room"), every=0.5)
    Job(reporter).call("in_progress", 10).wait_check("in_progress")
