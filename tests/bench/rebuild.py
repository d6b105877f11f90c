"""The rebuild of a lost view: only the role fold, and as many rows of results as callbacks."""
import json
import time

from confluent_kafka import Producer

from lib.processes import wait_for
from setting import Cpu, Row

JOBS, JOBS_LONG = 20_000, 100_000


def measure(setting, long):
    jobs = JOBS_LONG if long else JOBS
    relay = setting.relay("L2: [bench/r0]\n")
    setting.publish_allowlist(relay)
    write_callbacks(relay, jobs)
    relay.start("reporter", CRCR_ROLES="fold")
    wait_for("all callbacks to be folded", lambda: relay.metric(
        "reporter", "crcr_facts_total", kind="callback") >= jobs, 600, 1)
    relay.wait_ready("reporter")
    client = setting.redis.client()
    keys, before = client.dbsize(), relay.metric("reporter", "crcr_rebuild_records_total")
    client.flushall()
    began = time.monotonic()
    with Cpu(relay.parts["reporter"].pid, setting.redis.process.pid) as cpu:
        wait_for("the view to be whole", lambda: client.exists("crcr:epoch"), 600, 0.1)
    seconds = time.monotonic() - began
    records = relay.metric("reporter", "crcr_rebuild_records_total") - before
    memory = int(next(line for line in open(f"/proc/{relay.parts['reporter'].pid}/status")
                      if line.startswith("VmHWM")).split()[1]) // 1024
    assert abs(client.dbsize() - keys) <= 2, (client.dbsize(), keys)
    relay.stop()
    reporter_us, redis_us = (us / records for us in cpu.us)
    return [Row(f"rebuild: {jobs:,} rows and {jobs:,} callbacks", "", f"{seconds:.1f} s, {records / seconds:,.0f} "
                f"records/s ({reporter_us:.0f} µs a record, Redis {redis_us:.0f} µs)"),
            Row("rebuild: most memory of the reporter, the fold before included", "", f"{memory} MB")]


def write_callbacks(relay, jobs):
    now_ms = int(time.time() * 1000)
    producer = Producer({"bootstrap.servers": relay.kafka, "linger.ms": 20,
                         "partitioner": "murmur2_random"})
    for job in range(jobs):
        delivery = f"rebuild-{job // 10}"
        value = {"event_type": "pull_request", "delivery_id": delivery, "payload": {}, "workflow": {
            "schema_version": "1", "status": "completed", "conclusion": "success", "name": "ci",
            "job_name": f"build {job % 10}", "run_id": job + 1, "run_attempt": 1,
            "url": "https://github.com/bench/r0/actions/runs/1",
            "test_results": {"passed": 9, "failed": 0, "skipped": 1}}}
        headers = {"repo": "bench/r0", "level": "L2", "issuer": "bench", "provenance": "token",
                   "delivery": delivery, "pr": str(job % 500 + 1), "head_sha": f"{job // 10:040x}",
                   "dispatched_ms": str(now_ms - 5000), "received_ms": str(now_ms)}
        while True:
            try:
                producer.produce(relay.topic("callbacks"), json.dumps(value).encode(),
                                 f"{delivery}/bench/r0", headers=list(headers.items()))
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0
