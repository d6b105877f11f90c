"""One Redis, one issuer and one ingest for all tests of this folder; a test that breaks something makes its
own with `own`."""
import pathlib
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[2])]
from ingest_env import Ingest, Issuer  # noqa: E402
from lib.processes import wait_for  # noqa: E402


@pytest.fixture(scope="session")
def issuer():
    one = Issuer()
    yield one
    one.close()


@pytest.fixture(scope="session")
def shared(kafka_node, redis_node, issuer, tmp_path_factory):
    """An ingest that nothing is done to."""
    one = Ingest(tmp_path_factory.mktemp("ingest"), kafka_node.brokers, redis_node.endpoint, issuer,
                 RATE_LIMIT_PER_MIN="1000000", CRCR_PUBLIC_URL="https://crcr.example.org")
    one.publish_allowlist()
    one.start().wait_ready()
    wait_for("the allowlist to be read", lambda: one.callback({}, issuer.token())[0] != 503)
    yield one
    one.stop()


@pytest.fixture
def ingest(shared, redis_node):
    """The same, with an empty view that is consistent."""
    redis_node.topic_prefix = shared.prefix
    redis_node.client().flushall()
    redis_node.client().set("crcr:epoch", "1")
    return shared


@pytest.fixture
def own(kafka_node, redis_node, issuer, tmp_path):
    """Makes an ingest of the test's own."""
    made = []

    def make(**options):
        options.setdefault("brokers", kafka_node.brokers)
        options.setdefault("redis_endpoint", redis_node.endpoint)
        made.append(Ingest(tmp_path / str(len(made)), issuer=issuer, **options))
        redis_node.topic_prefix = made[-1].prefix
        return made[-1]
    yield make
    for one in made:
        one.stop()
