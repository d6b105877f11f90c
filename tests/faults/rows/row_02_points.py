"""kill -9 exactly at the points where an effect and its record lie apart (FAULT_POINT in the code)."""
import pathlib
import re
import time

from lib.processes import ROOT

ROW, NAME = "2", "kill -9 at named points"

# Point → the daemon that passes it, and at which passing it dies.
POINTS = {
    "ingest.before_produce": ("ingest", 15),
    "ingest.acknowledged": ("ingest", 15),
    "sender.posted": ("dispatcher", 40),
    "sender.claim_done": ("dispatcher", 40),
    "router.stored": ("dispatcher", 40),
    "delay.republished": ("dispatcher", 2),
    "fold.folded": ("reporter", 40),
    "fold.published": ("reporter", 40),
    "reconcile.written": ("reporter", 5),
    "forward.posted": ("reporter", 40),
    "rebuild.folded": ("reporter", 2),
    "rebuild.read": ("reporter", 1),
}
SHORT = ("ingest.before_produce", "ingest.acknowledged", "sender.posted", "delay.republished", "fold.folded",
         "fold.published", "rebuild.folded")


def points_in_the_code():
    """Every FAULT_POINT that there is: a new one without a case here is a hole."""
    found = set()
    for folder in ("common", "ingest", "dispatcher", "reporter"):
        for file in (ROOT / folder).rglob("*.c"):
            found |= set(re.findall(r'FAULT_POINT\("([^"]+)"\)', pathlib.Path(file).read_text()))
    return found


def die_at(case, point, daemon, passing, short):
    """Ends the daemon in order, starts one that will die at the point, waits for that, starts it anew."""
    assert case.relay.parts[daemon].stop() == 0
    if point.startswith("rebuild."):
        case.redis.client().flushall()
    case.relay.start(daemon, FAULT_POINT=f"{point}:{passing}")
    victim = case.relay.parts[daemon]
    load = case.load(rate=200, count=150)
    if point.startswith("delay."):
        case.relay.script({"method": "POST", "path": "*/dispatches", "status": 429, "count": 30,
                           "headers": {"Retry-After": "12"}})
    case.wait(f"{daemon} to die at {point}", lambda: not victim.running(), 90)
    assert victim.popen.returncode == -9, f"{point}: {victim.tail()}"
    died = time.monotonic()
    if short and daemon == "dispatcher":
        case.expire_claims()
    case.relay.start(daemon)
    case.relay.wait_ready(daemon)
    case.say(f"row 2: died at {point}, ready again after {time.monotonic() - died:.1f} s")
    load.wait()
    return time.monotonic() - died


def run(world, short=False):
    missing = points_in_the_code() - set(POINTS)
    case = world.case("row-02", hud=True, senders_killed=True).start()
    slowest = 0.0
    points = SHORT if short else tuple(POINTS)
    for point in points:
        slowest = max(slowest, die_at(case, point, *POINTS[point], short))
    result = case.result(ROW, NAME, f"{len(points)} points", recovery_s=slowest, settle_s=300)
    if missing:
        result.problems.append(f"points without a case: {', '.join(sorted(missing))}")
    return result
