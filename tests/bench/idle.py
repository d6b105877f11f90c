"""CPU of all daemons while nothing happens."""
import time

from memory import ALLOWLIST, DAEMONS
from setting import Cpu, Row

SETTLE_S, SECONDS = 10, 60
BAR = 0.025  # of a core


def measure(setting, _):
    relay = setting.relay(ALLOWLIST)
    for part in DAEMONS:
        relay.start(part)
    for part in DAEMONS:
        relay.wait_ready(part)
    time.sleep(SETTLE_S)
    with Cpu(*(relay.parts[part].pid for part in DAEMONS)) as cpu:
        time.sleep(SECONDS)
    relay.stop()
    shares = [us / 1e6 / SECONDS for us in cpu.us]
    return [Row("idle, all daemons", f"≤ {BAR:.1%} of a core", f"{sum(shares):.1%} (" + ", ".join(
        f"{part} {share:.1%}" for part, share in zip(DAEMONS, shares)) + ")", sum(shares) <= BAR)]
