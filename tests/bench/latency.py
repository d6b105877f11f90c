"""From when a webhook was due to when its dispatches reached GitHub, above two hops through the
broker that a probe makes at the same time."""
from lib.processes import wait_for
from setting import Row

DOWNSTREAMS = 12
SECONDS, WARM_UP_SECONDS = 12, 3
PROBE_RATE = 50
ALLOWLIST = """\
L1: [bench/r0, bench/r1, bench/r2]
L2: [bench/r3, bench/r4, bench/r5]
L3:
  npu: { bench/r6: [], bench/r7: [], bench/r8: [] }
L4: [bench/r9, bench/r10, bench/r11]
"""


def measure(setting, _):
    relay = setting.relay(ALLOWLIST)
    for part in ("ingest", "dispatcher"):
        relay.start(part)
    for part in ("ingest", "dispatcher"):
        relay.wait_ready(part)
    for topic in ("bench.first", "bench.second"):
        setting.make_topic(topic)
    run(setting, relay, 100, WARM_UP_SECONDS)
    rows = evaluate(*run(setting, relay, 200, SECONDS), 200, {"p50": 10, "p99": 50})
    rows += evaluate(*run(setting, relay, 20, SECONDS), 20, {"p50": 4})
    relay.stop()
    return rows


def run(setting, relay, rate, seconds):
    setting.sink_reset()
    probe = setting.spawn("hop_probe", setting.kafka.brokers, "bench.first", "bench.second",
                          setting.bodies, PROBE_RATE, PROBE_RATE * seconds)
    sent = setting.end(setting.webhooks(relay, rate, rate * seconds))
    hops = setting.end(probe)
    assert sent["refused"] == 0, sent

    def through():
        stats = setting.sink_stats()
        return stats["dispatches"] >= rate * seconds * DOWNSTREAMS and stats
    return wait_for("the sink to have them all", through, 120), hops, sent


def evaluate(stats, hops, sent, rate, bars_ms):
    rows = []
    for name in ("p50", "p99"):
        ours, floor, bar_ms = stats[f"{name}_us"] / 1e3, hops[f"{name}_us"] / 1e3, bars_ms.get(name)
        rows.append(Row(f"webhook → dispatch, {rate}/s × {DOWNSTREAMS}: {name} above two hops",
                        f"≤ {bar_ms} ms" if bar_ms else "",
                        f"{ours - floor:.1f} ms ({ours:.1f}, hops {floor:.1f}, acknowledged "
                        f"{sent[f'{name}_us'] / 1e3:.1f})",
                        ours - floor <= bar_ms if bar_ms else None))
    return rows
