"""The CI of one downstream repository, moved by hand: it reports what the test says, when the test says so.

The simulated downstreams of crcr-sim answer by themselves; a relay for these has to be made with SILENT."""
import copy
import itertools
import json

from lib.processes import wait_for
from lib.relay import http, patient

SILENT = {"repo": "*", "answer": "never", "delay_ms": 10, "run_ms": 10, "after_ms": 10}
_run_ids = itertools.count(5_000_000)


def post(relay, path, document):
    status, body = http("POST", relay.url("github", path), json.dumps(document).encode(),
                        {"Content-Type": "application/json"})
    assert status < 300, body
    return json.loads(body) if body else None


def silence(relay):
    """From now on no simulated downstream calls back."""
    post(relay, "/_sim/downstreams", SILENT)


def dispatches(relay, delivery):
    return [one for one in relay.state()["dispatches"]
            if one["client_payload"]["delivery_id"] == delivery]


def wait_dispatch(relay, delivery, repo):
    """What GitHub was given for that delivery and repository."""
    return wait_for(f"the dispatch of {delivery} to {repo}", lambda: next(
        (one for one in dispatches(relay, delivery) if one["repo"] == repo), None), 60)


class Run:
    """One run that a dispatch started."""

    def __init__(self, relay, delivery, repo, workflow="ci"):
        self.relay, self.repo = relay, repo
        self.payload = wait_dispatch(relay, delivery, repo)["client_payload"]
        self.workflow = {"schema_version": "1", "name": workflow, "run_id": next(_run_ids),
                         "run_attempt": 1, "url": f"https://github.com/{repo}/actions/runs/1"}

    def report(self, status, job="build", echo=None, expect=200, **workflow):
        """One callback; echo changes the client_payload that it gives back, as a forger might."""
        body = copy.deepcopy(self.payload)
        if echo:
            echo(body)
        body["workflow"] = {**self.workflow, "status": status, "job_name": job,
                            "check_run_id": f"{self.workflow['run_id']}-{job.replace(' ', '-')}", **workflow}
        claims = {name: str(body["workflow"][name]) for name in ("run_id", "run_attempt")}
        token = post(self.relay, "/_sim/oidc", {"repo": self.repo, "claims": claims})["token"]
        got, answer = patient(lambda: http("POST", self.relay.url("ingest", "/github/callback"), json.dumps(body).encode(),
                                           {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}))
        assert got == expect, (got, answer)
        return self

    def start(self, *jobs, **more):
        for job in jobs or ("build",):
            self.report("in_progress", job, **more)
        return self

    def end(self, *jobs, conclusion="success", **more):
        for job in jobs or ("build",):
            self.report("completed", job, conclusion=conclusion, **more)
        return self


def job_checks(relay, sha, repo=None):
    """Check runs of single jobs on a commit, by the end of their names: {"ci/build": check run}. The
    aggregate of a downstream (crcr/<owner>/<repo>) is none of them. A name that is there twice fails."""
    found = {}
    for run in relay.state()["check_runs"]:
        parts = run["name"].split("/", 3)
        if run["head_sha"] != sha or len(parts) < 4 or (repo and "/".join(parts[1:3]) != repo):
            continue
        name = parts[3] if repo else run["name"]
        assert name not in found, f"two check runs named {run['name']} on {sha}"
        found[name] = run
    return found


def checks_anywhere(relay, repo):
    """Every check run of that downstream, the aggregate too, on whatever commit."""
    name = f"crcr/{repo}"
    return [run for run in relay.state()["check_runs"]
            if run["name"] == name or run["name"].startswith(name + "/")]


def wait_checks(relay, sha, repo, expected, timeout=60):
    """Waits until the job check runs of a downstream on a commit are exactly these: {name: conclusion, or
    status where there is none yet}."""
    def equal():
        now = {name: run["conclusion"] or run["status"]
               for name, run in job_checks(relay, sha, repo).items()}
        if now != expected:
            raise ValueError(f"there are {now}")
        return True
    wait_for(f"the check runs of {repo} on {sha[:8]}: {expected}", equal, timeout)


def wait_idle(relay, groups=("crcr-router", "crcr-fold", "crcr-reconcile")):
    """Waits until every record that these groups read is done with. Twice in a row: what one group ends with
    may be what another begins with."""
    def no_lag():
        return all(row.get("lag") in (0, None) for row in relay.lag(*groups))
    wait_for(f"no lag of {', '.join(groups)}", lambda: no_lag() and no_lag(), 90)
