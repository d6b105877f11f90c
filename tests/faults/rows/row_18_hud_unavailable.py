"""The HUD's API and GitHub's check runs answer 503 for a while. Nothing is given up, and each job's rows come
in order."""
import time

from outside import L4

ROW, NAME = "18", "HUD API and check-run API unavailable"
REACTION = [{"repo": "org-[abc]/*", "reports": False},
            {"repo": "*", "every": 3, "delay_ms": 200, "run_ms": 1500, "retries": 40, "retry_delay_ms": 500}]
PATHS = ("/crcr/results", "*/check-runs*")
WHOLE_MAX_S, LONG_WHOLE_MAX_S = 120, 300  # after the fault everything is reported and shown


def refused(case):
    return {path: len([r for r in case.relay.requests() if r["status"] == 503 and path.strip("*") in r["path"]])
            for path in PATHS}


def run(world, short=False):
    seconds, whole_max_s = (600, LONG_WHOLE_MAX_S) if world.long else (10 if short else 120, WHOLE_MAX_S)
    case = world.case("row-18", reaction=REACTION, hud=True)
    case.start()
    load = case.load(rate=200, on=0.05, off=4.95)
    case.wait("the first row at the HUD", lambda: case.relay.state()["hud"], 120)
    case.wait("the first check run", lambda: case.relay.state()["check_runs"], 120)
    case.relay.script([{"method": "*", "path": path, "status": 503} for path in PATHS])
    hidden_ms = time.time() * 1000
    time.sleep(seconds)  # the length of the fault
    turned_away = refused(case)
    case.relay.script({"clear": True})
    case.hidden_ms = (hidden_ms, time.time() * 1000)
    began, before = time.monotonic(), len(case.relay.state()["hud"])
    case.wait("rows at the HUD again", lambda: len(case.relay.state()["hud"]) > before, 120)
    recovery = time.monotonic() - began
    load.stop()
    case.wait_done()
    wrong = case.outside(began + whole_max_s - time.monotonic(), in_order=True)
    whole = time.monotonic() - began
    jobs = len(case.checker.callbacks)
    result = case.result(ROW, NAME, f"{seconds} s", recovery_s=max(recovery, whole), note=(
        f"{jobs} jobs, all reported and shown {whole:.0f} s after the fault; turned away: "
        f"{', '.join(f'{n} × {path}' for path, n in turned_away.items())}"))
    result.problems += wrong[:5]
    if whole > whole_max_s:
        result.problems.append(f"all was reported and shown only {whole:.0f} s after the fault")
    if not all(turned_away.values()):
        result.problems.append(f"the fault was none: {turned_away}")
    if not any(repo in L4 for repo, _, _, _ in case.checker.callbacks):
        result.problems.append("no job at L4 called back: nothing was seen of check runs")
    return result
