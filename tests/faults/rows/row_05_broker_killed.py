"""The broker is killed and comes back with what it had acknowledged. In the long form also one of three is cut off, or
hangs."""
import random
import time

from lib.kafka import Kafka, KafkaTrio
from lib.switch import Switch

ROW, NAME = "5", "broker kill -9"


def without_one(world, seconds):
    """Of three brokers each in turn is cut off, and each in turn hangs; two still have every record that is acknowledged."""
    switch = Switch(3)
    kafka, case = KafkaTrio(world.folder / "row-05-trio-kafka", switch), None
    try:
        case = world.case("row-05-trio", kafka=kafka.start()).start()
        load = case.load(rate=200, on=0.25, off=3.75, senders=160)
        case.wait("the first dispatches", case.dispatched)
        recovery = max(without(case, load, kafka, switch, number, how, seconds) for how in ("cut off", "hung") for number in (1, 2, 3))
        load.stop()
        return case.result(ROW, NAME, "", recovery_s=recovery, done_s=400)
    finally:
        if case:
            case.close()
        kafka.stop()
        switch.close()


def without(case, load, kafka, switch, number, how, seconds):
    """The time until webhooks are taken without that broker."""
    node, n = kafka.nodes[number - 1], number - 1
    began, before = time.monotonic(), load.answers.get(202, 0)
    if how == "hung":
        node.freeze()
    else:
        switch.cut(n)
        others = [None, *({0, 1, 2} - {n})]
        assert not any(switch.passes(n, whence) for whence in others), f"broker {number} is cut off, and yet packets pass"
    case.wait(f"webhooks to be taken while broker {number} is {how}", lambda: load.answers.get(202, 0) > before + 100, 90)
    recovery = time.monotonic() - began
    time.sleep(max(0.0, began + seconds - time.monotonic()))  # the length of the fault
    node.thaw() if how == "hung" else switch.heal(n)
    case.wait(f"all copies after broker {number} is back", kafka.whole, 120)
    case.say(f"row 5: broker {number} of 3 was {how}, {load.answers}")
    return recovery


def killed(world, kills):
    chance = random.Random(f"{world.seed}.broker")
    kafka = Kafka(world.folder / "row-05-kafka").start()
    case = world.case("row-05", hud=True, kafka=kafka).start()
    load = case.load(rate=200, on=0.25, off=3.75, senders=160)
    recovery, away_ms = 0.0, []
    try:
        case.wait("the first dispatches", case.dispatched)
        for number in range(kills):
            time.sleep(chance.uniform(1, 4))  # the moment of the fault
            killed_ms = int(time.time() * 1000)
            kafka.kill()
            kafka.start()
            away_ms.append((killed_ms, int(time.time() * 1000)))
            back, before = time.monotonic(), load.answers.get(202, 0)
            case.wait("webhooks to be taken again", lambda: load.answers.get(202, 0) > before, 60)
            recovery = max(recovery, time.monotonic() - back)
            case.say(f"row 5: {number + 1} of {kills}, {load.answers}")
        load.stop()
        result = case.result(ROW, NAME, str(kills), recovery_s=recovery, done_s=400)
    finally:
        case.close()
        kafka.stop()
    met = met_a_kill(load.sent_ms, away_ms)
    result.note = f"{met} webhooks came while the broker was dead, answered {load.answers}"
    if not met:
        result.problems.append("no webhook met a kill")
    return result


def met_a_kill(sent_ms, away_ms):
    """How many webhooks were sent while there was no broker. away_ms: from when until when."""
    return sum(any(began <= at_ms < ended for began, ended in away_ms) for at_ms in sent_ms.values())


def run(world, short=False):
    kills = 1 if short else 5 if world.long else 3
    result = killed(world, kills)
    if world.long:
        other = without_one(world, 30)
        result.add(other)
        result.faults += ", each of 3 brokers cut off for 30 s, and hung for 30 s"
    return result
