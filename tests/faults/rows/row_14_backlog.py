"""A backlog that nobody worked on, then three dispatchers at once. GitHub is slower with L1 to L3, so that L4 would be seen to
wait for them."""
import collections
import time

from rows.row_04_broker_unavailable import rss_mb

ROW, NAME = "14", "backlog, dispatchers 0 → 3"
BACKLOG, SHORT_BACKLOG = 100_000, 12_000  # (webhook, downstream)
LONG_EVENTS = 100_000                     # webhooks, of which each becomes twelve dispatches
STEP_S, DRAINED_S = 1.0, 900              # long: ten times that
SLOWER_MS = 40
BEHIND_MAX = 0.05  # of the backlog of a downstream: L4 behind the others
SOONER = 0.8       # of the others' time: L4 is drained by then
REPLICAS = ("dispatcher1", "dispatcher2", "dispatcher3")
# The backlog is the load; a callback now and then shows that they are proven all the same.
REACTION = [{"repo": "org-[abc]/*", "reports": False},
            {"repo": "*", "every": 200, "delay_ms": 200, "run_ms": 500, "retries": 40, "retry_delay_ms": 500}]


class Drain:
    """What was dispatched, at each look."""

    def __init__(self, case, events, scale):
        self.case, self.events, self.scale = case, events, scale
        self.l4 = case.downstreams[-3:]
        self.began, self.steps, self.last = time.monotonic(), [], 0
        self.behind, self.ended_s = 0.0, {}  # of L4 behind the others, as a share; tier → when it was drained

    def look(self):
        checker = self.case.checker.look()
        total = len(checker.dispatches)
        if total:
            self.steps.append(total - self.last)
            self.last = total
        left = collections.Counter(repo for _, repo in checker.open_dispatches())
        l4 = sum(left[repo] for repo in self.l4) / len(self.l4)
        others = (left.total() - sum(left[repo] for repo in self.l4)) / (len(self.case.downstreams) - len(self.l4))
        self.behind = max(self.behind, (l4 - others) / self.events)
        for tier, open_now in (("L4", l4), ("the others", others)):
            if not open_now:
                self.ended_s.setdefault(tier, time.monotonic() - self.began)
        return not left

    def run(self):
        while not self.look():
            assert time.monotonic() - self.began < DRAINED_S * self.scale, "the backlog does not drain"
            time.sleep(STEP_S * self.scale)
        return time.monotonic() - self.began

    def problems(self):
        stood = sum(step == 0 for step in self.steps[:-1])
        if stood > 2:
            yield f"nothing moved in {stood} of {len(self.steps)} looks"
        if self.behind > BEHIND_MAX:
            yield f"L4 was {self.behind:.0%} of its backlog behind the others"
        if self.ended_s["L4"] > SOONER * self.ended_s["the others"]:
            yield f"L4 waited for others: it was drained after {self.ended_s['L4']:.1f} s, the others after {self.ended_s['the others']:.1f} s"


def run(world, short=False):
    case = world.case("row-14", reaction=REACTION).start("ingest", "dispatcher", "reporter")
    assert case.relay.parts["dispatcher"].stop() == 0
    scale = 10 if world.long else 1
    events = LONG_EVENTS if world.long else (SHORT_BACKLOG if short else BACKLOG) // len(case.downstreams) + 1
    case.relay.script([{"method": "POST", "path": f"/repos/{repo}/dispatches", "delay_ms": SLOWER_MS}
                       for repo in case.downstreams[:-3]])
    # Each of a pull request of its own: of those that wait for one, with the same action, only the last is sent.
    load = case.load(rate=400, count=events, pull_requests=0).wait(DRAINED_S * scale)
    stored = case.checker.look()
    assert not stored.dispatches and len(stored.stored) >= 0.99 * events, load.answers
    drain = Drain(case, len(stored.stored), scale)
    for replica in REPLICAS:
        case.start_part(replica)
    drained = drain.run()
    most_mb = max(rss_mb(case.relay.parts[replica]) for replica in REPLICAS)
    result = case.result(ROW, NAME, f"{drain.events * len(case.downstreams):,} dispatches", recovery_s=drained,
                         note=f"{drain.last / drained:,.0f} dispatches/s; L4 after {drain.ended_s['L4']:.0f} s, at most "
                              f"{max(0.0, drain.behind):.1%} behind; a dispatcher at most {most_mb:.0f} MB")
    result.problems += drain.problems()
    if result.duplicated:
        result.problems.append(f"{result.duplicated} duplicates without a fault")
    return result
