"""What waits for a downstream of an account whose breaker is open: its probes, and how it comes back."""
import time

import pytest

from lib.processes import wait_for

BROKEN = "org-broken/backend"
PROBE_S = 30


def start_broken(own, count):
    """A bench whose only downstream answers 500; its breaker is open, and so many pull requests wait for it."""
    bench = own(allowlist=f"L1: [{BROKEN}]\n")
    bench.script({"path": "*/dispatches", "repo": BROKEN, "status": 500})
    numbers = [next(bench.numbers) for _ in range(count)]
    for number in numbers:
        bench.pull_request(number)
    bench.start().ready()
    wait_for("the breaker to open", lambda: bench.metric("crcr_breaker_open", account=BROKEN.split("/")[0]) == 1)
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
    wait_for("the breaker to be shown closed", lambda: bench.metric("crcr_breaker_open", account=BROKEN.split("/")[0]) == 0, 5)


@pytest.mark.long
def test_many_that_wait_come_back_ever_more_rarely_and_all_go_out_once_it_answers(own):
    """Each return is written twice and published once: all of them every few seconds would be thousands of records."""
    many, measured_s = 300, 80
    bench, _, opened = start_broken(own, many)

    def waits():
        return bench.metric("crcr_dispatch_outcomes_total", outcome="waiting")
    wait_for("each to wait", lambda: waits() >= many, PROBE_S - 5)
    assert waits() <= many + 5
    time.sleep(max(0.0, opened + measured_s - time.monotonic()))  # the length of the measurement
    assert many * 1.5 < waits() < many * 3.2, waits()
    bench.clear_script()
    healed = time.monotonic()
    wait_for("all of them", lambda: len(bench.dispatches(repo=BROKEN)) >= many, 240)
    assert time.monotonic() - healed < 1.5 * (measured_s + PROBE_S) + 30
