"""The broker does not answer for a while. What ingest could not take, redeliver fetches from GitHub."""
import collections
import json
import time

from load import TIMEOUT_S
from lib.kafka import Kafka
from lib.relay import http

ROW, NAME = "4", "broker unavailable"
ANSWER_MAX_MS = 8700  # ingest's own timer answers 8 s after the last byte
BUSY_MAX_MS, BUSY_S = 20_000, 30  # as 160 threads see it where others work, too: the short form
RSS_MAX_MB = 128      # of each daemon, at its highest
DAEMONS = ("ingest", "dispatcher", "reporter")
# Large webhooks meanwhile, more than may be in hand together: 60 MB.
LARGE, AT_ONCE, IN_HAND_MAX = 1 << 20, 60, "16MiB"
RATE = "100/s"        # of redeliver's requests to GitHub: one for each webhook that was not taken


def rss_mb(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))


def remember_at_github(case, not_taken):
    """GitHub's own list of what it could not deliver."""
    for delivery, raw, status in not_taken:
        said, body = http("POST", case.relay.url("github", "/_sim/webhook"), json.dumps({
            "event": "pull_request", "guid": delivery, "payload": json.loads(raw),
            "status_code": status or 504}).encode(), {"Content-Type": "application/json"})
        assert said == 201, body


def redelivered(case):
    """How many webhooks a run of redeliver brought back."""
    done = case.relay.ctl("redeliver", "--rate", RATE, timeout=600)
    case.say(f"row 4: redeliver: {done.stdout.strip().splitlines()[-1]}")
    return sum(line.startswith("published ") for line in done.stdout.splitlines())


class Recovery:
    """What was not taken, brought back."""

    def __init__(self, case):
        self.case, self.shown = case, collections.Counter()

    def run(self):
        """Of what GitHub could not deliver since the last time."""
        lost = []
        for number, load in enumerate(self.case.loads):
            lost += load.not_taken[self.shown[number]:]
            self.shown[number] = len(load.not_taken)
        remember_at_github(self.case, lost)
        return redelivered(self.case)


def run(world, short=False):
    lengths = (12,) if short else (5, 300) if world.long else (5, 60)
    kafka = Kafka(world.folder / "row-04-kafka").start()
    case = world.case("row-04", kafka=kafka, environment={"CRCR_MAX_INFLIGHT_BYTES": IN_HAND_MAX},
                      supervised=True).start()
    load = case.load(rate=200, on=0.25, off=4.75, senders=160, timeout_s=BUSY_S if short else TIMEOUT_S)
    brought, under_load, recovery = Recovery(case), 0, 0.0
    try:
        case.wait("the first dispatches", case.dispatched)
        for seconds in lengths:
            kafka.freeze()
            if not short:
                case.load(rate=AT_ONCE, count=AT_ONCE, senders=AT_ONCE, pad="x" * LARGE)
            time.sleep(seconds)  # the length of the fault
            kafka.thaw()
            thawed, before = time.monotonic(), load.answers.get(202, 0)
            case.wait("webhooks to be taken again", lambda: load.answers.get(202, 0) > before, 60)
            recovery = max(recovery, time.monotonic() - thawed)
            case.wait("a whole pulse to be taken", lambda: load.answers.get(202, 0) > before + 50, 60)
            case.say(f"row 4: {seconds} s over, {load.answers}")
            under_load += brought.run()
        for one in case.loads:
            one.stop()
        back = under_load + brought.run()
        twice = redelivered(case)
        case.wait_done(400)
        too_much = case.relay.metric("ingest", "crcr_ingest_requests_total", reason="overloaded")
        most_mb = {part: rss_mb(case.relay.parts[part]) for part in DAEMONS}
        not_taken = sum(len(one.not_taken) for one in case.loads)
        slowest_ms = max(one.slowest_ms for one in case.loads)
        result = case.result(ROW, NAME, " and ".join(f"{s} s" for s in lengths), recovery_s=recovery,
                             note=f"{not_taken} answered 503, {too_much:.0f} of them at once, being too much; the slowest "
                                  f"after {slowest_ms / 1000:.1f} s;"
                                  f" {back} brought back by redeliver, {under_load} of them under load;"
                                  f" at most {', '.join(f'{part} {mb:.0f} MB' for part, mb in most_mb.items())}"
                                  + (f"; {case.revived} daemons left partitions unread and were started again"
                                     if case.revived else ""))
    finally:
        case.close()
        kafka.stop()
    sent = sum(one.counter for one in case.loads)
    if len(case.checker.stored) != sent:
        result.problems.append(f"{sent - len(case.checker.stored)} webhooks did not come back")
    if not short and not too_much:
        result.problems.append(f"all of {AT_ONCE} MB was taken in hand")
    if slowest_ms > (BUSY_MAX_MS if short else ANSWER_MAX_MS):
        result.problems.append(f"an answer took {slowest_ms} ms")
    if not not_taken:
        result.problems.append("the fault was none: every webhook was taken")
    if not_taken and not under_load:
        result.problems.append("redeliver brought nothing back under load")
    for one in case.loads:
        if set(one.answers) - {202, 503}:
            result.problems.append(f"webhooks were answered {one.answers}")
    if twice:
        result.problems.append(f"a second redeliver published {twice} again")
    for part, mb in most_mb.items():
        if mb > RSS_MAX_MB:
            result.problems.append(f"{part} took {mb:.0f} MB")
    return result
