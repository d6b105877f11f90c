"""Replicas come and go: 1 → 8 → 1, again and again."""
import time

ROW, NAME = "15", "rebalance storm, dispatchers 1 → 8 → 1"
REPLICAS = 8
PAUSE_MAX_MS = 5000


def longest_pause_ms(case, since_ms):
    """Between two dispatches that followed each other while there was work: work is in hand all the time."""
    times = sorted(line["at_ms"] for lines in case.checker.dispatches.values() for line in lines
                   if line["at_ms"] >= since_ms)
    return max((later - earlier for earlier, later in zip(times, times[1:])), default=0)


def run(world, short=False):
    rounds = 1 if short else 20 if world.long else 5
    case = world.case("row-15").start("ingest", "dispatcher1", "reporter")
    load = case.load(rate=20)
    case.wait("the first dispatches", case.dispatched)
    since_ms = int(time.time() * 1000)
    for number in range(rounds):
        for replica in range(2, REPLICAS + 1):
            case.start_part(f"dispatcher{replica}")
        for replica in range(2, REPLICAS + 1):
            case.relay.wait_ready(f"dispatcher{replica}")
        for replica in range(2, REPLICAS + 1):
            assert case.relay.parts[f"dispatcher{replica}"].stop() == 0
        case.say(f"row 15: round {number + 1} of {rounds}")
    load.stop()
    result = case.result(ROW, NAME, f"{rounds} × 1 → {REPLICAS} → 1")
    pause = longest_pause_ms(case, since_ms)
    result.note = f"longest pause {pause / 1000:.1f} s"
    if pause >= PAUSE_MAX_MS:
        result.problems.append(f"nothing was dispatched for {pause / 1000:.1f} s")
    if result.duplicated:
        result.problems.append(f"{result.duplicated} duplicates in rebalances that lost nobody")
    return result
