"""A real Apache Kafka node of one's own, and what its topics hold."""
import collections
import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, NewTopic

from lib.ports import free_port
from lib.processes import BIN, ROOT, Process, wait_for

# key and headers are text, value is bytes; None where there is none. at_ms: when its writer says it was written.
Record = collections.namedtuple("Record", "key value headers partition offset at_ms")


MEMORY = pathlib.Path("/dev/shm")
MEMORY_MIN_BYTES = 4 << 30


def kafka_acls(*arguments):
    """Kafka's own tool for rights."""
    folder = subprocess.run(["bash", "-c", f". {ROOT}/deploy/local/lib.sh; kafka_dir"], capture_output=True, text=True,
                            check=True).stdout.strip()
    command = "kafka.admin.AclCommand" if "/kafka-3." in folder else "org.apache.kafka.tools.AclCommand"
    subprocess.run(["java", "-cp", f"{folder}/jars/*", "-XX:TieredStopAtLevel=1", command, *arguments], check=True,
                   capture_output=True, timeout=90)


class Kafka:
    """One KRaft node (deploy/local/kafka) that can be frozen, stopped and started again."""

    in_memory = False  # what it keeps is no file on a disk, where there is room: a sixth less of its CPU time

    def __init__(self, folder, also_on=None):
        """also_on: a second address where clients reach it, as `linked`."""
        self.folder = pathlib.Path(folder)
        self.port, self.controller = free_port(), free_port()
        self.brokers = f"127.0.0.1:{self.port}"
        self.properties, self.arguments, self.wrap = {}, [], []
        self.process = self.kept = None
        if also_on:
            self.linked = f"{also_on}:{free_port(also_on)}"
            ours = f"PLAINTEXT://{self.brokers},LINK://{self.linked}"
            self.properties = {
                "listeners": f"{ours},CONTROLLER://127.0.0.1:{self.controller}",
                "advertised.listeners": ours,
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LINK:PLAINTEXT,CONTROLLER:PLAINTEXT"}

    def start(self):
        try:
            self.begin()
            return self.wait_ready()
        except BaseException:
            self.stop()
            raise

    def begin(self):
        """Without waiting for it: a node of several answers only when most of them are there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.in_memory and not self.kept and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_MIN_BYTES:
            self.kept = tempfile.TemporaryDirectory(prefix="crcr-kafka-", dir=MEMORY)  # until nobody knows this node any more
            (self.folder / "data").symlink_to(self.kept.name)
        more = self.folder / "more.properties"
        more.write_text("".join(f"{name}={value}\n" for name, value in self.properties.items()))
        self.process = Process("kafka", [*self.wrap, ROOT / "deploy" / "local" / "kafka", "--dir", self.folder,
                                         "--port", self.port, "--controller-port", self.controller,
                                         "--properties", more, *self.arguments], self.folder)

    def wait_ready(self):
        self.process.wait_text("ready", 240)
        return self

    def stop(self):
        if self.process is not None:
            self.process.stop(40)

    def kill(self):
        """As a power cut would end it; start() goes on with what is on the disk."""
        self._signal(signal.SIGKILL)
        self.process.popen.wait(30)

    def _signal(self, number):
        os.kill(int((self.folder / "kafka.pid").read_text()), number)

    def freeze(self):
        """Connections stay, answers do not come. kill(2) returns before the threads have stopped: on a
        busy machine they go on for tens of milliseconds, enough to acknowledge what comes next."""
        self._signal(signal.SIGSTOP)
        wait_for("the broker to stand still", self._stands_still, every=0.005)

    def _stands_still(self):
        tasks = pathlib.Path("/proc") / (self.folder / "kafka.pid").read_text().strip() / "task"
        states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks.iterdir()]
        return set(states) == {"T"}

    def thaw(self):
        self._signal(signal.SIGCONT)


class KafkaTrio:
    """Three nodes, each broker and controller, on a switch of three: three copies of everything, two of which must have a
    record before it is acknowledged."""

    CLUSTER = "Y3Jjci10cmlvLWNsdXN0ZQ"  # 22 characters: 16 bytes in base64

    def __init__(self, folder, switch):
        self.nodes = [Kafka(pathlib.Path(folder) / f"node{number}") for number in (1, 2, 3)]
        voters = ",".join(f"{number}@{switch.address(number - 1)}:{node.controller}" for number, node in enumerate(self.nodes, 1))
        for number, node in enumerate(self.nodes, 1):
            own, node.wrap = switch.address(number - 1), switch.wrap(number - 1)
            node.brokers = f"{own}:{free_port()}"
            node.arguments = ["--cluster-id", self.CLUSTER]
            node.properties = {
                "node.id": number, "controller.quorum.voters": voters,
                # The first is for who starts it, to see that it listens.
                "listeners": f"PLAINTEXT://127.0.0.1:{node.port},LINK://{node.brokers},CONTROLLER://{own}:{node.controller}",
                "advertised.listeners": f"LINK://{node.brokers}", "inter.broker.listener.name": "LINK",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LINK:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "default.replication.factor": 3, "min.insync.replicas": 2,
                "offsets.topic.replication.factor": 3, "transaction.state.log.replication.factor": 3,
                "transaction.state.log.min.isr": 2, "unclean.leader.election.enable": "false",
                # A node that is cut off, or hangs, is missed after so long, also by those who wait for its answer (30 s otherwise,
                # in which no partition had two copies).
                "broker.session.timeout.ms": 6000, "broker.heartbeat.interval.ms": 1000,
                "replica.lag.time.max.ms": 6000, "controller.socket.timeout.ms": 3000,
                "replica.socket.timeout.ms": 5000}
        self.brokers = ",".join(node.brokers for node in self.nodes)

    def start(self):
        try:
            for node in self.nodes:
                node.begin()
            for node in self.nodes:
                node.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def whole(self):
        """Whether each partition has all its copies: says each node, for one that was cut off goes by what it knew before."""
        try:
            said = [Consumer({"bootstrap.servers": node.brokers, "group.id": "tests-read-only"}).list_topics(None, 5)
                    for node in self.nodes]
        except KafkaException:
            return False
        return all(len(partition.isrs) == len(partition.replicas)
                   for topics in said for topic in topics.topics.values() for partition in topic.partitions.values())

    def stop(self):
        for node in self.nodes:
            node.stop()


TOPICS = ROOT / "deploy" / "topics" / "topics.conf"


def few_partitions(most):
    """The file of our topics as deploy has it, but with few partitions, which cost a shared broker less."""
    return re.sub(r"^([a-z]\S* +)(\d+)", lambda found: f"{found[1]}{min(int(found[2]), most)}", TOPICS.read_text(),
                  flags=re.MULTILINE)


made = {}  # by broker and file: the topics that were made first


def create_topics(brokers, prefix, text=None):
    """Makes all our topics under that prefix. text: of a file for `crcrctl topics create`, instead of deploy's. The first of
    a broker are made as deploy does. The others are made like them, all in one request: a quarter of the broker's work."""
    text = text or TOPICS.read_text()
    if (brokers, text) not in made:
        create_as_deploy(brokers, prefix, text)
        made[brokers, text] = topics_of(brokers, prefix)
        return
    admin = AdminClient({"bootstrap.servers": brokers})
    new = [NewTopic(prefix + name, *sizes, config=config) for name, (sizes, config) in made[brokers, text].items()]
    for done in admin.create_topics(new, request_timeout=60).values():
        done.result(60)

    def is_known():
        topic, = admin.list_topics(new[-1].topic, timeout=10).topics.values()
        return not topic.error and all(part.leader >= 0 for part in topic.partitions.values())
    wait_for("the broker to know the topics", is_known, 60)


def topics_of(brokers, prefix):
    """By their names without the prefix: (number of partitions, of copies), and what is configured."""
    admin = AdminClient({"bootstrap.servers": brokers})
    topics = {name: topic for name, topic in admin.list_topics(timeout=30).topics.items() if name.startswith(prefix)}
    described = admin.describe_configs([ConfigResource("topic", name) for name in topics])
    configs = {topic.name: {name: entry.value for name, entry in done.result(30).items()
                            if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value} for topic, done in described.items()}
    return {name.removeprefix(prefix): ((len(topic.partitions), len(topic.partitions[0].replicas)), configs[name])
            for name, topic in topics.items()}


def create_as_deploy(brokers, prefix, text):
    environment = {"PATH": os.environ["PATH"], "KAFKA_BROKERS": brokers, "CRCR_TOPIC_PREFIX": prefix}
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
        if name in os.environ:
            environment[name] = os.environ[name]

    def done():
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(text)
            file.flush()
            command = subprocess.run([BIN / "crcrctl", "topics", "create", "--file", file.name], cwd=ROOT, timeout=120,
                                     env=environment, capture_output=True, text=True)
        # 3: the broker is not that far yet; a young one on a busy machine takes longer than crcrctl waits.
        assert command.returncode in (0, 3), command.stdout + command.stderr
        return command.returncode == 0
    wait_for("the topics to be made", done, 120, every=0.5)


def configure_topic(brokers, topic, **config):
    """Sets all configuration of a topic, and returns once its broker goes by it. A broker tells a configuration a
    moment before it applies it, and applies them in order: when it tells the second, the first is in force."""
    admin = AdminClient({"bootstrap.servers": brokers})
    for each in ({**config, "file.delete.delay.ms": "60001"}, config):
        done, = admin.alter_configs([ConfigResource("topic", topic, each)]).values()
        done.result(30)

        def known():
            found, = admin.describe_configs([ConfigResource("topic", topic)]).values()
            now = {name: entry.value for name, entry in found.result(30).items()}
            return all(now[name] == text for name, text in {"file.delete.delay.ms": "60000", **each}.items())
        wait_for(f"the broker to tell {each} of {topic}", known)


def write(brokers, topic, key, value, headers=None, timestamp_ms=None, compression="none", timeout=30):
    """Appends one record and waits for its acknowledgement. With compression (gzip) it may be larger than the topic
    takes: the broker measures what it is sent."""
    failures = []
    producer = Producer({"bootstrap.servers": brokers, "acks": "all", "compression.type": compression,
                         "partitioner": "murmur2_random", "message.max.bytes": (27 if compression == "none" else 40) << 20})
    producer.produce(topic, key=key, value=value, headers=list((headers or {}).items()),
                     timestamp=timestamp_ms or 0,
                     on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(timeout) == 0 and not failures, failures


def write_all(brokers, topic, records, batch=10_000, partition=-1):
    """Many records at once, each (key, value, headers, milliseconds since 1970), in that order. A fetch gets
    whole batches. partition -1: by key."""
    failures = []
    producer = Producer({"bootstrap.servers": brokers, "acks": "all", "partitioner": "murmur2_random",
                         "batch.num.messages": batch})
    for key, value, headers, at_ms in records:
        producer.produce(topic, key=key, value=value, headers=list(headers.items()), timestamp=at_ms, partition=partition,
                         on_delivery=lambda error, _: failures.append(error) if error else None)
        producer.poll(0)
    assert producer.flush(60) == 0 and not failures, failures


def delete_records(brokers, topic, before):
    """As kafka-delete-records does, and retention: each partition begins at before[partition] then. confluent_kafka cannot
    (before 2.6); librdkafka can."""
    c = ctypes.CDLL("librdkafka.so.1")
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_queue_new", "rd_kafka_topic_partition_list_new",
                 "rd_kafka_DeleteRecords_new", "rd_kafka_queue_poll", "rd_kafka_event_DeleteRecords_result",
                 "rd_kafka_DeleteRecords_result_offsets"):
        getattr(c, name).restype = ctypes.c_void_p
    pointer, reason = ctypes.c_void_p, ctypes.create_string_buffer(256)
    conf = pointer(c.rd_kafka_conf_new())
    c.rd_kafka_conf_set(conf, b"bootstrap.servers", brokers.encode(), reason, 256)
    client = pointer(c.rd_kafka_new(0, conf, reason, 256))
    queue, offsets = pointer(c.rd_kafka_queue_new(client)), pointer(c.rd_kafka_topic_partition_list_new(len(before)))
    for partition, offset in before.items():
        c.rd_kafka_topic_partition_list_add(offsets, topic.encode(), partition)
        assert not c.rd_kafka_topic_partition_list_set_offset(offsets, topic.encode(), partition, ctypes.c_int64(offset))
    request = (pointer * 1)(c.rd_kafka_DeleteRecords_new(offsets))
    c.rd_kafka_DeleteRecords(client, request, ctypes.c_size_t(1), None, queue)
    event = pointer(c.rd_kafka_queue_poll(queue, 30_000))
    assert event and not c.rd_kafka_event_error(event), f"{topic}: records were not deleted"
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "tests-read-only"})
    for partition, offset in before.items():
        assert consumer.get_watermark_offsets(TopicPartition(topic, partition), 10)[0] == offset
    consumer.close()
    for free, what in ((c.rd_kafka_event_destroy, event), (c.rd_kafka_DeleteRecords_destroy, pointer(request[0])),
                       (c.rd_kafka_topic_partition_list_destroy, offsets), (c.rd_kafka_queue_destroy, queue),
                       (c.rd_kafka_destroy, client)):
        free(what)


def read_topic(brokers, topic, timeout=30):
    """Every record that the topic holds now, in order within each partition."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "tests-read-only",
                         "enable.auto.commit": False, "enable.partition.eof": False,
                         "fetch.message.max.bytes": 27 << 20})
    try:
        partitions = consumer.list_topics(topic, timeout).topics[topic].partitions
        ends = {}
        for number in partitions:
            low, high = wait_for(f"the offsets of {topic} {number}",
                                 lambda number=number: watermarks(consumer, topic, number), timeout)
            if high > low:
                ends[number] = (low, high)
        consumer.assign([TopicPartition(topic, number, low) for number, (low, _) in ends.items()])
        return _read_until(consumer, topic, {number: high for number, (_, high) in ends.items()},
                           timeout)
    finally:
        consumer.close()


# What a client says while the metadata of a thawed or young broker is not consistent yet.
NOT_YET = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError._UNKNOWN_PARTITION)


def watermarks(consumer, topic, partition):
    """None while the broker is finding its feet after a freeze."""
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, partition), 10)
    except KafkaException as error:
        if error.args[0].retriable() or error.args[0].code() in NOT_YET:
            return None
        raise


def _read_until(consumer, topic, ends, timeout):
    records = []
    open_partitions = set(ends)
    while open_partitions:
        message = consumer.poll(timeout)
        assert message is not None, f"{topic}: nothing came in {timeout} s"
        assert message.error() is None, message.error()
        records.append(Record(
            message.key().decode() if message.key() is not None else None, message.value(),
            {name: value.decode() for name, value in message.headers() or []},
            message.partition(), message.offset(), message.timestamp()[1]))
        for number in list(open_partitions):
            position = consumer.position([TopicPartition(topic, number)])[0].offset
            if position >= ends[number]:
                open_partitions.discard(number)
    return records
