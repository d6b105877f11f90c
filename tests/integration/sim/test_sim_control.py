"""What only tests ask of the simulator: webhooks, scripts, the record, reset, options."""
import datetime
import hashlib
import hmac
import http.client
import json
import subprocess
import threading
import time

import pytest

from lib.processes import BIN, wait_for
from lib.sim import SECRET, SHA
from openapi.validate import problems


# ---- webhooks and their deliveries ---------------------------------------------------------------


def test_a_webhook_is_signed_sent_and_remembered(sim):
    sim.inbox.answers.append((202, {}))
    sim.send("POST", "/_sim/webhook", {"event": "pull_request", "guid": "g-1", "payload": {"action": "opened"}})
    wait_for("the webhook", lambda: sim.inbox.requests)
    path, headers, body, _ = sim.inbox.requests[0]
    assert path == "/github/webhook" and headers["X-GitHub-Delivery"] == "g-1"
    assert headers["X-Hub-Signature-256"] == "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    row = wait_for("the outcome", lambda: [d for d in sim.as_app("GET", "/app/hook/deliveries")[2] if d["status_code"]])
    assert (row[0]["guid"], row[0]["status_code"], row[0]["action"]) == ("g-1", 202, "opened")
    whole = sim.as_app("GET", f"/app/hook/deliveries/{row[0]['id']}")[2]
    assert whole["request"]["payload"] == {"action": "opened"}


def test_failed_deliveries_are_paged_by_cursor_and_sent_again(sim):
    for i in range(5):
        sim.send("POST", "/_sim/webhook", {"event": "push", "guid": f"g-{i}", "payload": {}, "status_code": 504})
    path, seen = "/app/hook/deliveries?per_page=2", []
    while path:
        _, headers, rows = sim.as_app("GET", path)
        seen += [row["guid"] for row in rows]
        path = headers["Link"][1:].split(">")[0].split(str(sim.port), 1)[1] if headers["Link"] else None
    assert seen == ["g-4", "g-3", "g-2", "g-1", "g-0"]
    oldest = sim.as_app("GET", "/app/hook/deliveries")[2][-1]
    assert sim.as_app("POST", f"/app/hook/deliveries/{oldest['id']}/attempts")[0] == 202
    wait_for("the webhook", lambda: sim.inbox.requests)
    newest = sim.as_app("GET", "/app/hook/deliveries")[2][0]
    assert newest["guid"] == "g-0" and newest["redelivery"] is True
    assert sim.as_app("GET", "/app/hook/deliveries/1")[0] == 404
    assert sim.as_app("GET", "/app/hook/deliveries?cursor=nonsense")[0] == 422


# ---- the App's keys -----------------------------------------------------------------------------


def test_the_app_keys_are_changed_as_at_github(sim, tmp_path):
    own, other = sim.key.read_text(), tmp_path / "other.pem"
    subprocess.run(["openssl", "genrsa", "-out", other, "2048"], check=True, capture_output=True)
    for keys, answer in (([own, other.read_text()], 200), ([other.read_text()], 401), ([other.read_text(), own], 200)):
        assert sim.send("POST", "/_sim/app_keys", {"keys": keys})[0] == 200
        assert sim.as_app("GET", "/app")[0] == answer
    for keys in ([], ["no key"], None):
        assert sim.send("POST", "/_sim/app_keys", {"keys": keys})[0] == 422
    assert sim.as_app("GET", "/app")[0] == 200


# ---- scripts, record, reset ----------------------------------------------------------------------


def test_a_rule_answers_instead_and_has_no_effect(sim):
    sim.script({"method": "POST", "path": "*/dispatches", "repo": "ORG/a", "status": 503, "retry_after": 2, "count": 1})
    status, headers, body = sim.dispatch("org/a")
    assert (status, headers["Retry-After"]) == (503, "2") and body["message"]
    assert sim.state()["dispatches"] == []
    assert sim.dispatch("org/a")[0] == 204
    assert [(rule["hits"], rule["seen"]) for rule in sim.state()["rules"]] == [(1, 2)]


def test_a_rule_with_effect_lies_about_what_happened(sim):
    sim.script({"path": "*/dispatches", "status": 502, "effect": True, "body": "<html>bad gateway</html>", "count": 1})
    headers = {"Authorization": "Bearer " + sim.token("org")}
    status, _, body = sim.send("POST", "/repos/org/a/dispatches", {"event_type": "x"}, headers)
    assert (status, body) == (502, b"<html>bad gateway</html>")
    assert len(sim.state()["dispatches"]) == 1


def test_a_reset_closes_the_connection_without_an_answer(sim):
    headers = {"Authorization": "Bearer " + sim.token("org")}
    sim.script({"path": "*/dispatches", "reset": True, "count": 1})
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        sim.send("POST", "/repos/org/a/dispatches", {"event_type": "x"}, headers)
    assert sim.requests()[-1]["fault"] == "reset" and sim.state()["dispatches"] == []


def test_a_hang_says_nothing_for_its_time(sim):
    headers = {"Authorization": "Bearer " + sim.token("org")}
    sim.script({"path": "*/dispatches", "hang": True, "hang_ms": 400})
    began = time.monotonic()
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        sim.send("POST", "/repos/org/a/dispatches", {"event_type": "x"}, headers)
    assert time.monotonic() - began >= 0.39


def two_answers(sim, delay_ms):
    """(who, status, when) of a slow request and of a quick one after it, in the order in which they were answered."""
    sim.script({"path": "*/commits/*", "delay_ms": delay_ms, "count": 1})
    seen, before = [], len(sim.requests())

    def ask(who):
        seen.append((who, sim.call("GET", f"/repos/org/a/commits/{SHA}")[0], time.monotonic()))

    slow = threading.Thread(target=ask, args=["slow"])
    slow.start()
    wait_for("the slow request", lambda: sim.requests()[before:])
    ask("quick")
    slow.join()
    return seen


def test_a_delay_holds_one_answer_and_no_other(sim):
    sim.token("org")
    for delay_ms in (1500, 15_000):  # on a busy machine the quick one may take longer than the short delay
        began = time.monotonic()
        seen = two_answers(sim, delay_ms)
        if seen[0][0] == "quick":
            break
    assert [(who, status) for who, status, _ in seen] == [("quick", 200), ("slow", 200)]
    assert seen[1][2] - began >= delay_ms / 1000 - 0.01


def test_a_wrong_rule_is_refused_by_name(sim):
    status, _, body = sim.send("POST", "/_sim/script", {"stauts": 500})
    assert status == 422 and "stauts" in body["message"]
    status, _, body = sim.send("POST", "/_sim/downstreams", {"answer": "maybe"})
    assert status == 422 and "maybe" in body["message"]


def test_every_request_is_recorded_without_its_credential(sim):
    first = len(sim.record.read_text().splitlines())
    sim.dispatch("org/a")
    sim.send("POST", "/repos/org/a/dispatches", b"not json", {"Authorization": "Bearer " + sim.token("org")})
    lines = [json.loads(line) for line in sim.record.read_text().splitlines()[first:]]
    kept = sim.requests(lines[0]["n"])
    assert kept == lines
    assert [(r["path"].rsplit("/", 1)[1], r["status"]) for r in lines] == [
        ("installation", 200), ("access_tokens", 201), ("dispatches", 204), ("dispatches", 400)]
    assert [r["headers"]["Authorization"] for r in lines] == ["Bearer (jwt)"] * 2 + ["Bearer (installation)"] * 2
    assert lines[2]["body"]["client_payload"] == {"delivery_id": "d-1"} and lines[3]["body"] == "not json"
    assert "ghs_" not in sim.record.read_text() and "eyJ" not in sim.record.read_text()
    assert problems(lines[2]) == [] and problems(lines[3])
    assert abs(lines[0]["at_ms"] / 1000 - datetime.datetime.now().timestamp()) < 20


def test_a_reset_of_the_simulator_overtakes_what_is_under_way(sim):
    sim.downstream(repo="*", delay_ms=100)
    sim.dispatch("org/a")
    sim.send("POST", "/_sim/reset")
    state = sim.state()
    assert not any(state[part] for part in ("dispatches", "runs", "callbacks", "check_runs", "rules"))
    sim.downstream(repo="*", answer="end", delay_ms=200)
    sim.tokens.clear()
    sim.dispatch("org/b")
    wait_for("the other's callback", lambda: sim.state()["callbacks"])  # the first's may have come before the reset
    assert [row["repo"] for row in sim.state()["callbacks"]] == ["org/b"]


def test_a_reset_gives_up_the_tries_that_were_to_come(sim):
    sim.inbox.answers.append((503, {}))
    sim.downstream(repo="*", answer="end", retries=3, retry_delay_ms=300)
    sim.dispatch("org/a")
    wait_for("the first try", lambda: sim.state()["callbacks"][0]["http_status"] == 503)
    assert sim.send("POST", "/_sim/reset")[2] == {"callbacks_under_way": 0}
    time.sleep(0.6)
    assert len(sim.inbox.requests) == 1


def test_only_the_newest_are_remembered(start):
    sim = start("--keep", "2")
    sim.downstream(repo="*", answer="end")
    for repo in ("org/a", "org/b", "org/c"):
        assert sim.dispatch(repo)[0] == 204
        sim.run(repo)
    wait_for("the callbacks", lambda: len(sim.inbox.requests) == 3)
    state = sim.state()
    for part in ("dispatches", "runs", "callbacks"):
        assert [row["repo"] for row in state[part]] == ["org/b", "org/c"]
    kept = sim.requests()
    assert [request["path"].split("/")[3] for request in kept] == ["b", "c"]
    assert len(sim.record.read_text().splitlines()) == kept[-1]["n"] + 1


def test_runs_that_call_back_are_not_forgotten_for_those_that_do_not(start):
    """Else a load of which one run in ten calls back loses those that wait for their turn."""
    sim = start("--keep", "2")
    sim.downstream(repo="org/quiet", reports=False)
    sim.downstream(repo="org/loud", answer="never")
    for repo in ("org/loud", "org/quiet", "org/quiet", "org/loud", "org/quiet"):
        assert sim.dispatch(repo)[0] == 204
    runs = sim.state()["runs"]
    assert [run["repo"] for run in runs] == ["org/loud", "org/quiet", "org/loud", "org/quiet"]
    assert [run["id"] for run in runs] == sorted(run["id"] for run in runs)


def test_script_and_downstreams_can_come_from_files(start, tmp_path):
    (tmp_path / "rules.json").write_text('[{"path": "/app", "status": 418}]')
    (tmp_path / "downstreams.json").write_text('[{"repo": "org/*", "answer": "never"}]')
    sim = start("--script", tmp_path / "rules.json", "--downstreams", tmp_path / "downstreams.json")
    assert sim.as_app("GET", "/app")[0] == 418
    assert sim.state()["downstreams"][0] == {"repo": "org/*", "answer": "never"}


@pytest.mark.parametrize("arguments, said", [
    ([], "--app-key is missing"),
    (["--app-key"], "needs a value"),
    (["--nonsense", "x"], "--nonsense is no option"),
    (["--app-key", "x", "--keep", "0"], "takes a number from 1"),
])
def test_a_wrong_command_line_is_named(arguments, said):
    done = subprocess.run([BIN / "crcr-sim", "github", *arguments], capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and said in done.stderr


def test_a_file_that_is_not_there_is_named(tmp_path):
    done = subprocess.run([BIN / "crcr-sim", "github", "--app-key", tmp_path / "none.pem"], capture_output=True,
                          text=True, timeout=20)
    assert done.returncode == 1 and "none.pem" in done.stderr
