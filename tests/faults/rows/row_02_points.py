"""kill -9 exactly at the points where an effect and its record lie apart (FAULT_POINT in the code)."""
import math
import pathlib
import re
import time

from lib.processes import ROOT
from rows.row_01_kill import at_no_kill

ROW, NAME = "2", "kill -9 at named points"

# Point → the daemon that passes it, and at which passing it dies. Those of a rebuild, for which Redis is emptied, come long after the
# last dispatcher was killed: what was in its hands would be read anew, and sent once more, marked.
POINTS = {
    "ingest.before_produce": ("ingest", 15),
    "ingest.acknowledged": ("ingest", 15),
    "sender.posted": ("dispatcher", 40),
    "sender.claim_done": ("dispatcher", 40),
    "router.stored": ("dispatcher", 40),
    "delay.republished": ("dispatcher", 2),
    "allowlist.followed": ("dispatcher", 5),
    "fold.folded": ("reporter", 40),
    "fold.published": ("reporter", 40),
    "reconcile.written": ("reporter", 5),
    "forward.posted": ("reporter", 40),
    "rebuild.folded": ("reporter", 2),
    "rebuild.read": ("reporter", 1),
}
UNTOLD_MS, LATE_MS = 10_000, 4000  # as in row 1 beside others: the backlog of a load is before or behind such a kill
SHORT = ("ingest.before_produce", "ingest.acknowledged", "sender.posted", "delay.republished", "fold.folded",
         "fold.published", "rebuild.folded")


def points_in_the_code():
    """Every FAULT_POINT that there is: a new one without a case here is a hole."""
    found = set()
    for folder in ("common", "ingest", "dispatcher", "reporter"):
        for file in (ROOT / folder).rglob("*.c"):
            found |= set(re.findall(r'FAULT_POINT\("([^"]+)"\)', pathlib.Path(file).read_text()))
    return found


def die_at(case, point, daemon, passing, short, killed_ms):
    """Ends the daemon in order, starts one that will die at the point, waits for that, starts it anew."""
    assert case.relay.parts[daemon].stop() == 0
    if point.startswith("rebuild."):
        case.without_redis.append((int(time.time() * 1000), math.inf))
        case.redis.client().flushall()
    case.relay.start(daemon, FAULT_POINT=f"{point}:{passing}")
    victim = case.relay.parts[daemon]
    load = case.load(rate=200, count=75 if short else 150)
    if point.startswith("delay."):
        case.relay.script({"method": "POST", "path": "*/dispatches", "status": 429, "count": 30,
                           "headers": {"Retry-After": "12"}})
    case.wait(f"{daemon} to die at {point}", lambda: not victim.running(), 90)
    assert victim.popen.returncode == -9, f"{point}: {victim.tail()}"
    died = time.monotonic()
    if daemon == "dispatcher":
        killed_ms.append(int(time.time() * 1000))
    if short and daemon == "dispatcher":
        case.expire_claims()
    case.relay.start(daemon)
    case.relay.wait_ready(daemon)
    if point.startswith("rebuild."):  # whose reporter is ready when the view is consistent
        case.without_redis[-1] = case.without_redis[-1][0], int(time.time() * 1000)
    case.say(f"row 2: died at {point}, ready again after {time.monotonic() - died:.1f} s")
    load.wait()
    return time.monotonic() - died


def run(world, short=False):
    missing = points_in_the_code() - set(POINTS)
    case = world.case("row-02", hud=True, senders_killed=True).start()
    slowest, killed_ms = 0.0, []
    points = SHORT if short else tuple(POINTS)
    for point in points:
        slowest = max(slowest, die_at(case, point, *POINTS[point], short, killed_ms))
    result = case.result(ROW, NAME, f"{len(points)} points", recovery_s=slowest, done_s=300)
    if wrong := at_no_kill(case, killed_ms, UNTOLD_MS, LATE_MS):
        result.problems.append(f"{len(wrong)} × sent a second time, not under way at a kill, such as {wrong[0]}")
    result.note = f"{len(case.checker.late)} marked calls behind a newer one after Redis was emptied"
    if missing:
        result.problems.append(f"points without a case: {', '.join(sorted(missing))}")
    return result
