"""Who reads our check runs on the head commit of a pull request, and what of them stops its merge: the rules
that reporter/check-runs.md, "What reads these checks", has. Each takes the check runs as GitHub shows them
(the newest of each name) and gives the names that stop the merge."""

PASSES = ("success", "neutral", "skipped")


def shown(runs):
    """The newest of each name."""
    newest = {}
    for run in sorted(runs, key=lambda run: run["id"]):
        newest[run["name"]] = run
    return list(newest.values())


def repo_of(run):
    return "/".join(run["name"].split("/")[1:3])


def is_pending(run):
    return run["status"] != "completed"


def branch_protection(runs, required):
    """Each required name must be there and have passed."""
    passed = {run["name"] for run in shown(runs) if not is_pending(run) and run["conclusion"] in PASSES}
    return [name for name in required if name not in passed]


def trymerge(runs, levels, classified=()):
    """PyTorch's merge bot: every check counts. A failure at L3 is forgiven, by the name of a job's check alone.
    classified: names that Dr. CI lists as flaky or broken on trunk; without that a cancelled one does not count."""
    def forgiven(run):
        return levels.get(repo_of(run)) == "L3" and len(run["name"].split("/")) >= 5
    return [run["name"] for run in shown(runs) if run["name"] not in classified and
            (is_pending(run) or (run["conclusion"] in ("failure", "timed_out") and not forgiven(run)))]


def l4_gate(runs, levels):
    """pytorchbot's own gate for L4: names of four parts and more; "merge -f" passes it."""
    return [run["name"] for run in shown(runs) if levels.get(repo_of(run)) == "L4" and
            len(run["name"].split("/")) >= 4 and (is_pending(run) or run["conclusion"] == "failure")]
