"""Redis is unavailable, empty, read-only or full. Dispatches go on, callbacks are accepted, the view is rebuilt."""
import collections
import contextlib
import hashlib
import json
import math
import signal
import time

from lib.redis_server import RedisServer

BEGUN_S = 2    # after that nobody works with what they asked of Redis before
PULSES_S = 10  # in so much time there are webhooks, and jobs that call back
ROW, NAME = "7", "Redis unavailable, flushed, restarted empty, read-only, full"
VIEW = ("crcr:job:*", "crcr:dispatch:*", "crcr:delivery:*", "crcr:pr:*", "crcr:head:*", "crcr:repo:*", "crcr:labels:*",
        "crcr:claim:*", "crcr:sent:*", "crcr:seq:*", "crcr:repos", "crcr:prs")
OF_ONE_OWNER = ("owner", "until_ms")  # of a claim: whose it was no outcome tells


def view(client):
    """What the pages are made from, and what is sent no second time."""
    content = {}
    for pattern in VIEW:
        for key in client.scan_iter(pattern, 5000):
            read = {"hash": client.hgetall, "set": lambda key: sorted(client.smembers(key)), "string": client.get,
                    "zset": lambda key: client.zrange(key, 0, -1, withscores=True)}
            content[key] = read[client.type(key)](key)
            if key.startswith("crcr:claim:"):
                content[key] = {field: value for field, value in content[key].items() if field not in OF_ONE_OWNER}
    return content


def checksum(content):
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


@contextlib.contextmanager
def away(case):
    case.redis.process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        case.redis.process.signal(signal.SIGCONT)


@contextlib.contextmanager
def flushed(case):
    case.redis.client().flushall()
    yield


@contextlib.contextmanager
def restarted_empty(case):
    case.redis.process.kill()
    try:
        yield
    finally:
        case.redis.start()


@contextlib.contextmanager
def read_only(case):
    case.redis.client().replicaof("127.0.0.1", 1)  # as the old primary is after a failover; there is no new one
    try:
        yield
    finally:
        case.redis.client().replicaof("NO", "ONE")


@contextlib.contextmanager
def full(case):
    case.redis.client().config_set("maxmemory", "100kb")  # less than Redis needs when empty: at 80 % new jobs are refused
    try:
        yield
    finally:
        case.redis.client().config_set("maxmemory", 0)


def seen(case):
    """What took effect at GitHub, and what downstream jobs got through, by kind."""
    return collections.Counter(json.loads(line)["kind"] for line in case.github_file.read_bytes().splitlines(True)
                               if line.endswith(b"\n"))


def turned_away(case):
    """Callbacks that ingest answered with 5xx, by status."""
    return {status: n for status in ("500", "503")
            if (n := case.relay.metric("ingest", "crcr_ingest_requests_total", route="callback", status=status))}


def of_kafka(case, route, topic):
    """How many were answered with 503 because Kafka was late, or failed."""
    return case.relay.parts["ingest"].text().count(f'"{route}_late"') + case.relay.metric(
        "ingest", "crcr_ingest_produce_failures_total", topic=case.relay.topic(topic))


def through(case):
    """Whether every run has ended, and every callback has had its answer."""
    state = case.relay.state()
    return (all(run["status"] == "completed" for run in state["runs"]) and
            all(200 <= row["http_status"] < 500 and row["http_status"] != 429 for row in state["callbacks"]))


def unclaimed(case):
    """Tasks whose claim Redis did not answer: they went out without."""
    return case.relay.metric("dispatcher", "crcr_claims_total", verdict="none")


def paused_processes(case, fault, seconds):
    """Holds the fault for so long; what did not go on meanwhile."""
    claimed = unclaimed(case)
    with fault(case):
        if fault is not flushed:  # which is over at once
            case.wait(f"a task without a claim while Redis is {fault.__name__}", lambda: unclaimed(case) > claimed)
        time.sleep(BEGUN_S)
        before = seen(case)
        time.sleep(seconds - BEGUN_S)  # the length of the fault
        meanwhile = seen(case) - before
    return [] if seconds < PULSES_S else [kind for kind in ("dispatch", "callback") if not meanwhile[kind]]


def run(world, short=False):
    seconds = 3 if short else 120 if world.long else 10
    redis = RedisServer(world.folder / "row-07-redis").start()
    case = world.case("row-07", redis=redis).start()
    load = case.load(rate=200, on=0.1 if short else 0.25, off=3.75)
    recovery, notes, still, away_before = 0.0, [], [], turned_away(case)
    try:
        case.wait("the first dispatches", case.dispatched)
        for fault in (away, flushed, restarted_empty, read_only, full):
            case.without_redis.append((int(time.time() * 1000), math.inf))
            still += [f"{kind}s while Redis was {fault.__name__}" for kind in
                      paused_processes(case, fault, 60 if fault is away and not short else seconds)]
            began, before = time.monotonic(), case.dispatched()
            case.wait(f"dispatches after {fault.__name__}", lambda before=before: case.dispatched() > before, 60)
            case.wait("a consistent view", lambda: redis.client().exists("crcr:epoch"), 120)
            case.wait("the reporter to be ready", lambda: case.ready("reporter"), 60)
            case.without_redis[-1] = case.without_redis[-1][0], int(time.time() * 1000)
            recovery = max(recovery, time.monotonic() - began)
            case.say(f"row 7: {fault.__name__} over, {load.answers}")
        load.stop()
        case.wait_done()
        if short:  # beside others the last runs may take until now, and change the view between the checksums
            case.wait("every run to end and call back", lambda: through(case), 120)
            case.wait_done()
        unread = case.read_to_the_end()  # a fold that lags would change the view between
        before_flush = view(redis.client())
        redis.client().flushall()
        case.wait("the view to be whole again", lambda: redis.client().exists("crcr:epoch"), 120)
        after_flush = view(redis.client())
        notes.append(f"{len(before_flush)} keys, rebuilt equal ({checksum(after_flush)})")
        away_after = turned_away(case)
        late = {route: of_kafka(case, route, topic) if short else 0
                for route, topic in (("webhook", "events"), ("callback", "callbacks"))}
        result = case.result(ROW, NAME, f"5 faults of {seconds} s", recovery_s=recovery)
        notes.append(f"{len(case.checker.late)} marked calls behind a newer one")
    finally:
        case.close()
        redis.stop()
    result.problems += unread + [f"there were no {what}" for what in still]
    if (away_after.get("500") != away_before.get("500") or
            away_after.get("503", 0) - away_before.get("503", 0) > late["callback"]):
        result.problems.append(f"callbacks were answered {away_after}, {away_before} before: ingest takes them without Redis")
    refused = {status: n for status, n in load.answers.items() if status != 202}
    if refused.keys() - {503} or refused.get(503, 0) > late["webhook"]:
        result.problems.append(f"webhooks were answered {refused}: ingest needs no Redis")
    if different := [key for key in before_flush.keys() | after_flush.keys() if before_flush.get(key) != after_flush.get(key)]:
        key = min(different)
        result.problems.append(f"{len(different)} keys of the view came out different, such as {key}: "
                               f"{before_flush.get(key)}, then {after_flush.get(key)}")
    result.note = "; ".join(notes)
    return result
