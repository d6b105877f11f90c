"""downstream.yml, run job by job, with code under test that is an enemy: it can neither speak for the back end nor keep what
GitHub says from being reported."""
import json
import os
import re
import subprocess
import textwrap
import time

import pytest

from lib.actions import FOLDER, Leg, Server, load
from lib.processes import ROOT

PAYLOAD = {"event_type": "pull_request", "delivery_id": "d-1", "callback_token": "a.b.c", "payload": {
    "action": "opened", "repository": {"full_name": "pytorch/pytorch"},
    "pull_request": {"number": 7, "head": {"sha": "f" * 40}}}}
JUNIT = '<testsuite><testcase name="a"/><testcase name="b"><failure message="m"/></testcase></testsuite>'
# What the pull request's code does when the back end's script runs it: ../ is the workspace.
TESTS = 'mkdir -p "$2"\ncd "$1" && RESULTS=$OLDPWD/$2 bash ./test.sh\n'


@pytest.fixture
def relay():
    with Server() as server:
        yield server


@pytest.fixture
def leg(relay, tmp_path):
    """leg(what the pull request's code does) → a run of downstream.yml, not begun."""
    def make(code, **more):
        event = json.dumps({"action": "pull_request", "client_payload": PAYLOAD})
        one = Leg(tmp_path, "org/a", event, relay.url + "?v=1", relay.url, **more)
        one.tests(TESTS)
        (one.pytorch / "test.sh").write_text(code)
        return one
    return make


def reports(relay):
    return [json.loads(body)["workflow"] for path, _, body, _ in relay.requests if body]


def tokens(relay):
    return [headers["Authorization"] for _, headers, body, _ in relay.requests if not body]


def assert_one_job(relay, conclusion):
    """Begin and end of one and the same job, by our reporter, and nothing else."""
    begin, end = reports(relay)
    assert (begin["status"], end["status"], end["conclusion"]) == ("in_progress", "completed", conclusion)
    for name in ("name", "job_name", "check_run_id", "run_id", "run_attempt"):
        assert begin[name] == end[name], name
    return begin, end


def test_begin_and_report_are_one_job_named_after_the_leg(relay, leg):
    one = leg(f"echo '{JUNIT}' >$RESULTS/r.xml; exit 1", attempt="2", leg="910B")
    assert one.run() == {"begin": "success", "test": "failure", "report": "success"}
    begin, end = assert_one_job(relay, "failure")
    assert (begin["job_name"], begin["check_run_id"], begin["run_attempt"]) == ("test (910B)", "811-2", "2")
    assert end["test_results"] == {"passed": 1, "failed": 1, "skipped": 0, "total": 2}
    assert end["artifact_url"] == "https://github.com/org/a/actions/runs/811#artifacts"


@pytest.mark.parametrize("code, conclusion", [("exit 0", "success"), ("exit 1", "failure")])
def test_a_leg_without_results_is_what_github_says(relay, leg, code, conclusion):
    one = leg(f"rm -rf $RESULTS; {code}")
    assert one.run()["report"] == "success"
    assert "test_results" not in assert_one_job(relay, conclusion)[1]


def test_a_run_that_is_cancelled_before_its_test_is_reported_as_cancelled(relay, leg):
    assert leg("exit 0").run(cancelled_before="test") == {"begin": "success", "test": "skipped", "report": "success"}
    assert_one_job(relay, "cancelled")


def test_a_leg_with_nothing_to_test_is_reported_as_skipped(relay, leg):
    assert leg("exit 1", wanted=False).run() == {"begin": "success", "test": "skipped", "report": "success"}
    assert "test_results" not in assert_one_job(relay, "skipped")[1]


def test_a_report_that_fails_keeps_nothing_from_being_tested(relay, leg):
    relay.answers = [(403, {}, b"{}")]  # the token service
    assert leg("exit 0").run() == {"begin": "success", "test": "success", "report": "success"}
    assert [one["status"] for one in reports(relay)] == ["completed"]


def printed(first):
    """The indented block of the page that begins with this line."""
    [block] = re.findall(rf"^(    {re.escape(first)}.*?)\n\n", (FOLDER / "README.md").read_text(), re.M | re.S)
    return textwrap.dedent(block)


def test_the_files_come_about_as_the_page_prints_it(relay, leg, tmp_path):
    """First one file that calls the relay's repository, then the copy that calls nothing of others. `git clone` is a link to
    this tree. The copy runs, and finds its reporter in the back end's own repository."""
    one = leg(f"echo '{JUNIT}' >$RESULTS/r.xml; exit 1")
    (tmp_path / "git").write_text('#!/bin/sh\n[ "$*" = "clone --depth 1 https://github.com/org/relay $CLONE" ]')
    (tmp_path / "git").chmod(0o755)

    def type_in(text):
        text = text.replace("ORG/RELAY\n", "org/relay\n").replace("/tmp/crcr", str(ROOT))
        subprocess.run(["bash", "-e", "-c", text], cwd=one.repository, check=True,
                       env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "CLONE": str(ROOT)})
        [use] = re.findall(r"uses: (.*)", (one.repository / ".github/workflows/pytorch.yml").read_text())
        return use
    assert type_in(printed("relay=ORG/RELAY")) == "org/relay/.github/workflows/downstream.yml@v0"
    assert not (one.repository / "deploy").exists()
    assert type_in(printed("mkdir -p deploy/downstream")) == "./.github/workflows/downstream.yml"
    copied = {file.name for file in (one.repository / "deploy/downstream").iterdir()}
    assert copied == {"action.yml", *(file.name for file in FOLDER.glob("crcr[-_]*"))}, "and all parts of the reporter"
    one.relay = one.repository
    one.jobs = load(one.repository / ".github/workflows/downstream.yml")["jobs"]
    assert one.run() == {"begin": "success", "test": "failure", "report": "success"}
    assert assert_one_job(relay, "failure")[1]["test_results"]["total"] == 2


def test_what_would_be_sent_is_shown_as_the_page_prints_it(tmp_path):
    (tmp_path / "results" / "a").mkdir(parents=True)
    (tmp_path / "results" / "a" / "r.xml").write_text(JUNIT)
    done = subprocess.run(["bash", "-e", "-c", printed("echo '{").replace("/tmp/crcr", str(ROOT))], cwd=tmp_path, check=True,
                          capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert json.loads(done.stdout)["workflow"]["test_results"]["total"] == 2


# ---- the two known thefts -----------------------------------------------------------------------------------
def test_theft_by_the_environment_of_the_parents_finds_nothing(relay, leg):
    """The code under test reads its own environment and that of every process above it."""
    one = leg('pid=$$; while [ "$pid" -gt 1 ]; do tr "\\0" "\\n" </proc/$pid/environ; '
              'pid=$(cut -d" " -f4 /proc/$pid/stat); [ "$pid" != "$STOP" ] || break; done >$RESULTS/loot; env >>$RESULTS/loot')
    one.tests(f"export STOP={os.getpid()}\n{TESTS}")
    assert one.run()["test"] == "success"
    [loot] = [file.read_text() for file in one.artifacts.glob("*/loot")]
    assert "GITHUB_RUN_ID=811" in loot, "it did see the job's environment"
    assert "ACTIONS_ID_TOKEN" not in loot and "request-secret" not in loot
    assert tokens(relay) == ["Bearer request-secret"] * 2, "begin and report could mint"


def test_theft_by_another_reporter_in_the_workspace_is_not_run(relay, leg, tmp_path):
    """The code under test writes its own reporter over ours, in the workspace, in what it hands on, and through links."""
    thief = tmp_path / "thief.py"
    thief.write_text(f"open({str(tmp_path / 'stolen')!r}, 'a').write('x')\n")
    one = leg(f"""for place in .. $RESULTS $RESULTS/.. $RESULTS/../../workspace; do
  mkdir -p $place/crcr/deploy/downstream
  for name in crcr-report crcr_check.py crcr_send.py crcr_junit.py; do cp {thief} $place/crcr/deploy/downstream/$name; done
  sed 's|exec .*|exec /usr/bin/python3 {thief}|' {FOLDER}/action.yml >$place/crcr/deploy/downstream/action.yml
done
cp {thief} $RESULTS/sitecustomize.py; cp {thief} $RESULTS/json.py; cp {thief} ../json.py
ln -s ../.. $RESULTS/up; echo '{JUNIT}' >$RESULTS/r.xml; exit 1""")
    results = one.run()
    assert not (tmp_path / "stolen").exists()
    assert results == {"begin": "success", "test": "failure", "report": "success"}
    assert_one_job(relay, "failure")


def test_a_conclusion_that_the_code_under_test_writes_is_not_reported(relay, leg):
    one = leg("""for name in conclusion status result; do echo success >$RESULTS/$name; echo "$name=success" >>$GITHUB_OUTPUT; done
echo '{"conclusion":"success"}' >$RESULTS/report.json; exit 1""")
    one.run()
    assert_one_job(relay, "failure")


# ---- artifacts that are an attack ---------------------------------------------------------------------------
HOSTILE = {
    "entities": '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><testsuite><testcase name="&b;"/></testsuite>',
    "an external entity": '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><testsuite><testcase name="&a;"/></testsuite>',
    "nesting": "<testsuite>" * 200_000,
    "a tag of 20 MB": '<testsuite><testcase name="' + "x" * 20_000_000,
    "no XML": "\x00\xff" * 1000,
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_costs_neither_the_report_nor_what_is_beside_it(relay, leg, what):
    one = leg(f"echo '{JUNIT}' >$RESULTS/a.xml; cp hostile.xml $RESULTS/b.xml; exit 1")
    (one.pytorch / "hostile.xml").write_text(HOSTILE[what], encoding="latin-1")
    began = time.monotonic()
    assert one.run()["report"] == "success" and time.monotonic() - began < 60
    end = assert_one_job(relay, "failure")[1]
    assert (end["test_results"]["failed"], end["test_results"]["passed"]) == (1, 1)
    assert "b.xml: " in one.logs["report"] and "passwd" not in json.dumps(end)


def test_links_pipes_and_loops_are_not_followed(relay, leg, tmp_path):
    """What lies outside of the artifact is not read, and a pipe that nobody writes to blocks nothing."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.xml").write_text(JUNIT)
    one = leg(f"""echo '{JUNIT}' >$RESULTS/a.xml
ln -s {outside}/secret.xml $RESULTS/link.xml; ln -s {outside} $RESULTS/folder; mkfifo $RESULTS/pipe.xml
ln -s . $RESULTS/loop; ln -s . $RESULTS/loop2; ln -s /dev/zero $RESULTS/zero.xml; exit 1""")
    assert one.run()["report"] == "success"
    assert assert_one_job(relay, "failure")[1]["test_results"]["total"] == 2
    for name in ("link.xml", "pipe.xml", "zero.xml"):
        assert name in one.logs["report"]


def test_names_of_files_and_tests_cannot_give_the_runner_commands(relay, leg):
    name = "x\n::set-env name=PATH::/evil\n::error::forged\x1b[2J%0A::warning::y.xml"
    one = leg("exit 1")
    (one.pytorch / name.replace("/", "_")).write_text("<broken")
    (one.pytorch / "test.sh").write_text(f"""cp x* $RESULTS/
echo '<testsuite><testcase name="&#10;::error::forged"><failure message="&#10;::error::forged"/></testcase></testsuite>' >$RESULTS/z.xml
exit 1""")
    one.run()
    assert_one_job(relay, "failure")
    commands = [line for line in one.logs["report"].splitlines() if line.startswith("::")]
    assert commands and all(line.startswith(("::add-mask::", "::warning title=CRCR::")) for line in commands)
    assert "%0A" not in one.logs["report"].replace("%250A", "") and "\x1b" not in one.logs["report"]


@pytest.mark.long
def test_too_many_and_too_large_files_are_cut_and_said(relay, leg):
    one = leg(f"""for i in $(seq 1 5010); do echo '<testsuite><testcase name="a"/></testsuite>' >$RESULTS/$i.xml; done
mkdir $RESULTS/0; (echo '<testsuite><testcase name="big"/>'; head -c {65 << 20} /dev/zero | tr '\\0' ' ') >$RESULTS/0/big.xml""")
    assert one.run()["report"] == "success"
    end = assert_one_job(relay, "success")[1]
    assert end["test_results"]["passed"] == 5000, "4,999 small files and what stood before the limit of the large one"
    assert "5011 files match; the first 5000 were read" in one.logs["report"]
    assert "more than 64 MiB" in one.logs["report"]
