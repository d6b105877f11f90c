"""Resident memory of the daemons: idle, and on a backlog that waits while the dispatcher is unavailable."""
import time

from setting import Row, memory_mb

TIERS = 4
ALLOWLIST = "L1: [bench/r0]\nL2: [bench/r1]\nL3:\n  npu: { bench/r2: [] }\nL4: [bench/r3]\n"
DAEMONS = ("ingest", "dispatcher", "reporter")
IDLE_SECONDS = 3
STALL_SECONDS = 60


def measure(setting, long):
    events = 100_000 if long else 10_000
    relay = setting.relay(ALLOWLIST)
    for part in DAEMONS:
        relay.start(part)
    for part in DAEMONS:
        relay.wait_ready(part)
    time.sleep(IDLE_SECONDS)
    idle = {part: memory_mb(relay.parts[part].pid) for part in DAEMONS}
    relay.parts["dispatcher"].stop()
    setting.sink_reset()
    sent = setting.end(setting.webhooks(relay, 0, events, 32, "own"), timeout=600)
    assert sent["accepted"] == events, sent
    relay.start("dispatcher")
    left = drain(setting, events * TIERS)
    most = {part: memory_mb(relay.parts[part].pid, "VmHWM") for part in DAEMONS}
    after = {part: memory_mb(relay.parts[part].pid) for part in DAEMONS}
    stats = setting.sink_stats()
    relay.stop()
    return [
        Row("memory: idle", "≤ 32 MB", shown(idle), max(idle.values()) <= 32),
        Row(f"memory: most on a backlog of {events:,} events, dispatcher", "≤ 60 MB", shown(most),
            most["dispatcher"] <= 60),
        Row("memory: after it", "", shown(after)),
        Row(f"backlog of {events:,} events × {TIERS}: drains", "monotone",
            f"{events * TIERS / stats['seconds']:,.0f} dispatches/s, longest pause "
            f"{stats['longest_gap_ms']:.0f} ms", drains(left)),
    ]


def drain(setting, dispatches):
    """What is left, once a second, until nothing is; ends also when nothing moves."""
    left, moved = [dispatches], time.monotonic()
    while left[-1] > 0 and time.monotonic() - moved < STALL_SECONDS:
        time.sleep(1)
        left.append(dispatches - setting.sink_stats()["dispatches"])
        if left[-1] < left[-2]:
            moved = time.monotonic()
    assert left[-1] <= 0, f"{left[-1]} of {dispatches} dispatches never came"
    return left


def drains(left):
    """Once begun, every second leaves less."""
    begun = [n for n in left if n < left[0]]
    return all(later < earlier for earlier, later in zip(begun, begun[1:]))


def shown(sizes):
    return ", ".join(f"{part} {size:.0f}" for part, size in sizes.items()) + " MB"
