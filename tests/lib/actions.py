"""As much of GitHub Actions as the tests of deploy/downstream need: expressions, one composite action, and a runner for
the jobs of downstream.yml."""
import contextlib
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import yaml

from lib.processes import ROOT

FOLDER = ROOT / "deploy" / "downstream"
REUSABLE = ROOT / ".github" / "workflows" / "downstream.yml"
RELAY = {"workflow_repository": "org/relay", "workflow_sha": "e" * 40}  # where REUSABLE is called from
TOKENS = re.compile(r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<name>[A-Za-z_][\w.*-]*)|(?P<sign>\|\||&&|==|!=|!|\(|\)|,))")
WORDS = {"true": True, "false": False, "null": None}
JWT = "aGVhZA.eyJhdWQiOiJ4IiwicmVwb3NpdG9yeSI6Im9yZy9hIn0.c2ln"
OK = {"POST": b'{"ok":true,"status":"in_progress"}', "GET": json.dumps({"value": JWT}).encode()}
STATUS = ("success", "failure", "cancelled", "always")


def tokens_of(expression):
    at, found = 0, []
    while expression[at:].strip():
        match = TOKENS.match(expression, at)
        assert match, f"not understood: {expression[at:]!r}"
        found.append((match.lastgroup, match.group(match.lastgroup)))
        at = match.end()
    return found


class Expression:
    """The part of GitHub's expressions that our files use: properties, texts, || && == != ! ( ), format(), and the status
    functions, which the context "status" answers."""

    def __init__(self, text, contexts):
        self.tokens, self.contexts = tokens_of(text), contexts

    def value(self):
        found = self.any()
        assert not self.tokens, f"left over: {self.tokens}"
        return found

    def take(self, *signs):
        if self.tokens and self.tokens[0][1] in signs and self.tokens[0][0] == "sign":
            return self.tokens.pop(0)[1]
        return None

    def any(self):
        left = self.all()
        while self.take("||"):
            right = self.all()
            left = left or right
        return left

    def all(self):
        left = self.compared()
        while self.take("&&"):
            right = self.compared()
            left = left and right
        return left

    def compared(self):
        left = self.one()
        sign = self.take("==", "!=")
        if not sign:
            return left
        equal = (left or "") == (self.one() or "")  # null equals the empty text
        return equal if sign == "==" else not equal

    def one(self):
        if self.take("!"):
            return not self.one()
        if self.take("("):
            found = self.any()
            assert self.take(")")
            return found
        kind, text = self.tokens.pop(0)
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if text == "format" and self.take("("):
            return self.format()
        if text in STATUS and self.take("("):
            assert self.take(")")
            return text == "always" or self.contexts["status"][text]
        return WORDS[text] if text in WORDS else self.property(text)

    def format(self):
        """What is null prints as nothing."""
        given = [self.any()]
        while self.take(","):
            given.append(self.any())
        assert self.take(")")
        return re.sub(r"\{(\d+)\}", lambda match: text_of(given[int(match.group(1)) + 1]), given[0])

    def property(self, path):
        """null for what is not there, as GitHub has it."""
        found = self.contexts
        for name in path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return found


def text_of(found):
    """A value as GitHub prints it."""
    return "" if found is None else str(found).lower() if isinstance(found, bool) else str(found)


def fill(text, contexts):
    """A text with its ${{ }} replaced."""
    def replaced(match):
        return text_of(Expression(match.group(1), contexts).value())
    return re.sub(r"\$\{\{(.*?)\}\}", replaced, str(text), flags=re.S)


def load(name):
    """One of our YAML files, of FOLDER or a path. YAML 1.1 reads the key `on` as true."""
    document = yaml.safe_load((FOLDER / name).read_text())
    return {("on" if key is True else key): value for key, value in document.items()}


def composite(action, inputs, contexts):
    """(script, environment) of the action's one step, for these inputs."""
    declared = action["inputs"]
    assert set(inputs) <= set(declared), set(inputs) - set(declared)
    contexts = {**contexts, "inputs": {name: inputs.get(name, fill(what.get("default", ""), contexts))
                                       for name, what in declared.items()}}
    step = action["runs"]["steps"][0]
    return step["run"], {name: fill(value, contexts) for name, value in step["env"].items()}


def bash(script, file, **options):
    """The script as a process, from a file, as a runner does it: bash stays the parent of what it runs."""
    file.write_text(script)
    return subprocess.Popen(["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", file], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def environment_of(folder, repo, job, run_id, attempt, token_url):
    """What a runner gives to a job; with token_url the means to mint tokens."""
    return {
        "PATH": os.environ["PATH"], "HOME": str(folder), "GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": repo,
        "GITHUB_WORKFLOW": "PyTorch CI", "GITHUB_JOB": job, "GITHUB_RUN_ID": run_id,
        "GITHUB_RUN_ATTEMPT": attempt, "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_EVENT_PATH": str(folder / "event.json"), "GITHUB_OUTPUT": str(folder / "outputs"),
        **({"ACTIONS_ID_TOKEN_REQUEST_URL": token_url, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "request-secret"}
           if token_url is not None else {})}


class Server:
    """The relay and the token service: answers with the given (status, headers, body) in turn, then 200, and GET with
    a token; keeps what it was sent."""

    def __init__(self):
        self.requests, self.answers = [], []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                server.requests.append((self.path, self.headers, body, time.monotonic()))
                status, headers, text = (server.answers.pop(0) if server.answers
                                         else (200, {}, OK[self.command]))
                self.send_response(status)
                for name, value in {"Content-Length": str(len(text)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/github/callback"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    def bodies(self):
        return [json.loads(body) for _, _, body, _ in self.requests]


class Job:
    """A job that was started by a repository_dispatch and calls our action, as a runner would."""

    def __init__(self, folder, repo, event, token_url, run_id="811", attempt="1"):
        self.folder, self.action = folder, load("action.yml")
        self.outputs = folder / "outputs"
        (folder / "event.json").write_text(event)
        self.environment = {**environment_of(folder, repo, "test", run_id, attempt, token_url),
                            "GITHUB_ACTION_PATH": str(FOLDER)}

    def start(self, **inputs):
        """The action as a process; names of inputs with underscores."""
        script, environment = composite(self.action, {name.replace("_", "-"): value for name, value in inputs.items()},
                                        {"github": {"job": "test"}})
        self.outputs.write_text("")
        return bash(script, self.folder / "step.sh", env={**self.environment, **environment}, cwd=self.folder)

    def end(self, process, timeout=60):
        """(exit code, what the log shows, outputs). The runner takes ::add-mask:: out of the log."""
        text, _ = process.communicate(timeout=timeout)
        masks = re.findall(r"^::add-mask::(.+)$", text, re.M)
        log = "\n".join(line for line in text.splitlines() if not line.startswith("::add-mask::"))
        assert not [mask for mask in masks if mask in log], "a token is in the log"
        outputs = dict(line.split("=", 1) for line in self.outputs.read_text().splitlines())
        return process.returncode, log, outputs

    def run(self, **inputs):
        return self.end(self.start(**inputs))


class Leg:
    """A run of downstream.yml. Each job has a machine of its own: workspace, environment, folder for temporary files.
    What goes from one to the next are artifacts. `repository` is what a checkout of the back end's own repository
    gives, `pytorch` what a checkout of the commit under test gives, `relay` what one of the relay's repository does."""

    def __init__(self, folder, repo, event, token_url, callback_url, attempt="1", leg="cpu", wanted=True):
        self.folder, self.repo, self.event, self.token_url = folder, repo, event, token_url
        self.repository, self.pytorch, self.artifacts = folder / "repository", folder / "pytorch", folder / "artifacts"
        self.relay = folder / "relay"
        called = load(REUSABLE)
        self.jobs, self.results, self.logs = called["jobs"], {}, {}
        self.contexts = {
            "github": {"event": json.loads(event), "run_id": "811", "run_attempt": attempt, "repository": repo,
                       "server_url": "https://github.com"},
            "inputs": {**{name: what.get("default") for name, what in called["on"]["workflow_call"]["inputs"].items()},
                       "leg": leg, "wanted": wanted, "callback-url": callback_url,
                       "run": load("workflow.yml")["jobs"]["legs"]["with"]["run"]}, "job": RELAY}
        shutil.copytree(FOLDER, self.relay / "deploy" / "downstream")
        for one in (self.pytorch, self.artifacts, self.repository / "ci"):
            one.mkdir(parents=True)

    def tests(self, script):
        """What the back end's own ./ci/test-pytorch.sh does."""
        file = self.repository / "ci" / "test-pytorch.sh"
        file.write_text("#!/usr/bin/env bash\n" + script)
        file.chmod(0o755)

    def run(self, cancelled_before=None):
        """Runs the jobs in their order; their results, as `needs` has them."""
        cancelled = False
        for name, job in self.jobs.items():
            cancelled = cancelled or name == cancelled_before
            needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
            green = all(self.results[one] == "success" for one in needs) and not cancelled
            contexts = {**self.contexts, "needs": {one: {"result": self.results[one]} for one in needs},
                        "status": {"success": green, "cancelled": cancelled}}
            wanted = fill("${{" + str(job.get("if", "success()")).replace("${{", "").replace("}}", "") + "}}", contexts)
            self.results[name] = Machine(self, name, job, contexts).run() if wanted == "true" else "skipped"
        return self.results


class Machine:
    """A runner with one job."""

    def __init__(self, leg, name, job, contexts):
        self.leg, self.name, self.job = leg, name, job
        self.home = leg.folder / f"machine-{name}-{leg.contexts['github']['run_attempt']}"
        self.workspace, temporary = self.home / "workspace", self.home / "temp"
        for one in (self.workspace, temporary):
            one.mkdir(parents=True)
        (self.home / "event.json").write_text(leg.event)
        github = {**contexts["github"], "job": name}
        self.contexts = {**contexts, "github": github, "runner": {"temp": str(temporary)}}
        mints = job["permissions"].get("id-token") == "write"
        self.environment = environment_of(self.home, leg.repo, name, github["run_id"], github["run_attempt"],
                                          leg.token_url if mints else None)

    def run(self):
        good, self.leg.logs[self.name] = True, ""
        for step in self.job["steps"]:
            if not good and step.get("if") != "always()":
                continue
            good = (self.step(step) or step.get("continue-on-error", False)) and good
        return "success" if good else "failure"

    def step(self, step):
        given = {name: fill(value, self.contexts) for name, value in step.get("with", {}).items()}
        uses = step.get("uses", "").split("@")[0]
        if uses == "actions/checkout":
            repository = given.get("repository", "")
            assert repository in ("", RELAY["workflow_repository"]) or given["ref"] != RELAY["workflow_sha"]
            source = {"": self.leg.repository, RELAY["workflow_repository"]: self.leg.relay}.get(repository, self.leg.pytorch)
            return self.copy(source, self.workspace / given.get("path", "."))
        if uses == "actions/upload-artifact":
            return not (self.workspace / given["path"]).exists() or self.copy(self.workspace / given["path"], self.leg.artifacts / given["name"])
        if uses == "actions/download-artifact":
            return self.copy(self.leg.artifacts / given["name"], self.workspace / given["path"])
        if uses.startswith("./"):  # an action of the workspace, whoever wrote it there
            action = self.workspace / uses
            script, environment = composite(yaml.safe_load((action / "action.yml").read_text()), given, self.contexts)
            return self.bash(script, {**environment, "GITHUB_ACTION_PATH": str(action)})
        return self.bash(step["run"], {name: fill(value, self.contexts) for name, value in step.get("env", {}).items()})

    @staticmethod
    def copy(source, target):
        target.mkdir(parents=True, exist_ok=True)
        return source.is_dir() and subprocess.run(["cp", "-a", f"{source}/.", target], check=False).returncode == 0

    def bash(self, script, environment):
        process = bash(script, self.home / "step.sh", env={**self.environment, **environment}, cwd=self.workspace,
                       start_new_session=True)
        try:
            self.leg.logs[self.name] += process.communicate(timeout=120)[0]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what hangs, or was left behind
        return process.returncode == 0
