"""What the rows share: one real Kafka and Redis, the three daemons, the simulated GitHub with 12 downstreams,
and the waiting for everything to finish."""
import collections
import dataclasses
import functools
import json
import pathlib
import subprocess
import sys
import threading
import time

from checker import DELAY_TOPICS, TASK_TOPICS, Checker
from history import History, Lines, Topic
from load import Load
from outside import missing
from scrape import Scraper
from signals import SHOWS, unsaid

from lib.kafka import Kafka
from lib.ports import free_port
from lib.processes import wait_for
from lib.redis_server import RedisServer
from lib.relay import Relay, http

DOWNSTREAMS = [f"org-{letter}/backend" for letter in "abcdefghijkl"]
ALLOWLIST = """\
L1: [org-a/backend, org-b/backend, org-c/backend]
L2: [org-d/backend, org-e/backend, org-f/backend]
L3:
  npu: { org-g/backend: [], org-h/backend: [], org-i/backend: [] }
L4: [org-j/backend, org-k/backend, org-l/backend]
"""
OUTSIDE_S = 120  # until what has finished is shown outside
LONG_PATIENCE = 6  # of these, where there is more to look at
READ_S = 150     # until all that lies in topics is done with, what is put off for a minute as well
# One run in ten calls back, twice: with all of them the simulator's RSA signatures would be the load.
REACTION = [{"repo": "org-[abc]/*", "reports": False},
            {"repo": "*", "every": 10, "delay_ms": 200, "run_ms": 500, "retries": 40,
             "retry_delay_ms": 500}]


@dataclasses.dataclass
class Result:
    """One line of the table."""
    row: str
    name: str
    faults: str = ""
    events: int = 0
    lost: int = 0
    unknown: int = 0
    duplicated: int = 0
    recovery_s: float = 0.0
    note: str = ""
    reasons: dict = dataclasses.field(default_factory=dict)  # why second calls were made → how many
    behind: int = 0  # second calls that came after a newer one of their pull request
    problems: list = dataclasses.field(default_factory=list)
    seconds: float = 0.0

    def add(self, other):
        """Of another part of the same row."""
        for name in ("events", "lost", "unknown", "duplicated"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.reasons = dict(collections.Counter(self.reasons) + collections.Counter(other.reasons))
        self.recovery_s = max(self.recovery_s, other.recovery_s)
        self.problems += other.problems


def left_unread(log):
    """What the watchdog said of partitions whose committed offsets the broker did not give: librdkafka (2.0.2; its issue 5586)
    never asks for them again, so the daemon ends, to be started again. That is the guarantee: health is progress."""
    lines = (json.loads(line) for line in log.splitlines() if line.startswith("{") and line.endswith("}"))
    return [line["reason"] for line in lines
            if line.get("event") == "stalled" and "has records that are not read" in line.get("reason", "")]


class World:
    """Made once for a run; relay() gives each row daemons and topics of its own."""

    def __init__(self, folder, seed, long, say=None):
        self.folder, self.seed, self.long = pathlib.Path(folder), seed, long
        self.say = say or (lambda text: print(f"    {text}", file=sys.stderr, flush=True))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.parts, self.cases = [], []

    @functools.cached_property  # some rows have their own
    def kafka(self):
        self.parts.append(Kafka(self.folder / "kafka").start())
        return self.parts[-1]

    @functools.cached_property
    def redis(self):
        self.parts.append(RedisServer(self.folder / "redis").start())
        return self.parts[-1]

    def case(self, name, **options):
        case = Case(self, name, **options)
        self.cases.append(case)
        return case

    def close(self):
        for case in self.cases:
            case.close()
        for part in reversed(self.parts):
            part.stop()


class Case:
    """One relay under one fault, its histories and its checker. kafka and redis may be the row's own."""

    def __init__(self, world, name, kafka=None, redis=None, allowlist=ALLOWLIST,
                 downstreams=DOWNSTREAMS, reaction=REACTION, environment=None, links=None, hud=False,
                 gives_up=False, refuses=False, shows=True, senders_killed=False, supervised=False):
        self.world, self.name, self.say = world, name, world.say
        self.hud = hud            # gets each result
        self.gives_up = gives_up  # part of the fault: tasks end in the dead-letter queue, or are refused
        self.refuses = refuses    # part of the fault: valid callbacks are answered with 4xx
        self.shows = shows        # all is shown at GitHub and at the HUD soon after it has finished
        self.supervised = supervised  # a daemon that ends as left_unread says is started again, as compose does
        self.revived = 0
        self.hidden_ms = (0, 0)  # part of the fault: from, until when GitHub takes no check run; wall clock
        # Parts of the fault that allow more (checker.py): when Redis is unavailable, which the row notes; dispatchers are killed.
        self.without_redis = []
        self.allowed = {"without_redis": self.without_redis, "senders_killed": senders_killed}
        self.is_usual = allowlist is ALLOWLIST  # so that it is known who is at L4
        self.kafka, self.redis = kafka or world.kafka, redis or world.redis
        self.redis.client().flushall()
        self.folder = world.folder / name
        self.folder.mkdir()
        self.github_file = self.folder / "github.jsonl"
        self.sent_file = self.folder / "sent.jsonl"
        self.relay = Relay(self.folder, self.kafka.brokers, self.redis.endpoint, allowlist=allowlist,
                           environment={"CRCR_LOG_LEVEL": "info", "RATE_LIMIT_PER_MIN": "100000",
                                        **({} if hud else {"HUD_API_URL": ""}), **(environment or {})},
                           sim_arguments=["--history", self.github_file, "--rate-limit", 1000000000,
                                          "--keep", 20000],
                           prefix=getattr(self.kafka, "prefix", None))
        self.redis.topic_prefix = self.relay.prefix
        if links:
            self._behind(links)
        self.history = History(self.sent_file)
        self.reaction = reaction
        self.loads, self.topics = [], {}
        self.effects, self.n_dispatched, self.counting = Lines(self.github_file), 0, threading.Lock()
        self.downstreams = downstreams
        self.checker = self.scraper = None
        self.closed = False
        self.started = {}  # log → its size when all was ready: what it says before belongs to no fault

    def _behind(self, links):
        """The daemons ingest, dispatcher and reporter get a network of their own; Kafka, Redis, GitHub, the HUD and the
        tests are outside, each over a link of its own. Replicas (dispatcher2) are outside, too."""
        self.relay.links = links
        self.relay.hosts = {"ingest": links.inside("ingest"), "github": links.outside("github"), "github_on": "0.0.0.0",
                            "hud": links.inside("tests"),
                            **{f"admin_{part}": links.inside("tests")
                               for part in ("ingest", "dispatcher", "reporter")}}
        self.relay.extra |= {"KAFKA_BROKERS": self.kafka.linked, "CRCR_ALLOW_HTTP": "1",
                             "CRCR_HUD_LISTEN": f"{links.inside('tests')}:{self.relay.ports['hud']}",
                             "HUD_API_URL": f"http://{links.outside('hud')}:{self.relay.ports['github']}" if self.hud else "",
                             "REDIS_ENDPOINT": f"{links.outside('redis')}:{self.redis.port}"}

    # ---- starting ---------------------------------------------------------------------------------
    def start(self, *parts):
        self.relay.start_github()
        self.react(self.reaction)
        for part in parts or ("ingest", "dispatcher", "reporter"):
            self.start_part(part)
        for part in parts or ("ingest", "dispatcher", "reporter"):
            self.relay.wait_ready(part)
        settings = getattr(self.kafka, "reader_settings", {})
        self.topics = {name: Topic(self.kafka.brokers, self.relay.topic(name), **settings)
                       for name in ("events", "callbacks", "dispatches", "results", "dlq")}
        self.checker = Checker(self.downstreams, self.sent_file, self.github_file, self.topics, **self.allowed)
        self.started = {log: log.stat().st_size for log in self.relay.folder.glob("*.log")}
        if wanted := SHOWS.get(self.name.removeprefix("row-").lstrip("0")):
            self.scraper = Scraper(self.relay, wanted)
        return self

    def start_part(self, part, **environment):
        """dispatcher2: a replica, with ports of its own."""
        name = part.rstrip("0123456789")
        if name == "reporter" and part != "reporter":
            environment["CRCR_HUD_LISTEN"] = f"127.0.0.1:{free_port()}"
        if name == "ingest":
            port = self.relay.ports.setdefault(part, free_port())
            environment["CRCR_LISTEN"] = f"{self.relay.host(part)}:{port}"
        return self.relay.start(name, part, **environment)

    def revive(self):
        if not self.supervised:
            return
        for part, process in list(self.relay.parts.items()):
            if not process.running() and process.popen.returncode == 1 and left_unread(process.text()):
                self.say(f"{self.name}: {part} left partitions unread, and is started again")
                self.start_part(part)
                self.revived += 1

    def react(self, settings):
        status, body = http("POST", self.relay.url("github", "/_sim/downstreams"),
                            json.dumps(settings).encode(), {"Content-Type": "application/json"})
        assert status < 300, body

    def load(self, **options):
        one = Load(self.relay, self.history, f"{self.world.seed}.{self.name}.{len(self.loads)}",
                   **options).start()
        self.loads.append(one)
        return one

    def expire_claims(self):
        """As if the minute had passed for which the claims of the dispatcher that is dead hold. Not while one runs."""
        client = self.redis.client()
        keys = list(client.scan_iter("crcr:claim:*", 5000))
        pipe = client.pipeline(transaction=False)
        for key in keys:
            pipe.hget(key, "state")
        sending = [key for key, state in zip(keys, pipe.execute()) if state == "sending"]
        for key in sending:
            pipe.hset(key, "until_ms", "1")
        pipe.execute()

    # ---- ending -----------------------------------------------------------------------------------
    def wait_done(self, timeout=300):
        """Until every stored event and callback is where it belongs; says how far it is meanwhile."""
        deadline, said = time.monotonic() + timeout, 0.0
        while True:
            self.revive()
            checker = self.checker.look()
            if checker.is_done() or time.monotonic() > deadline:
                return checker
            if time.monotonic() - said > 10:
                said = time.monotonic()
                self.say(f"{self.name}: {len(checker.stored)} events, "
                         f"{len(checker.open_dispatches())} dispatches and "
                         f"{len(checker.open_callbacks())} callbacks still open")
            time.sleep(0.5)

    def unread(self, ends=None):
        """group → records that it has not done with; of those whose daemon runs. ends: partition → where reconcile's topic ended
        at an earlier look, or filled now. What comes later says to look at a commit again, up to ten minutes after its end."""
        parts = {part.rstrip("0123456789") for part in self.relay.parts}
        groups = ["crcr-router", *(f"crcr-l{tier}" for tier in range(1, 5)), "crcr-delay"] if "dispatcher" in parts else []
        groups += ["crcr-fold", "crcr-reconcile", *(["crcr-forward"] if self.hud else [])] if "reporter" in parts else []
        lags = collections.Counter()
        names = {self.relay.group(name): name for name in groups}
        for row in self.relay.lag():
            if row["group"] not in names:
                continue
            name, lag = names[row["group"]], row["lag"] or 0
            if name == "crcr-reconcile" and ends is not None:
                lag = max(0, lag - (row["end"] - ends.setdefault(row["partition"], row["end"])))
            lags[name] += lag
        return +lags

    def read_to_the_end(self, timeout=READ_S):
        """What stands twice in a topic, or is to be tried again, could still do harm when all has finished. What is left unread."""
        left, ends = None, {}

        def done():
            nonlocal left
            self.revive()
            try:
                left = self.unread(ends)
                if set(left) - {"crcr-reconcile"}:
                    ends.clear()  # what the others still have may come there
            except (AssertionError, subprocess.TimeoutExpired) as error:  # a group is on the move, a broker is busy
                raise TimeoutError(error) from error
            return not left
        try:
            self.wait("everything to be read", done, timeout)
        except AssertionError:
            return [f"not read to the end: {dict(left) if left is not None else 'no lag is known'}"]
        return []

    def outside(self, timeout, in_order=False):
        """Until the HUD and GitHub show what was called back; what they still do not show then."""
        began = time.monotonic()
        deadline = began + timeout
        while (wrong := missing(self, in_order)) and time.monotonic() < deadline:
            self.revive()
            time.sleep(1 + time.monotonic() - began)  # a long run has much to look at
            began = time.monotonic()
        if wrong:
            self.say(f"{self.name}: {len(wrong)} not shown, such as {wrong[0]}")
        return wrong

    def tasks(self):
        """The records of dispatch.* and delay.*, for the verdict. Read only then: rows measure meanwhile."""
        for name in TASK_TOPICS + DELAY_TOPICS:
            topic = Topic(self.kafka.brokers, self.relay.topic(name), **getattr(self.kafka, "reader_settings", {}))
            try:
                for batch in topic.batches():
                    yield from ((name, key, headers) for key, _, headers, *_ in batch)
            finally:
                topic.close()

    def jobs_in_redis(self):
        """(repo, delivery, run, job) → state, of all jobs in the view."""
        client, jobs = self.redis.client(), {}
        keys = list(client.scan_iter("crcr:job:*", 5000))
        names = ("downstream_repo", "delivery_id", "run_id", "job_name", "status")
        for start in range(0, len(keys), 500):
            pipe = client.pipeline(transaction=False)
            for key in keys[start:start + 500]:
                pipe.hmget(key, names)
            for repo, delivery, run, job, status in pipe.execute():
                if repo:
                    jobs[repo.lower(), delivery, run, job] = status
        return jobs

    def result(self, row, name, faults, recovery_s=None, note="", done_s=300):
        """Waits for it to finish, checks, and stops everything. Without a recovery_s: how long the slowest dispatch took."""
        patience = LONG_PATIENCE if self.world.long else 1
        self.wait_done(done_s * patience)
        unseen = self.outside(OUTSIDE_S * patience) if self.shows else []
        problems = self.read_to_the_end(READ_S * patience)
        self.wait_done(done_s * patience)  # what was called back meanwhile
        found = self.checker.verdict(self.jobs_in_redis(), self.tasks())
        counts = self.checker.counts
        if recovery_s is None:
            recovery_s = max(self.checker.waits_ms().values(), default=0) / 1000
        result = Result(row, name, faults, events=len(self.checker.stored),
                        lost=sum(len(found.by_kind[kind]) for kind in
                                 ("acknowledged but not stored", "lost", "callback lost in results",
                                  "callback lost in Redis")),
                        unknown=len(self.checker.unknown()),
                        duplicated=sum(self.checker.duplicates().values()),
                        reasons=dict(self.checker.reasons()),
                        recovery_s=recovery_s, note=note, behind=counts["repeats behind a newer call"],
                        problems=problems + found.problems())
        for kind, found in (("not shown", unseen), ("given up", [] if self.gives_up else self.checker.given_up()),
                            ("a valid callback refused", [] if self.refuses else self.checker.refusals)):
            if found:
                result.problems.append(f"{len(found)} × {kind}, such as {found[0]}")
        if any(one.get("reports", True) for one in self.reaction) and self.downstreams and not self.checker.callbacks:
            result.problems.append("no job called back: nothing was seen of callbacks")
        self.say(f"{self.name}: {counts['sent']} sent, {len(self.checker.acknowledged)} acknowledged, "
                 f"{len(self.checker.stored)} stored, {len(self.checker.dispatches)} dispatched, "
                 f"{len(self.checker.callbacks)} jobs called back")
        if silent := unsaid(row, self.relay.folder, self.started):
            result.problems.append(f"no log says {', '.join(silent)}")
        if self.scraper and (dark := self.scraper.stop()):
            result.problems.append(f"no metric shows it: {'; '.join(dark)}")
        result.problems += self.close()
        return result

    def close(self):
        """Stops what runs; gives what went wrong with that."""
        if self.closed:
            return []
        self.closed = True
        problems = []
        if self.scraper:
            self.scraper.stop()
        for load in self.loads:
            load.stop()
        problems += [f"{name} had ended by itself with {process.popen.returncode}: {process.tail()[-300:]}"
                     for name, process in self.relay.parts.items() if not process.running() and not process.asked_to_end]
        try:
            self.relay.stop()
        except AssertionError as error:
            problems.append(str(error).splitlines()[0])
        for topic in self.topics.values():
            topic.close()
        self.history.close()
        return problems

    def dispatched(self):
        """How many dispatches took effect at GitHub. Any thread."""
        with self.counting:
            self.n_dispatched += sum(line["kind"] == "dispatch" for line in self.effects.read())
            return self.n_dispatched

    # ---- looking ----------------------------------------------------------------------------------
    def ready(self, part):
        return http("GET", self.relay.url(f"admin_{part}", "/readyz"), timeout=5)[0] == 200

    def wait(self, what, condition, timeout=60):
        return wait_for(what, condition, timeout)
