"""An upgrade from the previous release under load, one pod after the other in the order of deploy/CHANGELOG.md, and back. At each step
old and new programs share topics and Redis."""
import time

from previous import previous_bin

ROW, NAME = "24", "upgrade from the previous release, and back"
PODS = ("reporter", "reporter2", "ingest", "ingest2", "dispatcher", "dispatcher2")
DRAIN_MAX_S = 25
SIDE_BY_SIDE_S = 4  # after each step
CALL_MS = 300       # so that calls are under way


def replace(case, part, bin_folder):
    """As Kubernetes does: the old one drains, the next is looked at when the new one is ready. How long it took."""
    began = time.monotonic()
    code = case.relay.parts[part].stop(DRAIN_MAX_S + 10)
    assert code == 0, f"{part} exited with {code}: {case.relay.parts[part].tail()}"
    case.relay.bins[part] = bin_folder
    case.start_part(part)
    case.relay.wait_ready(part)
    return time.monotonic() - began


def step(case, part, bin_folder):
    took = replace(case, part, bin_folder)
    before = case.dispatched()
    time.sleep(SIDE_BY_SIDE_S)
    case.wait(f"dispatches after {part} was replaced", lambda: case.dispatched() > before, 60)
    return took


def run(world, short=False):
    old = previous_bin(world.say)
    case = world.case("row-24", hud=True)
    new = case.relay.bin
    case.relay.bins = {part: old for part in PODS}
    case.start(*PODS)
    case.relay.script({"method": "POST", "path": "*/dispatches", "delay_ms": CALL_MS})
    load = case.load(rate=100, on=0.5, off=2.0, parts=("ingest", "ingest2"))
    case.wait("the first dispatches", case.dispatched)
    rounds = 1 if short else 3 if world.long else 1
    slowest = 0.0
    for number in range(rounds):
        for parts, bin_folder, which in ((PODS, new, "new"), (PODS[::-1], old, "old again")):
            slowest = max([slowest] + [step(case, part, bin_folder) for part in parts])
            case.say(f"row 24: round {number + 1} of {rounds}, all {which}")
    for part in PODS:  # what stays is new
        step(case, part, new)
    load.stop()
    result = case.result(ROW, NAME, f"{rounds} × {len(PODS)} there and back, and there", recovery_s=slowest, done_s=300)
    if result.duplicated or result.unknown:
        result.problems.append(f"{result.duplicated} duplicates and {result.unknown} unknown without a fault")
    return result
