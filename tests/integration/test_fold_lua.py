"""The Lua steps of the fold (common/view/*.lua) against a private redis-server.

The promise: which facts were folded decides the record; their order and number do not."""
import itertools
import pathlib
import random
import re
import shutil
import subprocess
import time
import zlib

import pytest
import redis

VIEW = pathlib.Path(__file__).resolve().parents[2] / "common" / "view"
REPO, DELIVERY, SHA = "org/four", "d-1", "a" * 40
JOB = "org%2Ffour/d-1/ci/build/77-1"
KEYS = ["crcr:job:" + JOB, "crcr:delivery:d-1", "crcr:repo:org/four", "crcr:repos", "crcr:zombies",
        "crcr:head:" + SHA + "/org/four", "crcr:pr:42", "crcr:spent:org/four", "crcr:epoch", "crcr:tally",
        "crcr:leases:tally", "crcr:jobs:d-1/org/four/77"]
ZOMBIE_MS = 21_600_000


def script(name):
    """As the build makes it: behind the texts that its line "-- with:" names."""
    text = (VIEW / name).read_text()
    parts = re.findall(r"[a-z_/]+\.lua", re.search(r"^-- with: (.*)$", text, re.MULTILINE)[1])
    return "".join((VIEW / part).read_text() for part in parts) + text


FOLD, FOLD_DISPATCH = script("fold.lua"), script("fold_dispatch.lua")
FOLD_PULL_REQUEST = script("fold_pull_request.lua")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("redis")
    process = subprocess.Popen([shutil.which("redis-server"), "--port", "0", "--unixsocket",
                                folder / "s", "--save", "", "--dir", folder],
                               stdout=subprocess.DEVNULL)
    client = redis.Redis(unix_socket_path=str(folder / "s"), decode_responses=True)
    deadline = time.monotonic() + 10
    while True:
        try:
            client.ping()
            break
        except redis.ConnectionError:
            assert time.monotonic() < deadline, "redis-server does not answer"
            time.sleep(0.02)
    yield client
    process.terminate()
    process.wait(10)


@pytest.fixture
def db(server):
    empty(server)
    return server


def empty(server):
    """Empty, and whole."""
    server.flushall()
    server.set("crcr:epoch", 1)


def fact(state, received_ms, attempt="1", **fields):
    return {"state": state, "received_ms": received_ms, "attempt": attempt, "fields": {
        "dynamoKey": JOB, "downstream_repo": REPO, "delivery_id": DELIVERY, "workflow_name": "ci",
        "job_name": "build", "check_run_id": "77-1", "run_id": "77", "run_attempt": attempt,
        "pr_number": "42", "pytorch_head_sha": SHA, "status": state, **fields}}


GIB, DAY_MS = 1 << 30, 86_400_000
# How each field is merged, as the table in result_record.c has it.
GROUPS = dict(re.findall(r'^    { "(\w+)", .*, (?:\'(.)\'|0) },$', (VIEW.parent / "model/result_record.c").read_text(), re.MULTILINE))
STATES = {"dispatched": 1, "in_progress": 2, "timed_out": 3, "completed": 4}


def arguments(state, received_ms, attempt, fields, ranks=""):
    """Of a fact, or a merged record with its ranks, as jobs.c makes them: (ranks, groups, start of the run, names and values)."""
    fields = dict(fields)
    if not ranks:
        fields |= {f"{state}_ms": received_ms} | ({"top_level": fields["downstream_repo_level"]} if "downstream_repo_level" in fields else {})
    starts = [int(fields[name]) for name in ("run_started_ms", "in_progress_ms") if name in fields and (name[0] == "r" or attempt == "1")]
    letters = {GROUPS[name] for name in fields if GROUPS[name].isalpha()}
    if not ranks:
        digest = zlib.crc32(repr(sorted(fields.items())).encode())
        ranks = f"{STATES[state]}{9999999999999 - received_ms:013}{digest:08x}"
    if "=" not in ranks:
        ranks += "=" + "".join(sorted(letters))
    sent = {name: fields.get(name, "") for name, group in GROUPS.items() if group and (name in fields or group in letters)}
    return ranks, "".join(GROUPS[name] for name in sent), str(min(starts, default="")), [part for pair in sent.items() for part in pair]


def step(db, keys, state, received_ms, attempt, fields, job=JOB, fence="", last_ms=None, ranks="", quota=GIB):
    """One step of fold.lua; its answer, with all fields of the merged record, as jobs.c completes it."""
    received_ms = int(received_ms)
    quota, (ranks, groups, start, pairs) = "" if ranks else quota, arguments(state, received_ms, attempt, fields, ranks)
    reply = db.eval(FOLD, len(keys), *keys, state, received_ms, attempt, 3000, ZOMBIE_MS, job, DELIVERY, REPO, fence,
                    last_ms or received_ms, ranks, quota, groups, start, int(time.time() * 1000) + 5000, *pairs)
    if reply == ["full"]:
        return reply
    merged = {name: str(value) for name, value in zip(pairs[::2], pairs[1::2])} | dict(zip(reply[1::2], reply[2::2]))
    return reply[:1] + [part for name, value in merged.items() if value != "" for part in (name, value)]


def fold(db, one, fence=""):
    keys = KEYS if not fence else KEYS[:8] + ["crcr:rebuild", *KEYS[9:]]
    reply = step(db, keys, one["state"], one["received_ms"], one["attempt"], one["fields"], fence=fence)
    return reply[0], dict(zip(reply[1::2], reply[2::2]))


def join(db, record):
    """As a rebuild folds a record of results: what the fold answered."""
    reply = step(db, KEYS, record["status"], record["first_ms"], record["run_attempt"], record,
                 last_ms=record["last_ms"], ranks=record["ranks"])
    return dict(zip(reply[1::2], reply[2::2]))


def everything(db):
    """All that the view holds. What was written to get there, and when it is counted, depends on the order."""
    dump = {}
    for key in set(db.keys("*")) - set(KEYS[7:10]):
        kind = db.type(key)
        dump[key] = (db.hgetall(key) if kind == "hash" else db.smembers(key) if kind == "set"
                     else db.zrange(key, 0, -1, withscores=True))
    return dump


def test_completed_after_in_progress_raises_and_keeps_both_clocks(db):
    assert fold(db, fact("in_progress", 2000, dispatched_ms="1000"))[0] == "raise"
    verdict, job = fold(db, fact("completed", 5000, conclusion="success"))
    assert verdict == "raise"
    assert (job["status"], job["conclusion"]) == ("completed", "success")
    assert (job["dispatched_ms"], job["in_progress_ms"], job["completed_ms"]) == \
        ("1000", "2000", "5000")


def test_the_same_fact_again_changes_nothing(db):
    one = fact("completed", 5000, conclusion="failure", artifact_url="https://a")
    fold(db, one)
    before = everything(db)
    verdict, job = fold(db, one)
    assert verdict == "repeat"
    assert job["conclusion"] == "failure"
    assert everything(db) == before


def test_a_late_in_progress_only_fills_gaps(db):
    fold(db, fact("completed", 5000, conclusion="success", workflow_run_url="https://end"))
    verdict, job = fold(db, fact("in_progress", 6000, workflow_run_url="https://begin",
                                 environment="mi300"))
    assert verdict == "fill"
    assert (job["status"], job["workflow_run_url"], job["environment"]) == \
        ("completed", "https://end", "mi300")
    assert job["in_progress_ms"] == "6000"


def test_the_first_conclusion_of_an_attempt_wins(db):
    fold(db, fact("completed", 5000, conclusion="failure"))
    verdict, job = fold(db, fact("completed", 5001, conclusion="success"))
    assert verdict == "repeat"
    assert (job["conclusion"], job["completed_ms"]) == ("failure", "5000")


def test_completed_after_timeout_wins(db):
    fold(db, fact("in_progress", 2000))
    fold(db, fact("timed_out", 9000, conclusion="timed_out"))
    verdict, job = fold(db, fact("completed", 9500, conclusion="success"))
    assert verdict == "raise"
    assert (job["status"], job["conclusion"]) == ("completed", "success")


def test_timeout_after_completed_changes_no_conclusion(db):
    fold(db, fact("completed", 5000, conclusion="success"))
    _, job = fold(db, fact("timed_out", 9000, conclusion="timed_out"))
    assert (job["status"], job["conclusion"]) == ("completed", "success")


def test_the_issuer_of_the_proof_survives_the_sweep_and_the_order(db):
    facts = [fact("in_progress", 2000, issuer="https://actions"), fact("timed_out", 3000),
             fact("completed", 4000, issuer="https://buildkite")]
    for order in itertools.permutations(facts):
        empty(db)
        for one in order:
            fold(db, one)
        assert db.hget(KEYS[0], "issuer") == "https://buildkite"


def test_the_highest_tier_is_remembered_in_any_order(db):
    facts = [fact("in_progress", 2000, downstream_repo_level="L4"),
             fact("completed", 5000, downstream_repo_level="L2", conclusion="success")]
    for order in itertools.permutations(facts):
        empty(db)
        for one in order:
            _, job = fold(db, one)
        assert (job["downstream_repo_level"], job["top_level"]) == ("L2", "L4")


def test_test_counts_of_two_facts_never_mix(db):
    fold(db, fact("completed", 5001, conclusion="failure", total_tests="9", failed_tests="9"))
    _, job = fold(db, fact("completed", 5000, conclusion="success", total_tests="3",
                           passed_tests="3"))
    assert (job["total_tests"], job["passed_tests"]) == ("3", "3")
    assert "failed_tests" not in job
    assert not db.hexists(KEYS[0], "failed_tests")


def test_nothing_never_overwrites_something(db):
    fold(db, fact("in_progress", 2000, workflow_run_url="https://run", total_tests="5"))
    _, job = fold(db, fact("completed", 5000, conclusion="success"))
    assert (job["workflow_run_url"], job["total_tests"]) == ("https://run", "5")


def test_a_later_attempt_under_the_same_key_starts_afresh(db):
    fold(db, fact("completed", 5000, conclusion="failure", total_tests="3"))
    verdict, job = fold(db, fact("in_progress", 8000, attempt="2"))
    assert verdict == "raise"
    assert (job["status"], job["run_attempt"]) == ("in_progress", "2")
    assert "conclusion" not in job and "total_tests" not in job
    verdict, job = fold(db, fact("completed", 9000, attempt="1", conclusion="cancelled"))
    assert verdict == "repeat"
    assert (job["status"], job["run_attempt"]) == ("in_progress", "2")


def test_attempt_ten_comes_after_attempt_nine(db):
    fold(db, fact("completed", 5000, attempt="9", conclusion="failure"))
    _, job = fold(db, fact("in_progress", 8000, attempt="10"))
    assert job["run_attempt"] == "10"


def test_an_attempt_that_looks_like_no_number_is_still_an_attempt(db):
    for name in ("nan", "inf", "0x2"):
        empty(db)
        fold(db, fact("in_progress", 5000, attempt=name))
        _, job = fold(db, fact("completed", 8000, attempt=name, conclusion="success"))
        assert (job["status"], job["conclusion"]) == ("completed", "success"), name


def test_a_job_in_progress_has_a_deadline_until_it_ends(db):
    fold(db, fact("in_progress", 2000))
    assert db.zscore("crcr:zombies", JOB) == 2000 + ZOMBIE_MS
    fold(db, fact("completed", 5000, conclusion="success"))
    assert db.zscore("crcr:zombies", JOB) is None


def test_the_indexes_name_the_job(db):
    fold(db, fact("in_progress", 2000))
    assert db.zrange("crcr:delivery:d-1", 0, -1) == [JOB]
    assert db.zrange("crcr:repo:org/four", 0, -1) == [JOB]
    assert db.zrange("crcr:repos", 0, -1) == [REPO]
    assert db.smembers(KEYS[5]) == {JOB}
    assert db.zrange("crcr:pr:42", 0, -1) == [DELIVERY]
    assert 0 < db.ttl(KEYS[0]) <= 3000


def test_what_changed_is_counted_once_for_all_of_a_moment_and_anew_while_a_sweeper_has_it(db):
    fold(db, fact("in_progress", 2000))
    score = db.zscore("crcr:tally", "d-1/org/four")
    assert 0 < score / 1000 - time.time() < 6
    fold(db, fact("completed", 5000, conclusion="success"))
    assert db.zscore("crcr:tally", "d-1/org/four") == score, "what waits keeps its time"
    lease = {"d-1/org/four": (time.time() + 15) * 1000}
    db.zadd("crcr:tally", {"d-1/org/four": 1})
    db.zadd("crcr:leases:tally", lease)
    fold(db, fact("completed", 5000, conclusion="success"))
    assert db.zscore("crcr:tally", "d-1/org/four") == 1 and db.zcard("crcr:leases:tally") == 1, "a repeat changes nothing"
    fold(db, fact("completed", 5000, conclusion="success", artifact_url="https://a"))
    assert db.zscore("crcr:tally", "d-1/org/four") > 1 and not db.exists("crcr:leases:tally")


def test_a_downstream_keeps_its_newest_thousand_jobs(db):
    db.zadd("crcr:repo:org/four", {f"old{i}": i for i in range(1000)})
    fold(db, fact("in_progress", 2000))
    assert db.zcard("crcr:repo:org/four") == 1000
    assert db.zscore("crcr:repo:org/four", "old0") is None


def test_without_pull_request_and_commit_nothing_is_indexed_for_them(db):
    keys = KEYS[:5] + [KEYS[0], KEYS[0]] + KEYS[7:]
    step(db, keys, "completed", 5000, "1", {"status": "completed", "run_attempt": "1"})
    assert not db.exists(KEYS[5], "crcr:repo:org/four|pr") and db.exists("crcr:repo:org/four")


POOL = [
    fact("in_progress", 2000, dispatched_ms="1000", workflow_run_url="https://1"),
    fact("in_progress", 2500, workflow_run_url="https://2", environment="x"),
    fact("timed_out", 4000, conclusion="timed_out"),
    fact("completed", 5000, conclusion="failure", total_tests="3", failed_tests="1",
         failed_tests_json='[{"name":"t"}]', failed_tests_cut="2"),
    fact("completed", 5000, conclusion="success", total_tests="4", passed_tests="4"),
    fact("completed", 4900, conclusion="cancelled", artifact_url="https://a", run_complete="1"),
    fact("in_progress", 7000, attempt="2"),
    fact("completed", 7100, attempt="2", conclusion="neutral", triage_verdict_json="{}"),
]


def fold_all(db, facts):
    empty(db)
    for one in facts:
        fold(db, one)
    return everything(db)


@pytest.mark.long
def test_every_order_of_five_facts_ends_in_the_same_view(db):
    for facts in (POOL[:5], POOL[1:6], POOL[3:8]):
        expected = fold_all(db, facts)
        for order in itertools.permutations(facts):
            assert fold_all(db, order) == expected, order


def test_every_order_and_duplication_ends_in_the_same_view(db):
    chance = random.Random(7)
    for _ in range(60):
        facts = chance.sample(POOL, chance.randint(2, len(POOL)))
        expected = fold_all(db, facts)
        for _ in range(5):
            again = facts + chance.choices(facts, k=chance.randint(0, 6))
            chance.shuffle(again)
            assert fold_all(db, again) == expected, again


# ---- a view that is inconsistent, and its rebuild ---------------------------------------------------
def test_nothing_is_folded_into_a_view_that_is_not_whole(db):
    db.delete("crcr:epoch")
    for one in (lambda: fold(db, POOL[0]), lambda: outcome(db, *OUTCOMES[0]),
                lambda: labels(db, 1, 2, "x")):
        with pytest.raises(redis.ResponseError, match="INCONSISTENT"):
            one()
    assert db.keys("*") == []


def test_only_the_fence_of_the_lease_lets_a_rebuild_fold(db):
    db.delete("crcr:epoch")
    db.hset("crcr:rebuild", mapping={"state": "running", "fence": "12"})
    with pytest.raises(redis.ResponseError, match="INCONSISTENT"):
        fold(db, POOL[0], fence="11")
    assert db.keys("*") == ["crcr:rebuild"]
    assert fold(db, POOL[0], fence="12")[0] == "raise"


def answers(db, facts):
    """The record that each fold answers with: what results would hold, oldest first."""
    empty(db)
    return [fold(db, one)[1] for one in facts]


def test_the_last_record_of_a_job_restores_it_without_its_facts(db):
    for facts in itertools.permutations(POOL, 3):
        rows = answers(db, facts)
        expected = everything(db)
        empty(db)
        join(db, rows[-1])
        assert everything(db) == expected, facts


def test_records_and_facts_join_to_the_same_view_in_every_order(db):
    chance = random.Random(11)
    for _ in range(60):
        facts = chance.sample(POOL, chance.randint(2, len(POOL)))
        rows = answers(db, facts)
        expected = everything(db)
        steps = [lambda one=one: fold(db, one) for one in chance.choices(facts, k=3)]
        steps += [lambda row=row: join(db, row) for row in chance.choices(rows, k=3) + rows[-1:]]
        chance.shuffle(steps)
        empty(db)
        for one in steps:
            one()
        assert everything(db) == expected, facts


def test_a_row_that_knows_no_ranks_gives_way_to_every_fact(db):
    facts = [fact("in_progress", 2000, workflow_run_url="https://begin"),
             fact("completed", 5000, conclusion="success", total_tests="4")]
    row = answers(db, facts)[-1]
    expected = everything(db)
    old = {**row, "ranks": "0", "workflow_run_url": "https://old", "conclusion": "stale"}
    empty(db)
    restored = join(db, old)
    assert (restored["status"], restored["conclusion"]) == ("completed", "stale")
    for one in facts:
        fold(db, one)
    assert everything(db) == expected


def test_what_is_folded_late_shortens_no_life(db):
    """A rebuild folds what has fewer seconds left, in any order, also a new attempt."""
    keys = (KEYS[0], KEYS[1], KEYS[2], KEYS[2] + "|pr", KEYS[5], KEYS[6], KEYS[11])
    db.hset("crcr:rebuild", "fence", 12)
    fold(db, POOL[0])
    for one in (POOL[3], POOL[6], POOL[7]):
        for key in keys:
            db.expire(key, 9000)
        fold(db, one, fence="12")
        assert all(8990 < db.ttl(key) <= 9000 for key in keys[one is POOL[6]:]), "attempt 2 starts the job itself afresh"
        for key in keys[:-1]:
            db.expire(key, 100)
        fold(db, one, fence="12")
        assert all(2990 < db.ttl(key) <= 3000 for key in keys[1:-1]), "a rebuild makes all indexes anew"


# ---- dispatches and labels -----------------------------------------------------------------------
def outcome(db, weight, at_ms, sent, name):
    keys = ["crcr:dispatch:d-1/org/four", "crcr:delivery:d-1", "crcr:repos", "crcr:pr:42",
            f"crcr:sent:{SHA}/org/four", "crcr:epoch", "crcr:ids:0"]
    db.eval(FOLD_DISPATCH, 7, *keys, weight, at_ms, sent, 3000, DELIVERY,
            REPO, at_ms - 100, "", "outcome", name, "at_ms", at_ms)
    return db.hgetall(keys[0])


OUTCOMES = [("1", 900, "", "waiting"), ("4", 1000, "unknown_ms", "unknown"),
            ("6", 2000, "dispatched_ms", "dispatched"), ("6", 3000, "dispatched_ms", "dispatched"),
            ("0", 4000, "", "duplicate")]


def test_outcomes_of_a_dispatch_end_the_same_in_every_order(db):
    seen = []
    for order in itertools.permutations(OUTCOMES):
        empty(db)
        for one in order:
            outcome(db, *one)
        seen.append(everything(db))
    assert all(one == seen[0] for one in seen)
    view = seen[0]["crcr:dispatch:d-1/org/four"]
    assert (view["outcome"], view["dispatched_ms"], view["unknown_ms"]) == \
        ("dispatched", "2000", "1000")
    assert seen[0]["crcr:sent:" + SHA + "/org/four"] == [("d-1", 800.0)]


def labels(db, updated_ms, offset, text, head="a" * 40, pr=42, title="A title", demotes="", received_ms=None):
    return db.eval(FOLD_PULL_REQUEST, 4, f"crcr:labels:{pr}", "crcr:prs", "crcr:epoch", "crcr:demoting",
                   pr, updated_ms, offset if received_ms is None else received_ms, 3000, "", offset, text, head, title, "octocat",
                   demotes)


def test_pull_requests_stand_by_their_newest_event_in_every_order(db):
    facts = [(1, 1000, 10), (2, 1000, 20), (3, 1000, 15), (1, 2000, 30)]
    for order in itertools.permutations(facts):
        empty(db)
        for pr, updated_ms, received_ms in order:
            labels(db, updated_ms, received_ms, "", pr=pr, title=f"at {updated_ms}")
        assert db.zrevrange("crcr:prs", 0, -1) == ["1", "2", "3"]
        assert db.hmget("crcr:labels:1", "title", "author") == ["at 2000", "octocat"]
    empty(db)
    for pr in range(1, 1004):
        labels(db, 1000, 10 + pr, "", pr=pr)
    assert db.zcard("crcr:prs") == 1000 and db.zscore("crcr:prs", "3") is None


def test_the_newest_labels_win_in_every_order(db):
    facts = [(1000, 50, "ciflow/crcr/npu"), (2000, 60, ""), (2000, 61, "ciflow/crcr/xpu"),
             (500, 99, "ciflow/crcr/old")]
    for order in itertools.permutations(facts):
        empty(db)
        for one in order:
            labels(db, *one)
        assert db.hget("crcr:labels:42", "labels") == "ciflow/crcr/xpu"


def test_the_head_of_a_pull_request_is_that_of_its_newest_event_in_every_order(db):
    facts = [(1000, 50, "", "a" * 40), (2000, 60, "", "b" * 40), (2000, 61, "", "c" * 40),
             (2000, 61, "", "d" * 40)]
    for order in itertools.permutations(facts):
        empty(db)
        for one in order:
            labels(db, *one)
        assert db.hget("crcr:labels:42", "head_sha") == "d" * 40


def test_of_two_pushes_in_one_second_the_later_in_the_topic_is_the_head_as_for_dispatches(db):
    """Two replicas of ingest: the one that was received later may be stored first."""
    facts = [(2000, 7, "", "a" * 40, 61), (2000, 8, "", "b" * 40, 60)]
    for order in itertools.permutations(facts):
        empty(db)
        for *one, received_ms in order:
            labels(db, *one, received_ms=received_ms)
        assert db.hget("crcr:labels:42", "head_sha") == "b" * 40
