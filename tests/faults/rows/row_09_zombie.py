"""SIGSTOP past the session time-out: another owner goes on, then the stopped one wakes as a zombie. One stop is longer than a
claim holds: what was under way in it is called a second time, marked."""
import random
import signal
import time

from rows.row_01_kill import at_no_kill

ROW, NAME = "9", "SIGSTOP past the session time-out, then SIGCONT"
STOP_S = 9         # session.timeout.ms is 6,000
PAST_CLAIM_S = 65  # CLAIM_SENDING_MS is 60,000
CALL_MS = 200      # so that calls are under way
LATE_MS = CALL_MS + 300  # from the stop to the effect of a call that was under way, at most
LOST = "crcr_role_partitions_lost_total"


def marked(case):
    """Second calls, as the dispatchers themselves count them."""
    return sum(case.relay.metric(part, "crcr_dispatches_maybe_duplicate_total") for part in ("dispatcher1", "dispatcher2"))


def at_work(case, victim):
    """How many partitions it lost so far, if it holds some now (it may be back from a stop just now) and, a dispatcher,
    has calls under way."""
    lost = case.relay.metric(victim, LOST)  # before the others: what it loses meanwhile is not this stop's doing
    wanted = ["crcr_role_partitions"] + ["crcr_dispatches_in_flight"] * victim.startswith("dispatcher")
    return [lost] if all(case.relay.metric(victim, name) > 0 for name in wanted) else None


def stop(case, victim, seconds, stopped_ms):
    """The time from its awakening to its readiness."""
    process = case.relay.parts[victim]
    lost, = case.wait(f"{victim} to hold partitions, with calls under way", lambda: at_work(case, victim), 60)
    process.signal(signal.SIGSTOP)
    if victim.startswith("dispatcher"):
        stopped_ms.append(int(time.time() * 1000))
    time.sleep(seconds)  # the length of the fault
    process.signal(signal.SIGCONT)
    woken = time.monotonic()
    case.wait(f"{victim} to see that it lost its partitions", lambda: case.relay.metric(victim, LOST) > lost, 60)
    case.wait(f"{victim} to be ready again", lambda: case.ready(victim), 60)
    return time.monotonic() - woken


def run(world, short=False):
    rounds = 1 if short else 6 if world.long else 2
    chance = random.Random(f"{world.seed}.stops")
    case = world.case("row-09", hud=True).start("ingest", "dispatcher1", "dispatcher2", "reporter1", "reporter2")
    case.relay.script({"method": "POST", "path": "*/dispatches", "delay_ms": CALL_MS})
    load = case.load(rate=200, on=0.5, off=3.0)
    case.wait("the first dispatches", case.dispatched)
    stops = [(victim, STOP_S + chance.uniform(0, 3))
             for victim in ["dispatcher1", "dispatcher2", "reporter1", "reporter2"] * rounds]
    stops.append(("dispatcher1", PAST_CLAIM_S))
    chance.shuffle(stops)
    recovery, stopped_ms = 0.0, []
    for number, (victim, seconds) in enumerate(stops, 1):
        recovery = max(recovery, stop(case, victim, seconds, stopped_ms))
        case.say(f"row 9: {number} of {len(stops)}, {victim} stood still for {seconds:.0f} s")
    load.stop()
    case.wait_done()
    counted = marked(case)
    result = case.result(ROW, NAME, f"{len(stops) - 1} × {STOP_S} s and more, 1 × {PAST_CLAIM_S} s", recovery_s=recovery,
                         done_s=300)
    if wrong := at_no_kill(case, stopped_ms, late_ms=LATE_MS):
        result.problems.append(f"{len(wrong)} × sent a second time, not under way at a stop, such as {wrong[0]}")
    if counted < result.duplicated:
        result.problems.append(f"{result.duplicated} were sent a second time, the metric has {counted:.0f}")
    if not result.unknown:
        result.problems.append("the fault was none: no call was under way for longer than its claim holds")
    return result
