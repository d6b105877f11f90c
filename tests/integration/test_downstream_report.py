"""deploy/downstream/crcr-report against small servers: JUnit, retries, the token, other CIs, exit codes."""
import argparse
import email.utils
import glob
import json
import os
import subprocess
import sys
import time

import pytest

from lib.actions import FOLDER, JWT, Job, Server
from lib.ports import free_port

sys.path.insert(0, str(FOLDER))
import crcr_junit  # noqa: E402
import crcr_send  # noqa: E402

PAYLOAD = {"event_type": "pull_request", "delivery_id": "d-1", "callback_token": "a.b.c",
           "payload": {"action": "opened", "title": "größer ✓"}}


@pytest.fixture
def relay():
    with Server() as server:
        yield server


@pytest.fixture
def report(relay, tmp_path):
    """Runs the script: report("completed", "--conclusion", …) → (exit code, stderr)."""
    def run(*arguments, payload=PAYLOAD, env=None, url=None):
        file = tmp_path / "payload.json"
        file.write_text(json.dumps(payload))
        environment = {"PATH": os.environ["PATH"], "CRCR_OIDC_TOKEN": JWT,
                       "CRCR_CALLBACK_URL": url or relay.url, "CRCR_PAYLOAD_FILE": str(file), **(env or {})}
        if "--workflow" not in arguments and not env:
            arguments += ("--workflow", "CI", "--run-id", "7")
        done = subprocess.run([sys.executable, FOLDER / "crcr-report", *map(str, arguments)], env=environment,
                              cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert JWT not in done.stdout.replace("::add-mask::" + JWT, "") + done.stderr
        return done.returncode, done.stderr
    return run


def junit(tmp_path, text, name="r.xml"):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return crcr_junit.junit_read([str(tmp_path / name)])


# ---- JUnit ----------------------------------------------------------------------------------------

def test_pytest_results_are_counted_and_failures_reported(tmp_path):
    (tmp_path / "test_it.py").write_text("""
import pytest
def test_good(): pass
def test_bad(): assert 1 == 2, "größer <ok>"
@pytest.mark.skip
def test_skipped(): pass
@pytest.fixture
def broken(): raise RuntimeError("set-up")
def test_error(broken): pass
""")
    subprocess.run([sys.executable, "-m", "pytest", "-q", "--junitxml", "out/r.xml", "-p", "no:cacheprovider",
                    "test_it.py"], cwd=tmp_path, capture_output=True)
    results, faults = crcr_junit.junit_read([str(tmp_path / "**" / "*.xml")])
    assert (results.passed, results.failed, results.skipped, faults) == (1, 2, 1, [])
    bad, error = results.rows
    assert (bad["name"], bad["classname"]) == ("test_bad", "test_it")
    assert "größer <ok>" in bad["message"] and "assert 1 == 2" in bad["stacktrace"] and bad["duration"] >= 0
    assert error["name"] == "test_error" and "set-up" in error["stacktrace"]


def test_googletest_disabled_tests_are_skipped(tmp_path):
    results, _ = junit(tmp_path, """<testsuites tests="3"><testsuite name="S">
      <testcase name="A" status="run" result="completed" time="0.1" classname="S"/>
      <testcase name="B" status="notrun" result="suppressed" time="0" classname="S"/>
      <testcase name="C" status="run" result="completed" classname="S" time="1,234.5">
        <failure message="x.cc:3&#x0A;Value of: f()" type=""><![CDATA[x.cc:3]]></failure>
        <failure message="second"/></testcase></testsuite></testsuites>""")
    assert (results.passed, results.failed, results.skipped) == (1, 1, 1)
    assert results.rows == [{"name": "C", "classname": "S", "message": "x.cc:3\nValue of: f()",
                             "stacktrace": "x.cc:3", "duration": 1234.5}]


def test_texts_are_cut_to_the_caps_and_never_within_a_character(tmp_path):
    results, _ = junit(tmp_path, f'<testsuite><testcase name="{"ä" * 900}"><failure message="{"é" * 5000}">'
                                 f'{"漢" * 9000}</failure></testcase></testsuite>')
    row = results.rows[0]
    assert [len(row[name].encode()) for name in ("name", "message", "stacktrace")] == [1024, 1024, 4095]


def test_a_thousand_rows_fit_into_a_body_the_relay_takes(tmp_path):
    case = f'<testcase name="t"><error message="m">{"x" * 4096}</error></testcase>'
    results, _ = junit(tmp_path, f"<testsuite>{case * 1200}</testsuite>")
    assert results.failed == 1200 and len(results.rows) == 1000 and results.rows_left_out == 200
    assert len(crcr_junit.dump(results.rows)) < 1900 * 1024
    assert "stacktrace" in results.rows[0] and "stacktrace" not in results.rows[-1]


def test_a_file_that_ends_early_counts_as_far_as_it_goes(tmp_path):
    results, faults = junit(tmp_path, '<testsuite><testcase name="a"/><testcase name="b"><fail')
    assert (results.passed, results.failed) == (1, 0)
    assert len(faults) == 1 and "r.xml" in faults[0] and "what stood before it counts" in faults[0]


def test_entities_cannot_blow_up(tmp_path):
    results, faults = junit(tmp_path, '<!DOCTYPE x [<!ENTITY a "aaaa">]><testsuite><testcase name="&a;"/></testsuite>')
    assert results is None and "document type" in faults[0]


def test_other_encodings_and_namespaces_are_read(tmp_path):
    text = '<?xml version="1.0" encoding="ISO-8859-1"?><j:testsuite xmlns:j="u"><j:testcase name="ü">' \
           '<j:failure message="ö"/></j:testcase></j:testsuite>'
    results, _ = junit(tmp_path, text.encode("latin-1"))
    assert (results.rows[0]["name"], results.rows[0]["message"]) == ("ü", "ö")


def test_globs_find_what_glob_finds_but_follow_no_link(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("top.xml", "r/a.xml", "r/b/c.xml", "r/b/d/e.xml", "r/.hidden.xml", ".h/f.xml", "r/x.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("<testsuite/>")
    for pattern in ("*.xml", "top.xml", "r/*.xml", "r/**/*.xml", "**/*.xml", "r/b/**/e.xml", "r/*/*.xml", "./r/*.xml", "no/*.xml",
                    ".h/*.xml", "r/[ab].xml", f"{tmp_path}/**/*.xml", f"{tmp_path}/top.xml"):
        assert sorted(crcr_junit.files_of(pattern)) == sorted(glob.glob(pattern, recursive=True)), pattern
    os.symlink("b", tmp_path / "r" / "link")
    assert sorted(crcr_junit.files_of("r/**/*.xml")) == ["r/a.xml", "r/b/c.xml", "r/b/d/e.xml"]


def test_no_file_is_not_the_same_as_no_tests(tmp_path):
    assert crcr_junit.junit_read([str(tmp_path / "none-*.xml")])[0] is None
    assert junit(tmp_path, "<testsuite/>")[0].passed == 0


# ---- what is sent -----------------------------------------------------------------------------------

def test_client_payload_is_echoed_with_the_workflow_added(relay, report):
    code, said = report("in_progress", "--job-name", "test (910B)", "--run-url", "https://ci/7")
    assert code == 0 and "CI / test (910B) / in_progress reported for delivery d-1" in said
    _, headers, body, _ = relay.requests[0]
    assert headers["Authorization"] == "Bearer " + JWT and headers["Content-Type"] == "application/json"
    sent = json.loads(body)
    workflow = sent.pop("workflow")
    assert sent == PAYLOAD
    assert workflow.pop("started_at").endswith("Z")
    assert workflow == {"schema_version": "1", "status": "in_progress", "conclusion": None, "name": "CI",
                        "url": "https://ci/7", "run_id": "7", "run_attempt": "1", "job_name": "test (910B)",
                        "check_run_id": "7-1", "completed_at": None}


def test_everything_of_a_completed_job_is_reported(relay, report, tmp_path):
    (tmp_path / "r.xml").write_text('<testsuite><testcase name="a"/><testcase name="b"><failure message="m"/>'
                                    '</testcase></testsuite>')
    (tmp_path / "verdict.json").write_text('{"schema_version":1,"category":"flake"}')
    code, _ = report("completed", "--conclusion", "FAILED", "--junit", "*.xml", "--triage-verdict-file",
                     "verdict.json", "--artifact-url", "https://a/b", "--environment", "910B", "--run-complete")
    workflow = relay.bodies()[0]["workflow"]
    assert code == 0 and workflow["conclusion"] == "failure" and workflow["run_complete"] is True
    assert workflow["test_results"] == {"passed": 1, "failed": 1, "skipped": 0, "total": 2}
    assert workflow["failed_tests_detail"] == [{"name": "b", "message": "m"}]
    assert workflow["triage_verdict"]["category"] == "flake"
    assert (workflow["artifact_url"], workflow["environment"]) == ("https://a/b", "910B")


def test_what_is_broken_beside_the_result_is_left_out_and_said(relay, report):
    code, said = report("completed", "--conclusion", "success", "--triage-verdict", "[1]", "--test-results", "{",
                        "--failed-tests-detail", "x", "--junit", "none/*.xml")
    workflow = relay.bodies()[0]["workflow"]
    assert code == 0 and workflow["conclusion"] == "success"
    assert not {"triage_verdict", "test_results", "failed_tests_detail"} & set(workflow)
    for what in ("triage verdict", "--test-results", "--failed-tests-detail", "none/*.xml"):
        assert what in said


@pytest.mark.parametrize("text", ["[" * 30_000, '{"a":' * 10_000, '{"summary":"' + "x" * 70_000 + '"}', "\x00", "[]"],
                         ids=["nesting", "nesting of objects", "too large", "no JSON", "no object"])
def test_a_hostile_verdict_is_left_out(relay, report, tmp_path, text):
    (tmp_path / "verdict.json").write_text(text)
    code, said = report("completed", "--conclusion", "failure", "--triage-verdict-file", "verdict.json")
    assert code == 0 and "left out" in said and "triage_verdict" not in relay.bodies()[0]["workflow"]


def test_a_verdict_is_not_read_through_a_link(relay, report, tmp_path):
    (tmp_path / "real.json").write_text('{"schema_version":1}')
    os.symlink("real.json", tmp_path / "verdict.json")
    code, said = report("completed", "--conclusion", "failure", "--triage-verdict-file", "verdict.json")
    assert code == 0 and "left out" in said and "triage_verdict" not in relay.bodies()[0]["workflow"]


def test_half_a_surrogate_pair_becomes_a_question_mark(relay, report):
    assert report("in_progress", payload={**PAYLOAD, "payload": {"title": "\ud83d"}})[0] == 0
    assert relay.bodies()[0]["payload"]["title"] == "?"


def test_nightly_reports_itself_without_a_dispatch(relay, report):
    code, _ = report("completed", "--event-type", "nightly", "--delivery-id", "a" * 40)
    sent = relay.bodies()[0]
    assert code == 0 and sent["workflow"]["conclusion"] is None
    assert (sent["event_type"], sent["delivery_id"], sent["payload"]["head_sha"]) == ("nightly", "a" * 40, "a" * 40)


@pytest.mark.parametrize("ci, env, reported", [
    ("buildkite", {"BUILDKITE": "true", "BUILDKITE_BUILD_ID": "0190-ab", "BUILDKITE_PIPELINE_SLUG": "pipe",
                   "BUILDKITE_LABEL": ":test:", "BUILDKITE_RETRY_COUNT": "1", "BUILDKITE_BUILD_URL": "https://b/1",
                   "BUILDKITE_COMMAND_EXIT_STATUS": "1"},
     ("pipe", ":test:", "0190-ab", "2", "0190-ab-2", "https://b/1", "failure")),
    ("gitlab", {"GITLAB_CI": "true", "CI_PIPELINE_ID": "5", "CI_PROJECT_PATH": "g/p", "CI_JOB_NAME": "j 1/2",
                "CI_JOB_ID": "99", "CI_JOB_URL": "https://g/99", "CI_JOB_STATUS": "canceled"},
     ("g/p", "j 1/2", "5", "1", "99", "https://g/99", "cancelled")),
    ("jenkins", {"JENKINS_URL": "https://j", "JOB_NAME": "p/main", "BUILD_TAG": "jenkins-p a-3", "STAGE_NAME": "T",
                 "BUILD_URL": "https://j/3", "CRCR_CONCLUSION": "UNSTABLE"},
     ("p/main", "T", "jenkins-p-a-3", "1", "jenkins-p-a-3-1", "https://j/3", "failure")),
])
def test_other_cis_need_no_settings_for_what_they_know(relay, report, ci, env, reported):
    assert report("completed", env=env)[0] == 0
    sent = relay.bodies()[0]["workflow"]
    assert tuple(sent[name] for name in ("name", "job_name", "run_id", "run_attempt", "check_run_id", "url",
                                         "conclusion")) == reported


def test_buildkite_agent_is_asked_for_the_token(relay, report, tmp_path):
    agent = tmp_path / "buildkite-agent"
    agent.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/asked\necho {JWT}\n')
    agent.chmod(0o755)
    code, _ = report("in_progress", env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "CRCR_OIDC_TOKEN": "",
                                         "BUILDKITE": "true", "BUILDKITE_BUILD_ID": "1",
                                         "BUILDKITE_PIPELINE_SLUG": "p"})
    assert code == 0 and relay.requests[0][1]["Authorization"] == "Bearer " + JWT
    assert "oidc request-token --audience pytorch-cross-repo-ci-relay" in (tmp_path / "asked").read_text()


def test_the_audience_and_the_upstream_are_settings(relay, report, tmp_path):
    """In each way in which a token is had; the defaults are those of PyTorch's relay."""
    agent = tmp_path / "buildkite-agent"
    agent.write_text(f'#!/bin/sh\necho "$4" >>{tmp_path}/asked\necho {JWT}\n')
    agent.chmod(0o755)
    buildkite = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CRCR_OIDC_TOKEN": "", "BUILDKITE": "true",
                 "BUILDKITE_BUILD_ID": "1", "BUILDKITE_PIPELINE_SLUG": "p"}
    assert report("in_progress", "--audience", "our relay", env=buildkite)[0] == 0
    command = {"CRCR_OIDC_TOKEN": "", "CRCR_AUDIENCE": "theirs", "CRCR_WORKFLOW": "CI", "CRCR_RUN_ID": "7",
               "CRCR_TOKEN_COMMAND": f'echo "$CRCR_AUDIENCE" >>{tmp_path}/asked; echo {JWT}'}
    assert report("in_progress", env=command)[0] == 0
    actions = {"CRCR_OIDC_TOKEN": "", "GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": "7", "GITHUB_WORKFLOW": "CI",
               "CRCR_AUDIENCE": "a&b", "ACTIONS_ID_TOKEN_REQUEST_URL": relay.url + "?v=1"}
    assert report("in_progress", env=actions)[0] == 0
    assert (tmp_path / "asked").read_text() == "our relay\ntheirs\n"
    assert [path for path, *_ in relay.requests if "audience" in path] == ["/github/callback?v=1&audience=a%26b"]
    relay.requests.clear()
    for more, upstream in (([], "pytorch/pytorch"), (["--upstream", "org/up"], "org/up")):
        assert report("completed", "--event-type", "nightly", "--delivery-id", "a" * 40, *more)[0] == 0
        assert relay.bodies()[-1]["payload"]["repository"]["full_name"] == upstream


# ---- retries ------------------------------------------------------------------------------------------

def test_later_is_obeyed_and_a_server_fault_tried_again(relay, report):
    relay.answers = [(429, {"Retry-After": "2"}, b'{"detail":"more than 100 requests"}'), (503, {}, b"busy")]
    code, said = report("in_progress")
    times = [at for _, _, _, at in relay.requests]
    assert code == 0 and len(times) == 3 and times[1] - times[0] >= 2.0
    assert "HTTP 429: more than 100 requests; again in" in said and "HTTP 503: busy" in said


def test_a_wait_that_is_too_long_is_not_begun(relay, report):
    relay.answers = [(429, {"Retry-After": "60"}, b'{"detail":"slow down"}')]
    began = time.monotonic()
    code, said = report("in_progress", "--max-wait", "5")
    assert code == 4 and time.monotonic() - began < 30 and "slow down; given up after --max-wait 5 s" in said


def test_retry_after_may_be_a_date():
    text = email.utils.formatdate(time.time() + 30, usegmt=True)
    assert 15 <= crcr_send.retry_after_of({"Retry-After": text}) <= 30
    assert crcr_send.retry_after_of({"Retry-After": "soon"}) is None
    assert crcr_send.retry_after_of({}) is None


def test_nobody_there_is_said_after_the_last_try(report):
    for max_wait in (3, 30):  # a busy machine may spend the short one on the first try
        code, said = report("in_progress", "--max-wait", max_wait, url=f"http://127.0.0.1:{free_port()}/github/callback")
        if said.count("no answer") >= 2:
            break
    assert code == 4 and said.count("no answer") >= 2 and "refused" in said


def test_half_an_answer_is_no_answer(relay, report):
    relay.answers = [(200, {"Content-Length": "100"}, b"{")]
    code, said = report("in_progress")
    assert code == 0 and len(relay.requests) == 2 and "no answer" in said


def test_a_refusal_is_final_and_says_what_to_do(relay, report):
    relay.answers = [(401, {}, b'{"detail":"aud is not ours\\n::error::forged"}')]
    code, said = report("in_progress")
    assert code == 3 and len(relay.requests) == 1
    assert "HTTP 401: aud is not ours ::error::forged. The token says: aud x, repository org/a" in said
    assert "\n::error" not in said


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_token_does_not_follow_a_redirect(relay, report, status):
    relay.answers = [(status, {"Location": relay.url + "/elsewhere"}, b"")]
    code, said = report("in_progress")
    assert code == 3 and len(relay.requests) == 1 and f"HTTP {status}" in said


def test_an_answer_that_is_not_the_relays_is_no_success(relay, report):
    relay.answers = [(200, {}, b"<html>")]
    assert report("in_progress")[0] == 3


def test_ignored_is_said(relay, report):
    for more, says in ((b"", "L2"), (b',"reason":"level_1"', "L2"), (b',"reason":"event_not_wanted"', "asks for no nightly runs")):
        relay.answers = [(200, {}, b'{"ok":true,"status":"ignored"' + more + b"}")]
        code, said = report("in_progress")
        assert code == 0 and "warning: the relay ignored the report" in said and says in said


def test_what_the_relay_left_out_is_said(relay, report):
    relay.answers = [(200, {}, b'{"ok":true,"status":"in_progress","warnings":["workflow.url is not\\n::error::forged: left out"]}')]
    code, said = report("in_progress")
    assert code == 0 and "warning: the relay: workflow.url is not ::error::forged: left out" in said and "reported for delivery" in said


# ---- wrong usage --------------------------------------------------------------------------------------

@pytest.mark.parametrize("arguments, says", [
    (["done"], "status 'done': accepted are in_progress and completed"),
    (["completed"], "--conclusion ''"),
    (["completed", "--conclusion", "great"], "--conclusion 'great'"),
    (["in_progress", "--nonsense"], "--nonsense"),
    (["in_progress", "--max-wait", "soon"], "--max-wait 'soon'"),
    (["in_progress", "--callback-url", "http://relay.example/github/callback"], "an https:// URL is needed"),
    (["in_progress", "--event-type", "nightly"], "belong together"),
    (["in_progress", "--client-payload", "{}"], "no client_payload with a delivery_id"),
    (["in_progress", "--client-payload", "{"], "is no JSON"),
    (["in_progress", "--payload-file", "none.json"], "none.json"),
    (["in_progress", "--workflow", "CI"], "missing: --run-id"),
])
def test_wrong_usage_sends_nothing_and_says_what_is_accepted(relay, report, arguments, says):
    code, said = report(*arguments)
    assert code == 2 and says in said and not relay.requests


WHOLE = json.dumps(PAYLOAD, ensure_ascii=False)


@pytest.mark.parametrize("text, says", [
    (WHOLE[:-5], f"it ends too early, after {len(WHOLE[:-5].encode())} bytes"),  # within a string
    (WHOLE[:-1], f"it ends too early, after {len(WHOLE[:-1].encode())} bytes"),
    (WHOLE[:-1] + "\n\n", f"it ends too early, after {len(WHOLE[:-1].encode()) + 2} bytes"),
    ("", "it ends too early, after 0 bytes"),
    ('{"ü": nonsense}', "Expecting value at byte 8 of 16"),
], ids=["in a string", "before the last brace", "with blanks behind", "empty", "no JSON"])
def test_a_payload_that_is_cut_short_is_named_by_its_byte(report, tmp_path, relay, text, says):
    (tmp_path / "cut.json").write_text(text)
    code, said = report("in_progress", "--payload-file", "cut.json")
    assert code == 2 and f"cut.json is no JSON: {says}" in said and not relay.requests


def test_what_is_no_token_is_not_sent(relay, report):
    code, said = report("in_progress", "--workflow", "CI", "--run-id", "7", env={"CRCR_OIDC_TOKEN": "secret"})
    assert code == 5 and "no JWT" in said and "secret" not in said and not relay.requests
    code, said = report("in_progress", "--workflow", "CI", "--run-id", "7",
                        env={"CRCR_OIDC_TOKEN": "", "CRCR_TOKEN_COMMAND": "exit 9"})
    assert code == 5 and "exit code 9" in said


def test_an_old_token_is_minted_anew(tmp_path):
    options = argparse.Namespace(audience="x", token_command=f"echo x >>{tmp_path}/minted; echo {JWT}", max_wait=60, max_time=60)
    token = crcr_send.Token(options, time.monotonic() + 60)
    assert [token.get(), token.get()] == [JWT, JWT]
    assert (tmp_path / "minted").read_text() == "x\n"
    token.minted -= crcr_send.TOKEN_LIFE_S
    assert token.get() == JWT and (tmp_path / "minted").read_text() == "x\nx\n"


def test_help_names_every_option_and_exit_code():
    done = subprocess.run([FOLDER / "crcr-report", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    for word in ("--junit", "--token-command", "--dry-run", "CRCR_JOB_NAME", "exit codes:", "3  the relay refused"):
        assert word in done.stdout


# ---- the action, where there is no relay ------------------------------------------------------------------

def test_the_action_never_fails_the_job_unless_asked(tmp_path):
    gone = f"http://127.0.0.1:{free_port()}"
    job = Job(tmp_path, "org/a", json.dumps({"client_payload": PAYLOAD}), gone + "/token?v=1")
    inputs = {"status": "in_progress", "callback_url": gone + "/github/callback", "max_wait": "2"}
    code, log, outputs = job.run(**inputs)
    assert code == 0 and "::warning title=CRCR::the token service: no answer" in log
    assert outputs == {"outcome": "unreachable"}
    code, log, _ = job.run(**inputs, required="true")
    assert code == 4 and "::error title=CRCR::" in log


def test_the_token_is_asked_for_until_it_comes_and_masked_in_the_log(relay, tmp_path):
    relay.answers = [(503, {}, b"busy"), (200, {}, json.dumps({"value": JWT}).encode())]
    job = Job(tmp_path, "org/a", json.dumps({"client_payload": PAYLOAD}), relay.url + "?api-version=2.0")
    text, _ = job.start(status="in_progress", callback_url=relay.url).communicate(timeout=60)
    asked = relay.requests[1]
    assert asked[0].endswith("?api-version=2.0&audience=pytorch-cross-repo-ci-relay")
    assert asked[1]["Authorization"] == "Bearer request-secret" and "request-secret" not in text
    assert relay.requests[2][1]["Authorization"] == "Bearer " + JWT
    assert text.count(JWT) == 1 and f"\n::add-mask::{JWT}\n" in text


def test_a_job_without_the_permission_gets_a_message(tmp_path):
    job = Job(tmp_path, "org/a", json.dumps({"client_payload": PAYLOAD}), "")
    code, log, outputs = job.run(status="in_progress", callback_url="https://relay.invalid/github/callback")
    assert code == 0 and "permissions: id-token: write" in log and outputs == {"outcome": "not-sent"}


def test_a_run_that_the_relay_did_not_start_gets_a_message(tmp_path):
    job = Job(tmp_path, "org/a", json.dumps({"ref": "main"}), "")
    code, log, _ = job.run(status="in_progress", callback_url="https://relay.invalid/github/callback")
    assert code == 0 and "not started by the relay" in log


def test_a_runner_without_python_gets_a_message(tmp_path):
    job = Job(tmp_path, "org/a", "{}", "")
    (tmp_path / "bin").mkdir()
    os.symlink("/bin/bash", tmp_path / "bin" / "bash")
    job.environment["PATH"] = str(tmp_path / "bin")
    inputs = {"status": "in_progress", "callback_url": "https://relay.invalid/github/callback"}
    code, log, _ = job.run(**inputs)
    assert code == 0 and "no Python" in log
    assert job.run(**inputs, required="true")[0] != 0
