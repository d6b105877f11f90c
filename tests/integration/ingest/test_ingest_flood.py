"""A stranger fills ingest with bodies that end in no valid webhook; honest webhooks are taken beside it."""
import contextlib
import json
import re
import socket
import threading
import time

import pytest

from ingest_env import Ingest, payload

CONNECTIONS = 11
BODY = (256 << 20) // CONNECTIONS  # together what CRCR_MAX_INFLIGHT_BYTES allows, but for 13 KB
HEAD = (b"POST /github/webhook HTTP/1.1\r\nHost: x\r\nX-GitHub-Event: push\r\nX-Hub-Signature-256: sha256=" + b"0" * 64 +
        b"\r\nContent-Length: %d\r\n\r\n" % BODY)
HONEST_BYTES = 24_000
# The issue's bound, held by the sanitizers' build as well, for a minute of flood. In three seconds, beside other tests, p99
# is the third slowest: there it only says that the door is open.
P99_MS, OPEN_MS = 200, 2000


@pytest.fixture(scope="module")
def one(kafka_node, redis_node, issuer, tmp_path_factory):
    made = Ingest(tmp_path_factory.mktemp("flood"), kafka_node.brokers, redis_node.endpoint, issuer).start().wait_ready()
    yield made
    made.stop()


class Stranger(threading.Thread):
    """Keeps one body from its end for as long as it may; then comes again."""

    def __init__(self, port, sent):
        super().__init__(daemon=True)
        self.port, self.sent, self.stop, self.whole, self.answers = port, sent, False, threading.Event(), []

    def run(self):
        while not self.stop:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 20) as self.link:
                self.link.sendall(HEAD)
                for at in range(0, len(self.sent), 1 << 20):
                    self.link.sendall(self.sent[at:at + (1 << 20)])
                self.whole.set()
                self.answers.append(self.link.recv(4096))
            self.whole.set()

    def end(self):
        self.stop = True
        with contextlib.suppress(OSError):
            self.link.shutdown(socket.SHUT_RDWR)
        self.join(20)


def honest(one, seconds, number):
    """Milliseconds of each webhook, one after another."""
    body = json.loads(payload("pull_request/opened.json"))
    body["filler"] = "x" * (HONEST_BYTES - len(json.dumps(body)) - 14)
    raw = json.dumps(body).encode()
    end, took = time.monotonic() + seconds, []
    while time.monotonic() < end:
        began = time.monotonic()
        status, answer, _ = one.webhook(raw, delivery=f"honest-{number}-{len(took)}")
        took.append((time.monotonic() - began) * 1000)
        assert status == 202, (status, answer, len(took))
    return sorted(took)


def flood(one, sent, seconds, p99_ms):
    strangers = [Stranger(one.port, sent) for _ in range(CONNECTIONS)]
    for stranger in strangers:
        stranger.start()
    try:
        for stranger in strangers:
            assert stranger.whole.wait(30)
        took = honest(one, seconds, len(sent))
    finally:
        for stranger in strangers:
            stranger.end()
    print(f"flood: {len(took)} honest webhooks, p50 {took[len(took) // 2]:.0f} ms, p99 {took[int(len(took) * 0.99)]:.0f} ms")
    assert took[int(len(took) * 0.99)] < p99_ms, took[-10:]
    return [answer for stranger in strangers for answer in stranger.answers]


@pytest.mark.parametrize("sent", [b"x", b"x" * (BODY - 1)], ids=["declared", "sent"])
def test_a_flood_of_unsigned_bodies_costs_no_honest_webhook(one, sent):
    flood(one, sent, 3, OPEN_MS)


@pytest.mark.long
@pytest.mark.parametrize("sent", [b"x", b"x" * (BODY - 1)], ids=["declared", "sent"])
def test_a_flood_of_60_s_costs_no_honest_webhook(one, sent):
    answers = flood(one, sent, 60, P99_MS)
    assert any(answer.startswith(b"HTTP/1.1 408") for answer in answers)


def test_a_slow_body_is_logged_and_counted(one):
    with socket.create_connection(("127.0.0.1", one.port), 20) as link:
        link.sendall(HEAD.replace(b"Host: x", b"Host: x\r\nX-GitHub-Delivery: slow") + b"half")
        assert link.recv(4096).startswith(b"HTTP/1.1 408")
    one.process.wait_text('"delivery":"slow","status":408,"reason":"too_slow"')
    assert re.search(r'route="webhook",status="408",reason="too_slow"\} [1-9]', one.get_admin("/metrics")[1])
