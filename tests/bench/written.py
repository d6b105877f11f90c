"""What an event costs in Kafka: the bytes that the broker stores of it in each topic, by how many downstreams it is for."""
from lib.processes import wait_for
from setting import Row

SIZES = ((1, 50), (12, 50), (100, 20), (1000, 4))  # downstreams, events


DELAYS = ("delay.10s", "delay.1m", "delay.10m", "delay.1h")


def measure(setting, _):
    return [row(setting, downstreams, events) for downstreams, events in SIZES] + [parked(setting, 1000, 4)]


def parked(setting, downstreams, events):
    """Our own budget lets next to none go; all others are put off, each to a moment of its own."""
    relay = setting.relay("L1: [" + ", ".join(f"bench/r{i}" for i in range(downstreams)) + "]\n",
                          CRCR_BUDGET_SCOPE="app", CRCR_BUDGET_POINTS_MINUTE="20")
    setting.drive("produce_loop", setting.kafka.brokers, relay.topic("events"), setting.bodies, events)
    relay.start("dispatcher", CRCR_ROLES="router,l1")
    wait_for("each to be put off", lambda: relay.metric("dispatcher", "crcr_dispatch_outcomes_total", outcome="waiting")
             >= events * downstreams - 10 and relay.metric("dispatcher", "crcr_tasks_in_hand") == 0, 120)
    relay.stop()
    kb = sum(setting.stored_bytes(relay.topic(name)) for name in DELAYS) / events / 1000
    return Row(f"Kafka: KB parked of an event of 24 KB for {downstreams:,}", "", f"delay.* {kb:,.1f}")


def row(setting, downstreams, events):
    relay = setting.relay("L1: [" + ", ".join(f"bench/r{i}" for i in range(downstreams)) + "]\n")
    setting.drive("produce_loop", setting.kafka.brokers, relay.topic("events"), setting.bodies, events)
    setting.sink_reset()
    relay.start("dispatcher", CRCR_ROLES="router,l1")
    wait_for("each downstream to be called", lambda: setting.sink_stats()["dispatches"] >= events * downstreams, 120)
    wait_for("each outcome to be written", lambda: relay.metric(
        "dispatcher", "crcr_dispatch_outcomes_total", outcome="dispatched") >= events * downstreams, 60)
    relay.stop()
    sizes = {name: setting.stored_bytes(relay.topic(name)) / events / 1000 for name in ("events", "dispatch.l1", "dispatches")}
    return Row(f"Kafka: KB stored an event of 24 KB for {downstreams:,}", "",
               ", ".join(f"{name} {kb:,.1f}" for name, kb in sizes.items()))
