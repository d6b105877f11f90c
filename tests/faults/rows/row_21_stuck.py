"""A consumer thread stands still, or is dead: the daemon says so, and its supervisor can restart it."""
import concurrent.futures
import itertools
import time

from lib.relay import http

ROW, NAME = "21", "a consumer thread stuck or dead"
SEEN_MAX_S = 30
GIVE_UP_S = 90
FOLLOWER = "allowlist.followed"  # in every daemon
# The points in whose passing a thread ends, that of a role or the follower of the allowlist; one of each daemon at a time.
THREADS = ({"dispatcher": "sender.posted", "reporter": "fold.folded"},
           {"dispatcher": "router.stored", "reporter": "reconcile.written"},
           {"dispatcher": "delay.republished", "reporter": "forward.posted"},
           dict.fromkeys(("ingest", "dispatcher", "reporter"), FOLLOWER))


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


def healthy(case, daemon, point):
    """What /healthz says; of the follower it must say so by name."""
    status, body = http("GET", case.relay.url(f"admin_{daemon}", "/healthz"))
    return status == 200 or point == FOLLOWER and b'"allowlist: ' not in body


def named(daemon, point):
    return f"allowlist of {daemon}" if point == FOLLOWER else point.split(".")[0]


def break_threads(case, threads, how):
    """Each daemon with one thread that ends so; how long after that each is seen to be unhealthy."""
    for daemon in threads:
        assert case.relay.parts[daemon].stop() == 0
    for daemon, point in threads.items():
        case.relay.start(daemon, FAULT_POINT=f"{point}:5:{how}")
    with concurrent.futures.ThreadPoolExecutor(1) as side:
        seen = side.submit(watch, lambda daemon: f"fault point {threads[daemon]}" in case.relay.parts[daemon].text(),
                           lambda daemon: healthy(case, daemon, threads[daemon]), threads)
        for daemon in threads:
            case.relay.wait_ready(daemon)
        if "delay.republished" in threads.values():
            # Of one: the others give forward something to do.
            case.relay.script({"method": "POST", "path": "/repos/org-a/backend/dispatches", "status": 429, "count": 30,
                               "headers": {"Retry-After": "12"}})  # longer than a sender keeps it in hand
        load = case.load(rate=200, count=200)
        seen = seen.result()
    load.wait()
    for daemon in threads:
        case.relay.parts[daemon].kill()  # as Kubernetes does in the end
        case.relay.start(daemon)
        case.relay.wait_ready(daemon)
    return {f"{named(daemon, threads[daemon])} ({how})": after for daemon, after in seen.items()}


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
