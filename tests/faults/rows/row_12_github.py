"""What GitHub can answer, each to a downstream of its own: table-driven."""
import time

ROW, NAME = "12", "GitHub's answers"

# Downstream → what it stands for, the rule of the simulator, the least time to the next call, how it ends.
SECONDARY = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes."}
CASES = {
    "org-a/backend": ("429, Retry-After", {"status": 429, "retry_after": 5, "count": 1}, 5, "dispatched"),
    "org-b/backend": ("403, Retry-After", {"status": 403, "retry_after": 5, "count": 1}, 5, "dispatched"),
    "org-c/backend": ("403, remaining 0", {"status": 403, "count": 1, "headers": "reset in 6 s"}, 5, "dispatched"),
    "org-d/backend": ("secondary limit without Retry-After", {"status": 403, "count": 1, "body": SECONDARY},
                      59, "dispatched"),
    "org-e/backend": ("5xx burst", {"status": 503, "count": 2}, 1, "dispatched"),
    "org-f/backend": ("hang", {"hang": True, "count": 1}, 10, "dispatched"),
    "org-g/backend": ("reset after accept", {"reset": True, "effect": True, "count": 1}, 1, "dispatched"),
    "org-h/backend": ("garbage body", {"status": 500, "body": "<html>sorry", "effect": True, "count": 1}, 1,
                      "dispatched"),
    "org-i/backend": ("redirect elsewhere", {"status": 307, "count": 1,
                                             "headers": {"Location": "http://192.0.2.1/x"}}, None, "refused"),
    "org-j/backend": ("expired token", {"status": 401, "count": 1}, 0, "dispatched"),
    "org-k/backend": ("revoked App", {"status": 404}, None, "refused"),
    "org-l/backend": ("422", {"status": 422}, None, "refused"),
}


def rule_of(repo, rule):
    rule = {"method": "POST", "path": f"/repos/{repo}/dispatches", **rule}
    if rule.get("headers") == "reset in 6 s":
        rule["headers"] = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(time.time()) + 6)}
    return rule


def gap_s(case, repo):
    """Between the first call and the next one."""
    times = [r["at_ms"] for r in case.relay.requests() if r["path"] == f"/repos/{repo}/dispatches"]
    return (times[1] - times[0]) / 1000 if len(times) > 1 else None


def run(world, short=False):
    case = world.case("row-12").start()
    for repo, (_, rule, _, _) in CASES.items():
        case.relay.script(rule_of(repo, rule))
    load = case.load(rate=200, count=1).wait()
    (delivery,) = load.sent_ms
    case.settle(200)
    problems = []
    for repo, (name, _, least_s, ends) in CASES.items():
        gap = gap_s(case, repo)
        dead = case.checker.parked[delivery, repo]
        if ends == "dispatched" and (delivery, repo) not in case.checker.dispatches:
            problems.append(f"{name}: not dispatched")
        if ends == "refused" and [one.get("class") for one in dead] != ["refused"]:
            problems.append(f"{name}: in the DLQ as {dead}")
        if ends == "refused" and dead and not dead[0].get("error"):
            problems.append(f"{name}: parked without a reason")
        if least_s is not None and (gap is None or gap < least_s):
            problems.append(f"{name}: asked again after {gap} s, not before {least_s} s")
    result = case.result(ROW, NAME, f"{len(CASES)} answers", note="no call before its time; refusals parked with the reason")
    result.problems += problems
    return result
