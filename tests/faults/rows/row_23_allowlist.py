"""The allowlist is wrong, empty, away, unchanged or cut down; a restart meanwhile."""
ROW, NAME = "23", "allowlist invalid, empty, away, 304, shrunk; restarts"
CONTENTS = "*/contents/*allowlist.yml"


def fetched(case):
    """How often the router has asked for it."""
    return len([r for r in case.relay.requests() if "/contents/" in r["path"]])


def run(world, short=False):
    case = world.case("row-23", environment={"ALLOWLIST_TTL_SECONDS": "2"}).start()
    good = case.relay.allowlist_file.read_text()
    held = "\n".join(good.splitlines()[:1]) + "\n"
    faults = {
        "invalid": ("L1: [org-a/backend, @nobody]\n", None),
        "a repository twice": (good + "  # twice\nL2x: []\n", None),
        "not there": (None, None),
        "503": (good, {"method": "GET", "path": CONTENTS, "status": 503}),
        "304": (good, None),
        "shrunk by 90 %": (held, None),
    }
    load = case.load(rate=200, on=0.1, off=1.9)
    for name, (text, rule) in faults.items():
        if text is None:
            case.relay.allowlist_file.unlink()
        else:
            case.relay.allowlist_file.write_text(text)
        if rule:
            case.relay.script(rule)
        before = fetched(case)
        case.wait(f"the router to ask ({name})", lambda: fetched(case) >= before + 1, 30)
        assert case.relay.parts["dispatcher"].stop() == 0
        case.relay.start("dispatcher")
        case.wait("it to go on", lambda: case.ready("dispatcher"), 60)
        case.say(f"row 23: {name}, restarted")
        case.relay.script({"clear": True})
        case.relay.allowlist_file.write_text(good)
        again = fetched(case)
        case.wait("the good one to be asked for", lambda: fetched(case) >= again + 1, 30)
    load.stop()
    result = case.result(ROW, NAME, f"{len(faults)} faults, a restart in each")
    skipped = [o for outcomes in case.checker.outcomes.values() for o in outcomes if o["outcome"] == "skipped"]
    if skipped:
        result.problems.append(f"{len(skipped)} tasks were skipped: {skipped[0]['error']}")
    return result
