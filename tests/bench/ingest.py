"""Webhook in, acknowledged record out: against a bare producer of the same records."""
from setting import Cpu, Row

WARM_UP, COUNT = 2000, 10_000
ROUNDS = 2
OPEN_RATE, OPEN_COUNT = 500, 1500


def measure(setting, _):
    relay = setting.relay("L1: [bench/r0]\n")
    ingest = relay.start("ingest").pid
    relay.wait_ready("ingest")
    setting.end(setting.webhooks(relay, 0, WARM_UP))
    bare, ours = [], []
    for _ in range(ROUNDS):
        bare.append(bare_producer(setting, relay))
        ours.append(webhooks(setting, relay, ingest, 0, COUNT))
    bare, ours = (min(runs, key=lambda run: run["cpu_us"]) for runs in (bare, ours))
    steady = webhooks(setting, relay, ingest, OPEN_RATE, OPEN_COUNT)
    relay.stop()
    by_cpu = (bare["cpu_us"] + bare["broker_us"]) / (ours["cpu_us"] + ours["broker_us"])
    by_rate = ours["rate"] / bare["rate"]
    return [
        Row("ingest: CPU a webhook", "≤ 60 µs", f"{ours['cpu_us']:.0f} µs", ours["cpu_us"] <= 60),
        Row("ingest: CPU with the broker's, against a bare producer", "≥ 0.6 ×",
            f"{by_cpu:.2f} × (producer {bare['cpu_us']:.0f} µs, broker {bare['broker_us']:.0f} and "
            f"{ours['broker_us']:.0f} µs)", by_cpu >= 0.6),
        Row("ingest: rate, against a bare producer", "≥ 0.6 ×",
            f"{by_rate:.2f} × ({ours['rate']:,.0f}/s with the generator on the same cores, "
            f"{bare['rate']:,.0f}/s)"),
        Row(f"ingest: {OPEN_RATE} webhooks/s", "",
            f"{steady['cpu_us']:.0f} µs CPU; acknowledged in p50 {steady['p50_us'] / 1e3:.1f} ms, "
            f"p99 {steady['p99_us'] / 1e3:.1f} ms"),
    ]


def bare_producer(setting, relay):
    with Cpu(setting.kafka_pid) as cpu:
        run = setting.drive("produce_loop", setting.kafka.brokers, relay.topic("events"),
                            setting.bodies, COUNT)
    return {"cpu_us": run["cpu_us"] / COUNT, "broker_us": cpu.us[0] / COUNT,
            "rate": COUNT / run["seconds"]}


def webhooks(setting, relay, ingest, rate, count):
    with Cpu(ingest, setting.kafka_pid) as cpu:
        run = setting.end(setting.webhooks(relay, rate, count))
    assert run["accepted"] == count, run
    return {**run, "cpu_us": cpu.us[0] / count, "broker_us": cpu.us[1] / count,
            "rate": count / run["seconds"]}
