"""The checker of tests/faults over records of tasks, for one downstream each (`repo`) and for 16 (`repos`): each single loss is
found, and each second call has its reason."""
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))

from checker import NO_REASON, REASONS, UNREPORTED, downstreams  # noqa: E402 (after the path is set)
from story import Story, called, outcome, parked, task, wrong  # noqa: E402

SIXTEEN = [f"org-{letter}/backend" for letter in "abcdefghijklmnop"]
REFUSED, WAITED, TWICE = SIXTEEN[:3], SIXTEEN[3:6], SIXTEEN[6]  # of d1; all else of d1, and d2, went at once


@pytest.fixture(params=["repo", "repos"])
def story(request):
    return Story(request.param)


def dead(story, repos):
    """Their part of d1 in the dead-letter queue."""
    return [(key, b"", {**headers, "source_topic": "t1.dispatch.l2", "class": "refused", "error": "404"}, 0, 0)
            for _, key, headers in task("d1", repos, story.form)]


@pytest.fixture
def sixteen(story):
    """A good history in which of the same event three downstreams refused, three waited, and one was
    called twice, each of these as one part."""
    story = Story(story.form, SIXTEEN)
    story.github = [line for line in story.github if (line.get("delivery"), line["repo"]) not in {("d1", r) for r in REFUSED}
                    and line["kind"] == "dispatch"]
    story.results, story.redis = [], {}
    story.dispatches[:3] = [outcome("d1", repo, "failed", error="404") for repo in REFUSED]
    story.dlq = dead(story, REFUSED)
    story.tasks += task("d1", WAITED, story.form, "delay.1m", to_topic="t1.dispatch.l2")
    story.dispatches += [outcome("d1", repo, "waiting") for repo in WAITED]
    story.tasks += task("d1", [TWICE], story.form, "delay.10s", to_topic="t1.dispatch.l2", maybe_duplicate="answer_unseen")
    story.github.insert(16, called("d1", TWICE, at_ms=1500))
    story.dispatches[story.dispatches.index(outcome("d1", TWICE))] = outcome("d1", TWICE, "unknown")
    story.dispatches.append(outcome("d1", TWICE, maybe_duplicate="answer_unseen"))
    return story


def forget(story, delivery, repo):
    """Neither called nor reported; the records still name it."""
    story.github = [one for one in story.github if (one["delivery"], one["repo"]) != (delivery, repo)]
    story.dispatches = [one for one in story.dispatches if one[0] != f"{delivery}/{repo}"]


def rename(story, topic, old, new):
    """Renames, or without a new name drops, a downstream in the records of a topic."""
    tasks, story.tasks = story.tasks, []
    for one, key, headers in tasks:
        names = [new if name == old else name for name in downstreams(headers)] if one == topic else downstreams(headers)
        story.tasks += task(headers["delivery"], [name for name in names if name], story.form, one,
                            **{k: v for k, v in headers.items() if k not in ("delivery", "repo", "repos")})


def test_parts_of_one_event_that_end_in_different_ways_are_well(sixteen, tmp_path):
    checker, found = sixteen.check(tmp_path)
    assert checker.is_done() and not found.problems()
    assert len(checker.tasks) == 32 and checker.reasons() == {"answer_unseen": 1}


@pytest.mark.parametrize("repo", [repo for repo in SIXTEEN if repo not in REFUSED])
def test_each_downstream_that_is_not_called_is_found(sixteen, tmp_path, repo):
    """Also one of a part that waited."""
    forget(sixteen, "d1", repo)
    assert wrong(sixteen.check(tmp_path)[1]) == {"lost"}


@pytest.mark.parametrize("reported", [True, False])
@pytest.mark.parametrize("repo", REFUSED)
def test_each_downstream_that_the_dead_letter_queue_lacks_is_found(sixteen, tmp_path, repo, reported):
    """Whether or not its outcome says that it failed."""
    sixteen.dlq = dead(sixteen, [other for other in REFUSED if other != repo])
    if not reported:
        forget(sixteen, "d1", repo)
    assert wrong(sixteen.check(tmp_path)[1]) == {"failed without a dead letter" if reported else "lost"}


@pytest.mark.parametrize("topic", ["dispatch.l1", "delay.1m"])
def test_a_downstream_that_only_a_record_names_is_found_when_it_has_no_end(sixteen, tmp_path, topic):
    """What the checker does not know as eligible, such as a dispatch that a re-run made."""
    rename(sixteen, topic, WAITED[1], "org-x/backend")
    assert wrong(sixteen.check(tmp_path)[1]) == {"lost"}


def test_what_a_router_did_not_write_is_found(sixteen, tmp_path):
    rename(sixteen, "dispatch.l1", SIXTEEN[9], None)
    forget(sixteen, "d1", SIXTEEN[9])
    assert wrong(sixteen.check(tmp_path)[1]) == {"lost"}


@pytest.mark.parametrize("repo", [repo for repo in SIXTEEN if repo not in (*REFUSED, TWICE)])
def test_each_second_call_without_a_mark_is_found(sixteen, tmp_path, repo):
    sixteen.github.insert(16, called("d1", repo, at_ms=1500))
    assert wrong(sixteen.check(tmp_path)[1]) == {"second dispatch although the first was known"}


def test_a_second_call_that_lost_its_mark_is_found(sixteen, tmp_path):
    sixteen.dispatches[-1] = outcome("d1", TWICE)
    assert wrong(sixteen.check(tmp_path)[1]) == {"more dispatches than marked ones"}


@pytest.mark.parametrize("repo", [repo for repo in SIXTEEN if repo not in (*REFUSED, TWICE)])
def test_each_downstream_whose_calls_are_out_of_order_is_found(sixteen, tmp_path, repo):
    one, other = (sixteen.github.index(called(d, repo)) for d in ("d1", "d2"))
    sixteen.github[one], sixteen.github[other] = sixteen.github[other], sixteen.github[one]
    assert wrong(sixteen.check(tmp_path)[1]) == {"out of order"}


@pytest.mark.parametrize("repo", [repo for repo in SIXTEEN if repo not in (*REFUSED, TWICE)])
def test_each_downstream_without_a_final_outcome_is_found(sixteen, tmp_path, repo):
    sixteen.dispatches = [one for one in sixteen.dispatches if one[0] != f"d1/{repo}" or json.loads(one[1])["outcome"] != "dispatched"]
    assert wrong(sixteen.check(tmp_path)[1]) == {"dispatch without a final outcome"}


@pytest.mark.parametrize("topic", ["dispatch.l1", "delay.10s", "delay.1m"])
def test_a_task_that_names_no_downstream_is_found(sixteen, tmp_path, topic):
    at = next(n for n, record in enumerate(sixteen.tasks) if record[0] == topic)
    sixteen.tasks[at][2].pop(sixteen.form)
    assert wrong(sixteen.check(tmp_path)[1]) == {"record names no downstream"}


def test_a_dead_task_that_names_no_downstream_stands_for_no_event(sixteen, tmp_path):
    """An event in the dead-letter queue is for all downstreams, since it comes from events."""
    for _, _, headers, *_ in sixteen.dlq:
        headers.pop(sixteen.form)
    for repo in SIXTEEN:
        forget(sixteen, "d1", repo)
    checker, found = sixteen.check(tmp_path)
    assert wrong(found) == {"lost", "record names no downstream"} and len(checker.open_dispatches()) == len(SIXTEEN)


def test_what_another_topic_parked_ends_no_task(story, tmp_path):
    del story.github[0], story.dispatches[0]
    story.dlq = [parked("d1", "org/a", "t1.callbacks"), parked("d1", source="t1.reconcile")]
    assert wrong(story.check(tmp_path)[1]) == {"lost"}


def test_poison_that_row_13_wrote_is_no_task(story, tmp_path):
    story.tasks.append(("dispatch.l1", "", {"delivery": "d1", "kind_of_poison": "bad JSON"}))
    story.dlq.append(("", b"", {"delivery": "d3", "kind_of_poison": "bad JSON", "source_topic": "t1.dispatch.l1",
                                "class": "poison", "error": "header repo is missing"}, 0, 0))
    assert not wrong(story.check(tmp_path)[1])


@pytest.mark.parametrize("kind, n, good", [("dispatch", 16, True), ("dispatch", 17, False), ("expand", 1, True), ("expand", 2, False),
                                           ("rerun_failed", 2, False), ("rerun_all", 2, False)])
def test_a_record_that_names_too_many_downstreams_is_found(tmp_path, kind, n, good):
    story = Story("repos", SIXTEEN + ["org/b"])
    record = task("d1", story.repos[:n], "repos")[0]
    story.tasks.append((*record[:2], {**record[2], "kind": kind}))
    story.tasks = story.tasks[2:]  # of the good story: these are of 17
    assert wrong(story.check(tmp_path)[1]) == (set() if good else {"record names too many downstreams"})


def test_a_record_under_another_key_is_found(sixteen, tmp_path):
    """Its key is what keeps it in order."""
    topic, key, headers = sixteen.tasks[3 if sixteen.form == "repo" else 0]
    sixteen.tasks.append((topic, key.replace("#7", "#8"), headers))
    assert wrong(sixteen.check(tmp_path)[1]) == {"record under another key"}


@pytest.mark.parametrize("mark, good", [*[(reason, True) for reason in REASONS], (True, True), ("because", False)])
def test_a_mark_is_a_known_reason_or_todays(story, tmp_path, mark, good):
    story.github.append(called("d2", "org/a"))
    story.dispatches.append(outcome("d2", "org/a", maybe_duplicate=mark))
    checker, found = story.check(tmp_path)
    assert wrong(found) == (set() if good else {"marked for no known reason"})
    assert checker.reasons() == {NO_REASON if mark is True else mark: 1}


@pytest.mark.parametrize("mark, good", [("1", True), ("claim_expired", True), ("because", False)])
def test_a_task_is_marked_for_a_known_reason_or_as_today(story, tmp_path, mark, good):
    story.tasks += task("d1", ["org/a"], story.form, "delay.10s", to_topic="t1.dispatch.l1", maybe_duplicate=mark)
    assert wrong(story.check(tmp_path)[1]) == (set() if good else {"marked for no known reason"})


@pytest.mark.parametrize("value", [None, False, "", "missing"])
def test_what_is_not_marked_is_not_in_whatever_form(story, tmp_path, value):
    story.github.append(called("d2", "org/a"))
    one = json.loads(story.dispatches[2][1]) | {"maybe_duplicate": value}
    if value == "missing":
        del one["maybe_duplicate"]
    story.dispatches[2] = ("d2/org/a", json.dumps(one), {}, 0, 0)
    assert wrong(story.check(tmp_path)[1]) == {"second dispatch although the first was known"}


def test_each_second_call_is_explained_by_its_reason(sixteen, tmp_path):
    """Of a task's calls the last ones are taken for those that had an effect."""
    at = sixteen.dispatches.index(outcome("d2", SIXTEEN[1]))
    sixteen.dispatches[at] = outcome("d2", SIXTEEN[1], "unknown", maybe_duplicate="no_claim")
    sixteen.github += [called("d2", SIXTEEN[0]), called("d2", SIXTEEN[0]), called("d2", SIXTEEN[1])]
    for repo, marks in ((SIXTEEN[0], ("no_claim", "answer_unseen")), (SIXTEEN[1], ("claim_expired",))):
        sixteen.dispatches += [outcome("d2", repo, maybe_duplicate=mark) for mark in marks]
    checker, found = sixteen.check(tmp_path)
    assert not wrong(found) and checker.reasons() == {"answer_unseen": 2, "no_claim": 1, "claim_expired": 1}


def test_a_second_call_whose_sender_was_killed_says_so(story, tmp_path):
    story.github += [called("d2", "org/a")] * 2
    story.dispatches[2] = outcome("d2", "org/a", maybe_duplicate="claim_expired")
    story.options = {"senders_killed": True}
    checker, found = story.check(tmp_path)
    assert not wrong(found) and checker.reasons() == {"claim_expired": 1, UNREPORTED: 1}
