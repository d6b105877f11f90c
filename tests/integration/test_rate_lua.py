"""common/view/rate.lua, the buckets that all replicas of ingest share, against a private redis-server."""
import pathlib

import pytest

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


def take(db, size=1000, requests=6, total=20 * MIB):
    return db.eval(SCRIPT, 1, KEY, size, requests, total)


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
    assert db.eval(SCRIPT, 1, "crcr:rate:org/b", 1000, 6, 20 * MIB) == 0
