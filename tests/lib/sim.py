"""`crcr-sim github` for tests, the way the relay and GitHub's users meet it, and a server that it calls back."""
import http.client
import http.server
import json
import threading
import time

from lib.keys import app_jwt, app_key
from lib.processes import BIN, Process, wait_for
from openapi.validate import response_problems

SHA = "a" * 40
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
            app_key(self.key)
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
        wait_for("the simulator's port", port_file.exists)
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
        return app_jwt(key or self.key, **changes)

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
        return wait_for(f"the run of {repo} to end", ended)
