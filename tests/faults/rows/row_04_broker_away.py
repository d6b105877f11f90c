"""The broker does not answer for a while. What ingest could not take, redeliver fetches from GitHub."""
import json
import time

from lib.kafka import Kafka
from lib.relay import http

ROW, NAME = "4", "broker away"
ANSWER_MAX_MS = 8700  # ingest's own timer answers 8 s after the last byte
RSS_MAX_MB = 128


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


def run(world, short=False):
    lengths = (6,) if short else (5, 300) if world.long else (5, 60)
    kafka = Kafka(world.folder / "row-04-kafka").start()
    case = world.case("row-04", kafka=kafka).start()
    load = case.load(rate=200, on=0.25, off=4.75, senders=160)
    recovery = 0.0
    try:
        case.wait("the first dispatches", lambda: case.github_file.exists())
        for seconds in lengths:
            kafka.freeze()
            time.sleep(seconds)  # the length of the fault
            kafka.thaw()
            thawed, before = time.monotonic(), load.answers.get(202, 0)
            case.wait("webhooks to be taken again", lambda: load.answers.get(202, 0) > before, 60)
            recovery = max(recovery, time.monotonic() - thawed)
            case.say(f"row 4: {seconds} s over, {load.answers}")
        load.stop()
        remember_at_github(case, load.not_taken)
        done = case.relay.ctl("redeliver")
        case.say(f"row 4: redeliver: {(done.stdout + done.stderr).strip().splitlines()[-1]}")
        ingest_mb = rss_mb(case.relay.parts["ingest"])
        result = case.result(ROW, NAME, " and ".join(f"{s} s" for s in lengths), recovery_s=recovery,
                             note=f"{len(load.not_taken)} not taken, all brought back; ingest {ingest_mb:.0f} MB")
    finally:
        case.close()
        kafka.stop()
    if len(case.checker.stored) != load.counter:
        result.problems.append(f"{load.counter - len(case.checker.stored)} webhooks did not come back")
    if load.slowest_ms > ANSWER_MAX_MS:
        result.problems.append(f"an answer took {load.slowest_ms} ms")
    if not load.not_taken:
        result.problems.append("the fault was none: every webhook was taken")
    if ingest_mb > RSS_MAX_MB:
        result.problems.append(f"ingest took {ingest_mb:.0f} MB")
    return result
