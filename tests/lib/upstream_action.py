"""Reports as the upstream's action (cross-repo-ci-relay-callback) and its Buildkite wrapper send them: the whole
client_payload echoed with `workflow` added, Python's ASCII-only JSON, and curl with the two headers that they set."""
import datetime
import json
import subprocess


def workflow(status, conclusion=None, **changes):
    """Every field that the action always sends. Ids are texts there; a field that is set to ... is left out."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
    run_id, attempt = changes.get("run_id", "811"), changes.get("run_attempt", "1")
    fields = {"schema_version": "1", "status": status, "conclusion": conclusion, "name": "PyTorch CI",
              "url": f"https://github.com/org/repo/actions/runs/{run_id}", "run_attempt": attempt,
              "job_name": "test", "check_run_id": f"{run_id}-{attempt}", "run_id": run_id,
              "started_at": None if status == "completed" else now,
              "completed_at": None if status == "in_progress" else now, **changes}
    return {name: value for name, value in fields.items() if value is not ...}


def run_claims(fields):
    """The claims of GitHub's token for a job of that run."""
    return {name: "1" if fields.get(name) in (None, "") else str(fields[name]) for name in ("run_id", "run_attempt")}


def buildkite_workflow(status, conclusion=None, build="018e5c1a-7b1f-4a54-9e0a-0a1b2c3d4e5f", **changes):
    """What the wrapper makes of a Buildkite build: its UUID is the run, the pipeline's slug the workflow."""
    return workflow(status, conclusion, **{
        "name": "oot-nightly", "url": f"https://buildkite.com/org/oot-nightly/builds/7#{build}", "run_id": build,
        "job_name": ":pytest: npu / {{matrix}} %n", "check_run_id": f"{build}-1", **changes})


def self_report(event_type, upstream_sha):
    """The client_payload that the action makes up for a run that no dispatch started."""
    return {"event_type": event_type, "delivery_id": upstream_sha,
            "payload": {"repository": {"full_name": "pytorch/pytorch"}, "head_sha": upstream_sha}}


def send(url, token, client_payload, fields, folder, max_time=10):
    """(status, answer, the bytes that were sent)."""
    body, answer = folder / "body.json", folder / "answer.json"
    body.write_text(json.dumps({**client_payload, "workflow": fields}))
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--fail-with-body", "--output", answer, "--write-out", "%{http_code}",
         "-X", "POST", "--max-time", str(max_time), "-H", "Content-Type: application/json",
         "-H", f"Authorization: Bearer {token}", "--data", f"@{body}", url.rstrip("/")],
        capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 22), done.stderr  # 22: an HTTP status of 400 or more
    return int(done.stdout), json.loads(answer.read_text()), body.read_bytes()
