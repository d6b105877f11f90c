"""The broker refuses requests, one kind after another (a broker in memory, which can be asked to). Each is tried
again, or the daemon stops and names that error; then it is started anew, as Kubernetes does."""
import json
import time

from confluent_kafka import KafkaError
from lib.mock_kafka import MockKafka
from world import left_unread

ROW, NAME = "6", "broker errors one by one"
DAEMONS = ("ingest", "dispatcher", "reporter")
BROKERS = 2
EVENTS = 8

# Request → the errors that it is answered with. Joining is what a daemon does that is started anew.
ERRORS = {
    "produce": ("NOT_LEADER_FOR_PARTITION", "REQUEST_TIMED_OUT", "UNKNOWN_TOPIC_OR_PART",
                "TOPIC_AUTHORIZATION_FAILED", "MSG_SIZE_TOO_LARGE", "NOT_ENOUGH_REPLICAS", "_TRANSPORT"),
    "fetch": ("NOT_LEADER_FOR_PARTITION", "REQUEST_TIMED_OUT", "UNKNOWN_TOPIC_OR_PART",
              "TOPIC_AUTHORIZATION_FAILED", "KAFKA_STORAGE_ERROR", "_TRANSPORT"),
    "offset_commit": ("NOT_COORDINATOR", "REQUEST_TIMED_OUT", "GROUP_AUTHORIZATION_FAILED",
                      "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "_TRANSPORT"),
    "heartbeat": ("NOT_COORDINATOR", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"),
    "join_group": ("NOT_COORDINATOR", "REQUEST_TIMED_OUT", "GROUP_AUTHORIZATION_FAILED", "UNKNOWN_MEMBER_ID"),
    "find_coordinator": ("COORDINATOR_NOT_AVAILABLE", "GROUP_AUTHORIZATION_FAILED"),
    "offset_fetch": ("NOT_COORDINATOR", "GROUP_AUTHORIZATION_FAILED"),
    "init_producer_id": ("COORDINATOR_LOAD_IN_PROGRESS", "CLUSTER_AUTHORIZATION_FAILED"),
}
AT_START = {"join_group", "find_coordinator", "offset_fetch", "init_producer_id"}
SHORT = {("produce", "NOT_LEADER_FOR_PARTITION"), ("produce", "TOPIC_AUTHORIZATION_FAILED"),
         ("produce", "MSG_SIZE_TOO_LARGE"), ("fetch", "UNKNOWN_TOPIC_OR_PART"),
         ("offset_commit", "NOT_COORDINATOR"), ("join_group", "GROUP_AUTHORIZATION_FAILED"),
         ("offset_fetch", "NOT_COORDINATOR")}
COUNT = 3  # requests refused at each broker
USED_UP_S, MET_S, DONE_S = 8, 60, 120
GROUPS = ("crcr-router", "crcr-l1", "crcr-l2", "crcr-l3", "crcr-l4", "crcr-delay", "crcr-fold", "crcr-forward",
          "crcr-reconcile")


def reasons(log):
    """Why a daemon ended by itself, from the lines of its log."""
    lines = (json.loads(line) for line in log.splitlines() if line.startswith("{") and line.endswith("}"))
    return [line.get("reason", "") for line in lines if line.get("event") in ("role_failed", "start_failed")]


def names(reason, error):
    """Whether it is clear from the reason that it was this error: by Kafka's name or librdkafka's text. None: some reason."""
    if error is None:
        return bool(reason)
    return error in reason or KafkaError(getattr(KafkaError, error)).str() in reason


class Errors:
    def __init__(self, case, kafka):
        self.case, self.kafka = case, kafka
        self.stopped, self.problems = [], []
        self.slowest = 0.0

    def revive(self):
        """What stopped named the error, and is started anew."""
        for part in DAEMONS:
            process = self.case.relay.parts[part]
            if process.running():
                continue
            said = reasons(process.text())
            self.stopped.append(f"{part} ({self.now})")
            stalled = self.now.startswith("offset_fetch ") and left_unread(process.text())
            if process.popen.returncode not in (1, 2) or not (stalled or any(names(reason, self.error) for reason in said)):
                self.problems.append(f"{self.now}: {part} ended with {process.popen.returncode} and said {said}")
            self.case.start_part(part)

    def all_ready(self):
        self.revive()
        return all(self.case.ready(part) for part in DAEMONS)

    def restart(self):
        for part in ("dispatcher", "reporter"):
            code = self.case.relay.parts[part].stop(40)
            if code != 0:
                self.problems.append(f"{self.now}: {part} exited with {code} when it was asked to stop")
            self.case.start_part(part)

    def used_up(self, api):
        self.revive()
        return self.kafka.left(api) == 0

    def is_done(self):
        self.revive()
        self.unpark()
        return self.case.checker.look().is_done() and self.all_ready()

    def unpark(self):
        """What the broker refused for good lies in the dead-letter queue, with its reason: an operator replays it."""
        refused = [one for parked in self.case.checker.parked.values() for one in parked
                   if one.get("class") == "refused" and "resolves" not in one]
        if len(refused) > self.replayed:
            for one in refused[self.replayed:]:
                if not one.get("error"):
                    self.problems.append(f"{self.now}: parked without a reason: {one}")
            self.case.relay.ctl("dlq", "replay", "--class", "refused", check=False)
            self.replayed = len(refused)

    replayed, now, error = 0, "", None  # error: the broker answers with it now

    def wait(self, what, condition, timeout):
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                self.problems.append(f"{self.now}: waited {timeout} s in vain for {what}")
                return False
            time.sleep(0.2)
        return True

    def one(self, name, fault, api=None, error=None):
        self.now, self.error, began = name, error, time.monotonic()
        before = self.kafka.left(api) if api else 0
        fault()
        if api in AT_START:
            self.restart()
        self.case.load(rate=20, count=EVENTS).wait()
        if api and api not in AT_START:
            fault()  # ingest met the first ones; these are for whoever works on what it took
            before += COUNT * BROKERS
        deadline = time.monotonic() + USED_UP_S
        while api and not self.used_up(api) and time.monotonic() < deadline:
            time.sleep(0.2)
        if api:  # a group that has just lost its partitions asks for them first
            self.wait("the fault: nobody asked", lambda: self.kafka.left(api) < before + COUNT * BROKERS, MET_S)
        ok = self.wait("everything to be where it belongs", self.is_done, DONE_S)
        took = time.monotonic() - began
        self.slowest = max(self.slowest, took)
        self.case.say(f"row 6: {name}: {'whole' if ok else 'NOT whole'} after {took:.1f} s")
        return ok


def moves(errors, kafka, case):
    def coordinators():
        for group in GROUPS:
            kafka.order("coordinator", case.relay.group(group), moves.to)
        moves.to = 3 - moves.to

    def leaders():
        for topic in ("events", "dispatch.l1", "dispatch.l2", "dispatch.l3", "dispatch.l4", "results", "callbacks"):
            for partition in range(12):
                kafka.order("leader", case.relay.topic(topic), partition, 1 + partition % 2 if moves.to == 1 else
                            2 - partition % 2)
    for number in (1, 2):
        errors.one(f"coordinators move, {number}", coordinators)
        errors.one(f"leaders move, {number}", leaders)


moves.to = 2


def run(world, short=False):
    kafka = MockKafka(world.folder / "row-06-kafka", BROKERS).start()
    case = world.case("row-06", kafka=kafka, gives_up=True, hud=True)
    faults = [(api, name) for api, names in ERRORS.items() for name in names
              if not short or (api, name) in SHORT]
    try:
        case.start()
        case.load(rate=20, count=EVENTS).wait()
        case.wait_done(120)
        errors = Errors(case, kafka)
        # What is lost stays lost: after the first such fault each other one would be waited for in vain.
        if all(errors.one(f"{api} {name}", lambda api=api, name=name: kafka.errors(api, name, COUNT), api, name)
               for api, name in faults):
            moves(errors, kafka, case)
        result = case.result(ROW, NAME, f"{len(faults)} errors, 4 moves", recovery_s=errors.slowest, done_s=60)
    finally:
        case.close()
        kafka.stop()
    result.problems += errors.problems
    answers = {}
    for load in case.loads:
        for status, n in load.answers.items():
            answers[status] = answers.get(status, 0) + n
    unsent = [key for key in case.checker.parked if key not in case.checker.dispatches]
    if unsent:
        result.problems.append(f"{len(unsent)} are in the DLQ, and the replay did not send them, such as {unsent[0]}")
    parked = {kind: n for kind, n in case.checker.counts.items() if kind.startswith("dlq")}
    result.note = (f"webhooks answered {answers}; stopped with a reason: {', '.join(errors.stopped) or 'none'}; "
                   f"parked and replayed: {parked or 'none'}")
    return result
