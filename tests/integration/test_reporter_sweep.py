"""The sweep of crcr-reporter, on real Kafka and Redis and the simulated GitHub and HUD: jobs that fall
silent, as they are seen from outside."""
import json
import os
import signal
import time

import pytest

from lib.kafka import Kafka
from lib.processes import wait_for
from lib.redis_server import set_user
from lib.relay import http
from test_reporter import Job, Reporter, wait_idle

ZOMBIE_S = 2
LONG_MS = 3_600_000  # received so far ahead, a job is in time for as long as the tests run


class Sweeping(Reporter):
    """A reporter that gives a job 2 s and looks each second."""

    def start(self, instance=None, **environment):
        environment = {"ZOMBIE_TIMEOUT_SECONDS": str(ZOMBIE_S), "CRCR_SWEEP_SECONDS": "1",
                       **environment}
        self.relay.start("reporter", instance, **environment)
        self.relay.wait_ready(instance or "reporter")

    def restart(self, **environment):
        process = self.relay.parts["reporter"]
        if process.running():
            assert process.stop() == 0, process.tail()
        self.start(**environment)

    def swept(self, *jobs):
        """What sweepers have published of these jobs."""
        deliveries = {job.delivery for job in jobs}
        return [record for record in self.topic("callbacks")
                if record.headers.get("provenance") == "sweeper"
                and record.headers["delivery"] in deliveries]

    def zombies(self):
        return self.redis.client().zrange("crcr:zombies", 0, -1)

    def wait_overdue(self, job):
        return wait_for("the job to be noted",
                        lambda: [key for key in self.zombies() if f"/{job.delivery}/" in key])

    def count(self):
        return sum(self.relay.metric(part, "crcr_sweep_timed_out_total")
                   for part, process in self.relay.parts.items()
                   if part.startswith("reporter") and process.running())


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Sweeping(tmp_path_factory.mktemp("sweep"), kafka_node.brokers)
    try:
        yield one
    finally:
        one.close()


def reported(reporter, job):
    return [(post["untrusted"]["callback_payload"]["workflow"]["status"],
             post["untrusted"]["callback_payload"]["workflow"]["conclusion"])
            for post in reporter.posts(job.delivery)]


def test_a_silent_job_times_out_in_view_results_hud_and_check_run(reporter):
    before = reporter.count()
    job = Job(reporter).call("in_progress", 1500)
    run = job.wait_check()[0]
    assert (run["name"], run["conclusion"]) == ("crcr/org/four/ci/build", "timed_out")
    row = job.wait_result("timed_out")
    assert row["conclusion"] == "timed_out"
    assert (row["queue_time"], row["execution_time"]) == (1.5, None)
    assert (row["pytorch_head_sha"], row["pr_number"]) == (job.sha, 7)
    wait_for("the HUD to hear", lambda: reported(reporter, job)[-1:] == [("completed", "timed_out")])
    view = reporter.relay.api(f"/api/crcr/deliveries/{job.delivery}")
    assert [(one["status"], one["conclusion"]) for one in view["jobs"]] == \
        [("timed_out", "timed_out")]
    assert reporter.zombies() == []
    assert reporter.count() - before == 1


def test_it_is_published_as_a_callback_under_the_jobs_own_key(reporter):
    job = Job(reporter).call("in_progress", 1500)
    job.wait_result("timed_out")
    [own] = [one for one in reporter.topic("callbacks") if job.delivery in one.key
             and one.headers["provenance"] == "token"]
    [swept] = reporter.swept(job)
    assert (swept.key, swept.partition) == (own.key, own.partition)
    deadline = job.started_ms + 1500 + ZOMBIE_S * 1000
    assert swept.headers == {**own.headers, "provenance": "sweeper", "issuer": "crcr-reporter",
                             "received_ms": str(deadline)}
    workflow = json.loads(swept.value)["workflow"]
    assert (workflow["run_id"], workflow["run_attempt"]) == (str(job.workflow["run_id"]), "1")


def test_a_completed_that_comes_later_wins(reporter):
    job = Job(reporter).call("in_progress", 1000)
    first = job.wait_check()[0]
    assert first["conclusion"] == "timed_out"
    job.call("completed", 50_000, conclusion="success")
    row = job.wait_result()
    assert (row["conclusion"], row["execution_time"]) == ("success", 49.0)
    wait_for("the check run to follow",
             lambda: reporter.checks(job.sha)[0]["conclusion"] == "success")
    assert [run["id"] for run in reporter.checks(job.sha)] == [first["id"]]
    wait_for("the HUD to hear", lambda: reported(reporter, job)[-1:] == [("completed", "success")])
    [swept] = reporter.swept(job)
    reporter.put("callbacks", swept.key, swept.value, swept.headers)
    wait_idle(reporter)
    assert job.wait_result()["conclusion"] == "success"
    assert [run["conclusion"] for run in reporter.checks(job.sha)] == ["success"]


def test_only_a_silent_job_times_out(reporter):
    ended = Job(reporter).call("completed", 2000, conclusion="failure").call("in_progress", 1000)
    in_time = Job(reporter).call("in_progress", LONG_MS)
    again = Job(reporter).call("completed", 1000, conclusion="failure")
    again.call("in_progress", LONG_MS, run_attempt=2)
    silent = Job(reporter).call("in_progress", 1000)
    silent.wait_result("timed_out")
    wait_idle(reporter)
    assert reporter.swept(ended, in_time, again) == []
    assert reporter.result(ended.delivery)["conclusion"] == "failure"
    assert reporter.result(in_time.delivery)["status"] == "in_progress"
    in_time.call("completed", LONG_MS + 1, conclusion="success").wait_result()
    again.call("completed", LONG_MS + 1, conclusion="success", run_attempt=2)
    again.wait_result(attempt="2")


@pytest.mark.parametrize("name", ["linux / build: py3.12", "12345", "0", "a:b/c:d", '"\\ %2F', "构建"])
def test_any_name_of_a_job_will_do(reporter, name):
    job = Job(reporter, "org/two", "L2", name=name, job_name=name, check_run_id="1:2/3")
    job.call("in_progress", 1000)
    row = job.wait_result("timed_out")
    assert (row["workflow_name"], row["job_name"]) == (name, name)
    rows = [json.loads(r.value) for r in reporter.topic("results") if f"/{job.delivery}/" in r.key]
    assert {one["dynamoKey"] for one in rows} == {row["dynamoKey"]}
    assert len(reporter.swept(job)) == 1


def test_two_reporters_tell_each_job_once(reporter):
    before = reporter.count()
    reporter.start("reporter_two", CRCR_HUD_LISTEN="127.0.0.1:0")
    jobs = [Job(reporter, "org/two", "L2").call("in_progress", 1000) for _ in range(60)]
    deliveries = {job.delivery for job in jobs}

    def all_reported():
        last = {}
        for record in reporter.topic("results"):
            row = json.loads(record.value)
            last[row["delivery_id"]] = row["status"]
        return all(last.get(delivery) == "timed_out" for delivery in deliveries)
    wait_for("all to be timed out", all_reported, 60)
    wait_idle(reporter)
    seen = [record.headers["delivery"] for record in reporter.swept(*jobs)]
    assert sorted(seen) == sorted(deliveries)
    assert reporter.count() - before == len(jobs)
    assert reporter.relay.parts["reporter_two"].stop() == 0


@pytest.mark.long
def test_killed_between_publishing_and_removing_does_no_harm(reporter):
    """Redis refuses to take the job off its list; the sweeper is killed after the acknowledgement."""
    redis = reporter.redis.client()
    reporter.restart(CRCR_ROLES="fold")
    job = Job(reporter).call("in_progress", 1000)
    reporter.wait_overdue(job)
    set_user(redis, "crcr-reporter", ["zrem"])
    try:
        reporter.restart(CRCR_ROLES="sweep")
        reporter.relay.parts["reporter"].wait_text("redis_unavailable")
        reporter.relay.parts["reporter"].kill()
    finally:
        set_user(redis, "crcr-reporter")
    reporter.wait_overdue(job)
    reporter.restart(CRCR_ROLES="sweep")  # takes it again when the lease of the dead has ended
    wait_for("the job to be taken off", lambda: reporter.zombies() == [])
    first, second = reporter.swept(job)
    assert (first.key, first.value, first.headers) == (second.key, second.value, second.headers)
    reporter.restart()
    run = job.wait_check()[0]
    wait_idle(reporter)
    assert run["conclusion"] == "timed_out" and len(reporter.checks(job.sha)) == 1
    assert job.wait_result("timed_out")["conclusion"] == "timed_out"


def test_redis_unavailable_is_waited_for(reporter):
    job = Job(reporter).call("in_progress", LONG_MS)
    [key] = reporter.wait_overdue(job)
    process = reporter.relay.parts["reporter"]
    said = len(process.text())
    process.signal(signal.SIGSTOP)  # or the job could be swept before Redis is unavailable
    deadline_s = time.time() + 1
    reporter.redis.client().zadd("crcr:zombies", {key: int(deadline_s * 1000)})
    os.kill(reporter.redis.process.pid, signal.SIGSTOP)
    process.signal(signal.SIGCONT)
    try:
        wait_for("the sweep to notice", lambda: any(
            '"redis_unavailable"' in line and '"sweep"' in line
            for line in process.text()[said:].splitlines()))
        assert http("GET", reporter.relay.url("admin_reporter", "/readyz"))[0] == 503
        wait_for("the job to run out of time", lambda: time.time() > deadline_s)
    finally:
        os.kill(reporter.redis.process.pid, signal.SIGCONT)
    job.wait_result("timed_out")
    reporter.relay.wait_ready("reporter")
    assert len(reporter.swept(job)) == 1


@pytest.mark.long
def test_what_could_not_be_published_is_taken_again(tmp_path):
    """The brokers do not answer while a job runs out of time."""
    kafka = Kafka(tmp_path / "kafka").start()
    one = None
    try:
        one = Sweeping(tmp_path, kafka.brokers)
        job = Job(one).call("in_progress", LONG_MS)
        [key] = one.wait_overdue(job)
        kafka.freeze()
        try:
            deadline_ms = int(time.time() * 1000)
            one.redis.client().zadd("crcr:zombies", {key: deadline_ms})
            one.relay.parts["reporter"].wait_text("sweep_not_published")
            assert one.zombies() == [key]
            assert one.count() == 0
        finally:
            kafka.thaw()
        assert job.wait_result("timed_out")["conclusion"] == "timed_out"
        reported = one.swept(job)  # an unanswered one may have been stored all the same
        assert {record.headers["received_ms"] for record in reported} == {str(deadline_ms)}
        assert len({record.value for record in reported}) == 1
        wait_for("the job to be taken off", lambda: one.zombies() == [])
    finally:
        if one:
            one.close()
        kafka.stop()
