"""What vendors run: the action and the script of deploy/downstream report to the running relay."""
import http.server
import json
import threading
import urllib.parse
from hashlib import sha1

import pytest

from lib.actions import Job, Leg
from lib.processes import wait_for
from lib.relay import http as ask
from lib.relay import pull_request

L2, L3, L4 = "org-two/backend-two", "org-three/backend-three", "org-four/backend-four"
JUNIT = """<testsuites><testsuite name="s">
  <testcase classname="TestOps" name="test_add" time="0.5"/><testcase classname="TestOps" name="test_mul"/>
  <testcase classname="TestOps" name="test_matmul" time="2"><failure message="max diff 0.3">line 1
line 2</failure></testcase>
  <testcase classname="TestOps" name="test_fp64"><skipped message="no fp64"/></testcase>
</testsuite></testsuites>"""


class TokenService:
    """ACTIONS_ID_TOKEN_REQUEST_URL of a runner: tokens of one repository, signed by the simulated issuer."""

    def __init__(self, relay, repo, **claims):
        self.asked = 0
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                service.asked += 1
                query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
                good = self.headers["Authorization"] == "Bearer request-secret" and query["api-version"] == ["2.0"]
                body = json.dumps({"repo": repo, "claims": {"aud": query["audience"][0], "run_id": "811",
                                                            "run_attempt": "1", **claims}}).encode()
                token = json.loads(ask("POST", relay.url("github", "/_sim/oidc"), body)[1])["token"]
                answer = json.dumps({"count": len(token), "value": token}).encode()
                self.send_response(200 if good else 401)
                self.end_headers()
                self.wfile.write(answer if good else b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/token?api-version=2.0"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def tokens(relay):
    made = []

    def make(repo, **claims):
        made.append(TokenService(relay, repo, **claims))
        return made[-1]
    yield make
    for service in made:
        service.server.shutdown()
        service.server.server_close()


@pytest.fixture
def dispatched(relay):
    """Opens a pull request and gives the event that the repository's workflow is started with."""
    settings = json.dumps({"repo": "*", "answer": "never"}).encode()
    assert ask("POST", relay.url("github", "/_sim/downstreams"), settings)[0] < 300

    def make(repo, number, **changes):
        body = pull_request(number=number, sha=sha1(str(number).encode()).hexdigest(), **changes)
        _, _, delivery = relay.send_webhook(body)

        def sent():
            return [one for one in relay.state()["dispatches"]
                    if one["repo"] == repo and one["client_payload"]["delivery_id"] == delivery]
        dispatch = wait_for(f"the dispatch to {repo}", sent, 60)[0]
        return delivery, json.dumps({"action": dispatch["event_type"], "client_payload": dispatch["client_payload"]})
    return make


def row_of(relay, delivery, repo):
    """The job that was reported. A dispatch that nobody answered yet has no name."""
    rows = (relay.api(f"/api/crcr/deliveries/{delivery}") or {"jobs": []})["jobs"]
    return next((row for row in rows if row["downstream_repo"] == repo and row.get("job_name")), {})


def wait_row(relay, delivery, repo, status):
    return wait_for(f"{repo} to be {status}", lambda: (
        lambda row: row if row.get("status") == status else None)(row_of(relay, delivery, repo)), 60)


def check_run(relay, repo, number):
    sha = sha1(str(number).encode()).hexdigest()
    return next((run for run in relay.state()["check_runs"]
                 if run["head_sha"] == sha and run["name"] == f"crcr/{repo}/PyTorch CI/test"), None)


def begin(relay):
    return {"status": "in_progress", "callback_url": relay.url("ingest", "/github/callback")}


def end(relay, **more):
    return {"status": "completed", "callback_url": relay.url("ingest", "/github/callback"), "conclusion": "success",
            **more}


def test_a_job_that_reports_has_a_row_and_a_check_run(relay, tokens, dispatched, tmp_path):
    delivery, event = dispatched(L4, 5001)
    job = Job(tmp_path, L4, event, tokens(L4).url)
    code, log, outputs = job.run(**begin(relay))
    assert (code, outputs) == (0, {"outcome": "reported", "http-status": "200"}), log
    assert f"PyTorch CI / test / in_progress reported for delivery {delivery}" in log
    wait_row(relay, delivery, L4, "in_progress")
    wait_for("the check run to begin", lambda: (check_run(relay, L4, 5001) or {}).get("status") == "in_progress", 30)

    code, log, outputs = job.run(**end(relay))
    assert (code, outputs["outcome"]) == (0, "reported"), log
    row = wait_row(relay, delivery, L4, "completed")
    assert (row["conclusion"], row["job_name"], row["run_id"], row["check_run_id"]) == (
        "success", "test", "811", "811-1")
    assert row["workflow_run_url"] == f"https://github.com/{L4}/actions/runs/811"
    assert row["execution_time"] is not None
    wait_for("the check run to be green", lambda: (check_run(relay, L4, 5001) or {}).get("conclusion") == "success", 30)


def test_the_three_jobs_of_a_leg_are_one_job_to_the_relay(relay, tokens, dispatched, tmp_path):
    """begin and report are other jobs than test, each with a token of its own; the relay sees test go from in_progress to
    its conclusion."""
    delivery, event = dispatched(L4, 5010)
    service = tokens(L4)
    leg = Leg(tmp_path, L4, event, service.url, relay.url("ingest", "/github/callback"))
    leg.tests(f"mkdir -p $2; echo '{JUNIT}' >$2/r.xml; exit 1\n")
    assert leg.run() == {"begin": "success", "test": "failure", "report": "success"}, leg.logs
    assert service.asked == 2
    row = wait_row(relay, delivery, L4, "completed")
    assert [row[name] for name in ("conclusion", "job_name", "check_run_id", "total_tests", "failed_tests")] == [
        "failure", "test (cpu)", "811-1", 4, 1]
    assert row["queue_time"] is not None and row["execution_time"] is not None
    assert [one["job_name"] for one in relay.api(f"/api/crcr/deliveries/{delivery}")["jobs"]
            if one["downstream_repo"] == L4] == ["test (cpu)"]
    name, sha = f"crcr/{L4}/PyTorch CI/test (cpu)", sha1(b"5010").hexdigest()

    def checks():
        return [run["conclusion"] for run in relay.state()["check_runs"] if run["name"] == name and run["head_sha"] == sha]
    wait_for("its check run to fail", lambda: checks() == ["failure"], 30)


def test_test_results_and_failed_tests_come_to_the_row(relay, tokens, dispatched, tmp_path):
    delivery, event = dispatched(L2, 5002)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "one.xml").write_text(JUNIT)
    (tmp_path / "verdict.json").write_text(json.dumps({
        "schema_version": 1, "category": "upstream", "confidence": "high", "summary": "matmul lost precision"}))
    job = Job(tmp_path, L2, event, tokens(L2).url)
    code, log, _ = job.run(**end(relay, conclusion="failure", junit="results/**/*.xml\n", artifact_url="https://example.org/artifacts/1",
                                 environment="NPU 910B", triage_verdict_file="verdict.json"))
    assert code == 0, log
    row = wait_row(relay, delivery, L2, "completed")
    assert row["conclusion"] == "failure"
    assert [row[f"{name}_tests"] for name in ("total", "passed", "failed", "skipped")] == [4, 2, 1, 1]
    tests = row["failed_tests_json"]
    tests = json.loads(tests) if isinstance(tests, str) else tests
    assert tests == [{"name": "test_matmul", "classname": "TestOps", "message": "max diff 0.3",
                      "stacktrace": "line 1\nline 2", "duration": 2}]
    assert "matmul lost precision" in json.dumps(row["triage_verdict_json"])
    assert (row["artifact_url"], row["environment"]) == ("https://example.org/artifacts/1", "NPU 910B")


def test_the_same_report_again_is_harmless(relay, tokens, dispatched, tmp_path):
    delivery, event = dispatched(L4, 5003)
    job = Job(tmp_path, L4, event, tokens(L4).url)
    assert job.run(**end(relay))[0] == 0
    first = wait_row(relay, delivery, L4, "completed")
    wait_for("the check run", lambda: (check_run(relay, L4, 5003) or {}).get("status") == "completed", 30)
    code, log, outputs = job.run(**end(relay), required="true")
    assert (code, outputs["outcome"]) == (0, "duplicate"), log
    assert "known already" in log
    job.run(**begin(relay), required="true")
    assert {name: row_of(relay, delivery, L4)[name] for name in ("status", "conclusion", "completed_at")} == {
        name: first[name] for name in ("status", "conclusion", "completed_at")}
    assert len([run for run in relay.state()["check_runs"] if run["name"] == f"crcr/{L4}/PyTorch CI/test"
                and run["head_sha"] == sha1(b"5003").hexdigest()]) == 1


def test_another_conclusion_for_the_same_attempt_is_refused(relay, tokens, dispatched, tmp_path):
    delivery, event = dispatched(L2, 5004)
    job = Job(tmp_path, L2, event, tokens(L2).url)
    job.run(**end(relay))
    wait_row(relay, delivery, L2, "completed")
    code, log, outputs = job.run(**end(relay, conclusion="failure", required="true"))
    assert (code, outputs) == (3, {"http-status": "409", "outcome": "refused"})
    assert "completed already with conclusion success" in log and "the first one stays" in log


def test_a_token_for_another_audience_is_refused_readably(relay, tokens, dispatched, tmp_path):
    _, event = dispatched(L2, 5005)
    job = Job(tmp_path, L2, event, tokens(L2, aud="sts.amazonaws.com").url)
    code, log, outputs = job.run(**begin(relay), required="true")
    assert (code, outputs["http-status"]) == (3, "401")
    assert "audience" in log and "The token says: " in log and "aud sts.amazonaws.com" in log
    assert job.run(**begin(relay))[0] == 0  # and without `required` the job goes on


def test_the_token_of_another_repository_is_refused_readably(relay, tokens, dispatched, tmp_path):
    delivery, event = dispatched(L2, 5006)
    job = Job(tmp_path, L2, event, tokens(L4).url)
    code, log, outputs = job.run(**begin(relay), required="true")
    assert (code, outputs["http-status"]) == (3, "403")
    assert "the callback_token is for another repository" in log and f"repository {L4}" in log
    assert not row_of(relay, delivery, L2)


def test_a_repository_below_l2_learns_that_nothing_is_recorded(relay, tokens, dispatched, tmp_path):
    _, event = dispatched("org-one/backend-one", 5007)
    job = Job(tmp_path, "org-one/backend-one", event, tokens("org-one/backend-one").url)
    code, log, outputs = job.run(**begin(relay), required="true")
    assert (code, outputs["outcome"]) == (0, "ignored") and "::warning" in log and "L2" in log


def test_a_payload_that_the_relay_trimmed_is_reported_on(relay, tokens, dispatched, tmp_path):
    body = pull_request(number=5008)
    request = {**body["pull_request"], "body": "x" * 200_000, "head": {
        **body["pull_request"]["head"], "sha": sha1(b"5008").hexdigest()}}
    delivery, event = dispatched(L2, 5008, pull_request=request)
    assert json.loads(event)["client_payload"]["payload_trimmed"]
    assert Job(tmp_path, L2, event, tokens(L2).url).run(**end(relay), required="true")[0] == 0
    assert wait_row(relay, delivery, L2, "completed")["pr_number"] == 5008


def test_a_relay_that_comes_back_gets_the_report(relay, tokens, dispatched, tmp_path):
    delivery, event = dispatched(L2, 5009)
    job = Job(tmp_path, L2, event, tokens(L2).url)
    assert relay.parts["ingest"].stop() == 0
    process = job.start(**end(relay), required="true")
    try:
        seen = []
        for line in process.stdout:
            seen.append(line)
            if "no answer" in line:
                break
        assert process.poll() is None, "".join(seen)
        assert "the relay: no answer" in seen[-1] and "again in" in seen[-1]
    finally:
        relay.start("ingest")
    relay.wait_ready("ingest")
    code, log, outputs = job.end(process)
    assert (code, outputs["outcome"]) == (0, "reported"), log
    wait_row(relay, delivery, L2, "completed")
