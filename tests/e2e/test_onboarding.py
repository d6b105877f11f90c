"""The way of a vendor from nothing to L2, as deploy/downstream/README.md goes it, with `crcrctl probe` after each step:
it names the next step, and in the end nothing."""
import json
import re
import shutil

from lib.processes import ROOT, wait_for
from lib.relay import ALLOWLIST, http, pull_request

REPO = "org-new/backend-new"
PUSH = {"ref": "refs/heads/main", "before": "0" * 40, "after": "a" * 40, "deleted": False,
        "repository": {"full_name": "pytorch/pytorch", "default_branch": "main"},
        "commits": [{"added": [], "removed": [], "modified": [".github/allowlist.yml"]}]}


def jobs_of(relay, delivery):
    """None while the reporter has not read of the delivery."""
    return (relay.api(f"/api/crcr/deliveries/{delivery}") or {"jobs": []})["jobs"]


def probe(relay):
    done = relay.ctl("probe", "--json", REPO, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.returncode, {line["name"]: line for line in json.loads(done.stdout)["checks"]}


def missing(relay):
    """The names of the lines that ask for something."""
    code, lines = probe(relay)
    names = [name for name, line in lines.items() if line["state"] == "missing"]
    assert code == (1 if names else 0) and all(lines[name]["todo"] for name in names)
    return names


def installed(relay, yes, reports=False):
    """reports: its workflow calls back. The pushes that bring the list into force start it too."""
    status, body = http("POST", relay.url("github", "/_sim/downstreams"),
                        json.dumps({"repo": REPO, "installed": yes, "reports": reports, "delay_ms": 10, "run_ms": 10,
                                    "tests": {"passed": 8, "failed": 0, "skipped": 1}}).encode(),
                        {"Content-Type": "application/json"})
    assert status == 200, body


def listed(relay, level):
    relay.allowlist_file.write_text(ALLOWLIST.replace("L1: [", f"L1: [{REPO}, ") if level == 1 else
                                    ALLOWLIST.replace("L2:\n", f"L2:\n  - {REPO}\n"))
    assert relay.send_webhook(PUSH, event="push")[0] == 202
    wait_for("the list to be in force", lambda: f"L{level} since" in probe(relay)[1]["allowlist"]["text"])


def test_a_vendor_goes_from_nothing_to_l2_and_the_probe_names_each_next_step(fresh_relay):
    relay = fresh_relay(environment={"ALLOWLIST_TTL_SECONDS": "3600"})
    relay.start_all()
    installed(relay, False)
    assert missing(relay) == ["app", "allowlist"]
    page = (ROOT / "deploy" / "downstream" / "README.md").read_text()
    asked = re.findall(r"^\| \d \| .*`probe`: `([a-z ]+)`", page, re.M)  # "Why was I not triggered?"
    assert list(dict.fromkeys(asked)) == list(probe(relay)[1])[:4] == ["app", "workflow", "allowlist", "last dispatch"]
    installed(relay, True)                                                                   # step 1
    assert missing(relay) == ["workflow", "allowlist"]
    folder = relay.folder / "contents" / REPO / ".github" / "workflows"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "deploy" / "downstream" / "workflow.yml", folder / "pytorch.yml")       # step 2
    assert missing(relay) == ["allowlist"]
    listed(relay, 1)                                                                         # step 5
    assert missing(relay) == ["last dispatch"]
    _, _, first = relay.send_webhook(pull_request(number=11))
    wait_for("nothing to be missing at L1", lambda: missing(relay) == [])
    lines = probe(relay)[1]
    assert first in lines["last dispatch"]["text"] and "ask for L2" in lines["last callback"]["todo"]
    listed(relay, 2)                                                                         # step 6
    assert missing(relay) == ["last callback"]
    installed(relay, True, reports=True)
    _, _, second = relay.send_webhook(pull_request(number=12))
    wait_for("nothing to be missing at L2", lambda: missing(relay) == [])
    wait_for("its row", lambda: [job for job in jobs_of(relay, second)
                                 if job["downstream_repo"] == REPO and job["passed_tests"] == 8])


def test_a_callback_sent_by_hand_is_a_row_like_any_other(fresh_relay):
    relay = fresh_relay()
    relay.start_all()
    status, _ = http("POST", relay.url("github", "/_sim/downstreams"),
                     json.dumps({"repo": "org-two/backend-two", "reports": False}).encode(),
                     {"Content-Type": "application/json"})
    assert status == 200
    _, _, delivery = relay.send_webhook(pull_request(number=21))
    dispatch = wait_for("the dispatch", lambda: [
        one for one in relay.state()["dispatches"]
        if one["repo"] == "org-two/backend-two" and one["client_payload"]["delivery_id"] == delivery])[0]
    file = relay.folder / "client_payload.json"
    file.write_text(json.dumps(dispatch["client_payload"]))
    _, answer = http("POST", relay.url("github", "/_sim/oidc"), b'{"repo": "org-two/backend-two"}')
    token = relay.folder / "token"
    token.write_text(json.loads(answer)["token"])
    done = relay.ctl("send-callback", file, "--url", relay.url("ingest", "/github/callback"), "--token-file", token,
                     "--status", "completed", "--conclusion", "failure", "--workflow", "CI", "--job", "by hand")
    assert done.stdout.startswith("200 in ") and '"status":"completed"' in done.stdout
    wait_for("its row", lambda: [
        (job["job_name"], job["conclusion"]) for job in jobs_of(relay, delivery)
        if job["downstream_repo"] == "org-two/backend-two"] == [("by hand", "failure")])
