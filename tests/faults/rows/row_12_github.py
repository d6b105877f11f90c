"""What GitHub can answer, each to a downstream of its own: table-driven. The first webhook meets the answers; more come
while they stand."""
import collections
import dataclasses
import email.utils
import json
import time

from lib.keys import app_jwt
from lib.relay import http

ROW, NAME = "12", "GitHub's answers"
SECONDARY = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes."}
SUSPENDED = {"message": "This installation has been suspended"}
UNDECODED = {"message": "A JSON web token could not be decoded"}
INSTALLATION = {"method": "GET", "path": "/repos/REPO/installation"}
TOKEN = {"path": "/app/installations/ID/access_tokens"}
MORE = 5  # webhooks while limits stand
UNTOLD_S = 60  # GitHub: "wait for at least one minute"
RETRY_S = 8  # 10 s, less the jitter
REFUSED_S = 59  # a minute in which no look-up that was refused is repeated
DONE_S = 200 + 60 * MORE  # each of those that wait may be the only one to ask when that minute is over
FAILED_S = 5  # for which no token is asked for after one could not be had
HANG_S = 20  # the time-out of a call
SLOW = ("429 alone", "secondary limit", "5xx burst", "hang", "revoked App: no installation", "suspended: no token")  # a minute, or a time-out: not in the short form


@dataclasses.dataclass
class Answer:
    """What GitHub says to one downstream, and what must follow."""
    name: str
    rule: dict
    least_s: float = 0.0  # from the first call to the next one of the delivery; of a limit, to any of the installation
    limit: bool = False
    until_s: float = 0.0  # of a limit that names a moment: when, from the beginning
    calls: int = 2        # of the first delivery; -2: two at least
    refused: str = ""     # a part of the reason that it is parked with; "": it is dispatched
    new_token: bool = False  # one is fetched between the first call and the next
    before: int = 0       # it answers a call for the token, not the dispatch: how often that is made (-1: once or more), least_s apart
    waits: str = ""       # a part of what the outcome "waiting" says


def reset(in_s):
    return {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(time.time()) + in_s)}


def at(in_s):
    return {"Retry-After": email.utils.formatdate(int(time.time()) + in_s, usegmt=True)}


def once(status, **more):
    return {"status": status, "count": 1, **more}


def answers():
    """Moments count from now."""
    elsewhere, moved = {"Location": "http://192.0.2.1/x"}, {"Location": "PATH"}
    return [
        Answer("429, Retry-After", once(429, retry_after=5), 5, limit=True),
        Answer("403, Retry-After", once(403, retry_after=5), 5, limit=True),
        Answer("429, Retry-After as a date", once(429, headers=at(20)), limit=True, until_s=20),
        Answer("429 alone", once(429), UNTOLD_S, limit=True),
        Answer("403 alone", {"status": 403}, calls=1, refused="403"),
        Answer("403, remaining 0", once(403, headers=reset(20)), limit=True, until_s=20),
        Answer("429, remaining 0", once(429, headers=reset(20)), limit=True, until_s=20),
        Answer("secondary limit", once(403, body=SECONDARY), UNTOLD_S, limit=True),
        Answer("5xx burst", {"status": 503, "count": 2}, RETRY_S, calls=-2),
        Answer("503, Retry-After", once(503, retry_after=15), 15),
        Answer("hang", {"hang": True, "count": 1}, HANG_S + RETRY_S),
        Answer("reset after accept", {"reset": True, "effect": True, "count": 1}, RETRY_S),
        Answer("garbage body, 500", once(500, body="<html>sorry", effect=True), RETRY_S),
        Answer("garbage body, 200", once(200, body="<html>fine", effect=True), calls=1),
        Answer("redirect elsewhere", {"status": 307, "headers": elsewhere}, calls=1, refused="307"),
        Answer("redirect, 302", {"status": 302, "headers": moved}, calls=1, refused="302"),
        Answer("redirect to the same origin", once(307, headers=moved)),
        Answer("redirect again and again", {"status": 308, "headers": moved}, refused="308"),
        Answer("expired token", once(401), new_token=True),
        Answer("revoked App: no installation", {**INSTALLATION, "status": 404}, REFUSED_S, calls=0, before=-1,
               refused="404"),
        Answer("revoked App: repository", {"status": 404}, calls=1, refused="404"),
        Answer("suspended: no token", {**TOKEN, "status": 403, "body": SUSPENDED}, REFUSED_S, calls=0, before=-1,
               refused=SUSPENDED["message"]),
        Answer("suspended: no dispatch", {"status": 403, "body": SUSPENDED}, calls=1, refused=SUSPENDED["message"]),
        Answer("JWT refused: installation", once(401, body=UNDECODED, **INSTALLATION), FAILED_S, calls=1, before=2,
               waits=UNDECODED["message"]),
        Answer("JWT refused: token", once(401, body=UNDECODED, **TOKEN), FAILED_S, calls=1, before=2,
               waits=UNDECODED["message"]),
        Answer("410", {"status": 410}, calls=1, refused="410"),
        Answer("422", {"status": 422}, calls=1, refused="422"),
    ]


def installation(relay, repo):
    """Its id, as text."""
    as_app = {"Authorization": f"Bearer {app_jwt(relay.key)}", "User-Agent": "tests"}
    status, body = http("GET", relay.url("github", f"/repos/{repo}/installation"), headers=as_app)
    assert status == 200, body
    return str(json.loads(body)["id"])


def rules_of(table, relay):
    """Downstream → its answer, and → the rule: each has an owner, and so an installation, of its own."""
    cases, rules = {}, {}
    for number, one in enumerate(table):
        repo = f"answer-{number}/backend"
        rule = {"method": "POST", "path": f"/repos/{repo}/dispatches", **one.rule}
        rule["path"] = rule["path"].replace("REPO", repo)
        if "/ID/" in rule["path"]:
            rule["path"] = rule["path"].replace("ID", installation(relay, repo))
        if rule.get("headers", {}).get("Location") == "PATH":
            rule["headers"] = {"Location": f"/repos/{repo}/dispatches"}
        cases[repo] = one
        rules[repo] = rule
    return cases, rules


def allowlist(repos):
    """A quarter in each tier."""
    tiers = [repos[number::4] for number in range(4)]
    l1, l2, l3, l4 = (", ".join(tier) for tier in tiers)
    devices = ", ".join(f"{repo}: []" for repo in l3.split(", "))
    return f"L1: [{l1}]\nL2: [{l2}]\nL3:\n  npu: {{ {devices} }}\nL4: [{l4}]\n"


def calls_of(requests):
    """repo → the dispatches that were asked for, as (delivery, ms), in order."""
    found = collections.defaultdict(list)
    for one in requests:
        if one["method"] == "POST" and one["path"].endswith("/dispatches"):
            repo = one["path"].removeprefix("/repos/").removesuffix("/dispatches")
            found[repo].append((one["body"]["client_payload"]["delivery_id"], one["at_ms"]))
    return found


def gap_problems(one, calls, first, began_s):
    """When the next call came after the first one. calls: (delivery, ms), in order."""
    own = [ms for delivery, ms in calls if delivery == first]
    if len(own) != one.calls and not (one.calls < 0 and len(own) >= -one.calls):
        return [f"{one.name}: {len(own)} calls for one delivery, not {one.calls}"]
    if one.before or not (one.least_s or one.until_s):
        return []
    due_ms = own[0] + 1000 * one.least_s
    if one.until_s:
        due_ms = 1000 * (began_s + one.until_s)
    early = [ms for delivery, ms in calls if own[0] < ms < due_ms and (one.limit or delivery == first)]
    return [f"{one.name}: asked again {(due_ms - early[0]) / 1000:.1f} s before the time"] if early else []


def before_problems(one, asked_ms):
    """asked_ms: when the call was made that is answered so, in order."""
    if not asked_ms or (one.before > 0 and len(asked_ms) != one.before):
        return [f"{one.name}: asked {len(asked_ms)} times for the token, not {one.before}"]
    early = [later - ms for ms, later in zip(asked_ms, asked_ms[1:]) if later - ms < 1000 * one.least_s]
    return [f"{one.name}: asked again after {early[0] / 1000:.1f} s"] if early else []


def token_problems(one, calls, first, requests):
    if not one.new_token:
        return []
    own = [ms for delivery, ms in calls if delivery == first]
    fetched = [r for r in requests if r["path"].endswith("/access_tokens") and own[0] <= r["at_ms"] <= own[-1]]
    return [] if fetched else [f"{one.name}: no new token was fetched"]


def end_problems(one, repo, case, delivery, first):
    """The answer is for the first delivery, unless it stands: those that came later are dispatched once, or superseded by one that
    is (which the checker sees to)."""
    dead, sent, outcomes = (found.get((delivery, repo), ()) for found in  # not [], which would put an empty one there
                            (case.checker.parked, case.checker.dispatches, case.checker.outcomes))
    waiting = [outcome for outcome in outcomes if outcome["outcome"] == "waiting"]
    if one.waits and delivery == first and not any(one.waits in outcome["error"] for outcome in waiting):
        return [f"{one.name}: nothing says {one.waits!r}, but {waiting}"]
    if not one.refused:
        wanted = one.calls if delivery == first and one.rule.get("effect") else 1
        superseded = delivery != first and not sent and any(outcome["outcome"] == "superseded" for outcome in outcomes)
        return [] if (len(sent) == wanted or superseded) and not dead else [
            f"{one.name}: {len(sent)} dispatches of {delivery}, not {wanted}, in the DLQ {dead}"]
    if [record.get("class") for record in dead] != ["refused"] or sent:
        return [f"{one.name}: {len(sent)} dispatches, in the DLQ {dead}"]
    if one.refused not in dead[0].get("error", ""):
        return [f"{one.name}: parked with the reason {dead[0].get('error')!r}"]
    return []


def evaluate(case, cases, rules, first, began_s):
    requests, problems = case.relay.requests(), []
    calls = calls_of(requests)
    for repo, one in cases.items():
        problems += gap_problems(one, calls[repo], first, began_s)
        if one.before:
            of = rules[repo]["method"], rules[repo]["path"]
            problems += before_problems(one, [r["at_ms"] for r in requests if (r["method"], r["path"]) == of])
        problems += token_problems(one, calls[repo], first, requests)
        for delivery in case.checker.stored:
            problems += end_problems(one, repo, case, delivery, first)
    return problems


def run(world, short=False):
    def table():
        return [one for one in answers() if not short or one.name not in SLOW]
    repos = [f"answer-{number}/backend" for number in range(len(table()))]
    case = world.case("row-12", allowlist=allowlist(repos), downstreams=repos, reaction=[{"repo": "*", "reports": False}],
                      gives_up=True)
    case.start()
    began_s = int(time.time())
    cases, rules = rules_of(table(), case.relay)
    case.relay.script(list(rules.values()))
    load = case.load(rate=200, count=1).wait()
    (first,) = load.sent_ms
    case.wait("each answer to be given", lambda: all(rule["hits"] for rule in case.relay.state()["rules"]), 60)
    case.load(rate=200, count=MORE).wait()
    case.wait_done(DONE_S)
    problems = evaluate(case, cases, rules, first, began_s)
    result = case.result(ROW, NAME, f"{len(cases)} answers",
                         note="no call before its time; refusals parked with the reason")
    result.problems += problems
    return result
