"""The thread of each daemon that follows the topic `allowlist` is no role, and what it does not read changes nothing: only
/healthz tells that it hangs."""
import json
import time

import pytest

from lib.kafka import Kafka
from lib.ports import free_port
from lib.processes import wait_for
from lib.redis_server import redis_server
from lib.relay import Relay, http
from lib.pauses import HeldThread

DAEMONS = ("ingest", "dispatcher", "reporter")
SEEN_MAX_S = 30
PATIENCE_S = 25  # HEALTH_SILENT_MS


@pytest.fixture
def relay(tmp_path):
    """On a broker of its own, which a test may freeze."""
    node = Kafka(tmp_path / "kafka").start()
    with redis_server(tmp_path / "redis") as redis:
        one = Relay(tmp_path, node.brokers, redis)
        one.node = node
        try:
            yield one.start_all()
        finally:
            node.thaw()
            one.stop()
            node.stop()


def health(relay, part):
    status, body = http("GET", relay.url(f"admin_{part}", "/healthz"))
    return status, json.loads(body).get("reasons", [])


def alive_metric(relay, part):
    return relay.metric(part, "crcr_role_healthy", role="allowlist")


@pytest.mark.long  # a Kafka of its own, which is frozen
def test_a_daemon_whose_follower_of_the_allowlist_hangs_says_so_within_30_s(relay):
    for part in DAEMONS:
        assert health(relay, part) == (200, []) and alive_metric(relay, part) == 1
    began = time.monotonic()
    held = [HeldThread(relay.parts[part], "allowlist") for part in DAEMONS]
    try:
        for part in DAEMONS:
            wait_for(f"{part} to be unhealthy", lambda: health(relay, part)[0] == 503,
                     began + SEEN_MAX_S - time.monotonic())
            reason, = health(relay, part)[1]
            assert reason.startswith("allowlist: no sign of life for 2"), reason
            assert alive_metric(relay, part) == 0
    finally:
        for one in held:
            one.let_go()
    for part in DAEMONS:
        wait_for(f"{part} to be healthy again", lambda: health(relay, part)[0] == 200 and alive_metric(relay, part) == 1)


@pytest.mark.long  # likewise
def test_while_kafka_is_unavailable_nobody_is_unhealthy(relay):
    """Neither who has read the list, nor who begins without a broker."""
    relay.node.freeze()
    relay.start("ingest", "late", CRCR_LISTEN=f"127.0.0.1:{free_port()}")
    parts = (*DAEMONS, "late")
    wait_for("late to answer", lambda: health(relay, "late"))
    until = time.monotonic() + PATIENCE_S + 5
    while time.monotonic() < until:
        assert [health(relay, part) for part in parts] == [(200, [])] * len(parts)
        time.sleep(0.5)
    relay.node.thaw()
    for part in parts:
        relay.wait_ready(part)
