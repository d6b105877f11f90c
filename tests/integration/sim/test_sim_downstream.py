"""Downstreams: what follows a dispatch or a re-run. Python's own JWT library checks the tokens."""
import jwt
import pytest

from lib.processes import wait_for

ISSUER = "https://token.actions.githubusercontent.com"
AUDIENCE = "pytorch-cross-repo-ci-relay"


# ---- dispatch and callbacks ----------------------------------------------------------------------


def verified(sim, token):
    keys = jwt.PyJWKSet.from_dict(sim.send("GET", "/.well-known/jwks")[2])
    kid = jwt.get_unverified_header(token)["kid"]
    key = next(key for key in keys.keys if key.key_id == kid)
    return jwt.decode(token, key.key, algorithms=["RS256"], audience=AUDIENCE, issuer=ISSUER,
                      options={"require": ["exp", "iat", "nbf"]})


def test_a_dispatch_is_answered_by_callbacks_under_an_oidc_token(sim):
    sim.downstream(repo="*", tests={"passed": 3, "failed": 1, "skipped": 0}, conclusion="failure")
    assert sim.dispatch("org/a", callback_token="echo-me", payload={"number": 7})[0] == 204
    run = sim.run("org/a")
    wait_for("both callbacks", lambda: len(sim.inbox.requests) == 2)

    # Each comes by a connection of its own: only the simulator knows which it sent first.
    assert [row["status"] for row in sim.state()["callbacks"]] == ["in_progress", "completed"]
    ended, started = sorted(sim.inbox.callbacks(), key=lambda callback: callback["workflow"]["status"])
    for callback in (started, ended):
        assert (callback["delivery_id"], callback["callback_token"]) == ("d-1", "echo-me")
        assert callback["payload"] == {"number": 7}
        assert callback["workflow"]["run_id"] == str(run["id"])
    assert (started["workflow"]["status"], started["workflow"]["conclusion"]) == ("in_progress", None)
    assert (ended["workflow"]["status"], ended["workflow"]["conclusion"]) == ("completed", "failure")
    assert ended["workflow"]["test_results"] == {"passed": 3, "failed": 1, "skipped": 0}
    claims = verified(sim, sim.inbox.requests[0][1]["Authorization"].removeprefix("Bearer "))
    assert (claims["repository"], claims["repository_owner"]) == ("org/a", "org")
    assert claims["run_id"] == str(run["id"])
    assert 300 <= claims["exp"] - claims["iat"] <= 600
    assert run["conclusion"] == "failure"


@pytest.mark.parametrize("answer, statuses", [
    ("never", []),
    ("start", ["in_progress"]),
    ("end", ["completed"]),
    ("duplicate", ["completed", "completed", "in_progress", "in_progress"]),
])
def test_a_downstream_answers_as_it_is_asked(sim, answer, statuses):
    sim.downstream(repo="org/*", answer=answer)
    sim.dispatch("org/a")
    sim.run("org/a")
    wait_for("the callbacks", lambda: len(sim.state()["callbacks"]) == len(statuses)
             and all(row["http_status"] == 200 for row in sim.state()["callbacks"]))
    assert sorted(sim.inbox.statuses()) == statuses


def test_a_reversed_downstream_tells_the_end_first(sim):
    sim.downstream(repo="*", answer="reversed")
    sim.dispatch("org/a")
    wait_for("both callbacks", lambda: len(sim.inbox.requests) == 2)
    assert sorted(sim.inbox.statuses()) == ["completed", "in_progress"]
    assert [row["status"] for row in sim.state()["callbacks"]] == ["completed", "in_progress"]


def test_an_l1_downstream_runs_and_reports_nothing(sim):
    sim.downstream(repo="org/silent", reports=False)
    sim.dispatch("org/silent")
    assert sim.run("org/silent")["conclusion"] == "success"
    assert sim.state()["callbacks"] == []


def test_several_jobs_end_in_the_worst_conclusion(sim):
    sim.downstream(repo="*", jobs=[{"name": "build"}, {"name": "test: a/b", "conclusion": "timed_out"},
                                   {"name": "lint", "conclusion": "cancelled"}])
    sim.dispatch("org/a")
    assert sim.run("org/a")["conclusion"] == "timed_out"
    wait_for("six callbacks", lambda: len(sim.inbox.requests) == 6)
    ended = {c["workflow"]["job_name"]: c["workflow"]["conclusion"] for c in sim.inbox.callbacks()
             if c["workflow"]["status"] == "completed"}
    assert ended == {"build": "success", "test: a/b": "timed_out", "lint": "cancelled"}


def test_a_refused_callback_is_sent_again_and_then_given_up(sim):
    sim.downstream(repo="*", answer="end", retries=2)
    sim.inbox.answers += [(503, {}), (429, {})]
    sim.dispatch("org/a")
    wait_for("three tries", lambda: len(sim.inbox.requests) == 3)
    sim.inbox.answers += [(500, {})] * 9
    sim.dispatch("org/b")
    wait_for("giving up", lambda: [row["tries"] for row in sim.state()["callbacks"]] == [3, 3])
    assert [row["http_status"] for row in sim.state()["callbacks"]] == [200, 500]


def test_a_4xx_callback_is_not_sent_again(sim):
    sim.downstream(repo="*", answer="end")
    sim.inbox.answers.append((401, {}))
    sim.dispatch("org/a")
    row = wait_for("the answer", lambda: [r for r in sim.state()["callbacks"] if r["http_status"]])[0]
    assert (row["http_status"], row["tries"]) == (401, 1)


def test_retry_after_is_obeyed(sim):
    sim.downstream(repo="*", answer="end")
    sim.inbox.answers.append((429, {"Retry-After": "1"}))
    sim.dispatch("org/a")
    wait_for("the second try", lambda: len(sim.inbox.requests) == 2)
    assert sim.inbox.requests[1][3] - sim.inbox.requests[0][3] >= 0.95


def test_claims_can_be_forged_for_tests(sim):
    sim.downstream(repo="*", answer="end", claims={"aud": "elsewhere", "nbf": None})
    sim.dispatch("org/a")
    wait_for("the callback", lambda: sim.inbox.requests)
    token = sim.inbox.requests[0][1]["Authorization"].removeprefix("Bearer ")
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["aud"] == "elsewhere" and "nbf" not in claims
    _, _, made = sim.send("POST", "/_sim/oidc", {"repo": "org/z", "claims": {"run_id": "5"}})
    assert verified(sim, made["token"])["run_id"] == "5"


def test_a_repository_without_the_app_is_not_found(sim):
    sim.downstream(repo="gone/*", installed=False)
    bearer = {"Authorization": "Bearer " + sim.app_jwt()}
    assert sim.send("GET", "/repos/gone/a/installation", headers=bearer)[0] == 404
    sim.downstream(repo="org/gone", installed=False)
    assert sim.dispatch("org/gone")[0] == 404
    assert sim.dispatch("org/here")[0] == 204


@pytest.mark.parametrize("body, said", [
    ({"client_payload": {}}, "event_type"),
    ({"event_type": "x" * 101}, "100 characters"),
    ({"event_type": "x", "client_payload": {str(i): i for i in range(11)}}, "10 properties"),
    ({"event_type": "x", "client_payload": {"big": "x" * 65536}}, "client_payload is too large."),
    ({"event_type": "x", "client_payload": []}, "not an object"),
])
def test_a_dispatch_over_githubs_limits_is_refused(sim, body, said):
    status, _, answer = sim.call("POST", "/repos/org/a/dispatches", body)
    assert status == 422 and said in answer["message"]
    assert sim.state()["dispatches"] == []


def test_a_payload_just_below_64_kb_is_taken(sim):
    room = 65535 - len('{"big":""}')
    for length, status in ((room, 204), (room + 1, 422)):
        body = {"event_type": "x", "client_payload": {"big": "x" * length}}
        assert sim.call("POST", "/repos/org/a/dispatches", body)[0] == status


# ---- runs ----------------------------------------------------------------------------------------


def test_a_rerun_of_failed_jobs_is_a_new_attempt_of_those_only(sim):
    sim.downstream(repo="*", jobs=[{"name": "good"}, {"name": "bad", "conclusion": "failure"}])
    sim.dispatch("org/a")
    run = sim.run("org/a")
    path = f"/repos/org/a/actions/runs/{run['id']}"
    wait_for("four callbacks", lambda: len(sim.inbox.requests) == 4)
    assert sim.call("POST", path + "/rerun-failed-jobs")[0] == 201
    wait_for("the second attempt", lambda: len(sim.inbox.requests) == 6)
    again = [c["workflow"] for c in sim.inbox.callbacks()[4:]]
    assert {(w["job_name"], w["run_attempt"]) for w in again} == {("bad", 2)}
    sim.run("org/a")
    assert sim.call("GET", path)[2]["run_attempt"] == 2
    assert sim.call("POST", path + "/rerun", {})[0] == 201
    wait_for("the third attempt", lambda: len(sim.inbox.requests) == 10)


def test_a_run_that_runs_again_is_not_run_again_meanwhile(sim):
    sim.downstream(repo="*", run_ms=60000)
    sim.dispatch("org/a")
    path = f"/repos/org/a/actions/runs/{sim.state()['runs'][0]['id']}"
    assert sim.call("POST", path + "/cancel")[0] == 202
    sim.run("org/a")
    assert sim.call("POST", path + "/rerun-failed-jobs")[0] == 201
    for verb in ("/rerun", "/rerun-failed-jobs"):
        status, _, answer = sim.call("POST", path + verb)
        assert status == 403 and "already running" in answer["message"]


def test_a_cancelled_run_ends_cancelled(sim):
    sim.downstream(repo="*", run_ms=60000)
    sim.dispatch("org/a")
    wait_for("the start", lambda: sim.inbox.requests)
    path = f"/repos/org/a/actions/runs/{sim.state()['runs'][0]['id']}"
    assert sim.call("GET", path)[2]["status"] == "in_progress"
    assert sim.call("POST", path + "/cancel")[0] == 202
    assert sim.run("org/a")["conclusion"] == "cancelled"
    assert sim.call("POST", path + "/cancel")[0] == 409
    wait_for("the end", lambda: len(sim.inbox.requests) == 2)
    assert sim.inbox.callbacks()[1]["workflow"]["conclusion"] == "cancelled"


def test_what_was_planned_for_an_attempt_does_not_reach_the_next(sim):
    sim.downstream(repo="*", delay_ms=300, run_ms=1000)
    sim.dispatch("org/a")
    wait_for("the start", lambda: sim.inbox.requests)
    path = f"/repos/org/a/actions/runs/{sim.state()['runs'][0]['id']}"
    sim.call("POST", path + "/cancel")
    sim.run("org/a")
    assert sim.call("POST", path + "/rerun")[0] == 201
    wait_for("the second attempt", lambda: len(sim.inbox.requests) == 4)
    assert sim.run("org/a")["conclusion"] == "success"
    started, ended = (row["at_ms"] for row in sim.state()["callbacks"][2:])
    assert ended - started >= 900


def test_unknown_runs_and_paths_are_not_found(sim):
    assert sim.call("GET", "/repos/org/a/actions/runs/1")[0] == 404
    assert sim.call("POST", "/repos/org/a/actions/runs/1/rerun")[0] == 404
    assert sim.call("GET", "/repos/org/a/nothing")[0] == 404


def test_a_later_attempt_ends_as_again_says(sim):
    sim.downstream(repo="org/flaky", conclusion="failure", again="success")
    sim.dispatch("org/flaky")
    run = sim.run("org/flaky")
    assert (run["attempt"], run["conclusion"]) == (1, "failure")
    assert sim.call("POST", f"/repos/org/flaky/actions/runs/{run['id']}/rerun-failed-jobs")[0] == 201
    wait_for("the second attempt", lambda: sim.run("org/flaky")["attempt"] == 2)
    assert sim.run("org/flaky")["conclusion"] == "success"
    assert sim.send("POST", "/_sim/downstreams", {"repo": "org/flaky", "again": "better"})[0] == 422
