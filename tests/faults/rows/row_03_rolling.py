"""A rolling restart by SIGTERM, as Kubernetes does it: each pod in turn, the next when it is ready, and a dispatcher while calls of
its own are under way."""
import time

ROW, NAME = "3", "SIGTERM, rolling: 3 dispatchers, 2 reporters"
PODS = ("dispatcher1", "dispatcher2", "dispatcher3", "reporter1", "reporter2")
DRAIN_MAX_S = 25
CALL_MS = 300  # so that calls are under way


def sent_again(checker):
    """Rows that the HUD was sent although it knew them: their partition went to another reporter before the answer was there."""
    return sum(max(0, len(rows) - sum(checker.states[job].values())) for job, rows in checker.hud.items())


def late_for_kafka(case):
    """Records that Kafka did not acknowledge in time, as the reporters say: only on a machine that stands still for seconds. They are
    written again, and may stand there twice."""
    return sum(log.read_text(errors="replace").count('"event":"record_not_stored"') for log in case.relay.folder.glob("reporter*.log"))


def run(world, short=False):
    rounds = 1 if short else 10 if world.long else 3
    case = world.case("row-03", hud=True)
    case.start("ingest", *PODS)
    case.relay.script({"method": "POST", "path": "*/dispatches", "delay_ms": CALL_MS})
    load = case.load(rate=200, on=0.5, off=3.0)
    case.wait("the first dispatches", case.dispatched)
    slowest, drains = 0.0, []
    for number in range(rounds):
        for pod in PODS:
            if pod.startswith("dispatcher"):
                case.wait(f"calls of {pod} under way", lambda pod=pod: case.relay.metric(pod, "crcr_dispatches_in_flight") > 0, 60)
            began = time.monotonic()
            code = case.relay.parts[pod].stop(DRAIN_MAX_S + 10)
            drains.append(time.monotonic() - began)
            assert code == 0, f"{pod} exited with {code}: {case.relay.parts[pod].tail()}"
            case.start_part(pod)
            case.relay.wait_ready(pod)
            slowest = max(slowest, time.monotonic() - began)
        case.say(f"row 3: round {number + 1} of {rounds}, longest drain {max(drains):.1f} s")
    load.stop()
    result = case.result(ROW, NAME, f"{rounds} rounds of {len(PODS)}", recovery_s=slowest,
                         note=f"longest drain {max(drains):.1f} s", done_s=300)
    if max(drains) >= DRAIN_MAX_S:
        result.problems.append(f"a drain took {max(drains):.1f} s")
    if result.duplicated or result.unknown:
        result.problems.append(f"{result.duplicated} duplicates and {result.unknown} unknown without a fault")
    repeated, late = case.checker.counts["repeated rows"], late_for_kafka(case)
    if repeated and not late:
        result.problems.append(f"{repeated} rows of results stand there twice")
    result.note += f"; {sent_again(case.checker)} rows sent to the HUD once more"
    if late:
        result.note += f"; the machine stood still: {late} rows were not acknowledged in 3 s, {repeated} are in results once more"
    return result
