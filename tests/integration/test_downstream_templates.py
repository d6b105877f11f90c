"""deploy/downstream/action.yml, workflow.yml and the reusable downstream.yml hold together, run on payloads that the relay trimmed, and give
the means to mint tokens only to jobs that run nothing of a pull request."""
import json
import re
import shutil
import subprocess

import pytest
import yaml

from lib.actions import FOLDER, REUSABLE, Expression, fill, load
from lib.bridges import block
from lib.processes import BIN, ROOT
from lib.relay import payload

ENVELOPE = {"event_type", "delivery_id", "callback_token"}
PROTECTED = re.findall(r'^    "([a-z_.*\[\]]+)",$', (ROOT / "common/github/payload_fit.c").read_text(), re.M)
WORKFLOW = load("workflow.yml")
LEG = load(REUSABLE)
TEXT = (FOLDER / "workflow.yml").read_text() + REUSABLE.read_text()
BEGIN, TEST, REPORT = (LEG["jobs"][name] for name in ("begin", "test", "report"))
REPORTER = "./crcr/deploy/downstream"  # after a checkout of the relay's repository into crcr/


def protected(path):
    """Is the path under client_payload.payload one that the relay never drops?"""
    return path in PROTECTED or re.sub(r"[^.]+$", "*", path) in PROTECTED


def only_protected(event_type, body):
    """The body with nothing but what the relay never drops, and no arrays."""
    def keep(value, prefix):
        kept = {}
        for name, inner in value.items():
            path = f"{prefix}{name}"
            if isinstance(inner, dict):
                kept[name] = keep(inner, path + ".")
            elif not isinstance(inner, list) and protected(path):
                kept[name] = inner
        return kept
    return {"github": {"event": {"client_payload": {
        "event_type": event_type, "delivery_id": "d-1", "payload": keep(body, "")}}}}


PULL = only_protected("pull_request", payload("pull_request/opened.json"))
PUSH = only_protected("push", payload("push/1.json"))


def test_every_field_that_the_template_reads_is_protected():
    fields = set(re.findall(r"client_payload\.([A-Za-z_.]+)", TEXT))
    assert len(PROTECTED) > 40 and len(fields) >= 7
    for field in fields - ENVELOPE:
        assert field.startswith("payload.") and protected(field[len("payload."):]), field


def test_a_later_event_of_a_pull_request_and_a_second_dispatch_take_the_place_of_the_first():
    group = WORKFLOW["concurrency"]["group"]
    assert WORKFLOW["concurrency"]["cancel-in-progress"] is True
    number = PULL["github"]["event"]["client_payload"]["payload"]["pull_request"]["number"]
    repo = PULL["github"]["event"]["client_payload"]["payload"]["repository"]["full_name"]
    assert fill(group, PULL) == f"pytorch-{repo}-{number}"


def test_pushes_run_side_by_side_but_each_delivery_once():
    group = WORKFLOW["concurrency"]["group"]
    other = json.loads(json.dumps(PUSH))
    other["github"]["event"]["client_payload"]["delivery_id"] = "d-2"
    assert fill(group, PUSH).endswith("-d-1") and fill(group, other).endswith("-d-2")


def test_the_commit_under_test_is_the_head_of_the_pull_request_or_what_was_pushed():
    checkout = next(step for step in TEST["steps"] if step.get("with", {}).get("path") == "pytorch")
    pull = PULL["github"]["event"]["client_payload"]["payload"]
    assert fill(checkout["with"]["ref"], PULL) == pull["pull_request"]["head"]["sha"]
    assert fill(checkout["with"]["ref"], PUSH) == PUSH["github"]["event"]["client_payload"]["payload"]["after"]
    assert fill(checkout["with"]["repository"], PULL) == pull["repository"]["full_name"]


@pytest.mark.parametrize("action, runs", [("opened", "legs"), ("synchronize", "legs"), ("reopened", "legs"),
                                          ("closed", "closed"), (None, "legs")])
def test_closed_only_cancels(action, runs):
    event = json.loads(json.dumps(PULL))
    event["github"]["event"]["client_payload"]["payload"]["action"] = action
    chosen = [name for name, job in WORKFLOW["jobs"].items() if Expression(job["if"], event).value()]
    assert chosen == [runs]


def test_runs_are_named_after_what_they_test():
    number = PULL["github"]["event"]["client_payload"]["payload"]["pull_request"]["number"]
    assert fill(WORKFLOW["run-name"], PULL).split() == ["pull_request", str(number), "opened"]
    assert fill(WORKFLOW["run-name"], PUSH).split()[:2] == [
        "push", PUSH["github"]["event"]["client_payload"]["payload"]["ref"]]


def steps_that_use(job, what):
    return [step for step in job["steps"] if step.get("uses", "").split("@")[0] == what]


def test_both_dispatches_start_it():
    assert set(WORKFLOW["on"]["repository_dispatch"]["types"]) == {"pull_request", "push"}
    assert WORKFLOW["permissions"] == LEG["permissions"] == {"contents": "read"}
    assert WORKFLOW["jobs"]["closed"]["permissions"] == {}


def test_each_leg_is_a_call_of_the_relays_reusable_workflow():
    legs = WORKFLOW["jobs"]["legs"]
    assert legs["uses"] == "ORG/RELAY/.github/workflows/downstream.yml@v0" and set(LEG["on"]) == {"workflow_call"}
    inputs, types = LEG["on"]["workflow_call"]["inputs"], {"string": str, "number": int, "boolean": bool}
    assert set(legs["with"]) <= set(inputs) and "secrets" not in legs
    assert {name for name, what in inputs.items() if what.get("required")} <= set(legs["with"])
    for name, value in legs["with"].items():
        assert isinstance(value, types[inputs[name]["type"]]), name
    for text in (inputs["runs-on"]["default"], legs["with"]["runs-on"]):
        assert json.loads(text), "fromJSON reads it"
    assert legs["strategy"]["fail-fast"] is False
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in legs["strategy"]["matrix"]["leg"])


def test_actions_of_others_are_pinned_by_commit_with_their_version_beside():
    pins = {}
    for path in [REUSABLE, *sorted(FOLDER.rglob("*.yml"))]:
        for name, rest in re.findall(r"^\s*(?:- )?uses: ([^\s@]+)(.*)$", path.read_text(), re.M):
            if name.startswith(("./", "ORG/RELAY/")):
                continue
            pin = re.fullmatch(r"@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)", rest)
            assert pin, f"{path.name}: {name}{rest}"
            assert pins.setdefault(name, pin.groups()) == pin.groups(), f"{name} is pinned in two ways"
    assert set(pins) == {"actions/checkout", "actions/upload-artifact", "actions/download-artifact"}


def test_only_begin_and_report_may_mint_tokens():
    assert list(LEG["jobs"]) == ["begin", "test", "report"]
    assert TEST["permissions"] == {"contents": "read"}
    for job in (BEGIN, REPORT, WORKFLOW["jobs"]["legs"]):
        assert job["permissions"] == {"contents": "read", "id-token": "write"}


def test_jobs_that_may_mint_tokens_run_nothing_of_a_pull_request():
    """No script, no checkout but of the reporter, from the commit of the workflow that is called, no machine that has run
    other things, no cache, no output of the job that ran the code under test. Bytes of an artifact lie outside of the
    workspace, and come first."""
    for job in (BEGIN, REPORT):
        assert job["runs-on"] == "ubuntu-latest" and "container" not in job and "services" not in job
        assert not [step for step in job["steps"] if "run" in step or "env" in step] and "env" not in job
        uses = [step["uses"].split("@")[0] for step in job["steps"]]
        assert set(uses) <= {"actions/checkout", "actions/download-artifact", REPORTER}
        [checkout] = steps_that_use(job, "actions/checkout")
        assert checkout["with"] == {
            "repository": "${{ job.workflow_repository }}", "ref": "${{ job.workflow_sha }}", "path": "crcr",
            "sparse-checkout": "deploy/downstream", "persist-credentials": False}
        assert uses[-2:] == ["actions/checkout", REPORTER]
        assert not re.search(r"needs\.\w+\.outputs|steps\.|secrets\b|github\.token|client_payload", str(job["steps"]))
    [download] = steps_that_use(REPORT, "actions/download-artifact")
    assert REPORT["steps"][0] is download and download["with"]["path"].startswith("${{ runner.temp }}/")
    assert download["continue-on-error"] is True and download["timeout-minutes"] <= 10
    assert "outputs" not in TEST and "outputs" not in BEGIN


def test_the_job_that_runs_the_code_under_test_has_no_secret():
    assert "env" not in LEG and "env" not in WORKFLOW and "secrets." not in TEXT and "github.token" not in TEXT
    for step in steps_that_use(TEST, "actions/checkout"):
        assert step["with"]["persist-credentials"] is False
    assert not steps_that_use(TEST, REPORTER)
    # An expression within a script would be a way in: titles and branch names are anyone's.
    assert not [step for step in TEST["steps"] if "${{" in step.get("run", "")]


def test_both_reports_are_of_the_tested_job_and_the_conclusion_is_githubs():
    [begin], [end] = steps_that_use(BEGIN, REPORTER), steps_that_use(REPORT, REPORTER)
    assert (begin["with"]["status"], end["with"]["status"]) == ("in_progress", "completed")
    assert begin["with"]["job-name"] == end["with"]["job-name"] == "test (${{ inputs.leg }})"
    assert not {"check-run-id"} & (set(begin["with"]) | set(end["with"])), "the default: <run id>-<run attempt>"
    assert TEST["needs"] == "begin" and REPORT["needs"] == "test" and REPORT["if"] == "always()"
    for result, wanted, conclusion in (("success", True, "success"), ("failure", True, "failure"),
                                       ("cancelled", True, "cancelled"), ("skipped", True, "cancelled"),
                                       ("skipped", False, "skipped")):
        contexts = {"needs": {"test": {"result": result}}, "inputs": {"wanted": wanted}}
        assert fill(end["with"]["conclusion"], contexts) == conclusion
    declared = load("action.yml")["inputs"]
    for step in (begin, end):
        assert set(step["with"]) <= set(declared)
        assert {name for name, what in declared.items() if what.get("required")} <= set(step["with"])


def test_the_results_that_are_kept_are_those_that_are_fetched():
    [upload] = steps_that_use(TEST, "actions/upload-artifact")
    [download] = steps_that_use(REPORT, "actions/download-artifact")
    assert upload["if"] == "always()" and upload["with"]["name"] == download["with"]["name"]
    assert "inputs.leg" in upload["with"]["name"] and "github.run_attempt" in upload["with"]["name"]


def test_the_action_takes_no_conclusion_of_the_job_that_reports():
    """That job is green; only the tested job's result counts."""
    inputs = load("action.yml")["inputs"]
    assert "default" not in inputs["conclusion"] and "default" not in inputs["check-run-id"]


def test_every_input_of_the_action_reaches_the_script_under_a_name_it_reads():
    action = load("action.yml")
    step = action["runs"]["steps"][0]
    used = set(re.findall(r"inputs\.([a-z-]+)", "\n".join(step["env"].values())))
    assert used == set(action["inputs"])
    done = subprocess.run([FOLDER / "crcr-report", "--help"], capture_output=True, text=True, check=True)
    for name in step["env"]:
        option = name[len("CRCR_"):].lower().replace("_", "-")
        assert option == "status" or f"--{option}" in done.stdout, name


def test_no_expression_stands_where_github_would_refuse_the_whole_action():
    """GitHub evaluates expressions in descriptions too, where no context is known; it once broke every report."""
    action = load("action.yml")
    for name, what in action["inputs"].items():
        assert "${{" not in what["description"], name
        contexts = set(re.findall(r"\$\{\{\s*(\w+)", str(what.get("default", ""))))
        assert contexts <= {"github", "strategy", "matrix", "job", "runner"}, name
    assert "${{" not in action["description"]
    assert not [one for one in action["outputs"].values() if "${{" in one["description"]]


def test_the_scripts_of_the_action_are_sound_shell(tmp_path):
    for step in load("action.yml")["runs"]["steps"]:
        script = tmp_path / "step.sh"
        script.write_text("#!/usr/bin/env bash\n" + step["run"])
        assert step["shell"] == "bash"
        done = subprocess.run(["shellcheck", script], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("bridge", ["buildkite", "gitlab", "jenkins"])
def test_the_relay_accepts_the_pages_providers_file(tmp_path, bridge):
    key, file = tmp_path / "key.pem", tmp_path / "providers.yml"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    environment = {"KAFKA_BROKERS": "127.0.0.1:1", "REDIS_ENDPOINT": "127.0.0.1:1", "GITHUB_APP_ID": "1",
                   "GITHUB_APP_PRIVATE_KEY_FILE": str(key), "ALLOWLIST_URL": "/dev/null", "CI_PROVIDERS_URL": str(file)}

    def check(text):
        file.write_text(text)
        return subprocess.run([BIN / "crcr-dispatcher", "--check-config"], env=environment, capture_output=True, text=True)
    [page] = re.findall(r"```yaml\n(# \w+, in the providers file.*?)```", (FOLDER / bridge / "README.md").read_text(), re.S)
    assert check(page).returncode == 0
    broken = check(page.replace("repo_map:", "map:"))
    assert broken.returncode == 2 and 'unknown key "map"' in broken.stderr, broken.stderr


def test_on_gitlab_too_no_job_that_may_mint_tokens_runs_anything_of_a_pull_request():
    jobs = yaml.safe_load((FOLDER / "gitlab/gitlab-ci.yml").read_text())
    assert "id_tokens" in jobs[".crcr"] and jobs[".crcr"]["variables"]["GIT_STRATEGY"] == "none"
    testing = {name for name, job in jobs.items() if "test-pytorch.sh" in str(job)}
    assert testing == {"test"} and not {"extends", "id_tokens"} & set(jobs["test"]) and "id_tokens" not in jobs
    assert jobs["test"]["tags"] != jobs[".crcr"]["tags"]
    reporting = {name: job["script"] for name, job in jobs.items() if job.get("extends") == ".crcr"}
    assert set(reporting) == {"begin", "passed", "failed"}
    assert all(line.startswith("crcr-report ") for script in reporting.values() for line in script), \
        "of the image, not of the workspace"


def test_on_buildkite_too_the_step_that_runs_the_code_under_test_has_no_agent():
    pipeline = yaml.safe_load((FOLDER / "buildkite/pipeline.yml").read_text())
    steps = {step["key"]: step for step in pipeline["steps"] if isinstance(step, dict) and "key" in step}
    assert {key for key, step in steps.items() if "test-pytorch.sh" in str(step)} == {"test"}
    [plugin] = steps["test"]["plugins"]
    assert plugin["docker#v5.13.0"]["mount-buildkite-agent"] is False
    assert not set(plugin["docker#v5.13.0"]) & {"propagate-environment", "volumes", "mount-ssh-agent"}
    assert "\n" not in steps["test"]["command"], "the plug-in runs lines that do not end in ; as one"
    assert steps["test"]["agents"] != steps["begin"]["agents"] == steps["report"]["agents"]
    assert "crcr-report" not in str(steps["test"]) and set(steps) == {"begin", "test", "report"}
    assert steps["test"]["env"]["BUILDKITE_ARTIFACT_UPLOAD_SKIP_SYMLINKS"] == "true"


def test_on_jenkins_too_the_stage_that_runs_the_code_under_test_has_no_credentials():
    text = (FOLDER / "jenkins/Jenkinsfile").read_text()
    test, rest = block(text, "stage('test')"), text.replace(block(text, "stage('test')"), "")
    assert "test-pytorch.sh" in test and "test-pytorch.sh" not in rest
    assert not re.search("withCredentials|crcr-report|credentialsId|environment", test)
    assert re.findall(r"(?:label |node\()'(\w+)'", test) == ["untrusted"]
    assert re.findall(r"(?:label |node\()'(\w+)'", rest) == ["crcr", "crcr"] and "agent none" in rest


@pytest.mark.parametrize("bridge", ["buildkite", "gitlab", "jenkins"])
def test_the_workflow_that_starts_a_build_elsewhere_may_do_nothing_else(bridge):
    """It runs no code but its own; titles and branch names come to it as a file alone."""
    workflow, own = load(f"{bridge}/start.yml"), load("workflow.yml")
    assert workflow["on"] == own["on"] and workflow["run-name"] == own["run-name"] and workflow["permissions"] == {}
    [job] = workflow["jobs"].values()
    [step] = job["steps"]
    assert "${{" not in step["run"] and "permissions" not in job and job["runs-on"] == "ubuntu-latest"
    assert [value for value in step["env"].values() if "${{" in value] == [
        value for value in step["env"].values() if re.fullmatch(r"\$\{\{ secrets\.\w+_TOKEN \}\}", value)]
    paths = set(re.findall(r"payload((?:\.\w+)+)", step["run"] + job["if"] + workflow["run-name"]))
    for path in paths - {".payload"}:
        field = path.removeprefix(".payload.").removeprefix(".")
        assert field in ENVELOPE or protected(field), field


def test_snippets_of_the_readme_are_yaml_with_inputs_that_exist():
    text = (FOLDER / "README.md").read_text()
    declared, called = set(load("action.yml")["inputs"]), set(LEG["on"]["workflow_call"]["inputs"])
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.S)
    assert blocks
    for one in blocks:
        document = yaml.safe_load(one)
        for step in document if isinstance(document, list) else []:
            if isinstance(step, dict) and "deploy/downstream" in str(step.get("uses")):
                assert set(step["with"]) <= declared, step
        if isinstance(document, dict) and "downstream.yml" in str(document.get("uses")):
            assert set(document.get("with", {})) <= called, document


if shutil.which("actionlint"):  # a second opinion where it is installed
    def test_actionlint_finds_nothing(tmp_path):
        (tmp_path / ".git").mkdir()
        for source, place in (*((FOLDER / one / "start.yml", f".github/workflows/{one}.yml") for one in ("buildkite", "gitlab", "jenkins")),
                              (FOLDER / "workflow.yml", ".github/workflows/pytorch.yml"), (REUSABLE, REUSABLE.relative_to(ROOT)),
                              (FOLDER / "action.yml", "deploy/downstream/action.yml"),
                              (ROOT / ".github/actionlint.yaml", ".github/actionlint.yaml")):
            (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, tmp_path / place)
        done = subprocess.run(["actionlint", "-color=false"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
