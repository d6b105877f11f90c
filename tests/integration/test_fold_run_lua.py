"""More of the fold's Lua: the jobs of a run (common/view/fold/open_jobs.lua), its start, one job under two check run
ids; the jobs of pull requests; and pull requests that demote."""
import itertools
import pathlib

import pytest

from test_fold_lua import JOB, KEYS, VIEW, db, empty, everything, fact, fold, labels, server, step  # noqa: F401 (fixtures)


def job_fact(name, check_run_id, state, received_ms, attempt="1", **fields):
    """A fact of one job of the run: what fold_job takes."""
    job = f"org%2Ffour/d-1/ci/{name}/{check_run_id}"
    return job, fact(state, received_ms, attempt, dynamoKey=job, job_name=name, check_run_id=check_run_id, **fields)


def fold_job(db, job, one):
    keys = ["crcr:job:" + job, *KEYS[1:]]
    reply = step(db, keys, one["state"], one["received_ms"], one["attempt"], one["fields"], job=job)
    return reply[0], dict(zip(reply[1::2], reply[2::2]))


def jobs(db):
    """The jobs that the delivery has: check_run_id → status, conclusion."""
    keys = db.zrange("crcr:delivery:d-1", 0, -1)
    return {db.hget("crcr:job:" + key, "check_run_id"): tuple(db.hmget("crcr:job:" + key, "status", "conclusion"))
            for key in keys}


def test_every_job_of_a_run_has_the_start_of_the_run_in_every_order(db):
    facts = [job_fact("build", "1", "in_progress", 2000), job_fact("build", "1", "completed", 5000, conclusion="success"),
             job_fact("test", "2", "in_progress", 6000), job_fact("test", "2", "completed", 9000, conclusion="success"),
             job_fact("test", "3", "in_progress", 8000, attempt="2")]
    expected = None
    for order in itertools.permutations(facts):
        empty(db)
        answers = [fold_job(db, *one) for one in order]
        assert all(job.get("run_started_ms", "2000") == "2000" for _, job in answers[-1:])
        seen = {key: db.hget("crcr:job:" + key, "run_started_ms") for key, _ in facts}
        assert set(seen.values()) == {"2000"}, order
        expected = expected or everything(db)
        assert everything(db) == expected, order


def test_a_later_attempt_does_not_start_the_run(db):
    _, job = fold_job(db, *job_fact("build", "1", "in_progress", 7000, attempt="2"))
    assert "run_started_ms" not in job
    assert fold_job(db, *job_fact("test", "2", "in_progress", 8000))[1]["run_started_ms"] == "8000"


def test_a_completed_of_another_check_run_id_ends_the_one_open_job(db):
    fold_job(db, *job_fact("build", "A", "in_progress", 2000))
    fold_job(db, *job_fact("other", "X", "in_progress", 2000))
    verdict, job = fold_job(db, *job_fact("build", "B", "completed", 5000, conclusion="success", total_tests="3"))
    assert (verdict, job["check_run_id"], job["conclusion"], job["total_tests"]) == ("raise", "A", "success", "3")
    assert jobs(db) == {"A": ("completed", "success"), "X": ("in_progress", None)}
    assert db.zrange("crcr:zombies", 0, -1) == ["org%2Ffour/d-1/ci/other/X"]
    before = everything(db)
    assert fold_job(db, *job_fact("build", "B", "completed", 5000, conclusion="success", total_tests="3"))[0] == "repeat"
    assert everything(db) == before


def test_what_ingest_asks_for_is_known_of_the_other_check_run_id(db):
    fold_job(db, *job_fact("build", "A", "in_progress", 2000))
    fold_job(db, *job_fact("build", "B", "completed", 5000, conclusion="failure"))
    assert db.hmget("crcr:job:org%2Ffour/d-1/ci/build/B", "status", "conclusion", "run_attempt") == ["completed", "failure", "1"]
    fold_job(db, *job_fact("build", "B", "completed", 6000, conclusion="success"))
    assert jobs(db) == {"A": ("completed", "failure")}, "the first conclusion wins, whatever the id"


def test_a_job_that_the_relay_ended_is_still_ended_by_the_report(db):
    fold_job(db, *job_fact("build", "A", "in_progress", 2000))
    fold_job(db, *job_fact("build", "A", "timed_out", 3000, conclusion="cancelled"))
    fold_job(db, *job_fact("build", "B", "completed", 5000, conclusion="success"))
    assert jobs(db) == {"A": ("completed", "success")}


@pytest.mark.parametrize("open_one", [
    job_fact("build", "A", "in_progress", 2000, attempt="2"), job_fact("test", "A", "in_progress", 2000),
    job_fact("build", "A", "completed", 2000, conclusion="success")], ids=["attempt", "name", "ended"])
def test_a_completed_that_equals_no_open_job_is_one_of_its_own(db, open_one):
    fold_job(db, *open_one)
    fold_job(db, *job_fact("build", "B", "completed", 5000, conclusion="failure"))
    assert jobs(db)["B"] == ("completed", "failure") and len(jobs(db)) == 2


def test_legs_of_a_matrix_that_share_a_name_stay_apart(db):
    for leg in "AB":
        fold_job(db, *job_fact("build", leg, "in_progress", 2000))
    fold_job(db, *job_fact("build", "C", "completed", 4000, conclusion="success"))
    fold_job(db, *job_fact("build", "A", "completed", 5000, conclusion="success"))
    fold_job(db, *job_fact("build", "B", "completed", 6000, conclusion="failure"))
    assert jobs(db) == {"A": ("completed", "success"), "B": ("completed", "failure"), "C": ("completed", "success")}


def test_the_row_of_a_job_with_two_check_run_ids_restores_both(db):
    fold_job(db, *job_fact("build", "A", "in_progress", 2000))
    end = job_fact("build", "B", "completed", 5000, conclusion="success")
    row = fold_job(db, *end)[1]
    expected = everything(db)
    empty(db)
    step(db, ["crcr:job:" + row["dynamoKey"], *KEYS[1:]], row["status"], row["first_ms"], "1", row,
         job=row["dynamoKey"], last_ms=row["last_ms"], ranks=row["ranks"])
    assert everything(db) == expected
    assert fold_job(db, *end)[0] == "repeat" and everything(db) == expected


def test_a_run_notes_no_more_than_a_thousand_jobs(db):
    db.hset(KEYS[11], mapping={f"old/{n}": "1 ended" for n in range(1001)})
    fold_job(db, *job_fact("build", "A", "in_progress", 2000))
    assert db.hlen(KEYS[11]) == 1002 and db.hget(KEYS[11], "started_ms") == "2000"


def test_jobs_of_pull_requests_stand_in_an_index_of_their_own_that_no_nightly_pushes_out(db):
    db.zadd("crcr:repo:org/four", {f"nightly{i}": 3000 + i for i in range(1000)})
    reply = step(db, KEYS, "in_progress", 2000, "1", fact("in_progress", 2000)["fields"])
    assert db.zrange("crcr:repo:org/four|pr", 0, -1, withscores=True) == [(JOB, 2000)]
    assert dict(zip(reply[1::2], reply[2::2]))["last_ms"] == "2000"
    assert db.zscore("crcr:repo:org/four", JOB) is None and 0 < db.ttl("crcr:repo:org/four|pr") <= 3000
    db.zadd("crcr:repo:org/four|pr", {f"newer{i}": 3000 + i for i in range(1000)})
    fold_job(db, *job_fact("test", "2", "in_progress", 2500))
    assert db.zcard("crcr:repo:org/four|pr") == 1000 and db.zscore("crcr:repo:org/four|pr", JOB) is None


# ---- pull requests that demote --------------------------------------------------------------------
def test_who_is_demoted_by_a_pull_request_is_what_its_newest_event_says_in_every_order(db):
    facts = [(1000, 50, ""), (2000, 60, "org/npu"), (3000, 70, ""), (4000, 80, "org/npu"), (4000, 81, "org/npu")]
    for n in range(1, len(facts) + 1):
        for order in itertools.permutations(facts[:n]):
            empty(db)
            labels(db, 500, 1, "", pr=43, demotes="org/other")
            for updated_ms, received_ms, demotes in order:
                labels(db, updated_ms, received_ms, "", demotes=demotes)
            expected = {"43": "org/other", **({"42": facts[n - 1][2]} if facts[n - 1][2] else {})}
            assert db.hgetall("crcr:demoting") == expected, order
    assert db.ttl("crcr:demoting") == -1, "it may be open for longer than the view keeps jobs"


def test_the_fold_has_the_order_of_attempts_that_the_c_code_has(db):
    table = pathlib.Path(__file__).resolve().parents[1] / "unit/common/model/attempt_order.txt"
    attempts = table.read_text().splitlines()
    rule = (VIEW / "fold/attempt.lua").read_text() + "return attempt_compare(ARGV[1], ARGV[2])"
    for (i, a), (j, b) in itertools.product(enumerate(attempts), repeat=2):
        order = db.eval(rule, 0, a, b)
        assert (order > 0) - (order < 0) == (i > j) - (i < j), (a, b, order)


def test_a_fact_prolongs_its_job_and_a_new_job_or_attempt_all_that_indexes_it(db):
    def lives(keys, one):
        for key in keys:
            db.expire(key, 100)
        fold(db, one)
        return [db.ttl(key) for key in keys]
    indexes = [*KEYS[1:3], KEYS[2] + "|pr", *KEYS[5:7]]
    fold(db, fact("in_progress", 2000))
    assert lives([KEYS[0], *indexes], fact("in_progress", 2000)) == [100] * 6, "a repeat"
    assert lives([KEYS[0], *indexes], fact("completed", 3000)) == [3000] + [100] * 5
    assert lives([KEYS[0], *indexes, KEYS[11]], fact("in_progress", 9000, attempt="2")) == [3000] * 6 + [100]
    another = job_fact("test", "2", "in_progress", 2000)
    for key in [*indexes, KEYS[11]]:
        db.expire(key, 100)
    fold_job(db, *another)
    assert [db.ttl(key) for key in [*indexes, KEYS[11]]] == [3000] * 6


def test_an_index_that_lost_a_job_gets_it_with_its_next_fact_and_the_others_with_a_rebuild(db):
    fold(db, fact("in_progress", 2000))
    db.delete(KEYS[1], KEYS[2])
    fold(db, fact("in_progress", 2000))
    assert db.exists(KEYS[1], KEYS[2]) == 2
    before = everything(db)
    db.delete(*KEYS[1:7], KEYS[2] + "|pr")
    db.hset("crcr:rebuild", "fence", 12)
    fold(db, fact("in_progress", 2000), fence="12")
    db.delete("crcr:rebuild")
    assert everything(db) == before


def test_a_commit_and_a_pull_request_that_a_later_fact_names_find_the_job(db):
    fields = {name: value for name, value in fact("in_progress", 2000)["fields"].items() if name not in ("pr_number", "pytorch_head_sha")}
    step(db, [*KEYS[:5], KEYS[0], KEYS[0], *KEYS[7:]], "in_progress", 2000, "1", fields)
    assert not db.exists(KEYS[5], KEYS[6])
    fold(db, fact("completed", 3000, conclusion="success"))
    assert db.smembers(KEYS[5]) == {JOB} and db.zrange(KEYS[6], 0, -1) == ["d-1"]
