"""CIs other than GitHub Actions, on the whole relay: the providers file that maps their pipelines, fetched and changed
live; crcr-report in the environments of Buildkite, GitLab and Jenkins; and the bridges of deploy/downstream, from the
dispatch to the row."""
import json
import os
import re
import subprocess
import sys
import uuid

import pytest

from lib import bridges
from lib.actions import FOLDER
from lib.kafka import read_topic
from lib.processes import wait_for
from lib.redis_server import redis_server
from lib.relay import Relay, pull_request
from lib.vendor import Downstream, sha_of
from openapi.validate import assert_conforms

BUILDKITE, GITLAB, JENKINS = "https://agent.buildkite.com", "https://gitlab.vendor.example", "https://ci.vendor.example/oidc"
ORGANIZATION, PIPELINE, OTHER, BRIDGE = (f"0190a1b2-0000-4000-8000-00000000000{n}" for n in (1, 2, 3, 4))
L2, L4 = "org-two/backend-two", "org-four/backend-four"
FILE = ".github/crcr-providers.yml"


def entry(bridge):
    """What the page of a bridge has operators write below `providers:`, for our repository."""
    [block] = re.findall(r"```yaml\n# [^\n]* in the providers file of the relay\nproviders:\n(.*?)```",
                         (FOLDER / bridge / "README.md").read_text(), re.S)
    return block.replace("your-org/your-backend", L2)


def providers(pipelines):
    """GitLab's and Jenkins' projects are always the same, and the bridges'."""
    rows = "".join(f"      {ORGANIZATION}/{pipeline}: {repo}\n" for pipeline, repo in pipelines.items())
    return f"""\
providers:
{entry("gitlab")}{entry("jenkins")}  gitlab-of-the-vendor:
    issuer: {GITLAB}
    key: [project_path]
    repo_map:
      vendor/ci/oot: {L2}
      vendor/gate: {{repo: {L4}, required_claims: {{ref_protected: "true"}}}}
{entry("buildkite")}{rows}"""


@pytest.fixture(scope="module")
def relay(kafka_node, tmp_path_factory):
    folder = tmp_path_factory.mktemp("relay")
    with redis_server(folder / "redis") as redis:
        one = Relay(folder, kafka_node.brokers, redis)
        jwks = f"{one.url('github')}/.well-known/jwks"
        one.extra = {"CI_PROVIDERS_URL": f"https://github.com/pytorch/pytorch/blob/main/{FILE}",
                     "ALLOWLIST_TTL_SECONDS": "3600", "CRCR_OIDC_ISSUERS": ",".join(
                         f"{issuer}={jwks}{owners}" for issuer, owners in
                         (("https://token.actions.githubusercontent.com", ""), (BUILDKITE, ""),
                          (GITLAB, " org-two org-four"), (JENKINS, " org-four"), ("https://gitlab.com", " org-two"),
                          ("https://ci.example/oidc", " org-two")))}
        one.providers = folder / "contents/pytorch/pytorch" / FILE
        one.providers.write_text(providers({PIPELINE: L2}))
        try:
            yield one.start_all()
        finally:
            one.stop()
        assert_conforms(folder)


@pytest.fixture
def downstream(relay, tmp_path):
    Downstream(relay, "org-one/backend-one", tmp_path).wait_admitted()
    return lambda repo: Downstream(relay, repo, tmp_path)


def pipeline_claims(pipeline, **more):
    """The claims of Buildkite's tokens: no repository, the ids instead."""
    return {"iss": BUILDKITE, "repository": None, "organization_id": ORGANIZATION, "pipeline_id": pipeline, **more}


def gitlab_claims(project="vendor/ci/oot", **more):
    """The claims of GitLab's tokens: the project and its ref."""
    return {"iss": GITLAB, "repository": None, "project_path": project, "ref_protected": "true", **more}


def push_of(relay, text):
    """A push to the default branch that changes the providers file."""
    relay.providers.write_text(text)
    push = {"ref": "refs/heads/main", "before": "0" * 40, "after": "a" * 40, "deleted": False,
            "repository": {"full_name": "pytorch/pytorch", "default_branch": "main"},
            "commits": [{"added": [], "removed": [], "modified": [FILE]}]}
    assert relay.send_webhook(push, event="push")[0] == 202


def in_force(two, payload, status, pipeline):
    return two.report(payload, "in_progress", claims=pipeline_claims(pipeline))[0] == status


def test_a_new_mapping_is_in_force_without_a_restart(relay, downstream):
    two, four = downstream(L2), downstream(L4)
    old, new = two.opened(6301), four.opened(6302)
    wait_for("the first mapping", lambda: in_force(two, old, 200, PIPELINE))
    assert in_force(four, new, 403, OTHER)
    pids = {name: process.pid for name, process in relay.parts.items()}
    push_of(relay, providers({PIPELINE: L2, OTHER: L4}))
    wait_for("the new mapping", lambda: in_force(four, new, 200, OTHER))
    assert four.report(new, "completed", "success", claims=pipeline_claims(OTHER))[0] == 200
    four.wait_rows(new["delivery_id"], ("completed", "success"))
    push_of(relay, providers({PIPELINE: L2}))
    wait_for("the mapping to be gone", lambda: in_force(four, new, 403, OTHER))
    assert in_force(two, old, 200, PIPELINE)
    assert pids == {name: process.pid for name, process in relay.parts.items() if process.running()}


def test_an_invalid_file_is_named_and_the_old_mapping_stays(relay, downstream):
    two = downstream(L2)
    payload = two.opened(6303)
    broken = providers({PIPELINE: L2}) + f"  - {ORGANIZATION}: @org\n"
    push_of(relay, broken)
    relay.parts["dispatcher"].wait_text("allowlist_refused", 30)
    assert relay.metric("dispatcher", "crcr_allowlist_valid", file="providers") == 0
    refused = next(json.loads(line) for line in relay.parts["dispatcher"].text().splitlines() if "allowlist_refused" in line)
    assert refused["file"] == "providers" and refused["error"].startswith(f"crcr-providers.yml:{broken.count(chr(10))}:")
    assert in_force(two, payload, 200, PIPELINE)
    push_of(relay, providers({PIPELINE: L4}))
    wait_for("the mended file", lambda: relay.metric("dispatcher", "crcr_allowlist_valid", file="providers") == 1)
    wait_for("the pipeline to speak for another", lambda: in_force(two, payload, 403, PIPELINE))
    push_of(relay, providers({PIPELINE: L2}))
    wait_for("the old mapping again", lambda: in_force(two, payload, 200, PIPELINE))


def test_the_file_can_make_no_other_issuer_trusted(relay, downstream):
    two, evil = downstream(L2), "https://evil.example"
    payload = two.opened(6304)
    push_of(relay, providers({OTHER: L2}) + f"  evil-ci: {{issuer: {evil}, key: [sub], repo_map: {{me: {L2}}}}}\n")
    wait_for("the file to be in force", lambda: in_force(two, payload, 200, OTHER))
    assert two.report(payload, "in_progress", claims={"iss": evil, "sub": "me"})[0] == 401
    push_of(relay, providers({PIPELINE: L2}))


def test_a_gitlab_project_speaks_for_the_repository_it_is_mapped_to(downstream):
    two, four = downstream(L2), downstream(L4)
    payload, gate = two.opened(6311), four.opened(6312)
    wait_for("the mapping", lambda: two.report(payload, "in_progress", claims=gitlab_claims())[0] == 200)
    two.wait_rows(payload["delivery_id"], ("in_progress", ""))
    for claims, status in ((gitlab_claims("vendor/gate"), 200), (gitlab_claims("vendor/gate", ref_protected="false"), 403),
                           (gitlab_claims("evil/oot"), 403), (gitlab_claims(None, repository=L4), 401)):
        code, answer = four.report(gate, "in_progress", claims=claims)
        assert code == status, (claims, answer)


# ---- crcr-report ------------------------------------------------------------------------------------------
JUNIT = '<testsuite><testcase name="a"/><testcase name="b"><failure message="boom">at b</failure></testcase></testsuite>'


@pytest.fixture
def crcr_report(relay, tmp_path):
    """crcr_report(payload, environment, *arguments): the script as a step of that CI runs it."""
    (tmp_path / "results").mkdir(exist_ok=True)
    (tmp_path / "results" / "r.xml").write_text(JUNIT)

    def run(payload, environment, *arguments):
        (tmp_path / "payload.json").write_text(json.dumps(payload))
        done = subprocess.run(
            [sys.executable, FOLDER / "crcr-report", *arguments, "--payload-file", "payload.json"],
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "CRCR_CALLBACK_URL": relay.url("ingest", "/github/callback"),
                 **environment}, cwd=tmp_path, capture_output=True, text=True, timeout=90)
        assert done.returncode == 0, done.stderr
        return done.stderr
    return run


def the_row(downstream, payload, status, conclusion):
    return downstream.wait_rows(payload["delivery_id"], (status, conclusion))[0]


def test_buildkite_reports_through_its_agents_token(relay, downstream, crcr_report, tmp_path):
    two = downstream(L2)
    payload = two.opened(6305)
    wait_for("the mapping", lambda: in_force(two, two.opened(6306), 200, PIPELINE))
    agent = tmp_path / "buildkite-agent"
    agent.write_text(f"#!/bin/sh\necho {two.token(**pipeline_claims(PIPELINE))}\n")
    agent.chmod(0o755)
    build = "018e5c1a-7b1f-4a54-9e0a-0a1b2c3d4e5f"
    environment = {"BUILDKITE": "true", "BUILDKITE_BUILD_ID": build, "BUILDKITE_PIPELINE_SLUG": "oot",
                   "BUILDKITE_LABEL": ":pytest: npu", "BUILDKITE_RETRY_COUNT": "0",
                   "BUILDKITE_BUILD_URL": "https://buildkite.com/org/oot/builds/7"}
    crcr_report(payload, environment, "in_progress")
    the_row(two, payload, "in_progress", None)
    crcr_report(payload, {**environment, "BUILDKITE_COMMAND_EXIT_STATUS": "1"}, "completed", "--junit", "results/*.xml")
    row = the_row(two, payload, "completed", "failure")
    assert (row["workflow_name"], row["job_name"], row["run_id"]) == ("oot", ":pytest: npu", build)
    assert row["workflow_run_url"] == environment["BUILDKITE_BUILD_URL"]
    assert (row["passed_tests"], row["failed_tests"]) == (1, 1) and row["execution_time"] is not None


def test_gitlab_reports_from_jobs_beside_the_one_that_tests(downstream, crcr_report):
    two = downstream(L2)
    payload = two.opened(6310)
    environment = {"GITLAB_CI": "true", "CI_PIPELINE_ID": "52", "CI_PROJECT_PATH": "vendor/oot", "CI_JOB_ID": "98",
                   "CI_JOB_NAME": "begin", "CI_JOB_URL": "https://gitlab.vendor.example/-/jobs/98", "CI_JOB_STATUS": "running",
                   "CRCR_JOB_NAME": "test", "CRCR_CHECK_RUN_ID": "52", "CRCR_OIDC_TOKEN": two.token(**gitlab_claims())}
    crcr_report(payload, environment, "in_progress")
    crcr_report(payload, {**environment, "CI_JOB_ID": "100", "CI_JOB_NAME": "failed"}, "completed", "--conclusion", "failure")
    row = the_row(two, payload, "completed", "failure")
    assert (row["job_name"], row["check_run_id"]) == ("test", "52") and row["execution_time"] is not None


def test_gitlab_reports_from_its_after_script(downstream, crcr_report):
    two = downstream(L2)
    payload = two.opened(6307)
    environment = {"GITLAB_CI": "true", "CI_PIPELINE_ID": "51", "CI_PROJECT_PATH": "vendor/oot", "CI_JOB_ID": "99",
                   "CI_JOB_NAME": "test 1/2", "CI_JOB_URL": "https://gitlab.vendor.example/-/jobs/99",
                   "CI_JOB_STATUS": "running", "CRCR_OIDC_TOKEN": two.token(**gitlab_claims())}
    crcr_report(payload, environment, "in_progress")
    crcr_report(payload, {**environment, "CI_JOB_STATUS": "failed"}, "completed", "--junit", "results/*.xml")
    row = the_row(two, payload, "completed", "failure")
    assert (row["workflow_name"], row["job_name"], row["run_id"], row["check_run_id"]) == ("vendor/oot", "test 1/2", "51", "99")
    assert row["workflow_run_url"] == environment["CI_JOB_URL"]


def test_a_run_id_may_be_a_uuid(downstream):
    """Of another CI than GitHub Actions, whose tokens are bound to a run."""
    four, run_id = downstream(L4), str(uuid.uuid4())
    payload = four.opened(6309)
    url = f"https://ci.example/{run_id}"
    assert four.report(payload, "completed", "success", run_id=run_id, url=url, claims={"iss": JENKINS})[0] == 200
    row = the_row(four, payload, "completed", "success")
    assert (row["run_id"], row["check_run_id"]) == (run_id, f"{run_id}-1")
    run = wait_for("the check run", lambda: four.check_runs(sha_of(6309)))[0]
    assert run["external_id"] == f"{run_id}:6309" and run["details_url"] == url


def test_a_numeric_pipeline_links_to_gitlab_and_its_button_asks_github_for_nothing(relay, downstream, crcr_report):
    """GitHub would look for a run of Actions with that number."""
    four = downstream(L4)
    payload = four.opened(6313)
    url = "https://gitlab.vendor.example/-/jobs/201"
    crcr_report(payload, {"GITLAB_CI": "true", "CI_PIPELINE_ID": "53", "CI_PROJECT_PATH": "vendor/gate", "CI_JOB_ID": "201",
                          "CI_JOB_NAME": "test", "CI_JOB_URL": url, "CI_JOB_STATUS": "failed",
                          "CRCR_OIDC_TOKEN": four.token(**gitlab_claims("vendor/gate"))}, "completed")
    assert the_row(four, payload, "completed", "failure")["run_id"] == "53"
    run = wait_for("the check run", lambda: four.check_runs(sha_of(6313)))[0]
    assert run["details_url"] == url
    pressed = relay.press(check_run=run["id"])

    def outcomes():
        return [json.loads(row.value) for row in read_topic(relay.kafka, relay.topic("dispatches"))
                if row.headers["delivery"] == pressed]
    outcome = wait_for("the button's outcome", outcomes, 60)[0]
    assert (outcome["repo"], outcome["outcome"]) == (L4, "skipped") and "no GitHub Actions run" in outcome["error"]
    assert not [one for one in relay.requests() if "/runs/53" in one["path"]]


def test_jenkins_reports_from_its_post_section(downstream, crcr_report):
    four = downstream(L4)
    payload = four.opened(6308)
    environment = {"JENKINS_URL": "https://ci.vendor.example/", "JOB_NAME": "oot/main", "BUILD_TAG": "jenkins-oot-main-3",
                   "JOB_BASE_NAME": "main", "BUILD_URL": "https://ci.vendor.example/job/oot/3/",
                   "CRCR_OIDC_TOKEN": four.token(iss=JENKINS)}
    crcr_report(payload, environment, "in_progress")
    crcr_report(payload, environment, "completed", "--conclusion", "UNSTABLE", "--junit", "results/*.xml", "--run-complete")
    row = the_row(four, payload, "completed", "failure")
    assert (row["workflow_name"], row["job_name"], row["run_id"]) == ("oot/main", "main", "jenkins-oot-main-3")
    run = wait_for("the check run", lambda: [one for one in four.check_runs(sha_of(6308)) if one["status"] == "completed"])[0]
    assert run["details_url"] == environment["BUILD_URL"] and run["conclusion"] == "failure"


# ---- the bridges ------------------------------------------------------------------------------------------
CLAIMS = {"buildkite": {"iss": BUILDKITE, "organization_id": ORGANIZATION, "pipeline_id": BRIDGE},
          "gitlab": {"iss": "https://gitlab.com", "project_id": "1234567", "project_path": "your-group/your-project"},
          "jenkins": {"iss": "https://ci.example/oidc"}}
RUNS = {"buildkite": (bridges.Buildkite.BUILD, "https://buildkite.com/your-org/pytorch/builds/8"),
        "gitlab": ("77", "https://gitlab.com/your-group/your-project/-/jobs/906"), "jenkins": ("jenkins-pytorch-12", "https://ci.example/job/pytorch/12/")}


@pytest.fixture
def bridge(relay, downstream, tmp_path):
    """bridge(site, number, script of the tests) → the site, with the event of a pull request whose commit is there."""
    made = []

    def make(site, number, script):
        two = downstream(L2)
        upstream = tmp_path / "upstream"
        upstream.mkdir()
        for command in (["init", "-q"], ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "x"]):
            subprocess.run(["git", *command], cwd=upstream, check=True)
        sha = subprocess.run(["git", "rev-parse", "HEAD"], cwd=upstream, check=True, capture_output=True, text=True).stdout.strip()
        _, _, delivery = relay.deliver(pull_request(number=number, sha=sha))
        one = site(tmp_path / site.NAME, relay.url("ingest", ""), upstream.as_uri(),
                   lambda claims: two.token(repository=None, **CLAIMS[site.NAME], **claims))
        made.append(one)
        one.tests(f"test $(git -C $1 rev-parse HEAD) = {sha}\nenv >{tmp_path}/loot\nmkdir -p $2/a\n" + script)
        return two, one, two.payload_of(delivery)
    yield make
    for one in made:
        one.close()


def in_all(sites):
    return pytest.mark.parametrize("site, number", [(site, 6320 + at) for at, site in enumerate(sites)],
                                   ids=[site.NAME for site in sites])


@in_all([bridges.Buildkite, bridges.GitLab, bridges.Jenkins])
def test_a_bridge_leads_from_the_dispatch_to_the_row_and_keeps_the_token_from_the_tests(bridge, tmp_path, site, number):
    two, one, payload = bridge(site, number, f"echo '{JUNIT}' >$2/a/r.xml\nexit 1\n")
    closed = {"client_payload": {**payload, "payload": {**payload["payload"], "action": "closed"}}}
    assert one.start(json.dumps(closed)) is None and not one.asked, "nothing to test"
    assert "started " in one.start(json.dumps({"client_payload": payload}))
    results = one.run()
    assert results["begin"] and not results["test"] and "passed" not in results, (results, one.logs)
    row = the_row(two, payload, "completed", "failure")
    run_id, url = RUNS[site.NAME]
    assert (row["job_name"], row["run_id"], row["passed_tests"], row["failed_tests"]) == ("test", run_id, 1, 1)
    assert row["execution_time"] is not None, "begin and end are of one job"
    assert row["workflow_run_url"] == url
    loot = (tmp_path / "loot").read_text()
    assert "pytorch" in loot and not re.search(r"OIDC|ACCESS_TOKEN|trigger-secret|agent-token|eyJ[\w-]+\.eyJ", loot)


@in_all([bridges.Jenkins, bridges.GitLab, bridges.Buildkite])
def test_a_bridge_tests_also_where_the_first_report_fails_and_reports_the_end(bridge, site, number):
    two, one, payload = bridge(site, number + 10, f"echo '<testsuite><testcase name=\"a\"/></testsuite>' >$2/a/r.xml\n")
    one.start(json.dumps({"client_payload": payload}))
    mint = one.mint
    one.mint = lambda claims: mint({**claims, "aud": "elsewhere"}) if not one.logs else mint(claims)
    results = one.run()
    assert results["test"], (results, one.logs)
    assert "HTTP 401" in one.logs["begin"] and "audience" in one.logs["begin"]
    row = the_row(two, payload, "completed", "success")
    assert (row["job_name"], row["passed_tests"]) == ("test", 1)


def test_on_buildkite_a_token_of_the_step_that_tests_counts_for_nothing(downstream):
    two = downstream(L2)
    payload = two.opened(6340)
    for step, status in (("test", 403), ("begin", 200)):
        claims = {"repository": None, **CLAIMS["buildkite"], "step_key": step}
        assert two.report(payload, "in_progress", claims=claims)[0] == status
