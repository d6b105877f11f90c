"""Ten L4 back ends run ten jobs each on one pull request: 110 check runs, aggregates included, while GitHub takes 80 in 4
seconds and refuses what is more. The relay's bucket holds 60 and is refilled with 180 in 62 seconds: no more than 78 come in 6 seconds,
since on a busy machine a call may come late after the relay has counted it."""
import collections
import hashlib

from lib.downstream import post
from lib.processes import wait_for
from lib.relay import pull_request

REPOS = [f"org-{n}/backend" for n in range(10)]
JOBS = 10
RELAYS, WINDOW_S, LIMIT = 240, 4, 80
ALLOWLIST = "L4:\n" + "".join(f"  - {repo}: carol\n" for repo in REPOS)


def budget(**others):
    return {"CRCR_BUDGET_CONTENT_MINUTE": str(RELAYS), **others}


class Storm:
    def __init__(self, make, **environment):
        self.relay = make(allowlist=ALLOWLIST, environment=budget(**environment), sim_arguments=[
            "--content-limit", str(LIMIT), "--content-window-ms", str(WINDOW_S * 1000)])
        self.relay.start_github()
        post(self.relay, "/_sim/downstreams", {
            "repo": "*", "workflow": "ci", "after_ms": 50,
            "jobs": [{"name": f"job {n}", "delay_ms": 20, "run_ms": 3000 + 100 * n} for n in range(JOBS)]})

    def start(self, *reporters):
        for part in ("ingest", "dispatcher"):
            self.relay.start(part)
        for part in reporters:
            self.relay.start("reporter", part, CRCR_HUD_LISTEN="127.0.0.1:0")
        for part in ("ingest", "dispatcher", *reporters):
            self.relay.wait_ready(part)
        return self

    def blow(self, number=171269):
        status, _, delivery = self.relay.deliver(pull_request(number=number))
        assert status == 202
        return delivery

    def check_runs(self):
        return self.relay.state()["check_runs"]

    def wait_ended(self, timeout=240):
        def ended():
            runs = self.check_runs()
            return len(runs) >= len(REPOS) * (JOBS + 1) and \
                all(run["status"] == "completed" for run in runs) and runs
        return wait_for("all check runs to be completed", ended, timeout)

    def calls(self):
        """(kind, status) → how many, of what the upstream repository was asked; in the order of arrival."""
        count, made = collections.Counter(), []
        for one in self.relay.requests():
            if "/check-runs" not in one["path"]:
                continue
            kind = {"POST": "create", "PATCH": "update", "GET": "find"}[one["method"]]
            count[kind, one["status"]] += 1
            if kind == "create":
                made.append(one)
        return count, made

    def assert_ended_right(self):
        runs = self.wait_ended()
        count, made = self.calls()
        print({f"{kind} {status}": n for (kind, status), n in sorted(count.items())})
        assert not [key for key in count if key[1] >= 400], f"GitHub had to refuse: {count}"
        names = collections.Counter(run["name"] for run in runs)
        wanted = {f"crcr/{repo}" for repo in REPOS} | \
            {f"crcr/{repo}/ci/job {n}" for repo in REPOS for n in range(JOBS)}
        assert set(names) == wanted and set(names.values()) == {1}
        assert {run["conclusion"] for run in runs} == {"success"}
        assert count["create", 201] == 110
        at = [one["at_ms"] for one in made]
        assert max(sum(start <= other < start + WINDOW_S * 1000 for other in at) for start in at) <= LIMIT
        return count, made

    def held(self, part="reporter"):
        return self.relay.metric(part, "crcr_budget_waits_total", bucket="content_minute")


def test_github_never_has_to_refuse_and_what_is_completed_goes_first(fresh_relay):
    storm = Storm(fresh_relay).start("reporter")
    storm.blow()
    count, made = storm.assert_ended_right()
    assert storm.held() > 0, "60 is less than 110"
    said = [one["body"]["status"] for one in made]
    aggregates = [one for one in made if one["body"]["name"] in {f"crcr/{repo}" for repo in REPOS}]
    assert len(aggregates) == len(REPOS)
    assert made.index(aggregates[-1]) < LIMIT, "an aggregate waits for no job"
    for n, one in enumerate(made, 1):  # half of the bucket, and the refill; two seconds on its way at most
        room = RELAYS / 8 + RELAYS * 3 / 4 / 62 * ((one["at_ms"] - made[0]["at_ms"]) / 1000 + 2)
        assert one["body"]["status"] != "in_progress" or n <= room + 1, "it leaves half to those above it"
    assert "in_progress" not in said[LIMIT:], "a completed that is known makes its in_progress superfluous"
    assert said.count("completed") >= 110 - LIMIT
    jobs_twice = 110 - len(REPOS) - said.count("completed")
    assert count["update", 200] >= jobs_twice, "what is there is updated, not made again"
    assert storm.relay.metric("reporter", "crcr_check_runs_total", outcome="limited") == 0


def test_one_back_end_that_floods_holds_up_no_aggregate_of_the_others(fresh_relay):
    """With GitHub's own 500 an hour: org-0 reports 32 jobs for each of three pull requests. That takes all that
    its class has of the hour. No aggregate waits for that. The others' begin within five seconds of the dispatch, and end within ten of the job, as GitHub is
    asked after five whether the run has ended. Those are printed; here, beside other tests, it is twenty."""
    relay = fresh_relay(allowlist=ALLOWLIST, environment={
        "RATE_LIMIT_PER_MIN": "10000", "CRCR_BUDGET_CONTENT_HOUR": "500"})
    relay.start_github()
    hostile, others, run_ms = REPOS[0], REPOS[1:], 1000
    quick = {"workflow": "ci", "after_ms": 50}
    post(relay, "/_sim/downstreams", {"repo": "*", **quick, "jobs": [{"name": "one", "delay_ms": 20, "run_ms": run_ms}]})
    post(relay, "/_sim/downstreams", {"repo": hostile, **quick, "jobs": [
        {"name": f"job {n}", "delay_ms": 20, "run_ms": 20 + 20 * n} for n in range(32)]})
    for part in ("ingest", "dispatcher", "reporter"):
        relay.start(part)
    for part in ("ingest", "dispatcher", "reporter"):
        relay.wait_ready(part)

    def flooded():
        return relay.metric("reporter", "crcr_budget_waits_total", bucket="content_hour") > 0
    for number in range(1, 4):
        assert relay.deliver(pull_request(number=number))[0] == 202
    wait_for("the budget to hold back org-0's check runs", flooded)
    honest = relay.deliver(pull_request(number=101))[2]

    sha = hashlib.sha1(b"101").hexdigest()
    wanted = {(f"crcr/{repo}", sha) for repo in others}

    def completed():
        return {run["id"]: (run["name"], run["head_sha"]) for run in relay.state()["check_runs"]
                if (run["name"], run["head_sha"]) in wanted and run["status"] == "completed"}
    aggregates = wait_for("the others' aggregates to complete", lambda: len(completed()) == len(wanted) and completed())
    asked, began, ended = {}, {}, {}
    for one in relay.requests():
        if one["path"].endswith("/dispatches") and one["body"]["client_payload"]["delivery_id"] == honest:
            asked["crcr/" + one["path"].removeprefix("/repos/").removesuffix("/dispatches"), sha] = one["at_ms"]
        elif one["method"] == "POST" and one["path"].endswith("/check-runs"):
            began.setdefault((one["body"]["name"], one["body"]["head_sha"]), one["at_ms"])
        elif one["method"] == "PATCH" and one["body"].get("status") == "completed":
            ended.setdefault(aggregates.get(int(one["path"].rsplit("/", 1)[1])), one["at_ms"])
    slowest = {what: max(at[key] - asked[key] for key in wanted) - run_ms * (what == "end")
               for what, at in (("begin", began), ("end", ended))}
    print(f"flood: slowest, ms after the dispatch (the end: and after the job): {slowest}")
    assert relay.metric("reporter", "crcr_budget_waits_total", **{"class": "aggregate"}) == 0
    assert max(slowest.values()) <= 20000


def test_two_reporters_share_the_budget(fresh_relay):
    storm = Storm(fresh_relay).start("reporter", "reporter-two")
    storm.blow()
    storm.assert_ended_right()
    assert storm.held() + storm.held("reporter-two") > 0
