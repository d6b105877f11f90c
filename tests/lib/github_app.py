"""The simulated GitHub that `crcrctl app` and `crcrctl redeliver` ask as the App; what they ask is held to GitHub's description."""
import uuid

import pytest

from lib.relay import pull_request
from lib.sim import Inbox, Sim
from openapi.validate import problems


class GitHub(Sim):
    """The simulator with a list of deliveries."""

    def remember(self, status, number=1, guid=None, event="pull_request", body=None, **more):
        guid = guid or str(uuid.uuid4())
        said = self.send("POST", "/_sim/webhook", {
            "event": event, "guid": guid, "status_code": status,
            "payload": body or pull_request(number=number), **more})
        assert said[0] == 201, said
        return guid

    def asked(self, part, path="/app/hook/deliveries"):
        return [r for r in self.requests() if r["path"].startswith(path + part)]

    def settings(self):
        return {"GITHUB_APP_ID": "12345", "GITHUB_APP_PRIVATE_KEY_FILE": str(self.key),
                "CRCR_GITHUB_API_URL": f"http://127.0.0.1:{self.port}"}


@pytest.fixture(scope="module")
def simulator(tmp_path_factory):
    inbox = Inbox()
    one = GitHub(tmp_path_factory.mktemp("sim"), inbox)
    yield one
    inbox.close()
    assert one.process.stop() == 0, one.process.tail()


@pytest.fixture
def sim(simulator):
    simulator.send("POST", "/_sim/reset")
    yield simulator
    assert [problem for request in simulator.asked("", "/app") for problem in problems(request)] == []
