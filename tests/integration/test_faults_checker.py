"""The checker of tests/faults finds each kind of loss: a check that cannot fail would prove nothing."""
import datetime
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))

from rows import row_03_rolling as rolling  # noqa: E402 (after the path is set)
from rows import row_15_storm as storm  # noqa: E402
from story import EVENT_KEY, HEADERS, Story, called, outcome, parked, result, wrong  # noqa: E402


@pytest.fixture(params=["repo", "repos"])
def story(request):
    """With records of tasks for one downstream each, and with records for all."""
    return Story(request.param)


def test_nothing_is_found_when_all_went_well(story, tmp_path):
    checker, found = story.check(tmp_path)
    assert checker.is_done() and not found.problems()


def test_an_acknowledged_event_that_is_not_stored_is_found(story, tmp_path):
    story.sent.append({"delivery": "d3", "status": 202})
    assert wrong(story.check(tmp_path)[1]) == {"acknowledged but not stored"}


def test_an_event_that_was_refused_need_not_be_stored(story, tmp_path):
    story.sent.append({"delivery": "d3", "status": 503})
    assert not wrong(story.check(tmp_path)[1])


def test_a_missing_dispatch_is_found(story, tmp_path):
    del story.github[0], story.dispatches[0]
    checker, found = story.check(tmp_path)
    assert wrong(found) == {"lost"} and not checker.is_done()


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
    assert wrong(found) == {"dispatch without a final outcome"} and not checker.is_done()


def call(kind="dispatched", began_ms=0, ended_ms=0, marked=False):
    """The outcome of a call of d2 for org/a."""
    at = datetime.datetime.fromtimestamp(began_ms / 1000, datetime.timezone.utc).isoformat(timespec="milliseconds")
    return outcome("d2", "org/a", kind, at=at, received_ms=500, latency_ms=ended_ms - 500, maybe_duplicate=marked)


HOUR_MS = 3_600_000


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("calls, without_redis, found", [
    ([(950, 1100), (19_950, 20_100)], (), True),                   # 0.1 s after the first call, 18.9 s before the second
    ([(950, 1100), (19_950, 20_100)], [(19_000, 19_500)], False),  # who knew of it had lost its memory
    ([(950, 19_900), (19_950, 20_100)], (), False),                # it became known while the second was under way
    ([(HOUR_MS, HOUR_MS + 100), (HOUR_MS + 19_000, HOUR_MS + 19_100)], (), False)])  # by a clock that was set
def test_a_marked_dispatch_after_one_that_was_known_is_found(story, tmp_path, calls, without_redis, found, marked):
    """Also where the first was marked itself. Then the second one needs another call for its own mark to pay for."""
    story.github.append(called("d2", "org/a", at_ms=20_000))
    story.dispatches[2:3] = [call("dispatched", *calls[0], marked), call("dispatched", *calls[1], True),
                             *[call("unknown", calls[1][0] + 1, calls[1][0] + 2, True)] * marked]
    story.options = {"without_redis": without_redis}
    assert wrong(story.check(tmp_path)[1]) == ({"second dispatch although the first was known"} if found else set())


def test_a_third_dispatch_after_a_second_that_was_known_is_found(story, tmp_path):
    story.github += [called("d2", "org/a", at_ms=20_000), called("d2", "org/a", at_ms=40_000)]
    story.dispatches[2:3] = [call("unknown", 950, 11_000), call("dispatched", 19_950, 20_100, True),
                             call("dispatched", 39_950, 40_100, True)]
    assert wrong(story.check(tmp_path)[1]) == {"second dispatch although the first was known"}


@pytest.mark.parametrize("calls, good", [
    ([call("unknown", 950, 990, True), call("dispatched", 1000, 1100, True)], True),
    ([call("unknown", 950, 990, True), call("dispatched", 1000, 1100)], False),
    ([call("unknown", 1000, 1200), call("dispatched", 950, 1100, True)], False),  # by when they were reported in the other order
    ([call("dispatched", 950, 1100, True), call("duplicate", 1000, 1200, True)], False)])  # nobody reported one, and nobody was killed
def test_the_mark_of_the_first_call_pays_for_no_second_one(story, tmp_path, calls, good):
    story.github.append(called("d2", "org/a"))
    story.dispatches[2:3] = calls
    assert wrong(story.check(tmp_path)[1]) == (set() if good else {"more dispatches than marked ones"})


@pytest.mark.parametrize("calls, good", [
    ([call("unknown", 950, 990)], True),              # the second one was marked, and its sender is dead
    ([call("dispatched", 950, 990, True)], True),     # that of the first one is
    ([call("dispatched", 950, 990, False)], False)])  # neither the first nor the second one is marked
def test_of_a_killed_sender_one_call_may_be_unreported(story, tmp_path, calls, good):
    story.github.append(called("d2", "org/a"))
    story.dispatches[2:3] = [*calls, call("duplicate", marked=True)]
    story.options = {"senders_killed": True}
    assert wrong(story.check(tmp_path)[1]) == (set() if good else {"more dispatches than marked ones"})


def test_a_call_after_an_unknown_one_that_is_not_marked_is_found(story, tmp_path):
    story.github += [called("d2", "org/a"), called("d2", "org/a")]
    story.dispatches[2] = outcome("d2", "org/a", "unknown")
    story.dispatches += [outcome("d2", "org/a", maybe_duplicate=True), outcome("d2", "org/a")]
    assert wrong(story.check(tmp_path)[1]) == {"more dispatches than marked ones"}


@pytest.mark.parametrize("kind", ["unknown", "waiting"])
def test_a_dispatch_that_is_to_be_tried_again_is_not_over(story, tmp_path, kind):
    story.dispatches[0] = outcome("d1", "org/a", kind)
    checker, found = story.check(tmp_path)
    assert wrong(found) == {"dispatch without a final outcome"} and not checker.is_done()


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


def test_each_reported_repeat_allows_no_other(story, tmp_path):
    """Three dispatches, all reported, one marked: no killed sender explains the third."""
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


def test_what_was_overtaken_and_is_read_again_first_may_be_called(story, tmp_path):
    story.dispatches.insert(0, outcome("d1", "org/a", "superseded", error="why"))
    assert not wrong(story.check(tmp_path)[1])


@pytest.mark.parametrize("kinds,found", [(("superseded", "duplicate"), set()),
                                         (("duplicate", "superseded"), {"dispatched and ended otherwise"})])
def test_a_duplicate_alone_says_so_where_the_sender_died_before_it_could(story, tmp_path, kinds, found):
    story.dispatches[:1] = [outcome("d1", "org/a", kind, error="why") for kind in kinds]
    assert wrong(story.check(tmp_path)[1]) == found


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
def test_a_first_call_behind_a_newer_one_is_found_unless_it_is_marked_and_redis_was_unavailable(
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
    story.events = [(EVENT_KEY, json.dumps({"pull_request": {"updated_at": f"2026-11-21T03:2{9 - n}:00Z"}}).encode(),
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
    assert rolling.sent_again(checker) == 0 == checker.counts["repeated rows"]
    checker.hud[job].append("completed")
    assert rolling.sent_again(checker) == 1


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
    assert wrong(found) == kinds and checker.is_done() == bool(rows)


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


def test_what_was_given_up_is_reported_of_some_deliveries_only(story, tmp_path):
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
