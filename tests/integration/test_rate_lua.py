"""common/view/rate.lua, the buckets that all replicas of ingest share, against a private redis-server."""
import pathlib

import pytest

from lib.processes import wait_for
from lib.redis_server import RedisServer

SCRIPT = (pathlib.Path(__file__).resolve().parents[2] / "common" / "view" / "rate.lua").read_text()
KEY, MIB = "crcr:rate:org/a", 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    one = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield one.client()
    one.stop()


@pytest.fixture
def db(server):
    server.flushall()
    return server


def ask(db, size=1000, requests=6, total=20 * MIB, day=0, key=KEY):
    """Rates a minute, in buckets of ten minutes' worth: (seconds to wait, whether it is for the day's quota)."""
    seconds, is_day = db.eval(SCRIPT, 1, key, size, 10 * requests, 10 * total, 600, day)
    return seconds, bool(is_day)


def take(db, **options):
    seconds, is_day = ask(db, **options)
    assert not is_day
    return seconds


def now_us(db):
    seconds, us = db.time()
    return int(seconds) * 1_000_000 + int(us)


def test_ten_minutes_worth_of_requests_may_come_at_once(db):
    assert [take(db) for _ in range(60)] == [0] * 60
    assert 8 <= take(db) <= 10
    assert 595 <= db.ttl(KEY) <= 600


def test_ten_minutes_worth_of_bytes_may_come_at_once(db):
    assert take(db, size=190 * MIB, requests=100) == 0
    assert 28 <= take(db, size=20 * MIB, requests=100) <= 30
    assert take(db, size=9 * MIB, requests=100) == 0  # a smaller one still fits


def test_refused_calls_take_nothing(db):
    for _ in range(60):
        take(db)
    before = db.hgetall(KEY)
    assert all(take(db) > 0 for _ in range(50))
    assert db.hgetall(KEY) == before


def test_it_is_refilled_by_the_rate(db):
    for ago_s, passing in ((60, 6), (30, 3), (0, 0)):  # empty so long ago
        db.hset(KEY, mapping={"requests_full_us": now_us(db) + (600 - ago_s) * 1_000_000, "bytes_full_us": 0})
        assert [take(db) for _ in range(passing)] == [0] * passing
        assert 1 <= take(db) <= 10, ago_s


def test_an_expired_bucket_is_a_full_one(db):
    take(db)
    assert 9 <= db.ttl(KEY) <= 11  # one request of six a minute


def test_one_repository_says_nothing_of_another(db):
    for _ in range(61):
        take(db)
    assert take(db, key="crcr:rate:org/b") == 0


def day_left_s(db):
    return 86_400 - now_us(db) / 1e6 % 86_400


def test_a_day_has_a_quota_of_bytes(db):
    if day_left_s(db) < 5:  # the day would change in the middle
        wait_for("the next day", lambda: day_left_s(db) > 5)
    assert ask(db, size=9 * MIB, day=10 * MIB) == (0, False)
    assert day_left_s(db) + 598 <= db.ttl(KEY) <= day_left_s(db) + 602, "the buckets of the day's last moment count until they are full"
    assert ask(db, size=MIB, day=10 * MIB) == (0, False)
    before = db.hgetall(KEY)
    seconds, is_day = ask(db, size=1, day=10 * MIB)
    assert is_day and 0 <= seconds - day_left_s(db) <= 2
    assert db.hgetall(KEY) == before
    assert ask(db, size=10 * MIB, day=10 * MIB, key="crcr:rate:org/b") == (0, False)
    db.hincrby(KEY, "day", -1)  # it was yesterday
    assert ask(db, size=10 * MIB, day=10 * MIB) == (0, False)
