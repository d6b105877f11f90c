"""`crcrctl rebuild-hud` against a real Redis; the test plays the reporter that holds the lease."""
import secrets
import socket
import time

import pytest

from lib.ctl import Ctl
from lib.processes import BIN, Process, wait_for
from lib.redis_server import client_of, redis_server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with redis_server(tmp_path_factory.mktemp("redis")) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def topics(kafka_node):
    return Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.").create_topics()


@pytest.fixture
def redis(server, topics):
    client = client_of(server, topics.prefix)
    client.flushall()
    return client


@pytest.fixture
def ctl(server, topics):
    one = Ctl(topics.brokers, topics.prefix)
    one.rebuild = lambda *arguments, expect=0, **more: one(
        "rebuild-hud", *arguments, expect=expect, **{"REDIS_ENDPOINT": server, **more})
    return one


def hold(redis, done=50, total=100, for_ms=60000):
    redis.hset("crcr:rebuild", mapping={"state": "running", "owner": "host-1", "phase": "callbacks", "fence": 7,
                                        "until_ms": int(time.time() * 1000) + for_ms, "done": done, "total": total})


def finish(redis, done):
    redis.hset("crcr:rebuild", mapping={"state": "done", "until_ms": 0, "done": done})
    redis.set("crcr:epoch", 7)  # last: who sees it reads the rest


def test_the_epoch_is_taken_away_and_a_rebuild_wanted(ctl, redis):
    redis.set("crcr:epoch", 5)
    assert "will be rebuilt" in ctl.rebuild().stdout
    assert redis.get("crcr:epoch") is None and redis.hget("crcr:rebuild", "state") == "wanted"


def test_who_wanted_it_is_noted_first(ctl, redis):
    before = {one.key for one in ctl.read("audit")}
    ctl.rebuild("--status", expect=1)
    ctl.rebuild("--reason", "rows are missing")
    began, ended = [one for one in ctl.read("audit") if one.key not in before]
    assert began.headers["verb"] == "rebuild-hud" and began.headers["reason"] == "rows are missing"
    assert ended.headers["exit_code"] == "0" and ended.headers["who"].endswith(f"@{socket.gethostname()}")
    redis.set("crcr:epoch", 5)
    assert "KAFKA_BROKERS is not set" in ctl.rebuild(expect=2, KAFKA_BROKERS="").stderr
    assert "nothing was done" in ctl.rebuild(expect=3, KAFKA_BROKERS="127.0.0.1:1").stderr
    assert redis.get("crcr:epoch") == "5"


def test_wait_follows_until_it_is_whole(ctl, redis, server, tmp_path):
    redis.set("crcr:epoch", 5)
    process = Process("rebuild-hud", [BIN / "crcrctl", "rebuild-hud", "--wait"], tmp_path,
                      ctl.environment(REDIS_ENDPOINT=server))
    wait_for("the epoch to be dropped", lambda: redis.get("crcr:epoch") is None)
    hold(redis)
    process.wait_text("crcrctl rebuild-hud: rebuilding … callbacks, 50 of 100 records\n")
    assert process.running()
    finish(redis, 123)
    assert process.popen.wait(60) == 0
    assert "the view is consistent: 123 records" in process.text()


def test_a_rebuild_that_is_under_way_is_left_alone(ctl, redis):
    hold(redis)
    assert "under way already: callbacks, 50 of 100 records" in ctl.rebuild().stdout
    assert redis.hget("crcr:rebuild", "state") == "running" and redis.hget("crcr:rebuild", "fence") == "7"


def test_a_lease_that_ran_out_is_no_rebuild_under_way(ctl, redis):
    """Its reporter was killed."""
    hold(redis, for_ms=-1)
    assert "not consistent yet (nobody rebuilds it" in ctl.rebuild("--status", expect=1).stderr
    assert "will be rebuilt" in ctl.rebuild().stdout


def test_what_is_not_whole_in_time_is_exit_1_and_says_where_it_stands(ctl, redis):
    done = ctl.rebuild("--wait", "--timeout", "1s", expect=1)
    assert "not consistent yet (nobody rebuilds it" in done.stderr
    hold(redis)
    assert "not consistent yet (callbacks, 50 of 100" in ctl.rebuild("--wait", "--timeout", "1s", expect=1).stderr


def test_status_takes_nothing_away(ctl, redis):
    redis.set("crcr:epoch", 5)
    assert "the view is consistent" in ctl.rebuild("--status").stdout
    assert redis.get("crcr:epoch") == "5"
    redis.delete("crcr:epoch")
    assert "not consistent yet" in ctl.rebuild("--status", expect=1).stderr


def test_a_redis_that_does_not_answer_is_exit_3(ctl):
    assert ctl.rebuild(expect=3, REDIS_ENDPOINT="127.0.0.1:1").stderr.strip()


def test_wait_tells_once_that_redis_does_not_answer(ctl):
    said = ctl.rebuild("--status", "--wait", "--timeout", "2s", expect=3, REDIS_ENDPOINT="127.0.0.1:1").stderr
    assert said.count("; waiting for it\n") == 1, said


@pytest.mark.parametrize("arguments", (["more"], ["--timeout", "soon"], ["--nonsense"]), ids=" ".join)
def test_wrong_arguments_are_exit_2(ctl, arguments):
    assert ctl.rebuild(*arguments, expect=2).stderr.strip()


def test_without_an_endpoint_it_says_what_is_missing(ctl):
    assert "REDIS_ENDPOINT" in ctl.rebuild(expect=2, REDIS_ENDPOINT="").stderr
