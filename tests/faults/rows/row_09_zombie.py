"""SIGSTOP past the session time-out: another owner goes on, then the stopped one wakes as a zombie."""
import random
import time

ROW, NAME = "9", "SIGSTOP past the session time-out, then SIGCONT"
STOP_S = 9  # session.timeout.ms is 6,000


def run(world, short=False):
    import signal
    rounds = 1 if short else 6 if world.long else 2
    chance = random.Random(f"{world.seed}.stops")
    case = world.case("row-09", hud=True).start("ingest", "dispatcher1", "dispatcher2", "reporter1", "reporter2")
    case.relay.script({"method": "POST", "path": "*/dispatches", "delay_ms": 40})
    load = case.load(rate=200, on=0.5, off=3.0)
    case.wait("the first dispatches", lambda: case.github_file.exists())
    victims = ["dispatcher1", "dispatcher2", "reporter1", "reporter2"] * rounds
    chance.shuffle(victims)
    for number, victim in enumerate(victims, 1):
        process = case.relay.parts[victim]
        process.signal(signal.SIGSTOP)
        time.sleep(STOP_S + chance.uniform(0, 3))  # the length of the fault
        process.signal(signal.SIGCONT)
        case.wait(f"{victim} to be ready again", lambda: case.ready(victim), 60)
        case.say(f"row 9: {number} of {len(victims)}")
    load.stop()
    return case.result(ROW, NAME, f"{len(victims)} × {STOP_S} s and more", settle_s=300)
