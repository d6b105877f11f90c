"""A replica of crcr-reporter that stands still (SIGSTOP) in the middle of something until another has its
partitions: what it says when it goes on contradicts nothing that the other has said meanwhile."""
import json
import ssl
import threading
import time

import pytest

from lib.processes import wait_for
from lib.pauses import PAUSED_S, Link, go_on, stand_still
from test_http2 import Authority
from test_reporter import Job, Reporter, wait_idle
from test_reporter_forward import Hud

ROLES = ("fold", "forward", "reconcile", "sweep", "web")


class Replicas(Reporter):
    """One role is that of replicas of their own; the reporter has the others."""

    def __init__(self, folder, brokers, role):
        self.role = role
        super().__init__(folder, brokers)

    def start(self):
        self.relay.start("reporter", CRCR_ROLES=",".join(role for role in ROLES if role != self.role))

    def replica(self, name, **environment):
        return self.relay.start("reporter", name, CRCR_ROLES=self.role,
                                CRCR_HUD_LISTEN="127.0.0.1:0", **environment)

    def ready(self, *parts):
        for part in parts:
            self.relay.wait_ready(part)


@pytest.fixture
def replicas(kafka_node, tmp_path):
    made = []

    def make(role):
        made.append(Replicas(tmp_path, kafka_node.brokers, role))
        return made[-1]
    yield make
    for one in made:
        one.close()


def shown(one, job):
    """The check run that GitHub shows of the job: the newest."""
    return max(one.checks(job.sha), key=lambda run: run["id"])


def test_a_pass_sends_nothing_of_what_it_read_before_it_stood_still(replicas):
    """It has asked for the check run, and the answer says that there is none."""
    one = replicas("reconcile")
    first = one.replica("first")
    one.ready("reporter", "first")
    one.relay.script({"method": "GET", "path": "*/check-runs", "delay_ms": 3000, "count": 1})
    before = len(one.relay.requests())
    job = Job(one).call("in_progress", 1000)
    wait_for("the question", lambda: [r for r in one.relay.requests()[before:] if "/check-runs" in r["path"]])
    stand_still(first)
    try:
        one.replica("second")
        job.call("completed", 2000, conclusion="success")
        job.wait_check()
        said = len(first.text())
    finally:
        go_on(first)
    wait_for("it to get its answer", lambda: [event for event in ("check_runs_waiting", "check_run_set")
                                              if event in first.text()[said:]])
    wait_idle(one)
    assert [(run["status"], run["conclusion"]) for run in one.checks(job.sha)] == [("completed", "success")]


def test_a_call_that_arrives_after_those_of_another_replica_is_made_up_for(replicas):
    one = replicas("reconcile")
    link = Link(one.relay.ports["github"])
    first = one.replica("first", CRCR_GITHUB_API_URL=f"http://{link.endpoint}")
    one.ready("reporter", "first")
    link.catch("POST /repos/pytorch/pytorch/check-runs", first)
    job = Job(one).call("in_progress", 1000)
    link.wait_caught()
    try:
        one.replica("second")
        job.call("completed", 2000, conclusion="success")
        job.wait_check()
        link.let_go()
        job.wait_check("in_progress", count=2)
    finally:
        go_on(first)
    wait_for("GitHub to show the end", lambda: shown(one, job)["status"] == "completed")


def folding_behind_a_link(replicas):
    """→ (the relay, the link to Redis of its first fold, that fold's process); Redis has its scripts."""
    one = replicas("fold")
    link = Link(one.redis.port)
    first = one.replica("first", REDIS_ENDPOINT=link.endpoint)
    one.ready("first", "reporter")
    Job(one, "org/two", "L2").call("completed", 1000, conclusion="success").wait_result()
    return one, link, first


def test_what_was_folded_before_a_pause_is_not_published_after_it(replicas):
    one, link, first = folding_behind_a_link(replicas)
    job = Job(one, "org/two", "L2")
    link.catch(job.delivery, first)
    job.call("in_progress", 1000)
    link.wait_caught()
    link.let_go()
    try:
        one.replica("second")
        job.call("completed", 2000, conclusion="success")
        job.wait_result()
    finally:
        go_on(first)
    assert first.stop() == 0  # what it had to say is said then
    rows = [json.loads(record.value)["status"] for record in one.topic("results")
            if f"/{job.delivery}/" in record.key]
    assert rows[-1] == "completed", rows


def test_what_redis_is_slow_to_answer_is_folded_again_and_not_published_as_it_was(replicas):
    """Redis has merged it at once; another has merged the end since, and may have published it."""
    one, link, first = folding_behind_a_link(replicas)
    job, redis = Job(one, "org/two", "L2"), one.redis.client()
    link.answer_slowly(job.delivery)
    job.call("in_progress", 1000)
    key, = wait_for("Redis to merge it", lambda: redis.keys(f"crcr:job:*{job.delivery}*"))
    redis.hset(key, mapping={"status": "completed", "conclusion": "success", "completed_ms": str(job.started_ms + 2000)})
    job.wait_result()
    assert first.stop() == 0  # what it had to say is said then
    assert [json.loads(record.value)["status"] for record in one.topic("results")
            if f"/{job.delivery}/" in record.key] == ["completed"]


class SlowHud(Hud):
    """Takes connections, and says nothing on them before let_go()."""

    def __init__(self, authority):
        super().__init__()
        self.called, self.go = threading.Event(), threading.Event()
        self.url = self.url.replace("http:", "https:")
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(authority.certificate, authority.key)
        self.server.get_request = self._take
        self.open()

    def _take(self):
        taken, address = self.server.socket.accept()
        self.called.set()
        self.go.wait()
        return self.tls.wrap_socket(taken, server_side=True, do_handshake_on_connect=False), address

    def wait_called(self):
        assert self.called.wait(60), "nobody has called"

    def let_go(self):
        self.go.set()


def test_what_was_not_posted_for_a_pause_is_no_failure_of_the_huds(replicas, tmp_path):
    one, authority = replicas("forward"), Authority(tmp_path, "ours")
    hud = SlowHud(authority)
    first = one.replica("first", HUD_API_URL=hud.url, CRCR_CA_FILE=str(authority.ca))
    one.ready("first", "reporter")
    job = Job(one, "org/two", "L2").call("completed", 2000, conclusion="success")
    hud.wait_called()
    stand_still(first)
    hud.let_go()
    time.sleep(PAUSED_S)
    go_on(first)
    wait_for("the HUD to get it", lambda: hud.taken)
    wait_idle(one)
    assert hud.taken == [(job.delivery, "completed")]
    assert one.relay.metric("first", "crcr_results_posted_total", outcome="waiting") == 0
    assert "hud_unavailable" not in first.text()
    hud.close()


def test_what_was_in_hand_before_a_pause_is_not_posted_after_it(replicas):
    """The HUD was unavailable for a moment; another replica has sent it more since. This mostly holds without the role's own wait
    as well: librdkafka's thread tends to hear of the loss before the role comes round. So it shows the outcome, not the wait."""
    one = replicas("forward")
    hud = {"HUD_API_URL": one.relay.url("github", "")}
    one.relay.script({"method": "POST", "path": "/crcr/results", "status": 503, "count": 1})
    first = one.replica("first", **hud)
    one.ready("first", "reporter")
    job = Job(one, "org/two", "L2").call("in_progress", 1000)

    def reported():
        return [post["untrusted"]["callback_payload"]["workflow"]["status"] for post in one.relay.state()["hud"]]
    first.wait_text("hud_unavailable")
    stand_still(first)
    try:
        one.replica("second", **hud)
        job.call("completed", 2000, conclusion="success")
        wait_for("the HUD to get it", lambda: reported() == ["in_progress", "completed"], timeout=90)
    finally:
        go_on(first)
    wait_idle(one)
    assert first.stop() == 0
    assert reported() == ["in_progress", "completed"]
