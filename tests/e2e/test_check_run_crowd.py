"""One pull request that is pushed to all the time, or closed and reopened, and three hundred at once: with GitHub's own
limits the required check of an honest pull request comes as on a quiet day, and nothing is searched in vain."""
import collections
import hashlib
import time

import pytest

from lib.downstream import post
from lib.processes import wait_for
from lib.relay import pull_request

L4S = ["org-four/backend", "org-five/backend"]
ALLOWLIST = "L4:\n" + "".join(f"  - {repo}: carol\n" for repo in L4S) + "L2:\n  - org-two/backend: bob\n"
LIMITS = {"CRCR_BUDGET_REQUESTS_HOUR": "5000", "CRCR_BUDGET_POINTS_MINUTE": "900",
          "CRCR_BUDGET_CONTENT_MINUTE": "80", "CRCR_BUDGET_CONTENT_HOUR": "500"}  # as they are by default


def at(second):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_790_000_000 + second))


def sha_of(text):
    return hashlib.sha1(text.encode()).hexdigest()


@pytest.fixture
def crowd(fresh_relay):
    """Two L4 back ends, of two jobs each that take a second."""
    relay = fresh_relay(allowlist=ALLOWLIST, environment={"RATE_LIMIT_PER_MIN": "10000", **LIMITS})
    relay.start_github()
    post(relay, "/_sim/downstreams", {"repo": "*", "workflow": "ci", "after_ms": 50, "jobs": [
        {"name": name, "delay_ms": 20, "run_ms": 1000} for name in ("build", "test")]})
    for part in ("ingest", "dispatcher", "reporter"):
        relay.start(part)
    for part in ("ingest", "dispatcher", "reporter"):
        relay.wait_ready(part)
    return relay


def aggregates(relay, sha):
    return {run["name"] for run in relay.state()["check_runs"] if run["head_sha"] == sha
            and run["name"] in {f"crcr/{repo}" for repo in L4S} and run["status"] == "completed"}


def seconds_to_aggregates(relay, number):
    """From the webhook to the end of both aggregates."""
    sha, began = sha_of(f"honest {number}"), time.monotonic()
    assert relay.deliver(pull_request(number=number, sha=sha))[0] == 202
    wait_for("the aggregates", lambda: len(aggregates(relay, sha)) == len(L4S), 120)
    return time.monotonic() - began


def in_vain(relay):
    """How many searches were followed by no creation."""
    calls = collections.Counter(one["method"] for one in relay.requests() if one["path"].endswith("/check-runs"))
    return calls["GET"] - calls["POST"]


def pushes(relay):
    """A new head every half second."""
    for n in range(60):
        began = time.monotonic()
        action = "synchronize" if n else "opened"
        assert relay.deliver(pull_request(action, 1, sha_of(f"push {n}"), updated_at=at(n)))[0] == 202
        time.sleep(max(0, 0.5 - (time.monotonic() - began)))


def reopens(relay):
    for n in range(400):
        for k, action in enumerate(("closed", "reopened")):
            assert relay.deliver(pull_request(action, 1, updated_at=at(2 * n + k)))[0] == 202


@pytest.mark.parametrize("attack", [pushes, pytest.param(reopens, marks=pytest.mark.long)])
def test_one_busy_pull_request_holds_up_no_required_check_of_another(crowd, attack):
    quiet = seconds_to_aggregates(crowd, 100)
    attack(crowd)
    slow = [seconds_to_aggregates(crowd, number) for number in range(101, 104)]
    print(f"flood: {attack.__name__}: aggregates after {quiet:.1f} s when quiet, then {[round(one, 1) for one in slow]}")
    assert max(slow) <= 1.5 * quiet + 1
    assert in_vain(crowd) <= 2, "a creation is on its way after each search"


@pytest.mark.long
def test_of_three_hundred_pull_requests_the_required_checks_go_first_and_nothing_is_searched_in_vain(crowd):
    began = time.monotonic()
    for n in range(300):
        assert crowd.deliver(pull_request(number=1000 + n, sha=sha_of(f"crowd {n}")))[0] == 202
        time.sleep(max(0, n / 30 - (time.monotonic() - began)))
    time.sleep(20)
    made = [one for one in crowd.requests() if one["method"] == "POST" and one["path"].endswith("/check-runs")]
    required = sum(one["body"]["name"].count("/") == 2 for one in made)
    elapsed = time.monotonic() - began
    room = 20 + elapsed * 60 / 64  # of 80 a minute: a quarter at once, the rest evenly
    print(f"flood: crowd: {required} aggregates and {len(made) - required} jobs in {elapsed:.0f} s, of {room:.0f}; "
          f"searched in vain: {in_vain(crowd)}")
    assert len(made) <= room + 3 and len(made) >= 0.9 * room
    assert required >= 0.5 * len(made)
    assert all(one["status"] < 400 for one in made)
    assert in_vain(crowd) <= 8, "a creation is on its way after each search"
