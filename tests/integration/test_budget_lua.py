"""common/view/budget.lua against a private redis-server: GitHub's budget as all replicas share it.

Windows are short here: Redis' own clock counts."""
import pathlib
import threading
import time

import pytest

from lib.processes import wait_for
from lib.redis_server import RedisServer

SCRIPT = (pathlib.Path(__file__).resolve().parents[2] / "common" / "view" / "budget.lua").read_text()
KEY = "crcr:budget:org"
LIFE_MS = 100
HOUR_MS = 3_600_000
KEPT = 0.2


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    node = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield node
    node.stop()


@pytest.fixture
def db(server):
    client = server.client()
    client.flushall()
    return client


class Budget:
    """Four buckets as the relay has them; the minute is as long as the test wants."""

    def __init__(self, db, minute_ms=2000, limits=(5000, 900, 80, 500)):
        self.db, self.minute_ms, self.limits = db, minute_ms, limits
        self.script = db.register_script(SCRIPT)

    def ask(self, calls=1, cost=(1, 5, 1, 1), low=False, untold=(0, 0, 0, 0), seen=(-1, 0, 0), limited=0, db=None):
        arguments = [calls, LIFE_MS, int(KEPT * 100) if low else 0, *seen, limited]
        windows = (HOUR_MS, self.minute_ms, self.minute_ms, HOUR_MS)
        for window, limit, price, more in zip(windows, self.limits, cost, untold):
            cap = int(limit * (1 - KEPT)) if low else limit
            arguments += [window, limit, max(cap, price), price if limit else 0, more]
        return self.script(keys=[KEY], args=arguments, client=db)

    @staticmethod
    def told(answer):
        """(calls, wait_ms, bucket or None, what is left)."""
        got, wait_ms, bucket, *left = answer
        return got, wait_ms, bucket - 1 if bucket else None, left

    def take(self, calls=1, **ask):
        return self.told(self.ask(calls, **ask))

    def take_at_once(self, *asks):
        """One after the other, and no time passes between them."""
        together = self.db.pipeline()
        for ask in asks:
            self.ask(db=together, **ask)
        return [self.told(answer) for answer in together.execute()]

    def take_all(self, **ask):
        """All that one who asks until it is refused comes to."""
        total, got = 0, 1
        while got:
            got = self.take(100, **ask)[0]
            total += got
        return total


def test_all_buckets_are_taken_from_or_none(db):
    budget = Budget(db, minute_ms=60_000)
    first, (got, wait_ms, bucket, left) = budget.take_at_once({"calls": 100}, {"calls": 1})
    assert first == (80, 0, None, [4920, 500, 0, 420])
    assert (got, bucket, left) == (0, 2, [4920, 500, 0, 420])
    assert 60_000 <= wait_ms <= 66_100
    assert budget.take(1, cost=(1, 5, 0, 0))[0] == 1, "what needs no content goes on"


def test_the_lower_class_leaves_what_is_kept(db):
    budget = Budget(db, minute_ms=60_000)
    assert budget.take(100, low=True)[0] == 64
    assert budget.take(1, low=True)[0] == 0
    assert budget.take(100)[0] == 16


def test_no_window_holds_more_than_the_limit(db, server):
    """Four replicas take what they can of four windows; then every window is looked at, by Redis's own clock."""
    budget = Budget(db, minute_ms=2000, limits=(0, 0, 40, 0))
    taken, lock, end = [], threading.Lock(), time.monotonic() + 60

    def replica():
        own = server.client()
        while len(taken) < 4 * 40 and time.monotonic() < end:
            both = own.pipeline()
            both.time()
            budget.ask(3, db=both)
            (seconds, micros), answer = both.execute()
            got, wait_ms, _, _ = budget.told(answer)
            with lock:
                taken.extend([seconds * 1_000_000 + micros] * got)
            if not got:
                threading.Event().wait(min(wait_ms / 1000, 0.05))
    replicas = [threading.Thread(target=replica) for _ in range(4)]
    for one in replicas:
        one.start()
    for one in replicas:
        one.join()
    assert len(taken) >= 4 * 40
    worst = max(sum(1 for at in taken if start <= at < start + 2_000_000) for start in taken)
    assert worst == 40, "the limit is used, and never passed"


def refused_for(db):
    """A budget that is used up, and the wait that it tells."""
    budget = Budget(db, minute_ms=1000, limits=(0, 0, 2, 0))
    (got, *_), (_, wait_ms, bucket, _) = budget.take_at_once({"calls": 2}, {"calls": 1})
    assert got == 2 and bucket == 2 and 1000 <= wait_ms <= 1200
    return budget, wait_ms


def test_the_told_wait_is_enough(db):
    budget, wait_ms = refused_for(db)
    threading.Event().wait(wait_ms / 1000)
    assert budget.take(1)[0] == 1


def test_the_told_wait_is_no_longer_than_it_must_be(db):
    start = time.monotonic()
    budget, wait_ms = refused_for(db)
    wait_for("the budget to come back", lambda: budget.take(1)[0] == 1, 30)
    assert (time.monotonic() - start) * 1000 > wait_ms - 150, "it was there before"


def test_a_limit_of_0_is_none(db):
    assert Budget(db, limits=(0, 0, 0, 0)).take(10_000) == (10_000, 0, None, [-1, -1, -1, -1])


def test_what_was_taken_without_redis_is_counted_first(db):
    budget = Budget(db, minute_ms=60_000)
    assert budget.take(100, untold=(70, 350, 70, 70))[0] == 10


def test_what_github_says_is_left_corrects_downwards_within_its_hour(db):
    budget = Budget(db)
    read = (1, 1, 0, 0)
    assert budget.take_all(cost=read, seen=(7, 5000, 60_000)) == 7
    got, wait_ms, bucket, _ = budget.take(1, cost=read, seen=(4990, 5000, 60_000))
    assert (got, bucket) == (0, 0) and 30_000 < wait_ms <= 60_000, "an older answer raises nothing"
    assert budget.take_all(cost=read, seen=(50, 5000, 600_000)) == 50, "the next hour begins anew"
    assert budget.take(1, cost=read, low=True)[0] == 0


def test_the_lower_class_leaves_what_is_kept_of_what_github_says(db):
    budget = Budget(db)
    assert budget.take_all(cost=(1, 1, 0, 0), low=True, seen=(1003, 5000, 60_000)) == 3


def test_what_is_kept_is_a_part_of_githubs_own_limit_when_that_is_lower(db):
    budget = Budget(db, limits=(100_000, 0, 0, 0))
    assert budget.take_all(cost=(1, 1, 0, 0), low=True, seen=(1003, 5000, 60_000)) == 3
    assert budget.take(9, cost=(1, 1, 0, 0))[0] == 9, "asked by one who saw nothing"


def test_what_is_handed_out_at_once_is_a_small_part_of_what_github_says_is_left(db):
    """A call that is not made within its second in a replica's hand is lost until GitHub's next hour."""
    budget = Budget(db)
    read = (1, 1, 0, 0)
    assert budget.take(32, cost=read, seen=(400, 5000, 60_000))[0] == 20
    assert budget.take(32, cost=read)[0] == 19
    assert budget.take(32, cost=read, seen=(39, 5000, 60_000))[0] == 1
    assert budget.take_all(cost=read) == 38, "one by one, all of them"


def test_the_key_goes_when_nothing_in_it_counts(db):
    Budget(db, minute_ms=60_000).take(1)
    assert HOUR_MS < db.pttl(KEY) <= HOUR_MS + 200_000


def test_old_and_foreign_fields_are_dropped(db):
    db.hset(KEY, mapping={"3:1": 80, "nonsense": 1, "9:5": 3})
    assert Budget(db).take(80)[0] == 80
    assert not {"3:1", "nonsense", "9:5"} & set(db.hgetall(KEY))


def test_a_clock_that_went_back_forgets_nothing(db):
    ahead = int(time.time() * 1000) // 3000 + 3
    db.hset(KEY, f"3:{ahead}", 80)
    assert Budget(db, minute_ms=60_000).take(1)[0] == 0


def test_a_limit_that_github_told_one_of_us_holds_for_all_and_no_longer(db):
    budget = Budget(db, minute_ms=60_000)
    nothing = {"calls": 0, "cost": (0, 0, 0, 0)}
    first, second, third = budget.take_at_once({**nothing, "limited": 700}, {**nothing, "limited": 100}, {"calls": 5})
    got, wait_ms, bucket, left = first
    assert (got, bucket) == (0, None) and 600 <= wait_ms <= 700 and left == [5000, 900, 80, 500]
    assert second[1] > 500, "a shorter one shortens nothing"
    got, wait_ms, bucket, left = third
    assert (got, bucket) == (0, None) and 0 < wait_ms <= 700
    assert left == [5000, 900, 80, 500], "nothing is taken"
    assert db.pttl(KEY) > HOUR_MS
    wait_for("its end", lambda: budget.take(5)[0] == 5)


def test_a_limit_does_not_hide_a_bucket_that_is_used_up_for_longer(db):
    budget = Budget(db, minute_ms=60_000)
    budget.take_all()
    got, wait_ms, bucket, _ = budget.take(1, limited=5000)
    assert got == 0 and bucket == 2 and wait_ms > 50_000
    got, wait_ms, bucket, _ = budget.take(1, limited=3 * HOUR_MS)
    assert (got, bucket) == (0, None) and db.pttl(KEY) > 2.9 * HOUR_MS
