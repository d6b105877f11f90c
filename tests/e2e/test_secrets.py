"""No secret gets out of the relay: each is a marker, a round with refusals on all sides is played, and whatever the daemons
write, serve or show of themselves is searched for every marker."""
import contextlib
import http.server
import itertools
import json
import pathlib
import re
import subprocess
import threading

import pytest
from confluent_kafka.admin import AdminClient

from lib.kafka import read_topic
from lib.processes import BIN, wait_for
from lib.redis_server import RedisServer, client_of
from lib.relay import ALLOWLIST, Relay, http as ask, pull_request
from lib.vendor import Downstream, sha_of

DAEMONS = ("ingest", "dispatcher", "reporter")
L1, L4 = "org-one/backend-one", "org-four/backend-four"
MARK = "Mk7Qz"  # begins every marker
WEBHOOK, HUD, REDIS, WRONG = (f"{MARK}{name}" for name in ("webhookSecret", "hudKey", "redisPassword", "wrongPassword"))
CALLBACK_KEY = f"{MARK}callbackTokenKey" + "x" * 20
QUERIES = {name: f"{MARK}query{name}" for name in ("Hud", "Jwks", "List", "Providers", "Api")}
JWT = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")  # our own as App, and those of downstreams


class Lists:
    """Where the allowlist comes from: a server whose answers the test chooses."""

    def __init__(self):
        lists = self
        self.status, self.text, self.asked = 200, ALLOWLIST, []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                lists.asked.append(self.path)
                body = lists.text.encode()
                self.send_response(lists.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, query):
        return f"http://127.0.0.1:{self.server.server_port}/allowlist.yml?token={query}"

    def answer(self, status, text):
        """From now on; returns when the dispatcher has had it."""
        self.status, self.text, seen = status, text, len(self.asked)
        wait_for("the allowlist to be fetched", lambda: len(self.asked) > seen + 1, 60)


@pytest.fixture(scope="module")
def round_played(kafka_node, tmp_path_factory):
    folder = tmp_path_factory.mktemp("secrets")
    lists, redis = Lists(), RedisServer(folder / "redis").start()
    redis.client().config_set("requirepass", REDIS)
    relay = Relay(folder, kafka_node.brokers, redis.endpoint, sim_arguments=["--hud-key", HUD])
    relay.extra = {
        "GITHUB_APP_SECRET": WEBHOOK, "HUD_BOT_KEY": HUD, "REDIS_LOGIN": f"default:{REDIS}",
        "CRCR_CALLBACK_TOKEN_KEY": f"k1:{CALLBACK_KEY}", "ALLOWLIST_TTL_SECONDS": "1",
        "HUD_API_URL": relay.url("github"),
        "ALLOWLIST_URL": lists.url(QUERIES["List"]),
        "CI_PROVIDERS_URL": f"http://127.0.0.1:1/providers.yml?token={QUERIES['Providers']}",
        "CRCR_OIDC_ISSUERS": "https://token.actions.githubusercontent.com="
                             + relay.url("github", f"/.well-known/jwks?key={QUERIES['Jwks']}")
                             + f",https://other.example=http://127.0.0.1:1/keys?key={QUERIES['Jwks']} someone"}
    said = []  # what programs printed that have ended
    try:
        relay.start_all()
        play(relay, lists, said)
        yield relay, said
    finally:
        with contextlib.ExitStack() as each:
            each.callback(lists.server.server_close)
            each.callback(lists.server.shutdown)
            each.callback(redis.stop)
            each.callback(relay.stop)


def play(relay, lists, said):
    """One pull request from the webhook to the HUD, with a refusal by everybody who can refuse."""
    four = Downstream(relay, L4, relay.folder)
    four.wait_admitted()
    relay.script({"method": "POST", "path": "*/dispatches", "repo": L1, "status": 403, "body": {"message": "no"}})
    relay.script({"method": "POST", "path": "/crcr/results*", "count": 1, "status": 500})
    relay.script({"method": "POST", "path": "/crcr/results*", "count": 1, "status": 401})
    _, _, delivery = relay.deliver(pull_request(number=71, sha=sha_of(71)), secret=WEBHOOK)
    payload = four.payload_of(delivery)
    relay.tokens = [four.token()]
    for status, conclusion in (("in_progress", None), ("completed", "failure")):
        assert four.report(payload, status, conclusion)[0] == 200
    four.wait_rows(delivery, ("completed", "failure"))
    wait_for("the HUD to be sent a row after it refused one", lambda: relay.state()["hud"])
    # Others' mistakes: a signature and tokens that do not hold.
    assert relay.send_webhook(pull_request(number=72), secret=WRONG)[0] == 401
    for token in (relay.tokens[0][:-6] + "AAAAAA", four.token(aud="somebody"), four.token(iss="https://other.example"),
                  f"{MARK}noToken"):
        relay.tokens.append(token)
        status, _ = ask("POST", relay.url("ingest", "/github/callback"), json.dumps(payload).encode(),
                        {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})
        assert status in (401, 503)
    # Ours: a list that is unreachable or wrong, a key that GitHub does not know, a password that Redis refuses.
    lists.answer(500, "")
    lists.answer(200, "L1: [")
    lists.answer(200, ALLOWLIST.replace(L1, L1 + "-new"))
    another = subprocess.run(["openssl", "genrsa", "2048"], check=True, capture_output=True, text=True).stdout
    assert ask("POST", relay.url("github", "/_sim/app_keys"), json.dumps({"keys": [another]}).encode())[0] == 200
    relay.start("reporter", "stranger", REDIS_LOGIN=f"default:{WRONG}", CRCR_HUD_LISTEN="127.0.0.1:0").wait_text("WRONGPASS")
    numbers = itertools.count(73)

    def key_refused():  # when a token is needed for the new repository, once the router knows of it
        assert relay.deliver(pull_request(number=next(numbers)), secret=WEBHOOK)[0] == 202
        return [one for one in relay.requests() if "installation" in one["path"] and one["status"] == 401]
    wait_for("GitHub to refuse the App's key", key_refused)
    elsewhere = relay.url("github", "/api")
    relay.extra["CRCR_GITHUB_API_URL"] = elsewhere
    for arguments in (["probe", L4], ["trace", delivery], ["tail", "all"], ["dlq", "list"], ["redeliver"]):
        done = relay.ctl(*arguments, check=False)
        said.append((f"crcrctl {arguments[0]}", done.stdout + done.stderr))
    for name in DAEMONS:
        for changes in ({}, {"HUD_API_URL": f"https://u:{WRONG}@hud.example?{QUERIES['Hud']}", "ALLOWLIST_URL": f"ftp://x/?{QUERIES['List']}",
                             "CRCR_GITHUB_API_URL": f"http://api.example/?{QUERIES['Api']}",
                             "REDIS_ENDPOINT": f"redis://:{WRONG}@redis:6379",
                             "CRCR_OIDC_ISSUERS": f"https://a=http://b.example/?{QUERIES['Jwks']},{WRONG}",
                             "GITHUB_APP_PRIVATE_KEY_FILE": f"{MARK}keyAsPath", "CRCR_CALLBACK_TOKEN_KEY": f"k1:{MARK}"}):
            done = subprocess.run([BIN / f"crcr-{name}", "--check-config"], capture_output=True, text=True, timeout=60,
                                  env={**relay.environment(), **changes})
            assert done.returncode == (2 if changes else 0), done.stderr
            said.append((f"{name} --check-config", done.stdout + done.stderr))


def found_in(relay, what, text, also=()):
    """The markers that the text holds, as (what, marker)."""
    pem = [line for line in relay.key.read_text().splitlines() if len(line) == 64]
    secret = [token[-40:] for token in relay.tokens] + pem + list(also)
    return [(what, one) for one in re.findall(MARK + r"\w+", text) + [one for one in secret if one in text]]


def test_what_programs_say_holds_no_secret(round_played):
    relay, said = round_played
    logs = [(name, relay.parts[name].text()) for name in relay.parts if name != "github"]
    for event in ("hud_unavailable", "hud_back", "allowlist_unreachable", "allowlist_refused", "allowlist_loaded",
                  "jwks_fetch_failed", "WRONGPASS"):
        assert any(event in text for _, text in logs), f"{event}: the round did not get that far"
    found = [one for what, text in logs + said for one in found_in(relay, what, text, ["ghs_"])]
    found += [(what, one) for what, text in logs for one in JWT.findall(text)]
    assert not found


def test_what_is_served_holds_no_secret(round_played):
    relay, _ = round_played
    urls = [relay.url(f"admin_{name}", path) for name in DAEMONS for path in ("/metrics", "/healthz", "/readyz")]
    delivery = relay.state()["dispatches"][0]["client_payload"]["delivery_id"]
    urls += [relay.url("hud", path) for path in ("/", "/api/crcr/summary", "/api/crcr/prs/71", f"/api/crcr/repos/{L4}",
                                                 f"/api/crcr/deliveries/{delivery}")]
    for url in urls:
        status, body = ask("GET", url)
        assert status in (200, 503) and len(body) > 1
        text = body.decode()
        assert not found_in(relay, url, text, ["ghs_"]) and not JWT.findall(text)


def test_what_is_stored_holds_no_secret(round_played):
    relay, _ = round_played
    topics = [name for name in AdminClient({"bootstrap.servers": relay.kafka}).list_topics(timeout=30).topics
              if name.startswith(relay.prefix)]
    records = [(name, record) for name in topics for record in read_topic(relay.kafka, name)]
    assert {"events", "callbacks", "dispatches", "results", "allowlist", "dlq"} <= \
        {name.removeprefix(relay.prefix) for name, _ in records}
    found = [one for name, record in records
             for one in found_in(relay, name, f"{record.key} {record.headers} {record.value}", ["ghs_"])]
    client = client_of(relay.redis, relay.prefix)
    client.auth(REDIS, "default")
    reads = {"string": client.get, "hash": client.hgetall, "set": client.smembers, "list": lambda key: client.lrange(key, 0, -1),
             "zset": lambda key: client.zrange(key, 0, -1), "stream": client.xrange}
    keys = client.keys("crcr:*")
    found += [one for key in keys for one in found_in(relay, key, f"{key} {reads[client.type(key)](key)}", ["ghs_"])]
    assert keys and not found
    assert "allowlist.yml" in client.hget("crcr:allowlist", "source")


def test_what_the_kernel_shows_holds_no_secret_and_there_is_no_core(round_played):
    relay, _ = round_played
    for name in DAEMONS:
        proc = pathlib.Path("/proc") / str(relay.parts[name].pid)
        for file in [proc / "cmdline", *proc.glob("task/*/comm")]:
            assert not found_in(relay, str(file), file.read_text()), file
        assert re.search(r"^Max core file size +0 +0 ", (proc / "limits").read_text(), re.MULTILINE)


def test_the_queries_went_out_all_the_same(round_played):
    """They are hidden, not dropped: whoever asked for them gets them."""
    relay, _ = round_played
    sent = {request["path"]: request["query"] for request in relay.requests()
            if request["path"] == "/.well-known/jwks"}
    assert sent == {"/.well-known/jwks": {"key": QUERIES["Jwks"]}}
