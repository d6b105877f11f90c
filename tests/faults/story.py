"""Two events of a pull request that went well, as the checker reads them: each test of it spoils one thing."""
import json

from checker import Checker

REPOS = ["org/a", "Org/B"]
HEADERS = {"event": "pull_request", "pr": "7"}


class Dump:
    """A topic that is over."""

    def __init__(self, records):
        self.records = records

    def read(self):
        records, self.records = self.records, []
        return records


def outcome(delivery, repo, kind="dispatched", **more):
    return (f"{delivery}/{repo}", json.dumps({"delivery_id": delivery, "repo": repo, "kind": "dispatch",
                                              "outcome": kind, "maybe_duplicate": False, **more}), {}, 0, 0)


def parked(delivery, repo="", source="t1.dispatch.l1", **more):
    """A record of the dlq; without a repo: an event."""
    return ("k", b"", {"delivery": delivery, **({"repo": repo} if repo else {}), "source_topic": source, "class": "refused",
                       "error": "404", **more}, 0, 0)


def result(status, attempt="1", run="5", job="test", name="CI"):
    return (f"org/b/d1/CI/{job}/1", json.dumps({
        "workflow_name": name,
        "status": status, "downstream_repo": "org/b", "delivery_id": "d1", "run_id": run, "job_name": job,
        "run_attempt": attempt}), {}, 0, 0)


def called(delivery, repo, pr=7, at_ms=1000):
    return {"kind": "dispatch", "repo": repo, "delivery": delivery, "pr": pr, "at_ms": at_ms}


class Story:
    """Two events of one pull request that went well; each test spoils one thing."""

    def __init__(self):
        self.sent = [{"delivery": d, "status": 202} for d in ("d1", "d2")]
        self.github = [called(d, r) for d in ("d1", "d2") for r in ("org/a", "org/b")]
        self.github.append({"kind": "callback", "repo": "org/b", "delivery_id": "d1", "run_id": 5,
                            "job": "test", "status": "completed"})
        self.events = [("k", b"", {**HEADERS, "delivery": d}, 0, n) for n, d in enumerate(("d1", "d2"))]
        self.dispatches = [outcome(d, r) for d in ("d1", "d2") for r in ("org/a", "org/b")]
        self.results = [result("in_progress"), result("completed")]
        self.callbacks, self.dlq = [], []
        self.redis = {("org/b", "d1", "5", "test"): "completed"}
        self.options = {}

    def check(self, folder):
        for name in ("sent", "github"):
            (folder / name).write_text("".join(json.dumps(line) + "\n" for line in getattr(self, name)))
        topics = {name: Dump(getattr(self, name)) for name in ("events", "callbacks", "dispatches", "results", "dlq")}
        checker = Checker(REPOS, folder / "sent", folder / "github", topics, **self.options).look()
        return checker, checker.verdict(self.redis)


def wrong(found):
    return {kind for kind, texts in found.by_kind.items() if texts}
