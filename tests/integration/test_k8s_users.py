"""The Kafka users of deploy/k8s, each with its rights, on a real Kafka that asks: they suffice for the program, and what is
another's is refused. deploy/topics/acls gives other clusters the same rights."""
import collections
import concurrent.futures
import itertools
import json
import os
import re
import shlex
import subprocess
import uuid

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from lib.kafka import Kafka, kafka_acls
from lib.manifests import K8S, of_kind, render
from lib.processes import BIN, ROOT, wait_for
from lib.redis_server import redis_server
from lib.relay import Relay, pull_request

pytestmark = pytest.mark.long  # a Kafka of its own, and a JVM for each right
DAEMONS = ("crcr-ingest", "crcr-dispatcher", "crcr-reporter")
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"admin\" password=\"p\""
USERS = "".join(f' user_{name}="p"' for name in ("admin", *DAEMONS, "crcr-redeliver", "crcrctl", "crcr-keda", "crcr-topics"))
BROKER = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": f"{LOGIN}{USERS};",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",  # the latter on the controller's listener: only the broker is there
}
# What a thief of its key would like.
NOT_READ = {"crcr-ingest": ("events", "callbacks", "results", "dispatch.l1", "dlq"),
            "crcr-dispatcher": ("callbacks", "results", "dispatches", "dlq"),
            "crcr-redeliver": ("callbacks", "results", "allowlist", "dlq", "audit"), "crcr-keda": ("events", "dispatch.l1")}
NOT_WRITTEN = {"crcr-ingest": ("allowlist", "dispatch.l1", "results", "dispatches", "dlq", "delay.1m", "rdelay.1m", "audit"),
               "crcr-dispatcher": ("events", "results", "audit"),
               "crcr-reporter": ("events", "dispatch.l1", "dispatches", "allowlist", "audit", "delay.10s", "delay.1m", "delay.10m", "delay.1h"),
               "crcr-redeliver": ("callbacks", "allowlist", "dispatch.l1"), "crcr-keda": ("events", "dispatch.l1")}
NOT_JOINED = {"crcr-ingest": "crcr-fold", "crcr-dispatcher": "crcr-fold", "crcr-reporter": "crcr-l1",
              "crcr-redeliver": "crcr-router", "crcrctl": "crcr-router", "crcr-keda": "crcr-l1"}


def settings(user):
    return {"CRCR_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT", "CRCR_KAFKA_SASL_MECHANISMS": "PLAIN",
            "CRCR_KAFKA_SASL_USERNAME": user, "CRCR_KAFKA_SASL_PASSWORD": "p"}


def ctl(brokers, user, *arguments, **more):
    clean = {k: v for k, v in os.environ.items() if not re.match("(CRCR|GITHUB|KAFKA|REDIS|HUD)_", k)}
    done = subprocess.run([BIN / "crcrctl", *arguments], env=clean | {"KAFKA_BROKERS": brokers} | settings(user) | more,
                          capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def client(brokers, user, **more):
    return {"bootstrap.servers": brokers, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
            "sasl.username": user, "sasl.password": "p", **more}


def of_manifests():
    """(user, resource, name, pattern, operation) of each KafkaUser, as Strimzi's user operator would give it."""
    return {(user["metadata"]["name"], acl["resource"]["type"], acl["resource"]["name"],
             {"prefix": "prefixed"}.get(acl["resource"]["patternType"], "literal"), operation)
            for user in of_kind(render(K8S / "overlays/full"), "KafkaUser")
            for acl in user["spec"]["authorization"]["acls"] for operation in acl["operations"]}


def of_acls():
    """The same of the arguments for kafka-acls.sh."""
    made, found = subprocess.run([ROOT / "deploy/topics/acls"], capture_output=True, text=True, check=True, timeout=60), set()
    for line in made.stdout.splitlines():
        words = shlex.split(line)
        assert words.pop(0) == "--add"
        pairs = list(zip(words[::2], words[1::2]))
        of = {name: [value for option, value in pairs if option == f"--{name}"] for name in
              ("allow-principal", "operation", "resource-pattern-type", "topic", "group")}
        found |= {(of["allow-principal"][0].removeprefix("User:"), kind, name, of["resource-pattern-type"][0], operation)
                  for kind in ("topic", "group") for name in of[kind] for operation in of["operation"]}
    return found


def allow(brokers, folder, rights):
    """One kafka-acls for all that differs in its name alone."""
    (folder / "admin.properties").write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={LOGIN};\n")
    operations, calls = collections.defaultdict(set), collections.defaultdict(list)
    for user, kind, name, pattern, operation in rights:
        operations[user, kind, name, pattern].add(operation)
    for (user, kind, name, pattern), what in operations.items():
        calls[user, pattern, tuple(sorted(what))] += [f"--{kind}", name]

    def call(one):
        (user, pattern, what), names = one
        kafka_acls("--bootstrap-server", brokers, "--command-config", folder / "admin.properties", "--add",
                   "--allow-principal", f"User:{user}", "--resource-pattern-type", pattern, *names,
                   *[word for operation in what for word in ("--operation", operation)])
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(call, calls.items()))


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kafka")
    node = Kafka(folder)
    node.properties |= BROKER
    node.start()
    try:
        admin = AdminClient(client(node.brokers, "admin"))
        allow(node.brokers, folder, of_manifests() | {right for right in of_acls() if right[0] == "crcr-topics"})
        for done in admin.create_topics([NewTopic("foreign", 1, 1)]).values():
            done.result(30)

        def made():
            code, said = ctl(node.brokers, "crcr-topics", "topics", "create")
            assert code in (0, 3), said  # 3: a young broker on a busy machine takes longer than crcrctl waits
            return code == 0
        wait_for("the topics to be made", made, 120)
        yield node.brokers
    finally:
        node.stop()


@pytest.fixture(scope="module")
def relay(brokers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("relay")
    with redis_server(folder / "redis") as redis:
        one = Relay(folder, brokers, redis, prefix="crcr.")
        try:
            one.start_github()
            for user in DAEMONS:
                one.start(user.removeprefix("crcr-"), **settings(user))
            for user in DAEMONS:
                one.wait_ready(user.removeprefix("crcr-"))
            yield one
        finally:
            one.stop()


def test_each_daemon_as_its_user_does_one_round(brokers, relay):
    status, _, delivery = relay.deliver(pull_request(number=78, labels=["ciflow/crcr/npu"]))
    assert status == 202

    def ended():
        jobs = (relay.api(f"/api/crcr/deliveries/{delivery}") or {"jobs": []})["jobs"]
        checks = relay.state()["check_runs"]
        return len(jobs) == 3 and all(job["status"] == "completed" for job in jobs) and \
            len(checks) == 3 and all(run["status"] == "completed" for run in checks) and len(relay.state()["hud"]) >= 3
    wait_for("three rows, three check runs and what the HUD got", ended)
    assert "dispatched" in ctl(brokers, "crcrctl", "trace", delivery)[1]
    assert ctl(brokers, "crcrctl", "topics", "check")[0] == 0
    code, said = ctl(brokers, "crcrctl", "lag")
    assert code == 0 and "crcr-forward" in said, said
    subprocess.run([ROOT / "deploy/compose/lose-webhook", f"127.0.0.1:{relay.ports['github']}"], check=True, capture_output=True, timeout=60)
    relay.extra |= settings("crcr-redeliver")
    assert "1 published" in relay.ctl("redeliver", "--since", "1h", timeout=120).stdout
    for part in relay.parts.values():
        assert "uthorization failed" not in part.text() and "AUTHORIZATION" not in part.text(), part.tail()


def test_kedas_user_sees_the_lag_of_a_tier_and_reads_nothing(brokers):
    code, said = ctl(brokers, "crcr-keda", "lag", "crcr-l1")
    assert code == 0 and "crcr.dispatch.l1" in said, said
    assert ctl(brokers, "crcr-keda", "tail", "dispatches")[0] != 0
    assert ctl(brokers, "crcr-keda", "tail", "dispatch.l1")[0] != 0


def may_write(brokers, user, topic):
    failures = []
    producer = Producer(client(brokers, user, **{"message.timeout.ms": 20000}))
    producer.produce(topic, b"x", on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(30) == 0
    return not failures[0] or "AUTHORIZATION" not in failures[0].name()


def may_read(brokers, user, topic):
    """Who may write may see the topic, and is refused by the fetch; others do not see it."""
    consumer = Consumer(client(brokers, user, **{"group.id": "crcr-nobody", "enable.partition.eof": True}))
    try:
        refused = consumer.list_topics(topic, 30).topics[topic].error
        if refused:
            assert refused.name() == "TOPIC_AUTHORIZATION_FAILED", refused
            return False
        consumer.assign([TopicPartition(topic, 0, 0)])

        def answer():
            message = consumer.poll(1)
            name = message.error().name() if message and message.error() else ""
            return name if name in ("TOPIC_AUTHORIZATION_FAILED", "_PARTITION_EOF") else message and not name and "a record"
        return wait_for(f"an answer about {topic}", answer) != "TOPIC_AUTHORIZATION_FAILED"
    finally:
        consumer.close()


@pytest.mark.parametrize("user", NOT_JOINED)
def test_a_user_is_refused_topics_of_others(brokers, user):
    assert may_read(brokers, "crcrctl", "crcr.events") and may_write(brokers, "crcrctl", "crcr.dlq"), "the question is right"
    assert not may_read(brokers, user, "foreign") and not may_write(brokers, user, "foreign")
    for topic in NOT_READ.get(user, ()):
        assert not may_read(brokers, user, f"crcr.{topic}"), topic
    for topic in NOT_WRITTEN.get(user, ()):
        assert not may_write(brokers, user, f"crcr.{topic}"), topic
    admin = AdminClient(client(brokers, user))
    with pytest.raises(KafkaException, match="AUTHORIZATION"):
        admin.create_topics([NewTopic("crcr.more", 1, 1)])["crcr.more"].result(30)
    with pytest.raises(KafkaException, match="AUTHORIZATION"):
        admin.delete_topics(["crcr.events"])["crcr.events"].result(30)


@pytest.mark.parametrize("user", NOT_JOINED)
def test_a_user_cannot_join_a_group_of_others(brokers, user):
    said = []
    consumer = Consumer(client(brokers, user, **{"group.id": NOT_JOINED[user], "error_cb": said.append}))
    try:
        consumer.subscribe(["crcr.events", "crcr.dispatch.l1", "crcr.allowlist"])  # one of them it sees

        def refused():
            message = consumer.poll(1)
            assert message is None or message.error(), "it reads"
            return any(error.name() == "GROUP_AUTHORIZATION_FAILED" for error in [*said, *([message.error()] if message else [])])
        wait_for("the group to be refused", refused)
    finally:
        consumer.close()


def topics_of(brokers, user, operation):
    """What users.conf lets that user do so."""
    rights = [right for right in of_manifests() if (right[0], right[1], right[4]) == (user, "topic", operation)]
    return sorted(name for name in AdminClient(client(brokers, "admin")).list_topics(timeout=30).topics
                  if any(name == right[2] or (right[3] == "prefixed" and name.startswith(right[2])) for right in rights))


def test_no_login_but_the_dispatchers_makes_a_dispatch_of_its_own(brokers, relay):
    """Each login writes a task for each back end to each topic that it may write, the way back to each tier named. What it
    is not to reach: a call to GitHub, directly or by the hands of another program. The dispatcher may, as may people."""
    _, _, delivery = relay.deliver(pull_request(number=79))
    consumer = Consumer(client(brokers, "crcrctl", **{"group.id": "crcr-nobody"}))
    consumer.assign([TopicPartition("crcr.dispatch.l4", partition, 0) for partition in range(12)])

    def task_of_it():
        one = consumer.poll(1)
        return one and not one.error() and ("delivery", delivery.encode()) in one.headers() and one
    task = wait_for("a task", task_of_it)
    consumer.close()
    other = json.loads(task.value())
    other["repository"]["full_name"] = "mallory/pytorch"
    tried = {}  # delivery → who, and where
    for user in ("crcr-ingest", "crcr-reporter", "crcr-redeliver", "crcr-keda"):
        producer = Producer(client(brokers, user))
        for topic, tier in itertools.product(topics_of(brokers, user, "Write"), range(1, 5)):
            one = str(uuid.uuid4())
            tried[one] = f"{user}: {topic}, to dispatch.l{tier}"
            value = json.dumps(other) if topic == "crcr.events" else task.value()  # any event of the upstream may come from there
            producer.produce(topic, value, task.key(), headers={**dict(task.headers()), "delivery": one, "tier": f"L{tier}",
                                                                "to_topic": f"crcr.dispatch.l{tier}", "not_before_ms": "1"})
        assert producer.flush(60) == 0
    assert len({where.split(",")[0] for where in tried.values()}) == 11, tried.values()

    # 3 topics to 4 tiers; 2 logins with 4 events each.
    for role, refused in (("delay", 12), ("l1", 8), ("l2", 8), ("l3", 8), ("l4", 8)):
        wait_for(f"{role} to refuse it", lambda r=role, n=refused: relay.metric("dispatcher", "crcr_dlq_total", role=r) >= n)
    _, _, good = relay.deliver(pull_request(number=80))

    def sent():
        return {one["body"]["client_payload"]["delivery_id"] for one in relay.requests() if one["path"].endswith("/dispatches")}
    wait_for("the next pull request to be sent", lambda: good in sent())
    assert not {tried[one] for one in sent() & set(tried)}


def test_the_user_that_makes_topics_raises_a_value_and_reads_and_writes_nothing(brokers):
    admin = AdminClient(client(brokers, "admin"))
    lower = ConfigResource("topic", "crcr.reconcile", {"retention.ms": "86400000", "segment.ms": "86400000"})
    admin.alter_configs([lower])[lower].result(30)

    def raised():
        code, said = ctl(brokers, "crcr-topics", "topics", "create")
        assert code == 0, said
        return "crcr.reconcile: retention.ms raised from 86400000 to 604800000" in said
    wait_for("the value to be raised", raised)
    wait_for("the topics to be as in their file", lambda: ctl(brokers, "crcrctl", "topics", "check")[0] == 0)
    assert not may_read(brokers, "crcr-topics", "crcr.events") and not may_write(brokers, "crcr-topics", "crcr.events")


def test_other_clusters_get_the_same_rights():
    assert {right for right in of_acls() if right[0] not in ("crcr-topics", "crcr-ui")} == of_manifests()
    made = subprocess.run([K8S / "components/strimzi/make-users"], capture_output=True, text=True, check=True, timeout=60)
    assert made.stdout == (K8S / "components/strimzi/users.yaml").read_text(), "run components/strimzi/make-users >users.yaml"
