"""Both overlays, whole and then spoilt in one place each, given to KubernetesTakes. usage: takes.py PROGRAM"""
import copy
import subprocess
import sys

import yaml

from lib.manifests import K8S, of_kind, pod_template, render


def container(one):
    return pod_template(one)["spec"]["containers"][0]


# What is done to a Deployment, and what must be said to it.
SPOILT = (
    (lambda one: one["spec"].update(replcas=2), 'unknown field "spec.replcas"'),
    (lambda one: one["spec"]["selector"]["matchLabels"].update(more="no"), "`selector` does not match template `labels`"),
    (lambda one: container(one)["securityContext"].update(allowPrivilegeEscalation=True), "allowPrivilegeEscalation != false"),
    (lambda one: container(one)["securityContext"].pop("capabilities"), "unrestricted capabilities"),
    (lambda one: pod_template(one)["spec"].pop("securityContext"), "runAsNonRoot != true"),
    (lambda one: container(one)["livenessProbe"]["httpGet"].update(port="no_port"), "livenessProbe.httpGet.port"),
    (lambda one: container(one)["resources"]["requests"].update(memory="64Gi"), "must be less than or equal to memory limit"),
)


def takes(program, objects):
    done = subprocess.run([program], input=yaml.safe_dump_all(objects), capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode == 0, done.stdout.strip()


def main(program):
    failed = 0
    for overlay in ("full", "external"):
        objects = render(K8S / "overlays" / overlay)
        good, said = takes(program, objects)
        failed += not good
        print(f"{overlay}: {said}")
    for number, (spoil, expected) in enumerate(SPOILT):
        one = copy.deepcopy(of_kind(objects, "Deployment")[0])
        spoil(one)
        good, said = takes(program, [one])
        if good or expected not in said:
            failed += 1
            print(f"spoilt {number} was to be refused with '{expected}': {said}")
    print(f"{len(SPOILT)} spoilt ones offered, {failed} of all not as they should be")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
