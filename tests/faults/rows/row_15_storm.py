"""Replicas come and go: 1 → 8 → 1, again and again."""
import time

ROW, NAME = "15", "rebalance storm, dispatchers 1 → 8 → 1"
REPLICAS = 8
PAUSE_MAX_MS = 5000  # of a tier
AFTER_S = 8
WAIT_MAX_MS = 15000  # of one dispatch: its events partition and its task's may each be handed over more than once
TIERS = {"L1": "abc", "L2": "def", "L3": "ghi", "L4": "jkl"}  # the downstreams' letters


def longest_pauses(dispatches, since_ms, until_ms):
    """Of each tier, in ms, between two dispatches, and to the end. dispatches: (delivery, repo) → lines."""
    longest = {}
    for tier, letters in TIERS.items():
        at_ms = sorted(line["at_ms"] for (_, repo), lines in dispatches.items() for line in lines
                       if repo[len("org-")] in letters and since_ms <= line["at_ms"] <= until_ms) + [until_ms]
        longest[tier] = max(after - before for before, after in zip(at_ms, at_ms[1:]))
    return longest


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
    time.sleep(AFTER_S)  # the load goes on: the last to go have handed over in it
    until_ms = int(time.time() * 1000)
    load.stop()
    result = case.result(ROW, NAME, f"{rounds} × 1 → {REPLICAS} → 1")
    pauses = longest_pauses(case.checker.dispatches, since_ms, until_ms)
    result.recovery_s = max(pauses.values()) / 1000
    waited_ms = max(case.checker.waits_ms(since_ms).values())
    result.note = "longest pause " + ", ".join(f"{tier} {ms / 1000:.1f} s" for tier, ms in pauses.items()) + \
        f"; slowest dispatch {waited_ms / 1000:.1f} s after its webhook's 202"
    result.problems += [f"{tier} stood still for {ms / 1000:.1f} s" for tier, ms in pauses.items() if ms >= PAUSE_MAX_MS]
    if waited_ms >= WAIT_MAX_MS:
        result.problems.append(f"a dispatch came only {waited_ms / 1000:.1f} s after its webhook's 202")
    if result.duplicated:
        result.problems.append(f"{result.duplicated} duplicates in rebalances that lost nobody")
    return result
