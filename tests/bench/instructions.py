"""Instructions of user space for one event of each hot path, by valgrind: unlike time they hardly depend on what else the machine
does. Each program runs twice, with few and with many events; what differs between the two runs, by what more it did, is the cost
of one. So its start and its end cancel out."""
import re
import time

import fold
import sender
from lib.processes import wait_for
from setting import Row

DOWNSTREAMS = 12
FEW, MANY = 50, 250  # events
FEW_JOBS, MANY_JOBS = 100, 500  # two callbacks each
ALLOWLIST = "L1: [" + ", ".join(f"bench/r{i}" for i in range(DOWNSTREAMS)) + "]\n"
WAIT_S = 240


def measure(setting, _):
    few, many = (counts(setting, events) for events in (FEW, MANY))
    rows = [cost(name, few[name], many[name], (MANY - FEW) * per_event) for name, per_event in
            (("ingest: a webhook", 1), ("router: an event, for 12", 1), ("router: a dispatch", DOWNSTREAMS),
             ("sender: a dispatch", DOWNSTREAMS), ("bare_chain: a dispatch", DOWNSTREAMS))]
    few, many = (folded(setting, jobs) for jobs in (FEW_JOBS, MANY_JOBS))
    return rows + [cost("fold: a callback", few, many, 2 * (MANY_JOBS - FEW_JOBS))]


def cost(name, few, many, n):
    return Row(f"instructions: {name}", "", f"{(many - few) / n / 1000:,.1f} thousand")


class Counted:
    """Daemons of a relay under valgrind; what each executed until its end."""

    def __init__(self, folder):
        self.file = folder / f"valgrind-{time.monotonic_ns()}"
        self.under = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", f"--log-file={self.file}"]

    def result(self):
        return int(re.search(r"I +refs: +([\d,]+)", self.file.read_text()).group(1).replace(",", ""))


def counts(setting, events):
    relay, found = setting.relay(ALLOWLIST), {}
    setting.drive("produce_loop", setting.kafka.brokers, relay.topic("events"), setting.bodies, events)
    dispatches = events * DOWNSTREAMS
    found["router: an event, for 12"] = found["router: a dispatch"] = daemon(
        relay, "dispatcher", lambda: relay.metric("dispatcher", "crcr_tasks_total") >= dispatches, CRCR_ROLES="router")
    setting.sink_reset()
    found["sender: a dispatch"] = daemon(relay, "dispatcher", lambda: relay.metric(
        "dispatcher", "crcr_dispatch_outcomes_total", outcome="dispatched") >= dispatches, CRCR_ROLES="l1")
    counted = Counted(relay.folder)
    sender.bare_chain(setting, relay, dispatches, counted.under)
    found["bare_chain: a dispatch"] = counted.result()
    found["ingest: a webhook"] = daemon(relay, "ingest", lambda: send(setting, relay, events))
    relay.stop()
    return found


def send(setting, relay, events):
    relay.wait_ready("ingest")
    sent = setting.end(setting.webhooks(relay, 20, events, 8))
    assert sent["accepted"] == events, sent
    return True


def folded(setting, jobs):
    relay = setting.relay("L2: [bench/r0]\n")
    setting.publish_allowlist(relay)
    fold.write_callbacks(setting, relay, jobs)
    return daemon(relay, "reporter", lambda: relay.metric("reporter", "crcr_facts_total", kind="callback") >= 2 * jobs,
                  CRCR_ROLES="fold")


def daemon(relay, name, done, **environment):
    """What it executed until it was done and ended by SIGTERM."""
    counted = Counted(relay.folder)
    relay.under = counted.under
    process = relay.start(name, **environment)
    relay.under = []
    wait_for(f"{name} under valgrind", done, WAIT_S)
    assert process.stop() == 0, process.tail()
    return counted.result()
