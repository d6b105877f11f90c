"""Callbacks into the view: only the role fold, on callbacks of real size that wait in the topic."""
import json
import time

from confluent_kafka import Producer

from lib.processes import wait_for
from setting import Cpu, Row

JOBS = 4000  # two callbacks each


def measure(setting, _):
    relay = setting.relay("L2: [bench/r0]\n")
    setting.publish_allowlist(relay)
    write_callbacks(setting, relay)
    relay.start("reporter", CRCR_ROLES="fold")
    started = time.monotonic()
    with Cpu(relay.parts["reporter"].pid, setting.redis.process.pid) as cpu:
        wait_for("all callbacks to be folded", lambda: relay.metric(
            "reporter", "crcr_facts_total", kind="callback") >= 2 * JOBS, 120)
    seconds = time.monotonic() - started
    relay.stop()
    reporter_us, redis_us = (us / (2 * JOBS) for us in cpu.us)
    return [Row("fold: callbacks/s a core", "≥ 2,500", f"{1e6 / reporter_us:,.0f} "
                f"({reporter_us:.0f} µs a callback, Redis {redis_us:.0f} µs)",
                1e6 / reporter_us >= 2500),
            Row("fold: callbacks/s here, start included", "", f"{2 * JOBS / seconds:,.0f}")]


def write_callbacks(setting, relay, jobs=range(JOBS), **how):
    """how: settings of the producer."""
    now_ms = int(time.time() * 1000)
    producer = Producer({"bootstrap.servers": setting.kafka.brokers, "linger.ms": 20,
                         "partitioner": "murmur2_random", **how})
    for job in jobs:
        for completed in (False, True):
            value = callback_body(setting, f"fold-{job}", job + 1, completed)
            headers = {"repo": "bench/r0", "level": "L2", "issuer": "bench", "provenance": "token",
                       "delivery": f"fold-{job}", "pr": str(job % 500 + 1),
                       "head_sha": f"{job:040x}", "dispatched_ms": str(now_ms - 5000),
                       "received_ms": str(now_ms)}
            while True:
                try:
                    producer.produce(relay.topic("callbacks"), value.encode(),
                                     f"fold-{job}/bench/r0", headers=list(headers.items()))
                    break
                except BufferError:
                    producer.poll(0.1)
    assert producer.flush(60) == 0


def callback_body(setting, delivery, run_id, completed, **head):
    """A callback of real size: it brings the payload of its dispatch back."""
    payload = setting.bodies.read_text().split("\n", 1)[0]
    head = {"event_type": "pull_request", "delivery_id": delivery, **head}
    workflow = {"schema_version": "1", "status": "in_progress", "name": "ci", "job_name": "build",
                "run_id": int(run_id), "run_attempt": 1,
                "url": "https://github.com/bench/r0/actions/runs/1"}
    if completed:
        workflow.update(status="completed", conclusion="success",
                        test_results={"passed": 9, "failed": 0, "skipped": 1})
    return json.dumps(head)[:-1] + ',"payload":' + payload + ',"workflow":' + json.dumps(workflow) + "}"
