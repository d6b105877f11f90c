"""A backlog that nobody worked on, then three dispatchers at once."""
import time

ROW, NAME = "14", "backlog, dispatchers 0 → 3"
STEP_S = 1.0


def run(world, short=False):
    events = 100_000 // 12 if world.long else 2_000  # × 12 downstreams
    case = world.case("row-14").start("ingest", "dispatcher", "reporter")
    assert case.relay.parts["dispatcher"].stop() == 0
    load = case.load(rate=400, count=events)
    load.wait(900)
    began = time.monotonic()
    for replica in (1, 2, 3):
        case.start_part(f"dispatcher{replica}")
    steps, last = [], 0
    while True:
        case.checker.look()
        done = len(case.checker.dispatches)
        if done:
            steps.append(done - last)
            last = done
        if case.checker.stored and not case.checker.open_dispatches():
            break
        assert time.monotonic() - began < 900, "the backlog does not drain"
        time.sleep(STEP_S)
    drained = time.monotonic() - began
    result = case.result(ROW, NAME, f"{events:,} events × 12", recovery_s=drained,
                         note=f"{last / drained:,.0f} dispatches/s")
    stood = sum(step == 0 for step in steps[:-1])
    if stood > 2:
        result.problems.append(f"nothing moved in {stood} of {len(steps)} looks")
    if result.duplicated:
        result.problems.append(f"{result.duplicated} duplicates without a fault")
    return result
