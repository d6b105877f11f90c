"""The life of a PyTorch pull request, as pytorch#171269 lived it: draft, pushes, a label and its tag, review, closed by
a merge bot that merges by pushing, reverted, reopened, closed again, and main moving on all the while. One webhook
comes late, one downstream fails once. Then everything is looked at."""
import json

import pytest

from lib.downstream import post, wait_idle, wait_dispatch
from lib.kafka import read_topic
from lib.processes import wait_for
from lib.redis_server import redis_server
from lib.relay import Relay
from lib.upstream import PullRequest, outcomes_of, push, sha_of

ONE, TWO, NPU, GPU, FOUR = "org/one", "org/two", "org/npu", "org/gpu", "org/four"
ALL = (ONE, TWO, NPU, GPU, FOUR)
NIGHTLY = "org/nightly-only"
LABEL = "ciflow/crcr/npu"
ALLOWLIST = f"""\
L1: [{ONE}]
L2:
  - {TWO}
  - {NIGHTLY}: {{events: [nightly]}}
L3:
  npu: {{ {NPU}: [alice] }}
  gpu: {{ {GPU}: [bob] }}
L4:
  - {FOUR}: carol
"""


class Life:
    """Everything that happened, by name: deliveries and the commits that they were about."""

    def __init__(self, relay):
        self.relay, self.pr = relay, PullRequest(relay, number=171269, draft=True)
        self.deliveries, self.heads, self.main = {}, {}, [sha_of("main 0")]

    def note(self, name, delivery):
        """The next thing happens when this one has reached everybody: so it is with people."""
        self.deliveries[name], self.heads[name] = delivery, self.pr.sha
        for repo in ALL:
            wait_dispatch(self.relay, delivery, repo)

    def checked(self, *repos):
        """Nobody moves on before the jobs on this commit have ended and are shown there."""
        for repo in repos:
            wait_for(f"the check runs of {repo} on {self.pr.sha}", lambda repo=repo: (
                runs := checks(self, self.pr.sha, repo)) and all(run["conclusion"] for run in runs), 60)

    def main_moves(self, name):
        before, after = self.main[-1], sha_of(f"main {len(self.main)}")
        self.main.append(after)
        self.deliveries[name], self.heads[name] = push(self.relay, "refs/heads/main", after, before), after

    def happens(self):
        pr = self.pr
        self.note("opened", pr.opened())
        self.checked(FOUR)
        self.note("first push", pr.pushed())
        self.checked(FOUR)
        self.main_moves("main 1")
        late = pr.pushed_event()
        self.heads["late push"] = pr.sha
        self.note("third push", pr.pushed())
        self.checked(FOUR)
        pr.labeled(LABEL)
        self.note("tag", push(self.relay, f"refs/tags/{LABEL}/{pr.number}", pr.sha))
        self.checked(FOUR, NPU)
        pr.ready_for_review()
        self.deliveries["late push"] = pr.send(late)
        post(self.relay, "/_sim/script", {"method": "POST", "path": "*/dispatches", "repo": TWO,
                                          "status": 503, "count": 1})
        self.note("closed", pr.closed())
        for name in ("main 2: the merge", "main 3", "main 4: the revert"):
            self.main_moves(name)
        self.note("reopened", pr.reopened())
        self.note("fourth push", pr.pushed())
        self.checked(FOUR, NPU)
        self.note("closed again", pr.closed())
        self.main_moves("main 5: the second merge")


@pytest.fixture(scope="module")
def life(kafka_node, tmp_path_factory):
    folder = tmp_path_factory.mktemp("life")
    with redis_server(folder / "redis") as redis:
        relay = Relay(folder, kafka_node.brokers, redis, allowlist=ALLOWLIST,
                      environment={"RATE_LIMIT_PER_MIN": "100000"})
        try:
            relay.start_all()
            post(relay, "/_sim/downstreams", {"repo": "*", "delay_ms": 20, "run_ms": 20, "after_ms": 10})
            one = Life(relay)
            one.happens()
            wait_idle(relay, ("crcr-router", "crcr-l1", "crcr-l2", "crcr-l3", "crcr-l4"))
            wait_for("every run to have reported", lambda: all(
                len(completed(one, repo)) == len(one.deliveries) - 1 for repo in ALL if repo != ONE), 60)
            wait_idle(relay, ("crcr-fold", "crcr-reconcile", "crcr-forward"))
            yield one
        finally:
            relay.stop()


def sent(life, repo):
    """The names of what was dispatched to a downstream, in the order of the calls."""
    names = {delivery: name for name, delivery in life.deliveries.items()}
    return [names[one["client_payload"]["delivery_id"]] for one in life.relay.state()["dispatches"]
            if one["repo"] == repo]


def completed(life, repo):
    """The deliveries whose run of that downstream has ended, as the HUD shows them."""
    done = set()
    for delivery in life.deliveries.values():
        rows = (life.relay.api(f"/api/crcr/deliveries/{delivery}") or {"jobs": []})["jobs"]
        done |= {delivery for row in rows
                 if row["downstream_repo"] == repo and row["status"] == "completed"}
    return done


OF_THE_PULL_REQUEST = ["opened", "first push", "third push", "closed", "reopened", "fourth push", "closed again"]
OF_MAIN = ["main 1", "main 2: the merge", "main 3", "main 4: the revert", "main 5: the second merge"]


@pytest.mark.parametrize("repo", ALL)
def test_each_downstream_of_each_tier_got_every_state_in_order_and_once(life, repo):
    assert [name for name in sent(life, repo) if name in OF_THE_PULL_REQUEST] == OF_THE_PULL_REQUEST


@pytest.mark.parametrize("repo", ALL)
def test_every_push_to_main_was_dispatched_in_order_and_once(life, repo):
    assert [name for name in sent(life, repo) if name.startswith("main")] == OF_MAIN


@pytest.mark.parametrize("repo", ALL)
def test_the_tag_of_the_label_was_dispatched_once(life, repo):
    assert sent(life, repo).count("tag") == 1


def test_nothing_stale_was_started(life):
    """What came after a later state had been sent is superseded, for every downstream, and says so."""
    rows = read_topic(life.relay.kafka, life.relay.topic("dispatches"))
    assert outcomes_of(rows, life.deliveries["late push"]) == {repo: ["superseded"] for repo in ALL}
    assert all("late push" not in sent(life, repo) for repo in ALL)
    assert not [run for run in life.relay.state()["check_runs"]
                if run["head_sha"] == life.heads["late push"]]


def test_every_stored_event_has_one_end_for_each_downstream_that_takes_it(life):
    rows = read_topic(life.relay.kafka, life.relay.topic("dispatches"))
    for name, delivery in life.deliveries.items():
        ends = {repo: [one for one in outcomes if one not in ("waiting", "unknown")]
                for repo, outcomes in outcomes_of(rows, delivery).items()}
        end = "superseded" if name == "late push" else "dispatched"
        assert ends == {repo: [end] for repo in ALL}, name
    assert read_topic(life.relay.kafka, life.relay.topic("dlq")) == []


def test_the_call_that_failed_once_is_the_only_one_that_may_be_double(life):
    rows = [json.loads(row.value) for row in read_topic(life.relay.kafka, life.relay.topic("dispatches"))]
    marked = {(row["repo"], row["delivery_id"]) for row in rows if row.get("maybe_duplicate")}
    assert marked == {(TWO, life.deliveries["closed"])}


def test_a_downstream_that_takes_nightly_runs_only_got_nothing(life):
    assert sent(life, NIGHTLY) == []


def test_l4_has_check_runs_on_every_head_of_the_pull_request_and_none_on_main(life):
    for name in ("opened", "first push", "third push", "fourth push"):
        runs = checks(life, life.heads[name], FOUR)
        assert runs and {run["conclusion"] for run in runs} == {"success"}, name
    for sha in life.main:
        assert [run for run in life.relay.state()["check_runs"] if run["head_sha"] == sha] == []


def test_l3_has_check_runs_from_its_label_on(life):
    for name in ("third push", "fourth push"):
        runs = checks(life, life.heads[name], NPU)
        assert runs and {run["conclusion"] for run in runs} == {"success"}, name
    for name in ("opened", "first push"):
        assert checks(life, life.heads[name], NPU) == []
    assert not [run for run in life.relay.state()["check_runs"] if f"/{GPU}" in run["name"]]


def test_l1_and_l2_have_no_check_run_and_l1_no_row(life):
    assert not [run for run in life.relay.state()["check_runs"]
                if run["name"].startswith((f"crcr/{ONE}", f"crcr/{TWO}"))]
    assert completed(life, ONE) == set()
    assert len(completed(life, TWO)) == len(life.deliveries) - 1


def test_what_a_downstream_was_given_tells_a_draft_a_close_and_the_label(life):
    given = {one["client_payload"]["delivery_id"]: one["client_payload"]["payload"]
             for one in life.relay.state()["dispatches"] if one["repo"] == ONE}

    def seen(name):
        request = given[life.deliveries[name]]["pull_request"]
        return (given[life.deliveries[name]]["action"], request["draft"], request["state"], request["merged"],
                [label["name"] for label in request["labels"]])
    assert seen("opened") == ("opened", True, "open", False, [])
    assert seen("closed") == ("closed", False, "closed", False, [LABEL])
    assert seen("reopened") == ("reopened", False, "open", False, [LABEL])
    assert given[life.deliveries["main 1"]]["after"] == life.heads["main 1"]


def test_the_page_of_the_pull_request_shows_its_deliveries_and_its_label(life):
    page = life.relay.api("/api/crcr/prs/171269")
    assert page["labels"] == [LABEL]
    mine = {life.deliveries[name] for name in OF_THE_PULL_REQUEST + ["tag", "late push"]}
    assert {one["delivery_id"] for one in page["deliveries"]} == mine


def checks(life, sha, repo):
    """Check runs of single jobs; the aggregate has no name after the repository's."""
    return [run for run in life.relay.state()["check_runs"]
            if run["head_sha"] == sha and run["name"].startswith(f"crcr/{repo}/")]
