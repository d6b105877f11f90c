"""The checker of tests/faults finds each kind of loss: a check that cannot fail would prove nothing."""
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))

from checker import Checker  # noqa: E402 (after the path is set)
from outside import unasked, unshown, untold, untold_rows  # noqa: E402
from rows import row_03_rolling as rolling  # noqa: E402
from rows import row_15_storm as storm  # noqa: E402

REPOS = ["org/a", "Org/B"]
HEADERS = {"event": "pull_request", "pr": "7"}


class Dump:
    """A topic that is over."""

    def __init__(self, records):
        self.records = records

    def read(self):
        records, self.records = self.records, []
        return records


def outcome(delivery, repo, kind="dispatched", **more):
    return (f"{delivery}/{repo}", json.dumps({"delivery_id": delivery, "repo": repo, "kind": "dispatch",
                                              "outcome": kind, "maybe_duplicate": False, **more}), {}, 0, 0)


def parked(delivery, repo="", source="t1.dispatch.l1", **more):
    """A record of the dlq; without a repo: an event."""
    return ("k", b"", {"delivery": delivery, **({"repo": repo} if repo else {}), "source_topic": source, "class": "refused",
                       "error": "404", **more}, 0, 0)


def result(status, attempt="1", run="5", job="test", name="CI"):
    return (f"org/b/d1/CI/{job}/1", json.dumps({
        "workflow_name": name,
        "status": status, "downstream_repo": "org/b", "delivery_id": "d1", "run_id": run, "job_name": job,
        "run_attempt": attempt}), {}, 0, 0)


def called(delivery, repo, pr=7, at_ms=1000):
    return {"kind": "dispatch", "repo": repo, "delivery": delivery, "pr": pr, "at_ms": at_ms}


class Story:
    """Two events of one pull request that went well; each test spoils one thing."""

    def __init__(self):
        self.sent = [{"delivery": d, "status": 202} for d in ("d1", "d2")]
        self.github = [called(d, r) for d in ("d1", "d2") for r in ("org/a", "org/b")]
        self.github.append({"kind": "callback", "repo": "org/b", "delivery_id": "d1", "run_id": 5,
                            "job": "test", "status": "completed"})
        self.events = [("k", b"", {**HEADERS, "delivery": d}, 0, n) for n, d in enumerate(("d1", "d2"))]
        self.dispatches = [outcome(d, r) for d in ("d1", "d2") for r in ("org/a", "org/b")]
        self.results = [result("in_progress"), result("completed")]
        self.callbacks, self.dlq = [], []
        self.redis = {("org/b", "d1", "5", "test"): "completed"}
        self.options = {}

    def check(self, folder):
        for name in ("sent", "github"):
            (folder / name).write_text("".join(json.dumps(line) + "\n" for line in getattr(self, name)))
        topics = {name: Dump(getattr(self, name)) for name in ("events", "callbacks", "dispatches", "results", "dlq")}
        checker = Checker(REPOS, folder / "sent", folder / "github", topics, **self.options).look()
        return checker, checker.verdict(self.redis)


@pytest.fixture
def story():
    return Story()


def wrong(found):
    return {kind for kind, texts in found.by_kind.items() if texts}


def test_nothing_is_found_when_all_went_well(story, tmp_path):
    checker, found = story.check(tmp_path)
    assert checker.settled() and not found.problems()


def test_an_acknowledged_event_that_is_not_stored_is_found(story, tmp_path):
    story.sent.append({"delivery": "d3", "status": 202})
    assert wrong(story.check(tmp_path)[1]) == {"acknowledged but not stored"}


def test_an_event_that_was_refused_need_not_be_stored(story, tmp_path):
    story.sent.append({"delivery": "d3", "status": 503})
    assert not wrong(story.check(tmp_path)[1])


def test_a_missing_dispatch_is_found(story, tmp_path):
    del story.github[0], story.dispatches[0]
    checker, found = story.check(tmp_path)
    assert wrong(found) == {"lost"} and not checker.settled()


@pytest.mark.parametrize("kind", ["superseded", "skipped"])
def test_a_terminal_record_stands_for_a_dispatch(story, tmp_path, kind):
    del story.github[0]
    story.dispatches[0] = outcome("d1", "org/a", kind, error="why")
    assert not wrong(story.check(tmp_path)[1])


@pytest.mark.parametrize("dead, good", [([parked("d1", "org/a")], True), ([parked("d1")], True), ([parked("d1", "org/b")], False)])
def test_what_failed_is_in_the_dead_letter_queue(story, tmp_path, dead, good):
    del story.github[0]
    story.dispatches[0] = outcome("d1", "org/a", "failed", error="why")
    story.dlq = dead
    found = wrong(story.check(tmp_path)[1])
    assert ("failed without a dead letter" in found) == (not good)


def test_what_is_superseded_without_a_later_call_is_found(story, tmp_path):
    """d2 is the last of its pull request."""
    story.github = [line for line in story.github if (line.get("delivery"), line.get("repo")) != ("d2", "org/a")]
    story.dispatches = [one for one in story.dispatches if one != outcome("d2", "org/a")]
    story.dispatches.append(outcome("d2", "org/a", "superseded", error="why"))
    assert wrong(story.check(tmp_path)[1]) == {"superseded by nothing"}


def test_a_dispatch_that_no_outcome_tells_of_is_found(story, tmp_path):
    del story.dispatches[0]
    checker, found = story.check(tmp_path)
    assert wrong(found) == {"dispatch without a final outcome"} and not checker.settled()


@pytest.mark.parametrize("known_at, without_redis, found", [
    ("1970-01-01T00:00:01.100Z", (), True),                  # 0.1 s after the first call, 18.9 s before the second
    ("1970-01-01T00:00:01.100Z", [(19_000, 19_500)], False),  # who knew of it had lost its memory
    ("1970-01-01T00:00:19.900Z", (), False),                 # it became known while the second was under way
    ("1970-01-01T01:00:00.000Z", (), False)])                # by a clock that was set
def test_a_marked_dispatch_after_one_that_was_known_is_found(story, tmp_path, known_at, without_redis, found):
    story.github.append(called("d2", "org/a", at_ms=20_000))
    story.dispatches[2] = outcome("d2", "org/a", at=known_at)
    story.dispatches.append(outcome("d2", "org/a", maybe_duplicate=True))
    story.options = {"without_redis": without_redis}
    assert wrong(story.check(tmp_path)[1]) == ({"second dispatch although the first was known"} if found else set())


def test_a_call_after_an_unknown_one_that_is_not_marked_is_found(story, tmp_path):
    story.github += [called("d2", "org/a"), called("d2", "org/a")]
    story.dispatches[2] = outcome("d2", "org/a", "unknown")
    story.dispatches += [outcome("d2", "org/a", maybe_duplicate=True), outcome("d2", "org/a")]
    assert wrong(story.check(tmp_path)[1]) == {"more dispatches than marked ones"}


@pytest.mark.parametrize("kind", ["unknown", "waiting"])
def test_a_dispatch_that_is_to_be_tried_again_is_not_over(story, tmp_path, kind):
    story.dispatches[0] = outcome("d1", "org/a", kind)
    checker, found = story.check(tmp_path)
    assert wrong(found) == {"dispatch without a final outcome"} and not checker.settled()


def test_a_dispatch_that_is_still_tried_is_not_there_yet(story, tmp_path):
    del story.github[0]
    story.dispatches[0] = outcome("d1", "org/a", "waiting")
    assert wrong(story.check(tmp_path)[1]) == {"lost"}


def test_a_parked_dispatch_is_accounted_for(story, tmp_path):
    del story.github[0], story.dispatches[0]
    story.dlq.append(parked("d1", "org/a"))
    assert not wrong(story.check(tmp_path)[1])


def test_a_second_dispatch_is_found_unless_the_first_was_unknown(story, tmp_path):
    story.github.append(called("d2", "org/a"))
    assert wrong(story.check(tmp_path)[1]) == {"second dispatch although the first was known"}


def test_a_second_dispatch_after_an_unknown_one_is_counted(story, tmp_path):
    story.github.append(called("d2", "org/a"))
    story.dispatches.append(outcome("d2", "org/a", maybe_duplicate=True))
    checker, found = story.check(tmp_path)
    assert not wrong(found) and sum(checker.duplicates().values()) == len(checker.unknown()) == 1


@pytest.mark.parametrize("killed, good", [(True, True), (False, False)])
def test_more_dispatches_than_marked_ones_are_found_unless_both_senders_were_killed(story, tmp_path, killed, good):
    story.github += [called("d2", "org/a")] * 2
    story.dispatches[2] = outcome("d2", "org/a", maybe_duplicate=True)
    story.options = {"senders_killed": killed}
    assert wrong(story.check(tmp_path)[1]) == (set() if good else {"more dispatches than marked ones"})


def test_each_repeat_that_is_told_of_allows_no_other(story, tmp_path):
    """Three dispatches, all told of, one marked: no killed sender explains the third."""
    story.github += [called("d2", "org/a")] * 2
    story.dispatches += [outcome("d2", "org/a", maybe_duplicate=True), outcome("d2", "org/a")]
    story.options = {"senders_killed": True}
    assert wrong(story.check(tmp_path)[1]) == {"more dispatches than marked ones"}


def test_a_task_that_waited_marked_allows_no_dispatch(story, tmp_path):
    story.github += [called("d2", "org/a")] * 2
    story.dispatches += [outcome("d2", "org/a", "waiting", maybe_duplicate=True), outcome("d2", "org/a", maybe_duplicate=True)]
    assert wrong(story.check(tmp_path)[1]) == {"more dispatches than marked ones"}


@pytest.mark.parametrize("kind", ["failed", "superseded", "skipped"])
def test_what_was_dispatched_for_certain_and_ended_otherwise_is_found(story, tmp_path, kind):
    story.dispatches.append(outcome("d1", "org/a", kind, error="why"))
    assert wrong(story.check(tmp_path)[1]) == {"dispatched and ended otherwise"}


@pytest.mark.parametrize("kind", ["failed", "superseded", "skipped"])
def test_what_is_unknown_may_end_otherwise(story, tmp_path, kind):
    story.dispatches[0] = outcome("d1", "org/a", "unknown")
    story.dispatches.append(outcome("d1", "org/a", kind, error="why"))
    assert not wrong(story.check(tmp_path)[1])


def test_without_redis_a_twin_of_what_was_dispatched_may_be_superseded(story, tmp_path):
    story.dispatches.append(outcome("d1", "org/a", "superseded", error="why"))
    story.options = {"without_redis": [(0, 1)]}
    assert not wrong(story.check(tmp_path)[1])


def test_a_duplicate_is_no_other_end(story, tmp_path):
    story.dispatches.append(outcome("d1", "org/a", "duplicate"))
    assert not wrong(story.check(tmp_path)[1])


@pytest.mark.parametrize("record, good", [
    (parked("d1", "org/a"), False), (parked("d1", "ORG/A", "t1.delay.1h", to_topic="t1.dispatch.l1"), False),
    (parked("d1", source="t1.events"), False),
    (parked("d1", "org/a", "t1.callbacks"), True), (parked("d1", "org/a", "t1.delay.1h", to_topic="t1.callbacks"), True)])
def test_what_was_dispatched_and_parked_is_found(story, tmp_path, record, good):
    story.dlq.append(record)
    assert wrong(story.check(tmp_path)[1]) == (set() if good else {"dispatched and ended otherwise"})


@pytest.mark.parametrize("resolutions, good", [(["replayed"], True), (["dropped"], False), ([], False)])
def test_what_was_parked_may_be_dispatched_after_its_replay(story, tmp_path, resolutions, good):
    story.dispatches.insert(0, outcome("d1", "org/a", "failed", error="why"))
    story.dlq.append(parked("d1", "org/a"))
    story.dlq += [("k", b"", {"delivery": "d1", "repo": "org/a", "class": kind, "resolves": "0@0"}, 0, 0) for kind in resolutions]
    assert wrong(story.check(tmp_path)[1]) == (set() if good else {"dispatched and ended otherwise"})


@pytest.mark.parametrize("kind", ["failed", "superseded", "skipped"])
def test_an_end_that_does_not_say_why_is_found(story, tmp_path, kind):
    del story.github[0]
    story.dispatches[0] = outcome("d1", "org/a", kind, error=None)
    story.dlq = [parked("d1", "org/a")] if kind == "failed" else []
    assert wrong(story.check(tmp_path)[1]) == {"ended without a reason"}


@pytest.mark.parametrize("missing", ["class", "error"])
def test_a_parked_record_that_does_not_say_why_is_found(story, tmp_path, missing):
    del story.github[0], story.dispatches[0]
    story.dlq.append(parked("d1", "org/a"))
    del story.dlq[0][2][missing]
    assert wrong(story.check(tmp_path)[1]) == {"ended without a reason"}


def test_calls_out_of_order_are_found(story, tmp_path):
    story.github[0], story.github[2] = story.github[2], story.github[0]
    assert wrong(story.check(tmp_path)[1]) == {"out of order"}


@pytest.mark.parametrize("unknown, without_redis, late", [
    (False, [], None), (True, [], None), (False, [(0, 2000)], None), (True, [(0, 2000)], 1), (True, [(1500, 2000)], None)])
def test_a_first_call_behind_a_newer_one_is_found_unless_it_is_marked_and_redis_was_away(
        story, tmp_path, unknown, without_redis, late):
    """late: how many of them are counted; None: it is wrong."""
    story.github[0], story.github[2] = story.github[2], story.github[0]
    story.dispatches[0] = outcome("d1", "org/a", maybe_duplicate=unknown)
    story.options = {"without_redis": without_redis}
    checker, found = story.check(tmp_path)
    assert wrong(found) == (set() if late else {"out of order"}) and len(checker.late) == (late or 0)


def test_a_repeat_of_what_is_unknown_may_come_late_and_is_counted(story, tmp_path):
    story.github.append(called("d1", "org/a"))
    story.dispatches.append(outcome("d1", "org/a", maybe_duplicate=True))
    checker, found = story.check(tmp_path)
    assert not wrong(found) and not checker.late


def test_an_older_update_that_came_later_may_be_sent_first(story, tmp_path):
    story.events = [("k", json.dumps({"pull_request": {"updated_at": f"2026-11-21T03:2{9 - n}:00Z"}}).encode(),
                     {**HEADERS, "delivery": d}, 0, n) for n, d in enumerate(("d1", "d2"))]
    assert wrong(story.check(tmp_path)[1]) == {"out of order"}
    story.github[:4] = [called(d, r) for d in ("d2", "d1") for r in ("org/a", "org/b")]
    assert not story.check(tmp_path)[1].problems()


def test_each_first_dispatch_is_measured_from_its_own_202(story, tmp_path):
    """That of d1 for org/a came late, others went on meanwhile; what was answered before is not asked for."""
    story.sent = [{"delivery": "d1", "status": 202, "at_ms": 1000}, {"delivery": "d2", "status": 202, "at_ms": 900}]
    for line, at_ms in zip(story.github, (7000, 1010, 1020, 1030)):
        line["at_ms"] = at_ms
    story.github.append({**called("d1", "org/b"), "at_ms": 9000})  # a repeat
    checker, _ = story.check(tmp_path)
    assert checker.waits_ms(1000) == {("d1", "org/a"): 6000, ("d1", "org/b"): 10}
    assert len(checker.waits_ms()) == 4


def test_a_tier_that_stands_still_is_seen_while_others_go_on():
    others = {("d", f"org-{letter}/backend"): [{"at_ms": at} for at in range(0, 9000, 500)] for letter in "aegk"}
    still = others | {("d", "org-g/backend"): [{"at_ms": at} for at in (500, 6600, 9900)]}
    assert storm.longest_pauses(still, 0, 9000) == {"L1": 500, "L2": 500, "L3": 6100, "L4": 500}
    assert storm.longest_pauses(still, 0, 12000)["L1"] == 3500


def test_what_a_reporter_that_ended_in_order_left_to_do_again_is_found(story, tmp_path):
    job = ("org/b", "d1", "5", "test")
    checker, _ = story.check(tmp_path)
    checker.hud = {job: ["in_progress", "completed"]}
    assert rolling.told_again(checker) == 0 == checker.counts["repeated rows"]
    checker.hud[job].append("completed")
    assert rolling.told_again(checker) == 1


def test_a_row_of_results_that_stands_there_twice_is_counted(story, tmp_path):
    story.results.append(result("completed"))
    checker, found = story.check(tmp_path)
    assert checker.counts["repeated rows"] == 1 and not wrong(found)


def test_a_callback_missing_in_results_is_found(story, tmp_path):
    story.results.pop()
    assert wrong(story.check(tmp_path)[1]) == {"callback lost in results"}


def stored_callback(repo="Org/B", job="other"):
    """Of a second job, without a line in github.jsonl: its answer was no 2xx."""
    body = {"delivery_id": "d1", "workflow": {"name": "CI", "job_name": job, "run_id": 5, "status": "completed"}}
    return ("d1/org/b", json.dumps(body).encode(), {"repo": repo}, 0, 0)


@pytest.mark.parametrize("rows, redis, kinds", [
    (1, 1, set()), (0, 1, {"callback lost in results"}), (1, 0, {"callback lost in Redis"})])
def test_a_callback_that_is_stored_and_was_not_answered_with_2xx_is_looked_for(story, tmp_path, rows, redis, kinds):
    story.callbacks = [stored_callback()]
    story.results += [result("completed", job="other")] * rows
    story.redis |= {("org/b", "d1", "5", "other"): "completed"} if redis else {}
    checker, found = story.check(tmp_path)
    assert wrong(found) == kinds and checker.settled() == bool(rows)


@pytest.mark.parametrize("record", [
    ("k", b"{", {"repo": "org/b"}, 0, 0), ("k", None, {"repo": "org/b"}, 0, 0), ("k", b"{}", {"repo": "org/b"}, 0, 0),
    ("k", b'{"delivery_id": "d1", "workflow": []}', {"repo": "org/b"}, 0, 0), (*stored_callback()[:2], {}, 0, 0)])
def test_what_others_wrote_into_callbacks_is_none(story, tmp_path, record):
    story.callbacks = [record]
    checker, found = story.check(tmp_path)
    assert not wrong(found) and checker.counts["foreign records"] == 1 and len(checker.callbacks) == 1


def test_a_callback_missing_in_redis_is_found(story, tmp_path):
    story.redis.clear()
    assert wrong(story.check(tmp_path)[1]) == {"callback lost in Redis"}


def test_a_state_that_goes_back_is_found(story, tmp_path):
    story.results.append(result("in_progress", name="other text"))
    story.results.append(result("completed"))
    assert wrong(story.check(tmp_path)[1]) == {"state went back"}


@pytest.mark.parametrize("value", [b"{", b"", b'"text"', b"{}", b"\xff", b"[" * 100_000, b'{"n": ' + b"9" * 5000 + b"}"])
def test_what_others_wrote_into_results_is_no_row(story, tmp_path, value):
    story.results.append(("poison", value, {}, 0, 0))
    checker, found = story.check(tmp_path)
    assert not wrong(found) and not checker.rows["poison"]


def test_what_was_given_up_is_told_of_some_deliveries_only(story, tmp_path):
    story.dlq += [parked("d1", "org/a"), parked("d3")]
    checker, _ = story.check(tmp_path)
    assert len(checker.given_up()) == 2 and len(checker.given_up({"d1"})) == 1 and not checker.given_up({"d2"})


def test_rows_that_a_producer_wrote_twice_in_order_are_none(story, tmp_path):
    story.results += story.results
    assert not wrong(story.check(tmp_path)[1])


def test_an_older_row_that_is_the_last_one_is_found(story, tmp_path):
    story.results.append(story.results[0])
    assert wrong(story.check(tmp_path)[1]) == {"state went back"}


def test_a_later_attempt_may_begin_again(story, tmp_path):
    story.results.append(result("in_progress", attempt="2"))
    assert "state went back" not in wrong(story.check(tmp_path)[1])


# ---- what is to be seen outside ---------------------------------------------------------------------------------
ENDED, GOING = (3, "completed"), (1, "in_progress")
SUCCESS = ("completed", "success")
OF_L4, OF_L1 = ("org-j/backend", "d1", "5", "test"), ("org-a/backend", "d1", "6", "test")
ACKNOWLEDGED = {"d1": {"sha": "c0ffee"}}


def shown(aggregate=(SUCCESS,), job=(SUCCESS,)):
    return {("c0ffee", "crcr/org-j/backend"): list(aggregate), ("c0ffee", "crcr/org-j/backend/CI/test"): list(job)}


def test_a_job_that_is_shown_once_and_as_it_ended_is_well():
    assert not unshown({OF_L4: ENDED, OF_L1: ENDED}, ACKNOWLEDGED, shown(), {})
    assert not unshown({OF_L4: GOING}, ACKNOWLEDGED, shown([("in_progress", None)], [("in_progress", None)]), {})


def test_a_second_dispatch_may_have_a_check_run_of_its_own():
    twice = shown([SUCCESS, SUCCESS], [SUCCESS, SUCCESS])
    assert not unshown({OF_L4: ENDED}, ACKNOWLEDGED, twice, {("d1", "org-j/backend"): ["one", "two"]})
    assert unshown({OF_L4: ENDED}, ACKNOWLEDGED, twice, {("d1", "org-j/backend"): ["one"]})


def test_a_dispatch_at_l4_has_its_aggregate_also_when_no_job_called_back():
    one, key = {("c0ffee", "crcr/org-j/backend"): [("queued", None)]}, ("d1", "org-j/backend")
    assert not unshown({}, ACKNOWLEDGED, one, {key: ["one"], ("d1", "org-a/backend"): ["one"], ("d0", "org-j/backend"): ["one"]})
    assert unshown({}, ACKNOWLEDGED, {}, {key: ["one"]})
    assert unshown({}, ACKNOWLEDGED, {("c0ffee", "crcr/org-j/backend"): [("queued", None)] * 2}, {key: ["one"]})


def test_the_check_run_of_a_twin_that_was_superseded_stays_beside_the_dispatch_s_own():
    key = ("d1", "org-j/backend")
    both = {("c0ffee", "crcr/org-j/backend"): [("completed", "cancelled"), ("queued", None)]}
    assert not unshown({}, ACKNOWLEDGED, both, {key: ["one"]}, {key})
    assert unshown({}, ACKNOWLEDGED, both, {key: ["one"]})
    assert unshown({}, ACKNOWLEDGED, {("c0ffee", "crcr/org-j/backend"): [("completed", "cancelled")]}, {key: ["one"]}, {key})
    assert unshown({}, ACKNOWLEDGED, {("c0ffee", "crcr/org-j/backend"): [("queued", None)] * 2}, {key: ["one"]}, {key})


def test_a_check_run_of_a_downstream_that_has_none_is_found():
    assert not unasked(shown(), ["org-j/backend", "org-a/backend"])
    assert unasked({("c0ffee", "crcr/org-a/backend"): [SUCCESS]}, ["Org-A/backend"])
    assert not unasked({("c0ffee", "crcr/org-x/l3"): [SUCCESS]}, [])


@pytest.mark.parametrize("what", [
    shown(job=[]), shown(aggregate=[]), shown(job=[SUCCESS, SUCCESS]), shown(job=[("in_progress", None)]),
    shown(aggregate=[SUCCESS, ("queued", None)]), shown(aggregate=[("completed", "failure")]), {}])
def test_a_job_that_is_not_shown_or_twice_or_not_as_it_ended_is_found(what):
    assert len(unshown({OF_L4: ENDED}, ACKNOWLEDGED, what, {})) == (2 if not what else 1)


@pytest.mark.parametrize("states, in_order, good", [
    (["in_progress", "completed"], True, True),
    (["completed"], True, True),
    (["in_progress"], False, False),
    ([], False, False),
    (["completed", "in_progress"], False, False),
    (["completed", "in_progress", "completed"], False, True),  # a batch that was told once more
    (["completed", "in_progress", "completed"], True, False)])
def test_a_job_whose_last_state_the_hud_does_not_know_is_found(states, in_order, good):
    assert bool(untold({OF_L1: ENDED}, {OF_L1: states}, in_order)) != good


@pytest.mark.parametrize("told, missing", [
    (["in_progress", "completed"], set()),
    (["completed", "in_progress", "completed"], set()),
    (["completed"], {"in_progress"}),
    (["in_progress"], {"completed"}),
    ([], {"completed", "in_progress"})])
def test_a_row_that_the_hud_was_never_told_is_found(story, tmp_path, told, missing):
    checker, _ = story.check(tmp_path)
    job = ("org/b", "d1", "5", "test")
    found = untold_rows(checker.states, {job: told})
    assert found == [f"{job}: 1 rows are {status}, the HUD was told 0" for status in ("in_progress", "completed") if status in missing]


def test_each_of_several_rows_in_one_state_is_told_but_not_what_was_written_twice(story, tmp_path):
    story.results += [result("completed", name="more"), result("completed")]
    checker, _ = story.check(tmp_path)
    assert len(untold_rows(checker.states, {("org/b", "d1", "5", "test"): ["in_progress", "completed"]})) == 1
    assert not untold_rows(checker.states, {("org/b", "d1", "5", "test"): ["in_progress", "completed", "completed"]})


def test_a_time_out_is_told_as_an_end():
    assert not untold_rows({OF_L1: {"timed_out": 1}}, {OF_L1: ["completed"]})
    assert untold_rows({OF_L1: {"timed_out": 1, "completed": 0}}, {OF_L1: ["in_progress"]})
