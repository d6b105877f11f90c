"""What is to be seen outside of the relay once everything has finished: a job's rows at the HUD, its check runs at GitHub, of the
jobs whose callbacks ingest answered with 2xx, or stored; and the aggregate check run of each dispatch at L4."""
import collections

from checker import RANK

L4 = {"org-j/backend", "org-k/backend", "org-l/backend"}  # whose results are shown: world.ALLOWLIST


def check_runs(state):
    """(head_sha, name) → what is shown, of each check run of that name."""
    found = collections.defaultdict(list)
    for run in state["check_runs"]:
        found[run["head_sha"], run["name"]].append((run["status"], run["conclusion"]))
    return found


def unreported(jobs, reported, in_order):
    """jobs: job → rank and state. What the HUD does not know; in_order: nor did it get a state after a later one, as happens
    when the reporter is killed between its answer and the commit."""
    wrong = []
    for job, (_, status) in jobs.items():
        states = reported.get(job, [])
        if not states or states[-1] != status:
            wrong.append(f"{job} is {status}, the HUD got {states}")
        elif in_order and sorted(states, key=RANK.get) != states:
            wrong.append(f"{job}: the HUD got {states} in this order")
    return wrong


def unreported_rows(states, reported):
    """states: job → in how many rows of results it is in which state. Rows that the HUD never got: who sends them commits
    only afterwards, so that one that is killed, or loses its partition, tells it once more."""
    wrong = []
    for job, rows in states.items():
        heard = collections.Counter(reported.get(job, ()))
        for status, n in rows.items():
            if (known := heard["completed" if status == "timed_out" else status]) < n:
                wrong.append(f"{job}: {n} rows are {status}, the HUD got {known}")
    return wrong


CANCELLED = ("completed", "cancelled")
OPEN = {("queued", None), ("in_progress", None)}


def past_commits(sent, stored, seq):
    """Those that their pull request has gone past, as far as events say: no check run is begun on them any more."""
    newest = {}
    for delivery in stored.keys() & sent.keys() & seq.keys():
        one = sent[delivery]
        newest[one["pr"]] = max(newest.get(one["pr"], (seq[delivery], one["sha"])), (seq[delivery], one["sha"]))
    return {one["sha"] for one in sent.values() if one["pr"] in newest and one["sha"] != newest[one["pr"]][1]}


def unshown(jobs, sent, shown, dispatched, twins=(), past=(), view_lost=False):
    """What GitHub does not show of the jobs at L4, each once and ended when all jobs of its commit are. A second dispatch
    makes a second run, which has a check run of its own where the first one's was completed. sent: delivery → what was sent;
    dispatched: (delivery, repo) → its dispatches; twins: those of which a twin was superseded, whose check run stays as it ended;
    past: commits that need have none; after a lost view what was open there is not found again (check-runs.md), and an aggregate
    whose jobs no row had yet is in progress once more, with a check run of its own."""
    wrong, whole, most, ended, cancelled = [], {}, {}, {}, set()
    for (delivery, repo), calls in dispatched.items():
        if repo in L4 and delivery in sent:
            key = sent[delivery]["sha"], f"crcr/{repo}"
            whole[key], most[key] = False, len(calls)
            cancelled |= {key} if (delivery, repo) in twins else set()
    for (repo, delivery, _, name), (_, status) in jobs.items():
        if repo not in L4 or delivery not in sent:
            continue
        sha = sent[delivery]["sha"]
        for check in (f"crcr/{repo}", f"crcr/{repo}/CI/{name}"):
            ended.setdefault((sha, check), []).append(status == "completed")
            whole[sha, check] = all(ended[sha, check])
            most[sha, check] = max(1, len(dispatched.get((delivery, repo), ())))
    for key, is_ended in whole.items():
        runs = list(shown.get(key, []))
        if key in cancelled and CANCELLED in runs:
            runs.remove(CANCELLED)
        if key[0] in past and (not runs or view_lost and len(runs) == 1 and runs[0] in OPEN):
            continue
        again = view_lost and "/CI/" not in key[1]
        if not 1 <= len(runs) <= most[key] + again or is_ended and set(runs) != {("completed", "success")}:
            wrong.append(f"{key[1]} of {key[0]} is shown as {runs}")
    return wrong


def passed_ms(sent, stored, seq):
    """Commit → when the next one of its pull request was sent."""
    of, passed = collections.defaultdict(list), {}
    for delivery in stored.keys() & sent.keys() & seq.keys():
        of[sent[delivery]["pr"]].append((seq[delivery], sent[delivery]))
    for events in of.values():
        events.sort(key=lambda event: event[0])
        for (_, one), (_, after) in zip(events, events[1:]):
            if one["sha"] != after["sha"]:
                passed[one["sha"]] = after["at_ms"] - after["ms"]
    return passed


STOOD_MS = 30_000


def past_unshown(jobs, sent, shown, passed, called_ms):
    """Of jobs whose commit was the head for STOOD_MS more when they had called back: that half of several have no check run is no
    haste of pushes, nor a slow machine."""
    named = {(sent[job[1]]["sha"], f"crcr/{job[0]}/CI/{job[3]}") for job in jobs.keys() & called_ms.keys()
             if job[0] in L4 and job[1] in sent and passed.get(sent[job[1]]["sha"], 0) - called_ms[job] >= STOOD_MS}
    without = sum(1 for key in named if not shown.get(key))
    return [f"{without} of {len(named)} jobs on earlier heads have no check run"] if without > max(10, len(named) / 2) else []


def possible_ms(called_ms, hidden_ms):
    """Job → since when it could be shown. hidden_ms: while GitHub took no check run, if that was part of the fault."""
    since, until = hidden_ms
    return {job: until if since <= ms < until else ms for job, ms in called_ms.items()}


def unasked(shown, downstreams):
    """Check runs of downstreams that have none to show."""
    quiet = tuple(f"crcr/{repo.lower()}" for repo in downstreams if repo.lower() not in L4)
    return [f"{name} of {sha} is shown" for sha, name in shown if quiet and name.lower().startswith(quiet)]


def missing(case, in_order=False):
    """Reads on what was called back meanwhile: some jobs end only now."""
    jobs = case.checker.look().callbacks
    state = case.relay.state()
    shown = check_runs(state)
    checker = case.checker
    past = past_commits(checker.attempts, checker.stored, checker.seq)
    passed = passed_ms(checker.attempts, checker.stored, checker.seq)
    wrong = past_unshown(jobs, checker.attempts, shown, passed, possible_ms(checker.called_ms, case.hidden_ms))
    wrong += unshown(jobs, checker.attempts, shown, checker.dispatches, checker.superseded_twins(), past,
                     bool(case.without_redis))
    if case.is_usual:
        wrong += unasked(shown, case.downstreams)
    if case.hud:
        wrong += unreported(jobs, case.checker.hud, in_order) + unreported_rows(case.checker.states, case.checker.hud)
    return wrong
