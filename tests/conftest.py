"""Shared by integration and e2e: the import path, one real Kafka for the whole run, and what runs first or not at all."""
import importlib.util
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lib.kafka import Kafka  # noqa: E402 (after the path is set)
from lib.relay import Relay  # noqa: E402

Relay.partitions = 4  # a broker that many tests share spends most of its time on partitions

# An optional extra: nothing installs it. tests/run --all says when it was not there.
collect_ignore = [] if importlib.util.find_spec("chdb") else ["integration/test_clickhouse_queries.py"]

# What takes longest goes first: files are given to workers in this order, and all workers end together.
FIRST = ("test_dispatcher_breaker", "test_dispatcher_faults", "test_crcrctl_dlq", "test_dispatcher_answers",
         "test_reporter_aggregate", "test_reporter_rebuild_faults", "test_crcrctl_redeliver", "test_dispatcher_mark",
         "test_reporter_comments", "test_reporter", "test_k8s_manifests", "test_allowlist_alive", "test_broker_errors", "test_dispatcher_reruns",
         "test_runbook", "test_reporter_forward", "test_crcrctl_probe", "test_crcrctl_replay", "test_reporter_rebuild",
         "test_dispatcher_budget", "test_topics", "test_reporter_standstill",
         "test_recovery", "test_l3_labels", "test_nothing_is_lost", "test_reruns", "test_check_run_storm",
         "test_callbacks")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes long, or much of the machine; only tests/run --all runs it")


def pytest_collection_modifyitems(items):
    place = {name: number for number, name in enumerate(FIRST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(FIRST)))


@pytest.fixture(scope="session")
def kafka_node(tmp_path_factory):
    """A real broker that tests share, each with a topic prefix of its own. Not to be stopped or frozen: a
    test that does so makes its own with Kafka()."""
    node = Kafka(tmp_path_factory.mktemp("kafka")).start()
    yield node
    node.stop()
