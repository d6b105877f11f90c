"""Whether the failure of a job is known elsewhere, as check runs, aggregates, comments, pages and crcrctl say it. Real
Kafka and Redis, the simulated GitHub."""
import itertools
import subprocess
import time

import pytest

from lib.ctl import Ctl
from lib.processes import BIN, wait_for
from test_reporter import Job, label_event, wait_idle
from test_reporter_aggregate import Sum, Summing
from test_reporter_commits import push_event, report, sha_of

STALE_S = 2.1  # what was read of a downstream is kept for 2 s, which nothing shows outside
ALLOWLIST = b"""\
L2: [org/two]
L4: [{ org/main: carol }, { org/flaky: carol }, { org/others: carol }, { org/nightly: carol }, { org/neutral: carol }, { org/reads: carol }]
"""  # one a test, so that none reads what another left behind
_prs = itertools.count(400)
_commits = []  # of main, newest last


class Known(Summing):
    def start(self, instance=None, **environment):
        self.put("allowlist", "allowlist", ALLOWLIST, {"source": "test", "sha": "1" * 40, "fetched_ms": "2"})
        super().start(instance, CRCR_ONCALL_COMMENTS="1", **environment)

    def restart(self, **environment):
        self.relay.parts["reporter"].stop()
        self.start(**environment)

    def updates(self, run):
        return [one for one in self.relay.requests() if one["method"] == "PATCH" and one["path"].endswith(f"/check-runs/{run['id']}")]


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Known(tmp_path_factory.mktemp("known"), kafka_node.brokers)
    try:
        yield one
    finally:
        one.close()


def on_main(reporter, repo, name, conclusions, level="L4"):
    """Pushes a commit a conclusion to main, the oldest 3 h and 2 min ago, on which that job ends so; gives their SHAs."""
    shas = [sha_of(f"{name} {i}") for i in range(len(conclusions))]
    before = _commits[-1] if _commits else "0" * 40
    push_event(reporter, before, [(sha, f"Change {name} (#1)") for sha in shas], time.time() - 3 * 3600 - 120)
    _commits.extend(shas)
    for sha, conclusion in zip(shas, conclusions):
        job = Job(reporter, repo, level, pr=0, job_name=name)
        job.sha, job.event_type = sha, "push"
        job.call("completed", 1000, conclusion=conclusion).wait_result()
    wait_for("them on main", lambda: name in str(reporter.relay.api(f"/api/crcr/repos/{repo}/since")) or
             set(conclusions) == {"success"})
    return shas


def fails(reporter, repo, name, level="L4", **workflow):
    """The job fails on a pull request of its own, its dispatch being known."""
    job = Sum(reporter, repo, level, pr=next(_prs), job_name=name).sent()
    return job.call("completed", 2000, conclusion="failure", **workflow)


def said(job):
    """What its check run says of its failure."""
    return next(run for run in job.wait_check(count=2) if run["name"].endswith(job.workflow["job_name"]))["output"]["summary"]


def known_of(reporter, job):
    """What the JSON says, which is the same in both answers."""
    jobs = reporter.relay.api(f"/api/crcr/deliveries/{job.delivery}")["jobs"]
    of_pr = [one for delivery in reporter.relay.api(f"/api/crcr/prs/{job.pr}")["deliveries"] for one in delivery["jobs"]]
    assert [one["known"] for one in jobs] == [one["known"] for one in of_pr]
    return next(one["known"] for one in jobs if one["job_name"] == job.workflow["job_name"])


def test_a_failure_that_main_has_too_is_said_everywhere_in_the_same_words(reporter, kafka_node):
    red = on_main(reporter, "org/main", "kernels", ["success", "failure", "failure"])[1]
    job = fails(reporter, "org/main", "kernels", run_complete=True)
    sentence = f"fails on main too, since {red[:10]}, 3 h before this job"
    assert f"\nThis failure: <!-- known:main -->{sentence}<!-- -->.\n" in said(job)
    aggregate = job.wait("completed", "failure", title="Failure: 1 of 1 job not successful")
    assert f"<code>kernels</code> · <!-- known:main -->{sentence}<!-- -->\n" in aggregate["output"]["summary"]
    known = known_of(reporter, job)
    assert known.pop("since_at").startswith("20")
    assert known == {"reason": "main", "sentence": sentence, "since_sha": red, "since_or_earlier": False,
                     "flaky_commits": None, "commits": None, "other_pull_requests": 0}
    comment = wait_for("a comment", lambda: [one["body"] for one in reporter.relay.state()["comments"]
                                             if one["issue_url"].endswith(f"/issues/{job.pr}")])[0]
    assert f"<code>kernels</code> | failure · <!-- known:main -->{sentence}<!-- --> |" in comment
    ctl = Ctl(kafka_node.brokers, reporter.relay.prefix)
    environment = {"REDIS_ENDPOINT": reporter.redis.endpoint}
    assert f"  org/main  ci / kernels  completed failure: {sentence}\n" in ctl("trace", job.delivery, **environment).stdout
    assert f'"state":"completed failure","known":"{sentence}"' in ctl("trace", job.delivery, "--json", **environment).stdout


def test_a_job_that_passed_and_failed_on_one_commit_is_flaky(reporter):
    first = Job(reporter, "org/flaky", pr=next(_prs), job_name="network").call("completed", 1000, conclusion="failure")
    first.call("completed", 2000, conclusion="success", run_attempt=2).wait_result(attempt="2")
    time.sleep(STALE_S)
    job = fails(reporter, "org/flaky", "network")
    assert "flaky: passed and failed on the same commit, 1 of 2 commits" in said(job)
    known = known_of(reporter, job)
    assert (known["reason"], known["flaky_commits"], known["commits"]) == ("flaky", 1, 2)


def test_failures_of_other_pull_requests_are_counted_and_a_new_figure_alone_writes_nothing(reporter):
    first = fails(reporter, "org/others", "build")
    assert "only here" in said(first) and known_of(reporter, first)["reason"] == "only_here"
    time.sleep(STALE_S)
    second = fails(reporter, "org/others", "build")
    assert "fails on 1 other pull request in 24 h" in said(second)
    run = next(one for one in reporter.checks(first.sha) if one["name"].endswith("build"))
    first.call("completed", 3000, conclusion="success", job_name="lint", check_run_id="l")  # another pass over its commit
    wait_for("the other reason", lambda: "on 1 other pull request" in next(
        one for one in reporter.checks(first.sha) if one["id"] == run["id"])["output"]["summary"])
    fails(reporter, "org/others", "build").wait_check(count=2)
    time.sleep(STALE_S)
    written = len(reporter.updates(run))
    first.call("completed", 3000, conclusion="success", job_name="docs", check_run_id="d").wait_check(count=4)
    wait_idle(reporter)
    assert len(reporter.updates(run)) == written
    assert known_of(reporter, first)["other_pull_requests"] == 2


def test_a_nightly_run_is_no_proof_of_main(reporter):
    report(reporter, sha_of("nightly"), "org/nightly", name="ci", job_name="nightly", conclusion="failure")
    wait_for("the nightly", lambda: "nightly" in str(reporter.relay.api("/api/crcr/repos/org/nightly/since")))
    assert "only here" in said(fails(reporter, "org/nightly", "nightly"))


def test_at_l2_the_pages_know_it(reporter):
    red = on_main(reporter, "org/two", "two", ["failure"], "L2")[0]
    job = fails(reporter, "org/two", "two", "L2")
    job.wait_result()
    known = wait_for("the job", lambda: known_of(reporter, job))
    assert known["since_sha"] == red and known["since_or_earlier"]
    assert known["sentence"].startswith(f"fails on main too, since {red[:10]} or earlier, ")


def test_only_for_a_failure_is_more_read(reporter):
    client = reporter.redis.client()

    def reads_of_main(conclusion):
        """While a job ends so."""
        with client.monitor() as monitor:
            Job(reporter, "org/reads", pr=next(_prs)).call("completed", 1000, conclusion=conclusion).wait_check()
            wait_idle(reporter)
            client.echo("that was all")
            commands = itertools.takewhile(lambda one: "that was all" not in one, (one["command"] for one in monitor.listen()))
            return [one for one in commands if one.startswith("ZRANGE") and ":main " in one]
    assert reads_of_main("success") == []
    assert reads_of_main("failure")


def test_with_neutral_an_aggregate_whose_failures_main_has_too_is_neutral(reporter):
    on_main(reporter, "org/neutral", "forgiven", ["success", "failure"])
    assert fails(reporter, "org/neutral", "forgiven", run_complete=True).wait("completed", "failure")
    reporter.restart(CRCR_KNOWN_FAILURES="neutral")
    try:
        job = fails(reporter, "org/neutral", "forgiven", run_complete=True)
        label_event(job, "opened", [], "", 1)
        run = job.wait("completed", "neutral", title="Neutral: 1 of 1 job not successful, on main too")
        assert "does not make this fail (<code>CRCR_KNOWN_FAILURES</code>)" in run["output"]["summary"]
        wait_for("the job's own to say what it is",
                 lambda: {one["conclusion"] for one in reporter.checks(job.sha)} == {"neutral", "failure"})

        def shown():
            rows = (reporter.relay.api(f"/api/crcr/deliveries/{job.delivery}") or {"downstreams": []})["downstreams"]
            check = next((one["check_run"] for one in rows if one["repo"] == "org/neutral"), None)
            return check and check["status"] == "completed" and (check["conclusion"], check["blocks"])
        assert wait_for("the page", shown) == ("neutral", False), "the page says what the check run says"

        def listed(state):
            rows = reporter.relay.api(f"/api/crcr/prs?q={job.pr}&state={state}")["prs"]
            return next(([one["conclusion"], one["blocks"], one["failed"]] for row in rows for one in row["downstreams"]), None)
        assert wait_for("the list", lambda: listed("passing")) == ["neutral", False, 0] and not listed("failing")
        job.call("completed", 4000, conclusion="failure", job_name="here alone", check_run_id="h")
        assert job.wait("completed", "failure", title="2 of 2 jobs")["id"] == run["id"]
        assert wait_for("the list", lambda: listed("failing")) == ["failure", True, 1]
    finally:
        reporter.restart()


def test_another_value_of_the_setting_is_refused_at_the_start(reporter):
    environment = {**reporter.relay.environment("admin_reporter"), "CRCR_KNOWN_FAILURES": "green"}
    done = subprocess.run([BIN / "crcr-reporter", "--check-config"], env=environment, capture_output=True, text=True, timeout=30)
    assert done.returncode != 0 and "CRCR_KNOWN_FAILURES" in done.stderr and "note" in done.stderr
