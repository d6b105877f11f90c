"""What is to be seen outside of the relay once everything has settled: a job's rows at the HUD, its check runs at GitHub.
Of the jobs whose callbacks ingest answered with 2xx."""
import collections

from checker import RANK

L4 = {"org-j/backend", "org-k/backend", "org-l/backend"}  # whose results are shown: world.ALLOWLIST


def check_runs(state):
    """(head_sha, name) → what is shown, of each check run of that name."""
    found = collections.defaultdict(list)
    for run in state["check_runs"]:
        found[run["head_sha"], run["name"]].append((run["status"], run["conclusion"]))
    return found


def untold(jobs, told, in_order):
    """jobs: job → rank and state. What the HUD does not know; in_order: nor was it told a state after a later one, as happens
    when the reporter is killed between its answer and the commit."""
    wrong = []
    for job, (_, status) in jobs.items():
        states = told.get(job, [])
        if not states or states[-1] != status:
            wrong.append(f"{job} is {status}, the HUD was told {states}")
        elif in_order and sorted(states, key=RANK.get) != states:
            wrong.append(f"{job}: the HUD was told {states} in this order")
    return wrong


def untold_rows(states, told):
    """states: job → in how many rows of results it is in which state. Rows that the HUD was never told: who tells it commits
    only afterwards, so that one that is killed, or loses its partition, tells it once more."""
    wrong = []
    for job, rows in states.items():
        heard = collections.Counter(told.get(job, ()))
        for status, n in rows.items():
            if (known := heard["completed" if status == "timed_out" else status]) < n:
                wrong.append(f"{job}: {n} rows are {status}, the HUD was told {known}")
    return wrong


def unshown(jobs, acknowledged, shown, dispatched):
    """What GitHub does not show of the jobs at L4, each once and ended when all jobs of its commit are. A second dispatch
    makes a second run, which has a check run of its own where the first one's was completed. dispatched: (delivery, repo) → its
    dispatches."""
    wrong, whole, most = [], {}, {}
    for (repo, delivery, _, name), (_, status) in jobs.items():
        if repo not in L4 or delivery not in acknowledged:
            continue
        sha = acknowledged[delivery]["sha"]
        for check in (f"crcr/{repo}", f"crcr/{repo}/CI/{name}"):
            whole[sha, check] = whole.get((sha, check), True) and status == "completed"
            most[sha, check] = max(1, len(dispatched.get((delivery, repo), ())))
    for key, ended in whole.items():
        runs = shown.get(key, [])
        if not 1 <= len(runs) <= most[key] or ended and set(runs) != {("completed", "success")}:
            wrong.append(f"{key[1]} of {key[0]} is shown as {runs}")
    return wrong


def missing(case, in_order=False):
    """Reads on what was called back meanwhile: some jobs end only now."""
    jobs = case.checker.look().callbacks
    state = case.relay.state()
    wrong = unshown(jobs, case.checker.acknowledged, check_runs(state), case.checker.dispatches)
    if case.hud:
        wrong += untold(jobs, case.checker.hud, in_order) + untold_rows(case.checker.states, case.checker.hud)
    return wrong
