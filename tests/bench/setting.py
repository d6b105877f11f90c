"""What every measurement stands on: one real Kafka, one real Redis, the sink, bodies of real size,
and a look at what processes use."""
import json
import os
import pathlib
import subprocess

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from lib.kafka import Kafka, watermarks, write
from lib.processes import BIN, Process, wait_for
from lib.redis_server import USERS, RedisServer, set_user
from lib.relay import Relay, http, payload, pull_request

DRIVERS = BIN.parent / "bench"
PULL_REQUESTS = 256
TICKS = os.sysconf("SC_CLK_TCK")


class Setting:
    """Started once for a run of the bench; each measurement makes relays, with topics of their own."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.kafka = Kafka(self.folder / "kafka")
        self.redis = RedisServer(self.folder / "redis")
        self.sink, self.sink_port, self.bodies, self.relays, self.consumer = None, None, None, [], None

    def start(self):
        self.kafka.start()
        self.redis.start()
        self.sink = Process("sink", [DRIVERS / "sink"], self.folder)
        self.sink_port = int(wait_for("the sink's port", lambda: self.sink.text().strip(), 10))
        self.bodies = self._write_bodies()

    def _write_bodies(self):
        """Real pull_request payloads of 24 KB, one a line, each of another pull request."""
        file = self.folder / "bodies"
        pad = payload("pull_request/opened-2.json")["pull_request"]["body"] or ""
        lines = []
        for number in range(1_000_001, 1_000_001 + PULL_REQUESTS):
            body = pull_request(number=number)
            body["pull_request"]["body"] = pad
            text = json.dumps(body, separators=(",", ":"))
            body["pull_request"]["body"] = pad + "x" * max(0, 24_000 - len(text))
            lines.append(json.dumps(body, separators=(",", ":")))
        file.write_text("\n".join(lines))
        return file

    def relay(self, allowlist, redis=None, **environment):
        """A relay around the sink and that Redis; nothing of it runs yet. It logs as in production. Redis is emptied:
        what it remembers of one relay's offsets would supersede the next one's events."""
        redis = redis or self.redis
        redis.client().flushall()
        folder = self.folder / f"relay-{len(self.relays)}"
        relay = Relay(folder, self.kafka.brokers, redis.endpoint, allowlist=allowlist,
                      environment={"CRCR_GITHUB_API_URL": f"http://127.0.0.1:{self.sink_port}",
                                   "ALLOWLIST_URL": str(folder / "contents" / "pytorch" / "pytorch" /
                                                        ".github" / "allowlist.yml"),
                                   "HUD_API_URL": "", "CRCR_LOG_LEVEL": "info", **environment})
        redis.topic_prefix = relay.prefix
        for user in USERS:  # with their own keys, as in production: to match keys of any prefix costs Redis much
            set_user(redis.client(), user, prefix=relay.prefix.removesuffix(".") + ":")
        self.relays.append(relay)
        return relay

    def publish_allowlist(self, relay):
        """What the router would do, for measurements without one."""
        write(self.kafka.brokers, relay.topic("allowlist"), "allowlist",
              relay.allowlist_file.read_bytes(),
              {"source": "bench", "sha": "0" * 40, "fetched_ms": "1"})

    def make_topic(self, name, partitions=1):
        admin = AdminClient({"bootstrap.servers": self.kafka.brokers, "log_level": 3})
        for made in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            made.result(30)

    @property
    def kafka_pid(self):
        return int((self.folder / "kafka" / "kafka.pid").read_text())

    def records(self, topic):
        """How many were written to a topic."""
        if not self.consumer:
            self.consumer = Consumer({"bootstrap.servers": self.kafka.brokers, "group.id": "bench"})
        partitions = self.consumer.list_topics(topic, 30).topics[topic].partitions
        return sum(wait_for(f"the offsets of {topic}", lambda number=number: watermarks(self.consumer, topic, number), 30)[1]
                   for number in partitions)

    def stored_bytes(self, topic):
        """What the broker keeps of a topic, by its files."""
        return sum(file.stat().st_size for file in self.folder.glob(f"kafka/**/{topic}-*/*.log"))

    # ---- drivers ------------------------------------------------------------------------------------
    def spawn(self, driver, *arguments, under=()):
        return subprocess.Popen([*map(str, under), str(DRIVERS / driver), *map(str, arguments)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, process, timeout=120):
        """What a driver printed."""
        try:
            out, said = process.communicate(timeout=timeout)
        finally:
            if process.poll() is None:
                process.kill()
        assert process.returncode == 0, f"{process.args[0]}: {said}"
        return json.loads(out)

    def drive(self, driver, *arguments, timeout=120, under=()):
        return self.end(self.spawn(driver, *arguments, under=under), timeout)

    def webhooks(self, relay, rate, count, connections=32, *own):
        """An open model at that rate, or with rate 0 as many as are taken. "own": each of a pull request of its own."""
        secret = relay.environment()["GITHUB_APP_SECRET"]
        return self.spawn("webhook_load", relay.ports["ingest"], secret, self.bodies, rate, count,
                          connections, *own)

    def sink_stats(self):
        return json.loads(http("GET", f"http://127.0.0.1:{self.sink_port}/_stats")[1])

    def sink_reset(self):
        http("POST", f"http://127.0.0.1:{self.sink_port}/_reset", b"")

    def close(self):
        """Everything, by pid, also when a part of it fails."""
        ends = [relay.stop for relay in self.relays] + ([self.consumer.close] if self.consumer else [])
        ends += [part.stop for part in (self.sink, self.redis, self.kafka) if part]
        problems = []
        for end in ends:
            try:
                end()
            except AssertionError as error:
                problems.append(str(error))
        assert not problems, "\n".join(problems)


# ---- what processes use -----------------------------------------------------------------------------
def cpu_us(pid):
    """User and system time of a process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1_000_000 / TICKS


def memory_mb(pid, line="VmRSS"):
    """VmRSS: now; VmHWM: the most so far."""
    for text in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if text.startswith(line + ":"):
            return int(text.split()[1]) / 1024
    raise KeyError(line)


class Cpu:
    """with Cpu(pid, …) as cpu: …; then cpu.us is what each used meanwhile."""

    def __init__(self, *pids):
        self.pids, self.us = pids, []

    def __enter__(self):
        self.before = [cpu_us(pid) for pid in self.pids]
        return self

    def __exit__(self, *_):
        self.us = [cpu_us(pid) - before for pid, before in zip(self.pids, self.before)]


class Row:
    """One line of the table. ok is None for what is only information; count: (path, instructions)."""

    def __init__(self, what, bar, measured, ok=None, count=None):
        self.what, self.bar, self.measured, self.ok, self.count = what, bar, measured, ok, count
