"""A simulator a module, reset before each test; `start` makes one with arguments of its own."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from lib.processes import wait_for  # noqa: E402
from lib.sim import Inbox, Sim  # noqa: E402


@pytest.fixture
def inbox():
    one = Inbox()
    yield one
    one.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder, inbox = tmp_path_factory.mktemp("sim"), Inbox()
    sim = Sim(folder, inbox)
    sim.inbox = inbox
    yield sim
    assert sim.process.stop() == 0, sim.process.tail()
    inbox.close()


@pytest.fixture
def sim(shared):
    """The module's simulator, as after a start."""
    wait_for(
        "the end of the last test's callbacks",
        lambda: shared.send("POST", "/_sim/reset")[2] == {"callbacks_under_way": 0},
    )
    shared.tokens.clear()
    shared.inbox.requests.clear()
    shared.inbox.answers.clear()
    yield shared
    assert shared.process.running(), shared.process.tail()


@pytest.fixture
def start(tmp_path, inbox):
    made = []

    def make(*arguments):
        made.append(Sim(tmp_path, inbox, *arguments))
        made[-1].inbox = inbox
        return made[-1]

    yield make
    for one in made:
        assert one.process.stop() == 0, one.process.tail()
