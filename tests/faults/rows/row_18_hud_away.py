"""The HUD's API and GitHub's check runs answer 503 for a while. Nothing is given up, and each job's rows come
in order."""
import collections
import hashlib
import time

from checker import RANK

ROW, NAME = "18", "HUD API and check-run API away"
L4 = {"org-j/backend", "org-k/backend", "org-l/backend"}
REACTION = [{"repo": "org-[abc]/*", "reports": False},
            {"repo": "*", "every": 3, "delay_ms": 200, "run_ms": 1500, "retries": 40, "retry_delay_ms": 500}]
PATHS = ("/crcr/results", "*/check-runs*")
WHOLE_MAX_S = 60  # after the fault everything is told and shown


def hud_rows(state):
    """Job → the states told to the HUD, in order of arrival."""
    told = collections.defaultdict(list)
    for post in state["hud"]:
        callback = post["untrusted"]["callback_payload"]
        flow = callback["workflow"]
        told[post["trusted"]["verified_repo"].lower(), callback["delivery_id"], str(flow["run_id"]),
             flow["job_name"]].append(flow["status"])
    return told


def check_runs(state):
    """(head_sha, name) → what is shown, of each check run of that name."""
    found = collections.defaultdict(list)
    for run in state["check_runs"]:
        found[run["head_sha"], run["name"]].append((run["status"], run["conclusion"]))
    return found


def undelivered(case):
    """What the jobs that called back have not become yet, or are too often. Some of them end only now."""
    case.checker.look()
    state, wrong = case.relay.state(), []
    told, shown = hud_rows(state), check_runs(state)
    for job, (_, status) in case.checker.callbacks.items():
        repo, delivery, _, name = job
        states = told.get(job, [])
        if not states or states[-1] != status:
            wrong.append(f"{job} is {status}, the HUD was told {states}")
        elif sorted(states, key=RANK.get) != states:
            wrong.append(f"{job}: the HUD was told {states} in this order")
        if repo not in L4 or delivery not in case.checker.acknowledged:
            continue
        sent = case.checker.acknowledged[delivery]
        sha = hashlib.sha1(f"{sent['pr']}.{sent['counter']}".encode()).hexdigest()
        for check in (f"crcr/{repo}", f"crcr/{repo}/CI/{name}"):
            if shown.get((sha, check)) != [("completed", "success")]:
                wrong.append(f"{check} of {job} is shown as {shown.get((sha, check))}")
    return wrong


def refused(case):
    return {path: len([r for r in case.relay.requests() if r["status"] == 503 and path.strip("*") in r["path"]])
            for path in PATHS}


def run(world, short=False):
    seconds = 10 if short else 600 if world.long else 120
    case = world.case("row-18", reaction=REACTION, environment={"RATE_LIMIT_PER_MIN": "100000"})
    case.relay.extra.pop("HUD_API_URL")  # on, as it is without the world's setting
    case.start()
    load = case.load(rate=200, on=0.05, off=4.95)
    case.wait("the first row at the HUD", lambda: case.relay.state()["hud"], 120)
    case.wait("the first check run", lambda: case.relay.state()["check_runs"], 120)
    case.relay.script([{"method": "*", "path": path, "status": 503} for path in PATHS])
    time.sleep(seconds)  # the length of the fault
    turned_away = refused(case)
    case.relay.script({"clear": True})
    began, before = time.monotonic(), len(case.relay.state()["hud"])
    case.wait("rows at the HUD again", lambda: len(case.relay.state()["hud"]) > before, 120)
    recovery = time.monotonic() - began
    load.stop()
    case.settle()
    while (wrong := undelivered(case)) and time.monotonic() < began + WHOLE_MAX_S:
        time.sleep(1)
    whole = time.monotonic() - began
    jobs = len(case.checker.callbacks)
    if wrong:
        case.say(f"row 18: {len(wrong)} still open {whole:.0f} s after the fault, such as {wrong[0]}")
    result = case.result(ROW, NAME, f"{seconds} s", recovery_s=max(recovery, whole), note=(
        f"{jobs} jobs, all told and shown {whole:.0f} s after the fault; turned away: "
        f"{', '.join(f'{n} × {path}' for path, n in turned_away.items())}"))
    result.problems += wrong[:5]
    if not all(turned_away.values()):
        result.problems.append(f"the fault was none: {turned_away}")
    if not any(repo in L4 for repo, _, _, _ in case.checker.callbacks):
        result.problems.append("no job at L4 called back: nothing was seen of check runs")
    if dead := {kind: n for kind, n in case.checker.counts.items() if kind.startswith("dlq")}:
        result.problems.append(f"given up: {dead}")
    return result
