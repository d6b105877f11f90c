"""deploy/k8s as a cluster would get it: rendered, and each container of ours with the environment it will have."""
import json
import pathlib
import shutil
import subprocess

import jsonschema
import yaml

from lib.processes import ROOT

K8S = ROOT / "deploy/k8s"
PROGRAMS = ("crcr-ingest", "crcr-dispatcher", "crcr-reporter", "crcrctl")


def renderer():
    """kubectl or kustomize of this machine, else the one that deploy/local/fetch-kustomize keeps."""
    if shutil.which("kustomize"):
        return ["kustomize", "build"]
    if shutil.which("kubectl"):
        return ["kubectl", "kustomize"]
    done = subprocess.run([ROOT / "deploy/local/fetch-kustomize"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [done.stdout.strip(), "build"]


def render(folder):
    done = subprocess.run([*renderer(), str(folder)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def of_kind(objects, *kinds):
    return [one for one in objects if one["kind"] in kinds]


def label(thing):
    return f"{thing['kind']}/{thing['metadata']['name']}"


def fit_their_schemas(objects):
    """Each object by the schema of its kind (tests/k8s/schemas); Strimzi's are read by tests/k8s/strimzi."""
    schemas = [json.loads(path.read_text()) for path in sorted((ROOT / "tests/k8s/schemas").glob("*.json"))]
    for one in objects:
        kind = f"{one['apiVersion']} {one['kind']}"
        if one["apiVersion"].startswith("kafka.strimzi.io/"):
            continue
        schema = next((s for s in schemas if kind in s["kinds"]), None)
        assert schema, f"no schema for {kind}: see tests/k8s/make-schemas"
        schema = {"$ref": f"#/$defs/{schema['kinds'][kind]}", "$defs": schema["$defs"]}
        faults = [f"{label(one)} {'/'.join(map(str, e.absolute_path))}: {e.message[:300]}"
                  for e in jsonschema.Draft202012Validator(schema).iter_errors(one)]
        assert not faults, "\n".join(faults)


def pod_template(workload):
    spec = workload["spec"]
    return spec["jobTemplate"]["spec"]["template"] if workload["kind"] == "CronJob" else spec["template"]


def workloads(objects):
    return of_kind(objects, "Deployment", "StatefulSet", "Job", "CronJob")


class Container:
    """One container of ours: its program, arguments, environment and mounted files."""

    def __init__(self, workload, objects):
        self.label = label(workload)
        self.template = pod_template(workload)
        self.pod = self.template["spec"]
        self.spec = self.pod["containers"][0]
        self.program, *self.arguments = self.spec["command"]
        self.own = {}      # what stands in the manifest of this container
        self.shared = {}   # what the ConfigMap gives it
        maps = {one["metadata"]["name"]: one.get("data", {}) for one in of_kind(objects, "ConfigMap")}
        for source in self.spec.get("envFrom", []):
            self.shared |= maps[source["configMapRef"]["name"]]
        for one in self.spec.get("env", []):
            self.own[one["name"]] = one["value"] if "value" in one else self._field(one["valueFrom"])

    def _field(self, source):
        path = source["fieldRef"]["fieldPath"]
        assert path.startswith("metadata.labels['"), path
        return self.template["metadata"]["labels"][path.split("'")[1]]

    @property
    def environment(self):
        return {**self.shared, **self.own}

    def ports(self):
        return {one["name"]: one["containerPort"] for one in self.spec.get("ports", [])}

    def files(self):
        """Path in the container → (secret, key); key None: the secret is mounted whole."""
        found = {}
        volumes = {one["name"]: one for one in self.pod.get("volumes", [])}
        for mount in self.spec.get("volumeMounts", []):
            volume = volumes[mount["name"]]
            projected = [one["secret"] for one in volume.get("projected", {}).get("sources", [])]
            for secret in [volume["secret"]] if "secret" in volume else projected:
                name = secret.get("secretName") or secret["name"]
                for item in secret.get("items", [{"path": "", "key": None}]):
                    found[str(pathlib.PurePosixPath(mount["mountPath"], item["path"]))] = (name, item["key"])
        return found

    def file(self, path):
        """Where the file that the environment names comes from, or None."""
        files = self.files()
        whole = files.get(str(pathlib.PurePosixPath(path).parent))
        if path in files:
            return files[path]
        return (whole[0], pathlib.PurePosixPath(path).name) if whole and whole[1] is None else None


def containers(objects):
    return [Container(one, objects) for one in workloads(objects)
            if pod_template(one)["spec"]["containers"][0]["command"][0] in PROGRAMS]
