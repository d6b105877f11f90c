"""One Redis and one dispatcher for all tests of this folder; a test that breaks something makes
its own with `own`."""
import pathlib
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[2])]
from dispatcher_env import Bench  # noqa: E402


@pytest.fixture(scope="session")
def shared(kafka_node, redis_node, tmp_path_factory):
    bench = Bench(tmp_path_factory.mktemp("shared"), kafka_node, redis_node).start().ready()
    yield bench
    bench.close()


@pytest.fixture
def bench(shared):
    shared.redis.set("crcr:epoch", "1")  # others flush
    yield shared
    shared.clear_script()


@pytest.fixture
def own(kafka_node, redis_node, tmp_path):
    """A bench that the test starts, and breaks, itself."""
    made = []

    def make(**options):
        made.append(Bench(tmp_path / str(len(made)), kafka_node, redis_node, **options))
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == "call" and report.failed:
        for value in item.funcargs.values():
            if isinstance(value, Bench):
                report.sections.append(("relay", value.relay.logs()))
