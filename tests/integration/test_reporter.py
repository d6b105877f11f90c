"""crcr-reporter alone, on real Kafka and Redis and the simulated GitHub and HUD: facts go in through
the topics, and what follows is looked at from outside."""
import hashlib
import http.server
import itertools
import json
import threading
import time

import pytest

from lib.kafka import configure_topic, read_topic, write
from lib.processes import wait_for
from lib.redis_server import RedisServer, set_user
from lib.relay import Relay, http as ask, pull_request

ALLOWLIST = b"""\
L2: [org/two]
L3:
  npu: { org/three: [alice] }
L4: [{ org/four: carol }, { org/five: dave }]
"""
_numbers = itertools.count(1)


class Reporter:
    """A reporter with its own topics and Redis."""

    def __init__(self, folder, brokers, prefix=None):
        self.redis = RedisServer(folder / "redis").start()
        self.relay = Relay(folder, brokers, self.redis.endpoint, prefix=prefix)
        self.redis.topic_prefix = self.relay.prefix
        self.relay.start_github()
        self.put("allowlist", "allowlist", ALLOWLIST,
                 {"source": "test", "sha": "0" * 40, "fetched_ms": "1"})
        self.start()

    def start(self, **environment):
        self.relay.start("reporter", **environment)
        self.relay.wait_ready("reporter")

    def close(self):
        self.relay.stop()
        self.redis.stop()

    def put(self, topic, key, value, headers=None, **how):
        if not isinstance(value, bytes):
            value = json.dumps(value).encode()
        write(self.relay.kafka, self.relay.topic(topic), key, value, headers, **how)

    def topic(self, name):
        return read_topic(self.relay.kafka, self.relay.topic(name))

    def result(self, delivery, attempt="1"):
        """The last record in results of that delivery's job."""
        rows = [json.loads(r.value) for r in self.topic("results") if f"/{delivery}/" in r.key]
        rows = [row for row in rows if str(row["run_attempt"]) == attempt]
        return rows[-1] if rows else None

    def checks(self, sha):
        return [run for run in self.relay.state()["check_runs"] if run["head_sha"] == sha]

    def posts(self, delivery):
        return [post for post in self.relay.state()["hud"]
                if post["untrusted"]["callback_payload"]["delivery_id"] == delivery]


class Job:
    """A job of one delivery, and the callbacks that it sends."""
    event_type = "pull_request"

    def __init__(self, reporter, repo="org/four", level="L4", pr=7, issuer="test", **workflow):
        number = next(_numbers)
        self.reporter, self.repo, self.level, self.pr, self.issuer = reporter, repo, level, pr, issuer
        self.delivery = f"d-{number}-{time.time_ns()}"
        self.sha = hashlib.sha1(self.delivery.encode()).hexdigest()
        self.started_ms = int(time.time() * 1000) - 60_000
        self.workflow = {"schema_version": "1", "name": "ci", "job_name": "build",
                         "run_id": number * 1000, "run_attempt": 1, **workflow}

    def call(self, status, at_ms, provenance="token", more=None, **workflow):
        headers = {"repo": self.repo, "level": self.level, "issuer": self.issuer,
                   "provenance": provenance, "delivery": self.delivery,
                   "received_ms": str(self.started_ms + at_ms)}
        if provenance != "pending":
            headers |= {"pr": str(self.pr), "head_sha": self.sha,
                        "dispatched_ms": str(self.started_ms)}
        body = {"event_type": self.event_type, "delivery_id": self.delivery, "payload": {},
                "workflow": {**self.workflow, "status": status, **workflow}}
        self.reporter.put("callbacks", f"{self.delivery}/{self.repo}", body, {**headers, **(more or {})},
                          compression="gzip" if more else "none")
        return self

    def outcome(self, outcome, at_ms=0, **fields):
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime((self.started_ms + at_ms) / 1000))
        self.reporter.put("dispatches", f"{self.delivery}/{self.repo}", {
            "delivery_id": self.delivery, "repo": self.repo, "tier": self.level,
            "kind": "dispatch", "event_type": "pull_request", "pr_number": self.pr,
            "head_sha": self.sha, "outcome": outcome, "http_status": 204, "attempt": 1,
            "latency_ms": 5, "error": None, "at": f"{at}.000Z", "maybe_duplicate": False, **fields},
            {"delivery": self.delivery, "repo": self.repo})
        return self

    def wait_check(self, status="completed", count=1):
        def there():
            runs = self.reporter.checks(self.sha)
            return runs if len(runs) == count and runs[-1]["status"] == status else None
        return wait_for(f"{count} check run(s), the last {status}", there)

    def wait_result(self, status="completed", attempt="1"):
        def there():
            row = self.reporter.result(self.delivery, attempt)
            return row if row and row["status"] == status else None
        return wait_for(f"the result to be {status}", there)


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Reporter(tmp_path_factory.mktemp("reporter"), kafka_node.brokers)
    try:
        yield one
    finally:
        one.close()


def wait_idle(reporter):
    """Every record of every topic that the reporter reads is done with."""
    groups = ("crcr-fold", "crcr-reconcile", "crcr-forward")
    wait_for("no lag", lambda: all(row.get("lag") in (0, None) for row in reporter.relay.lag(*groups)))


def test_a_job_becomes_result_hud_post_and_check_run(reporter):
    job = Job(reporter, issuer="https://token.actions.githubusercontent.com").call("in_progress", 1500)
    job.wait_check("in_progress")
    job.call("completed", 11_750, conclusion="failure",
             test_results={"passed": 8, "failed": 1, "skipped": 1},
             failed_tests_detail=[{"name": "test_@all", "message": "<b>*boom*</b>"}])
    run = job.wait_check()[0]
    assert run["name"] == "crcr/org/four/ci/build"
    assert run["conclusion"] == "failure"
    assert run["external_id"] == f"{job.workflow['run_id']}:7"
    assert run["details_url"] == f"https://github.com/org/four/actions/runs/{job.workflow['run_id']}"
    assert "@all" not in run["output"]["summary"] and "<b>" not in run["output"]["summary"]
    row = job.wait_result()
    assert (row["queue_time"], row["execution_time"]) == (1.5, 10.25)
    assert (row["total_tests"], row["failed_tests"]) == (10, 1)
    assert row["pytorch_head_sha"] == job.sha and row["downstream_repo_level"] == "L4"
    posts = wait_for("two posts", lambda: reporter.posts(job.delivery)[1:] and
                     reporter.posts(job.delivery))
    assert posts[-1]["trusted"] == {"ci_metrics": {"queue_time": 1.5, "execution_time": 10.25},
                                    "verified_repo": "org/four", "downstream_repo_level": "L4"}
    view = reporter.relay.api(f"/api/crcr/deliveries/{job.delivery}")
    assert [(one["status"], one["conclusion"]) for one in view["jobs"]] == [("completed", "failure")]
    assert job.delivery in json.dumps(reporter.relay.api("/api/crcr/prs/7"))


def test_reversed_and_repeated_callbacks_end_the_same(reporter):
    job = Job(reporter).call("completed", 9000, conclusion="success")
    job.wait_check()
    for _ in range(3):
        job.call("in_progress", 2000).call("completed", 9500, conclusion="failure")
    wait_idle(reporter)
    row = job.wait_result()
    assert (row["status"], row["conclusion"]) == ("completed", "success")
    assert (row["queue_time"], row["execution_time"]) == (2.0, 7.0)
    assert [(run["status"], run["conclusion"]) for run in reporter.checks(job.sha)] == [("completed", "success")]


def test_a_new_attempt_gets_its_own_check_run(reporter):
    job = Job(reporter).call("completed", 2000, conclusion="failure")
    job.wait_check()
    job.call("completed", 9000, conclusion="success", run_attempt=2)
    runs = job.wait_check(count=2)
    assert sorted(run["conclusion"] for run in runs) == ["failure", "success"]
    assert job.wait_result(attempt="2")["queue_time"] is None


def test_l2_has_a_result_and_no_check_run(reporter):
    job = Job(reporter, "org/two", "L2").call("completed", 2000, conclusion="success")
    job.wait_result()
    wait_idle(reporter)
    assert reporter.checks(job.sha) == []


def test_a_check_run_that_was_started_is_ended_after_a_demotion(reporter):
    job = Job(reporter).call("in_progress", 1000)
    job.wait_check("in_progress")
    job.level = "L2"
    assert job.call("completed", 2000, conclusion="success").wait_check()[0]["conclusion"] == "success"


def test_a_push_without_a_pull_request_has_a_result_and_no_check_run(reporter):
    job = Job(reporter, pr=0).call("completed", 2000, conclusion="success")
    job.wait_result()
    wait_idle(reporter)
    assert reporter.checks(job.sha) == []


def label_event(job, action, labels, label, second):
    body = pull_request(action=action, number=job.pr, sha=job.sha, labels=labels,
                        updated_at=f"2026-11-21T03:20:{second:02}Z", label={"name": label})
    job.reporter.put("events", f"pytorch/pytorch#{job.pr}", body, {
        "event": "pull_request", "action": action, "delivery": f"l-{next(_numbers)}",
        "pr": str(job.pr), "head_sha": job.sha, "received_ms": str(int(time.time() * 1000)),
        "source": "webhook"})


def test_l3_gets_its_check_run_with_the_label_that_comes_later(reporter):
    job = Job(reporter, "org/three", "L3", pr=33).call("completed", 2000, conclusion="success")
    job.wait_result()
    wait_idle(reporter)
    assert reporter.checks(job.sha) == []
    label_event(job, "labeled", ["ciflow/crcr/other"], "ciflow/crcr/other", 1)
    wait_idle(reporter)
    assert reporter.checks(job.sha) == []
    label_event(job, "labeled", ["ciflow/crcr/npu"], "ciflow/crcr/npu", 2)
    assert job.wait_check()[0]["conclusion"] == "success"


def test_an_unlabeled_pull_request_starts_no_new_check_run_but_ends_the_old(reporter):
    job = Job(reporter, "org/three", "L3", pr=34)
    label_event(job, "labeled", ["ciflow/crcr/npu"], "ciflow/crcr/npu", 1)
    wait_idle(reporter)
    job.call("in_progress", 1000).wait_check("in_progress")
    label_event(job, "unlabeled", [], "ciflow/crcr/npu", 2)
    wait_idle(reporter)
    job.call("in_progress", 1000, job_name="second", check_run_id="other")
    job.call("completed", 2000, conclusion="success").wait_check()
    wait_idle(reporter)
    assert len(reporter.checks(job.sha)) == 1


def test_pending_waits_for_its_dispatch(reporter):
    job = Job(reporter).call("completed", 3000, provenance="pending", conclusion="success")

    def put_off():  # after 10 s
        return [one for one in reporter.topic("rdelay.1m") if one.headers.get("delivery") == job.delivery]
    wait_for("the callback to wait", lambda: reporter.relay.metric("reporter", "crcr_facts_waiting") > 0 or put_off())
    assert reporter.result(job.delivery) is None
    job.outcome("dispatched")
    wait_for("its end", lambda: reporter.result(job.delivery) or put_off())
    for one in put_off():  # what the role `delay` does, which does not run here
        reporter.put("callbacks", one.key, one.value, one.headers)
    assert job.wait_check()[0]["conclusion"] == "success"
    assert job.wait_result()["pytorch_head_sha"] == job.sha


def test_poison_goes_to_the_dead_letter_queue_and_blocks_nothing(reporter):
    before = len(reporter.topic("dlq"))
    reporter.put("callbacks", "k", b"\x00 no callback", {"repo": "org/four"})
    reporter.put("dispatches", "k", b"[]")
    reporter.put("reconcile", "no key of ours", b"x")
    rows = wait_for("three parked", lambda: reporter.topic("dlq")[before + 2:] and
                    reporter.topic("dlq")[before:])
    assert {row.headers["class"] for row in rows} == {"poison"}
    assert {row.headers["source_topic"].rsplit(".", 1)[-1] for row in rows} == \
        {"callbacks", "dispatches", "reconcile"}
    Job(reporter).call("completed", 2000, conclusion="success").wait_check()


def test_a_downstream_that_filled_its_part_of_the_view_starts_no_job_and_ends_those_it_has(reporter):
    known = Job(reporter, "org/two", "L2").call("in_progress", 1000)
    known.wait_result("in_progress")
    client = reporter.redis.client()
    client.hset("crcr:spent:org/two", str(int(time.time() // 86400)), 1 << 30)
    try:
        new = Job(reporter, "org/two", "L2").call("completed", 2000, conclusion="success")
        row = wait_for("the parked record", lambda: next(
            (r for r in reporter.topic("dlq") if (r.key or "").startswith(new.delivery)), None))
        assert row.headers["class"] == "refused" and "part of the view" in row.headers["error"]
        known.call("completed", 2000, conclusion="failure", failed_tests_detail=[{"name": "t"}])
        assert known.wait_result()["failed_tests_json"] is None
        assert reporter.result(new.delivery) is None
    finally:
        client.delete("crcr:spent:org/two")
    Job(reporter, "org/two", "L2").call("completed", 2000, conclusion="success").wait_result()


def test_a_lost_view_of_check_runs_finds_them_again(reporter):
    job = Job(reporter).call("in_progress", 1000)
    first = job.wait_check("in_progress")[0]["id"]
    client = reporter.redis.client()
    client.delete(*client.keys("crcr:check:*"))
    job.call("completed", 2000, conclusion="success")
    assert [run["id"] for run in job.wait_check()] == [first]


def test_an_unanswered_create_makes_no_second_check_run(reporter):
    reporter.relay.script({"method": "POST", "path": "*/check-runs", "reset": True, "effect": True, "count": 1})
    job = Job(reporter).call("completed", 2000, conclusion="success")
    wait_idle(reporter)
    assert len(reporter.checks(job.sha)) == 1


def test_a_rate_limit_is_waited_for(reporter):
    reporter.relay.script({"method": "POST", "path": "*/check-runs", "status": 403, "retry_after": 2, "count": 1,
                           "body": {"message": "You have exceeded a secondary rate limit"}})
    before = len(reporter.relay.requests())
    job = Job(reporter).call("completed", 2000, conclusion="success")
    job.wait_check()
    posts = [one for one in reporter.relay.requests()[before:]
             if one["method"] == "POST" and one["path"].endswith("/check-runs")]
    assert [one["status"] for one in posts] == [403, 201]
    assert posts[1]["at_ms"] - posts[0]["at_ms"] >= 2000


def test_a_limit_that_one_call_ran_into_costs_the_others_no_attempt(reporter):
    reporter.relay.script({"method": "GET", "path": "*/check-runs", "status": 403, "count": 2,
                           "retry_after": 1, "body": {"message": "secondary rate limit"}})
    before = len(reporter.relay.parts["reporter"].text())
    jobs = [Job(reporter).call("completed", 2000, conclusion="success") for _ in range(6)]
    for job in jobs:
        job.wait_check()
    assert "check_runs_failed" not in reporter.relay.parts["reporter"].text()[before:]


def test_while_github_is_unavailable_no_commit_spends_its_attempts(reporter):
    """Each commit's three attempts would be over in ten seconds, and the next one a minute later."""
    log = reporter.relay.parts["reporter"]
    parked, before = len(reporter.topic("rdelay.1m")), len(log.text())
    reporter.relay.script({"method": "*", "path": "*/check-runs*", "status": 503})
    try:
        jobs = [Job(reporter).call("completed", 2000, conclusion="success") for _ in range(6)]
        wait_for("it to be unavailable", lambda: "github_unavailable" in log.text()[before:])
        asked = len(reporter.relay.requests())
        wait_for("three probes", lambda: len(reporter.relay.requests()) >= asked + 3, 60)
    finally:
        reporter.relay.script({"clear": True})
    for job in jobs:
        job.wait_check()
    wait_for("it to be back", lambda: "github_back" in log.text()[before:])
    assert len(reporter.topic("rdelay.1m")) == parked


def test_what_github_refuses_is_parked(reporter):
    wait_idle(reporter)  # the next one is ours
    reporter.relay.script({"method": "POST", "path": "*/check-runs", "status": 404, "count": 1,
                           "body": {"message": "Not Found"}})
    job = Job(reporter).call("completed", 2000, conclusion="success")
    row = wait_for("the parked record", lambda: next(
        (r for r in reporter.topic("dlq") if (r.key or "").startswith(job.sha)), None))
    assert row.headers["class"] == "refused" and "404" in row.headers["error"]


@pytest.mark.long
def test_hud_unavailable_and_back_loses_nothing(reporter):
    reporter.relay.script({"method": "POST", "path": "/crcr/results", "status": 503, "count": 4})
    jobs = [Job(reporter).call("in_progress", 1000).call("completed", 2000, conclusion="success")
            for _ in range(3)]
    wait_idle(reporter)
    for job in jobs:
        reported = [post["untrusted"]["callback_payload"]["workflow"]["status"] for post in reporter.posts(job.delivery)]
        assert reported[-1] == "completed", reported


def test_a_result_that_the_hud_refuses_is_parked(reporter):
    wait_idle(reporter)  # the next one is ours
    reporter.relay.script({"method": "POST", "path": "/crcr/results", "status": 400, "count": 1})
    job = Job(reporter, "org/two", "L2").call("completed", 2000, conclusion="success")
    row = wait_for("the parked record", lambda: next(
        (r for r in reporter.topic("dlq") if f"/{job.delivery}/" in (r.key or "")), None))
    assert (row.headers["class"], row.headers["error"]) == ("refused", "the HUD answered 400")


def test_redis_unavailable_and_back_loses_nothing(reporter):
    reporter.redis.stop()
    jobs = [Job(reporter).call("completed", 2000, conclusion="success") for _ in range(20)]
    wait_for("the reporter to notice", lambda: ask(
        "GET", reporter.relay.url("admin_reporter", "/readyz"))[0] == 503)
    assert ask("GET", reporter.relay.url("hud", "/api/crcr/summary"))[0] == 503
    reporter.redis.start()
    for job in jobs:
        job.wait_check()
    reporter.relay.wait_ready("reporter")


def test_a_redis_that_refuses_is_waited_for_as_one_that_is_unavailable(reporter):
    before = len(reporter.topic("dlq"))
    client = reporter.redis.client()
    set_user(client, "crcr-reporter", ["eval", "evalsha"])
    jobs = [Job(reporter).call("completed", 2000, conclusion="success") for _ in range(3)]
    wait_for("the reporter to notice", lambda: ask(
        "GET", reporter.relay.url("admin_reporter", "/readyz"))[0] == 503)
    set_user(client, "crcr-reporter")
    for job in jobs:
        job.wait_check()
    assert len(reporter.topic("dlq")) == before
    reporter.relay.wait_ready("reporter")


def test_a_row_that_kafka_refuses_is_parked_and_holds_up_no_other(reporter):
    job = Job(reporter, "org/two", "L2")
    results = reporter.relay.topic("results")
    configure_topic(reporter.relay.kafka, results, **{"max.message.bytes": "200"})
    try:
        job.call("completed", 2000, conclusion="success")
        row = wait_for("the parked record", lambda: next(
            (r for r in reporter.topic("dlq") if (r.key or "").startswith(job.delivery)), None))
        assert row.headers["class"] == "refused" and row.headers["source_topic"].endswith("callbacks")
    finally:
        configure_topic(reporter.relay.kafka, results, **{"max.message.bytes": "4194304"})
    Job(reporter).call("completed", 2000, conclusion="success").wait_check()


def test_killed_and_started_again_nothing_is_lost_or_doubled(reporter):
    jobs = [Job(reporter) for _ in range(30)]
    for job in jobs[:15]:
        job.call("in_progress", 1000).call("completed", 2000, conclusion="success")
    reporter.relay.parts["reporter"].kill()
    for job in jobs[15:]:
        job.call("in_progress", 1000).call("completed", 2000, conclusion="success")
    reporter.start()
    for job in jobs:
        assert len(job.wait_check()) == 1
        assert job.wait_result()["conclusion"] == "success"
    wait_idle(reporter)
    for job in jobs:
        assert reporter.posts(job.delivery)


def test_a_completed_that_is_known_already_makes_its_in_progress_superfluous(reporter):
    restart(reporter, CRCR_ROLES="fold")
    before = len(reporter.relay.requests())
    jobs = [Job(reporter).call("in_progress", 1000).call("completed", 2000, conclusion="success") for _ in range(5)]
    for job in jobs:
        job.wait_result()
    restart(reporter)
    for job in jobs:
        job.wait_check()
    wait_idle(reporter)
    writes = [(one["body"]["head_sha"], one["body"]["status"]) for one in reporter.relay.requests()[before:]
              if one["method"] in ("POST", "PATCH") and "/check-runs" in one["path"]
              and one["body"].get("name", "").count("/") == 4]
    assert sorted(writes) == sorted((job.sha, "completed") for job in jobs)


class Hud(http.server.BaseHTTPRequestHandler):
    """Answers 500 to the rows of one delivery, 200 to all else."""
    broken, taken = None, []

    def do_POST(self):
        row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        delivery = row["untrusted"]["callback_payload"]["delivery_id"]
        if delivery != Hud.broken:
            Hud.taken.append(delivery)
        self.send_response(500 if delivery == Hud.broken else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def own_hud():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hud)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def restart(reporter, **environment):
    reporter.relay.parts["reporter"].stop()
    reporter.start(**environment)


def test_a_row_that_the_hud_cannot_take_holds_up_no_other(reporter, own_hud):
    restart(reporter, HUD_API_URL=own_hud)
    first = Job(reporter, "org/two", "L2")
    Hud.broken = first.delivery
    first.call("completed", 2000, conclusion="success").wait_result()
    wait_for("it to be refused once", lambda: reporter.relay.metric(
        "reporter", "crcr_results_posted_total", outcome="waiting") >= 2)
    others = [Job(reporter, "org/two", "L2").call("completed", 2000, conclusion="success") for _ in range(5)]
    wait_for("the others", lambda: {job.delivery for job in others} <= set(Hud.taken), 30)


def test_after_so_many_retries_a_row_is_parked(reporter, own_hud):
    first = Job(reporter, "org/two", "L2")
    Hud.broken = first.delivery
    restart(reporter, HUD_API_URL=own_hud, HUD_MAX_RETRIES="1")
    first.call("completed", 2000, conclusion="success")

    def parked():
        return next((r for r in reporter.topic("dlq") if f"/{first.delivery}/" in (r.key or "")), None)
    wait_for("three refusals", lambda: reporter.relay.metric("reporter", "crcr_results_posted_total", outcome="waiting") >= 3)
    assert parked() is None  # alone it proves nothing: the HUD may be down

    def after_another():
        Job(reporter, "org/two", "L2").call("completed", 2000, conclusion="success")
        return parked()
    row = wait_for("the parked record", after_another, 90)
    assert (row.headers["class"], row.headers["error"]) == ("exhausted", "the HUD answered 500")


def test_without_a_hud_the_role_forward_is_ready_and_idle(reporter):
    restart(reporter, HUD_API_URL="")
    assert "forward_off" in reporter.relay.parts["reporter"].text()
    Job(reporter).call("completed", 2000, conclusion="success").wait_check()
