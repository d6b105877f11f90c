"""What the check runs that crcr-reporter makes mean to those who read them (lib/check_readers.py), on real
Kafka and Redis and the simulated GitHub: L3 stops no merge, whatever happens; a failing L4 does."""
import pytest

from lib.check_readers import branch_protection, l4_gate, trymerge
from lib.processes import wait_for
from test_reporter import label_event, wait_idle
from test_reporter_aggregate import SILENT_S, Sum, Summing

LEVELS = {"org/two": "L2", "org/three": "L3", "org/four": "L4"}
AGGREGATE, JOB = "crcr/org/four", "crcr/org/four/ci/build"


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Summing(tmp_path_factory.mktemp("readers"), kafka_node.brokers)
    try:
        yield one
    finally:
        one.close()


def failed(job):
    job.sent().call("in_progress", 1000).call("completed", 2000, conclusion="failure", run_complete=True)


def silent(job):
    job.sent(at_ms=job.ago(SILENT_S + 10))


def refused(job):
    job.sent("failed", http_status=404, error="Not Found")


def timed_out(job):
    """The sweep's callback, as it is published when the time is over."""
    job.sent().call("in_progress", 1000)
    job.call("completed", 2000, provenance="sweeper", conclusion="timed_out")


def cancelled(job):
    job.sent().call("in_progress", 1000).call("completed", 2000, conclusion="cancelled", run_complete=True)


def green(job):
    job.sent().call("in_progress", 1000).call("completed", 2000, conclusion="success", run_complete=True)


def nothing_to_do(job):
    job.sent().call("completed", 2000, conclusion="skipped", run_complete=True)


def readings(reporter, job, required=()):
    runs = reporter.checks(job.sha)
    return {"protection": branch_protection(runs, required), "trymerge": trymerge(runs, LEVELS),
            "gate": l4_gate(runs, LEVELS)}


@pytest.mark.parametrize("happened", [failed, silent, refused, timed_out, cancelled, green, nothing_to_do],
                         ids=lambda one: one.__name__)
def test_l3_stops_no_merge(reporter, happened):
    job = Sum(reporter, "org/three", "L3", pr=71)
    label_event(job, "labeled", ["ciflow/crcr/npu"], "ciflow/crcr/npu", 1)
    happened(job)
    if happened not in (silent, refused):
        job.wait_check()
    wait_idle(reporter)
    assert readings(reporter, job) == {"protection": [], "trymerge": [], "gate": []}


@pytest.mark.parametrize("happened, conclusion, trymerge_names, gate_names", [
    (failed, "failure", [AGGREGATE, JOB], [JOB]),
    (silent, "timed_out", [AGGREGATE], []),
    (refused, "failure", [AGGREGATE], []),
    (timed_out, "timed_out", [AGGREGATE, JOB], []),
    (cancelled, "cancelled", [], [])], ids=lambda one: getattr(one, "__name__", None))
def test_an_l4_that_does_not_pass_stops_the_merge(reporter, happened, conclusion, trymerge_names, gate_names):
    job = Sum(reporter)
    happened(job)
    job.wait("completed", conclusion)
    wait_idle(reporter)
    now = readings(reporter, job, [AGGREGATE])
    assert (now["protection"], sorted(now["trymerge"]), now["gate"]) == ([AGGREGATE], trymerge_names, gate_names)


def test_an_l4_that_runs_stops_the_merge_until_it_has_ended(reporter):
    job = Sum(reporter).sent().call("in_progress", 1000)
    job.wait("in_progress")
    wait_for("the job's check run", lambda: len(reporter.checks(job.sha)) == 2)
    now = readings(reporter, job, [AGGREGATE])
    assert (now["protection"], sorted(now["trymerge"]), now["gate"]) == ([AGGREGATE], [AGGREGATE, JOB], [JOB])
    job.call("completed", 2000, conclusion="success", run_complete=True).wait("completed", "success")
    wait_idle(reporter)
    assert readings(reporter, job, [AGGREGATE]) == {"protection": [], "trymerge": [], "gate": []}


@pytest.mark.parametrize("happened, conclusion", [(green, "success"), (nothing_to_do, "skipped")])
def test_an_l4_that_passed_or_had_nothing_to_do_stops_nothing(reporter, happened, conclusion):
    job = Sum(reporter)
    happened(job)
    job.wait("completed", conclusion)
    wait_idle(reporter)
    assert readings(reporter, job, [AGGREGATE]) == {"protection": [], "trymerge": [], "gate": []}
