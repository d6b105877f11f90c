"""More of the fold's Lua: what a downstream may write into the view (common/view/fold/quota.lua)."""
import pytest

from test_fold_lua import DAY_MS, GIB, JOB, KEYS, db, everything, fact, fold, server, step  # noqa: F401 (fixtures)


def test_a_downstream_cannot_fill_the_view(db):
    now = 100 * DAY_MS
    fold(db, fact("in_progress", now))
    assert 3200 < int(db.hget(KEYS[7], "100")) < 4400
    assert 3000 < db.ttl(KEYS[7])
    db.hset(KEYS[7], "100", GIB)
    before = everything(db)
    other = {**fact("completed", now + 1, conclusion="success")}
    another = JOB.replace("build", "another")
    keys = ["crcr:job:" + another, *KEYS[1:]]
    assert step(db, keys, "completed", now + 1, "1", other["fields"], job=another) == ["full"]
    assert everything(db) == before


def test_with_a_quota_of_0_no_job_is_new_and_the_others_go_on(db):
    fold(db, fact("in_progress", 5000))
    new = fact("in_progress", 5000)["fields"]
    assert step(db, ["crcr:job:new", *KEYS[1:]], "in_progress", 5000, "1", new, job="new", quota=0) == ["full"]
    known = fact("completed", 6000, conclusion="success")
    assert step(db, KEYS, "completed", 6000, "1", known["fields"], quota=0)[0] == "raise"


@pytest.mark.parametrize("length", [20, 400])
def test_what_a_job_costs_redis_is_what_it_spends(db, length):
    """Keys and members of indexes included: within a fifth, for short names and for long ones."""
    def used():
        return db.info("memory")["used_memory"]
    number, before = 900, used()
    for n in range(number):
        job = f"org%2Ffour/{n:036}/ci/{'x' * length}/{n}-1"
        fields = {**fact("in_progress", 5000)["fields"], "dynamoKey": job, "delivery_id": f"{n:036}",
                  "workflow_run_url": f"https://github.com/org/four/actions/runs/{n:030}"}
        keys = ["crcr:job:" + job, f"crcr:delivery:{n:036}", *KEYS[2:5], f"crcr:head:{n:040}/org/four", f"crcr:pr:{n}", *KEYS[7:11],
                f"crcr:jobs:{n:036}/org/four/{n:030}"]
        assert step(db, keys, "in_progress", 5000, "1", fields, job=job)[0] == "raise"
    cost, spent = used() - before, int(db.hget(KEYS[7], "0"))
    print(f"a job with a key of {len(job)}: {cost / number:.0f} bytes, counted {spent / number:.0f}")
    assert 0.8 * cost < spent < 1.2 * cost


def test_in_a_full_view_a_known_job_comes_to_its_end_without_its_long_texts(db):
    now = 100 * DAY_MS
    fold(db, fact("in_progress", now))
    db.hset(KEYS[7], "100", GIB)
    verdict, job = fold(db, fact("completed", now + 1, conclusion="failure", failed_tests="3",
                                 failed_tests_json="[{}]", triage_verdict_json="{}"))
    assert (verdict, job["status"], job["conclusion"], job["failed_tests"]) == \
        ("raise", "completed", "failure", "3")
    assert "failed_tests_json" not in job and "triage_verdict_json" not in job


def test_what_was_written_longer_ago_than_the_view_keeps_does_not_count(db):
    db.hset(KEYS[7], mapping={"98": GIB, "99": GIB - 5000})
    assert fold(db, fact("in_progress", 100 * DAY_MS))[0] == "raise"
    assert set(db.hkeys(KEYS[7])) == {"99", "100"}


def test_repeats_cost_a_downstream_nothing(db):
    fold(db, fact("completed", 5000, conclusion="success", failed_tests_json="[{}]"))
    spent = db.hgetall(KEYS[7])
    fold(db, fact("completed", 5000, conclusion="success", failed_tests_json="[{}]"))
    assert db.hgetall(KEYS[7]) == spent
