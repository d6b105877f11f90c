"""The step counts of tests/run: which path has grown, by how much, and how to renew the baseline."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import baseline  # noqa: E402

BEFORE = {"sender: a dispatch": 100_000, "ingest: a webhook": 50_000}


def test_five_percent_more_is_no_growth():
    assert not baseline.grown(BEFORE, {"sender: a dispatch": 105_000, "ingest: a webhook": 20_000})


def test_more_than_that_is_named_with_how_to_renew_the_baseline():
    found = baseline.grown(BEFORE, {**BEFORE, "sender: a dispatch": 106_000})
    assert found == ["sender: a dispatch: 106.0 thousand instructions, 6.0% more than 100.0",
                     f"If that is meant: {baseline.WRITE}, and commit tests/bench/counts.json"]


def test_a_path_that_only_one_of_them_has_is_named():
    found = baseline.grown(BEFORE, {"sender: a dispatch": 100_000, "fold: a callback": 1})
    assert found[:2] == ["fold: a callback: not in the baseline", "ingest: a webhook: not counted any more"]


def test_the_floors_are_no_paths(tmp_path):
    now = {**BEFORE, "bare_chain: a dispatch": 10, "produce_loop: a record": 10}
    assert not baseline.grown(BEFORE, now)
    baseline.write(now, tmp_path / "counts.json")
    assert baseline.read(tmp_path / "counts.json") == BEFORE


def test_there_is_a_baseline_of_each_path_that_a_bar_is_of():
    paths = {"ingest: a webhook", "ingest: a callback", "router: an event for 12", "sender: a dispatch", "fold: a callback",
             "redis: a dispatch", "redis: a callback"}
    assert paths == set(baseline.read())
