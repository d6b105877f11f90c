"""A consumer thread stands still, or is dead: the daemon says so, and its supervisor can restart it."""
import time

from lib.relay import http

ROW, NAME = "21", "a consumer thread stuck or dead"
SEEN_MAX_S = 30
GIVE_UP_S = 60
THREADS = {"dispatcher": "sender.posted", "reporter": "fold.folded"}
ENDS = ("hang", "exit")


def late(seen):
    """What is wrong with when each was seen to be unhealthy. seen: name → seconds, None when it never was."""
    return [f"{name} was never unhealthy" if after is None else f"{name} was unhealthy only after {after:.1f} s"
            for name, after in seen.items() if after is None or after > SEEN_MAX_S]


def watch(healthy, names):
    """Name → the seconds until healthy(name) says no, None when it never does."""
    began, seen = time.monotonic(), dict.fromkeys(names)
    while None in seen.values() and time.monotonic() - began < GIVE_UP_S:
        for name, after in seen.items():
            if after is None and not healthy(name):
                seen[name] = time.monotonic() - began
        time.sleep(0.2)
    return seen


def break_threads(case, how):
    """Each daemon with one thread that ends so; when each is seen to be unhealthy, from the first webhook on."""
    for daemon, point in THREADS.items():
        assert case.relay.parts[daemon].stop() == 0
        case.relay.start(daemon, FAULT_POINT=f"{point}:5:{how}")
        case.relay.wait_ready(daemon)
    load = case.load(rate=200, count=200)
    seen = watch(lambda daemon: http("GET", case.relay.url(f"admin_{daemon}", "/healthz"))[0] == 200, THREADS)
    load.wait()
    for daemon in THREADS:
        case.relay.parts[daemon].kill()  # as Kubernetes does in the end
        case.relay.start(daemon)
        case.relay.wait_ready(daemon)
    return {f"{daemon} ({how})": after for daemon, after in seen.items()}


def run(world, short=False):
    case = world.case("row-21").start()
    seen = {}
    for how in ENDS:
        seen |= break_threads(case, how)
        case.say(f"row 21: unhealthy after {seen}")
    result = case.result(ROW, NAME, f"{len(seen)} threads", recovery_s=max((s or 0 for s in seen.values()), default=0))
    result.problems += late(seen)
    return result
