"""Redis is away, empty, read-only or full. Dispatches go on, callbacks are accepted, the view is rebuilt."""
import hashlib
import json
import signal
import time

from lib.redis_server import RedisServer

ROW, NAME = "7", "Redis away, flushed, restarted empty, read-only, full"
VIEW = ("crcr:job:*", "crcr:dispatch:*", "crcr:delivery:*", "crcr:pr:*", "crcr:head:*", "crcr:repo:*")


def checksum(client):
    """Of what the pages are made from."""
    content = {}
    for pattern in VIEW:
        for key in client.scan_iter(pattern, 5000):
            content[key] = (client.hgetall(key) if client.type(key) == "hash" else
                            sorted(client.smembers(key)) if client.type(key) == "set" else
                            client.zrange(key, 0, -1, withscores=True))
    text = json.dumps(content, sort_keys=True).encode()
    return len(content), hashlib.sha256(text).hexdigest()[:16]


def away(case, seconds):
    case.redis.process.signal(signal.SIGSTOP)
    time.sleep(seconds)
    case.redis.process.signal(signal.SIGCONT)


def flushed(case, seconds):
    case.redis.client().flushall()
    time.sleep(seconds)


def restarted_empty(case, seconds):
    case.redis.process.kill()
    time.sleep(seconds)
    case.redis.start()


def read_only(case, seconds):
    case.redis.client().config_set("min-replicas-to-write", 1)
    time.sleep(seconds)
    case.redis.client().config_set("min-replicas-to-write", 0)


def full(case, seconds):
    case.redis.client().config_set("maxmemory", "2mb")
    time.sleep(seconds)
    case.redis.client().config_set("maxmemory", 0)


def run(world, short=False):
    seconds = 3 if short else 120 if world.long else 10
    redis = RedisServer(world.folder / "row-07-redis").start()
    case = world.case("row-07", redis=redis).start()
    load = case.load(rate=200, on=0.25, off=3.75)
    recovery, notes = 0.0, []
    try:
        case.wait("the first dispatches", lambda: case.github_file.exists())
        for fault in (away, flushed, restarted_empty, read_only, full):
            before = len(case.github_file.read_bytes())
            fault(case, 60 if fault is away and not short else seconds)
            began = time.monotonic()
            case.wait(f"dispatches after {fault.__name__}",
                      lambda: len(case.github_file.read_bytes()) > before, 60)
            case.wait("a whole view", lambda: redis.client().exists("crcr:epoch"), 120)
            case.wait("the reporter to be ready", lambda: case.ready("reporter"), 60)
            recovery = max(recovery, time.monotonic() - began)
            case.say(f"row 7: {fault.__name__} over, {load.answers}")
        load.stop()
        case.settle()
        keys, before_flush = checksum(redis.client())
        redis.client().flushall()
        case.wait("the view to be whole again", lambda: redis.client().exists("crcr:epoch"), 120)
        again, after_flush = checksum(redis.client())
        notes.append(f"{keys} keys, rebuilt equal ({after_flush})")
        result = case.result(ROW, NAME, f"5 faults of {seconds} s", recovery_s=recovery)
    finally:
        case.close()
        redis.stop()
    refused = {status: n for status, n in load.answers.items() if status != 202}
    if refused:
        result.problems.append(f"webhooks were answered {refused}: ingest needs no Redis")
    if (keys, before_flush) != (again, after_flush):
        result.problems.append(f"the view came out different: {keys} keys {before_flush}, {again} keys {after_flush}")
    result.note = "; ".join(notes)
    return result
