"""Record in, repository_dispatch out: against a bare curl-multi loop with the same bodies and sink, and against bare_chain, which
reads the same records and writes outcomes too."""
import json

from lib.processes import wait_for
from setting import Cpu, Row, cpu_us

EVENTS, DOWNSTREAMS = 1000, 12
IN_FLIGHT = 64  # as many calls as a sender has under way at most
ALLOWLIST = "L1: [" + ", ".join(f"bench/r{i}" for i in range(DOWNSTREAMS)) + "]\n"


def measure(setting, _):
    relay = setting.relay(ALLOWLIST)
    dispatches = EVENTS * DOWNSTREAMS
    setting.drive("produce_loop", setting.kafka.brokers, relay.topic("events"), setting.bodies,
                  EVENTS)
    router_us = route(setting, relay, dispatches)
    bare, chain = curl_loop(setting, dispatches), bare_chain(setting, relay, dispatches)
    setting.sink_reset()
    relay.start("dispatcher", CRCR_ROLES="l1")
    sender = relay.parts["dispatcher"].pid
    with Cpu(setting.redis.process.pid) as redis:
        stats = wait_for("the sink to have them all", lambda: all_sent(setting, dispatches), 120)
    sender_us = cpu_us(sender) / dispatches
    relay.parts["dispatcher"].stop()
    by_cpu = bare["cpu_us"] / sender_us
    by_rate = dispatches / stats["seconds"] / bare["rate"]
    calls = stats["calls"] / stats["dispatches"]
    return [
        Row("sender: CPU, against a bare curl-multi loop", "≥ 0.5 ×",
            f"{by_cpu:.2f} × ({sender_us:.0f} µs a dispatch, curl {bare['cpu_us']:.0f} µs; Redis "
            f"{redis.us[0] / dispatches:.0f} µs)", by_cpu >= 0.5),
        Row("sender: CPU, against bare_chain (read, POST, outcome)", "",
            f"{chain['cpu_us'] / sender_us:.2f} × ({sender_us:.0f} µs a dispatch, bare_chain {chain['cpu_us']:.0f} µs)"),
        Row("sender: rate, against a bare curl-multi loop", "",
            f"{by_rate:.2f} × ({dispatches / stats['seconds']:,.0f}/s, {bare['rate']:,.0f}/s)"),
        Row("sender: GitHub calls a dispatch", "≤ 1.05", f"{calls:.3f}", calls <= 1.05),
        Row("router: CPU a dispatch", "", f"{router_us:.0f} µs"),
    ]


def route(setting, relay, dispatches):
    """Events to tasks; the CPU of one task."""
    relay.start("dispatcher", CRCR_ROLES="router")
    relay.wait_ready("dispatcher")
    wait_for("the router to be through",
             lambda: relay.metric("dispatcher", "crcr_tasks_total") >= dispatches, 60)
    used_us = cpu_us(relay.parts["dispatcher"].pid)
    relay.parts["dispatcher"].stop()
    return used_us / dispatches


def curl_loop(setting, count):
    file = setting.folder / "dispatches"
    with open(file, "w") as out:
        for line in setting.bodies.read_text().splitlines():
            head = {"event_type": "pull_request", "delivery_id": "bare", "callback_token": "x" * 300}
            out.write('{"event_type":"pull_request","client_payload":'
                      + json.dumps(head)[:-1] + ',"payload":' + line + "}}\n")
    run = setting.drive("curl_loop",
                        f"http://127.0.0.1:{setting.sink_port}/repos/bench/r0/dispatches", file,
                        count, IN_FLIGHT)
    return {"cpu_us": run["cpu_us"] / count, "rate": count / run["seconds"]}


def bare_chain(setting, relay, count, under=(), per_record=DOWNSTREAMS):
    """Reads what the router wrote for l1, as many calls a record, into a topic of its own."""
    topic = f"bench.{relay.prefix}outcomes"
    if not setting.stored_bytes(topic):
        setting.make_topic(topic, 12)
    run = setting.drive("bare_chain", setting.kafka.brokers, relay.topic("dispatch.l1"), topic,
                        f"http://127.0.0.1:{setting.sink_port}/repos/bench/r0/dispatches", count, IN_FLIGHT, per_record, under=under)
    return {"cpu_us": run["cpu_us"] / count}


def all_sent(setting, count):
    stats = setting.sink_stats()
    return stats["dispatches"] >= count and stats
