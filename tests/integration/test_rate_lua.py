"""common/view/rate.lua, the limiter that all replicas of ingest share, against a private redis-server."""
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


def take(db, size=1000, requests=3, total=20 * MIB):
    return db.eval(SCRIPT, 1, KEY, size, requests, total)


def slot_of(db):
    return int(db.time()[0]) // 5


def test_no_more_than_so_many_requests_in_any_60_s(db):
    assert [take(db) for _ in range(3)] == [0, 0, 0]
    assert 55 <= take(db) <= 65
    assert 60 <= db.ttl(KEY) <= 65


def test_no_more_than_so_many_bytes_in_any_60_s(db):
    assert take(db, size=12 * MIB, requests=100) == 0
    assert 55 <= take(db, size=9 * MIB, requests=100) <= 65
    assert take(db, size=8 * MIB, requests=100) == 0  # a smaller one still fits


def test_refused_calls_are_not_counted(db):
    for _ in range(3):
        take(db)
    before = db.hgetall(KEY)
    assert all(take(db) > 0 for _ in range(50))
    assert db.hgetall(KEY) == before


def test_what_is_60_s_old_makes_room_again(db):
    now = slot_of(db)
    db.hset(KEY, mapping={f"n{now - 13}": 3, f"b{now - 13}": 100})
    assert take(db) == 0
    db.delete(KEY)
    db.hset(KEY, mapping={f"n{now - 11}": 3, f"b{now - 11}": 100})
    assert 1 <= take(db) <= 15  # until the oldest slot has left


def test_one_repository_says_nothing_of_another(db):
    for _ in range(4):
        take(db)
    assert db.eval(SCRIPT, 1, "crcr:rate:org/b", 1000, 3, 20 * MIB) == 0
