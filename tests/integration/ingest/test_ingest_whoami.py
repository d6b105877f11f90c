"""GET /github/whoami: what a token proves, and the first thing to mend; as ingest/openapi.json describes it."""
import json
import os
import subprocess
import sys
import time

import pytest

from ingest_env import ACTIONS, BUILDKITE, ORGANIZATION, PIPELINE, Issuer, callback, callback_token, detail
from lib.actions import FOLDER
from lib.processes import wait_for
from test_ingest_wire import faults

BUILDKITE_CLAIMS = {"issuer": BUILDKITE, "without": ["repository"], "organization_id": ORGANIZATION, "pipeline_id": PIPELINE,
                    "build_branch": "main"}


def whoami(ingest, token, status=200):
    got, answer, headers = ingest.whoami(token)
    answer = json.loads(answer)
    assert got == status and faults("/github/whoami", "get", status, answer) == [], answer
    return answer if status == 200 else (answer["detail"], headers)


def test_a_good_token_is_told_who_it_is_and_what_the_relay_does(ingest, issuer):
    assert whoami(ingest, issuer.token("ORG/two")) == {
        "repository": "Org/Two", "issuer": ACTIONS, "provider": None, "audience": "pytorch-cross-repo-ci-relay", "level": "L2",
        "events": ["pull_request", "push", "nightly", "periodic"], "reports_taken": True, "reason": None,
        "page": "https://crcr.example.org/repo/Org/Two",
        "next_step": "Nothing to mend: report each job twice, as in_progress and as completed."}
    four = whoami(ingest, issuer.token(**BUILDKITE_CLAIMS))
    assert (four["repository"], four["provider"], four["level"]) == ("org/four", "buildkite", "L4")


@pytest.mark.parametrize("repo, level, events, reason, says", [
    ("org/unknown", None, [], "not_listed", "Ask for a line on the allowlist"),
    ("org/one", "L1", ["pull_request", "push", "nightly", "periodic"], "level_1", "Ask for L2"),
    ("org/pulls", "L2", ["pull_request", "push"], None, "Nothing to mend: report each job twice"),
    ("org/nights", "L2", ["nightly", "periodic"], None, "Nothing to mend: report nightly"),
])
def test_the_next_step_goes_by_the_allowlist(ingest, issuer, repo, level, events, reason, says):
    answer = whoami(ingest, issuer.token(repo))
    assert [answer[name] for name in ("level", "events", "reason", "reports_taken")] == [level, events, reason, reason is None]
    assert answer["next_step"].startswith(says)
    body = callback(token=callback_token(repo=repo))
    status, said, _ = ingest.callback(body, issuer.token(repo))
    assert status == 200 and json.loads(said).get("reason") == reason, "a callback says the same"


@pytest.mark.parametrize("status, claims, says", [
    (401, {"aud": "somebody-else"}, "the token's audience is somebody-else; only pytorch-cross-repo-ci-relay is accepted"),
    (401, {"aud": ["a", "b"]}, "the token's audience is a list without it; only"),
    (401, {"without": ["aud"]}, "the token's audience is missing; only"),
    (401, {"issuer": "https://evil.example"}, "the token's issuer https://evil.example is not one of those"),
    (401, {"exp": 1}, "the token expired"), (401, {"without": ["repository"]}, "the token names no repository"),
    (403, {**BUILDKITE_CLAIMS, "build_branch": "dev"}, "claim build_branch"),
    (403, {"repo": "org/kept", "repository_id": "72"}, "registered anew"),
])
def test_what_a_callback_is_refused_for_is_said_first(ingest, issuer, status, claims, says):
    said, _ = whoami(ingest, issuer.token(**claims), status)
    assert says in said
    refused = ingest.callback(callback(token=callback_token()), issuer.token(**claims))
    assert refused[0] == status and says in detail(refused[1])


def test_another_audience_than_pytorchs_can_be_set(own, issuer):
    ingest = own(CRCR_OIDC_AUDIENCE="their-relay")
    ingest.publish_allowlist()
    ingest.start().wait_ready()
    body = callback(token=callback_token())
    wait_for("the list", lambda: ingest.callback(body, issuer.token(aud="their-relay"))[0] == 200)
    assert whoami(ingest, issuer.token(aud="their-relay"))["audience"] == "their-relay"
    assert whoami(ingest, issuer.token(), 401)[0].endswith("only their-relay is accepted")
    assert ingest.callback(body, issuer.token())[0] == 401


def test_without_a_good_signature_nothing_is_said(ingest, issuer):
    assert whoami(ingest, None, 401)[0] == "Authorization: Bearer <OIDC token> needed"
    assert "signature is wrong" in whoami(ingest, issuer.token(key=Issuer().keys["kid-1"]), 401)[0]
    assert ingest.post("/github/whoami", b"", {"Authorization": "Bearer " + issuer.token()})[0] == 405


def test_it_is_rated_as_callbacks_are_and_stores_nothing(ingest, issuer, redis_node):
    token = issuer.token("org/hasty")
    stored = len(ingest.records("callbacks"))
    whoami(ingest, token)
    redis_node.client().hset("crcr:rate:org/hasty", "requests_full_us", 600 * 1_000_000 + int(time.time() * 1e6) + 60_000_000)

    def rated():
        before = ingest.rated_alone()
        answer = ingest.whoami(token)
        return answer if ingest.rated_alone() == before else rated()
    status, answer, headers = rated()
    assert status == 429 and int(headers["Retry-After"]) > 0 and faults("/github/whoami", "get", 429, json.loads(answer)) == []
    assert len(ingest.records("callbacks")) == stored
    assert 'crcr_ingest_requests_total{route="whoami",status="429",reason="rate_limited"}' in ingest.get_admin("/metrics")[1]
    assert '"event":"whoami_answered"' in ingest.process.text()


def test_check_of_crcr_report_against_a_relay(ingest, issuer):
    def check(token, path="/github/callback"):
        done = subprocess.run([sys.executable, FOLDER / "crcr-report", "check"], capture_output=True, text=True, timeout=60, env={
            "PATH": os.environ["PATH"], "CRCR_OIDC_TOKEN": token, "CRCR_CALLBACK_URL": f"http://127.0.0.1:{ingest.port}{path}"})
        return done.returncode, done.stderr
    code, said = check(issuer.token())
    assert code == 0 and said.startswith("crcr-report: next step: Nothing to mend") and "level: L2" in said and "/repo/Org/Two" in said
    code, said = check(issuer.token("org/one"))
    assert code == 1 and said.startswith("crcr-report: warning: next step: Ask for L2")
    code, said = check(issuer.token(aud="x"))
    assert code == 1 and said.startswith("crcr-report: warning: next step: the relay does not take the token: HTTP 401: the token's audience is x")
    code, said = check(issuer.token(), "/elsewhere/github/callback")
    assert code == 1 and "HTTP 404" in said
