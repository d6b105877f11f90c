"""A consumer thread stands still, or is dead: the daemon says so, and its supervisor can restart it."""
import itertools
import time

from lib.relay import http

ROW, NAME = "21", "a consumer thread stuck or dead"
SEEN_MAX_S = 30
GIVE_UP_S = 60
# The points in whose passing the thread of a role ends; one of each daemon at a time.
THREADS = ({"dispatcher": "sender.posted", "reporter": "fold.folded"},
           {"dispatcher": "router.stored", "reporter": "reconcile.written"},
           {"dispatcher": "delay.republished", "reporter": "forward.posted"})


def late(seen):
    """What is wrong with when each was seen to be unhealthy. seen: name → seconds, None when it never was."""
    return [f"{name} was never unhealthy" if after is None else f"{name} was unhealthy only after {after:.1f} s"
            for name, after in seen.items() if after is None or after > SEEN_MAX_S]


def watch(broken, healthy, names):
    """Name → the seconds from when broken(name) says yes until healthy(name) says no, None when one of them never does."""
    began, since, seen = time.monotonic(), {}, dict.fromkeys(names)
    while None in seen.values() and time.monotonic() - began < GIVE_UP_S:
        for name, after in seen.items():
            if name not in since and broken(name):
                since[name] = time.monotonic()
            if name in since and after is None and not healthy(name):
                seen[name] = time.monotonic() - since[name]
        time.sleep(0.2)
    return seen


def break_threads(case, threads, how):
    """Each daemon with one thread that ends so; how long after that each is seen to be unhealthy."""
    for daemon, point in threads.items():
        assert case.relay.parts[daemon].stop() == 0
        case.relay.start(daemon, FAULT_POINT=f"{point}:5:{how}")
        case.relay.wait_ready(daemon)
    if "delay.republished" in threads.values():
        case.relay.script({"method": "POST", "path": "*/dispatches", "status": 429, "count": 30,
                           "headers": {"Retry-After": "12"}})  # longer than a sender keeps it in hand
    load = case.load(rate=200, count=200)
    seen = watch(lambda daemon: f"fault point {threads[daemon]}" in case.relay.parts[daemon].text(),
                 lambda daemon: http("GET", case.relay.url(f"admin_{daemon}", "/healthz"))[0] == 200, threads)
    load.wait()
    for daemon in threads:
        case.relay.parts[daemon].kill()  # as Kubernetes does in the end
        case.relay.start(daemon)
        case.relay.wait_ready(daemon)
    return {f"{threads[daemon].split('.')[0]} ({how})": after for daemon, after in seen.items()}


def run(world, short=False):
    case = world.case("row-21", hud=True, senders_killed=True).start()
    seen = {}
    for threads, how in itertools.product(THREADS, ("hang", "exit")):
        seen |= break_threads(case, threads, how)
        case.say(f"row 21: unhealthy after {seen}")
    result = case.result(ROW, NAME, f"{len(seen)} threads", recovery_s=max((s or 0 for s in seen.values()), default=0),
                         note="unhealthy after " + ", ".join(
                             f"{name} {after:.0f} s" for name, after in seen.items() if after is not None))
    result.problems += late(seen)
    return result
