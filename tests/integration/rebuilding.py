"""What the tests of the rebuild share: a reporter whose view is lost and compared."""
import json
import time

from confluent_kafka import Producer

from lib.processes import wait_for
from test_reporter import Reporter

# Not of the facts: leases, limits, what GitHub got (it is found again there), bytes that were
# written on the way, what routers and senders write for themselves, what the sweep counts some
# seconds later (test_reporter_hours.py).
NOT_REBUILT = ("crcr:epoch", "crcr:rebuild", "crcr:leases:", "crcr:check:", "crcr:runs:", "crcr:due",
               "crcr:comment:", "crcr:commit:",
               "crcr:rate:",
               "crcr:spent:", "crcr:allowlist", "crcr:budget", "crcr:tally", "crcr:tallied:", "crcr:hours:", "crcr:day:")


def dump(client):
    """Every key of the view: type and value, without TTL."""
    view = {}
    for key in client.scan_iter(count=1000):
        if key.startswith(NOT_REBUILT):
            continue
        kind = client.type(key)
        view[key] = kind, (client.hgetall(key) if kind == "hash" else
                           sorted(client.smembers(key)) if kind == "set" else
                           client.zrange(key, 0, -1, withscores=True) if kind == "zset" else
                           client.get(key))
        if key.startswith("crcr:claim:"):  # whose it was is not in an outcome
            for field in ("owner", "until_ms"):
                view[key][1].pop(field, None)
    return view


def differences(before, after):
    return {key: (before.get(key), after.get(key)) for key in before.keys() | after.keys()
            if before.get(key) != after.get(key)}


class Rebuilding(Reporter):
    def client(self):
        return self.redis.client()

    def whole(self):
        return self.client().exists("crcr:epoch")

    def wait_consistent(self, timeout=120):
        wait_for("the view to be whole", self.whole, timeout)

    def flush(self):
        self.client().flushall()

    def said(self, event, part="reporter"):
        return [json.loads(line) for line in self.relay.parts[part].text().splitlines()
                if f'"{event}"' in line]

    def restart(self, instance=None, **environment):
        process = self.relay.parts["reporter"]
        if process.running():
            assert process.stop() == 0, process.tail()
        self.start(**environment)

    def load(self, jobs, prefix="load", late=0):
        """Completed jobs, two callbacks each, straight into the topic; as many rows follow."""
        producer = Producer({"bootstrap.servers": self.relay.kafka, "linger.ms": 20,
                             "partitioner": "murmur2_random"})
        now = int(time.time() * 1000) - 60_000
        for i in range(jobs):
            delivery = f"{prefix}-{i % (jobs // 4 + 1)}"
            for status, at, more in (("in_progress", 1000, {}),
                                     ("completed", 2000, {"conclusion": "success"})):
                headers = {"repo": "org/two", "level": "L2", "issuer": "test", "provenance": "token",
                           "delivery": delivery, "received_ms": str(now + at), "pr": str(i % 50 + 1),
                           "head_sha": f"{i % 97:040x}", "dispatched_ms": str(now)}
                body = {"event_type": "pull_request", "delivery_id": delivery, "payload": {},
                        "workflow": {"schema_version": "1", "name": "ci", "job_name": f"job {i}",
                                     "run_id": i + 1, "run_attempt": 1, "status": status, **more}}
                producer.produce(self.relay.topic("callbacks"), json.dumps(body).encode(),
                                 f"{delivery}/org/two", headers=list(headers.items()))
                producer.poll(0)
        assert producer.flush(60) == 0
