"""One relay a module; a test that breaks something makes its own with `fresh_relay`."""
import pytest

from lib.redis_server import redis_server
from lib.relay import Relay
from openapi.validate import assert_conforms



@pytest.fixture(scope="module")
def relay(kafka_node, tmp_path_factory):
    folder = tmp_path_factory.mktemp("relay")
    with redis_server(folder / "redis") as redis:
        one = Relay(folder, kafka_node.brokers, redis)
        try:
            yield one.start_all()
        finally:
            one.stop()
        assert_conforms(folder)


@pytest.fixture
def fresh_relay(kafka_node, tmp_path):
    """Makes relays that the test starts itself; all are stopped and checked at its end."""
    made = []
    with redis_server(tmp_path / "redis") as redis:
        def make(**options):
            made.append(Relay(tmp_path, kafka_node.brokers, redis, **options))
            return made[-1]
        yield make
        for one in made:
            one.stop()
        assert_conforms(tmp_path)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows the end of every daemon's log."""
    report = (yield).get_result()
    if report.when == "call" and report.failed:
        for value in item.funcargs.values():
            if isinstance(value, Relay):
                report.sections.append(("relay", value.logs()))
