"""The broker is killed and comes back with what it had acknowledged."""
import random
import time

from lib.kafka import Kafka

ROW, NAME = "5", "broker kill -9"


def run(world, short=False):
    kills = 1 if short else 5 if world.long else 3
    chance = random.Random(f"{world.seed}.broker")
    kafka = Kafka(world.folder / "row-05-kafka").start()
    case = world.case("row-05", kafka=kafka).start()
    load = case.load(rate=200, on=0.25, off=3.75, senders=160)
    recovery = 0.0
    try:
        case.wait("the first dispatches", lambda: case.github_file.exists())
        for number in range(kills):
            time.sleep(chance.uniform(1, 4))  # the moment of the fault
            kafka.kill()
            kafka.start()
            back, before = time.monotonic(), load.answers.get(202, 0)
            case.wait("webhooks to be taken again", lambda: load.answers.get(202, 0) > before, 60)
            recovery = max(recovery, time.monotonic() - back)
            case.say(f"row 5: {number + 1} of {kills}, {load.answers}")
        load.stop()
        return case.result(ROW, NAME, str(kills), recovery_s=recovery, settle_s=400)
    finally:
        case.close()
        kafka.stop()
