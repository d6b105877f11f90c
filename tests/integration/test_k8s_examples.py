"""deploy/k8s/examples: a repository of one's own that pins a release, and Argo CD's Application for it."""
import re
import shutil
import subprocess

import yaml

from lib.manifests import K8S, containers, fit_their_schemas, label, of_kind, render
from lib.processes import ROOT


def test_the_pinned_example_is_the_overlay_of_that_tag_with_its_own_image_and_settings(tmp_path):
    """By git, as from GitHub: kustomize fetches the tag."""
    far, near = tmp_path / "far", tmp_path / "near"
    shutil.copytree(K8S, far / "deploy/k8s")
    tag = "v" + subprocess.run([ROOT / "deploy/version"], capture_output=True, text=True, check=True).stdout.strip()
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "A release"],
                  ["tag", tag]):
        subprocess.run(["git", "-C", far, *words], check=True, timeout=60)
    shutil.copytree(K8S / "examples/pinned", near)
    text = (near / "kustomization.yaml").read_text()
    assert text.count("https://github.com/YOUR-ORG/crcr//") == 1 and f"?ref={tag}\n" in text
    (near / "kustomization.yaml").write_text(text.replace("https://github.com/YOUR-ORG/crcr//", f"git::file://{far}//"))
    objects = render(near)
    fit_their_schemas(objects)
    ours = containers(objects)
    assert {one.spec["image"] for one in ours} == {f"ghcr.io/YOUR-ORG/crcr:{tag[1:]}"}
    assert {one.environment["GITHUB_APP_ID"] for one in ours if "GITHUB_APP_ID" in one.environment} == {"12345"}
    [ingress] = of_kind(objects, "Ingress")
    assert ingress["spec"]["rules"][0]["host"] == ingress["spec"]["tls"][0]["hosts"][0] == "crcr.example.com"
    hashed = re.compile(r"^(ConfigMap/crcr)-\w+$")
    assert sorted(hashed.sub(r"\1", label(one)) for one in objects) == sorted(hashed.sub(r"\1", label(one)) for one in render(K8S / "overlays/full"))


def test_the_application_of_argo_cd_fits_its_schema_and_takes_no_kafka_away():
    [application] = yaml.safe_load_all((K8S / "examples/argocd.yaml").read_text())
    fit_their_schemas([application])
    assert application["spec"]["syncPolicy"]["automated"]["prune"] is False
    assert application["spec"]["destination"]["namespace"] == "crcr"
    assert not any("replicas" in one["spec"] for one in of_kind(render(K8S / "overlays/full"), "Deployment")
                   if re.search(r"ingest|-l\d$", one["metadata"]["name"])), "it would fight those who scale"
