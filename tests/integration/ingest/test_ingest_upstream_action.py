"""The upstream's own action and its Buildkite wrapper keep working against us: their requests, replayed with curl as
they send them, the usual ones and the odd ones. Facts: pytorch/test-infra, .github/actions/cross-repo-ci-relay-callback."""
import json

import pytest

from ingest_env import BUILDKITE, ORGANIZATION, PIPELINE, SHA, callback_token, payload
from lib import upstream_action as action

PULL_REQUEST = json.loads(payload("pull_request/opened.json"))


def dispatched(delivery, repo="Org/Two", body=None):
    """The client_payload that we sent to that repository, a token included."""
    return {"event_type": "pull_request", "delivery_id": delivery, "payload": PULL_REQUEST if body is None else body,
            "callback_token": callback_token(delivery_id=delivery, repo=repo)}


@pytest.fixture
def report(ingest, issuer, tmp_path):
    """report(client_payload, workflow) as the action sends it → (status, answer, the stored records)."""
    def run(client_payload, fields, path="/github/callback", **claims):
        url = f"http://127.0.0.1:{ingest.port}{path}"
        claims = {**action.run_claims(fields), **claims}
        status, answer, sent = action.send(url, issuer.token(**claims), client_payload, fields, tmp_path)
        stored = ingest.records("callbacks", client_payload.get("delivery_id"))
        assert status != 200 or answer["status"] == "ignored" or stored[-1].value == sent
        return status, answer, stored
    return run


def test_in_progress_then_completed_of_the_actions_shape_are_stored_as_they_came(report):
    status, answer, stored = report(dispatched("ua-1"), action.workflow("in_progress"))
    assert (status, answer) == (200, {"ok": True, "status": "in_progress"})
    results = {"passed": 8, "failed": 1, "skipped": 1}
    status, answer, stored = report(dispatched("ua-1"), action.workflow("completed", "failure", test_results=results,
                                                                        artifact_url="https://ci.example/a"))
    assert (status, answer) == (200, {"ok": True, "status": "completed"})
    assert [one.headers["provenance"] for one in stored] == ["token", "token"]
    assert {(one.headers["pr"], one.headers["head_sha"]) for one in stored} == {("42", SHA)}


def test_the_trailing_slash_of_its_default_url_is_accepted(ingest, issuer, tmp_path):
    body = json.dumps({**dispatched("ua-2"), "workflow": action.workflow("in_progress")}).encode()
    status, answer, _ = ingest.post("/github/callback/", body, {
        "Content-Type": "application/json", "Authorization": f"Bearer {issuer.token(run_id='811')}"})
    assert (status, json.loads(answer)["status"]) == (200, "in_progress")


ODD = {
    "run_id and run_attempt are numbers": {"run_id": 811, "run_attempt": 1},
    "no run_attempt": {"run_attempt": ...},
    "no job name": {"job_name": ...},
    "no check run id": {"check_run_id": ...},
    "an empty job name": {"job_name": ""},
    "nulls where it knows nothing": {"job_name": None, "check_run_id": None, "run_attempt": None, "url": None,
                                     "started_at": None, "completed_at": None, "test_results": None,
                                     "artifact_url": None, "failed_tests_detail": None, "triage_verdict": None,
                                     "environment": None},
    "no schema version": {"schema_version": ...},
    "schema version is a number": {"schema_version": 1},
    "no times": {"started_at": ..., "completed_at": ...},
    "an empty URL": {"url": ""},
    "the job's status as conclusion of one that runs": {"conclusion": "success"},
    "test results are any JSON": {"test_results": {"suites": [{"passed": "many"}], "passed": 1.5, "failed": "none"}},
    "test results are a list": {"test_results": [1, 2]},
    "fields that nobody knows": {"runner": {"os": "Linux"}, "retries": [1, 2, 3]},
}
WARNED = {
    "test results are any JSON": ["workflow.test_results.suites", "workflow.test_results.passed", "workflow.test_results.failed"],
    "test results are a list": ["workflow.test_results"], "fields that nobody knows": ["workflow.runner", "workflow.retries"],
}


@pytest.mark.parametrize("what", ODD, ids=list(ODD))
def test_odd_but_usable_reports_are_taken(report, what):
    delivery = f"odd-{list(ODD).index(what)}"
    for status in ("in_progress", "completed"):
        fields = action.workflow(status, "success" if status == "completed" else None)
        fields.update(ODD[what])
        if status == "completed":
            fields["conclusion"] = "success"
        code, answer, _ = report(dispatched(delivery), {k: v for k, v in fields.items() if v is not ...})
        assert [one.split()[0] for one in answer.pop("warnings", [])] == WARNED.get(what, []), answer
        assert (code, answer) == (200, {"ok": True, "status": status}), what


def test_conclusions_of_a_job_status_are_those_of_github(report):
    for number, conclusion in enumerate(("success", "failure", "cancelled", "skipped", "timed_out", "neutral",
                                         "action_required", "stale")):
        code, _, _ = report(dispatched(f"uc-{number}"), action.workflow("completed", conclusion))
        assert code == 200, conclusion
    for conclusion in ("", "won", 1, ["success"]):
        code, answer, _ = report(dispatched("uc-none"), action.workflow("completed", conclusion))
        assert (code, "accepted are success, failure" in str(answer)) == ((200, False) if conclusion == "" else (400, True))


def test_text_of_every_script_comes_back_from_its_ascii_json(report):
    fields = action.workflow("in_progress", name="CI – größer", job_name="اختبار 🚀")
    _, _, stored = report(dispatched("ua-3"), fields)
    assert b"\\ud83d\\ude80" in stored[-1].value  # as Python writes it
    assert json.loads(stored[-1].value)["workflow"]["job_name"] == "اختبار 🚀"


def test_a_report_of_almost_2_mib_that_curl_announces_first_is_taken(report):
    """Over 1 MiB curl asks with Expect: 100-continue before it sends the body."""
    body = {**PULL_REQUEST, "filler": "x" * (2 * 1024 * 1024 - 70_000)}
    status, _, _ = report(dispatched("ua-4", body=body), action.workflow("in_progress"))
    assert status == 200


def test_the_echo_of_the_whole_payload_proves_nothing(report):
    body = json.loads(json.dumps(PULL_REQUEST))
    body["pull_request"]["head"]["sha"], body["number"] = "f" * 40, 1
    _, _, stored = report(dispatched("ua-5", body=body), action.workflow("completed", "success"))
    assert (stored[-1].headers["pr"], stored[-1].headers["head_sha"]) == ("42", SHA)


@pytest.mark.parametrize("event_type", ["nightly", "periodic"])
def test_its_self_report_needs_no_dispatch(report, event_type):
    upstream = ("a" if event_type == "nightly" else "b") * 40
    status, answer, stored = report(action.self_report(event_type, upstream), action.workflow("completed", "success"))
    assert (status, answer["status"]) == (200, "completed")
    assert stored[-1].headers["provenance"] == "self" and "pr" not in stored[-1].headers
    assert stored[-1].headers["head_sha"] == upstream


@pytest.mark.parametrize("claims", [
    {"payload": {"head_sha": "C" * 40, "after": "d" * 40}}, {"payload": {"head_sha": "main", "after": "c" * 40}},
    {"payload": {}, "pytorch_head_sha": "c" * 40}, {"payload": {"head_sha": "c" * 40, "pull_request": {"head": {"sha": "d" * 40}}}},
], ids=["head_sha", "after", "pytorch_head_sha", "a whole webhook"])
def test_a_self_report_claims_its_commit_and_has_a_delivery_id_a_job(report, claims):
    delivery = f"claims-{abs(hash(str(claims)))}"
    made_up = {"event_type": "nightly", "delivery_id": delivery, **claims}
    status, _, stored = report(made_up, action.workflow("completed", "success"))
    assert status == 200 and len(stored) == 1
    assert (stored[0].headers["provenance"], stored[0].headers["head_sha"]) == ("self", "c" * 40)


def test_a_self_report_without_a_commit_has_none(report):
    made_up = {"event_type": "nightly", "delivery_id": "no-commit", "payload": {"head_sha": "abcdef1"}}
    _, _, stored = report(made_up, action.workflow("completed", "success"))
    assert "head_sha" not in stored[-1].headers


@pytest.mark.parametrize("conclusion", [None, "", ...], ids=["null", "empty", "absent"])
def test_a_job_whose_step_never_set_its_conclusion_is_taken(report, conclusion):
    """The minimal workflow of PyTorch's own article: the step that sets the output fails before it does."""
    delivery = f"no-conclusion-{conclusion!r}".replace("'", "")
    status, answer, stored = report(dispatched(delivery), action.workflow("completed", conclusion))
    assert (status, answer) == (200, {"ok": True, "status": "completed",
                                      "warnings": ["workflow.conclusion is missing: counts as failure"]})
    assert stored[-1].headers["provenance"] == "token"


def buildkite(**changes):
    return {"issuer": BUILDKITE, "without": ["repository"], "organization_id": ORGANIZATION, "pipeline_id": PIPELINE,
            "build_branch": "main", "aud": "pytorch-cross-repo-ci-relay", **changes}


def test_its_buildkite_wrapper_reports_a_nightly_under_the_builds_uuid(report):
    fields = action.buildkite_workflow("completed", "failure")
    status, answer, stored = report(action.self_report("nightly", "c" * 40), fields, **buildkite())
    assert (status, answer["status"]) == (200, "completed")
    assert (stored[-1].headers["repo"], stored[-1].headers["issuer"]) == ("org/four", BUILDKITE)
    assert json.loads(stored[-1].value)["workflow"]["run_id"] == fields["run_id"]


def test_its_buildkite_wrapper_reports_a_dispatch_that_was_handed_on(report):
    handed_on = dispatched("ub-1", repo="org/four")
    for status, conclusion in (("in_progress", None), ("completed", "success")):
        code, _, stored = report(handed_on, action.buildkite_workflow(status, conclusion, run_attempt="2"), **buildkite())
        assert code == 200 and stored[-1].headers["level"] == "L4" and stored[-1].headers["provenance"] == "token"
    status, answer, _ = report(handed_on, action.buildkite_workflow("in_progress"), **buildkite(build_branch="dev"))
    assert status == 403 and "build_branch" in answer["detail"]


def test_refusals_come_with_a_body_that_it_can_print(report):
    status, answer, _ = report(dispatched("ua-6"), action.workflow("done"))
    assert status == 400 and isinstance(answer["detail"], str) and "status" in answer["detail"]
