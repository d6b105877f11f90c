"""What the jobs of each back end come to by the hour and by the day: counted by crcr-reporter's sweep, read from its
JSON. On real Kafka and Redis."""
import json

import pytest

from lib.processes import wait_for
from lib.relay import http
from rebuilding import Rebuilding
from test_reporter import Job, wait_idle
from test_reporter_commits import claim, report, sha_of


class Counting(Rebuilding):
    def count(self):
        """All that was folded is counted, without the seconds that the sweep gives a run to report more."""
        wait_idle(self)
        client = self.client()

        def counted():
            for member, score in client.zrange("crcr:tally", 0, -1, withscores=True):
                if score % 2 == 0:  # odd: a sweeper has it
                    client.zadd("crcr:tally", {member: 0}, xx=True)
            return not client.exists("crcr:tally")
        wait_for("all to be counted", counted)

    def window(self, repo, days=7):
        rows = self.relay.api(f"/api/crcr/summary?days={days}")["repos"]
        return next((row["window"] for row in rows if row["repo"] == repo), None)

    def wait_window(self, repo, **wanted):
        """The summary is kept for a moment."""
        self.count()
        return wait_for(f"{repo}: {wanted}", lambda: (one := self.window(repo)) and all(
            one["pull_requests"][name] == value for name, value in wanted.items()) and one)


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Counting(tmp_path_factory.mktemp("hours"), kafka_node.brokers)
    try:
        yield one
    finally:
        one.close()


def test_a_rerun_takes_the_place_of_what_its_first_attempt_counted(reporter):
    job = Job(reporter, "org/five").call("in_progress", 1500).call("completed", 11_500, conclusion="failure")
    Job(reporter, "org/five").call("completed", 12_000, conclusion="cancelled")
    report(reporter, sha_of("hours"), "org/five", conclusion="failure")
    one = reporter.wait_window("org/five", completed=2, failed=1, cancelled=1, runs=2)
    assert one["pull_requests"]["pass_rate"] == 0.0 and one["pull_requests"]["queue"]["mean"] == 1.5
    assert (one["nightly"]["completed"], one["nightly"]["failed"]) == (1, 1)
    job.call("completed", 30_000, conclusion="success", run_attempt=2)
    one = reporter.wait_window("org/five", completed=2, successful=1, failed=0, cancelled=1, runs=2)
    assert one["pull_requests"]["queue"]["mean"] == 1.5, "a re-run keeps the queue of the first attempt"
    assert abs(one["pull_requests"]["queue"]["p95"] / 1.5 - 1) <= 0.05
    for path, step, points in (("?days=7", "hour", 168), ("?days=30", "day", 30), ("", "hour", 168)):
        trends = reporter.relay.api(f"/api/crcr/repos/org/five/trends{path}")
        assert (trends["step"], len(trends["points"])) == (step, points)
        assert sum(point["pull_requests"]["completed"] for point in trends["points"]) == 2
        assert sum(point["nightly"]["completed"] for point in trends["points"]) == 1
    everyone = reporter.relay.api("/api/crcr/trends?days=7")
    five = next(repo for repo in everyone["repos"] if repo["repo"] == "org/five")
    assert five["level"] == "L4" and sum(point["successful"] for point in five["points"]) == 1
    assert sum(point["pull_requests"]["runs"] for point in everyone["points"]) >= 2
    assert five["points"][-1]["at"] == everyone["points"][-1]["at"]


def test_the_jobs_of_one_build_are_one_run_whatever_their_deliveries_are(reporter):
    build, sha = "018e5c1a-7b1f-4a54-9e0a-0a1b2c3d4e5f", sha_of("one build")
    for number in range(7):
        claim(reporter, f"one-build-{number}", sha, "org/one-build", "L2", name=f"step {number % 2}", run_id=build,
              job_name=f"job {number}", check_run_id=f"{build}-1", conclusion="failure" if number == 3 else "success")
    reporter.wait_window("org/one-build", completed=0)
    nightly = reporter.window("org/one-build")["nightly"]
    assert (nightly["completed"], nightly["successful"], nightly["runs"]) == (7, 6, 1)
    claim(reporter, "one-build-again", sha, "org/one-build", "L2", name="step 1", run_id=build, run_attempt=2,
          job_name="job 3", check_run_id=f"{build}-2")
    reporter.count()
    nightly = wait_for("the newest attempt", lambda: (now := reporter.window("org/one-build")["nightly"])["successful"] == 7 and now)
    assert (nightly["completed"], nightly["runs"]) == (7, 1)
    [row] = [one for one in reporter.relay.api("/api/crcr/summary")["repos"] if one["repo"] == "org/one-build"]
    assert (row["last_run"]["jobs"], row["last_run"]["failed"]) == (7, 0)


@pytest.mark.parametrize("path, wanted", [("/api/crcr/summary?days=8", "1, 7 or 30"), ("/api/crcr/summary?days=x", "1, 7 or 30"),
                                          ("/api/crcr/trends?days=91", "7, 30 or 90"),
                                          ("/api/crcr/repos/org/five/trends?days=1", "7, 30 or 90")])
def test_other_days_are_refused_with_what_is_accepted(reporter, path, wanted):
    status, body = http("GET", reporter.relay.url("hud", path))
    assert (status, json.loads(body)["detail"]) == (400, f"days must be {wanted}")


@pytest.mark.long
def test_the_hours_come_back_with_a_lost_view_and_stay_in_one_that_is_built_anew(reporter):
    def hours():
        client = reporter.client()
        return {key: client.hgetall(key) for key in client.scan_iter("crcr:*") if key.startswith(("crcr:hours:", "crcr:day:"))} | \
            {key: client.get(key) for key in client.scan_iter("crcr:tallied:*")}
    Job(reporter, "org/two", "L2").call("in_progress", 1000).call("completed", 2000, conclusion="success") \
        .call("completed", 3000, conclusion="failure", run_attempt=2)
    Job(reporter).call("in_progress", 1000).call("completed", 1500, "sweeper")
    report(reporter, sha_of("rebuilt"))
    reporter.count()
    before = hours()
    assert any(key.startswith("crcr:hours:org/two|") for key in before)
    reporter.client().delete("crcr:epoch")  # as rebuild-hud does
    reporter.wait_consistent()
    reporter.count()
    assert hours() == before, "counted once"
    reporter.flush()
    reporter.wait_consistent()
    reporter.count()
    assert hours() == before


def test_the_figures_are_those_of_crcrctl_levels(reporter):
    """Three runs of 12, 34 and 56 s, so that the mean is the median."""
    for queue, ran, conclusion in ((2000, 10_000, "success"), (4000, 30_000, "failure"), (9000, 40_000, "success")):
        job = Job(reporter, "org/three", "L3").call("in_progress", queue)
        job.call("completed", queue + ran, conclusion=conclusion)
        job.call("in_progress", queue, job_name="second", check_run_id="b")
        job.call("completed", queue + ran - 1000, job_name="second", check_run_id="b", conclusion="success")
    job.call("in_progress", 54_000, run_attempt=2).call("completed", 56_000, run_attempt=2, conclusion="timed_out")
    Job(reporter, "org/two", "L2").call("in_progress", 7000).call("completed", 8000, conclusion="failure")
    one = reporter.wait_window("org/three", completed=6, timed_out=1, runs=3)["pull_requests"]
    rows = {row["repo"]: {criterion["name"]: criterion for criterion in row["criteria"]}
            for row in json.loads(reporter.relay.ctl("levels", "--json").stdout)["repos"]}
    three = rows["org/three"]
    assert (three["pass_rate"]["over"], three["e2e_p50"]["over"]) == (6, 3)
    assert three["pass_rate"]["value"] == pytest.approx(100 * one["pass_rate"], abs=0.01)
    assert three["timeouts"]["value"] == pytest.approx(100 * one["timed_out"] / one["completed"], abs=0.01)
    assert three["e2e_p50"]["value"] == one["e2e"]["mean"] == 34
    two = reporter.window("org/two")["pull_requests"]
    assert rows["org/two"]["pass_rate"]["value"] == pytest.approx(100 * two["pass_rate"], abs=0.01)
    assert rows["org/two"]["queue_mean"]["value"] == pytest.approx(two["queue"]["mean"], abs=0.001)
