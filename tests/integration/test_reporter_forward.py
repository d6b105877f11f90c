"""Forwarding to a HUD that is unavailable and then refuses one record; and callbacks of which nobody knows the dispatch yet.
On real Kafka and Redis.

CRCR_TEST_HUD_AWAY_S says how long the HUD is unavailable: 15 s by default, 600 for the long form."""
import http.server
import json
import os
import threading
import time

import pytest

from lib.kafka import read_topic, write
from lib.processes import wait_for
from test_reporter import Job, Reporter, wait_idle

AWAY_S = float(os.environ.get("CRCR_TEST_HUD_AWAY_S", "15"))


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Reporter(tmp_path_factory.mktemp("forward"), kafka_node.brokers)
    try:
        yield one
    finally:
        one.close()


class Hud:
    """Keeps the rows that it took, in order; refuses those of one delivery with 400. Can be opened later."""

    def __init__(self):
        self.taken, self.refused, self.keys, self.refuse = [], [], set(), None
        self.throttle_s, self.times = 0, []  # one answer with Retry-After; when requests came
        self.throttle_status = 429
        self.before_answer = lambda payload: None
        hud = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hud.times.append(time.monotonic())
                hud.before_answer(row["untrusted"]["callback_payload"])
                if hud.throttle_s:
                    self.send_response(hud.throttle_status)
                    self.send_header("Retry-After", str(hud.throttle_s))
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    hud.throttle_s = 0
                    return
                payload = row["untrusted"]["callback_payload"]
                bad = payload["delivery_id"] == hud.refuse
                (hud.refused if bad else hud.taken).append((payload["delivery_id"], payload["workflow"]["status"]))
                hud.keys.add(self.headers["x-hud-internal-bot"])
                self.send_response(400 if bad else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        # Bound, and not listening: the port is taken, and whoever connects is refused.
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.server.server_bind()
        self.url, self.serving = f"http://127.0.0.1:{self.server.server_port}", False

    def open(self):
        self.serving = True
        self.server.server_activate()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        if self.serving:
            self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def hud():
    one = Hud()
    yield one
    one.close()


def lag(reporter):
    """What the group of the role `forward` has not done, as operators see it."""
    return sum(row.get("lag") or 0 for row in reporter.relay.lag("crcr-forward"))


def restart(reporter, hud):
    assert reporter.relay.parts["reporter"].stop() == 0
    reporter.start(HUD_API_URL=hud.url)


def parked(reporter, job):
    return [record for record in reporter.topic("dlq") if f"/{job.delivery}/" in (record.key or "")]


def test_while_the_hud_is_unavailable_lag_shows_it_and_then_all_but_the_refused_one_arrive_in_order(reporter, hud):
    wait_for("nothing to be left over", lambda: lag(reporter) == 0)
    restart(reporter, hud)
    gone = time.monotonic()
    jobs = [Job(reporter, "org/two", "L2").call("in_progress", 1000) for _ in range(40)]
    for job in jobs[:20]:
        job.call("completed", 2000, conclusion="success")
    hud.refuse = jobs[7].delivery
    wait_for("the lag to show what waits", lambda: lag(reporter) == 60)
    reporter.relay.parts["reporter"].wait_text("hud_unavailable")
    restart(reporter, hud)  # meanwhile
    for job in jobs[20:]:
        job.call("completed", 2000, conclusion="success")
    wait_for("the lag to show all of it", lambda: lag(reporter) == 80)
    wait_for("the HUD's time to be over", lambda: time.monotonic() - gone >= AWAY_S, AWAY_S + 5)
    wait_for("the lag to show all of it still", lambda: lag(reporter) == 80)  # nothing was given up
    assert not parked(reporter, jobs[7])
    hud.open()
    wait_for("all to arrive", lambda: lag(reporter) == 0, 90)
    for job in jobs:
        reported = [status for delivery, status in hud.taken if delivery == job.delivery]
        assert reported == ([] if job is jobs[7] else ["in_progress", "completed"]), job.delivery
    assert hud.keys == {"hud-key"}
    rows = parked(reporter, jobs[7])
    assert [(row.headers["class"], row.headers["error"]) for row in rows] == [("refused", "the HUD answered 400")] * 2
    assert [status for _, status in hud.refused] == ["in_progress", "completed"]
    assert [json.loads(row.value)["status"] for row in rows] == ["in_progress", "completed"]
    for status in (429, 503):
        hud.throttle_s, hud.throttle_status = 4, status
        late = Job(reporter, "org/two", "L2").call("in_progress", 1000)
        wait_for("it to arrive", lambda late=late: [one for one in hud.taken if one[0] == late.delivery])
        throttled, *later = hud.times[-2:]
        assert later and later[0] - throttled >= 4, f"Retry-After of a {status} is obeyed"


def test_a_long_retry_after_is_no_stall_also_when_another_row_is_taken_meanwhile(reporter, hud):
    """The watchdog counts from the end of the wait: 90 s without progress would end the reporter."""
    wait_for("nothing to be left over", lambda: lag(reporter) == 0)
    both, throttled, done = threading.Barrier(2, timeout=20), threading.Event(), threading.Event()
    throttle_s, asked = 12, []

    def before_answer(payload):
        asked.append(payload["delivery_id"])
        if len(asked) <= 2:
            both.wait()
        if len(asked) > 2:  # the second time; unanswered, so that nothing moves
            done.wait(20)
        elif payload["delivery_id"] == jobs[0].delivery:
            hud.throttle_s = throttle_s
            throttled.set()
        else:
            throttled.wait(20)
            wait_for("the other's answer", lambda: not hud.throttle_s)
    hud.before_answer = before_answer
    hud.open()
    restart(reporter, hud)
    jobs = [Job(reporter, "org/two", "L2") for _ in range(2)]
    for job in jobs:
        job.call("in_progress", 1000)
    wait_for("the other row to be taken", lambda: [one[0] for one in hud.taken] == [jobs[1].delivery], 40)
    try:
        wait_for("the first to come again", lambda: len(asked) == 3, throttle_s + 15)
        assert hud.times[-1] - hud.times[0] >= throttle_s and lag(reporter) > 0
        stalled = reporter.relay.metric("reporter", "crcr_role_stalled_seconds", role="forward")
        assert stalled < throttle_s / 2
    finally:
        done.set()
    wait_for("it to arrive", lambda: lag(reporter) == 0)


def test_a_pending_callback_that_nobody_dispatched_is_delayed_and_then_parked(reporter):
    job = Job(reporter, "org/two", "L2").call("completed", 3000, provenance="pending", conclusion="success")
    relay = reporter.relay
    [delayed] = wait_for("it to be put off", lambda: [
        one for one in reporter.topic("rdelay.1m") if one.headers["delivery"] == job.delivery], 40)
    assert delayed.headers["to_topic"] == relay.topic("callbacks") and "dispatch" in delayed.headers["error"]
    assert int(delayed.headers["not_before_ms"]) > time.time() * 1000
    wait_for("it to be counted as delayed", lambda: relay.metric("reporter", "crcr_delayed_total", why="dispatch_unknown") == 1)
    assert relay.metric("reporter", "crcr_dlq_total", role="fold") == 0, "what is delayed is not in the DLQ"
    # What the role `delay` does a minute later.
    write(relay.kafka, relay.topic("callbacks"), delayed.key, delayed.value, delayed.headers)
    [row] = wait_for("it to be parked", lambda: [
        one for one in reporter.topic("dlq") if one.headers.get("delivery") == job.delivery], 40)
    assert row.headers["class"] == "refused" and "no dispatch known" in row.headers["error"]
    assert reporter.result(job.delivery) is None
    assert not [one for one in read_topic(relay.kafka, relay.topic("rdelay.1m"))
                if one.headers["delivery"] == job.delivery][1:]


def test_pending_callbacks_among_others_do_not_pass_for_redis_unavailable(reporter):
    jobs = [Job(reporter, "org/two", "L2").outcome("dispatched") for _ in range(40)]
    wait_idle(reporter)
    assert reporter.relay.parts["reporter"].stop() == 0  # so that all are read at once
    for number, job in enumerate(jobs):
        job.call("completed", 2000, provenance="pending" if number % 2 else "token", conclusion="success")
    reporter.start()
    wait_idle(reporter)
    ended = {json.loads(record.value)["delivery_id"] for record in reporter.topic("results")}
    assert ended >= {job.delivery for job in jobs}
    # On a busy machine Redis may answer later than it is waited for: nothing of a pending callback's doing.
    away = [line for line in reporter.relay.parts["reporter"].text().splitlines() if '"redis_unavailable"' in line]
    assert not [line for line in away if "temporarily unavailable" not in line and "timed out" not in line]
