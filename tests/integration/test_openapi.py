"""tests/openapi/validate.py tells right requests and answers from wrong ones."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from openapi.validate import problems, response_problems  # noqa: E402

HEADERS = {
    "User-Agent": "crcr",
    "Accept": "application/vnd.github+json",
    "Authorization": "Bearer (installation)",
    "Content-Type": "application/json",
}
CHECK_RUN = {
    "name": "crcr/org/four/ci/build",
    "head_sha": "a" * 40,
    "status": "completed",
    "conclusion": "success",
    "completed_at": "2026-11-21T03:20:00.123Z",
    "details_url": "https://github.com/org/four/actions/runs/77",
    "external_id": "77:42",
    "output": {"title": "Passed", "summary": "10 passed"},
}


def request(method, path, body=None, query=None, headers=HEADERS):
    return {"method": method, "path": path, "query": query or {}, "headers": headers, "body": body}


GOOD = [
    request("GET", "/app"),
    request("GET", "/app/hook/deliveries", query={"per_page": "100", "cursor": "v1_12"}),
    request("POST", "/app/installations/5001/access_tokens", {}),
    request("GET", "/repos/org/a.b-c/installation"),
    request("POST", "/repos/org/a/dispatches", {"event_type": "pull_request", "client_payload": {"any": {"thing": 1}}}),
    request("POST", "/repos/pytorch/pytorch/check-runs", CHECK_RUN),
    request("PATCH", "/repos/pytorch/pytorch/check-runs/12", {"status": "in_progress"}),
    request("GET", "/repos/o/r/commits/" + "a" * 40 + "/check-runs", query={"check_name": "x/y", "filter": "latest"}),
    request("GET", "/repos/o/r/check-suites/9/check-runs", query={"per_page": "100", "page": "2"}),
    request("GET", "/repos/o/r/actions/runs/12"),
    request("POST", "/repos/o/r/actions/runs/12/rerun-failed-jobs"),
    request("POST", "/repos/o/r/actions/runs/12/rerun", {"enable_debug_logging": False}),
    request("GET", "/repos/o/r/contents/.github/allowlist.yml", query={"ref": "main"}),
    request("POST", "/repos/o/r/issues/7/comments", {"body": "text"}),
    request("POST", "/crcr/results", {"anything": True}),
]

BAD = [
    ("a typing error in the path", request("POST", "/repos/o/r/dispatch", {"event_type": "x"}), "no path"),
    ("another method", request("PUT", "/repos/o/r/dispatches", {"event_type": "x"}), "does not take PUT"),
    ("a required field is missing", request("POST", "/repos/o/r/dispatches", {"client_payload": {}}), "event_type"),
    ("too long", request("POST", "/repos/o/r/dispatches", {"event_type": "x" * 101}), "too long"),
    (
        "more than ten keys",
        request("POST", "/repos/o/r/dispatches", {"event_type": "x", "client_payload": {str(i): i for i in range(11)}}),
        "too many properties",
    ),
    ("an unknown field", request("POST", "/repos/o/r/check-runs", {**CHECK_RUN, "detail_url": "x"}), "detail_url"),
    ("an unknown conclusion", request("POST", "/repos/o/r/check-runs", {**CHECK_RUN, "conclusion": "ok"}), "'ok'"),
    ("a number as text", request("POST", "/repos/o/r/check-runs", {**CHECK_RUN, "external_id": 77}), "external_id"),
    ("no time", request("POST", "/repos/o/r/check-runs", {**CHECK_RUN, "completed_at": "yesterday"}), "date-time"),
    (
        "an output without a summary",
        request("POST", "/repos/o/r/check-runs", {**CHECK_RUN, "output": {"title": "x"}}),
        "summary",
    ),
    (
        "a summary over 65,535 characters",
        request("POST", "/repos/o/r/check-runs", {**CHECK_RUN, "output": {"title": "x", "summary": "x" * 65536}}),
        "too long",
    ),
    ("an id that is no number", request("GET", "/repos/o/r/actions/runs/abc"), "run_id"),
    ("an unknown parameter", request("GET", "/repos/o/r/commits/abc/check-runs", query={"name": "x"}), "not GitHub's"),
    ("a wrong parameter", request("GET", "/repos/o/r/commits/abc/check-runs", query={"filter": "newest"}), "filter"),
    ("no body", request("POST", "/repos/o/r/issues/7/comments"), "body is missing"),
    ("not JSON", request("POST", "/repos/o/r/issues/7/comments", "text"), "not JSON"),
    (
        "form encoded",
        request("POST", "/repos/o/r/issues/7/comments", {"body": "x"}, headers={**HEADERS, "Content-Type": "text/plain"}),
        "Content-Type",
    ),
    ("no user agent", request("GET", "/app", headers={k: v for k, v in HEADERS.items() if k != "User-Agent"}), "User-Agent"),
    ("no accept", request("GET", "/app", headers={**HEADERS, "Accept": "*/*"}), "Accept"),
    ("a body on a GET", request("GET", "/app", {"x": 1}), "takes none"),
]


@pytest.mark.parametrize("good", GOOD, ids=lambda r: f"{r['method']} {r['path']}")
def test_a_right_request_has_no_problems(good):
    assert problems(good) == []


@pytest.mark.parametrize("name, bad, said", BAD, ids=[row[0] for row in BAD])
def test_a_wrong_request_is_named(name, bad, said):
    found = problems(bad)
    assert found and said in "\n".join(found)


def test_answers_are_held_to_the_schema_of_their_status():
    token = request("POST", "/app/installations/5001/access_tokens", {})
    right = {"token": "ghs_x", "expires_at": "2026-11-21T03:20:00Z"}
    assert response_problems(token, 201, {}, right) == []
    assert response_problems(token, 201, {}, {"token": "ghs_x"})
    assert response_problems(token, 201, {}, {**right, "token": 7})
    assert response_problems(token, 200, {}, right), "GitHub answers 201"


def test_an_empty_answer_must_be_empty_and_an_error_must_say_why():
    dispatch = request("POST", "/repos/o/r/dispatches", {"event_type": "x"})
    assert response_problems(dispatch, 204, {}, None) == []
    assert response_problems(dispatch, 204, {}, {"ok": True})
    assert response_problems(dispatch, 503, {}, {"message": "Unavailable"}) == []
    assert response_problems(dispatch, 503, {}, {"detail": "Unavailable"})


def test_null_is_accepted_only_where_github_says_nullable():
    run = request("GET", "/repos/o/r/check-runs/12")
    found = "\n".join(response_problems(run, 200, {}, {"id": None, "conclusion": None}))
    assert "body.id" in found and "body.conclusion" not in found
