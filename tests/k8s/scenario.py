"""What happens to the relay on the cluster, and what must hold: see cluster."""
import copy
import json
import os
import pathlib
import time
import traceback
import types

import node
import yaml
from checker import Checker
from history import Topic
from node import GATEWAY
from world import Case

from lib.kafka import Kafka
from lib.manifests import K8S, pod_template, render, workloads
from lib.processes import ROOT, wait_for
from lib.redis_server import RedisServer, set_user
from lib.relay import SECRET

TIERS = ("l1", "l2", "l3", "l4")
SENDERS = [f"deployment/crcr-dispatcher-{tier}" for tier in TIERS]
ALL = ["deployment/crcr-ingest", "deployment/crcr-dispatcher-router", *SENDERS, "deployment/crcr-reporter",
       "deployment/crcr-reporter-web"]
CRDS = ("kafka.strimzi.io", "keda.sh")  # whose schemas this API server does not have
# What a pod has of its own; the rest of the tests' configuration goes into the ConfigMap.
NOT_SHARED = ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "GITHUB_APP_SECRET", "GITHUB_APP_PRIVATE_KEY_FILE",
              "CRCR_CALLBACK_TOKEN_KEY", "HUD_BOT_KEY", "REDIS_LOGIN", "CRCR_LISTEN", "CRCR_HUD_LISTEN", "CRCR_ADMIN_LISTEN")
KUSTOMIZATION = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: crcr
resources: [{base}]
images: [{{ name: crcr, newTag: "{tag}" }}]
configMapGenerator: [{{ name: crcr, behavior: merge, envs: [crcr.env] }}]
patches: # so many pods would not fit on one small node; the limits stay
  - target: {{ kind: Deployment }}
    patch: |-
      - {{ op: replace, path: /spec/template/spec/containers/0/resources/requests/cpu, value: 10m }}
"""
NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata:
  name: crcr
  labels: { pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/warn: restricted }
"""


class InPods(Case):
    """A case of tests/faults whose daemons are the cluster's. GitHub, Kafka and Redis are beside it, on the bridge."""

    def __init__(self, work, seed):
        kafka, redis = Kafka(work / "kafka", also_on=GATEWAY).start(), RedisServer(work / "redis", also_on=GATEWAY).start()
        self.servers = (redis, kafka)
        world = types.SimpleNamespace(folder=work, seed=seed, kafka=kafka, redis=redis, long=False,
                                      say=lambda text: print(f"        {text}", flush=True))
        super().__init__(world, "relay", senders_killed=True)
        self.relay.hosts["github"] = GATEWAY

    def settings(self):
        values = {**self.relay.environment(), "KAFKA_BROKERS": self.kafka.linked, "CRCR_ALLOW_HTTP": "1",
                  "REDIS_ENDPOINT": f"{GATEWAY}:{self.redis.port}"}
        return {name: value for name, value in values.items() if name not in NOT_SHARED}

    def start_outside(self):
        """The simulated GitHub, and who watches the topics; the daemons are pods."""
        self.relay.start_github()
        self.react(self.reaction)
        self.topics = {name: Topic(self.kafka.brokers, self.relay.topic(name))
                       for name in ("events", "callbacks", "dispatches", "results", "dlq")}
        self.checker = Checker(self.downstreams, self.sent_file, self.github_file, self.topics, **self.allowed)

    def close(self):
        problems = super().close()
        for server in self.servers:
            server.stop()
        return problems


class Scenario:
    def __init__(self, work, given, chance):
        self.work, self.given, self.chance = work, given, chance
        self.passed = self.failed = 0
        self.node = node.Node(work, os.environ["CRCR_KUBERNETES"], work.name)
        self.case = self.load = None

    def run(self):
        steps = [self.is_accepted]
        if not self.given.api:
            steps += [self.comes_up, self.goes_through, self.is_looked_into, self.scales_up, self.loses_pods, self.is_killed, self.rolls,
                      self.scales_down, self.redelivers, self.keeps_a_copy, self.keeps_one, self.holds]
        for step in steps:
            began = time.monotonic()
            try:
                said = step()
                self.passed += 1
                print(f"ok      {step.__doc__} ({time.monotonic() - began:.0f} s{'; ' + said if said else ''})", flush=True)
            except Exception as error:
                self.failed += 1
                print(f"FAILED  {step.__doc__}", flush=True)
                print("\n".join(f"        {line}" for line in str(error).splitlines()[-25:]), flush=True)
                if not isinstance(error, AssertionError):
                    traceback.print_exc()
                if step in (self.is_accepted, self.comes_up, self.goes_through):
                    return

    def close(self):
        for part in ([self.load] if self.load else []):
            part.stop()
        if self.case:
            self.case.close()

    # ---- helpers ------------------------------------------------------------------------------------------------
    def k(self, *arguments, **options):
        return self.node.kubectl("-n", "crcr", *arguments, **options)

    def rolled_out(self, *names):
        for name in names or ALL:
            self.k("rollout", "status", name, "--timeout=300s")

    def pods(self, selector="app.kubernetes.io/part-of=crcr"):
        """Those of the Deployments that are not on their way out."""
        return [pod for pod in self.node.get("pods", "-l", selector)["items"]
                if "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] == "Running"
                and pod["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"]

    def overlay(self, tag):
        folder = self.work / "overlay"
        folder.mkdir(exist_ok=True)
        (folder / "crcr.env").write_text("".join(f"{k}={v}\n" for k, v in self.case.settings().items()))
        (folder / "kustomization.yaml").write_text(KUSTOMIZATION.format(
            base=os.path.relpath(ROOT / "deploy/k8s/base", folder), tag=tag))
        return folder

    def secrets(self):
        folder = self.work / "secrets"
        node.run(ROOT / "deploy/compose/make-secrets", "--demo", "--dir", folder)
        for name, text in (("webhook_secret", SECRET), ("app_private_key", self.case.relay.key.read_text())):
            (folder / name).unlink()
            (folder / name).write_text(text)
        for login in folder.glob("redis_login_*"):
            user, password = login.read_text().strip().split(":")
            prefix = self.case.relay.prefix.removesuffix(".") + ":"  # as deploy/k8s/README.md says of a prefix of one's own
            set_user(self.case.redis.client(), user, prefix=prefix)
            self.case.redis.client().execute_command("ACL", "SETUSER", user, f">{password}")
        self.k("create", "secret", "generic", "crcr", f"--from-file={folder}")

    def apply(self, tag):
        done = self.node.kubectl("apply", "-k", self.overlay(tag), check=False)
        assert "rror" not in done and "Warning" not in done, done

    def refused(self, since):
        """Webhooks that were not taken since then."""
        return {delivery for delivery, _, _ in self.load.not_taken[since:]}

    def undisturbed(self, change):
        """Nobody who sends webhooks may notice the change."""
        before, sent = len(self.load.not_taken), self.load.counter
        said = change()
        refused = self.refused(before)
        assert not refused, "\n".join([f"{len(refused)} webhooks not taken:"] + [
            f"{line['at_ms']} {line['status']} {line['why']} after {line['ms']} ms"
            for line in map(json.loads, self.case.sent_file.read_text(encoding="utf-8").splitlines())
            if line["delivery"] in refused])
        return f"{self.load.counter - sent} webhooks meanwhile, all taken" + (f"; {said}" if said else "")

    def offer(self, objects):
        """What the API server says to them; nothing is kept."""
        return self.node.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", input=yaml.safe_dump_all(objects),
                                 check=False)

    # ---- what happens -------------------------------------------------------------------------------------------
    def is_accepted(self):
        """the API server takes both overlays without a warning, and their pods into a `restricted` namespace"""
        self.node.start_api()
        self.node.kubectl("create", "-f", "-", input=NAMESPACE)
        self.node.kubectl("-n", "crcr", "create", "serviceaccount", "default")
        said = {}
        for overlay in ("full", "external"):
            objects = [one for one in render(K8S / "overlays" / overlay) if one["apiVersion"].split("/")[0] not in CRDS]
            pods = [self.pod(one) for one in workloads(objects)]
            answer = self.offer(objects + pods)
            refused = [line for line in answer.splitlines() if not line.endswith("serverside-applied (server dry run)")]
            assert not refused, "\n".join(refused)
            said[overlay] = f"{len(objects)} objects and {len(pods)} pods of {overlay}"
            pods[0]["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
            assert "violates PodSecurity" in self.offer(pods[:1]), "and it would refuse one that is not contained"
        return ", ".join(said.values())

    @staticmethod
    def pod(workload):
        """One of its pods, as the controllers would make it, but for the disk of a StatefulSet."""
        template = copy.deepcopy(pod_template(workload))
        claims = [one["metadata"]["name"] for one in workload["spec"].get("volumeClaimTemplates", [])]
        template["spec"].setdefault("volumes", []).extend({"name": name, "emptyDir": {}} for name in claims)
        metadata = {**template["metadata"], "name": workload["metadata"]["name"], "namespace": "crcr"}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}

    def comes_up(self):
        """the node, Kafka, Redis; base applied to the real API server: no warning, all Deployments available"""
        self.node.start()
        self.case = InPods(self.work, self.given.seed)
        self.node.bring(["docker.io/library/crcr:1", "docker.io/library/crcr:2"])
        self.secrets()
        # The simulator must say where it is called back before it starts, the pods may find it late.
        self.apply("1")
        service = self.node.get("service", "crcr-ingest")["spec"]
        self.case.relay.hosts["ingest"], self.case.relay.ports["ingest"] = service["clusterIP"], service["ports"][0]["port"]
        self.case.start_outside()
        try:
            self.rolled_out()
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.state()}") from None
        wait_for("the autoscaler to want two ingests", lambda: len(
            self.pods("app.kubernetes.io/component=ingest")) == 2, 120, 1)
        version = self.node.kubectl("version", check=False).splitlines()[-1].strip()
        return f"{version}, {len(self.pods())} pods"

    def state(self):
        events = self.k("get", "events", "--sort-by=.lastTimestamp", check=False).splitlines()[-12:]
        return "\n".join([self.k("get", "pods", "-o", "wide", check=False), *events,
                          self.k("logs", "-l", "app.kubernetes.io/part-of=crcr", "--tail=3", "--prefix", check=False)[-3000:]])

    def goes_through(self):
        """webhooks through the Service reach all 12 downstreams"""
        self.load = self.case.load(rate=self.given.rate)
        def through():
            self.case.checker.look()
            return len(self.case.checker.dispatches) >= 12 * 20
        wait_for("240 dispatches", through, 120, 1)

    def is_looked_into(self):
        """the runbook's commands by kubectl exec: lag, topics check, trace of a delivery, /readyz"""
        def inside(*command):
            return self.k("exec", "sts/crcrctl", "--", *command)
        assert {self.case.relay.group(f"crcr-l{n}") for n in (1, 2, 3, 4)} <= set(inside("crcrctl", "lag").split())
        inside("crcrctl", "topics", "check")
        delivery = next(iter(self.case.checker.dispatches))[0]
        trace = inside("crcrctl", "trace", delivery)
        assert delivery in trace and trace.count("  dispatched  ") >= 12, trace
        assert self.k("exec", "deploy/crcr-dispatcher-router", "--", "curl", "-s", "127.0.0.1:9102/readyz").strip() == '{"ok":true}'

    def scales_up(self):
        """kubectl scale: each tier from 1 to 4 senders, and each has sent"""
        def change():
            self.k("scale", "--replicas=4", *SENDERS)
            self.rolled_out(*SENDERS)
            idle = wait_for("every sender to have sent", lambda: not self.idle() or None, 180, 2)
            assert idle is True
            return f"{len(self.pods())} pods"
        return self.undisturbed(change)

    def idle(self):
        """Senders that sent nothing yet, by their own logs."""
        return [pod["metadata"]["name"] for tier in TIERS for pod in self.pods(f"app.kubernetes.io/component={tier}")
                if '"event":"dispatch_sent"' not in self.k("logs", pod["metadata"]["name"], check=False)]

    def loses_pods(self):
        """kubectl delete pod, of any Deployment, one after the other"""
        def change():
            for _ in range(self.given.deletes):
                pod = self.chance.choice(self.pods())["metadata"]["name"]
                self.k("delete", "pod", pod, "--timeout=90s")
                self.rolled_out()
            return f"{self.given.deletes} deleted"
        return self.undisturbed(change)

    def is_killed(self):
        """containers killed by SIGKILL: the kubelet starts them again"""
        for _ in range(self.given.kills):
            pod = self.chance.choice(self.pods())
            name, status = pod["metadata"]["name"], pod["status"]["containerStatuses"][0]
            self.node.ctr("tasks", "kill", "-s", "SIGKILL", status["containerID"].split("//")[1])
            wait_for(f"{name} to be ready again", lambda name=name, before=status["restartCount"]: self.again(name, before),
                     180, 0.5)
        return f"{self.given.kills} killed"

    def again(self, name, before):
        status = self.node.get("pod", name)["status"]["containerStatuses"][0]
        return status["restartCount"] > before and status["ready"]

    def rolls(self):
        """a rolling update of everything to another image"""
        def change():
            self.apply("2")
            self.rolled_out()
            images = {pod["spec"]["containers"][0]["image"] for pod in self.pods()}
            assert images == {"crcr:2"}, images
        return self.undisturbed(change)

    def scales_down(self):
        """kubectl scale: each tier back to 1"""
        def change():
            self.k("scale", "--replicas=1", *SENDERS)
            wait_for("three of four senders to go", lambda: all(
                len(self.node.get("pods", "-l", f"app.kubernetes.io/component={tier}")["items"]) == 1 for tier in TIERS), 180, 1)
        return self.undisturbed(change)

    def redelivers(self):
        """the CronJob's Job runs: what GitHub could not hand over is asked for"""
        self.k("create", "job", "by-hand", "--from=cronjob/crcr-redeliver")
        self.k("wait", "--for=condition=Complete", "job/by-hand", "--timeout=180s")
        return self.k("logs", "job/by-hand").strip().splitlines()[-1]

    def keeps_a_copy(self):
        """the CronJob's Job runs: the topic allowlist is saved in its volume, and restored to an empty topic alone"""
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "copies"},
                  "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": str(self.copies())},
                           "claimRef": {"namespace": "crcr", "name": "crcr-allowlist-copies"}}}
        self.node.kubectl("apply", "-f", "-", input=json.dumps(volume))
        self.k("create", "job", "copy-by-hand", "--from=cronjob/crcr-keep-allowlist")
        self.k("wait", "--for=condition=Complete", "job/copy-by-hand", "--timeout=180s")
        copy, = self.copies().iterdir()
        assert b'"key":"allowlist"' in copy.read_bytes()
        said = self.k("exec", "-i", "sts/crcrctl", "--", "crcrctl", "allowlist", "restore", "-", input=copy.read_text(), check=False)
        assert "not empty" in said, said
        return self.k("logs", "job/copy-by-hand").strip().splitlines()[-1]

    def copies(self):
        """The volume: any user of the pod may write there."""
        folder = self.work / "copies"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        return folder

    def keeps_one(self):
        """the disruption budget: of two routers one may be evicted, the second not before the first is replaced"""
        routers = [pod["metadata"]["name"] for pod in self.pods("app.kubernetes.io/component=router")]
        assert len(routers) == 2, routers
        first, second = (self.evict(name) for name in routers)
        assert "429" in second or "disruption budget" in second, second
        assert "disruption budget" not in first, first
        self.rolled_out()

    def evict(self, name):
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "crcr"}}
        return self.node.kubectl("create", "--raw", f"/api/v1/namespaces/crcr/pods/{name}/eviction", "-f", "-",
                                 input=json.dumps(body), check=False)

    def holds(self):
        """the invariant: nothing lost, nothing twice that was known, in order"""
        self.load.stop()
        checker = self.case.wait_done(300)
        found = checker.verdict(self.case.jobs_in_redis(), self.case.tasks())
        assert not found.problems(), "\n".join(found.problems())
        return (f"{checker.counts['sent']} sent, {len(checker.acknowledged)} acknowledged, {len(checker.stored)} stored, "
                f"{len(checker.dispatches)} dispatched, {len(checker.unknown())} unknown, "
                f"{sum(checker.duplicates().values())} duplicated, {len(checker.callbacks)} jobs called back")
