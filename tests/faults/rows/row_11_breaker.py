"""One downstream's calls end in 500 for a while: its breaker opens, asks now and then, and closes."""
import json
import time

ROW, NAME = "11", "one downstream answers 500"
SICK = "org-l/backend"
OPEN_MAX_S, HEAL_MAX_S, PROBE_S = 30, 60, 10


def calls_since(case, at_ms):
    """From the file: what the simulator remembers is too little for ten minutes."""
    with open(case.relay.folder / "github-requests.jsonl", encoding="utf-8") as lines:
        mine = [json.loads(line) for line in lines if f"/repos/{SICK}/dispatches" in line]
    return [one for one in mine if one["at_ms"] > at_ms]


def run(world, short=False):
    seconds = 40 if short else 600 if world.long else 120
    case = world.case("row-11").start()
    case.relay.script({"method": "POST", "path": f"/repos/{SICK}/dispatches", "status": 500})
    began = time.monotonic()
    load = case.load(rate=200, on=0.1, off=4.9)
    case.wait("the breaker to open", lambda: case.relay.metric(
        "dispatcher", "crcr_breaker_open", account=SICK.split("/")[0]) == 1, OPEN_MAX_S + 30)
    opened = time.monotonic() - began
    at_ms = int(time.time() * 1000)
    time.sleep(max(0.0, seconds - opened))  # the length of the fault
    asked = calls_since(case, at_ms + 1000)
    case.relay.script({"clear": True})
    healed_from = time.monotonic()
    case.wait("the breaker to close", lambda: case.relay.metric(
        "dispatcher", "crcr_breaker_open", account=SICK.split("/")[0]) == 0, HEAL_MAX_S + 30)
    healed = time.monotonic() - healed_from
    load.stop()
    result = case.result(ROW, NAME, f"{seconds} s", recovery_s=healed, done_s=600,
                         note=f"open after {opened:.1f} s, {len(asked)} probes in {seconds - opened:.0f} s")
    if opened > OPEN_MAX_S:
        result.problems.append(f"the breaker opened only after {opened:.1f} s")
    if len(asked) > (seconds - opened) / PROBE_S + 1:
        result.problems.append(f"{len(asked)} probes in {seconds - opened:.0f} s")
    gaps = [after["at_ms"] - before["at_ms"] for before, after in zip(asked, asked[1:])]
    if gaps and min(gaps) < 1000 * (PROBE_S - 1):
        result.problems.append(f"two probes came within {min(gaps) / 1000:.1f} s")
    if healed > HEAL_MAX_S:
        result.problems.append(f"it took {healed:.1f} s to heal")
    return result
