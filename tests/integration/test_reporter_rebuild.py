"""The rebuild of the view by crcr-reporter, on real Kafka and Redis: what Redis loses comes back as it
was."""
import json
import time

import pytest

from lib.processes import wait_for
from rebuilding import Rebuilding, differences, dump
from test_reporter import Job, label_event, wait_idle
from test_reporter_commits import claim, push_event, sha_of


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Rebuilding(tmp_path_factory.mktemp("rebuild"), kafka_node.brokers)
    try:
        yield one
    finally:
        one.close()


def all_kinds(reporter):
    """Jobs and outcomes of every kind; gives them by name."""
    jobs = {}
    jobs["plain"] = Job(reporter).outcome("dispatched", action="opened").call("in_progress", 1000) \
        .call("completed", 2000, conclusion="failure", test_results={"passed": 8, "failed": 1,
              "skipped": 1}, failed_tests_detail=[{"name": f"t{i}"} for i in range(30)],
              triage_verdict={"verdict": "flaky"}, environment="mi300")
    repeated = jobs["repeated"] = Job(reporter)
    for _ in range(3):
        repeated.call("in_progress", 1000).call("completed", 3000, conclusion="success")
    jobs["reversed"] = Job(reporter).call("completed", 5000, conclusion="success") \
        .call("in_progress", 900, url="https://ci.example/1").call("completed", 6000, conclusion="failure")
    jobs["attempts"] = Job(reporter).call("completed", 2000, conclusion="failure") \
        .call("in_progress", 3000, run_attempt=2).call("completed", 2500, conclusion="cancelled") \
        .call("completed", 9000, conclusion="success", run_attempt=2)
    jobs["timed_out"] = Job(reporter).call("in_progress", 1000).call("completed", 1500, "sweeper")
    jobs["timed_out_late"] = Job(reporter).call("in_progress", 1000) \
        .call("completed", 1500, "sweeper").call("completed", 9000, conclusion="success")
    jobs["no_conclusion"] = Job(reporter).call("completed", 1000).call("completed", 2000, conclusion="success")
    for night in ("one", "two"):  # of one run
        claim(reporter, f"night-{night}-{time.time_ns()}", jobs["plain"].sha, job_name=night, check_run_id=night)
    jobs["open"] = Job(reporter).call("in_progress", 1000)
    demoted = jobs["demoted"] = Job(reporter).call("in_progress", 1000)
    demoted.level = "L1"
    demoted.call("completed", 2000, conclusion="success")
    labelled = jobs["labelled"] = Job(reporter, "org/three", "L3", pr=77)
    label_event(labelled, "labeled", ["ciflow/crcr/npu", "other"], "ciflow/crcr/npu", 1)
    label_event(labelled, "labeled", ["ciflow/crcr/npu", "ciflow/crcr/x"], "ciflow/crcr/x", 2)
    labelled.call("completed", 2000, conclusion="success")
    for outcome in ("waiting", "unknown", "superseded", "skipped", "failed", "duplicate"):
        jobs[outcome] = Job(reporter, pr=8).outcome(outcome)
    Job(reporter, pr=8).outcome("waiting").outcome("unknown", 1000).outcome("dispatched", 2000) \
        .outcome("duplicate", 9000)
    two = jobs["two_deliveries"] = Job(reporter, pr=9).call("completed", 2000, conclusion="success")
    again = Job(reporter, pr=9)
    again.sha = two.sha
    again.call("completed", 3000, conclusion="failure")
    jobs["no_pull_request"] = Job(reporter, "org/two", "L2", pr=0).call("completed", 2000,
                                                                       conclusion="success")
    pending = jobs["pending"] = Job(reporter).outcome("unknown", 100)
    pending.call("completed", 3000, provenance="pending", conclusion="success")
    jobs["self"] = Job(reporter, "org/two", "L2", pr=0).call("completed", 4000, "self",
                                                            conclusion="success")
    push_event(reporter, sha_of("b"), [(sha_of("c"), "Three (#3)")], 1795231300)
    push_event(reporter, "0" * 40, [(sha_of("a"), "One (#1)"), (sha_of("b"), "Two (#2)")], 1795231200)
    return jobs


@pytest.fixture
def either(either_broker, tmp_path_factory):
    one = Rebuilding(tmp_path_factory.mktemp("either"), *either_broker)
    try:
        yield one
    finally:
        one.close()


def test_the_rebuilt_view_equals_the_lost_one(either):
    reporter, jobs = either, all_kinds(either)
    jobs["pending"].wait_result()
    jobs["pending"].outcome("dispatched", 8000)  # a later call of it is known by the time of the rebuild
    wait_idle(reporter)
    before = dump(reporter.client())
    kinds = {key.split(":")[1] for key in before}
    assert kinds == {"job", "delivery", "repo", "repos", "head", "pr", "prs", "dispatch", "sent", "labels", "ids", "main",
                     "jobs", "zombies", "claim", "self", "selfrun"}
    reporter.flush()
    reporter.wait_consistent()
    wait_idle(reporter)
    assert differences(before, dump(reporter.client())) == {}
    assert reporter.said("rebuild_done")[-1]["records"] == \
        sum(len(reporter.topic(name)) for name in ("dispatches", "results", "events", "callbacks"))
    row = jobs["pending"].wait_result()
    assert row["queue_time"] is None  # completed only; and the pages show all of it again
    assert len(reporter.relay.api("/api/crcr/prs/9")["deliveries"]) == 2


def test_an_epoch_that_is_dropped_alone_is_rebuilt_over_what_is_there(reporter):
    all_kinds(reporter)
    wait_idle(reporter)
    before = dump(reporter.client())
    reporter.client().delete("crcr:epoch")
    reporter.wait_consistent()
    wait_idle(reporter)
    assert differences(before, dump(reporter.client())) == {}


def test_rows_outlive_the_callbacks_that_they_came_from(kafka_node, tmp_path_factory, reporter):
    """A relay whose topics have the rows only: retention took all else."""
    Job(reporter).call("in_progress", 1000).call("completed", 2000, conclusion="success")
    Job(reporter).call("completed", 1000, conclusion="failure").call("in_progress", 3000, run_attempt=2)
    Job(reporter).call("completed", 1000)
    claim(reporter, "night-of-a-row", sha_of("night of a row"))
    wait_idle(reporter)
    rows = reporter.topic("results")
    later = Rebuilding(tmp_path_factory.mktemp("later"), kafka_node.brokers)
    try:
        later.wait_consistent()
        assert later.relay.parts["reporter"].stop() == 0
        for row in rows:
            later.put("results", row.key, row.value, row.headers)
        later.flush()
        later.start()
        wait_idle(later)
        jobs = [dump(one.client()) for one in (reporter, later)]
        wanted = [{key: value for key, value in view.items()
                   if key.startswith(("crcr:job:", "crcr:head:", "crcr:selfrun:", "crcr:repo:", "crcr:zombies"))}
                  for view in jobs]
        assert len(wanted[0]) > 2
        assert differences(*wanted) == {}
        wait_for("the claimed commit to be looked up again", lambda: (later.relay.api(
            "/api/crcr/deliveries/night-of-a-row") or {}).get("commit_exists"))
    finally:
        later.close()


@pytest.mark.long
def test_a_job_that_the_index_of_its_downstream_had_no_room_for_stays_out_of_it(kafka_node, tmp_path):
    one = Rebuilding(tmp_path, kafka_node.brokers)
    try:
        one.load(1100)
        wait_for("all to be folded", lambda: one.relay.metric(
            "reporter", "crcr_facts_total", kind="callback") >= 2200, 120)
        Job(one, "org/two", "L2").call("completed", 2000, conclusion="success").wait_result()
        wait_idle(one)
        before = dump(one.client())
        one.flush()
        one.wait_consistent()
        wait_idle(one)
        assert differences(before, dump(one.client())) == {}
    finally:
        one.close()


def test_rows_written_before_there_were_headers_come_back_as_they_read(kafka_node, tmp_path):
    one = Rebuilding(tmp_path, kafka_node.brokers)
    try:
        job = Job(one).call("in_progress", 1500).call("completed", 2000, conclusion="failure",
                                                      test_results={"passed": 1, "failed": 1,
                                                                    "skipped": 0})
        job.wait_result()
        wait_idle(one)
        def shown_by(reporter):
            """Without the relay's clocks, which such rows did not have."""
            return {**reporter.relay.api(f"/api/crcr/deliveries/{job.delivery}"), "clocks": None}
        shown = shown_by(one)
        other = Rebuilding(tmp_path / "other", kafka_node.brokers)
        try:
            assert other.relay.parts["reporter"].stop() == 0
            for row in one.topic("results"):
                other.put("results", row.key, row.value)
            other.flush()
            other.start()
            assert shown_by(other) == shown
        finally:
            other.close()
    finally:
        one.close()


def test_the_first_start_ever_costs_next_to_nothing(reporter, kafka_node, tmp_path):
    one = Rebuilding(tmp_path, kafka_node.brokers)
    try:
        [done] = one.said("rebuild_done")
        assert done["records"] <= 2 and done["ms"] < 20_000  # it asks a broker that many tests share for each topic's end
        wait_for("the metric", lambda: one.relay.metric("reporter", "crcr_view_consistent") == 1)
    finally:
        one.close()


def test_what_was_dispatched_is_not_dispatched_again(reporter):
    """Claims and the order of the lane come back from the outcomes."""
    job = Job(reporter, pr=171)
    at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    reporter.put("dispatches", f"{job.delivery}/org/four", {
        "delivery_id": job.delivery, "repo": "org/four", "tier": "L4", "kind": "dispatch",
        "event_type": "pull_request", "pr_number": 171, "head_sha": job.sha, "outcome": "dispatched",
        "http_status": 204, "attempt": 1, "latency_ms": 5, "error": None, "at": at,
        "maybe_duplicate": "answer_unseen", "seq": "1795231200000:3:17", "event_key": "pytorch/pytorch#171"},
        {"delivery": job.delivery, "repo": "org/four"})
    wait_idle(reporter)
    reporter.flush()
    reporter.wait_consistent()
    client = reporter.client()
    claim = client.hgetall(f"crcr:claim:{job.delivery}|org/four|dispatch|")
    assert (claim["state"], claim["pr"], claim["head_sha"], claim["level"]) == \
        ("done", "171", job.sha, "4")
    assert claim["outcome"] == "204 1 answer_unseen"
    assert client.get("crcr:seq:org/four|pytorch/pytorch#171") == "1795231200000:3:17"
    assert 6 * 86_400 < client.ttl(f"crcr:claim:{job.delivery}|org/four|dispatch|") <= 7 * 86_400


def test_the_claim_of_a_rerun_comes_back_while_the_view_stays(reporter):
    """Redis was unavailable when it was called, and lost nothing: the fold restores the claim, and nothing else changes."""
    job = Job(reporter, pr=172).outcome("dispatched")
    wait_idle(reporter)
    client = reporter.client()
    view = f"crcr:dispatch:{job.delivery}/org/four"
    before, epoch = client.hgetall(view), client.get("crcr:epoch")
    job.outcome("dispatched", kind="rerun_failed", run_id="171001")
    job.outcome("skipped", kind="rerun_all", run_id="171002")  # no call, no claim
    job.outcome("dispatched", kind="rerun_all", run_id="171003")
    def claim(kind, run):
        return client.hgetall(f"crcr:claim:{job.delivery}|org/four|{kind}|{run}")
    wait_for("the last one's", lambda: claim("rerun_all", 171003))
    assert claim("rerun_failed", 171001)["state"] == claim("rerun_all", 171003)["state"] == "done"
    assert claim("rerun_all", 171002) == {}
    wait_idle(reporter)
    assert before and client.hgetall(view) == before and client.get("crcr:epoch") == epoch


def test_a_row_of_anothers_hand_holds_up_no_rebuild(kafka_node, tmp_path):
    """Who may write `results` puts there what our own never do: texts that would cost a step in Redis seconds."""
    one = Rebuilding(tmp_path, kafka_node.brokers)
    try:
        job = Job(one).call("in_progress", 1000).call("completed", 2000, conclusion="success")
        job.wait_result()
        wait_idle(one)
        before = dump(one.client())
        row = next(row for row in one.topic("results") if row.headers.get("completed_ms"))
        evil = "a" * 60_000
        for name in ("ranks", "issuer", "ended_by"):
            one.put("results", f"evil {name}", json.dumps({**json.loads(row.value), "job_name": f"evil {name}"}).encode(),
                    {**row.headers, name: evil})
        one.put("results", "no repository of ours", json.dumps({**json.loads(row.value), "downstream_repo": evil}).encode(), row.headers)
        wait_for("what is no row in the DLQ", lambda: [
            gone for gone in one.topic("dlq") if gone.key == "no repository of ours" and gone.headers["class"] == "poison"])
        client = one.client()
        client.config_set("slowlog-log-slower-than", 1_000_000)
        client.slowlog_reset()
        one.flush()
        one.wait_consistent()
        wait_idle(one)
        assert not client.slowlog_get(10)
        assert all(job == dump(client)[key] for key, job in before.items() if key.startswith("crcr:job:"))
        assert len([key for key in dump(client) if "evil" in key and key.startswith("crcr:job:")]) == 3
    finally:
        one.close()
