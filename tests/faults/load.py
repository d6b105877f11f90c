"""GitHub as the sender of webhooks: an open model (each is sent when it is due, whatever became of the ones
before), in pulses, and a history of what each was answered."""
import hashlib
import hmac
import http.client
import json
import queue
import random
import select
import threading
import time
import uuid

from lib.relay import SECRET

SENDERS = 24
PULL_REQUESTS = 300
KEPT_S = 20  # ingest keeps an idle connection for 30, and may close it while it is being used again
TIMEOUT_S = 12  # GitHub hangs up after 10


def body(number, counter, pad="", of=""):
    """A pull_request webhook with the fields that downstream workflows read; a commit for each number, counter and of."""
    sha = "c" + hashlib.sha1(f"{of}{number}.{counter}".encode()).hexdigest()[:39]  # 0000…: the simulator has no such commit
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    repo = {"id": 1, "full_name": "pytorch/pytorch", "default_branch": "main",
            "html_url": "https://github.com/pytorch/pytorch"}
    return {"action": "synchronize", "number": number, "after": sha,
            "pull_request": {
                "number": number, "title": f"event {counter}", "body": pad,
                "html_url": f"https://github.com/pytorch/pytorch/pull/{number}",
                "updated_at": stamp, "draft": False, "merged": False, "labels": [],
                "user": {"login": "someone", "id": 7},
                "head": {"sha": sha, "ref": f"branch-{number}", "repo": repo},
                "base": {"sha": "b" * 40, "ref": "main", "repo": repo}},
            "repository": repo, "sender": {"login": "someone", "id": 7}}


def closed_meanwhile(connection):
    """Whether the server has closed it since its last answer, as it may when nothing came for a time (RFC 9112, section 9.3)."""
    poll = select.poll()
    if connection.sock:
        poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))


class Load:
    """`rate` webhooks a second for `on` seconds of each `on` + `off`, until `count` are sent or stop() is
    called. Every attempt is a line of `history`: kind sent, delivery, pr, counter, sha, at_ms, status (0: no
    answer), ms, why (there was no answer). pull_requests: of so many; 0: each of one of its own."""

    def __init__(self, relay, history, seed, rate=200, on=1.0, off=0.0, count=None, pull_requests=PULL_REQUESTS,
                 secret=lambda: SECRET, delivery=None, senders=SENDERS, parts=("ingest",), timeout_s=TIMEOUT_S, pad=""):
        self.relay, self.history = relay, history
        self.random = random.Random(seed)
        self.rate, self.on, self.off, self.count = rate, on, off, count
        self.seed, self.timeout_s, self.pad = seed, timeout_s, pad
        self.secret, self.delivery = secret, delivery
        self.pull_requests = pull_requests
        self.parts = parts  # which ingests there are: the next is tried where one refuses the connection
        self.turned_away, self.lost = 0, []  # lost: why, on connections that were taken
        self.counter = 0
        self.answers, self.not_taken = {}, []
        self.slowest_ms, self.sent_ms, self.took_ms = 0, {}, {}  # the latter two by delivery
        self.last_ok = 0.0
        self._due = queue.Queue()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._send_all, daemon=True) for _ in range(senders)]
        self._clock = threading.Thread(target=self._tick, daemon=True)

    def start(self):
        for thread in self._threads + [self._clock]:
            thread.start()
        return self

    def _tick(self):
        began = time.monotonic()
        due = 0.0
        while not self._stop.is_set() and (self.count is None or self.counter < self.count):
            self._stop.wait(max(0.0, began + due - time.monotonic()))
            self.counter += 1
            self._due.put((1, 1, self.delivery) if self.delivery else
                          (self.random.randrange(1, self.pull_requests + 1) if self.pull_requests else self.counter, self.counter,
                           str(uuid.UUID(int=self.random.getrandbits(128), version=4))))
            due += 1.0 / self.rate
            if self.off and due % (self.on + self.off) >= self.on:
                due += self.off
        for _ in self._threads:
            self._due.put(None)

    def _send_all(self):
        connection = None
        while (item := self._due.get()) is not None:
            number, counter, delivery = item
            made = body(number, counter, self.pad, of=f"{self.seed} ")
            raw = json.dumps(made).encode()
            self.sent_ms[delivery] = int(time.time() * 1000)
            connection, status, took, error = self._send_to_one(connection, counter, raw, delivery)
            why = repr(error) if error else ""
            self.history.write({"kind": "sent", "delivery": delivery, "pr": number, "counter": counter,
                                "sha": made["after"], "at_ms": int(time.time() * 1000), "status": status, "ms": took, "why": why})
            with self._lock:
                self.answers[status] = self.answers.get(status, 0) + 1
                self.slowest_ms, self.took_ms[delivery] = max(self.slowest_ms, took), took
                if status == 202:
                    self.last_ok = time.monotonic()
                else:
                    self.not_taken.append((delivery, raw, status))
                if error and not isinstance(error, ConnectionRefusedError):
                    self.lost.append(why)

    def _send_to_one(self, connection, first, raw, delivery):
        """As a load balancer does: each in turn, and the next where one refuses the connection. What is under way on one that was
        taken may have arrived, and goes nowhere else. Of several each gets a new connection: one that was kept may be closed
        at the moment in which it is used again, and none is to blame for that."""
        for attempt in range(len(self.parts)):
            part = self.parts[(first + attempt) % len(self.parts)]
            connection, status, took, error = self._send(connection, raw, delivery, part)
            if len(self.parts) == 1 or not isinstance(error, ConnectionRefusedError):
                break
            with self._lock:
                self.turned_away += 1
        if connection and len(self.parts) > 1:
            connection.close()
            connection = None
        return connection, status, took, error

    def _send(self, connection, raw, delivery, part):
        signature = hmac.new(self.secret().encode(), raw, hashlib.sha256).hexdigest()
        began = time.monotonic()
        try:
            if connection is None or closed_meanwhile(connection) or began - connection.used > KEPT_S:
                connection = http.client.HTTPConnection(self.relay.host(part), self.relay.ports[part],
                                                        timeout=self.timeout_s)
            connection.request("POST", "/github/webhook", raw, {
                "Content-Type": "application/json", "X-GitHub-Event": "pull_request",
                "X-GitHub-Delivery": delivery, "X-Hub-Signature-256": f"sha256={signature}",
                "User-Agent": "GitHub-Hookshot/044aadd"})
            answer = connection.getresponse()
            answer.read()
            connection.used = time.monotonic()
            return connection, answer.status, int((time.monotonic() - began) * 1000), None
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return None, 0, int((time.monotonic() - began) * 1000), error

    def wait(self, timeout=600):
        """Until everything that was due has been answered or given up."""
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.1, deadline - time.monotonic()))
            assert not thread.is_alive(), "webhooks are still under way"
        return self

    def stop(self):
        self._stop.set()
        return self.wait()
