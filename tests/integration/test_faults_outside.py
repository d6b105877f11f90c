"""What tests/faults looks for outside of the relay, in GitHub's check runs and at the HUD, is found when it is missing."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))

from outside import passed_ms, past_commits, past_unshown, possible_ms, unasked, unshown, unreported, unreported_rows  # noqa: E402 (after the path is set)
from story import Story, result  # noqa: E402

ENDED, GOING = (3, "completed"), (1, "in_progress")
SUCCESS = ("completed", "success")
OF_L4, OF_L1 = ("org-j/backend", "d1", "5", "test"), ("org-a/backend", "d1", "6", "test")
ACKNOWLEDGED = {"d1": {"sha": "c0ffee"}}


@pytest.fixture
def story():
    return Story()


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
    (["completed", "in_progress", "completed"], False, True),  # a batch that was sent once more
    (["completed", "in_progress", "completed"], True, False)])
def test_a_job_whose_last_state_the_hud_does_not_know_is_found(states, in_order, good):
    assert bool(unreported({OF_L1: ENDED}, {OF_L1: states}, in_order)) != good


@pytest.mark.parametrize("reported, missing", [
    (["in_progress", "completed"], set()),
    (["completed", "in_progress", "completed"], set()),
    (["completed"], {"in_progress"}),
    (["in_progress"], {"completed"}),
    ([], {"completed", "in_progress"})])
def test_a_row_that_the_hud_never_got_is_found(story, tmp_path, reported, missing):
    checker, _ = story.check(tmp_path)
    job = ("org/b", "d1", "5", "test")
    found = unreported_rows(checker.states, {job: reported})
    assert found == [f"{job}: 1 rows are {status}, the HUD got 0" for status in ("in_progress", "completed") if status in missing]


def test_each_of_several_rows_in_one_state_is_reported_but_not_what_was_written_twice(story, tmp_path):
    story.results += [result("completed", name="more"), result("completed")]
    checker, _ = story.check(tmp_path)
    assert len(unreported_rows(checker.states, {("org/b", "d1", "5", "test"): ["in_progress", "completed"]})) == 1
    assert not unreported_rows(checker.states, {("org/b", "d1", "5", "test"): ["in_progress", "completed", "completed"]})


def test_a_time_out_is_reported_as_an_end():
    assert not unreported_rows({OF_L1: {"timed_out": 1}}, {OF_L1: ["completed"]})
    assert unreported_rows({OF_L1: {"timed_out": 1, "completed": 0}}, {OF_L1: ["in_progress"]})


def test_after_a_lost_view_an_aggregate_may_be_there_once_more_and_ended_and_a_job_may_not():
    whole, job = ("c0ffee", "crcr/org-j/backend"), ("c0ffee", "crcr/org-j/backend/CI/test")
    good = [("completed", "success")]
    of_one = {("d1", "org-j/backend"): ["one"]}
    first = shown()
    assert set(first) == {whole, job}, first
    assert not unshown({OF_L4: ENDED}, ACKNOWLEDGED, {**first, whole: good * 2}, of_one, view_lost=True)
    assert unshown({OF_L4: ENDED}, ACKNOWLEDGED, {**first, whole: good * 2}, of_one)
    assert unshown({OF_L4: ENDED}, ACKNOWLEDGED, {**first, whole: good * 3}, of_one, view_lost=True)
    assert unshown({OF_L4: ENDED}, ACKNOWLEDGED, {**first, job: good * 2}, of_one, view_lost=True)
    assert unshown({OF_L4: ENDED}, ACKNOWLEDGED, {**first, whole: [*good, ("queued", None)]}, of_one, view_lost=True)


def test_a_commit_that_its_pull_request_has_gone_past_needs_no_check_run_and_none_that_is_wrong():
    sent = {f"d{n}": {"sha": f"c{n}", "pr": n // 2} for n in range(4)}
    seq = {f"d{n}": (f"2026-01-0{n + 1}", n) for n in range(4)}
    past = past_commits(sent, sent, seq)
    assert past == {"c0", "c2"}
    assert past_commits(sent, {"d0": 0, "d2": 0}, seq) == {"c1", "c3"}, "what is not stored was never heard of"
    calls = {(delivery, "org-j/backend"): ["one"] for delivery in sent}
    heads = {(f"c{n}", "crcr/org-j/backend"): [("queued", None)] for n in (1, 3)}
    assert not unshown({}, sent, heads, calls, past=past)
    assert len(unshown({}, sent, {}, calls, past=past)) == 2
    ended = {("org-j/backend", "d0", "7", "one"): ENDED}
    assert len(unshown(ended, sent, heads | {("c0", "crcr/org-j/backend"): [("queued", None)]}, calls, past=past)) == 1


def test_that_earlier_heads_have_no_check_runs_at_all_is_noticed():
    sent = {f"d{n}": {"sha": f"c{n}", "pr": n // 2, "at_ms": 50_000 * n + 100, "ms": 100} for n in range(200)}
    seq = {delivery: ("2026-01-01", n) for n, delivery in enumerate(sent)}
    passed = passed_ms(sent, sent, seq)
    assert passed == {f"c{n}": 50_000 * (n + 1) for n in range(0, 200, 2)}
    jobs = {("org-j/backend", delivery, "7", "one"): ENDED for delivery in sent}
    shown_of = lambda n: {(f"c{2 * k}", "crcr/org-j/backend/CI/one"): [SUCCESS] for k in range(n)}  # noqa: E731

    def called(after_ms):
        return {job: sent[job[1]]["at_ms"] - 100 + after_ms for job in jobs}
    assert past_unshown(jobs, sent, shown_of(60), passed, called(1000)) == []
    assert past_unshown(jobs, sent, shown_of(40), passed, called(1000)) == ["60 of 100 jobs on earlier heads have no check run"]
    assert past_unshown(jobs, sent, shown_of(40), passed, called(21_000)) == [], "they were passed too soon"
    assert past_unshown(jobs, sent, shown_of(40), passed, {}) == [], "it is not known when they called back"
    begin, end = min(called(0).values()), max(called(30_000).values()) + 1
    assert past_unshown(jobs, sent, shown_of(40), passed, possible_ms(called(1000), (begin, end))) == [], "GitHub took none meanwhile"
    assert past_unshown(jobs, sent, shown_of(40), passed, possible_ms(called(1000), (begin - 2, begin - 1)))

