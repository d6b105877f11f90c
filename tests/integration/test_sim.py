"""`crcr-sim github` as its users meet it: over HTTP, with Python's own JWT library on the other side."""

import base64
import datetime
import http.client
import http.server
import json
import pathlib
import subprocess
import sys
import threading
import time

import jwt
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib.processes import BIN, Process, wait_for  # noqa: E402
from openapi.validate import problems, response_problems  # noqa: E402

SHA = "a" * 40
ISSUER = "https://token.actions.githubusercontent.com"
AUDIENCE = "pytorch-cross-repo-ci-relay"
SECRET = "hook-secret"


class Inbox:
    """A small server that keeps what it is sent, answers with the statuses it is given, then 200."""

    def __init__(self):
        self.requests, self.answers = [], []
        inbox = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                inbox.requests.append((self.path, dict(self.headers), body, time.monotonic()))
                status, headers = inbox.answers.pop(0) if inbox.answers else (200, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def callbacks(self):
        return [json.loads(body) for path, _, body, _ in self.requests if path == "/github/callback"]

    def statuses(self):
        return [callback["workflow"]["status"] for callback in self.callbacks()]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Sim:
    """The simulator and a client that asks it as the relay does; every answer is held to OpenAPI."""

    def __init__(self, folder, inbox, *arguments):
        self.folder = folder
        self.key = folder / "app.pem"
        if not self.key.exists():
            subprocess.run(["openssl", "genrsa", "-out", self.key, "2048"], check=True, capture_output=True)
        self.contents = folder / "contents"
        (self.contents / ".github").mkdir(parents=True, exist_ok=True)
        (self.contents / ".github" / "allowlist.yml").write_text("L1: [org/a]\n")
        self.record = folder / "record.jsonl"
        port_file = folder / "port"
        port_file.unlink(missing_ok=True)
        self.process = Process("crcr-sim", [
            BIN / "crcr-sim", "github", "--app-id", "12345", "--app-key", self.key, "--contents", self.contents,
            "--record", self.record, "--port-file", port_file, "--callback-url", inbox.url + "/github/callback",
            "--webhook-url", inbox.url + "/github/webhook", "--webhook-secret", SECRET, "--hud-key", "hud",
            *arguments], folder)
        wait_for("the simulator's port", port_file.exists, 20)
        self.port = int(port_file.read_text())
        self.tokens = {}

    def send(self, method, path, body=None, headers=None):
        """(status, headers, body): one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        all_headers = {"User-Agent": "crcr-test", "Accept": "application/vnd.github+json"}
        if body is not None:
            all_headers["Content-Type"] = "application/json"
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        all_headers.update(headers or {})
        try:
            connection.request(method, path, body, {k: v for k, v in all_headers.items() if v is not None})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        is_json = "json" in (answer.headers["Content-Type"] or "") and "raw" not in answer.headers["Content-Type"]
        return answer.status, answer.headers, json.loads(text) if is_json else text

    def app_jwt(self, key=None, **changes):
        now = int(time.time())
        claims = {"iss": "12345", "iat": now - 60, "exp": now + 540, **changes}
        return jwt.encode(claims, (key or self.key).read_text(), algorithm="RS256")

    def as_app(self, method, path, body=None, **headers):
        return self.checked(method, path, body, {"Authorization": "Bearer " + self.app_jwt(), **headers})

    def token(self, owner):
        if owner not in self.tokens:
            _, _, found = self.as_app("GET", f"/repos/{owner}/any/installation")
            _, _, made = self.as_app("POST", f"/app/installations/{found['id']}/access_tokens", {})
            self.tokens[owner] = made["token"]
        return self.tokens[owner]

    def call(self, method, path, body=None, **headers):
        owner = path.split("/")[2]
        return self.checked(method, path, body, {"Authorization": "Bearer " + self.token(owner), **headers})

    def checked(self, method, path, body, headers):
        status, answered, text = self.send(method, path, body, headers)
        request = {"method": method, "path": path.split("?")[0], "body": body}
        document = None if text == b"" else text
        if "raw" not in headers.get("Accept", ""):
            assert response_problems(request, status, dict(answered), document) == []
        return status, answered, text

    def dispatch(self, repo, **payload):
        body = {"event_type": "pull_request", "client_payload": {"delivery_id": "d-1", **payload}}
        return self.call("POST", f"/repos/{repo}/dispatches", body)

    def script(self, *rules):
        assert self.send("POST", "/_sim/script", list(rules))[0] == 200

    def downstream(self, **settings):
        status, _, said = self.send("POST", "/_sim/downstreams", {"delay_ms": 10, "run_ms": 10, "after_ms": 10,
                                                                   "retry_delay_ms": 20, **settings})
        assert status == 200, said

    def state(self):
        return self.send("GET", "/_sim/state")[2]

    def requests(self, since=0):
        return self.send("GET", f"/_sim/requests?since={since}")[2]

    def run(self, repo):
        """The newest run of the repository, once it has completed."""
        def ended():
            runs = [run for run in self.state()["runs"] if run["repo"] == repo]
            return runs and runs[-1]["status"] == "completed" and runs[-1]
        return wait_for(f"the run of {repo} to end", ended, 20)


@pytest.fixture
def inbox():
    one = Inbox()
    yield one
    one.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder, inbox = tmp_path_factory.mktemp("sim"), Inbox()
    sim = Sim(folder, inbox)
    sim.inbox = inbox
    yield sim
    assert sim.process.stop() == 0, sim.process.tail()
    inbox.close()


@pytest.fixture
def sim(shared):
    """The module's simulator, as after a start."""
    assert shared.send("POST", "/_sim/reset")[0] == 200
    shared.tokens.clear()
    shared.inbox.requests.clear()
    shared.inbox.answers.clear()
    yield shared
    assert shared.process.running(), shared.process.tail()


@pytest.fixture
def start(tmp_path, inbox):
    made = []

    def make(*arguments):
        made.append(Sim(tmp_path, inbox, *arguments))
        made[-1].inbox = inbox
        return made[-1]

    yield make
    for one in made:
        assert one.process.stop() == 0, one.process.tail()


# ---- who may call -----------------------------------------------------------------------------------


def test_an_installation_token_opens_the_owners_repositories_only(sim):
    assert sim.call("GET", f"/repos/org/a/commits/{SHA}")[0] == 200
    foreign = {"Authorization": "Bearer " + sim.token("org")}
    assert sim.send("GET", f"/repos/other/a/commits/{SHA}", headers=foreign)[0] == 403


@pytest.mark.parametrize("changes, said", [
    ({"exp": int(time.time()) + 3600}, "too far in the future"),
    ({"exp": int(time.time()) - 300}, "could not be decoded"),
    ({"iss": "999"}, "'iss'"),
])
def test_a_wrong_app_jwt_is_refused(sim, changes, said):
    bearer = {"Authorization": "Bearer " + sim.app_jwt(**changes)}
    status, _, body = sim.send("GET", "/app", headers=bearer)
    assert status == 401 and said in body["message"]


def test_an_app_jwt_of_another_key_and_none_at_all_are_refused(sim, tmp_path):
    other = tmp_path / "other.pem"
    subprocess.run(["openssl", "genrsa", "-out", other, "2048"], check=True, capture_output=True)
    assert sim.send("GET", "/app", headers={"Authorization": "Bearer " + sim.app_jwt(other)})[0] == 401
    assert sim.send("GET", "/app")[0] == 401
    assert sim.send("POST", "/repos/org/a/dispatches", {}, {"Authorization": "Bearer ghs_unknown"})[0] == 401


def test_a_token_expires(start):
    sim = start("--token-ttl", "1")
    assert sim.call("GET", f"/repos/org/a/commits/{SHA}")[0] == 200
    wait_for("the token to expire", lambda: sim.call("GET", f"/repos/org/a/commits/{SHA}")[0] == 401, 5)


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


def test_a_budget_is_counted_and_ends(start):
    sim = start("--rate-limit", "2")
    left = []
    for _ in range(3):
        status, headers, body = sim.call("GET", f"/repos/org/a/commits/{SHA}")
        left.append((status, headers["x-ratelimit-remaining"]))
    assert left == [(200, "1"), (200, "0"), (403, "0")]
    assert "rate limit exceeded" in body["message"]
    assert int(headers["x-ratelimit-reset"]) > time.time()


def test_a_request_without_user_agent_is_forbidden(sim):
    connection = http.client.HTTPConnection("127.0.0.1", sim.port, timeout=5)
    connection.putrequest("GET", "/app", skip_accept_encoding=True)
    connection.endheaders()
    assert connection.getresponse().status == 403
    connection.close()


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

    started, ended = sim.inbox.callbacks()
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
def test_a_downstream_answers_as_it_is_told(sim, answer, statuses):
    sim.downstream(repo="org/*", answer=answer)
    sim.dispatch("org/a")
    sim.run("org/a")
    wait_for("the callbacks", lambda: len(sim.state()["callbacks"]) == len(statuses)
             and all(row["http_status"] == 200 for row in sim.state()["callbacks"]))
    assert sorted(sim.inbox.statuses()) == statuses


def test_a_reversed_downstream_tells_the_end_first(sim):
    sim.downstream(repo="*", answer="reversed", run_ms=100)
    sim.dispatch("org/a")
    wait_for("both callbacks", lambda: len(sim.inbox.requests) == 2)
    assert sim.inbox.statuses() == ["completed", "in_progress"]


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


# ---- runs ---------------------------------------------------------------------------------------------


def test_a_rerun_of_failed_jobs_is_a_new_attempt_of_those_only(sim):
    sim.downstream(repo="*", jobs=[{"name": "good"}, {"name": "bad", "conclusion": "failure"}])
    sim.dispatch("org/a")
    run = sim.run("org/a")
    path = f"/repos/org/a/actions/runs/{run['id']}"
    wait_for("four callbacks", lambda: len(sim.inbox.requests) == 4)
    assert sim.call("POST", path + "/rerun-failed-jobs")[0] == 201
    status, _, answer = sim.call("POST", path + "/rerun")
    assert status == 403 and "already running" in answer["message"]
    wait_for("the second attempt", lambda: len(sim.inbox.requests) == 6)
    again = [c["workflow"] for c in sim.inbox.callbacks()[4:]]
    assert {(w["job_name"], w["run_attempt"]) for w in again} == {("bad", 2)}
    sim.run("org/a")
    assert sim.call("GET", path)[2]["run_attempt"] == 2
    assert sim.call("POST", path + "/rerun", {})[0] == 201
    wait_for("the third attempt", lambda: len(sim.inbox.requests) == 10)


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
    started, ended = (arrived for _, _, _, arrived in sim.inbox.requests[2:])
    assert ended - started >= 0.9


def test_unknown_runs_and_paths_are_not_found(sim):
    assert sim.call("GET", "/repos/org/a/actions/runs/1")[0] == 404
    assert sim.call("POST", "/repos/org/a/actions/runs/1/rerun")[0] == 404
    assert sim.call("GET", "/repos/org/a/nothing")[0] == 404


# ---- check runs -----------------------------------------------------------------------------------


def check_run(sim, name="crcr/org/a", sha=SHA, **fields):
    return sim.call("POST", "/repos/up/stream/check-runs", {"name": name, "head_sha": sha, **fields})


def test_a_check_run_lives_from_queued_to_completed(sim):
    status, _, made = check_run(sim, external_id="7:42", details_url="https://github.com/org/a/actions/runs/7")
    assert status == 201 and (made["status"], made["conclusion"]) == ("queued", None)
    assert made["app"]["id"] == 12345 and made["external_id"] == "7:42"
    path = f"/repos/up/stream/check-runs/{made['id']}"
    assert sim.call("PATCH", path, {"status": "in_progress"})[2]["status"] == "in_progress"
    done = sim.call("PATCH", path, {"conclusion": "success", "output": {"title": "t", "summary": "s"}})[2]
    assert (done["status"], done["conclusion"]) == ("completed", "success") and done["completed_at"]
    assert sim.call("GET", path)[2] == done
    assert sim.state()["check_runs"][0]["output"]["title"] == "t"
    assert sim.call("GET", "/repos/up/other/check-runs/%d" % made["id"])[0] == 404


@pytest.mark.parametrize("fields", [
    {"status": "completed"},
    {"status": "waiting"},
    {"conclusion": "stale"},
    {"output": {"title": "t"}},
    {"output": {"title": "t", "summary": "x" * 65536}},
    {"sha": "0" * 40},
])
def test_a_wrong_check_run_is_refused(sim, fields):
    assert check_run(sim, **fields)[0] == 422
    assert sim.state()["check_runs"] == []


def test_check_runs_are_found_by_commit_name_and_suite(sim):
    first = check_run(sim, "crcr/org/a/CI (x)")[2]
    second = check_run(sim, "crcr/org/a/CI (x)")[2]
    other = check_run(sim, "crcr/org/b")[2]
    check_run(sim, "crcr/org/b", "b" * 40)
    path = f"/repos/up/stream/commits/{SHA}/check-runs"

    def ids(path):
        return [run["id"] for run in sim.call("GET", path)[2]["check_runs"]]

    assert ids(path) == [other["id"], second["id"]]
    assert ids(path + "?filter=all&check_name=crcr/org/a/CI%20(x)") == [second["id"], first["id"]]
    suite = f"/repos/up/stream/check-suites/{first['check_suite']['id']}"
    assert ids(suite + "/check-runs?filter=all") == [other["id"], second["id"], first["id"]]
    assert sim.call("GET", suite)[2]["head_sha"] == SHA


def test_lists_are_paged_with_links(sim):
    for i in range(5):
        check_run(sim, f"name {i}")
    path = f"/repos/up/stream/commits/{SHA}/check-runs?per_page=2"
    seen, pages = [], 0
    while path:
        _, headers, body = sim.call("GET", path)
        assert body["total_count"] == 5
        seen += [run["name"] for run in body["check_runs"]]
        following = [part for part in (headers["Link"] or "").split(", ") if 'rel="next"' in part]
        path = following[0][1:].split(">")[0].split(str(sim.port), 1)[1] if following else None
        pages += 1
    assert pages == 3 and seen == [f"name {i}" for i in (4, 3, 2, 1, 0)]


# ---- contents, commits, comments, HUD -------------------------------------------------------------


def test_contents_come_as_base64_and_raw_and_not_modified(sim):
    path = "/repos/up/stream/contents/.github/allowlist.yml?ref=main"
    _, headers, document = sim.call("GET", path)
    text = (sim.contents / ".github" / "allowlist.yml").read_bytes()
    assert base64.b64decode(document["content"]) == text and document["size"] == len(text)
    status, _, raw = sim.call("GET", path, Accept="application/vnd.github.raw+json")
    assert status == 200 and raw == text
    assert sim.call("GET", path, **{"If-None-Match": headers["ETag"]})[0] == 304
    (sim.contents / ".github" / "allowlist.yml").write_text("L2: [org/a]\n" * 50)
    status, _, changed = sim.call("GET", path, **{"If-None-Match": headers["ETag"]})
    assert status == 200 and base64.b64decode(changed["content"]) == b"L2: [org/a]\n" * 50


def test_a_repositorys_own_file_comes_first_and_nothing_outside_the_folder(sim):
    own = sim.contents / "up" / "own"
    own.mkdir(parents=True, exist_ok=True)
    (own / "f.txt").write_text("own")
    (sim.contents / "f.txt").write_text("shared")
    (sim.folder / "secret.txt").write_text("secret")
    assert base64.b64decode(sim.call("GET", "/repos/up/own/contents/f.txt")[2]["content"]) == b"own"
    assert base64.b64decode(sim.call("GET", "/repos/up/other/contents/f.txt")[2]["content"]) == b"shared"
    assert sim.call("GET", "/repos/up/own/contents/../secret.txt")[0] == 404
    assert sim.call("GET", "/repos/up/own/contents/none.txt")[0] == 404


@pytest.mark.parametrize("ref, status", [(SHA, 200), ("0" * 40, 422), ("nonsense", 422)])
def test_commits_are_known_by_their_full_sha(sim, ref, status):
    assert sim.call("GET", f"/repos/up/stream/commits/{ref}")[0] == status


def test_comments_are_made_found_and_changed(sim):
    made = sim.call("POST", "/repos/up/stream/issues/7/comments", {"body": "first"})[2]
    sim.call("POST", "/repos/up/stream/issues/8/comments", {"body": "elsewhere"})
    changed = sim.call("PATCH", f"/repos/up/stream/issues/comments/{made['id']}", {"body": "second"})[2]
    assert changed["id"] == made["id"]
    listed = sim.call("GET", "/repos/up/stream/issues/7/comments")[2]
    assert [comment["body"] for comment in listed] == ["second"]
    assert sim.call("PATCH", "/repos/up/stream/issues/comments/1", {"body": "x"})[0] == 404
    assert sim.call("POST", "/repos/up/stream/issues/7/comments", {})[0] == 422


def test_the_hud_takes_results_under_its_key_only(sim):
    body = {"trusted": {"verified_repo": "org/a", "downstream_repo_level": "L2", "ci_metrics": {}},
            "untrusted": {"callback_payload": {"workflow": {"status": "completed"}}}}
    assert sim.send("POST", "/crcr/results", body)[0] == 401
    assert sim.send("POST", "/crcr/results", body, {"x-hud-internal-bot": "wrong"})[0] == 401
    assert sim.send("POST", "/crcr/results", {}, {"x-hud-internal-bot": "hud"})[0] == 400
    assert sim.send("POST", "/crcr/results", body, {"x-hud-internal-bot": "hud"})[0] == 200
    body["untrusted"]["callback_payload"]["callback_token"] = "leaked"
    assert sim.send("POST", "/crcr/results", body, {"x-hud-internal-bot": "hud"})[0] == 400
    assert len(sim.state()["hud"]) == 1


# ---- webhooks and their deliveries ------------------------------------------------------------------


def test_a_webhook_is_signed_sent_and_remembered(sim):
    import hashlib
    import hmac
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


# ---- scripts, record, reset -------------------------------------------------------------------------


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


def test_a_delay_holds_one_answer_and_no_other(sim):
    sim.token("org")
    sim.script({"path": "*/commits/*", "delay_ms": 500, "count": 1})
    seen = []

    def ask():
        seen.append((sim.call("GET", f"/repos/org/a/commits/{SHA}")[0], time.monotonic()))

    slow = threading.Thread(target=ask)
    began = time.monotonic()
    slow.start()
    wait_for("the slow request", lambda: sim.requests()[-1]["path"].endswith(SHA))
    ask()
    slow.join()
    quick, slowed = seen
    assert quick[1] - began < 0.4 and slowed[1] - began >= 0.49 and slowed[0] == 200


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
    wait_for("the other's callback", lambda: sim.inbox.requests)
    assert [row["repo"] for row in sim.state()["callbacks"]] == ["org/b"]


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
