"""Two events of a pull request that went well, as the checker reads them: each test of it spoils one thing."""
import json

from checker import Checker

REPOS = ["org/a", "Org/B"]
HEADERS = {"event": "pull_request", "pr": "7"}
EVENT_KEY = "pytorch/pytorch#7"


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


def parked(delivery, repo="", source=None, **more):
    """A record of the dlq; without a repo: an event."""
    key, names = (f"{repo}|{EVENT_KEY}", {"repo": repo}) if repo else (EVENT_KEY, {})
    return (key, b"", {"delivery": delivery, "kind": "dispatch", **names, "class": "refused", "error": "404",
                       "source_topic": source or ("t1.dispatch.l1" if repo else "t1.events"), **more}, 0, 0)


def task(delivery, repos, form, topic="dispatch.l1", **more):
    """Records of tasks as (topic, key, headers): of the form of today one a downstream, else one for all."""
    headers = {**HEADERS, "delivery": delivery, "kind": "dispatch"} | more
    if form == "repos":
        return [(topic, EVENT_KEY, {**headers, "repos": ",".join(repos)})]
    return [(topic, f"{repo}|{EVENT_KEY}", {**headers, "repo": repo}) for repo in repos]


def in_form(form, record):
    """A task in the dlq as it is in that form; given as today's, of one downstream."""
    key, value, headers, *at = record
    if form == "repos" and "repo" in headers and "dispatch.l" in headers.get("source_topic", "") + headers.get("to_topic", ""):
        headers = {**headers, "repos": headers["repo"]}
        del headers["repo"]
        key = EVENT_KEY
    return (key, value, headers, *at)


def result(status, attempt="1", run="5", job="test", name="CI"):
    return (f"org/b/d1/CI/{job}/1", json.dumps({
        "workflow_name": name,
        "status": status, "downstream_repo": "org/b", "delivery_id": "d1", "run_id": run, "job_name": job,
        "run_attempt": attempt}), {}, 0, 0)


def called(delivery, repo, pr=7, at_ms=1000):
    return {"kind": "dispatch", "repo": repo, "delivery": delivery, "pr": pr, "at_ms": at_ms}


class Story:
    """Two events of one pull request that went well; each test spoils one thing. form: the header that
    names the downstreams in records of tasks."""

    def __init__(self, form="repo", repos=REPOS):
        self.form, self.repos = form, repos
        self.sent = [{"delivery": d, "status": 202} for d in ("d1", "d2")]
        self.github = [called(d, r.lower()) for d in ("d1", "d2") for r in repos]
        self.github.append({"kind": "callback", "repo": "org/b", "delivery_id": "d1", "run_id": 5,
                            "job": "test", "status": "completed"})
        self.events = [(EVENT_KEY, b"", {**HEADERS, "delivery": d}, 0, n) for n, d in enumerate(("d1", "d2"))]
        self.tasks = [record for d in ("d1", "d2") for record in task(d, repos, form)]
        self.dispatches = [outcome(d, r.lower()) for d in ("d1", "d2") for r in repos]
        self.results = [result("in_progress"), result("completed")]
        self.callbacks, self.dlq = [], []
        self.redis = {("org/b", "d1", "5", "test"): "completed"}
        self.options = {}

    def check(self, folder):
        for name in ("sent", "github"):
            (folder / name).write_text("".join(json.dumps(line) + "\n" for line in getattr(self, name)))
        topics = {name: Dump(getattr(self, name)) for name in ("events", "callbacks", "dispatches", "results")}
        topics["dlq"] = Dump([in_form(self.form, record) for record in self.dlq])
        checker = Checker(self.repos, folder / "sent", folder / "github", topics, **self.options).look()
        return checker, checker.verdict(self.redis, self.tasks)


def wrong(found):
    return {kind for kind, texts in found.by_kind.items() if texts}
