"""A consumer thread stands still: the daemon says so, and its supervisor can restart it."""
import time

from lib.relay import http

ROW, NAME = "21", "a consumer thread stuck"
SEEN_MAX_S = 30
THREADS = {"sender.posted": "dispatcher", "fold.folded": "reporter"}


def run(world, short=False):
    case = world.case("row-21").start()
    slowest = 0.0
    for point, daemon in THREADS.items():
        assert case.relay.parts[daemon].stop() == 0
        case.relay.start(daemon, FAULT_POINT=f"{point}:5:hang")
        case.relay.wait_ready(daemon)
        load = case.load(rate=200, count=200)
        began = time.monotonic()
        case.wait(f"{daemon} to call itself unhealthy",
                  lambda: http("GET", case.relay.url(f"admin_{daemon}", "/healthz"))[0] == 503, 60)
        slowest = max(slowest, time.monotonic() - began)
        case.say(f"row 21: {daemon} unhealthy after {time.monotonic() - began:.1f} s")
        load.wait()
        case.relay.parts[daemon].kill()  # as Kubernetes does in the end
        case.relay.start(daemon)
        case.relay.wait_ready(daemon)
    result = case.result(ROW, NAME, f"{len(THREADS)} threads", recovery_s=slowest)
    if slowest > SEEN_MAX_S:
        result.problems.append(f"unhealthy only after {slowest:.1f} s")
    return result
