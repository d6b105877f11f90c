"""`crcrctl probe owner/repo` against real topics, the simulated GitHub and a real Redis: each line of it, with what is
to be done next, from nothing to L4."""
import json
import secrets
import time

import pytest

from lib.ctl import Ctl
from lib.processes import wait_for
from lib.sim import Inbox, Sim
from test_reporter import Job, Reporter

LIST = """L1: [org/one]
L2:
  - org/two
  - org/night: {events: [nightly]}
L3:
  npu: { org/three: [alice] }
"""
LISTENS = "on:\n  repository_dispatch:\n    types: [pull_request, push]\njobs: {}\n"
SHA = "a" * 40


class Probe(Ctl):
    def __init__(self, broker, sim):
        super().__init__(broker.brokers, broker.prefix)
        self.sim = sim
        self.github = {"GITHUB_APP_ID": "12345", "GITHUB_APP_PRIVATE_KEY_FILE": str(sim.key),
                       "CRCR_GITHUB_API_URL": f"http://127.0.0.1:{sim.port}"}

    def probe(self, repo, expect=0, **environment):
        done = self("probe", "--json", repo, expect=expect, **{**self.github, **environment})
        return {line["name"]: line for line in json.loads(done.stdout)["checks"]}

    def workflow(self, repo, name, text):
        folder = self.sim.contents / repo / ".github" / "workflows"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    def dispatched(self, repo, outcome="dispatched", error=None, status=204, at=None):
        delivery = f"d-{secrets.token_hex(4)}"
        self.write("dispatches", f"{delivery}/{repo}", json.dumps({
            "delivery_id": delivery, "repo": repo, "tier": "L2", "kind": "dispatch", "event_type": "pull_request",
            "pr_number": 7, "head_sha": SHA, "outcome": outcome, "http_status": status, "attempt": 1,
            "latency_ms": 5, "error": error, "maybe_duplicate": False,
            "at": at or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}).encode(), delivery=delivery, repo=repo)
        return delivery

    def called_back(self, repo, delivery):
        self.write("callbacks", f"{delivery}/{repo}", json.dumps({
            "event_type": "pull_request", "delivery_id": delivery,
            "workflow": {"status": "completed", "conclusion": "success", "name": "CI", "run_id": "1"}}).encode(),
            repo=repo, level="L2", delivery=delivery, pr=7, head_sha=SHA, received_ms=int(time.time() * 1000))


@pytest.fixture(scope="module")
def probe(either_broker, tmp_path_factory):
    inbox = Inbox()
    sim = Sim(tmp_path_factory.mktemp("sim"), inbox)
    one = Probe(either_broker, sim)
    one.write("allowlist", "allowlist", LIST.encode(), source="https://example.org/allowlist.yml", sha="0" * 64,
              fetched_ms=int(time.time() * 1000) - 86_400_000)
    yield one
    assert sim.process.stop() == 0, sim.process.tail()
    inbox.close()


# ---- from nothing to L2, line by line ---------------------------------------------------------------------
def test_a_repository_that_has_nothing_is_shown_where_to_begin(probe):
    probe.sim.downstream(repo="new/repo", installed=False)
    lines = probe.probe("new/repo", expect=1)
    assert lines["app"]["state"] == "missing" and "install the App" in lines["app"]["todo"]
    assert lines["workflow"]["state"] == "not_checked" and "only an installed App may" in lines["workflow"]["text"]
    assert lines["allowlist"]["state"] == "missing" and "`- new/repo` below L1" in lines["allowlist"]["todo"]
    for name in ("last dispatch", "last callback", "last check run"):
        assert lines[name]["state"] == "not_expected"


def test_the_app_is_seen_and_a_workflow_is_asked_for(probe):
    lines = probe.probe("org/empty", expect=1)
    assert lines["app"]["state"] == "ok" and "installation " in lines["app"]["text"]
    assert lines["workflow"]["state"] == "missing" and "there is no folder .github/workflows" in lines["workflow"]["text"]
    assert "deploy/downstream/workflow.yml" in lines["workflow"]["todo"]


def test_a_workflow_that_does_not_listen_is_not_enough(probe):
    probe.workflow("org/deaf", "ci.yml", "on: push\njobs: {}\n")
    probe.workflow("org/deaf", "notes.md", LISTENS)
    assert "none of 1 workflows" in probe.probe("org/deaf", expect=1)["workflow"]["text"]
    probe.workflow("org/deaf", "other.yaml", "on:\n  repository_dispatch:\n    types: [deploy]\n")
    assert "not to type pull_request" in probe.probe("org/deaf", expect=1)["workflow"]["text"]
    probe.workflow("org/deaf", "relay.yml", LISTENS)
    line = probe.probe("org/deaf", expect=1)["workflow"]
    assert line["state"] == "ok" and line["text"].startswith("relay.yml listens")


def test_a_workflow_that_cannot_be_read_is_not_called_missing(probe):
    probe.workflow("org/odd", "ci.yml", "on: [push\n")
    line = probe.probe("org/odd", expect=1)["workflow"]
    assert line["state"] == "not_checked" and "ci.yml:" in line["text"]


def test_at_l1_dispatches_are_looked_for_and_callbacks_are_not(probe):
    probe.workflow("org/one", "ci.yml", LISTENS)
    lines = probe.probe("org/one", expect=1)
    assert "L1 since" in lines["allowlist"]["text"] and lines["allowlist"]["state"] == "ok"
    assert lines["last dispatch"]["state"] == "missing" and "none since" in lines["last dispatch"]["text"]
    delivery = probe.dispatched("Org/One")
    probe.dispatched("org/one", "skipped", "too old")
    lines = probe.probe("org/one")
    assert lines["last dispatch"]["state"] == "ok" and delivery in lines["last dispatch"]["text"]
    assert lines["last callback"]["state"] == "not_expected" and "L2" in lines["last callback"]["todo"]


def test_at_l2_a_callback_is_missed_until_it_comes(probe):
    probe.workflow("org/two", "ci.yml", LISTENS)
    delivery = probe.dispatched("org/two")
    line = probe.probe("org/two", expect=1)["last callback"]
    assert line["state"] == "missing" and "CRCR_CALLBACK_URL" in line["todo"]
    probe.called_back("org/two", delivery)
    lines = probe.probe("org/two")
    assert lines["last callback"]["text"].startswith("success ") and delivery in lines["last callback"]["text"]
    assert lines["last check run"]["state"] == "not_expected"
    assert "All is as it should be." in probe("probe", "org/two", **probe.github).stdout


def test_a_dispatch_that_failed_names_the_reason(probe):
    probe.workflow("org/two", "ci.yml", LISTENS)
    probe.called_back("org/two", probe.dispatched("org/two"))
    failed = probe.dispatched("org/two", "failed", "404 Not Found (is the App installed?)", 404,
                              at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 5)))
    line = probe.probe("org/two", expect=1)["last dispatch"]
    assert line["state"] == "missing" and "404 Not Found" in line["text"] and failed in line["todo"]
    probe.dispatched("org/two", at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 10)))
    assert probe.probe("org/two")["last dispatch"]["state"] == "ok"


def test_who_takes_nightly_only_is_not_dispatched_to(probe):
    assert "nightly alone" in probe.probe("org/night", expect=1)["last dispatch"]["text"]


# ---- what it cannot look at -------------------------------------------------------------------------------
def test_without_credentials_it_tells_the_rest_and_what_it_could_not_look_at(probe):
    delivery = probe.dispatched("org/two")
    probe.called_back("org/two", delivery)
    done = probe("probe", "org/two", GITHUB_APP_ID="")
    assert "GITHUB_APP_ID is not set" in done.stdout and "2 could not be looked at" in done.stdout
    lines = probe.probe("org/three", expect=1, GITHUB_APP_ID="")
    assert lines["last check run"]["state"] == "not_checked" and "REDIS_ENDPOINT" in lines["last check run"]["text"]


def test_a_github_that_does_not_answer_is_exit_3(probe):
    lines = probe.probe("org/two", expect=3, CRCR_GITHUB_API_URL="http://127.0.0.1:1")
    assert lines["app"]["state"] == "not_checked" and lines["allowlist"]["state"] == "ok"


def test_a_redis_that_does_not_answer_is_exit_3(probe):
    lines = probe.probe("org/three", expect=3, REDIS_ENDPOINT="127.0.0.1:1")
    assert lines["last check run"]["state"] == "not_checked"


@pytest.mark.parametrize("arguments", (["probe"], ["probe", "nowhere"], ["probe", "a/b", "c/d"],
                                       ["probe", "--since", "soon", "a/b"]), ids=" ".join)
def test_wrong_usage_of_probe_is_exit_2(probe, arguments):
    assert probe(*arguments, expect=2).stderr.strip()


def test_what_comes_from_outside_reaches_the_terminal_without_controls(probe):
    probe.workflow("org/esc", "a\x1b[31m.yml", LISTENS)
    done = probe("probe", "org/esc", expect=1, **probe.github)
    assert "\x1b" not in done.stdout and "listens" in done.stdout


# ---- check runs ---------------------------------------------------------------------------------------------
def test_the_last_check_run_comes_from_the_view_and_trace_names_them_all(kafka_node, tmp_path):
    reporter = Reporter(tmp_path, kafka_node.brokers)
    try:
        ctl = Ctl(kafka_node.brokers, reporter.relay.prefix)

        def line():
            done = ctl("probe", "--json", "org/four", expect=1, REDIS_ENDPOINT=reporter.redis.endpoint)
            return next(one for one in json.loads(done.stdout)["checks"] if one["name"] == "last check run")
        assert line()["state"] == "missing"
        job = Job(reporter).call("completed", 2000, conclusion="success")
        run = job.wait_check()[0]
        wait_for("the probe to see it", lambda: f"id {run['id']}" in line()["text"])
        assert line()["text"].startswith("crcr/org/four/ci/build, completed")
        assert line()["state"] == "ok"

        seen = json.loads(ctl("trace", "--json", job.delivery, REDIS_ENDPOINT=reporter.redis.endpoint).stdout)
        assert seen["check_runs"] == [{"name": "crcr/org/four/ci/build", "id": run["id"], "completed": True}]
        assert seen["comments"] == [] and {"repo": "org/four", "what": "ci / build",
                                           "state": "completed success", "known": None} in seen["view"]
        text = ctl("trace", job.delivery, REDIS_ENDPOINT=reporter.redis.endpoint).stdout
        assert f"crcr/org/four/ci/build  completed  id {run['id']}" in text
        blind = ctl("trace", job.delivery, REDIS_ENDPOINT="").stdout
        assert "not looked at: REDIS_ENDPOINT is not set" in blind
        job.outcome("dispatched", received_ms=job.started_ms)  # events does not have it, and Redis knows when it came
        reporter.put("dlq", "k", b"x", {"delivery": job.delivery, "source_topic": "x", "error": "old"},
                     timestamp_ms=job.started_ms - 2 * 3_600_000)

        def topics(endpoint):
            trace = json.loads(ctl("trace", "--json", job.delivery, REDIS_ENDPOINT=endpoint).stdout)
            return {step["topic"].removeprefix(reporter.relay.prefix) for step in trace["steps"]}
        wait_for("trace to read from there on", lambda: topics(reporter.redis.endpoint) == {"dispatches", "callbacks", "results"})
        assert topics("") == {"dispatches", "callbacks", "results", "dlq"}
        away = json.loads(ctl("trace", "--json", job.delivery, REDIS_ENDPOINT="127.0.0.1:1").stdout)
        assert away["check_runs"] is None and away["view"] is None
    finally:
        reporter.close()
