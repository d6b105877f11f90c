"""CIs that deploy/downstream has a bridge for, as far as its files use them: how each takes the request of start.yml, which
environment its jobs get, what mints tokens there and for which job, and what goes from one job to the next.

A Site is one vendor's installation. `repository` is its own repository with ci/test-pytorch.sh; `upstream` is what
https://github.com/<upstream>/ gives to git. mint(claims) signs as the CI's issuer does."""
import http.server
import json
import os
import re
import shutil
import subprocess
import threading

import yaml

from lib.actions import FOLDER, Expression, bash, environment_of, fill, load

SECRET = "trigger-secret"
AGENT = """#!/usr/bin/env python3
import json, os, pathlib, shutil, sys, urllib.request
state = pathlib.Path({state!r})
verb = sys.argv[1:]
assert os.environ.get("BUILDKITE_AGENT_ACCESS_TOKEN") == "agent-token", "no agent here"
if verb[:2] == ["meta-data", "get"]:
    sys.stdout.write(json.loads((state / "meta.json").read_text())[verb[2]])
elif verb[:3] == ["oidc", "request-token", "--audience"]:
    print(urllib.request.urlopen(urllib.request.Request({mint!r}, json.dumps(
        {{"aud": verb[3], "step_key": os.environ["BUILDKITE_STEP_KEY"]}}).encode())).read().decode())
elif verb[:2] == ["artifact", "download"]:
    shutil.copytree(state / "artifacts", verb[3], dirs_exist_ok=True)
elif verb[:3] == ["step", "get", "outcome"]:
    print((state / verb[4]).read_text())
else:
    sys.exit("not understood: " + " ".join(verb))
"""


class Site:
    NAME, SECRETS, HOST = "", [], ""  # the folder; what start.yml needs; the host in it that is this Site
    SHELL = "sh"

    def __init__(self, folder, relay_url, upstream, mint):
        self.folder, self.relay_url, self.upstream, self.mint = folder, relay_url, upstream, mint
        self.repository, self.tools, self.asked, self.logs = folder / "repository", folder / "tools", [], {}
        for one in (self.repository / "ci", self.tools):
            one.mkdir(parents=True)
        for file in FOLDER.glob("crcr[-_]*"):
            shutil.copy(file, self.tools)  # installed on the machines that report
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path == "/mint":
                    status, answer = 200, site.mint(body).encode()
                else:
                    status, answer = site.take(self.path, self.headers, body)
                    answer = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def tests(self, script):
        file = self.repository / "ci" / "test-pytorch.sh"
        file.write_text("#!/usr/bin/env bash\n" + script)
        file.chmod(0o755)

    def start(self, event):
        """GitHub's side: start.yml, for this event. None when its job is skipped, else its log."""
        job = load(f"{self.NAME}/start.yml")["jobs"]["start"]
        contexts = {"github": {"event": json.loads(event)}, "secrets": {name: SECRET for name in self.SECRETS}}
        if not Expression(job["if"], contexts).value():
            return None
        [step] = job["steps"]
        home = self.folder / "actions"
        home.mkdir()
        (home / "event.json").write_text(event)
        given = {name: fill(value, contexts).replace(self.HOST, self.url) for name, value in step["env"].items()}
        process = bash(step["run"], home / "step.sh", cwd=home,
                       env={**environment_of(home, "org/a", "start", "1", "1", None), **given})
        text, _ = process.communicate(timeout=60)
        assert process.returncode == 0, text
        return text

    def sh(self, job, script, environment, checkout=True, tools=True):
        """Runs a job's script with what that job has, in a workspace of its own."""
        workspace = self.folder / f"workspace-{job}"
        if not workspace.exists():
            workspace.mkdir()
        if checkout:
            shutil.copytree(self.repository, workspace, dirs_exist_ok=True)
        given = {"PATH": (f"{self.tools}:" if tools else "") + os.environ["PATH"], "HOME": str(self.folder),
                 "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.{self.upstream}.insteadOf",
                 "GIT_CONFIG_VALUE_0": "https://github.com/pytorch/pytorch", **environment}
        for name in ("CRCR_CALLBACK_URL",):
            given[name] = given[name].replace("https://relay.example", self.relay_url)
        done = subprocess.run([self.SHELL, "-e", "-c", script], env=given, cwd=workspace, capture_output=True, text=True, timeout=120)
        self.logs[job] = self.logs.get(job, "") + done.stdout + done.stderr
        return done.returncode == 0, workspace


def keep(workspace, artifacts):
    """What the file of each CI keeps: results/**/*.xml."""
    for file in workspace.glob("results/**/*.xml"):
        target = artifacts / file.relative_to(workspace)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)


class Buildkite(Site):
    NAME, SECRETS, HOST, SHELL = "buildkite", ["BUILDKITE_API_TOKEN"], "https://api.buildkite.com", "bash"
    BUILD = "018e5c1a-7b1f-4a54-9e0a-0a1b2c3d4e60"

    def take(self, path, headers, body):
        assert path == "/v2/organizations/your-org/pipelines/pytorch/builds"
        assert headers["Authorization"] == f"Bearer {SECRET}" and headers["Content-Type"] == "application/json"
        assert len(body["meta_data"]["crcr-payload"]) <= 100_000, "the limit of meta-data"
        self.asked.append(body)
        return 201, {"web_url": "https://buildkite.com/your-org/pytorch/builds/8"}

    def environment(self, document, step, build):
        """What the agent gives to the command of a step."""
        return {**build["env"], **document["env"], **step.get("env", {}), "CI": "true", "BUILDKITE": "true",
                "BUILDKITE_BUILD_ID": self.BUILD, "BUILDKITE_PIPELINE_SLUG": "pytorch", "BUILDKITE_STEP_KEY": step["key"],
                "BUILDKITE_LABEL": step["label"], "BUILDKITE_RETRY_COUNT": "0", "BUILDKITE_BRANCH": build["branch"],
                "BUILDKITE_BUILD_URL": "https://buildkite.com/your-org/pytorch/builds/8",
                "BUILDKITE_AGENT_ACCESS_TOKEN": "agent-token"}

    def run(self):
        build, state = self.asked[-1], self.folder / "state"
        (state / "artifacts").mkdir(parents=True)
        (state / "meta.json").write_text(json.dumps(build["meta_data"]))
        agent = self.tools / "buildkite-agent"
        agent.write_text(AGENT.format(state=str(state), mint=f"{self.url}/mint"))
        agent.chmod(0o755)
        document, failed, results = yaml.safe_load((FOLDER / "buildkite/pipeline.yml").read_text()), False, {}
        for step in document["steps"]:
            if step == "wait" or "wait" in step:
                if failed and not (isinstance(step, dict) and step.get("continue_on_failure")):
                    break
                continue
            environment, plugins = self.environment(document, step, build), step.get("plugins", [])
            # `buildkite-agent pipeline upload` fills in $NAME, and makes $ of $$.
            script = re.sub(r"\$\$|\$\{?\w+\}?", lambda found: "$" if found.group() == "$$" else "", step["command"])
            if plugins:  # a container: its own environment, without the agent
                [docker] = [settings for plugin in plugins for name, settings in plugin.items() if name.startswith("docker#")]
                assert docker["mount-buildkite-agent"] is False
                environment = {"CRCR_CALLBACK_URL": "", **{name: environment[name] for name in docker["environment"]}}
            good, workspace = self.sh(step["key"], script, environment, tools=not plugins)
            if step.get("artifact_paths"):
                assert step["artifact_paths"] == "results/**/*.xml"
                keep(workspace, state / "artifacts")
            results[step["key"]] = good
            (state / step["key"]).write_text("passed" if good else "soft_failed" if step.get("soft_fail") else "hard_failed")
            failed = failed or not (good or step.get("soft_fail"))
        return results


class GitLab(Site):
    NAME, SECRETS, HOST, PROJECT = "gitlab", ["GITLAB_TRIGGER_TOKEN"], "https://gitlab.com", "1234567"

    def take(self, path, headers, body):
        assert path == f"/api/v4/projects/{self.PROJECT}/trigger/pipeline" and headers["Content-Type"] == "application/json"
        assert body["token"] == SECRET and body["ref"] == "main" and "variables" not in body
        self.asked.append(body)
        return 201, {"web_url": "https://gitlab.com/your-group/your-project/-/pipelines/77"}

    def environment(self, document, name, job, payload):
        given = {**document["variables"], "GITLAB_CI": "true", "CI_PIPELINE_ID": "77", "CI_PIPELINE_SOURCE": "trigger",
                 "CI_PROJECT_PATH": "your-group/your-project", "CI_PROJECT_ID": self.PROJECT, "CI_COMMIT_REF_NAME": "main",
                 "CI_COMMIT_REF_PROTECTED": "true", "CI_JOB_NAME": name, "CI_JOB_ID": str(900 + len(name)),
                 "CI_JOB_URL": f"https://gitlab.com/your-group/your-project/-/jobs/{900 + len(name)}",
                 "CI_JOB_STATUS": "running", "TRIGGER_PAYLOAD": str(payload)}
        for key, value in job.get("variables", {}).items():
            given[key] = re.sub(r"\$(\w+)", lambda found: given[found.group(1)], value)
        for key, what in job.get("id_tokens", {}).items():
            given[key] = self.mint({"aud": what["aud"], "ref": "main", "ref_protected": "true", "pipeline_source": "trigger"})
        return given

    def run(self):
        document = yaml.safe_load((FOLDER / "gitlab/gitlab-ci.yml").read_text())
        assert document.pop("workflow") == {"rules": [{"if": '$CI_PIPELINE_SOURCE == "trigger"'}]}
        artifacts, payload, failed, results = self.folder / "artifacts", self.folder / "TRIGGER_PAYLOAD", False, {}
        artifacts.mkdir()
        # GitLab leaves out the token, and adds what the path has.
        payload.write_text(json.dumps({"id": self.PROJECT, **{k: v for k, v in self.asked[-1].items() if k != "token"}}))
        jobs = {name: {**document.get(job.get("extends"), {}), **job} for name, job in document.items()
                if "script" in job}
        for stage in (".pre", "test", ".post"):
            for name, job in jobs.items():
                if job["stage"] != stage or job.get("when", "on_success") != ("on_failure" if failed else "on_success"):
                    continue
                environment = self.environment(document, name, job, payload)
                alone = job.get("variables", {}).get("GIT_STRATEGY") == "none"
                shutil.copytree(artifacts, self.folder / f"workspace-{name}")
                good, workspace = self.sh(name, "\n".join(job["script"]), environment, checkout=not alone, tools=alone)
                if job.get("artifacts"):
                    assert job["artifacts"] == {"when": "always", "paths": ["results/"]}
                    keep(workspace, artifacts)
                results[name] = good
                failed = failed or not (good or job.get("allow_failure"))
        return results


def block(text, head):
    """What stands within the braces after head in a Jenkinsfile."""
    at = text.index(head) + len(head)
    at = text.index("{", at) + 1
    depth, end = 1, at
    while depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return text[at:end - 1]


class Jenkins(Site):
    NAME, SECRETS, HOST = "jenkins", ["JENKINS_TRIGGER_TOKEN"], "https://ci.example"
    JOB_URL = "https://ci.example/job/pytorch/"

    def take(self, path, headers, body):
        assert path == "/generic-webhook-trigger/invoke" and headers["Authorization"] == f"Bearer {SECRET}"
        self.asked.append(body)
        return 200, {"jobs": {"pytorch": {"regexpFilterExpression": "", "triggered": True, "id": 12,
                                          "url": "queue/item/12/"}}, "message": "Triggered jobs."}

    def environment(self, text):
        [[key, path]] = re.findall(r"\[key: '(\w+)', value: '\$\.(\w+)'\]", text)
        value = self.asked[-1][path]
        assert isinstance(value, str), "of a node each leaf would be a variable, named as the payload says"
        assert len(f"{key}={value}") < 131072, "the most that Linux lets a variable have"
        declared = dict(re.findall(r"(\w+) = '([^']*)'", block(text, "    environment ")))
        return {**declared, key: value, "JENKINS_URL": "https://ci.example/", "JOB_NAME": "pytorch", "JOB_BASE_NAME": "pytorch",
                "JOB_URL": self.JOB_URL, "BUILD_NUMBER": "12", "BUILD_TAG": "jenkins-pytorch-12", "BUILD_URL": f"{self.JOB_URL}12/"}

    def node(self, name, text, environment, results):
        """Runs what a node is given: each sh, with the token only within withCredentials."""
        good = True
        for found in re.finditer(r"sh '''(.*?)'''", text, re.S):
            before = text[:found.start()]
            inside = "withCredentials(" in before and before.count("{") > before.count("}")
            given = {**environment, "STAGE_NAME": name}
            if inside:
                assert "credentialsId: 'crcr-oidc', variable: 'CRCR_OIDC_TOKEN'" in before
                given["CRCR_OIDC_TOKEN"] = self.mint({"sub": self.JOB_URL, "build_number": 12})
            if "withEnv([" in before:
                given["CRCR_CONCLUSION"] = "SUCCESS" if all(results.values()) else "FAILURE"
            # sh runs with `set -xe`.
            good = self.sh(name, found.group(1), given, checkout=not inside, tools=inside)[0] and good
        return good

    def run(self):
        text = (FOLDER / "jenkins/Jenkinsfile").read_text()
        environment, results, stash = self.environment(text), {}, self.folder / "stash"
        stash.mkdir()
        stages = block(text, "    stages ")
        for name in re.findall(r"stage\('(\w+)'\)", stages):
            stage = block(stages, f"stage('{name}')")
            label = re.search(r"agent \{ label '(\w+)' \}", stage)[1]
            assert (label == "crcr") == ("withCredentials" in stage)
            good = self.node(name, block(stage, "steps "), environment, results)
            if "stash name: 'results', includes: 'results/**/*.xml'" in stage:
                keep(self.folder / f"workspace-{name}", stash)
            results[name] = good or "catchError(buildResult: 'SUCCESS'" in stage
            if not results[name]:
                break
        after = block(text[text.index(stages) + len(stages):], "post ")
        assert "node('crcr')" in after and "unstash 'results'" in after
        shutil.copytree(stash, self.folder / "workspace-post")
        results["post"] = self.node("post", after, environment, results)
        return results
