"""crcrctl as tests run it: its own prefix of topics, and nothing of the caller's environment."""
import os
import subprocess

from lib.kafka import TOPICS, create_topics, read_topic, write
from lib.processes import BIN
from lib.redis_server import login_of


class Ctl:
    def __init__(self, brokers, prefix):
        self.brokers, self.prefix = brokers, prefix

    def environment(self, **more):
        values = {"PATH": os.environ["PATH"], "KAFKA_BROKERS": self.brokers,
                  "CRCR_TOPIC_PREFIX": self.prefix, "GITHUB_APP_SECRET": "one,two"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                values[name] = os.environ[name]
        values.update(login_of("crcrctl", more.get("REDIS_ENDPOINT")), **more)
        return values

    def __call__(self, *arguments, expect=0, input=None, **environment):
        done = subprocess.run([BIN / "crcrctl", *map(str, arguments)], capture_output=True, text=True,
                              timeout=60, env=self.environment(**environment), input=input)
        assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def create_topics(self, partitions=2):
        """All topics, with few partitions: a broker that many tests share tells of them sooner."""
        names = [line.split()[0] for line in TOPICS.read_text().splitlines() if line and not line.startswith(("#", "default"))]
        create_topics(self.brokers, self.prefix, "".join(f"{name} {partitions} max.message.bytes=26MiB\n" for name in names))
        return self

    def write(self, topic, key, value, timestamp_ms=None, **headers):
        write(self.brokers, self.prefix + topic, key, value,
              {name: str(text) for name, text in headers.items()}, timestamp_ms)

    def read(self, topic):
        return read_topic(self.brokers, self.prefix + topic)
