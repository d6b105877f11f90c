"""What waits for a downstream whose breaker is open: its probes, and how it comes back."""
import time

import pytest

from lib.processes import wait_for

BROKEN = "org-broken/backend"
PROBE_S = 30


def start_broken(own, count):
    """A bench whose only downstream answers 500; its breaker is open, and so many pull requests wait for it."""
    bench = own(allowlist=f"L1: [{BROKEN}]\n").start().ready()
    bench.script({"path": "*/dispatches", "repo": BROKEN, "status": 500})
    numbers = [next(bench.numbers) for _ in range(count)]
    for number in numbers:
        bench.pull_request(number)
    wait_for("the breaker to open", lambda: bench.metric("crcr_breaker_open", repo=BROKEN) == 1)
    return bench, numbers, time.monotonic()


@pytest.mark.long
def test_a_probe_that_needs_no_call_leaves_its_place_to_the_next_task(own):
    bench, numbers, opened = start_broken(own, 30)
    for number in numbers:  # a later state of each was sent, as far as Redis knows
        bench.redis.set(f"crcr:seq:{BROKEN}|pytorch/pytorch#{number}", "99999999999999:0:0")
    wanted = bench.pull_request()
    bench.wait_outcome(wanted, BROKEN, "waiting")
    bench.clear_script()
    bench.wait_outcome(wanted, BROKEN, "dispatched", timeout=120)
    assert PROBE_S - 2 < time.monotonic() - opened < 2 * PROBE_S - 5
    overtaken = bench.pairs(lambda one: one["outcome"] == "superseded")
    assert len(overtaken) > 5  # else the probe was the wanted one by chance
    assert bench.metric("crcr_breaker_open", repo=BROKEN) == 0
