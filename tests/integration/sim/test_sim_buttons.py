"""What people press on GitHub's pages, and what tests put there for them to press."""
import json

from lib.processes import wait_for
from lib.relay import pull_request
from lib.sim import SHA


def seed(sim, *runs):
    status, _, made = sim.send("POST", "/_sim/check_runs", [
        {"repo": "up/stream", "head_sha": SHA, "status": "completed", "conclusion": "failure", **run} for run in runs])
    assert status == 201, made
    return made


def pressed(sim, **what):
    """The webhook that came of it: (event, delivery, payload)."""
    status, _, delivery = sim.send("POST", "/_sim/rerequest", what)
    assert status == 201, delivery
    wait_for("the webhook", lambda: sim.inbox.requests)
    path, headers, body, _ = sim.inbox.requests.pop()
    assert path == "/github/webhook" and headers["X-GitHub-Delivery"] == delivery["guid"]
    return headers["X-GitHub-Event"], json.loads(body)


def test_rerun_of_one_check_sends_its_check_run(sim):
    made = seed(sim, {"name": "crcr/org/a/CI/test", "external_id": "7:42"})[0]
    event, body = pressed(sim, check_run=made["id"])
    assert (event, body["action"]) == ("check_run", "rerequested")
    assert body["repository"]["full_name"] == "up/stream" and body["sender"]["login"]
    run = body["check_run"]
    assert (run["id"], run["name"], run["external_id"]) == (made["id"], "crcr/org/a/CI/test", "7:42")
    assert run["app"]["id"] == 12345 and run["head_sha"] == SHA
    assert run["check_suite"]["id"] == made["check_suite"]["id"]


def test_rerun_of_all_checks_sends_their_suite(sim):
    made = seed(sim, {"name": "one"}, {"name": "two"})
    event, body = pressed(sim, check_suite=made[0]["check_suite"]["id"])
    assert (event, body["action"]) == ("check_suite", "rerequested")
    suite = body["check_suite"]
    assert (suite["id"], suite["head_sha"], suite["app"]["id"]) == (made[1]["check_suite"]["id"], SHA, 12345)
    assert suite["latest_check_runs_count"] == 2


def test_what_nobody_made_cannot_be_rerun(sim):
    assert sim.send("POST", "/_sim/rerequest", {"check_run": 1})[0] == 404
    assert sim.send("POST", "/_sim/rerequest", {"check_suite": 1})[0] == 404


def test_a_suite_of_more_than_a_page_is_read_page_by_page_newest_of_each_name(sim):
    made = seed(sim, {"name": "check 0"}, *[{"name": f"check {n}"} for n in range(250)])
    path = f"/repos/up/stream/check-suites/{made[0]['check_suite']['id']}/check-runs?filter=latest&per_page=100"
    names, sizes = [], []
    while path:
        _, headers, body = sim.call("GET", path)
        assert body["total_count"] == 250
        names += [run["name"] for run in body["check_runs"]]
        sizes.append(len(body["check_runs"]))
        links = {part.split("; ")[1]: part.split(">")[0].lstrip("<") for part in (headers["Link"] or "").split(", ")
                 if part}
        path = links['rel="next"'].split(f":{sim.port}")[1] if 'rel="next"' in links else None
    assert sizes == [100, 100, 50] and sorted(names) == sorted({f"check {n}" for n in range(250)})


def test_a_check_run_of_another_app_shows_that_app(sim):
    made = seed(sim, {"name": "crcr/org/a/CI/test", "app_id": 1})[0]
    assert sim.call("GET", f"/repos/up/stream/check-runs/{made['id']}")[2]["app"]["id"] == 1


def test_a_check_run_that_github_would_refuse_is_refused(sim):
    assert sim.send("POST", "/_sim/check_runs", [{"repo": "up/stream", "head_sha": SHA}])[0] == 422


def test_a_pull_request_is_as_the_last_webhook_said(sim):
    assert sim.call("GET", "/repos/pytorch/pytorch/pulls/42")[0] == 404
    sim.send("POST", "/_sim/webhook", {"event": "pull_request", "payload": pull_request(number=42, sha="b" * 40)})
    status, _, body = sim.call("GET", "/repos/pytorch/pytorch/pulls/42")
    assert status == 200 and (body["number"], body["head"]["sha"]) == (42, "b" * 40)
    assert sim.send("POST", "/_sim/pulls", pull_request(number=42, sha=SHA))[0] == 201
    assert sim.call("GET", "/repos/PyTorch/pytorch/pulls/42")[2]["head"]["sha"] == SHA
    assert sim.send("POST", "/_sim/pulls", {})[0] == 422
