"""Shared by integration and e2e: the import path, and one real Kafka for the whole run."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lib.kafka import Kafka  # noqa: E402 (after the path is set)


@pytest.fixture(scope="session")
def kafka_node(tmp_path_factory):
    """A real broker that tests share, each with a topic prefix of its own. Not to be stopped or frozen: a
    test that does so makes its own with Kafka()."""
    node = Kafka(tmp_path_factory.mktemp("kafka")).start()
    yield node
    node.stop()
