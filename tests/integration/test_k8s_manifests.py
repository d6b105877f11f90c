"""deploy/k8s: what it renders to is what Kubernetes takes, and what our programs, topics and secrets are called."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import textwrap

import pytest
import yaml

from lib import memory
from lib.manifests import (K8S, Container, containers, fit_their_schemas, label, of_kind, pod_template, render, workloads)
from lib.ports import free_port
from lib.processes import BIN, ROOT, Process, wait_for

OVERLAYS = ("full", "external")
TIERS = ("l1", "l2", "l3", "l4")
DRAIN_S = 25  # README of each daemon: SIGTERM … exit 0 within 25 s


@pytest.fixture(scope="module")
def rendered():
    return {name: render(K8S / "overlays" / name) for name in OVERLAYS}


@pytest.fixture(params=OVERLAYS)
def objects(request, rendered):
    return rendered[request.param]


@pytest.fixture(scope="module")
def secrets(tmp_path_factory):
    """The files that the README makes the secret `crcr` of."""
    folder = tmp_path_factory.mktemp("secrets") / "made"
    subprocess.run([ROOT / "deploy/compose/make-secrets", "--demo", "--dir", folder], check=True,
                   capture_output=True, timeout=60)
    return folder


@pytest.fixture(scope="module")
def kafka_secret(tmp_path_factory):
    """What a Kafka's secret may hold, in the form in which librdkafka reads it: certificates, a key, a user."""
    folder = tmp_path_factory.mktemp("kafka")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=crcr", "-days", "2",
                    "-keyout", folder / "user.key", "-out", folder / "user.crt"], check=True, capture_output=True, timeout=60)
    (folder / "ca.crt").write_text((folder / "user.crt").read_text())
    (folder / "username").write_text("crcr-ingest")
    (folder / "password").write_text("a password")
    return folder


def environment_with(more):
    """Ours without what the test run itself is configured with, and what a container adds."""
    return {k: v for k, v in os.environ.items() if not re.match("(CRCR|GITHUB|KAFKA|REDIS|HUD)_", k)} | more


def settings():
    """Name → who reads it, as the binaries' own table says."""
    table = subprocess.run([BIN / "crcrctl", "config", "--markdown"], capture_output=True, text=True, timeout=60,
                           check=True).stdout
    rows = re.findall(r"^\| `([A-Z_*]+)` \| ([\w, ]+) \|", table, re.MULTILINE)
    assert len(rows) > 30, table
    return {name: {"crcrctl" if who == "crcrctl" else f"crcr-{who}" for who in readers.split(", ")}
            for name, readers in rows}


def reader_of(table, name):
    """Who reads NAME, or NAME_FILE; nobody: the empty set."""
    base = name if name in table else name.removesuffix("_FILE")
    return table["CRCR_KAFKA_*"] if base.startswith("CRCR_KAFKA_") else table.get(base, set())


def roles_of(program):
    text = subprocess.run([BIN / program, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    return set(re.findall(r"^  (\w+) +\S", text.split("consumer group:")[1].split("The configuration")[0], re.MULTILINE))


def roles_run(container):
    if "--roles" in container.arguments:
        return container.arguments[container.arguments.index("--roles") + 1].split(",")
    return container.environment["CRCR_ROLES"].split(",") if "CRCR_ROLES" in container.environment else []


def bytes_of(text):
    number, unit = re.fullmatch(r"(\d+)(\w*)", text).groups()
    return int(number) * {"Mi": 1 << 20, "MiB": 1 << 20, "Gi": 1 << 30}[unit]


def matches(selector, template):
    labels = template["metadata"]["labels"]
    assert selector.keys() == {"matchLabels"}
    return all(labels.get(key) == value for key, value in selector["matchLabels"].items())


# ---- what Kubernetes says to it -------------------------------------------------------------------------------------

def test_every_object_fits_the_schema_of_its_kind(objects):
    fit_their_schemas(objects)


def test_the_pod_monitor_scrapes_each_daemon_under_the_job_of_the_alerts(tmp_path, rendered):
    component = os.path.relpath(K8S / "components/podmonitor", tmp_path)
    (tmp_path / "kustomization.yaml").write_text(
        f"resources: [{os.path.relpath(K8S / 'overlays/full', tmp_path)}]\ncomponents: [{component}]\n")
    objects = render(tmp_path)
    [monitor] = of_kind(objects, "PodMonitor")
    fit_their_schemas([monitor])
    scraped = yaml.safe_load((ROOT / "deploy/monitoring/prometheus.yml").read_text())["scrape_configs"]
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["path"] == "/metrics"
    jobs = set()
    for one in of_kind(objects, "Deployment"):
        template = pod_template(one)
        assert matches(monitor["spec"]["selector"], template), label(one)
        assert endpoint["port"] in Container(one, objects).ports() and endpoint["port"] == "admin"
        jobs.add(template["metadata"]["labels"][monitor["spec"]["jobLabel"]])
    assert jobs == {one["job_name"] for one in scraped}
    assert "namespaceSelector" not in monitor["spec"], "it looks in its own namespace"


def test_no_two_objects_have_one_name(objects):
    names = [(one["apiVersion"], label(one)) for one in objects]
    assert len(names) == len(set(names))


def test_every_pod_is_contained(objects):
    for one in workloads(objects):
        pod = pod_template(one)["spec"]
        assert pod["enableServiceLinks"] is False and pod["automountServiceAccountToken"] is False, label(one)
        assert pod["securityContext"]["runAsNonRoot"] is True, label(one)
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, label(one)
        for container in pod["containers"]:
            assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                    "capabilities": {"drop": ["ALL"]}}, label(one)
            assert {"cpu", "memory"} == set(container["resources"]["requests"]) == set(container["resources"]["limits"])


def test_the_user_is_the_images_own(objects):
    user = re.search(r"^USER (\d+):(\d+)$", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE)
    for one in containers(objects):
        context = one.pod["securityContext"]
        assert [context["runAsUser"], context["runAsGroup"]] == [int(x) for x in user.groups()]
        assert context["fsGroup"] == context["runAsGroup"], "the secrets' files are for the group (0440)"


# ---- what our programs say to it ------------------------------------------------------------------------------------

def test_every_name_in_the_environment_is_read_by_who_gets_it(objects):
    table = settings()
    ours = containers(objects)
    assert {one.program for one in ours} == {"crcr-ingest", "crcr-dispatcher", "crcr-reporter", "crcrctl"}
    for one in ours:
        for name in one.own:
            assert one.program in reader_of(table, name), f"{one.label}: {one.program} reads no {name}"
        for name in one.shared:
            assert reader_of(table, name), f"{one.label}: nobody reads {name}"


def said_with_its_environment(one, secrets, kafka_secret):
    """(exit code, text) of the container's program with its environment and nobody to talk to."""
    environment = {**one.environment}
    environment["GITHUB_APP_ID"] = environment["GITHUB_APP_ID"] or "12345"  # the one that must be filled in
    environment["CRCR_GITHUB_API_URL"] = f"http://127.0.0.1:{free_port()}"  # and nobody is called
    environment["CRCR_REDIS_TLS"] = ""  # Debian 12's hiredis has none; the image's has
    for name, value in environment.items():
        secret, key = one.file(value) or (None, None)
        if secret:
            environment[name] = str((secrets if secret == "crcr" else kafka_secret) / key)
    if one.program == "crcrctl":
        environment["KAFKA_BROKERS"] = f"127.0.0.1:{free_port()}"
    check = [] if one.program == "crcrctl" else ["--check-config"]
    done = subprocess.run([BIN / one.program, *one.arguments, *check], env=environment_with(environment),
                          capture_output=True, text=True, timeout=90)
    return done.returncode, f"{one.label}: {done.returncode}\n{done.stdout}{done.stderr}"


def test_every_program_accepts_its_environment(objects, secrets, kafka_secret):
    ours = containers(objects)
    with concurrent.futures.ThreadPoolExecutor() as at_once:  # crcrctl takes 10 s to find nobody
        answers = at_once.map(lambda one: said_with_its_environment(one, secrets, kafka_secret), ours)
    for one, (code, said) in zip(ours, answers):
        # crcrctl has no --check-config: it takes arguments and environment, and then finds nobody (3), not 2.
        assert code == (3 if one.program == "crcrctl" else 0), said


def test_every_role_runs_in_one_deployment(objects):
    ours = [one for one in containers(objects) if one.label.startswith("Deployment/")]
    assert sorted(r for one in ours if one.program == "crcr-dispatcher" for r in roles_run(one)) == \
        sorted(roles_of("crcr-dispatcher"))
    of_reporter = [roles_run(one) for one in ours if one.program == "crcr-reporter"]
    assert sorted(sum(of_reporter, [])) == sorted(roles_of("crcr-reporter"))
    assert ["web"] in of_reporter, "strangers reach it: it is apart"
    assert [roles_run(one) for one in ours if one.program == "crcr-ingest"] == [[]]
    for tier in TIERS:
        assert [one.label for one in ours if roles_run(one) == [tier]] == [f"Deployment/crcr-dispatcher-{tier}"]


def test_ports_are_the_programs_own_and_probes_and_services_find_them(objects):
    for one in containers(objects):
        named = {"CRCR_LISTEN": "http", "CRCR_HUD_LISTEN": "http", "CRCR_ADMIN_LISTEN": "admin"}
        listens = {named[name]: value for name, value in one.environment.items() if name in named}
        assert {name: f"0.0.0.0:{port}" for name, port in one.ports().items()} == listens, one.label
        for probe in ("livenessProbe", "readinessProbe"):
            if one.label.startswith("Deployment/"):
                assert one.spec[probe]["httpGet"]["port"] in one.ports(), one.label
    for service in of_kind(objects, "Service"):
        behind = [pod_template(one) for one in workloads(objects)
                  if matches({"matchLabels": service["spec"]["selector"]}, pod_template(one))]
        assert len(behind) == 1, label(service)
        ports = {p["name"] for p in behind[0]["spec"]["containers"][0]["ports"]}
        assert {p["targetPort"] for p in service["spec"]["ports"]} <= ports, label(service)


READY_WITHOUT_KAFKA = {"crcr-reporter-web": 200}  # pages say themselves what is missing


@pytest.mark.parametrize("deployment", ["crcr-ingest", "crcr-dispatcher-router", "crcr-dispatcher-l1", "crcr-reporter",
                                        "crcr-reporter-web"])
def test_the_probes_paths_are_served(deployment, rendered, secrets, tmp_path):
    """By the real daemon with the rendered command and environment, Kafka unavailable: alive and not ready."""
    one = next(c for c in containers(rendered["full"]) if c.label == f"Deployment/{deployment}")
    environment = {k: v for k, v in one.environment.items() if not k.startswith("CRCR_KAFKA_")}
    environment = {k: str(secrets / one.file(v)[1]) if one.file(v) else v for k, v in environment.items()}
    admin = f"127.0.0.1:{free_port()}"
    environment |= {"GITHUB_APP_ID": "12345", "KAFKA_BROKERS": f"127.0.0.1:{free_port()}", "REDIS_ENDPOINT":
                    f"127.0.0.1:{free_port()}", "CRCR_ADMIN_LISTEN": admin, "CRCR_GITHUB_API_URL":
                    f"http://127.0.0.1:{free_port()}"}
    environment |= {k: "127.0.0.1:0" for k in ("CRCR_LISTEN", "CRCR_HUD_LISTEN") if k in environment}
    daemon = Process(deployment, [BIN / one.program, *one.arguments], tmp_path, environment)
    try:
        for probe, expected in (("livenessProbe", 200), ("readinessProbe", READY_WITHOUT_KAFKA.get(deployment, 503))):
            url = f"http://{admin}{one.spec[probe]['httpGet']['path']}"
            status = wait_for(f"{url} to answer {expected}", lambda url=url, expected=expected: subprocess.run(
                ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "5", url], capture_output=True,
                text=True, timeout=20).stdout == str(expected), 30)
            assert status
    finally:
        daemon.stop(40)


def test_every_file_that_is_read_comes_from_a_secret_that_has_it(objects, secrets):
    made = {path.name for path in secrets.iterdir()}
    for one in containers(objects):
        for name, value in one.environment.items():
            if not (name.endswith(("_FILE", "_LOCATION")) and value):
                continue
            assert one.file(value), f"{one.label}: {name}={value} is mounted from nowhere"
        for secret, key in one.files().values():
            if secret == "crcr":
                assert key in made, f"{one.label}: make-secrets makes no {key}"
                assert any(one.file(v) == (secret, key) for v in one.own.values()), f"{one.label} does not need {key}"
    for one in of_kind(objects, "StatefulSet"):
        if one["metadata"]["name"] != "redis":
            continue
        for volume in pod_template(one)["spec"].get("volumes", []):
            assert {item["key"] for item in volume["secret"]["items"]} <= made


def test_no_secret_stands_in_a_manifest(objects):
    assert not of_kind(objects, "Secret")
    for one in containers(objects):
        for name in one.environment:
            assert not re.search(r"(SECRET|PRIVATE_KEY|TOKEN_KEY|LOGIN|BOT_KEY|PASSWORD)$", name), f"{one.label}: {name}"


# ---- scaling, moving, upgrading -------------------------------------------------------------------------------------

def topics_conf():
    lines = (ROOT / "deploy/topics/topics.conf").read_text().splitlines()
    words = [line.split("#")[0].split() for line in lines]
    return {w[0]: int(w[1]) for w in words if w and w[0] != "default"}


def test_each_tier_scales_by_the_lag_of_its_own_topic_alone(objects):
    scalers = of_kind(objects, "ScaledObject")
    assert {one["spec"]["scaleTargetRef"]["name"] for one in scalers} == {f"crcr-dispatcher-{t}" for t in TIERS}
    for one in scalers:
        spec = one["spec"]
        tier = spec["scaleTargetRef"]["name"].rsplit("-", 1)[1]
        deployment = next(c for c in containers(objects) if c.label == f"Deployment/{spec['scaleTargetRef']['name']}")
        [trigger] = spec["triggers"]
        about = trigger["metadata"]
        assert roles_run(deployment) == [tier]
        assert (about["consumerGroup"], about["topic"]) == (f"crcr-{tier}", f"crcr.dispatch.{tier}")
        assert spec["minReplicaCount"] == 1 <= spec["maxReplicaCount"] <= topics_conf()[f"dispatch.{tier}"]
        assert about["excludePersistentLag"] == "true" and trigger["useCachedMetrics"] is True, "waiting adds nobody"
        assert about["offsetResetPolicy"] == "earliest"
        assert deployment.environment[about["bootstrapServersFromEnv"]]
        assert trigger["authenticationRef"]["name"] in {a["metadata"]["name"] for a in of_kind(objects, "TriggerAuthentication")}


def test_the_groups_that_are_scaled_by_exist():
    """crcrctl knows all groups: an unknown one is an error of usage, a known one is asked for."""
    def lag(*groups):
        return subprocess.run([BIN / "crcrctl", "lag", *groups], capture_output=True, text=True, timeout=60,
                              env=environment_with({"KAFKA_BROKERS": f"127.0.0.1:{free_port()}"})).returncode
    scalers = of_kind(render(K8S / "overlays/full"), "ScaledObject")
    assert lag(*[one["spec"]["triggers"][0]["metadata"]["consumerGroup"] for one in scalers]) == 3
    assert lag("crcr-l5") == 2


def test_what_an_autoscaler_sets_is_not_set_back_by_an_apply(objects):
    scaled = {one["spec"]["scaleTargetRef"]["name"] for one in of_kind(objects, "ScaledObject", "HorizontalPodAutoscaler")}
    for one in of_kind(objects, "Deployment"):
        assert ("replicas" in one["spec"]) != (one["metadata"]["name"] in scaled), label(one)


def test_the_budget_is_for_as_many_replicas_as_there_can_be(objects):
    """CRCR_BUDGET_REPLICAS: dispatchers and reporters at most, each with one more in a rolling update. The pages call nobody."""
    most = {s["spec"]["scaleTargetRef"]["name"]: s["spec"]["maxReplicaCount"] for s in of_kind(objects, "ScaledObject")}
    count = 0
    for one in of_kind(objects, "Deployment"):
        container = Container(one, objects)
        if container.program in ("crcr-dispatcher", "crcr-reporter") and roles_run(container) != ["web"]:
            count += most.get(one["metadata"]["name"], one["spec"].get("replicas", 1))
            count += one["spec"]["strategy"]["rollingUpdate"]["maxSurge"]
    [shared] = [one["data"] for one in of_kind(objects, "ConfigMap")]
    assert int(shared["CRCR_BUDGET_REPLICAS"]) >= count


def test_a_rolling_update_takes_nobody_away_before_the_next_is_ready(objects):
    behind_service = [s["spec"]["selector"] for s in of_kind(objects, "Service")]
    for one in of_kind(objects, "Deployment"):
        template, spec = pod_template(one), one["spec"]
        assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
        assert template["spec"]["terminationGracePeriodSeconds"] > DRAIN_S, label(one)
        served = any(matches({"matchLabels": s}, template) for s in behind_service)
        delay = Container(one, objects).environment.get("CRCR_SHUTDOWN_DELAY")
        assert served == bool(delay), f"{label(one)}: a pod behind a Service waits until it is forgotten; others need not"
        assert template["spec"]["topologySpreadConstraints"], label(one)


def test_each_deployment_has_its_own_selector_and_disruption_budget(objects):
    deployments, budgets = of_kind(objects, "Deployment"), of_kind(objects, "PodDisruptionBudget")
    for one in deployments:
        mine = [b for b in budgets if matches(b["spec"]["selector"], pod_template(one))]
        assert [b["metadata"]["name"] for b in mine] == [one["metadata"]["name"]]
        assert mine[0]["spec"]["maxUnavailable"] == 1
        assert [d for d in deployments if matches(one["spec"]["selector"], pod_template(d))] == [one]


def test_memory_limits_hold_what_is_in_hand(objects):
    """Ingest and the pages: what test_compose.py adds up; a consumer: 16 MiB a partition of one topic."""
    for one in containers(objects):
        limit = bytes_of(one.spec["resources"]["limits"]["memory"])
        if one.program == "crcr-ingest":
            assert limit >= memory.most_bytes(bytes_of(one.environment["CRCR_MAX_INFLIGHT_BYTES"]))
        elif roles_run(one) == ["web"]:
            assert limit >= memory.most_bytes_of_pages()
        elif roles_run(one) and set(roles_run(one)) <= set(TIERS):
            assert limit >= 12 * (16 << 20) + (64 << 20)


# ---- network, Kafka -------------------------------------------------------------------------------------------------

def selected(policy, template):
    labels, selector = template["metadata"]["labels"], policy["spec"]["podSelector"]
    return all(labels.get(k) == v for k, v in selector.get("matchLabels", {}).items()) and \
        all(labels.get(e["key"]) in e["values"] for e in selector.get("matchExpressions", []))


def test_all_pods_are_shut_and_each_gets_what_it_needs(objects):
    policies = of_kind(objects, "NetworkPolicy")
    [external] = [p for p in policies if p["metadata"]["name"] == "crcr-to-the-internet"]
    for one in containers(objects):
        mine = [p for p in policies if selected(p, one.template)]
        names = {p["metadata"]["name"] for p in mine}
        assert {"crcr-nothing-else", "crcr-names", "crcr-to-kafka"} <= names, one.label
        ways_in = {port["port"] for p in mine for rule in p["spec"].get("ingress", []) for port in rule["ports"]}
        assert set(one.ports()) <= ways_in, f"{one.label}: nobody may reach {set(one.ports()) - ways_in}"
        assert (external in mine) == (one.label not in ("Job/crcr-topics", "CronJob/crcr-keep-allowlist")), one.label
        broker = {int(b.rsplit(":", 1)[1]) for b in one.environment["KAFKA_BROKERS"].split(",")}
        assert broker <= open_ports(mine), f"{one.label}: Kafka is at {broker}"
        if "REDIS_LOGIN_FILE" in one.own:
            assert int(one.environment["REDIS_ENDPOINT"].rsplit(":", 1)[1]) in open_ports(mine), one.label


def open_ports(policies):
    return {number for p in policies for rule in p["spec"].get("egress", []) for port in rule["ports"]
            for number in range(port["port"], port.get("endPort", port["port"]) + 1)}


def test_the_topics_are_those_of_topics_conf(rendered):
    made = subprocess.run([K8S / "components/strimzi/make-topics"], capture_output=True, text=True, timeout=60, check=True)
    assert made.stdout == (K8S / "components/strimzi/topics.yaml").read_text(), "run components/strimzi/make-topics >topics.yaml"
    topics = of_kind(rendered["full"], "KafkaTopic")
    assert {t["metadata"]["name"]: t["spec"]["partitions"] for t in topics} == \
        {f"crcr.{name}": partitions for name, partitions in topics_conf().items()}
    for one in topics:
        assert (one["spec"]["replicas"], one["spec"]["config"]["min.insync.replicas"]) == (3, 2)
        assert one["spec"]["config"]["unclean.leader.election.enable"] is False
    by_name = {t["metadata"]["name"]: t["spec"]["config"] for t in topics}
    assert by_name["crcr.events"]["max.message.bytes"] == 26 << 20
    assert by_name["crcr.results"]["cleanup.policy"] == "compact,delete"
    assert by_name["crcr.allowlist"]["retention.ms"] == -1


def test_the_readmes_patch_gives_the_ingress_its_host_and_class(tmp_path):
    patch = re.search(r"^      patches:\n(?:      .*\n)+", (K8S / "README.md").read_text(), re.MULTILINE)[0]
    shutil.copytree(K8S, tmp_path / "k8s")
    mine = tmp_path / "k8s/overlays/full/kustomization.yaml"
    mine.write_text(mine.read_text() + textwrap.dedent(patch))
    [ingress] = of_kind(render(mine.parent), "Ingress")
    hosts = ingress["spec"]["tls"][0]["hosts"] + [rule["host"] for rule in ingress["spec"]["rules"]]
    assert hosts == ["crcr.example.com"] * 2 and ingress["spec"]["ingressClassName"] == "nginx"


def test_strimzis_kafka_takes_what_the_topics_want_and_knows_our_users(rendered):
    [kafka] = of_kind(rendered["full"], "Kafka")
    [pool] = of_kind(rendered["full"], "KafkaNodePool")
    config = kafka["spec"]["kafka"]["config"]
    assert pool["spec"]["replicas"] == config["default.replication.factor"] == 3 and config["min.insync.replicas"] == 2
    assert config["auto.create.topics.enable"] is False and config["unclean.leader.election.enable"] is False
    largest = max(t["spec"]["config"].get("max.message.bytes", 0) for t in of_kind(rendered["full"], "KafkaTopic"))
    assert config["message.max.bytes"] >= largest and config["replica.fetch.max.bytes"] >= largest
    users = {one["metadata"]["name"] for one in of_kind(rendered["full"], "KafkaUser")}
    wanted = {secret for c in containers(rendered["full"]) for secret, _ in c.files().values()} | \
        {s["name"] for a in of_kind(rendered["full"], "TriggerAuthentication") for s in a["spec"]["secretTargetRef"]}
    assert wanted == users | {"crcr", f"{kafka['metadata']['name']}-cluster-ca-cert"}
    [listener] = kafka["spec"]["kafka"]["listeners"]
    [shared] = [one["data"] for one in of_kind(rendered["full"], "ConfigMap")]
    assert shared["KAFKA_BROKERS"] == f"{kafka['metadata']['name']}-kafka-bootstrap:{listener['port']}"
    labelled = of_kind(rendered["full"], "KafkaTopic", "KafkaUser", "KafkaNodePool")
    assert {one["metadata"]["labels"]["strimzi.io/cluster"] for one in labelled} == {kafka["metadata"]["name"]}


def redis_of(rendered):
    redis = next(one for one in of_kind(rendered["full"], "StatefulSet") if one["metadata"]["name"] == "redis")
    return redis["spec"]["template"]["spec"]["containers"][0]


def test_redis_holds_what_ten_downstreams_come_to_and_may_take_its_time_to_read_it(rendered):
    redis = redis_of(rendered)
    printed = subprocess.run([sys.executable, ROOT / "deploy/capacity", "10"], capture_output=True, text=True, check=True).stdout
    needed = sum(float(number) * {"MB": 1e6, "GB": 1e9}[unit] for number, unit in
                 re.findall(r"^ +Redis, (?:the view|claims) +([\d.]+) (\wB) ", printed, re.MULTILINE))
    options = dict(zip(redis["command"][1::2], redis["command"][2::2]))
    most, limit = (int(options["--maxmemory"].removesuffix("mb")) << 20), bytes_of(redis["resources"]["limits"]["memory"])
    assert 2.5e9 < needed <= bytes_of(redis["resources"]["requests"]["memory"]) <= most <= 0.75 * limit
    assert options["--maxmemory-policy"] == "noeviction", "a claim or a row that is thrown away is not noticed"
    starting = redis["startupProbe"]
    assert starting["periodSeconds"] * starting["failureThreshold"] >= 600


def test_redis_knows_the_user_that_the_relay_logs_in_as(rendered, secrets):
    command = redis_of(rendered)["command"]
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["redis"]["command"]
    assert command[:-1] == [re.sub(r"^\$\{REDIS_MAXMEMORY:-(\w+)\}$", r"\1", one) for one in compose[:-1]], \
        "the same Redis as with compose"
    known = {line.split()[1] for line in (secrets / "redis_users").read_text().splitlines()}
    for one in containers(rendered["full"]):
        if "REDIS_LOGIN_FILE" in one.own:
            _, key = one.file(one.own["REDIS_LOGIN_FILE"])
            user = (secrets / key).read_text().split(":")[0]
            assert user in known and user == one.program, one.label


def test_each_pod_shows_kafka_its_own_certificate(rendered):
    users = {one["metadata"]["name"] for one in of_kind(rendered["full"], "KafkaUser")}
    for overlay, name in (("full", "{}"), ("external", "crcr-kafka-{}")):
        for one in containers(rendered[overlay]):
            who = {"crcrctl": "crcrctl", "crcr-redeliver": "crcr-redeliver", "crcr-redeliver-daily": "crcr-redeliver",
                   "crcr-topics": "crcr-topics", "crcr-keep-allowlist": "crcrctl"}.get(one.label.split("/")[1], one.program)
            assert overlay == "external" or who in users
            mounted = {secret for secret, _ in one.files().values()} - {"crcr", "crcr-cluster-ca-cert"}
            assert mounted == {name.format(who if overlay == "full" else who.removeprefix("crcr-"))}, one.label
