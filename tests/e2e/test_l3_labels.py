"""L3: a check run exactly when the pull request carries ciflow/crcr/<device>, in whatever order label, dispatch
and callbacks come. Targets and labels are what upstream webhooks said, never what a callback says."""
import itertools
import json
import time
import uuid

import pytest

from lib.downstream import (Run, checks_anywhere, dispatches, job_checks, wait_idle, silence, wait_checks,
                            wait_dispatch)
from lib.kafka import read_topic, write
from lib.ports import free_port
from lib.processes import wait_for
from lib.redis_server import redis_server
from lib.relay import Relay
from lib.upstream import PullRequest, outcomes_of, push, sha_of

NPU, NPU_TOO, GPU = "org/npu-a", "org/npu-b", "org/gpu"
LABEL, OTHER_LABEL = "ciflow/crcr/npu", "ciflow/crcr/gpu"
ALLOWLIST = """\
L2: [org/two]
L3:
  npu: { org/npu-a: [alice], org/npu-b: [bob] }
  gpu: { org/gpu: [carol] }
"""


@pytest.fixture(scope="module")
def relay(kafka_node, tmp_path_factory):
    """Two reporters share everything; downstreams report when a test says so."""
    folder = tmp_path_factory.mktemp("labels")
    with redis_server(folder / "redis") as redis:
        one = Relay(folder, kafka_node.brokers, redis, allowlist=ALLOWLIST,
                    environment={"RATE_LIMIT_PER_MIN": "100000", "ALLOWLIST_TTL_SECONDS": "1"})
        try:
            one.start_all()
            one.start("reporter", "reporter2", CRCR_HUD_LISTEN=f"127.0.0.1:{free_port()}")
            one.wait_ready("reporter2")
            silence(one)
            yield one
        finally:
            one.stop()


def no_checks(relay, sha, repo):
    wait_idle(relay)
    assert job_checks(relay, sha, repo) == {}


def test_label_before_the_dispatch(relay):
    pr = PullRequest(relay)
    pr.labels = [LABEL]
    run = Run(relay, pr.opened(), NPU).start()
    wait_checks(relay, pr.sha, NPU, {"ci/build": "in_progress"})
    run.end()
    wait_checks(relay, pr.sha, NPU, {"ci/build": "success"})


def test_label_during_the_run(relay):
    pr = PullRequest(relay)
    run = Run(relay, pr.opened(), NPU).start()
    no_checks(relay, pr.sha, NPU)
    pr.labeled(LABEL)
    wait_checks(relay, pr.sha, NPU, {"ci/build": "in_progress"})
    run.end(conclusion="failure")
    wait_checks(relay, pr.sha, NPU, {"ci/build": "failure"})


def test_label_after_completion_gives_every_known_job_its_check_run(relay):
    pr = PullRequest(relay)
    delivery = pr.opened()
    Run(relay, delivery, NPU).start("build", "test").end("build").end("test", conclusion="failure")
    Run(relay, delivery, NPU, workflow="docs").start("html")
    no_checks(relay, pr.sha, NPU)
    pr.labeled(LABEL)
    wait_checks(relay, pr.sha, NPU, {"ci/build": "success", "ci/test": "failure",
                                     "docs/html": "in_progress"})


def test_label_removed_starts_no_new_check_run_and_ends_those_started(relay):
    pr = PullRequest(relay)
    pr.labels = [LABEL]
    run = Run(relay, pr.opened(), NPU).start("first")
    wait_checks(relay, pr.sha, NPU, {"ci/first": "in_progress"})
    pr.unlabeled(LABEL)
    wait_idle(relay)
    run.start("second").end("first", "second")
    wait_checks(relay, pr.sha, NPU, {"ci/first": "success"})
    wait_idle(relay)
    wait_checks(relay, pr.sha, NPU, {"ci/first": "success"})


def test_label_removed_before_the_run_gives_no_check_run_and_put_back_gives_it(relay):
    pr = PullRequest(relay)
    pr.labels = [LABEL]
    delivery = pr.opened()
    pr.unlabeled(LABEL)
    wait_idle(relay)
    Run(relay, delivery, NPU).start().end()
    no_checks(relay, pr.sha, NPU)
    pr.labeled(LABEL)
    wait_checks(relay, pr.sha, NPU, {"ci/build": "success"})


def test_a_labeled_event_that_is_overtaken_by_its_unlabeled_changes_nothing(relay):
    pr = PullRequest(relay)
    delivery = pr.opened()
    late = pr.labeled_event(LABEL)
    pr.unlabeled(LABEL)
    wait_idle(relay)
    pr.send(late)
    wait_idle(relay)
    Run(relay, delivery, NPU).start().end()
    no_checks(relay, pr.sha, NPU)


def test_reopened_with_an_echo_from_before_the_label_has_its_check_run(relay):
    pr = PullRequest(relay)
    run = Run(relay, pr.opened(), NPU)
    pr.closed()
    pr.labeled(LABEL)
    reopened = Run(relay, pr.reopened(), NPU)
    assert run.payload["payload"]["pull_request"]["labels"] == []

    def without_label(body):
        body["payload"]["pull_request"]["labels"] = []
    reopened.report("in_progress", echo=without_label)
    wait_checks(relay, pr.sha, NPU, {"ci/build": "in_progress"})
    run.end("of-the-first-delivery")
    wait_checks(relay, pr.sha, NPU, {"ci/build": "in_progress", "ci/of-the-first-delivery": "success"})


def test_reopened_with_an_echo_of_a_label_that_went_has_no_check_run(relay):
    pr = PullRequest(relay)
    pr.labels = [LABEL]
    run = Run(relay, pr.opened(), NPU)
    pr.closed()
    pr.unlabeled(LABEL)
    reopened = Run(relay, pr.reopened(), NPU)
    wait_idle(relay)
    assert [one["name"] for one in run.payload["payload"]["pull_request"]["labels"]] == [LABEL]

    def with_label(body):
        body["payload"]["pull_request"]["labels"] = [{"name": LABEL}]
    run.start("first").end("first")
    reopened.start("second", echo=with_label).end("second", echo=with_label)
    no_checks(relay, pr.sha, NPU)


@pytest.mark.parametrize("level", ["no label", "another device"])
def test_a_forged_echo_of_the_label_gets_no_check_run(relay, level):
    pr = PullRequest(relay)
    pr.labels = [OTHER_LABEL] if level == "another device" else []
    run = Run(relay, pr.opened(), NPU)

    def forge(body):
        body["payload"]["pull_request"]["labels"] = [{"name": LABEL}]
        body["payload"]["action"] = "labeled"
        body["payload"]["label"] = {"name": LABEL}
    run.start(echo=forge).end(echo=forge)
    no_checks(relay, pr.sha, NPU)


def test_a_forged_echo_of_another_pull_request_or_commit_gets_no_check_run_there(relay):
    labelled, victim = PullRequest(relay), PullRequest(relay)
    labelled.labels = [LABEL]
    labelled.opened()
    run = Run(relay, victim.opened(), NPU)
    elsewhere = sha_of("any commit of upstream")

    def forge(body):
        body["payload"]["number"] = body["payload"]["pull_request"]["number"] = labelled.number
        body["payload"]["pull_request"]["head"]["sha"] = labelled.sha
        body["payload"]["after"] = body["payload"]["head_sha"] = elsewhere
        body["payload"]["pull_request"]["labels"] = [{"name": LABEL}]
        body.update(pr_number=labelled.number, head_sha=elsewhere, level="L4")
    run.start(echo=forge).end(echo=forge)
    wait_idle(relay)
    for sha in (labelled.sha, victim.sha, elsewhere):
        assert job_checks(relay, sha, NPU) == {}
    rows = relay.api(f"/api/crcr/deliveries/{run.payload['delivery_id']}")["jobs"]
    assert {(row["pr_number"], row["pytorch_head_sha"]) for row in rows} == {(victim.number, victim.sha)}


def test_a_forged_echo_of_the_delivery_is_refused(relay):
    labelled, victim = PullRequest(relay), PullRequest(relay)
    labelled.labels = [LABEL]
    target = labelled.opened()
    run = Run(relay, victim.opened(), NPU_TOO)

    def forge(body):
        body["delivery_id"] = target
    run.report("in_progress", echo=forge, expect=403)
    no_checks(relay, labelled.sha, NPU_TOO)


def test_several_jobs_at_once_each_get_one_check_run(relay):
    pr = PullRequest(relay)
    pr.labels = [LABEL]
    jobs = [f"job {number}" for number in range(12)]
    Run(relay, pr.opened(), NPU).start(*jobs).end(*jobs)
    wait_checks(relay, pr.sha, NPU, {f"ci/{job}": "success" for job in jobs})


def test_several_repositories_of_one_device_each_get_theirs(relay):
    pr = PullRequest(relay)
    delivery = pr.opened()
    Run(relay, delivery, NPU).start().end()
    Run(relay, delivery, NPU_TOO).start().end(conclusion="failure")
    Run(relay, delivery, GPU).start().end()
    wait_idle(relay)
    pr.labeled(LABEL)
    wait_checks(relay, pr.sha, NPU, {"ci/build": "success"})
    wait_checks(relay, pr.sha, NPU_TOO, {"ci/build": "failure"})
    no_checks(relay, pr.sha, GPU)


def test_two_devices_each_open_only_their_own(relay):
    pr = PullRequest(relay)
    pr.labels = [LABEL]
    delivery = pr.opened()
    Run(relay, delivery, NPU).start().end()
    gpu = Run(relay, delivery, GPU).start()
    wait_checks(relay, pr.sha, NPU, {"ci/build": "success"})
    no_checks(relay, pr.sha, GPU)
    pr.labeled(OTHER_LABEL)
    wait_checks(relay, pr.sha, GPU, {"ci/build": "in_progress"})
    pr.unlabeled(LABEL)
    wait_idle(relay)
    gpu.end()
    Run(relay, delivery, NPU, workflow="late").start()
    wait_checks(relay, pr.sha, GPU, {"ci/build": "success"})
    wait_idle(relay)
    wait_checks(relay, pr.sha, NPU, {"ci/build": "success"})


def test_the_label_of_another_pull_request_with_the_same_head_does_not_count(relay):
    plain = PullRequest(relay)
    labelled = PullRequest(relay, sha=plain.sha)
    run = Run(relay, plain.opened(), NPU).start("of-plain").end("of-plain")
    other = Run(relay, labelled.opened(), NPU)
    labelled.labeled(LABEL)
    wait_idle(relay)
    assert job_checks(relay, plain.sha, NPU) == {}
    run.start("again").end("again")
    other.start("of-labelled").end("of-labelled")
    wait_checks(relay, plain.sha, NPU, {"ci/of-labelled": "success"})
    wait_idle(relay)
    wait_checks(relay, plain.sha, NPU, {"ci/of-labelled": "success"})
    (check,) = job_checks(relay, plain.sha, NPU).values()
    assert check["external_id"].endswith(f":{labelled.number}")


def test_a_ciflow_tag_push_belongs_to_its_pull_request(relay):
    pr = PullRequest(relay)
    pr.opened()
    pr.labeled(LABEL)
    wait_idle(relay)
    tagged = sha_of(f"tag of {pr.number}")
    delivery = push(relay, f"refs/tags/ciflow/crcr/npu/{pr.number}", tagged)
    sent = wait_dispatch(relay, delivery, NPU)
    assert sent["event_type"] == "push"
    assert sent["client_payload"]["payload"]["after"] == tagged
    run = Run(relay, delivery, NPU).start()
    wait_checks(relay, tagged, NPU, {"ci/build": "in_progress"})
    run.end()
    wait_checks(relay, tagged, NPU, {"ci/build": "success"})
    (check,) = job_checks(relay, tagged, NPU).values()
    assert check["external_id"].endswith(f":{pr.number}")
    assert job_checks(relay, pr.sha, NPU) == {}
    (row,) = relay.api(f"/api/crcr/deliveries/{delivery}")["jobs"]
    assert (row["pr_number"], row["pytorch_head_sha"]) == (pr.number, tagged)
    assert delivery in {one["delivery_id"]
                        for one in relay.api(f"/api/crcr/prs/{pr.number}")["deliveries"]}


def test_a_ciflow_tag_push_of_a_pull_request_without_the_label_has_no_check_run(relay):
    pr = PullRequest(relay)
    pr.opened()
    delivery = push(relay, f"refs/tags/ciflow/trunk/{pr.number}", pr.sha)
    Run(relay, delivery, NPU).start().end()
    no_checks(relay, pr.sha, NPU)


def test_label_events_are_never_dispatched(relay):
    pr = PullRequest(relay)
    pr.opened()
    deliveries = [pr.labeled(LABEL), pr.unlabeled(LABEL), pr.labeled(OTHER_LABEL)]
    fence = pr.pushed()
    for repo in ("org/two", NPU, NPU_TOO, GPU):
        wait_dispatch(relay, fence, repo)
    wait_idle(relay)
    rows = read_topic(relay.kafka, relay.topic("dispatches"))
    for delivery in deliveries:
        assert dispatches(relay, delivery) == []
        assert outcomes_of(rows, delivery) == {}


def test_a_label_that_is_not_ours_is_not_even_stored(relay):
    pr = PullRequest(relay)
    status, answer, _ = relay.send_webhook(pr.labeled_event("module: nn"))
    assert (status, answer) == (200, {"ignored": True, "reason": "other_action"})


def test_a_label_that_is_folded_before_the_allowlist_knows_the_repository_counts(relay):
    pr = PullRequest(relay)
    pr.opened()
    pr.labeled("ciflow/crcr/tpu")
    wait_idle(relay)
    relay.allowlist_file.write_text(ALLOWLIST + "  tpu: { org/tpu: [dave] }\n")
    wait_for("the new version", lambda: any(
        b"org/tpu" in row.value for row in read_topic(relay.kafka, relay.topic("allowlist"))))

    def dispatched():
        delivery = pr.pushed()
        wait_dispatch(relay, delivery, NPU)
        return delivery if any(one["repo"] == "org/tpu" for one in dispatches(relay, delivery)) else None
    run = Run(relay, wait_for("a dispatch to the new repository", dispatched, 60, every=1), "org/tpu")
    run.start().end()
    wait_checks(relay, pr.sha, "org/tpu", {"ci/build": "success"})


# ---- two reporters, facts in every order -----------------------------------------------------------------------


class Facts:
    """What is known of one pull request and L3 repository, put into the topics one by one, in any order."""

    def __init__(self, relay, number):
        self.relay, self.number = relay, number
        self.delivery, self.sha = str(uuid.uuid4()), sha_of(f"facts {number}")
        self.pr = PullRequest(relay, number, self.sha)
        self.now = int(time.time() * 1000)

    def put(self, name):
        getattr(self, name)()

    def write(self, topic, key, document, headers):
        write(self.relay.kafka, self.relay.topic(topic), key, json.dumps(document).encode(), headers)

    def labeled(self):
        self.write("events", f"pytorch/pytorch#{self.number}", self.pr.labeled_event(LABEL), {
            "event": "pull_request", "action": "labeled", "delivery": str(uuid.uuid4()),
            "pr": str(self.number), "head_sha": self.sha, "received_ms": str(self.now),
            "source": "webhook"})

    def outcome(self):
        self.write("dispatches", f"{self.delivery}/{NPU}", {
            "delivery_id": self.delivery, "repo": NPU, "tier": "L3", "kind": "dispatch",
            "event_type": "pull_request", "pr_number": self.number, "head_sha": self.sha,
            "outcome": "dispatched", "http_status": 204, "attempt": 1, "latency_ms": 5, "error": None,
            "at": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(self.now / 1000)),
            "maybe_duplicate": False}, {"delivery": self.delivery, "repo": NPU})

    def callback(self, status, at_ms, **workflow):
        self.write("callbacks", f"{self.delivery}/{NPU}", {
            "event_type": "pull_request", "delivery_id": self.delivery, "payload": {},
            "workflow": {"schema_version": "1", "name": "ci", "job_name": "build", "run_attempt": 1,
                         "run_id": self.number, "status": status, **workflow}}, {
            "repo": NPU, "level": "L3", "issuer": "test", "provenance": "token",
            "delivery": self.delivery, "pr": str(self.number), "head_sha": self.sha,
            "dispatched_ms": str(self.now), "received_ms": str(self.now + at_ms)})

    def in_progress(self):
        self.callback("in_progress", 1000)

    def completed(self):
        self.callback("completed", 2000, conclusion="failure")


def test_two_reporters_make_the_same_check_run_from_every_order(relay):
    orders = list(itertools.permutations(("labeled", "outcome", "in_progress", "completed")))
    made = [Facts(relay, 900_000 + number) for number in range(len(orders))]
    for step in range(4): # the orders side by side: each step reaches both reporters mixed with the others'
        for facts, order in zip(made, orders):
            facts.put(order[step])
    for facts in made:
        wait_checks(relay, facts.sha, NPU, {"ci/build": "failure"})
    wait_idle(relay)
    for facts in made: # each once: job_checks fails on a second of the same name
        assert len(job_checks(relay, facts.sha, NPU)) == 1
    for part in ("reporter", "reporter2"):
        assert relay.metric(part, "crcr_facts_total") > 0, f"{part} had nothing to do"


def test_no_check_run_of_any_test_went_to_another_repository(relay):
    names = {run["name"] for repo in ("org/two",) for run in checks_anywhere(relay, repo)}
    assert names == set()
