"""The whole relay on this machine: the three daemons and the simulated GitHub around a real Kafka and a
real Redis. Tests drive it as GitHub and downstream repositories would."""
import hashlib
import hmac
import json
import os
import pathlib
import secrets
import subprocess
import time
import urllib.error
import urllib.request
import uuid

from lib.kafka import create_topics, few_partitions
from lib.keys import app_key
from lib.ports import free_port
from lib.processes import BIN, ROOT, Process, wait_for
from lib.redis_server import login_of

SECRET = "try-secret"
DRAINS_S = 30      # a daemon has 25 s to drain
SIM_FREES_S = 120  # of a million dispatches the simulator frees 4 GB
ALLOWLIST = """\
L1: [org-one/backend-one]
L2:
  - org-two/backend-two
L3:
  npu: { org-three/backend-three: [alice, bob] }
L4:
  - org-four/backend-four: carol
"""


def http(method, url, body=None, headers=None, timeout=20):
    """(status, body bytes) of one request; an HTTP error status is an answer too."""
    request = urllib.request.Request(url, data=body, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def patient(send, timeout=60):
    """What send() gives: (status, …). Sent again where ingest says 503: Kafka took too long for it."""
    deadline = time.monotonic() + timeout
    while (said := send())[0] == 503 and time.monotonic() < deadline:
        time.sleep(0.2)
    return said


def payload(path):
    """One of the real webhook payloads, as an object."""
    return json.loads((ROOT / "tests" / "payloads" / path).read_text())


def pull_request(action="opened", number=4242, sha=None, labels=(), updated_at=None, **changes):
    """A real pull_request payload made to come from pytorch/pytorch."""
    body = _opened()
    body["action"] = action
    body["number"] = number
    request = body["pull_request"]
    request["number"] = number
    request["head"]["sha"] = sha or hashlib.sha1(f"{number}".encode()).hexdigest()
    request["labels"] = [{"name": name} for name in labels]
    request["updated_at"] = updated_at or "2026-11-21T03:20:00Z"
    body["repository"]["full_name"] = "pytorch/pytorch"
    body["repository"]["default_branch"] = "main"
    body.update(changes)
    return body


def _opened():
    return payload("pull_request/opened.json")


class Relay:
    """Starts and stops the parts one by one, so that tests can kill any of them."""

    partitions = None  # of a topic at most; None: as deploy has them

    def __init__(self, folder, kafka, redis, allowlist=ALLOWLIST, environment=None, sim_arguments=(),
                 prefix=None):
        self.folder = pathlib.Path(folder)
        self.kafka, self.redis = kafka, redis
        self.ports = {name: free_port() for name in
                      ("ingest", "hud", "github", "admin_ingest", "admin_dispatcher",
                       "admin_reporter")}
        self.prefix = prefix or f"t{secrets.token_hex(4)}."
        self.sim_arguments = list(sim_arguments)
        self.extra = dict(environment or {})
        self.parts = {}
        self.bin, self.bins = BIN, {}  # where the programs are; part → another folder
        self.under = []  # a program and its arguments that the daemons run under, such as valgrind
        self.hosts, self.links = {}, None  # where parts listen, when not on 127.0.0.1; links to the outside
        self.contents = self.folder / "contents" / "pytorch" / "pytorch" / ".github"
        self.contents.mkdir(parents=True, exist_ok=True)
        self.allowlist_file = self.contents / "allowlist.yml"
        self.allowlist_file.write_text(allowlist)
        self.key = self.folder / "app-key.pem"
        if not self.key.exists():
            app_key(self.key)
        if not prefix:  # else the topics are there
            create_topics(kafka, self.prefix, few_partitions(self.partitions) if self.partitions else None)

    # ---- parts ------------------------------------------------------------------------------------
    def host(self, part):
        return self.hosts.get(part, "127.0.0.1")

    def url(self, part, path=""):
        return f"http://{self.host(part)}:{self.ports[part]}{path}"

    def topic(self, name):
        return self.prefix + name

    def environment(self, admin="admin_ingest"):
        """What the daemons are configured with, and nothing of the caller's."""
        github = self.url("github")
        values = {
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "KAFKA_BROKERS": self.kafka,
            "REDIS_ENDPOINT": self.redis,
            "CRCR_TOPIC_PREFIX": self.prefix,
            "GITHUB_APP_ID": "12345",
            "GITHUB_APP_SECRET": SECRET,
            "GITHUB_APP_PRIVATE_KEY_FILE": str(self.key),
            "CRCR_GITHUB_API_URL": github,
            "ALLOWLIST_URL": "https://github.com/pytorch/pytorch/blob/main/.github/allowlist.yml",
            "ALLOWLIST_TTL_SECONDS": "5",
            "CRCR_OIDC_ISSUERS":
                f"https://token.actions.githubusercontent.com={github}/.well-known/jwks",
            "CRCR_CALLBACK_TOKEN_KEY": "k1:" + "0" * 32,
            "HUD_API_URL": github,
            "HUD_BOT_KEY": "hud-key",
            "CRCR_LISTEN": f"{self.host('ingest')}:{self.ports['ingest']}",
            "CRCR_HUD_LISTEN": f"127.0.0.1:{self.ports['hud']}",
            "CRCR_ADMIN_LISTEN": f"{self.host(admin)}:{self.ports[admin]}",
            "CRCR_LOG_LEVEL": "debug",
            # Asked for, but in the way of no test: those that are about the limits set them.
            **{f"CRCR_BUDGET_{name}": "1000000" for name in
               ("REQUESTS_HOUR", "POINTS_MINUTE", "CONTENT_MINUTE", "CONTENT_HOUR")},
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            if name in os.environ:
                values[name] = os.environ[name]
        values.update(login_of("crcrctl", self.redis), **self.extra)
        return values

    def start_github(self):
        record = self.folder / "github-requests.jsonl"
        self.parts["github"] = Process(
            "crcr-sim", [BIN / "crcr-sim", "github", "--listen",
                         f"{self.hosts.get('github_on', self.host('github'))}:{self.ports['github']}",
                         "--app-id", "12345", "--app-key", self.key, "--contents",
                         self.folder / "contents", "--record", record, "--callback-url",
                         self.url("ingest", "/github/callback"), "--webhook-url",
                         self.url("ingest", "/github/webhook"), "--webhook-secret", SECRET,
                         "--rate-limit", "1000000",  # in the way of no test
                         *self.sim_arguments], self.folder)
        self._wait_http("github", "/_sim/state")

    def start(self, name, instance=None, **environment):
        """name: ingest, dispatcher or reporter; another instance gets an admin port of its own."""
        part = instance or name
        admin = f"admin_{part}"
        self.ports.setdefault(admin, free_port())
        values = {**self.environment(admin), **login_of(f"crcr-{name}", self.redis), **environment}
        wrap = self.links.wrap() if self.links and admin in self.hosts else []
        self.parts[part] = Process(part, [*wrap, *self.under, self.bins.get(part, self.bin) / f"crcr-{name}"], self.folder, values)
        return self.parts[part]

    def wait_ready(self, part, timeout=60):
        def ready():
            process = self.parts[part]
            if not process.running():
                raise AssertionError(f"{part} ended with {process.popen.returncode}:\n{process.tail()}")
            status, body = http("GET", self.url(f"admin_{part}", "/readyz"))
            if status != 200:
                raise ValueError(body)  # shown when it is waited for in vain
            return True
        wait_for(f"{part} to be ready", ready, timeout)

    def _wait_http(self, part, path):
        wait_for(f"{part} to answer", lambda: http("GET", self.url(part, path))[0] == 200)

    def start_all(self):
        self.start_github()
        for name in ("ingest", "dispatcher", "reporter"):
            self.start(name)
        for name in ("ingest", "dispatcher", "reporter"):
            self.wait_ready(name)
        return self

    def stop(self):
        """Ends everything in order; each daemon must drain and exit 0."""
        problems = []
        for name in [part for part in self.parts if part != "github"] + ["github"]:
            process = self.parts.get(name)
            if process is None:
                continue
            was_running = process.running()
            code = process.stop(SIM_FREES_S if name == "github" else DRAINS_S)
            if was_running and code != 0:
                problems.append(f"{name} exited with {code}:\n{process.tail()}")
        assert not problems, "\n".join(problems)

    def logs(self):
        return "\n".join(f"==== {name}\n{process.tail(60)}" for name, process in self.parts.items())

    # ---- GitHub's side ------------------------------------------------------------------------------
    def send_webhook(self, body, event="pull_request", delivery=None, secret=SECRET, headers=None):
        """Signs as GitHub does; (status, answer, delivery)."""
        delivery = delivery or str(uuid.uuid4())
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        signature = hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()
        all_headers = {"Content-Type": "application/json", "X-GitHub-Event": event,
                       "X-GitHub-Delivery": delivery, "X-Hub-Signature-256": f"sha256={signature}",
                       "X-GitHub-Hook-Installation-Target-Type": "integration",
                       "X-GitHub-Hook-Installation-Target-ID": "12345",
                       "User-Agent": "GitHub-Hookshot/044aadd"}
        all_headers.update(headers or {})
        status, answer = http("POST", self.url("ingest", "/github/webhook"), raw, all_headers)
        return status, json.loads(answer), delivery

    def deliver(self, body, timeout=60, delivery=None, **how):
        """send_webhook, and the same delivery again while ingest answers 503."""
        delivery = delivery or str(uuid.uuid4())
        return patient(lambda: self.send_webhook(body, delivery=delivery, **how), timeout)

    def press(self, **what):
        """GitHub's button "Re-run" (check_run=id) or "Re-run all checks" (check_suite=id); the delivery."""
        status, body = http("POST", self.url("github", "/_sim/rerequest"), json.dumps(what).encode(),
                            {"Content-Type": "application/json"})
        assert status == 201, body
        return json.loads(body)["guid"]

    def state(self):
        return json.loads(http("GET", self.url("github", "/_sim/state"), timeout=120)[1])

    def requests(self):
        return json.loads(http("GET", self.url("github", "/_sim/requests"))[1])

    def script(self, rule):
        status, body = http("POST", self.url("github", "/_sim/script"), json.dumps(rule).encode(),
                            {"Content-Type": "application/json"})
        assert status in (200, 201, 204), body

    # ---- what people see ------------------------------------------------------------------------------
    def api(self, path):
        status, body = http("GET", self.url("hud", path))
        return json.loads(body) if status == 200 else None

    def metric(self, part, name, **labels):
        """The sum of a metric's series that carry these labels."""
        _, text = http("GET", self.url(f"admin_{part}", "/metrics"))
        total = 0.0
        for line in text.decode().splitlines():
            if line.startswith((name + "{", name + " ")):
                if all(f'{key}="{value}"' in line for key, value in labels.items()):
                    total += float(line.rsplit(" ", 1)[1])
        return total

    def ctl(self, *arguments, check=True, timeout=60):
        done = subprocess.run([BIN / "crcrctl", *map(str, arguments)], env=self.environment(),
                              capture_output=True, text=True, timeout=timeout, cwd=ROOT)
        if check:
            assert done.returncode == 0, done.stderr + done.stdout
        return done

    def group(self, name):
        """crcr-fold, under our prefix."""
        return self.prefix.removesuffix(".") + name.removeprefix("crcr")

    def lag(self, *groups):
        """The rows of `crcrctl lag`, for wait_for: a broker that is too busy to answer in time is asked again."""
        done = self.ctl("lag", "--json", *groups, check=False)
        if done.returncode == 3:
            raise TimeoutError(done.stderr)
        assert done.returncode == 0, done.stderr + done.stdout
        return [json.loads(line) for line in done.stdout.splitlines()]
