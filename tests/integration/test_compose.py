"""docker-compose.yml and what lies beside it, as far as it can be held to the tree without Docker; tests/compose runs it."""
import hashlib
import os
import re
import subprocess

import pytest
import yaml

from lib import memory
from lib.processes import ROOT

COMPOSE = ROOT / "deploy" / "compose"
STACK = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = STACK["services"]
READERS = {"ingest": "ingest", "dispatcher": "dispatcher", "reporter": "reporter", "crcrctl": "crcrctl"}
# The stack's own, which nobody sets: its brokers, names and listeners; one process has all roles; a minute is a minute. TLS: deploy/compose/tls.
NOT_PASSED_ON = {"CRCR_TOPIC_PREFIX", "CRCR_LISTEN", "CRCR_HUD_LISTEN", "CRCR_ROLES", "CRCR_CA_FILE",
                 "CRCR_REDIS_TLS", "CRCR_REDIS_CA_FILE"}
CONSTANT = {"KAFKA_BROKERS", "REDIS_ENDPOINT", "CRCR_ADMIN_LISTEN"}


def settings():
    """Name -> who reads it, as deploy/CONFIGURATION.md says (tests/lint/config_table holds it to the code)."""
    table = (ROOT / "deploy" / "CONFIGURATION.md").read_text().split("<!-- config:begin -->")[1].split("<!-- config:end -->")[0]
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([\w, ]+) \|", table, re.MULTILINE)
    assert len(rows) > 30
    return {name: who.split(", ") for name, who in rows}


def run(*argv, code=0, env=None):
    done = subprocess.run([str(part) for part in argv], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **(env or {})})
    assert done.returncode == code, f"{argv}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@pytest.mark.parametrize("service", READERS)
def test_every_setting_reaches_the_service_that_reads_it(service):
    """What stands in .env and is not passed on is ignored without a word."""
    given = SERVICES[service]["environment"]
    for name, readers in settings().items():
        if READERS[service] not in readers or name in NOT_PASSED_ON | CONSTANT:
            continue
        assert name in given or f"{name}_FILE" in given, f"{service} does not get {name}"
        if name in given:  # empty is unset
            assert given[name].startswith(f"${{{name}:"), f"{service}: {name}: {given[name]}"


def test_the_memory_that_ingest_may_take_holds_all_that_it_may_have_in_hand():
    """Bodies, heads, parsed callbacks, the queue to Kafka. deploy/k8s: test_k8s_manifests.py."""
    needed = memory.most_bytes(256 << 20)  # CRCR_MAX_INFLIGHT_BYTES unless .env has another
    assert limit_of("ingest") >= needed > 512 << 20
    unit = (ROOT / "deploy" / "systemd" / "crcr-ingest.service").read_text()
    assert int(re.search(r"^MemoryMax=(\d+)G$", unit, re.MULTILINE)[1]) << 30 >= needed


def test_the_memory_that_the_reporter_may_take_holds_pages_and_what_it_has_in_hand():
    in_hand = 12 * (16 << 20)  # callbacks: 16 MiB a partition
    assert limit_of("reporter") >= memory.most_bytes_of_pages() + in_hand


def limit_of(service):
    return int(re.fullmatch(r"(\d+)m", SERVICES[service]["mem_limit"])[1]) << 20


def test_redeliver_checks_webhooks_as_ingest_does():
    for name in ("UPSTREAM_REPO", "CRCR_PUSH_REFS", "GITHUB_APP_ID"):
        assert SERVICES["redeliver"]["environment"][name].split(":")[0].strip("${}") == name


def test_every_setting_that_is_passed_on_exists_and_every_file_is_a_secret_of_the_service():
    known = settings()
    for label, service in SERVICES.items():
        if "KAFKA_BROKERS" not in service.get("environment", {}):
            continue
        for name, value in service["environment"].items():
            base = name if name in known else name.removesuffix("_FILE")
            assert base in known, f"{label}: {name}"
            if name != base:
                files = {one["target"] if isinstance(one, dict) else one for one in service["secrets"]}
                assert value.removeprefix("/run/secrets/") in files, f"{label}: {name}={value}"


def test_each_service_logs_in_as_its_own_user():
    tls = yaml.safe_load((COMPOSE / "tls" / "compose.yml").read_text())["services"]
    for service in (*READERS, "topics", "redeliver"):
        if service in READERS:
            assert {"source": f"redis_login_{service}", "target": "redis_login"} in SERVICES[service]["secrets"]
        assert {"source": f"kafka_password_{service}", "target": "kafka_password"} in tls[service]["secrets"]
        assert tls[service]["environment"]["CRCR_KAFKA_SASL_USERNAME"].removeprefix("crcr-") == service


def test_the_files_to_start_from_name_only_what_is_read():
    read = set(re.findall(r"\$\{(\w+)[:}]", (ROOT / "docker-compose.yml").read_text())) | {"COMPOSE_PROFILES", "COMPOSE_FILE"}
    for file in ("example.env", "demo.env"):
        assert set(re.findall(r"^#?([A-Z_]+)=", (COMPOSE / file).read_text(), re.MULTILINE)) <= read, file


def test_the_simulator_is_in_no_image_but_the_demo_s():
    """Whoever takes over a container of the relay finds nothing there that plays GitHub."""
    stages = re.split(r"^FROM ", (ROOT / "deploy" / "Dockerfile").read_text(), flags=re.MULTILINE)[1:]
    roots = dict(re.findall(r"deploy/image-root (/\w+) (.+)$", stages[0], re.MULTILINE))
    assert roots == {"/image": "crcr-ingest crcr-dispatcher crcr-reporter crcrctl /usr/bin/curl", "/demo": "crcr-sim /usr/bin/curl"}
    assert [(stage.split("\n")[0], re.findall(r"^COPY .*$", stage, re.MULTILINE)) for stage in stages[1:]] == \
        [("scratch AS demo", ["COPY --from=build /demo /"]), ("scratch", ["COPY --from=build /image /"])]
    assert "crcr-sim" not in stages[2]
    simulated = {name for name, service in SERVICES.items() if "crcr-sim" in service.get("command", [])}
    assert simulated == {"github"} == {name for name, service in SERVICES.items()
                                       if service["image"] == "crcr-demo:local" or service.get("build", {}).get("target") == "demo"}
    assert SERVICES["github"]["profiles"] == ["demo"] and SERVICES["github"]["build"]["target"] == "demo"


def test_redis_may_take_its_time_to_read_its_file_and_refuses_writes_when_it_is_full():
    redis = SERVICES["redis"]
    assert redis["healthcheck"]["start_period"] == "600s"
    tls = yaml.safe_load((COMPOSE / "tls" / "compose.yml").read_text())["services"]["redis"]["command"]
    for command in (redis["command"], tls):
        options = dict(zip(command[1::2], command[2::2]))
        assert options["--maxmemory"] == "${REDIS_MAXMEMORY:-4608mb}" and options["--maxmemory-policy"] == "noeviction"


def test_only_who_calls_outside_is_on_a_network_that_leads_there():
    networks = STACK["networks"]
    assert networks["data"] == {"internal": True}
    masquerade = "com.docker.network.bridge.enable_ip_masquerade"
    closed = {"data"} | {name for name, one in networks.items() if one.get("driver_opts") == {masquerade: "false"}}
    tls = yaml.safe_load((COMPOSE / "tls" / "compose.yml").read_text())["services"]
    services = {name: {**tls.get(name, {}), **SERVICES.get(name, {})} for name in tls.keys() | SERVICES.keys()}
    out = {name for name, service in services.items() if set(service["networks"]) - closed}
    assert out == {"ingest", "dispatcher", "reporter", "redeliver", "crcrctl"} | {"github", "webhook"}  # the demo's: they are outside
    for name, service in services.items():  # Docker publishes no port of what is in internal networks alone
        assert "ports" not in service or set(service["networks"]) != {"data"}, name


@pytest.mark.parametrize("publish", ["0.0.0.0:9094", "[::]:9094"])
def test_kafka_names_the_setting_when_clients_would_be_sent_nowhere(publish, tmp_path):
    environment = {"KAFKA_PUBLISH": publish, "KAFKA_ADVERTISE": "", "TMPDIR": str(tmp_path)}
    said = run("bash", COMPOSE / "kafka" / "kafka-start", code=1, env=environment)
    assert publish in said and "KAFKA_ADVERTISE" in said
    environment["KAFKA_ADVERTISE"] = "kafka.example.org:9094"
    said = run("bash", COMPOSE / "kafka" / "kafka-start", code=1, env=environment)
    assert "KAFKA_ADVERTISE" not in said and "/etc/crcr/server.properties" in said, "it went on"


def redis_knows(folder, user="crcr-ingest"):
    name, password = (folder / f"redis_login_{user.removeprefix('crcr-')}").read_text().strip().split(":")
    return name == user and \
        f"user {user} reset on #{hashlib.sha256(password.encode()).hexdigest()} " in (folder / "redis_users").read_text()


def test_redis_knows_a_login_that_was_made_anew(tmp_path):
    made, users = [COMPOSE / "make-secrets", "--demo", "--dir", tmp_path], [f"crcr-{name}" for name in list(READERS)[:3]] + ["crcrctl"]
    run(*made)
    first = (tmp_path / "redis_login_ingest").read_text()
    assert all(redis_knows(tmp_path, user) for user in users)
    assert run(*made) == "", "what is there stays"
    (tmp_path / "redis_login_ingest").unlink()
    run(*made)
    assert (tmp_path / "redis_login_ingest").read_text() != first and all(redis_knows(tmp_path, user) for user in users)


def test_kafkas_users_are_those_of_the_rights_and_each_has_a_password(tmp_path):
    run(COMPOSE / "tls/make-certs", "--dir", tmp_path)
    users = dict(re.findall(r'user_([\w-]+)="(\w+)"', (tmp_path / "kafka_users").read_text()))
    rights = set(re.findall(r"^(crcr\S+)", (ROOT / "deploy/topics/users.conf").read_text(), re.MULTILINE))
    assert users.keys() == rights - {"crcr-keda"} | {"kafka"}
    for user in users.keys() - {"kafka", "crcr-ui"}:
        assert (tmp_path / f"kafka_password_{user.removeprefix('crcr-')}").read_text().strip() == users[user]
    assert users["crcr-ui"] in (tmp_path / "kafka_ui.yml").read_text()
