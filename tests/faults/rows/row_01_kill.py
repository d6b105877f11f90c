"""kill -9 of each daemon at random, while webhooks arrive at 200/s."""
import collections
import concurrent.futures
import random
import time

DAEMONS = ("ingest", "dispatcher", "reporter")
ROW, NAME = "1", "kill -9 of each daemon at random"
IN_FLIGHT = 4 * 64  # calls under way at once, at most: four tiers
UNTOLD_MS = 2000    # from a call's effect until Redis knows of it, at most, at this load
LATE_MS = 100       # from the kill to the effect of a call that was under way, at most
# The short form runs beside others, on a busy machine. No other dispatcher's calls are within these: the load has just begun,
# and the next one has no partition before the dead one's session (6 s) has run out.
BUSY_UNTOLD_MS, BUSY_LATE_MS = 10_000, 4000


def work_seen(case, victim):
    """Something that only a daemon at work changes."""
    if victim == "ingest":
        return lambda: case.loads[0].answers.get(202, 0)
    if victim == "dispatcher":
        return case.dispatched
    return lambda: case.relay.metric("reporter", "crcr_facts_total")


def at_no_kill(case, killed_ms, unreported_ms=UNTOLD_MS, late_ms=LATE_MS):
    """Second dispatches of what was not under way when a dispatcher was killed, and kills after which there were more than
    can be under way."""
    wrong, of_kill = [], collections.Counter()
    for key in case.checker.duplicates():
        first_ms = case.checker.dispatches[key][0]["at_ms"]
        kills = [at_ms for at_ms in killed_ms if at_ms - unreported_ms <= first_ms <= at_ms + late_ms]
        of_kill.update(kills[:1])
        wrong += [] if kills else [f"{key} at {first_ms}, the kills were at {killed_ms}"]
    return wrong + [f"{n} after one kill" for n in of_kill.values() if n > IN_FLIGHT]


def kill(case, victim, kills, chance, short, killed_ms):
    """So often, one after the other; the length of each return to work."""
    returns = []
    for number in range(1, kills + 1):
        time.sleep(chance.uniform(0.2, 1.5))  # the moment of the fault, not a wait for something
        assert case.relay.parts[victim].running(), f"{victim} had ended by itself: {case.relay.parts[victim].tail()}"
        case.relay.parts[victim].kill()
        killed = time.monotonic()
        if victim == "dispatcher":
            killed_ms.append(int(time.time() * 1000))
        if short and victim == "dispatcher":
            case.expire_claims()
        case.relay.start(victim)
        case.relay.wait_ready(victim)
        seen = work_seen(case, victim)
        before = seen() if victim != "reporter" else 0
        case.wait(f"{victim} to be at work again", lambda: seen() > before, 60)
        returns.append(time.monotonic() - killed)
        if number % 5 == 0:
            case.say(f"row 1: {victim}, {number} of {kills} kills, slowest return {max(returns):.1f} s")
    return returns


def run(world, short=False):
    kills = 1 if short else 50 if world.long else 20
    case = world.case("row-01", hud=True, senders_killed=True).start()
    case.relay.script({"method": "POST", "path": "*/dispatches", "delay_ms": 40})  # calls to be killed in
    load = case.load(rate=200, on=0.5, off=3.0)
    case.wait("the first dispatches", case.dispatched)
    killed_ms = []
    with concurrent.futures.ThreadPoolExecutor() as killers:  # each daemon at its own moments, whatever the others do
        done = [killers.submit(kill, case, victim, kills, random.Random(f"{world.seed}.kills.{victim}"), short, killed_ms)
                for victim in DAEMONS]
        slowest = max(max(one.result()) for one in done)
    load.stop()
    result = case.result(ROW, NAME, f"{kills} × each of 3", recovery_s=slowest, done_s=600)
    if slowest >= (30 if short else 10):
        result.problems.append(f"a daemon was back at work only after {slowest:.1f} s")
    if wrong := at_no_kill(case, killed_ms, *((BUSY_UNTOLD_MS, BUSY_LATE_MS) if short else ())):
        result.problems.append(f"{len(wrong)} × sent a second time, not under way at a kill, such as {wrong[0]}")
    return result
