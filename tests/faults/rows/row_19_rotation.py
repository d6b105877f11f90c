"""Every secret is changed as an operator does it: first both are good, then the new one is used, then the old
one goes; each step is a rolling restart under load, behind a load balancer that goes by /readyz. No valid request may be
refused meanwhile."""
import json
import subprocess
import threading
import time

from lib.processes import wait_for
from lib.relay import SECRET, http

ROW, NAME = "19", "webhook secret, token key, App key rotated"
INGESTS, DISPATCHERS = ("ingest", "ingest2"), ("dispatcher", "dispatcher2")
REPORTERS = ("reporter", "reporter2")
REVOKED = [f"/repos/org-{one}/backend/dispatches" for one in "agl"]
DELAY_S, LOOK_S = 2, 0.2  # for so long a replica that leaves still takes requests; how often the balancer looks
NEW_SECRET = "the-next-secret"
OLD_TOKEN_KEY, NEW_TOKEN_KEY = "k1:" + "0" * 32, "k2:" + "1" * 32
REACTION = [{"repo": "org-[abc]/*", "reports": False},
            {"repo": "*", "every": 10, "delay_ms": 200, "run_ms": 1500, "retries": 40, "retry_delay_ms": 500}]


class Balancer(threading.Thread):
    """Takes a replica out of the load while it is not ready; each request gets a connection of its own."""

    def __init__(self, case, load):
        super().__init__(daemon=True)
        self.case, self.load, self.taken_out, self.over = case, load, 0, threading.Event()

    def is_ready(self, part):
        try:
            return self.case.ready(part)
        except OSError:
            return False

    def run(self):
        before = INGESTS
        while not self.over.wait(LOOK_S):
            ready = tuple(filter(self.is_ready, INGESTS)) or INGESTS
            self.taken_out += len(set(before) - set(ready))
            before = ready
            self.load.parts = (ready * 2)[:2]


class Rotation:
    def __init__(self, case):
        self.case = case
        self.environment = {}
        self.secret = SECRET
        self.revoked_ms = 0
        self.steps = 0
        self.slowest = 0.0

    def restart(self, parts, **changes):
        """One after the other, the next when it is ready, with these settings changed."""
        self.environment.update(changes)
        self.steps += 1
        for part in parts:
            began = time.monotonic()
            kind = part.rstrip("2")
            settings = {name: value for name, value in self.environment.items() if name in KNOWN[kind]}
            code = self.case.relay.parts[part].stop(40)
            assert code == 0, f"{part} exited with {code}: {self.case.relay.parts[part].tail()}"
            self.case.start_part(part, **settings)
            self.case.relay.wait_ready(part, 90)
            self.slowest = max(self.slowest, time.monotonic() - began)
        self.case.say(f"row 19: step {self.steps}, {' and '.join(changes)} at {parts[0]}s, "
                      f"{self.case.loads[0].answers}")

    def use_new_secret(self):
        """GitHub signs with the new one from now on; what it signed with the old one has been answered."""
        load = self.case.loads[0]
        self.secret = NEW_SECRET
        sent = load.counter
        self.case.wait("webhooks signed with the old secret to be answered",
                       lambda: sum(load.answers.values()) >= sent, 120)

    def old_tokens_used(self):
        """Every run that was dispatched so far has called back."""
        state = self.case.relay.state()
        last = max((run["id"] for run in state["runs"]), default=0)

        def called_back():
            now = self.case.relay.state()
            return all(run["status"] == "completed" for run in now["runs"] if run["id"] <= last) and \
                all(row.get("http_status") == 200 for row in now["callbacks"]
                    if int(row["run_id"]) <= last)
        wait_for("the runs with old callback tokens to call back", called_back, 300, every=2)


KNOWN = {"ingest": {"GITHUB_APP_SECRET", "CRCR_CALLBACK_TOKEN_KEY"},
         "dispatcher": {"GITHUB_APP_PRIVATE_KEY_FILE", "CRCR_CALLBACK_TOKEN_KEY"},
         "reporter": {"GITHUB_APP_PRIVATE_KEY_FILE"}}


def github_knows(case, *keys):
    status, body = http("POST", case.relay.url("github", "/_sim/app_keys"),
                        json.dumps({"keys": [key.read_text() for key in keys]}).encode(),
                        {"Content-Type": "application/json"})
    assert status == 200, body


def rotate_secret(rotation):
    rotation.restart(INGESTS, GITHUB_APP_SECRET=f"{NEW_SECRET},{SECRET}")
    rotation.use_new_secret()
    rotation.restart(INGESTS, GITHUB_APP_SECRET=NEW_SECRET)


def rotate_token_key(rotation):
    """Ingest learns the new one before a dispatcher signs with it."""
    rotation.restart(INGESTS, CRCR_CALLBACK_TOKEN_KEY=f"{NEW_TOKEN_KEY},{OLD_TOKEN_KEY}")
    rotation.restart(DISPATCHERS)
    rotation.old_tokens_used()
    rotation.restart(INGESTS, CRCR_CALLBACK_TOKEN_KEY=NEW_TOKEN_KEY)


def rotate_app_key(rotation):
    case = rotation.case
    new = case.folder / "app-key-2.pem"
    subprocess.run(["openssl", "genrsa", "-out", new, "2048"], check=True, stderr=subprocess.DEVNULL)
    github_knows(case, case.relay.key, new)
    rotation.restart(DISPATCHERS, GITHUB_APP_PRIVATE_KEY_FILE=str(new))
    rotation.restart(REPORTERS, GITHUB_APP_PRIVATE_KEY_FILE=str(new))
    github_knows(case, new)
    # GitHub takes some tokens back: they must be fetched anew, which only the new key can.
    rotation.revoked_ms = int(time.time() * 1000)
    case.relay.script([{"method": "POST", "path": path, "status": 401, "count": 1} for path in REVOKED])


def refused_at_github(case):
    """Our requests that were answered 401 or 403, but for those that the row had GitHub refuse."""
    found = [r for r in case.relay.requests() if r["status"] in (401, 403)]
    once = {r["path"]: r for r in reversed(found) if r["path"] in REVOKED}
    return [r for r in found if once.get(r["path"]) is not r]


def fetched_anew(case, since_ms):
    return [r for r in case.relay.requests()
            if r["path"].endswith("/access_tokens") and r["status"] == 201 and r["at_ms"] >= since_ms]


def run(world, short=False):
    case = world.case("row-19", reaction=REACTION, environment={"CRCR_SHUTDOWN_DELAY": f"{DELAY_S}s"})
    case.start(*INGESTS, *DISPATCHERS, *REPORTERS)
    rotation = Rotation(case)
    load = case.load(rate=4 if short else 10, parts=INGESTS,
                     secret=lambda: rotation.secret)
    balancer = Balancer(case, load)
    balancer.start()
    case.wait("the first dispatches", case.dispatched, 120)
    for rotate in (rotate_secret, rotate_token_key, rotate_app_key):
        rotate(rotation)
    after = load.counter + 5
    case.wait("webhooks under the new keys", lambda: load.answers.get(202, 0) >= after, 120)
    load.stop()
    balancer.over.set()
    case.wait_done()
    refused, anew = refused_at_github(case), fetched_anew(case, rotation.revoked_ms)
    callbacks = [row for row in case.relay.state()["callbacks"] if row.get("http_status", 0) in range(400, 500)]
    result = case.result(ROW, NAME, f"3 secrets, {rotation.steps} rolling restarts of 2", recovery_s=rotation.slowest,
                         note=f"webhooks answered {load.answers}; a replica was taken out "
                              f"{balancer.taken_out} times")
    wrong = {status: n for status, n in load.answers.items() if status != 202}
    if wrong:
        result.problems.append(f"valid webhooks were answered {wrong}")
    if load.lost:
        result.problems.append(f"{len(load.lost)} webhooks were lost on connections that were taken, such as {load.lost[0]}")
    if not balancer.taken_out:
        result.problems.append("no replica was taken out while webhooks came")
    if not anew:
        result.problems.append("no token was fetched with the new App key")
    if callbacks:
        result.problems.append(f"{len(callbacks)} valid callbacks were refused, such as {callbacks[0]}")
    if refused:
        result.problems.append(f"GitHub refused {len(refused)} requests, such as {refused[0]}")
    return result
