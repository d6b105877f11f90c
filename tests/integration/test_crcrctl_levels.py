"""`crcrctl levels` over 45 simulated days in a real Kafka: who is ready for L3, who is not good enough to
stay there, the proposal, and what --apply does to the check runs of a real reporter."""
import datetime
import hashlib
import json
import secrets
import time

import pytest

from lib.ctl import Ctl
from lib.kafka import create_topics, read_topic, write_all
from lib.processes import wait_for
from lib.relay import pull_request
from test_reporter import Job, Reporter, label_event, wait_idle

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
SOURCE = "https://github.com/pytorch/pytorch/blob/main/.github/allowlist.yml"
READY = ("org/ready", "org/young", "org/flaky", "org/slow", "org/overrun", "org/queue", "org/timeouts",
         "org/idle", "pytorch/crcr-test")
STAY = ("org/stays", "org/l3flaky", "org/l3slow", "org/l3timeouts", "org/l3idle")


def allowlist(l1=(), l2=(), l3=(), l4=("org/four",)):
    lines = ["# who takes part"]
    for name, repos in (("L1", l1), ("L2", l2)):
        lines += [f"{name}:"] + [f"  - {repo}" for repo in repos]
    lines += ["L3:"] + (["  npu:"] + [f"    {repo}: [alice]" for repo in l3] if l3 else [])
    return "\n".join(lines + ["L4:"] + [f"  - {repo}: carol" for repo in l4]) + "\n"


def iso(ms):
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc).isoformat(timespec="milliseconds")


class Past:
    """Writes the topics as the relay would have, in the past."""

    def __init__(self, ctl):
        self.ctl, self.now = ctl, int(time.time() * 1000)
        self.rows, self.run = [], 1000

    def list(self, days_ago, text):
        at = self.now - int(days_ago * DAY)
        headers = {"source": SOURCE, "sha": hashlib.sha256(text.encode()).hexdigest(), "fetched_ms": str(at)}
        write_all(self.ctl.brokers, self.ctl.prefix + "allowlist",
                  [("allowlist", text.encode(), headers, at)])
        return headers["sha"]

    def job(self, repo, days_ago, conclusion="success", name="build", queue=300, ran=3600, took=HOUR,
            status="completed", event_type="pull_request"):
        """One run with one job that ended so many days ago; queue and ran in seconds, took in milliseconds."""
        end = self.now - int(days_ago * DAY)
        self.run += 1
        more = {"event_type": event_type, "pr_number": 7 if event_type == "pull_request" else None}
        self.rows.append((f"{repo}/d{self.run}/ci/{name}/{self.run}-1", json.dumps({
            "dynamoKey": f"{repo}/d{self.run}/ci/{name}/{self.run}-1", "status": status,
            "conclusion": conclusion, "downstream_repo": repo, "downstream_repo_level": "L2",
            "delivery_id": f"d{self.run}", "workflow_name": "ci", "job_name": name,
            "check_run_id": f"{self.run}-1", "run_id": str(self.run), "run_attempt": "1",
            "queue_time": queue, "execution_time": ran, "started_at": iso(end - took),
            "completed_at": iso(end), **more}).encode(), {}, end))

    def jobs(self, repo, n=200, days=13, bad=0, **one):
        """n runs, one after the other over the days; `bad` of them with what `one` says, the rest good."""
        for i in range(n):
            self.job(repo, days * (i + 0.5) / n, **(one if i < bad else {}))

    def write(self):
        self.rows.sort(key=lambda row: row[3])
        write_all(self.ctl.brokers, self.ctl.prefix + "results", self.rows)
        self.rows = []


@pytest.fixture(scope="module")
def past(either_broker):
    ctl = Ctl(either_broker.brokers, either_broker.prefix)
    past = Past(ctl)
    old = [repo for repo in READY if repo != "org/young"]
    past.list(45, allowlist(l1=READY + STAY))
    past.list(40, allowlist(l1=["org/young"], l2=old + list(STAY)))
    past.list(20, allowlist(l2=READY, l3=STAY))
    past.sha = past.list(10, allowlist(l1=["org/new"], l2=READY, l3=STAY))
    past.jobs("org/ready", bad=15, conclusion="failure")
    past.jobs("org/young")
    past.jobs("org/flaky", bad=21, conclusion="cancelled")
    past.jobs("org/slow", bad=101, took=4 * HOUR)
    past.jobs("org/overrun", bad=2, ran=3 * 3600 + 1)
    past.jobs("org/queue", bad=200, queue=1801)
    past.jobs("org/timeouts", bad=2, status="timed_out", conclusion=None)
    past.jobs("pytorch/crcr-test", bad=100, name="l2-xfail", conclusion="failure")
    past.jobs("org/stays", days=6)
    past.jobs("org/l3flaky", days=6, bad=21, conclusion="failure")
    past.jobs("org/l3slow", days=6, bad=101, took=4 * HOUR)
    past.jobs("org/l3timeouts", days=6, bad=2, conclusion="timed_out")
    past.jobs("org/four", days=6, bad=200, conclusion="failure")
    past.jobs("org/l3flaky", 900, days=6, bad=900, event_type="nightly")  # a success each: they help nobody
    past.jobs("org/stays", 60, days=6, bad=60, conclusion="failure", event_type="periodic")  # and harm nobody
    for days_ago in range(15, 30):  # outside both windows: nothing of it may count
        for repo in ("org/ready", "org/idle", "org/l3idle", "org/stays"):
            past.job(repo, days_ago, "failure", queue=9000, ran=9000, took=9 * HOUR)
    for days_ago in (8, 9, 10):  # outside the window of demotion only
        past.job("org/stays", days_ago, "failure", took=9 * HOUR)
    past.write()
    return past


@pytest.fixture(scope="module")
def report(past):
    return json.loads(past.ctl("levels", "--json").stdout)


def row(report, repo):
    return next(one for one in report["repos"] if one["repo"] == repo)


def not_ok(one):
    return [criterion["name"] for criterion in one["criteria"] if not criterion["ok"]]


def criterion(one, name):
    return next(c for c in one["criteria"] if c["name"] == name)


# ---- readiness -----------------------------------------------------------------------------------------
def test_ready_when_every_criterion_is_met_with_the_evidence(past, report):
    one = row(report, "org/ready")
    assert (one["state"], one["level"], not_ok(one)) == ("ready", "L2", [])
    assert {c["name"] for c in one["criteria"]} == {
        "tenure", "pass_rate", "e2e_p50", "overrun", "queue_mean", "timeouts"}
    assert criterion(one, "pass_rate") == {
        "name": "pass_rate", "value": 92.5, "unit": "percent", "wanted": ">=", "threshold": 90.0,
        "ok": True, "over": 200, "of": "jobs"}  # 185 of 200; the 15 older failures do not count
    assert criterion(one, "e2e_p50")["value"] == 3900  # an hour, and five minutes in the queue
    assert criterion(one, "queue_mean")["value"] == 300
    assert 40 <= criterion(one, "tenure")["value"] / 86400 < 40.1
    assert report["allowlist"]["sha"] == past.sha


@pytest.mark.parametrize("repo,name,value", (
    ("org/young", "tenure", None), ("org/flaky", "pass_rate", 89.5), ("org/slow", "e2e_p50", 14700),
    ("org/overrun", "overrun", 1.0), ("org/queue", "queue_mean", 1801), ("org/timeouts", "timeouts", 1.0)),
    ids=lambda value: str(value))
def test_each_criterion_alone_keeps_a_repository_at_l2(report, repo, name, value):
    one = row(report, repo)
    assert one["state"] == "not_ready" and not_ok(one) == [name]
    if value is not None:
        assert criterion(one, name)["value"] == value


def test_tenure_begins_with_the_version_that_gave_the_level(report):
    assert 20 <= criterion(row(report, "org/young"), "tenure")["value"] / 86400 < 20.1


def test_without_jobs_in_the_window_nobody_is_ready_and_nobody_demoted(report):
    assert row(report, "org/idle")["state"] == "no_jobs"
    assert row(report, "org/l3idle")["state"] == "no_jobs"
    assert row(report, "org/idle")["proposed"] is None and row(report, "org/l3idle")["proposed"] is None


def test_the_canary_succeeds_by_failing(report):
    one = row(report, "pytorch/crcr-test")
    assert one["state"] == "ready" and criterion(one, "pass_rate")["value"] == 100.0


# ---- demotion ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("repo,name", (("org/l3flaky", "pass_rate"), ("org/l3slow", "e2e_p50"),
                                       ("org/l3timeouts", "timeouts")))
def test_each_criterion_of_demotion_is_seen(report, repo, name):
    one = row(report, repo)
    assert one["state"] == "bad" and not_ok(one) == [name]


def test_what_ended_before_the_window_demotes_nobody(report):
    one = row(report, "org/stays")
    assert one["state"] == "good" and criterion(one, "pass_rate")["value"] == 100.0


def test_nightly_runs_stand_beside_and_decide_nothing(past, report):
    assert (row(report, "org/l3flaky")["nightly_jobs"], row(report, "org/l3flaky")["nightly_successful"]) == (900, 900)
    assert (row(report, "org/stays")["nightly_jobs"], row(report, "org/stays")["nightly_successful"]) == (60, 0)
    assert row(report, "org/stays")["state"] == "good" and row(report, "org/l3flaky")["state"] == "bad"
    assert "which decide nothing: 900 of 900 jobs passed" in past.ctl("levels").stdout


def test_the_stays_at_l2_add_up(kafka_node):
    ctl = Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.")
    create_topics(ctl.brokers, ctl.prefix)
    past = Past(ctl)
    for days_ago, level in ((60, "l2"), (40, "l1"), (30, "l3"), (15, "l2")):
        past.list(days_ago, allowlist(**{level: ["org/back"]}))
    past.jobs("org/back")
    past.write()
    one = row(json.loads(ctl("levels", "--json").stdout), "org/back")
    assert one["state"] == "ready" and 35 <= criterion(one, "tenure")["value"] / 86400 < 35.1


def test_l4_shows_its_figures_and_is_left_to_people(report, past):
    assert row(report, "org/four")["state"] == "shown"
    assert [(one["value"], one["ok"]) for one in row(report, "org/four")["criteria"]] == [(0, None), (0, None), (3900, None)]
    assert row(report, "org/four")["proposed"] is None
    assert "L4 is decided by people" in past.ctl("levels").stdout


def test_thresholds_and_windows_are_flags(past):
    loose = json.loads(past.ctl("levels", "--json", "--min-pass-rate", "89", "--max-timeouts", "2%",
                                "--max-overrun", "1.5", "--max-queue", "31m", "--max-e2e", "5h",
                                "--min-tenure", "20d").stdout)
    assert {one["repo"] for one in loose["repos"] if one["level"] == "L2" and one["state"] == "ready"} == \
        set(READY) - {"org/idle"}
    assert not [one for one in loose["repos"] if one["level"] == "L3" and one["state"] == "bad"]
    wide = json.loads(past.ctl("levels", "--json", "--ready-window", "30d", "--demote-window", "30d",
                               "--overrun-after", "2h").stdout)
    assert row(wide, "org/idle")["state"] == "not_ready"
    assert criterion(row(wide, "org/ready"), "pass_rate")["over"] == 215


@pytest.mark.parametrize("arguments", (
    ["levels", "x"], ["levels", "--dry-run"], ["levels", "--patch"], ["levels", "--max-e2e", "soon"],
    ["levels", "--min-pass-rate", "101"], ["levels", "--nonsense"]), ids=" ".join)
def test_wrong_usage_of_levels_is_exit_2_and_says_why(past, arguments):
    assert past.ctl(*arguments, expect=2).stderr.strip()


def test_without_an_allowlist_it_says_so(kafka_node):
    ctl = Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.")
    assert "missing in Kafka" in ctl("levels", expect=1).stderr
    create_topics(ctl.brokers, ctl.prefix)
    assert "no allowlist has been published" in ctl("levels", expect=1).stderr


# ---- the proposal ------------------------------------------------------------------------------------------
def test_the_proposal_names_each_line_to_move_where_to_and_why(past, report):
    lines = allowlist(l1=["org/new"], l2=READY, l3=STAY).splitlines()
    moved = {one["repo"]: one for one in report["repos"] if one["proposed"]}
    assert {repo: one["proposed"] for repo, one in moved.items()} == {
        "org/ready": "L3", "pytorch/crcr-test": "L3", "org/l3flaky": "L2", "org/l3slow": "L2", "org/l3timeouts": "L2"}
    for repo, one in moved.items():
        assert repo in lines[one["line"] - 1], "the line of the version in force"
    assert moved["org/ready"]["device"] is None and moved["org/l3flaky"]["device"] == "npu"
    said = past.ctl("levels").stdout.split("Proposal: ")[1].splitlines()[1:]
    shown = dict(zip(said[::2], said[1::2]))
    assert len(shown) == len(moved)
    for repo, one in moved.items():
        at = f"  .github/allowlist.yml:{one['line']}: {lines[one['line'] - 1].strip()}"
        assert shown[at].startswith(f"    {repo}: {one['level']} to {one['proposed']}")
    assert any("org/ready: L2 to L3, below its device: tenure " in line and "pass_rate 92.5 %" in line for line in said)
    assert any("org/l3flaky: L3 to L2: pass_rate 89.5 %, at least 90.0 % wanted, over 200 jobs" in line for line in said)


def test_the_text_shows_each_criterion(past):
    text = past.ctl("levels").stdout
    assert "org/flaky  not ready, L2 since " in text
    assert "NOT OK pass_rate   89.5 %" in text and "at least 90.0 %, over 200 jobs" in text


# ---- --apply ---------------------------------------------------------------------------------------------
def demotions(ctl):
    rows = [r for r in read_topic(ctl.brokers, ctl.prefix + "allowlist") if r.key == "demotions"]
    return rows


def test_dry_run_says_what_apply_would_do_and_writes_nothing(past):
    text = past.ctl("levels", "--apply", "--dry-run").stdout
    assert "demoted    org/l3flaky: pass_rate 89.5 %, at least 90.0 % wanted, over 200 jobs" in text
    assert text.endswith("dry run: nothing was written\n") and demotions(past.ctl) == []


def test_apply_writes_the_demotions_once(past):
    text = past.ctl("levels", "--apply").stdout
    assert text.count("demoted    ") == 3
    record, = demotions(past.ctl)
    written = json.loads(record.value)
    assert written["schema_version"] == 1
    assert {one["repo"] for one in written["demoted"]} == {"org/l3flaky", "org/l3slow", "org/l3timeouts"}
    assert set(record.headers) == {"source", "sha", "fetched_ms"}
    assert "unchanged  3 demoted" in past.ctl("levels", "--apply").stdout
    assert len(demotions(past.ctl)) == 1
    began, ended = past.ctl.read("audit")
    assert began.headers["arguments"] == "--apply" and ended.headers["result"] == "3 demoted"
    shown = json.loads(past.ctl("levels", "--json").stdout)
    assert row(shown, "org/l3flaky")["demoted_since"] == written["demoted"][0]["since"]


# ---- what a reporter makes of it ---------------------------------------------------------------------------
LIST = "L3:\n  npu:\n    org/three: [alice]\nL4:\n  - org/four: carol\n"


@pytest.fixture
def reporter(kafka_node, tmp_path):
    one = Reporter(tmp_path, kafka_node.brokers)
    try:
        one.ctl = Ctl(kafka_node.brokers, one.relay.prefix)
        one.past = Past(one.ctl)
        one.past.list(0, LIST)
        yield one
    finally:
        one.close()


def labelled(reporter, number):
    job = Job(reporter, "org/three", "L3", pr=number)
    label_event(job, "labeled", ["ciflow/crcr/npu"], "ciflow/crcr/npu", 1)
    wait_idle(reporter)
    return job


def is_demoted(reporter):
    return reporter.relay.api("/api/crcr/repos/org/three")["downstream"]["demoted"]


def test_a_demoted_repository_gets_no_new_check_run_until_it_recovers(reporter):
    started = labelled(reporter, 501).call("in_progress", 1000)
    started.wait_check("in_progress")
    reporter.past.jobs("org/three", 20, days=6, bad=20, conclusion="failure")
    reporter.past.write()
    assert "demoted    org/three" in reporter.ctl("levels", "--apply").stdout
    shown = wait_for("the page to say so", lambda: is_demoted(reporter))
    assert "pass_rate" in shown["reason"] and shown["since"]

    job = labelled(reporter, 502).call("completed", 2000, conclusion="success")
    job.wait_result()  # the HUD still gets it
    started.call("completed", 3000, conclusion="success")
    assert started.wait_check()[0]["conclusion"] == "success"
    wait_idle(reporter)
    assert reporter.checks(job.sha) == []
    four = Job(reporter, pr=503).call("completed", 2000, conclusion="success")
    four.wait_check()

    reporter.past.jobs("org/three", 300, days=6)
    reporter.past.write()
    assert "recovered  org/three" in reporter.ctl("levels", "--apply").stdout
    wait_for("the page to say so", lambda: is_demoted(reporter) is None)
    labelled(reporter, 504).call("completed", 2000, conclusion="success").wait_check()


DEMOTES = "crcr-auto-demotion"


def demotion_event(reporter, action, second, labels=(DEMOTES,), number=900, branch="crcr-demotion/Org/three",
                   head="pytorch/pytorch", state="open"):
    """What GitHub says of the pull request that demotes, as ingest stores it."""
    body = pull_request(action=action, number=number, sha="9" * 40, labels=labels,
                        updated_at=f"2026-11-21T03:20:{second:02}Z")
    body["pull_request"]["head"] |= {"ref": branch, "repo": {"full_name": head}}
    body["pull_request"]["state"] = state
    delivery = f"demotion-{number}-{second}"
    reporter.put("events", f"pytorch/pytorch#{number}", body, {
        "event": "pull_request", "action": action, "delivery": delivery, "pr": str(number), "head_sha": "9" * 40,
        "received_ms": str(1_795_000_000_000 + second), "source": "webhook"})
    wait_idle(reporter)


def test_an_open_pull_request_demotes_and_its_end_ends_it(reporter):
    started = labelled(reporter, 601).call("in_progress", 1000)
    started.wait_check("in_progress")
    demotion_event(reporter, "opened", 1, labels=())
    assert is_demoted(reporter) is None, "not without its label"
    demotion_event(reporter, "labeled", 2)
    shown = wait_for("the page to say so", lambda: is_demoted(reporter))
    assert shown == {"since": None, "reason": "pull request #900 is open"}
    assert reporter.redis.client().ttl("crcr:demoting") == -1, "it may be open for longer than the view keeps jobs"
    view = {"REDIS_ENDPOINT": reporter.redis.endpoint}
    assert row(json.loads(reporter.ctl("levels", "--json", **view).stdout), "org/three")["demoted_reason"] == shown["reason"]
    assert ", demoted: pull request #900 is open" in reporter.ctl("levels", **view).stdout
    assert "no new check runs: pull request #900 is open" in reporter.ctl("probe", "org/three", expect=1, **view).stdout
    assert "not known: REDIS_ENDPOINT is not set" in reporter.ctl("levels").stderr
    status = {one["repo"]: one["demotedReason"] for one in reporter.relay.api("/api/crcr/level-status")["repos"]}
    assert status == {"org/three": shown["reason"], "org/four": None}
    job = labelled(reporter, 602).call("completed", 2000, conclusion="success")
    job.wait_result()
    started.call("completed", 3000, conclusion="success")
    assert started.wait_check()[0]["conclusion"] == "success"
    wait_idle(reporter)
    assert reporter.checks(job.sha) == []
    demotion_event(reporter, "unlabeled", 3, labels=())
    wait_for("its end", lambda: is_demoted(reporter) is None)
    demotion_event(reporter, "labeled", 4)
    wait_for("it again", lambda: is_demoted(reporter))
    demotion_event(reporter, "closed", 5, state="closed")
    wait_for("its end", lambda: is_demoted(reporter) is None)
    demotion_event(reporter, "labeled", 4)  # again, and late: it says nothing any more
    labelled(reporter, 603).call("completed", 2000, conclusion="success").wait_check()


@pytest.mark.parametrize("change", [{"head": "mallory/pytorch"}, {"branch": "crcr-demotion/org"}, {"branch": "main"},
                                    {"branch": "crcr-demotion/org/three/x"}, {"labels": ("bug",)}, {"state": "closed"},
                                    {"branch": "crcr-demotion/org/four"}], ids=str)
def test_no_other_pull_request_demotes(reporter, change):
    """A fork's, another branch, without the label, closed; and L4 is not demoted."""
    demotion_event(reporter, "opened", 10, **change)
    assert is_demoted(reporter) is None
    assert reporter.relay.api("/api/crcr/repos/org/four")["downstream"]["demoted"] is None


def test_a_pull_request_demotes_also_after_the_view_was_lost(reporter):
    demotion_event(reporter, "labeled", 20)
    assert is_demoted(reporter)
    reporter.redis.client().flushall()
    wait_for("the view to be rebuilt", lambda: reporter.redis.client().exists("crcr:epoch"), 60)
    assert wait_for("the page to say so", lambda: is_demoted(reporter))["reason"] == "pull request #900 is open"


def test_the_pull_request_that_demotes_is_printed_with_its_evidence(past):
    done = past.ctl("levels", "--pull-request", "org/l3flaky")
    title, empty, *body = done.stdout.splitlines()
    assert (title, empty) == ("Move org/l3flaky from L3 to L2", "")
    assert "| pass_rate | 89.5 %, over 200 jobs | at least 90.0 % |" in body and "cc @alice" in body
    assert not [line for line in body if "e2e_p50" in line or "timeouts" in line], "what is good is no reason"
    assert "crcr-demotion/org/l3flaky" in done.stderr and DEMOTES in done.stderr
    assert "not to be demoted: good" in past.ctl("levels", "--pull-request", "org/stays", expect=1).stderr
    assert "not at L3" in past.ctl("levels", "--pull-request", "org/ready", expect=1).stderr


def test_one_json_has_the_level_of_all_back_ends_with_the_names_of_pytorchs_hud(reporter):
    reporter.past.list(0, "L1: [org/one]\nL2: [org/two]\n" + LIST)
    for n in range(8):
        for repo, level, bad in (("org/three", "L3", n < 2), ("org/four", "L4", True)):
            Job(reporter, repo, level, pr=700 + n).call("in_progress", 0).call(
                "completed", 1000, conclusion="failure" if bad else "success")
    wait_idle(reporter)
    wait_for("the list", lambda: len(reporter.relay.api("/api/crcr/level-status")["repos"]) == 4)
    status = {one["repo"]: one for one in reporter.relay.api("/api/crcr/level-status")["repos"]}
    assert [(one["level"], one["change"], one["noData"], one["windowDays"]) for one in status.values()] == [
        ("L1", None, True, None), ("L2", None, True, 14), ("L3", "demote", False, 7), ("L4", None, False, 7)]
    rate = next(one for one in status["org/three"]["criteria"] if one["criterion"] == "pass_rate")
    assert rate == {"criterion": "pass_rate", "measured": "75.0 %", "target": "at least 90.0 %", "met": False}
    assert {one["measured"] for one in status["org/four"]["criteria"]} >= {"0.0 %"}
    assert {one["met"] for one in status["org/four"]["criteria"]} == {None}
    assert status["org/one"]["measuredFrom"] is None
    for repo in ("org/two", "org/three", "org/four"):
        page = reporter.relay.api(f"/api/crcr/repos/{repo}/level")
        assert page["measured_from"] == status[repo]["measuredFrom"] and page["measured_from"], repo
    assert (page["question"], page["answer"], {one["ok"] for one in page["criteria"]}) == (None, None, {None})
    silent = {one["criterion"]: one["met"] for one in status["org/two"]["criteria"]}
    assert silent.pop("tenure") is True and set(silent.values()) == {None}


class Batch:
    """In place of a reporter: keeps what jobs put, for one write."""

    def __init__(self):
        self.rows = []

    def put(self, topic, key, value, headers, **_):
        self.rows.append((key, json.dumps(value).encode(), headers, int(time.time() * 1000)))


def test_the_page_and_crcrctl_measure_the_same(reporter):
    """Pull requests, nightlies and pushes of one downstream: each with another pass rate, and with the nightlies more
    jobs than the view keeps of all kinds."""
    batch = Batch()
    for n in range(100):
        job = Job(batch, "org/three", "L3", pr=520 + n)
        job.call("in_progress", 100 * n)
        job.call("completed", 200 * n + 1, conclusion="success" if n % 4 else "failure")
    for n in range(30):
        push = Job(batch, "org/three", "L3", pr=0)
        push.call("completed", 2000, conclusion="failure" if n % 2 else "success")
    for n in range(950):
        nightly = Job(batch, "org/three", "L3", pr=0)
        nightly.event_type = "nightly"
        nightly.call("completed", 30_000, conclusion="success")
    write_all(reporter.relay.kafka, reporter.relay.topic("callbacks"), batch.rows)
    wait_idle(reporter)

    def measured():
        page = reporter.relay.api("/api/crcr/repos/org/three/level")
        shown = row(json.loads(reporter.ctl("levels", "--json").stdout), "org/three")
        return (page, shown) if page["measured_from"] == shown["measured_from"] else None  # else an hour ended between
    page, shown = wait_for("both from one hour on", measured, 5)
    assert criterion(shown, "pass_rate")["over"] == 100 and criterion(shown, "pass_rate")["value"] == 75.0
    assert (shown["nightly_jobs"], shown["nightly_successful"]) == (950, 950)
    assert page["criteria"] == shown["criteria"]
    assert (page["answer"], shown["state"]) == (False, "bad")
    counted = {"pull_requests": (100, 75), "pushes": (30, 15), "nightly": (950, 950)}

    def beside():
        window = reporter.relay.api("/api/crcr/repos/org/three")["downstream"]["window"]
        return {kind: (window[kind]["completed"], window[kind]["successful"]) for kind in counted}
    wait_for("each kind of run to be counted by itself", lambda: beside() == counted, 60)
    status = {one["repo"]: one for one in reporter.relay.api("/api/crcr/level-status")["repos"]}["org/three"]
    assert (status["change"], status["noData"]) == ("demote", False)
    assert {one["criterion"]: one["met"] for one in status["criteria"]} == \
        {one["name"]: one["ok"] if one["value"] is not None else None for one in shown["criteria"]}


def test_a_demoted_repository_without_jobs_stays_demoted_and_another_level_ends_it(reporter):
    reporter.past.jobs("org/three", 20, days=6, bad=20, conclusion="failure")
    reporter.past.write()
    reporter.ctl("levels", "--apply")
    assert "unchanged  1 demoted" in reporter.ctl("levels", "--apply", "--demote-window", "10s").stdout
    reporter.past.list(0, LIST.replace("L3:\n  npu:\n    org/three: [alice]", "L2: [org/three]"))
    assert "recovered  org/three" in reporter.ctl("levels", "--apply").stdout
