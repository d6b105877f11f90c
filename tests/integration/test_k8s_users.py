"""The Kafka users of deploy/k8s: what they may do suffices for the relay and for KEDA, on a real Kafka that asks."""
import os
import re
import subprocess

import pytest

from lib.kafka import Kafka
from lib.manifests import K8S, of_kind, render
from lib.ports import free_port
from lib.processes import BIN, ROOT, Process, wait_for

pytestmark = pytest.mark.long  # a Kafka of its own, and a JVM for each right
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"admin\" password=\"p\""
USERS = "".join(f' user_{name}="p"' for name in ("admin", "crcr-relay", "crcr-keda"))
BROKER = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": f"{LOGIN}{USERS};",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",  # the latter on the controller's listener: only the broker is there
}
ADMIN = f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={LOGIN};\n"


def environment(brokers, user, **more):
    clean = {k: v for k, v in os.environ.items() if not re.match("(CRCR|GITHUB|KAFKA|REDIS|HUD)_", k)}
    return clean | {"KAFKA_BROKERS": brokers, "CRCR_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
                    "CRCR_KAFKA_SASL_MECHANISM": "PLAIN", "CRCR_KAFKA_SASL_USERNAME": user,
                    "CRCR_KAFKA_SASL_PASSWORD": "p"} | more


def ctl(brokers, user, *arguments, **more):
    done = subprocess.run([BIN / "crcrctl", *arguments], env=environment(brokers, user, **more), capture_output=True,
                          text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def allow(brokers, folder):
    """As Strimzi's user operator would: the ACLs of each KafkaUser."""
    (folder / "admin.properties").write_text(ADMIN)
    jars = subprocess.run(["bash", "-c", f". {ROOT}/deploy/local/lib.sh; kafka_dir"], capture_output=True, text=True,
                          check=True).stdout.strip()
    for user in of_kind(render(K8S / "overlays/full"), "KafkaUser"):
        for acl in user["spec"]["authorization"]["acls"]:
            about = acl["resource"]
            operations = [word for one in acl["operations"] for word in ("--operation", one)]
            subprocess.run(["java", "-cp", f"{jars}/jars/*", "-XX:TieredStopAtLevel=1", "kafka.admin.AclCommand",
                            "--bootstrap-server", brokers, "--command-config", folder / "admin.properties", "--add",
                            "--allow-principal", f"User:{user['metadata']['name']}", f"--{about['type']}", about["name"],
                            "--resource-pattern-type", {"prefix": "prefixed"}[about["patternType"]], *operations],
                           check=True, capture_output=True, timeout=90)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kafka")
    node = Kafka(folder)
    node.properties |= BROKER
    node.start()
    try:
        def made():
            code, said = ctl(node.brokers, "admin", "topics", "create")
            assert code in (0, 3), said  # 3: a young broker on a busy machine takes longer than crcrctl waits
            return code == 0
        wait_for("the topics to be made", made, 120)
        allow(node.brokers, folder)
        yield node.brokers
    finally:
        node.stop()


@pytest.fixture
def relay(brokers, tmp_path):
    """Each daemon as the user crcr-relay, with one downstream and a GitHub that is not there."""
    subprocess.run([ROOT / "deploy/compose/make-secrets", "--demo", "--dir", tmp_path / "s"], check=True,
                   capture_output=True, timeout=60)
    (tmp_path / "allowlist.yml").write_text("L1: [org/backend]\n")
    redis, http = free_port(), free_port()
    started = [Process("redis", [ROOT / "deploy/local/redis", "--dir", tmp_path / "r", "--port", redis], tmp_path)]
    admins = {}
    for program in ("crcr-ingest", "crcr-dispatcher", "crcr-reporter"):
        admins[program] = f"127.0.0.1:{free_port()}"
        started.append(Process(program, [BIN / program], tmp_path, environment(
            brokers, "crcr-relay", GITHUB_APP_ID="12345", REDIS_ENDPOINT=f"127.0.0.1:{redis}",
            GITHUB_APP_SECRET_FILE=str(tmp_path / "s/webhook_secret"), CRCR_LISTEN=f"127.0.0.1:{http}",
            GITHUB_APP_PRIVATE_KEY_FILE=str(tmp_path / "s/app_private_key"), CRCR_ADMIN_LISTEN=admins[program],
            CRCR_HUD_LISTEN="127.0.0.1:0", CRCR_GITHUB_API_URL=f"http://127.0.0.1:{free_port()}",
            ALLOWLIST_URL=str(tmp_path / "allowlist.yml"))))
    try:
        for program, admin in admins.items():
            wait_for(f"{program} to be ready", lambda admin=admin: subprocess.run(
                ["curl", "-sf", "--max-time", "5", f"http://{admin}/readyz"], capture_output=True, timeout=20).returncode == 0, 60)
        yield http, tmp_path / "s/webhook_secret"
    finally:
        for process in reversed(started):
            process.stop(40)


def test_the_relays_user_may_do_all_that_the_relay_does(brokers, relay):
    http, secret = relay
    code, said = ctl(brokers, "crcr-relay", "send-webhook", ROOT / "deploy/compose/pull_request.json", "--url",
                     f"http://127.0.0.1:{http}/github/webhook", GITHUB_APP_SECRET_FILE=str(secret))
    assert code == 0 and said.startswith("202"), said
    wait_for("the outcome of the dispatch", lambda: "org/backend" in ctl(brokers, "crcr-relay", "tail", "dispatches")[1], 60)
    assert ctl(brokers, "crcr-relay", "topics", "check")[0] == 0
    code, said = ctl(brokers, "crcr-relay", "lag")
    assert code == 0 and "crcr-forward" in said, said


def test_kedas_user_sees_the_lag_of_a_tier_and_reads_nothing(brokers):
    code, said = ctl(brokers, "crcr-keda", "lag", "crcr-l1")
    assert code == 0 and "crcr.dispatch.l1" in said, said
    assert ctl(brokers, "crcr-keda", "tail", "dispatches")[0] != 0
    assert ctl(brokers, "crcr-keda", "tail", "dispatch.l1")[0] != 0
