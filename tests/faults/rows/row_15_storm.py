"""Replicas come and go: 1 → 8 → 1, again and again."""
import time

ROW, NAME = "15", "rebalance storm, dispatchers 1 → 8 → 1"
REPLICAS = 8
PAUSE_MAX_MS = 5000


def too_late(waits_ms):
    """Webhooks, of those that came during the storm, that waited too long for one of their dispatches."""
    return [f"{delivery} was dispatched to {repo} only {ms / 1000:.1f} s after its 202"
            for (delivery, repo), ms in sorted(waits_ms.items(), key=lambda one: -one[1]) if ms >= PAUSE_MAX_MS]


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
    waits_ms = case.checker.waits_ms(since_ms)
    result.note = f"slowest dispatch {max(waits_ms.values()) / 1000:.1f} s after its webhook's 202"
    if late := too_late(waits_ms):
        result.problems.append(f"{len(late)} of {len(waits_ms)} dispatches were late, such as {late[0]}")
    if result.duplicated:
        result.problems.append(f"{result.duplicated} duplicates in rebalances that lost nobody")
    return result
