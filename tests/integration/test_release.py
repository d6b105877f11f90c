"""A release pins its images by digest: deploy/pin-images, with a stand-in for `docker buildx` that answers as a registry would,
and the workflow that runs it."""
import hashlib
import os
import re
import shutil
import subprocess

import pytest
import yaml

from lib.manifests import pod_template, render, workloads
from lib.processes import ROOT

DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
ANSWERS = """#!/usr/bin/env python3
import hashlib, json, os, sys
assert sys.argv[1:6] == ["buildx", "imagetools", "inspect", "--format", "{{json .Manifest}}"], sys.argv
image = sys.argv[6]
with open(os.environ["ASKED"], "a") as file:
    file.write(image + "\\n")
if image == os.environ.get("UNKNOWN"):
    sys.exit(f"ERROR: {image}: not found")
digest = os.environ.get("DIGEST") or "sha256:" + hashlib.sha256(image.encode()).hexdigest()
print(json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "digest": digest, "size": 9226,
                  "manifests": [{"digest": "sha256:" + "0" * 64}]}))
"""


def digest_of(image):
    return "sha256:" + hashlib.sha256(image.encode()).hexdigest()


class Tree:
    def __init__(self, folder):
        self.folder, self.asked = folder / "tree", folder / "asked"
        shutil.copytree(ROOT / "deploy", self.folder / "deploy", ignore=shutil.ignore_patterns("secrets", "hud"))
        shutil.copy(ROOT / "docker-compose.yml", self.folder)
        (folder / "bin").mkdir()
        (folder / "bin/docker").write_text(ANSWERS)
        (folder / "bin/docker").chmod(0o755)
        self.path = f"{folder / 'bin'}:{os.environ['PATH']}"

    def pin(self, *options, code=0, **environment):
        done = subprocess.run([self.folder / "deploy/pin-images", *options], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PATH": self.path, "ASKED": str(self.asked), **environment})
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def texts(self):
        return {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def images(self):
        """All that a release runs or builds upon, but for the relay's own."""
        yield re.search(r"^ARG BASE=(\S+)$", (self.folder / "deploy/Dockerfile").read_text(), re.MULTILINE)[1]
        for file in ("docker-compose.yml", "deploy/compose/tls/compose.yml"):
            for service in yaml.safe_load((self.folder / file).read_text())["services"].values():
                yield re.sub(r"^\$\{\w+:-(.*)\}$", r"\1", service.get("image", "crcr"))
        for overlay in ("full", "external"):
            for one in workloads(render(self.folder / "deploy/k8s/overlays" / overlay)):
                yield from (container["image"] for container in pod_template(one)["spec"]["containers"])

    def of_others(self):
        return {image for image in self.images() if not re.search(r"^(registry\.example\.org/)?crcr(-demo|-keep)?(:|$)", image)}


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_each_image_of_others_gets_the_digest_that_its_registry_gives(tree):
    tags = tree.of_others()
    assert {image.split(":")[0] for image in tags} == {"debian", "apache/kafka", "redis", "ghcr.io/kafbat/kafka-ui", "prom/prometheus", "grafana/grafana"}
    said = tree.pin()
    pinned = {f"{image}@{digest_of(image)}" for image in tags}
    assert tree.of_others() == pinned == set(said.split()) and all(DIGEST.search(image) for image in pinned)
    assert set(tree.asked.read_text().split()) == tags
    tree.pin(DIGEST="sha256:" + "a" * 64)  # the next release
    assert tree.of_others() == {f"{image}@sha256:{'a' * 64}" for image in tags}


def test_no_file_is_changed_where_one_image_has_no_digest(tree):
    before = tree.texts()
    assert "redis:8.0" in tree.pin(code=1, UNKNOWN="redis:8.0")
    assert "no registry gives the digest of" in tree.pin(code=1, DIGEST="null")
    assert tree.texts() == before


def test_the_relays_own_image_is_pinned_in_the_overlays(tree):
    image = "ghcr.io/org/crcr:v1.2"
    for _ in "once", "again":
        tree.pin("--own", image)
        own = {one for one in tree.images() if "/crcr" in one}
        assert own == {f"ghcr.io/org/crcr@{digest_of(image)}"}
    assert tree.pin("--own", "ghcr.io/org/crcr", code=2).startswith("usage:")
    assert tree.pin("--nonsense", code=2) == tree.pin("--help")


def test_the_workflow_pins_before_it_builds_and_releases_what_was_pinned():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    scripts = {name: "\n".join(step["run"] for step in job.get("steps", []) if "run" in step) for name, job in jobs.items()}
    assert "deploy/pin-images\n" in scripts["pin"] and 'test "$GITHUB_REF_NAME" = "v$(deploy/version)"' in scripts["pin"]
    order = ["git apply --allow-empty pinned.patch", "deploy/release --out release --base "]
    assert [scripts["build"].index(word) for word in order] == sorted(scripts["build"].index(word) for word in order)
    order = ["sha256sum --check", "skopeo copy ", "docker buildx imagetools create ", "git apply --allow-empty built/pinned/pinned.patch",
             "deploy/pin-images --own ", "git archive ", "sha256sum -- *", "deploy/release --notes", "gh release create ",
             "/git/refs/tags/$major"]
    assert [scripts["publish"].index(word) for word in order] == sorted(scripts["publish"].index(word) for word in order)
    assert [jobs[name].get("needs") for name in ("tests", "pin", "build", "publish")] == [None, "tests", "pin", "build"]
    for script in scripts.values():
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
