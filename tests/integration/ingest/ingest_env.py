"""crcr-ingest alone, with a real Kafka and Redis and an OIDC issuer of the test's own."""
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import re
import secrets
import threading
import time
import urllib.error
import urllib.request

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from lib import kafka as kafka_lib
from lib.ports import free_port
from lib.processes import BIN, ROOT, Process, wait_for
from lib.redis_server import login_of

SECRET = "the-secret"
TOKEN_KEY = "k1:" + "s" * 32
ACTIONS = "https://token.actions.githubusercontent.com"
BUILDKITE = "https://agent.buildkite.com"
AUDIENCE = "pytorch-cross-repo-ci-relay"
SHA = "0123456789abcdef0123456789abcdef01234567"
PARTITIONS = 4  # a topic; a broker that many tests share spends most of its time on them
ORGANIZATION, PIPELINE = "0190a1b2-0000-4000-8000-000000000001", "0190a1b2-0000-4000-8000-000000000002"
ALLOWLIST = """\
L1: [org/one]
L2:
  - Org/Two
  - org/hasty
  - org/kept: { repo_id: 71, owner_id: 7 }
  - org/pulls: { events: [pull_request] }
  - org/nights: { events: [nightly] }
L3:
  npu: { org/three: [alice] }
L4:
  - org/four: carol
"""
PROVIDERS = f"""\
providers:
  buildkite:
    repo_map:
      {ORGANIZATION}/{PIPELINE}:
        repo: org/four
        required_claims: {{ build_branch: [main] }}
"""


def http_request(method, url, body=None, headers=None, timeout=20):
    """(status, answer, headers); a refusal is an answer too."""
    request = urllib.request.Request(url, data=body, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers


def detail(answer):
    return json.loads(answer)["detail"]


class Issuer:
    """Serves a JWK Set at /jwks and signs tokens with its keys."""

    def __init__(self):
        self.keys = {}
        self.served = []  # kids in the set
        self.fetches = 0
        self.down = False
        issuer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                issuer.fetches += 1
                body = b"down" if issuer.down else issuer.document()
                self.send_response(500 if issuer.down else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/jwks"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.add_key("kid-1")

    def add_key(self, kid):
        self.keys[kid] = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.served.append(kid)

    def document(self):
        keys = []
        for kid in self.served:
            key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.keys[kid].public_key()))
            keys.append({**key, "kid": kid, "use": "sig", "alg": "RS256"})
        return json.dumps({"keys": keys}).encode()

    def public_pem(self, kid):
        return self.keys[kid].public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    def token(self, repo="Org/Two", kid="kid-1", key=None, issuer=ACTIONS, without=(), **changes):
        now = int(time.time())
        claims = {"iss": issuer, "aud": AUDIENCE, "sub": "repo:x", "repository": repo, "run_id": "99",
                  "run_attempt": "1", "iat": now, "nbf": now, "exp": now + 300, **changes}
        claims = {name: value for name, value in claims.items() if name not in without}
        return jwt.encode(claims, key or self.keys[kid], algorithm="RS256", headers={"kid": kid})

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def callback_token(key=TOKEN_KEY, **changes):
    kid, secret = key.split(":")
    now = int(time.time())
    claims = {"delivery_id": "d-1", "repo": "Org/Two", "pr_number": 42, "head_sha": SHA,
              "dispatched_at": 1763700000001, "iat": now, "exp": now + 3600, **changes}
    return jwt.encode(claims, secret, algorithm="HS256", headers={"kid": kid})


def callback(status="in_progress", delivery="d-1", token=None, event_type="pull_request", **workflow):
    """The body that the relay's action posts."""
    body = {"event_type": event_type, "delivery_id": delivery, "payload": {"number": 42},
            "workflow": {"schema_version": "1", "status": status, "name": "CI", "run_id": 99,
                         "url": "https://github.com/Org/Two/actions/runs/99", **workflow}}
    if token is not None:
        body["callback_token"] = token
    return body


class Ingest:
    """One crcr-ingest with topics of its own."""

    def __init__(self, folder, brokers, redis_endpoint, issuer, create_topics=True, prefix=None, **environment):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.brokers = brokers
        self.port, self.admin = free_port(), free_port()
        self.prefix = prefix or f"i{secrets.token_hex(4)}."  # another's: of the same installation
        self.environment = {
            "PATH": os.environ["PATH"],
            "KAFKA_BROKERS": brokers, "REDIS_ENDPOINT": redis_endpoint,
            "CRCR_TOPIC_PREFIX": self.prefix, "GITHUB_APP_ID": "12345",
            "GITHUB_APP_SECRET": f"next-secret,{SECRET}",
            "CRCR_LISTEN": f"127.0.0.1:{self.port}", "CRCR_ADMIN_LISTEN": f"127.0.0.1:{self.admin}",
            "CRCR_OIDC_ISSUERS": f"{ACTIONS}={issuer.url},{BUILDKITE}={issuer.url}",
            "CRCR_CALLBACK_TOKEN_KEY": TOKEN_KEY, **login_of("crcr-ingest", redis_endpoint), **environment}
        if create_topics and not prefix:
            kafka_lib.create_topics(brokers, self.prefix, kafka_lib.few_partitions(PARTITIONS))
        self.process = None

    def start(self):
        self.process = Process("ingest", [BIN / "crcr-ingest"], self.folder, self.environment)
        return self

    def wait_ready(self):
        wait_for("ingest to be ready", self._is_ready)
        return self

    def _is_ready(self):
        assert self.process.running(), self.process.tail()
        return self.get_admin("/readyz")[0] == 200

    def get_admin(self, path):
        status, body, _ = http_request("GET", f"http://127.0.0.1:{self.admin}{path}")
        return status, body.decode()

    def stop(self):
        if self.process is not None:
            code = self.process.stop()
            assert code == 0, self.process.tail()
            assert "Sanitizer" not in self.process.text(), self.process.text()

    # ---- topics ---------------------------------------------------------------------------------------
    def publish_allowlist(self, allowlist=ALLOWLIST, providers=PROVIDERS):
        for key, text in (("allowlist", allowlist), ("providers", providers)):
            kafka_lib.write(self.brokers, self.prefix + "allowlist", key, text.encode(),
                            {"source": "test", "sha": hashlib.sha256(text.encode()).hexdigest(),
                             "fetched_ms": str(int(time.time() * 1000))})

    def records(self, topic, delivery=None):
        return [record for record in kafka_lib.read_topic(self.brokers, self.prefix + topic)
                if delivery is None or record.headers.get("delivery") == delivery]

    # ---- requests -------------------------------------------------------------------------------------
    def post(self, path, body, headers, timeout=20):
        return http_request("POST", f"http://127.0.0.1:{self.port}{path}", body, headers, timeout)

    def webhook(self, body, event="pull_request", delivery="w-1", secret=SECRET, timeout=20, **headers):
        """Signed as GitHub signs; a header set to None is left out."""
        signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        all_headers = {"Content-Type": "application/json", "X-GitHub-Event": event,
                       "X-GitHub-Delivery": delivery, "X-Hub-Signature-256": f"sha256={signature}",
                       "X-GitHub-Hook-Installation-Target-Type": "integration",
                       "X-GitHub-Hook-Installation-Target-ID": "12345"}
        all_headers.update({name.replace("_", "-"): value for name, value in headers.items()})
        return self.post("/github/webhook", body,
                         {name: value for name, value in all_headers.items() if value is not None},
                         timeout)

    def callback(self, body, token, timeout=20):
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return self.post("/github/callback", raw, headers, timeout)

    def whoami(self, token):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return http_request("GET", f"http://127.0.0.1:{self.port}/github/whoami", headers=headers)

    def callback_checked(self, body, token):
        """The same, again where Redis may not have been asked: it has 300 ms, and is then left alone for a while."""
        end = time.monotonic() + 30
        while True:
            before, began = self.rated_alone(), time.monotonic()
            answer = self.callback(body, token)
            asked = time.monotonic() - began < 0.3 and self.rated_alone() == before
            if asked or time.monotonic() > end:
                return answer
            time.sleep(0.1)

    def rated_alone(self):
        """How many callbacks were rated without Redis."""
        return re.search(r"^crcr_ingest_limiter_fallbacks_total (\d+)$", self.get_admin("/metrics")[1], re.MULTILINE)[1]


def payload(name, **changes):
    """A real payload, made to come from pytorch/pytorch, as bytes."""
    body = json.loads((ROOT / "tests" / "payloads" / name).read_text())
    body["repository"]["full_name"] = "pytorch/pytorch"
    body.update(changes)
    return json.dumps(body, ensure_ascii=False).encode()
