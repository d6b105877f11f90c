"""Shared by integration and e2e: the import path, one real Kafka for the whole run, and what runs first or not at all."""
import collections
import contextlib
import importlib.util
import pathlib
import secrets
import shutil
import sys
import tempfile

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

# What Python makes of the tests is kept: each worker reads all of them, and to make it takes four fifths of that.
sys.dont_write_bytecode = False
sys.pycache_prefix = str(pathlib.Path(__file__).resolve().parents[1] / "build" / "python")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lib.kafka import Kafka, create_topics  # noqa: E402 (after the path is set)
from lib.mock_kafka import MockKafka  # noqa: E402
from lib.processes import wait_for  # noqa: E402
from lib.redis_server import RedisServer  # noqa: E402
from lib.relay import Relay  # noqa: E402

Relay.partitions = 4  # a broker that many tests share spends most of its time on partitions
Kafka.in_memory = True

# An optional extra: nothing installs it. tests/run --all says when it was not there.
collect_ignore = [] if importlib.util.find_spec("chdb") else ["integration/test_clickhouse_queries.py"]

# What takes longest goes first: files are given to workers in this order, and all workers end together.
FIRST = ("test_crcrctl_levels", "test_l3_labels", "test_crcrctl_dlq", "test_dispatcher_faults", "test_recovery",
         "test_pages_browser", "test_crcrctl_redeliver", "test_reporter", "test_crcrctl_probe", "test_dispatcher_answers",
         "test_dispatcher_breaker", "test_dispatcher_routing", "test_reporter_aggregate", "test_callbacks",
         "test_nothing_is_lost", "test_dispatcher_mark", "test_reruns", "test_reporter_comments", "test_runbook",
         "test_broker_errors", "test_check_run_storm", "test_reporter_forward", "test_ingest_flood", "test_crcrctl",
         "test_ingest_webhooks", "test_reporter_rebuild", "test_dispatcher_reruns", "test_dispatcher_budget",
         "test_k8s_manifests", "test_dispatcher_fan_out", "test_pages_flood", "test_pages_unread", "test_reporter_limits",
         "test_topics", "test_pages_time", "test_dispatcher_upgrade", "test_reporter_pause", "test_monitoring",
         "test_lua_cost", "test_release", "test_records_removed", "test_pipeline", "test_check_run_crowd",
         "test_reporter_rebuild_faults", "test_crcrctl_replay", "test_reporter_commits", "test_reporter_refusals",
         "test_reporter_sweep", "test_other_cis", "test_secrets")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes long, or much of the machine; only tests/run --all runs it")


def pytest_collection_modifyitems(items):
    place = {name: number for number, name in enumerate(FIRST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(FIRST)))


# Each Kafka has to start and to warm up: five workers have one together, which the process that gives out the tests starts
# and stops.
WORKERS_OF_ONE = 5
LentKafka = collections.namedtuple("LentKafka", "brokers folder")
lent = {}  # by number; in that process only


@pytest.hookimpl(optionalhook=True)  # pytest-xdist's
def pytest_configure_node(node):
    number = int(node.workerinput["workerid"].removeprefix("gw")) // WORKERS_OF_ONE
    if number not in lent:
        lent[number] = Kafka(tempfile.mkdtemp(prefix="crcr-kafka-"))
        lent[number].begin()
    node.workerinput["kafka"] = [lent[number].brokers, str(lent[number].folder)]


def pytest_sessionfinish():
    with contextlib.ExitStack() as each:
        for node in lent.values():
            each.callback(shutil.rmtree, node.folder)
            each.callback(node.stop)
            if (node.folder / "kafka.pid").exists():
                each.callback(node.kill)  # what it keeps goes with it
    lent.clear()


def is_up(brokers):
    try:
        return AdminClient({"bootstrap.servers": brokers}).list_topics(timeout=5).brokers
    except KafkaException:
        return False


@pytest.fixture(scope="session")
def kafka_node(request, tmp_path_factory):
    """A real broker that tests share, each with a topic prefix of its own. Not to be stopped or frozen: a
    test that does so makes its own with Kafka()."""
    if hasattr(request.config, "workerinput"):
        brokers, folder = request.config.workerinput["kafka"]
        wait_for("the broker of five workers", lambda: is_up(brokers), 240)
        yield LentKafka(brokers, pathlib.Path(folder))
        return
    node = Kafka(tmp_path_factory.mktemp("kafka")).start()
    yield node
    node.stop()


Topics = collections.namedtuple("Topics", "brokers prefix")


@pytest.fixture(scope="session")
def redis_node(tmp_path_factory):
    """A real Redis that tests share; a test that stops it makes its own with RedisServer()."""
    node = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield node
    node.stop()


@pytest.fixture(scope="module", params=["kafka", "embedded"])
def either_broker(request, tmp_path_factory):
    """Our topics on a real broker, then on the one of `deploy/try` (`crcr-sim broker`): what a newcomer is shown is the
    same on both."""
    if request.param == "kafka":
        node, prefix = request.getfixturevalue("kafka_node"), f"t{secrets.token_hex(4)}."
        create_topics(node.brokers, prefix)
        yield Topics(node.brokers, prefix)
        return
    broker = MockKafka(tmp_path_factory.mktemp("embedded")).start()
    yield Topics(broker.brokers, broker.prefix)
    broker.stop()
