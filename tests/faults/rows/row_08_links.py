"""Each link of the daemons is cut, both ways and one way, while a second dispatcher and reporter are not cut off: these take
over, and what the first ones still do is the double ownership that must do no harm. GitHub and the HUD, which do not need each
other, are cut off at once: what the HUD gets still comes from Kafka."""
import math
import time

from lib.kafka import Kafka
from lib.links import Links
from lib.redis_server import RedisServer

ROW, NAME = "8", "each link cut, also one way"
LINKS = (("kafka",), ("redis",), ("github", "hud"), ("ingest",))  # cut one after the other
HEALED_MAX_S = 60
UNTOLD_MS = 2000  # from a call's effect until its outcome is known everywhere, at most, where no link is cut
REPLICAS = ("ingest", "dispatcher", "reporter", "dispatcher2", "reporter2")


def reported(case):
    """Rows that the HUD has taken from the reporter that is cut off."""
    return case.relay.metric("reporter", "crcr_results_posted_total", outcome="sent")


def at_work(case, load):
    """What must grow again after each fault: webhooks taken, and what those do that were cut off: dispatches, facts folded, rows
    reported."""
    return (load.answers.get(202, 0), case.relay.metric("dispatcher", "crcr_dispatch_outcomes_total", outcome="dispatched"),
            case.relay.metric("reporter", "crcr_facts_total"), reported(case))


def at_no_cut(case, cuts):
    """Second dispatches of what was first sent while no link was cut that a dispatcher needs. cuts: (from, until all was well) in ms."""
    wrong = []
    for key in case.checker.duplicates():
        first_ms = case.checker.dispatches[key][0]["at_ms"]
        if not any(since - UNTOLD_MS <= first_ms <= until for since, until in cuts):
            wrong.append(f"{key} at {first_ms}, links were cut at {cuts}")
    return wrong


def cut(case, links, load, names, how, seconds, cuts):
    """The time until everything works again."""
    what, since_ms = " and ".join(names), int(time.time() * 1000)
    if "redis" in names:
        case.without_redis.append((int(time.time() * 1000), math.inf))
    for link in names:
        links.cut(link, how)
    for link in names:
        assert not links.passes(link), f"the link to {link} is cut ({how}), and yet packets pass"
    before = reported(case)
    time.sleep(seconds)  # the length of the fault
    assert "hud" not in names or reported(case) == before, f"the link to the HUD is cut ({how}), and yet it takes rows"
    for link in names:
        links.heal(link, how)
    healed, before = time.monotonic(), at_work(case, load)
    for link in names:
        case.wait(f"packets to pass to {link}", lambda link=link: links.passes(link), 30)
    case.wait(f"work after {what} was cut ({how})",
              lambda: all(now > then for now, then in zip(at_work(case, load), before)), 90)
    for part in REPLICAS:
        case.wait(f"{part} to be ready after {what} was cut ({how})", lambda part=part: case.ready(part), 90)
    if "redis" in names:
        case.without_redis[-1] = case.without_redis[-1][0], int(time.time() * 1000)
    if "ingest" not in names:
        cuts.append((since_ms, int(time.time() * 1000)))
    case.say(f"row 8: {what} ({how}, {seconds} s) healed after {time.monotonic() - healed:.1f} s, {load.answers}")
    return time.monotonic() - healed


def run_behind(world, links, short):
    both, one_way = (8, 4) if short else (120, 120) if world.long else (30, 10)
    kafka = Kafka(world.folder / "row-08-kafka", also_on=links.outside("kafka")).start()
    redis = RedisServer(world.folder / "row-08-redis", also_on=links.outside("redis")).start()
    try:
        case = world.case("row-08", kafka=kafka, redis=redis, links=links, hud=True).start(*REPLICAS)
        case.relay.script({"method": "POST", "path": "*/dispatches", "delay_ms": 40})
        load = case.load(rate=200, on=0.25, off=3.75, senders=160)
        case.wait("the first dispatches", case.dispatched)
        cuts = []
        slowest = max(cut(case, links, load, names, how, both if how == "both" else one_way, cuts)
                      for names in LINKS for how in ("both", "there", "back"))
        load.stop()
        result = case.result(ROW, NAME, f"{sum(map(len, LINKS))} links × {both} s, × {one_way} s each way",
                             recovery_s=slowest, done_s=400)
        result.note = (f"{len(load.not_taken)} webhooks not taken; {sum(map(len, case.checker.rows.values()))} rows for the HUD; "
                       f"{len(case.checker.late)} marked calls behind a newer one")
    finally:
        for one in world.cases:
            one.close()
        redis.stop()
        kafka.stop()
    if slowest > HEALED_MAX_S:
        result.problems.append(f"healed only after {slowest:.1f} s")
    if not load.not_taken:
        result.problems.append("no webhook met a fault: nothing was cut")
    if wrong := at_no_cut(case, cuts):
        result.problems.append(f"{len(wrong)} × sent a second time, while no link was cut, such as {wrong[0]}")
    return result


def run(world, short=False):
    links = Links([*(link for names in LINKS for link in names), "tests"])
    try:
        return run_behind(world, links, short)
    finally:
        links.close()
