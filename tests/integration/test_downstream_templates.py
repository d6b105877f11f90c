"""deploy/downstream/action.yml and workflow.yml hold together, and run on payloads that the relay trimmed."""
import json
import re
import shutil
import subprocess

import pytest
import yaml

from lib.actions import FOLDER, Expression, fill, load
from lib.processes import ROOT
from lib.relay import payload

ENVELOPE = {"event_type", "delivery_id", "callback_token"}
PROTECTED = re.findall(r'^    "([a-z_.*\[\]]+)",$', (ROOT / "common/github/payload_path.c").read_text(), re.M)
WORKFLOW = load("workflow.yml")
TEXT = (FOLDER / "workflow.yml").read_text()
TEST = WORKFLOW["jobs"]["test"]


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


@pytest.mark.parametrize("action, runs", [("opened", "test"), ("synchronize", "test"), ("reopened", "test"),
                                          ("closed", "closed"), (None, "test")])
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


def test_both_dispatches_start_it_and_only_the_test_job_may_mint_tokens():
    assert set(WORKFLOW["on"]["repository_dispatch"]["types"]) == {"pull_request", "push"}
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert TEST["permissions"] == {"contents": "read", "id-token": "write"}
    assert WORKFLOW["jobs"]["closed"]["permissions"] == {}


def test_the_job_reports_first_and_last_and_always():
    reports = [step for step in TEST["steps"] if step.get("uses") == "./.github/actions/crcr-report"]
    assert [step["with"]["status"] for step in reports] == ["in_progress", "completed"]
    assert TEST["steps"][1] is reports[0] and TEST["steps"][-1] is reports[1]
    assert reports[1]["if"] == "always()" and "job.status" in reports[1]["with"]["conclusion"]
    declared = load("action.yml")["inputs"]
    for step in reports:
        assert set(step["with"]) <= set(declared)
        assert {name for name, what in declared.items() if what.get("required")} <= set(step["with"])


def test_the_code_under_test_is_not_handed_the_means_to_mint_tokens():
    build = next(step for step in TEST["steps"] if step.get("name") == "Build and test")
    assert "-u ACTIONS_ID_TOKEN_REQUEST_TOKEN" in build["run"] and "-u ACTIONS_ID_TOKEN_REQUEST_URL" in build["run"]
    for step in TEST["steps"]:
        if "checkout" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False
    # An expression within a script would be a way in: titles and branch names are anyone's.
    assert not [step for step in TEST["steps"] if "${{" in step.get("run", "")]


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


def test_snippets_of_the_readme_are_yaml_with_inputs_that_exist():
    text = (FOLDER / "README.md").read_text()
    declared = set(load("action.yml")["inputs"])
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.S)
    assert blocks
    for block in blocks:
        document = yaml.safe_load(block)
        for step in document if isinstance(document, list) else []:
            if isinstance(step, dict) and "crcr-report" in str(step.get("uses")):
                assert set(step["with"]) <= declared, step


if shutil.which("actionlint"):  # a second opinion where it is installed
    def test_actionlint_finds_nothing(tmp_path):
        (tmp_path / ".git").mkdir()
        for source, place in (("workflow.yml", "workflows/pytorch.yml"), ("action.yml", "actions/crcr-report/action.yml")):
            target = tmp_path / ".github" / place
            target.parent.mkdir(parents=True)
            shutil.copy(FOLDER / source, target)
        done = subprocess.run(["actionlint", "-color=false"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
