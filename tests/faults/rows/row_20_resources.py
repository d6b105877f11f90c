"""What a machine runs out of: disk at the broker, file descriptors, connections, patience (slowloris), and the right time.
Each fault makes the relay worse, is seen from outside, and is over when its cause is."""
import datetime
import os
import pathlib
import resource
import socket
import subprocess
import time

from lib.kafka import Kafka
from lib.relay import http

ROW, NAME = "20", "disk full, no descriptors, 10,000 connections, slowloris, clock"
IDLE = 10_000
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"


class Disk:
    """A small disk of its own under a broker's data."""

    def __init__(self, folder, megabytes=192):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "crcr-faults", self.folder], check=True)
        self.ballast = self.folder / "ballast"

    def fill(self):
        with open(self.ballast, "wb", buffering=0) as file:
            try:
                while file.write(bytes(1 << 16)):
                    pass
            except OSError:
                pass

    def clear(self):
        self.ballast.unlink(missing_ok=True)

    def close(self):
        subprocess.run(["umount", "--lazy", self.folder], check=False)


def taken_again(case, load, what):
    """The time until a webhook is taken and everything is ready."""
    began, before = time.monotonic(), load.answers.get(202, 0)
    case.wait(f"webhooks to be taken after {what}", lambda: load.answers.get(202, 0) > before, 90)
    for part in ("ingest", "dispatcher", "reporter"):
        case.wait(f"{part} to be ready after {what}", lambda part=part: case.ready(part), 90)
    case.say(f"row 20: {what} is over, {load.answers}")
    return time.monotonic() - began


# ---- disk ---------------------------------------------------------------------------------------------
def disk_full(world, kafka, disk, seconds):
    case = world.case("row-20-disk", kafka=kafka).start()
    load = case.load(rate=200, on=0.25, off=3.75, senders=160)
    case.wait("the first dispatches", case.dispatched)
    disk.fill()
    case.wait("webhooks to be refused", lambda: load.answers.get(503, 0) > 0, 120)
    said = case.wait("ingest to say so", lambda: case.relay.metric(
        "ingest", "crcr_ingest_produce_failures_total") > 0 and not case.ready("ingest"), 60)
    time.sleep(seconds)  # the length of the fault
    disk.clear()
    if not kafka.process.running():  # a broker without a disk ends itself; its supervisor starts it again
        kafka.start()
    recovery = taken_again(case, load, "the full disk")
    load.stop()
    result = case.result(ROW, NAME, "", recovery_s=recovery, done_s=400)
    return result, ([] if said else ["ingest did not say that nothing can be stored"])


# ---- descriptors --------------------------------------------------------------------------------------
CONNECT_S = 10  # the kernel asks again after 1, 3 and 7 s when the queue of those not accepted yet is full


def connections(address, number):
    """So many connections that say nothing; fewer when no more are accepted."""
    held = []
    for _ in range(number):
        one = socket.socket()
        one.settimeout(CONNECT_S)
        try:
            one.connect(address)
        except OSError:
            one.close()
            break
        held.append(one)
    return held


def let_go(held):
    for one in held:
        one.close()


def answers(case, part):
    try:
        return http("GET", case.relay.url(f"admin_{part}", "/healthz"), timeout=2)[0] == 200
    except OSError:
        return False


def no_descriptors(case, load, part, seconds):
    """Those that it may have are all in use: by connections to its admin port, as far as these get."""
    pid = case.relay.parts[part].pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir(f"/proc/{pid}/fd"))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (highest + 4, hard))
    held = connections(("127.0.0.1", case.relay.ports[f"admin_{part}"]), 100)
    try:
        case.wait(f"{part} to have no descriptor left",
                  lambda: len(os.listdir(f"/proc/{pid}/fd")) >= highest + 3, 20)
        seen = not answers(case, part)
        if part == "dispatcher":  # connections that it loses now cannot be made again
            case.relay.script({"method": "POST", "path": "*/dispatches", "reset": True, "count": 20})
        time.sleep(seconds)  # the length of the fault
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        let_go(held)
    assert case.relay.parts[part].running(), f"{part} ended: {case.relay.parts[part].tail()}"
    recovery = taken_again(case, load, f"the want of descriptors ({part})")
    case.wait(f"{part} to be healthy", lambda: answers(case, part), 60)
    return recovery, ([] if seen else [f"{part} looked healthy without a descriptor left"])


# ---- connections --------------------------------------------------------------------------------------
def idle_connections(case, load):
    """More than ingest takes at once, saying nothing. The oldest of them make room for others; all are cut
    off after 10 s."""
    before = load.answers.get(202, 0)
    held = connections(("127.0.0.1", case.relay.ports["ingest"]), IDLE)
    try:
        in_use = case.relay.metric("ingest", "process_open_fds")
        case.say(f"row 20: {len(held)} idle connections, ingest has {in_use:.0f} descriptors open")
        case.wait("webhooks to be taken beside them", lambda: load.answers.get(202, 0) > before, 60)
        began = time.monotonic()
        case.wait("ingest to cut them off", lambda: case.relay.metric("ingest", "process_open_fds") < 1000, 90)
        took = time.monotonic() - began
    finally:
        let_go(held)
    problems = [] if len(held) == IDLE and in_use > IDLE / 2 else [f"only {len(held)} connections, {in_use} in use"]
    return taken_again(case, load, "the idle connections") + took, problems


def slowloris(case, load, number, seconds):
    """Clients that send a request one byte a second: a head has 10 s, and no other request waits for them."""
    before = dict(load.answers)
    held = connections(("127.0.0.1", case.relay.ports["ingest"]), number)
    head = b"POST /github/webhook HTTP/1.1\r\nHost: x\r\nX-Slow: "
    gone = set()
    began = time.monotonic()
    try:
        for one in held:
            one.send(head)
        while len(gone) < len(held) and time.monotonic() - began < seconds:
            for one in held:
                try:
                    one.send(b"a")
                except OSError:
                    gone.add(one)
            time.sleep(1)  # their pace
    finally:
        let_go(held)
    case.say(f"row 20: {len(gone)} of {len(held)} slow clients were cut off within {time.monotonic() - began:.0f} s")
    problems = []
    if load.answers.get(202, 0) == before.get(202, 0):
        problems.append("no webhook was taken beside slow clients")
    if seconds > 100 and len(gone) < len(held):
        problems.append(f"{len(held) - len(gone)} slow clients were never cut off")
    return taken_again(case, load, "slowloris"), problems


# ---- the clock ----------------------------------------------------------------------------------------
def clock_off_s(case):
    """How far the dispatcher's clock is from ours, to the ten minutes, as the outcome says that it stored last."""
    case.checker.look()
    stored = [datetime.datetime.fromisoformat(o["at"]).timestamp() for one in case.checker.outcomes.values() for o in one]
    return 600 * round((stored[-1] - time.time()) / 600)


def wrong_clock(world, seconds):
    """The daemons' clock jumps by ten minutes; that of GitHub, of the brokers and of librdkafka's waits does not."""
    if not pathlib.Path(FAKETIME).exists():
        raise AssertionError(f"there is no {FAKETIME} (Debian: faketime)")
    waits = world.folder / "clock_of_librdkafka.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", waits, pathlib.Path(__file__).parent / "clock_of_librdkafka.c"], check=True)
    offset = world.folder / "clock"
    offset.write_text("+0")
    # What is to be looked at again while the clock is ahead is so when the clock is there (reporter/README.md, "our clock is set"): late.
    case = world.case("row-20-clock", refuses=True, shows=False, environment={
        "LD_PRELOAD": f"{waits} {FAKETIME}", "FAKETIME_TIMESTAMP_FILE": str(offset), "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}).start()
    load = case.load(rate=200, on=0.25, off=3.75)
    case.wait("the first dispatches", case.dispatched)
    slowest, problems = 0.0, []
    for jump in ("+600", "+0", "-600", "+0"):
        offset.write_text(jump)
        began, before = time.monotonic(), case.dispatched()
        case.wait(f"dispatches at {jump} s", lambda before=before: case.dispatched() > before, 60)
        slowest = max(slowest, time.monotonic() - began, taken_again(case, load, f"the clock at {jump} s"))
        case.wait(f"an outcome of a clock at {jump} s", lambda jump=jump: clock_off_s(case) == int(jump), 60)
        time.sleep(seconds)  # the length of the fault
    load.stop()
    refused = {status: count for status, count in load.answers.items() if status != 202}
    if refused:
        problems.append(f"webhooks were answered {refused} because of the clock")
    return case.result(ROW, NAME, "", recovery_s=slowest, done_s=400), problems


# ---- all ----------------------------------------------------------------------------------------------
def on_a_small_disk(world, seconds):
    folder = world.folder / "row-20-kafka"
    disk = Disk(folder / "data")
    kafka = Kafka(folder)
    try:
        return disk_full(world, kafka.start(), disk, seconds)
    finally:
        for case in world.cases:
            case.close()
        kafka.stop()
        disk.close()


def used_up(world, seconds, slow_s):
    case = world.case("row-20-used-up").start()
    load = case.load(rate=200, on=0.25, off=3.75, senders=64)
    case.wait("the first dispatches", case.dispatched)
    done = [no_descriptors(case, load, part, seconds) for part in ("ingest", "dispatcher", "reporter")]
    done.append(idle_connections(case, load))
    done.append(slowloris(case, load, 500, slow_s))
    load.stop()
    result = case.result(ROW, NAME, "", recovery_s=max(recovery for recovery, _ in done), done_s=400)
    return result, [problem for _, problems in done for problem in problems]


def run(world, short=False):
    seconds = 3 if short else 60 if world.long else 10
    total = used_up(world, seconds, 10 if short else 120)
    for result, problems in (on_a_small_disk(world, seconds), wrong_clock(world, seconds)):
        total[0].add(result)
        total[0].problems.extend(problems)
    total[0].problems.extend(total[1])
    total[0].faults = f"7 faults of {seconds} s"
    return total[0]
