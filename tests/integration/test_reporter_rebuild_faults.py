"""What goes wrong around a rebuild of the view: nothing is said or folded meanwhile that a consistent view
would contradict, and it comes to its end all the same."""
import concurrent.futures
import contextlib
import os
import signal
import time

import pytest

from lib.kafka import Kafka
from lib.processes import wait_for
from lib.relay import http
from lib.pauses import go_on, stand_still
from rebuilding import Rebuilding, differences, dump
from test_reporter import Job, wait_idle


@pytest.fixture(scope="module")
def loaded(kafka_node, tmp_path_factory):
    """One that has enough to rebuild that something can happen meanwhile."""
    one = Rebuilding(tmp_path_factory.mktemp("loaded"), kafka_node.brokers)
    try:
        one.load(2000)
        wait_for("all to be folded", lambda: one.client().zcard("crcr:repo:org/two") == 1000
                 and one.relay.metric("reporter", "crcr_facts_total", kind="callback") >= 4000, 120)
        wait_idle(one)
        one.before = dump(one.client())
        yield one
    finally:
        one.close()


@pytest.fixture
def fresh(loaded):
    """It runs, alone, with the view as it was when it had folded everything."""
    if not loaded.relay.parts["reporter"].running():
        loaded.start()
    loaded.wait_consistent()
    loaded.relay.wait_ready("reporter", 120)
    return loaded


@pytest.mark.long
def test_nothing_is_folded_shown_or_reconciled_until_the_view_is_consistent(fresh):
    """Another holds the lease, and is slow."""
    client = fresh.client()
    hold = {"state": "running", "owner": "another", "fence": str(1 << 52),
            "until_ms": str(int(time.time() * 1000) + 3_600_000)}
    pipe = client.pipeline(transaction=True)
    pipe.flushall()
    pipe.hset("crcr:rebuild", mapping=hold)
    pipe.execute()
    try:
        job = Job(fresh).call("in_progress", 1000).call("completed", 2000, conclusion="success")
        fresh.put("reconcile", f"{job.sha}/org/four", b"dirty")
        wait_for("the fold to say so", lambda: b"rebuilt" in http(
            "GET", fresh.relay.url("admin_reporter", "/readyz"))[1])
        wait_for("the reconciler to wait", lambda: fresh.said("check_runs_waiting"))
        status, body = http("GET", fresh.relay.url("hud", "/api/crcr/summary"))
        assert status == 503 and b"the view is being rebuilt" in body
        wait_for("the metric", lambda: fresh.relay.metric("reporter", "crcr_view_consistent") == 0)
        assert client.keys("*") == ["crcr:rebuild"]
        assert http("GET", fresh.relay.url("admin_reporter", "/healthz"))[0] == 200
    finally:
        client.hset("crcr:rebuild", "until_ms", "1")  # it died
    fresh.wait_consistent()
    job.wait_check()
    fresh.relay.wait_ready("reporter", 120)
    assert job.wait_result()["conclusion"] == "success"


@contextlib.contextmanager
def in_the_middle(one):
    """All is lost, and some of it is there again, not all. Gives the reporters, which stand still; those that are still on
    the list at the end of the block go on."""
    for _ in range(10):
        one.flush()
        wait_for("the middle of the rebuild", lambda: one.client().dbsize() > 200, 60, 0.01)
        paused = [process for process in map(one.relay.parts.get, ("reporter", "second")) if process and process.running()]
        for process in paused:
            stand_still(process)
        if not one.whole():
            break
        for process in paused:  # this machine looked too late
            go_on(process)
    assert not one.whole(), "it is whole each time before it can be stopped"
    try:
        yield paused
    finally:
        for process in paused:
            if process.running():
                go_on(process)


def view_of_load(one):
    return {key: value for key, value in dump(one.client()).items() if "load-" in key}


def load_before(one):
    return {key: value for key, value in one.before.items() if "load-" in key}


@pytest.mark.long
def test_killed_in_the_middle_another_run_ends_the_rebuild(fresh):
    with in_the_middle(fresh):
        fresh.relay.parts["reporter"].kill()
    assert not fresh.whole()
    fresh.start()  # not ready before the view is consistent
    assert differences(load_before(fresh), view_of_load(fresh)) == {}


@pytest.mark.long
def test_sigterm_in_the_middle_gives_the_lease_back(fresh):
    process = fresh.relay.parts["reporter"]
    with in_the_middle(fresh):
        process.signal(signal.SIGTERM)
    assert process.popen.wait(25) == 0
    assert fresh.client().hget("crcr:rebuild", "state") == "waiting"
    assert not fresh.whole()
    fresh.start()
    assert differences(load_before(fresh), view_of_load(fresh)) == {}


@pytest.mark.long
def test_one_of_two_replicas_rebuilds_and_the_other_takes_over_when_it_dies(fresh):
    fresh.relay.start("reporter", "second", CRCR_HUD_LISTEN="127.0.0.1:0")
    try:
        fresh.relay.wait_ready("second")
        with in_the_middle(fresh):
            owner = fresh.client().hget("crcr:rebuild", "owner")
            parts = {str(fresh.relay.parts[name].pid): name for name in ("reporter", "second")}
            [worker] = [name for pid, name in parts.items() if f"-{pid}-" in owner]
            [other] = set(parts.values()) - {worker}
            fresh.relay.parts[worker].kill()
        fresh.wait_consistent(150)
        wait_for("it to say so", lambda: fresh.said("rebuild_elsewhere", other) and fresh.said("rebuild_done", other))
        assert differences(load_before(fresh), view_of_load(fresh)) == {}
    finally:
        fresh.relay.parts["second"].stop()


@pytest.mark.long
def test_a_stalled_rebuilder_does_not_set_the_epoch_when_it_wakes(fresh):
    fresh.relay.start("reporter", "second", CRCR_HUD_LISTEN="127.0.0.1:0")
    try:
        fresh.relay.wait_ready("second")
        with in_the_middle(fresh) as paused:
            owner = fresh.client().hget("crcr:rebuild", "owner")
            [worker] = [name for name in ("reporter", "second")
                        if f"-{fresh.relay.parts[name].pid}-" in owner]
            paused.remove(fresh.relay.parts[worker])
        try:
            fresh.wait_consistent(150)
            epoch = fresh.client().get("crcr:epoch")
        finally:
            go_on(fresh.relay.parts[worker])
        wait_for("the late one to notice", lambda: fresh.said("rebuild_abandoned", worker))
        assert fresh.client().get("crcr:epoch") == epoch
        assert differences(load_before(fresh), view_of_load(fresh)) == {}
    finally:
        fresh.relay.parts["second"].stop()


@pytest.mark.long
def test_flushed_again_in_the_middle_it_begins_anew(fresh):
    given_up = len(fresh.said("rebuild_abandoned"))
    with in_the_middle(fresh):
        fresh.flush()
    fresh.wait_consistent()
    assert fresh.said("rebuild_abandoned")[given_up:]
    assert differences(load_before(fresh), view_of_load(fresh)) == {}


@pytest.mark.long
def test_flushed_under_load_nothing_is_lost(fresh):
    before = fresh.relay.metric("reporter", "crcr_facts_total", kind="callback")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        writing = pool.submit(fresh.load, 600, "storm")
        for _ in range(2):
            wait_for("some to be folded", lambda: fresh.whole() and fresh.relay.metric(
                "reporter", "crcr_facts_total", kind="callback") > before + 100)
            fresh.flush()
            fresh.wait_consistent()
        writing.result()
    wait_idle(fresh)
    storm = {key: value for key, value in dump(fresh.client()).items() if "storm-" in key}
    jobs = [value[1] for key, value in storm.items() if key.startswith("crcr:job:")]
    assert len(jobs) == 600
    assert {(job["status"], job["conclusion"]) for job in jobs} == {("completed", "success")}
    fresh.flush()
    fresh.wait_consistent()
    assert differences(storm, {key: value for key, value in dump(fresh.client()).items()
                               if "storm-" in key}) == {}


def test_a_restart_with_an_empty_redis_is_noticed_and_mended(fresh):
    fresh.redis.stop()
    fresh.redis.start()
    job = Job(fresh).call("completed", 2000, conclusion="success")
    fresh.wait_consistent()
    assert job.wait_check()[0]["conclusion"] == "success"
    assert differences(load_before(fresh), view_of_load(fresh)) == {}


@pytest.mark.long
def test_redis_unavailable_in_the_middle_is_waited_for(fresh):
    given_up = len(fresh.said("rebuild_abandoned"))
    with in_the_middle(fresh):
        os.kill(fresh.redis.process.pid, signal.SIGSTOP)
    try:
        wait_for("it to be noticed", lambda: fresh.said("rebuild_abandoned")[given_up:])
        wait_for("it to be said", lambda: http(
            "GET", fresh.relay.url("admin_reporter", "/readyz"))[0] == 503)
    finally:
        os.kill(fresh.redis.process.pid, signal.SIGCONT)
    fresh.wait_consistent()
    fresh.relay.wait_ready("reporter", 120)
    assert differences(load_before(fresh), view_of_load(fresh)) == {}


def test_a_redis_that_takes_no_writes_is_waited_for(fresh):
    """Read-only, and out of memory: the fold waits and says so; nothing goes to the dlq."""
    client = fresh.client()
    parked = len(fresh.topic("dlq"))
    for broken, mended, word in (
            (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"), "READONLY"),
            (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0"), "OOM")):
        before = len(fresh.said("redis_unavailable"))
        client.execute_command(*broken)
        job = Job(fresh).call("completed", 2000, conclusion="success")
        try:
            wait_for("the fold to say so", lambda: any(
                word in line["error"] for line in fresh.said("redis_unavailable")[before:]))
            assert http("GET", fresh.relay.url("admin_reporter", "/readyz"))[0] == 503
        finally:
            client.execute_command(*mended)
        job.wait_check()
        fresh.relay.wait_ready("reporter", 120)
    assert len(fresh.topic("dlq")) == parked


@pytest.mark.long
def test_out_of_memory_in_the_middle_of_a_rebuild_is_waited_for(fresh):
    client = fresh.client()
    given_up = len(fresh.said("rebuild_abandoned"))
    with in_the_middle(fresh):
        client.config_set("maxmemory", "1")
    try:
        wait_for("it to be noticed", lambda: fresh.said("rebuild_abandoned")[given_up:])
        assert not fresh.whole()
    finally:
        client.config_set("maxmemory", "0")
    fresh.wait_consistent()
    assert differences(load_before(fresh), view_of_load(fresh)) == {}


def test_open_check_runs_are_looked_at_again(fresh):
    """The word that a job had started went to a view that was emptied: its check run is made all the
    same; one that is done costs GitHub nothing."""
    fresh.restart(CRCR_ROLES="fold,web")
    job = Job(fresh).call("in_progress", 1000)
    job.wait_result("in_progress")
    wait_idle_dirty = {record.offset: record.key for record in fresh.topic("reconcile")}
    fresh.flush()
    fresh.wait_consistent()
    marks = [record.key for record in fresh.topic("reconcile") if record.value == b"rebuilt"]
    assert f"{job.sha}/org/four" in marks and wait_idle_dirty
    assert f"{job.delivery}/ci/build" in "".join(fresh.client().zrange("crcr:zombies", 0, -1))
    fresh.restart()
    job.wait_check("in_progress")
    job.call("completed", 2000, conclusion="success").wait_check()


@pytest.mark.long
def test_more_open_jobs_than_the_queue_to_kafka_holds_are_all_marked(fresh):
    fresh.restart(CRCR_ROLES="fold,web")
    open_before = fresh.client().zcard("crcr:zombies")
    jobs = [Job(fresh).call("in_progress", 1000) for _ in range(20)]
    wait_for("them to be folded", lambda: fresh.client().zcard("crcr:zombies") == open_before + 20, 60)
    fresh.restart(CRCR_ROLES="fold,web", CRCR_KAFKA_QUEUE_BUFFERING_MAX_MESSAGES="2")
    given_up = len(fresh.said("rebuild_abandoned"))
    fresh.flush()
    fresh.wait_consistent()
    marked = {record.key for record in fresh.topic("reconcile") if record.value == b"rebuilt"}
    assert {f"{job.sha}/org/four" for job in jobs} <= marked
    assert not fresh.said("rebuild_abandoned")[given_up:]
    fresh.restart()


@pytest.mark.long
def test_lives_end_when_they_would_have(fresh):
    """Not 35 days from the rebuild: from the last word on the job."""
    client = fresh.client()
    job = Job(fresh)
    job.started_ms -= 10 * 86_400_000
    job.call("completed", 1000, conclusion="success")
    job.wait_result()
    wait_idle(fresh)
    [key] = client.keys(f"crcr:job:*{job.delivery}*")
    fresh.flush()
    fresh.wait_consistent()
    day = 86_400
    assert 24 * day < client.ttl(key) < 25 * day
    assert 24 * day < client.ttl(f"crcr:delivery:{job.delivery}") < 25 * day
    job.started_ms -= 30 * 86_400_000
    older = Job(fresh)
    older.started_ms = job.started_ms
    older.call("completed", 1000, conclusion="success").wait_result()
    wait_idle(fresh)
    fresh.flush()
    fresh.wait_consistent()
    assert client.keys(f"crcr:job:*{older.delivery}*") == []


@pytest.mark.long
def test_progress_is_reported_in_redis_and_in_the_log(fresh):
    with in_the_middle(fresh):
        pass
    wait_for("its progress", lambda: fresh.whole()
             or int(fresh.client().hget("crcr:rebuild", "done") or 0) > 0)
    progress = fresh.client().hgetall("crcr:rebuild")
    assert int(progress["total"]) >= 8000 and int(progress["done"]) <= int(progress["total"])
    assert progress["owner"] and int(progress["started_ms"]) > 0
    fresh.wait_consistent()
    fresh.relay.wait_ready("reporter", 120)
    done = fresh.said("rebuild_done")[-1]
    assert done["records"] >= 8000
    assert fresh.client().hget("crcr:rebuild", "state") == "done"
    assert fresh.relay.metric("reporter", "crcr_rebuild_records_total", phase="callbacks") >= 4000
    assert fresh.relay.metric("reporter", "crcr_rebuild_seconds") > 0


@pytest.mark.long
def test_kafka_unavailable_in_the_middle_is_waited_for(tmp_path):
    kafka = Kafka(tmp_path / "kafka").start()
    one = None
    try:
        one = Rebuilding(tmp_path, kafka.brokers)
        one.load(2500)
        wait_for("all to be folded", lambda: one.relay.metric(
            "reporter", "crcr_facts_total", kind="callback") >= 5000, 120)
        wait_idle(one)
        before = dump(one.client())
        with in_the_middle(one):
            kafka.freeze()  # what was fetched already is folded, no epoch is set
        try:
            held = one.client().hget("crcr:rebuild", "until_ms")
            wait_for("the lease to be held all the same", lambda:
                     one.client().hget("crcr:rebuild", "until_ms") != held)
            assert not one.whole()
        finally:
            kafka.thaw()
        one.wait_consistent(150)
        assert differences(before, dump(one.client())) == {}
    finally:
        if one:
            one.close()
        kafka.stop()
