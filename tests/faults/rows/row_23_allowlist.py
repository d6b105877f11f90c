"""The allowlist is wrong, empty, unavailable, not answered, unchanged or cut down; a restart meanwhile. A push that touches the file
has it fetched, so that no row waits for a time to pass, and what is held for one TTL stays held."""
import dataclasses

from lib.relay import http

ROW, NAME = "23", "allowlist invalid, empty, unavailable, hanging, 304, shrunk; restarts"
CONTENTS = "*/contents/*allowlist.yml"
TTL_S = 3600
MEANWHILE = 5  # webhooks, and as many dispatches as go to all downstreams


@dataclasses.dataclass
class Fault:
    """What the file holds (None: it is not there), what GitHub says instead, and the metric that tells of it."""
    name: str
    text: str | None
    metric: tuple
    rule: dict = dataclasses.field(default_factory=dict)
    hangs: bool = False  # reported only when the fetch has run out of time; the first one ends with the process


MORE = None  # than before
INVALID = ("crcr_allowlist_valid", {}, 0)
HELD = ("crcr_allowlist_held", {}, 1)


def fetches(result):
    return ("crcr_allowlist_fetches_total", {"result": result}, MORE)


def faults(good):
    return [
        Fault("invalid", "L1: [org-a/backend, @nobody]\n", INVALID),
        Fault("a repository twice", good.replace("L2: [", "L2: [ORG-A/backend, "), INVALID),
        Fault("empty", "", HELD),
        Fault("not there", None, fetches("unreachable")),
        Fault("503", good, fetches("unreachable"), {"method": "GET", "path": CONTENTS, "status": 503}),
        Fault("cut off", good, fetches("unreachable"), {"method": "GET", "path": CONTENTS, "reset": True}),
        Fault("not answered", good, fetches("unreachable"), {"method": "GET", "path": CONTENTS, "hang": True}, hangs=True),
        Fault("304", good, fetches("same")),
        Fault("shrunk by 90 %", "L1: [org-a/backend]\n", HELD),
    ]


def put(case, text):
    """At once: a file that is half written would be a fault of its own."""
    if text is None:
        case.relay.allowlist_file.unlink()
        return
    new = case.relay.allowlist_file.with_suffix(".new")
    new.write_text(text)
    new.rename(case.relay.allowlist_file)


def asked(case):
    """The router's last request for the file; GitHub forgets the oldest of all."""
    return max((r for r in case.relay.requests() if "/contents/" in r["path"]), key=lambda r: r["n"])


def wait_asked(case, before):
    case.wait("the router to ask for the file", lambda: asked(case)["n"] > before["n"], 60)


def push(case):
    """Somebody merged a change of the file."""
    body = {"ref": "refs/heads/main", "before": "0" * 40, "after": "a" * 40, "deleted": False,
            "repository": {"full_name": "pytorch/pytorch", "default_branch": "main"},
            "commits": [{"added": [], "removed": [], "modified": [".github/allowlist.yml"]}]}
    before = asked(case)
    case.wait("the push to be taken", lambda: case.relay.send_webhook(body, event="push")[0] == 202)
    wait_asked(case, before)


def value(case, metric):
    name, labels, _ = metric
    return case.relay.metric("dispatcher", name, file="allowlist", **labels)


def wait_reported(case, fault, before):
    """before: the metric's value then."""
    wanted = fault.metric[2]
    case.wait(f"metrics to say so ({fault.name})", lambda: value(case, fault.metric) == wanted if wanted is not MORE else
              value(case, fault.metric) > before, 30)


def assert_well(case):
    for path in ("/healthz", "/readyz"):
        status, body = http("GET", case.relay.url("admin_dispatcher", path), timeout=5)
        assert status == 200, f"{path} of the dispatcher: {status} {body}"


def dispatched_meanwhile(case, load, what):
    """Webhooks that come now go to all downstreams."""
    def went():
        assert_well(case)
        return (load.answers.get(202, 0) >= sent + MEANWHILE and
                case.dispatched() >= dispatched + MEANWHILE * len(case.downstreams))
    sent, dispatched = load.answers.get(202, 0), case.dispatched()
    case.wait(f"dispatches while the file is {what}", went, 60)


def dispatched_while_unanswered(case, load, fault, before):
    dispatched_meanwhile(case, load, fault.name)
    assert value(case, fault.metric) == before, "nothing was dispatched before the fetch of the file had ended"


def restart(case):
    assert case.relay.parts["dispatcher"].stop() == 0
    before = asked(case)
    case.relay.start("dispatcher")
    case.wait("it to go on", lambda: case.ready("dispatcher"), 60)
    wait_asked(case, before)


def one(case, load, fault):
    """Whether GitHub answered 304."""
    before = value(case, fault.metric)
    push(case)
    unchanged = asked(case)["status"] == 304
    if fault.hangs:
        dispatched_while_unanswered(case, load, fault, before)
    else:
        wait_reported(case, fault, before)
        dispatched_meanwhile(case, load, fault.name)
    restart(case)
    if fault.hangs:
        dispatched_while_unanswered(case, load, fault, 0)
    wait_reported(case, fault, 0)
    dispatched_meanwhile(case, load, fault.name)
    case.say(f"row 23: {fault.name}, restarted")
    return unchanged


def run(world, short=False):
    case = world.case("row-23", environment={"ALLOWLIST_TTL_SECONDS": str(TTL_S)}).start()
    good = case.relay.allowlist_file.read_text()
    load = case.load(rate=100, on=0.1, off=1.9)
    table, unchanged = faults(good), 0
    for fault in table:
        put(case, fault.text)
        if fault.rule:
            case.relay.script(fault.rule)
        unchanged += one(case, load, fault)
        case.relay.script({"clear": True})
        put(case, good)
        push(case)
    load.stop()
    result = case.result(ROW, NAME, f"{len(table)} faults, a restart in each", note=f"{unchanged} × 304")
    skipped = [o for outcomes in case.checker.outcomes.values() for o in outcomes if o["outcome"] == "skipped"]
    if skipped:
        result.problems.append(f"{len(skipped)} tasks were skipped: {skipped[0]['error']}")
    if not unchanged:
        result.problems.append("GitHub never answered 304")
    return result
