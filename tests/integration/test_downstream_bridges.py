"""What start.yml of each bridge hands over: the whole payload, as large as GitHub lets a dispatch be, whatever is in it."""
import base64
import json

import pytest

from lib import bridges
from lib.relay import payload

TITLES = "größer ✓ $HOME $(exit 1) `exit 1` ' \" \\ \\u0041\n::error::x\r\n{{x}} ${{ x }} \x7f"


def handed_over(site):
    """What the build gets, as JSON."""
    [asked] = site.asked
    if site.NAME == "gitlab":
        return asked["client_payload"]
    return json.loads(asked["meta_data"]["crcr-payload"] if site.NAME == "buildkite" else
                      base64.b64decode(asked["crcr_payload"]))


@pytest.fixture(params=[bridges.Buildkite, bridges.GitLab, bridges.Jenkins], ids=lambda site: site.NAME)
def site(request, tmp_path):
    one = request.param(tmp_path / "site", "https://relay.example", "file:///nowhere", None)
    yield one
    one.close()


def test_the_largest_payload_of_a_dispatch_comes_whole(site):
    body = payload("pull_request/opened.json")
    body["pull_request"]["title"] = body["pull_request"]["head"]["ref"] = TITLES
    given = {"event_type": "pull_request", "delivery_id": "d-1", "callback_token": "a.b.c", "payload": body}
    room = 65_535 - len(json.dumps(given).encode())
    body["pull_request"]["body"] += "x" * room
    assert len(json.dumps(given).encode()) == 65_535
    assert "started " in site.start(json.dumps({"action": "pull_request", "client_payload": given}))
    assert handed_over(site) == given
    if site.NAME == "jenkins":
        site.environment((bridges.FOLDER / "jenkins/Jenkinsfile").read_text())  # it fits into a variable
    if site.NAME == "buildkite":
        assert site.asked[0]["env"]["UPSTREAM_SHA"] == body["pull_request"]["head"]["sha"]


def test_a_push_is_handed_over_with_its_commit(site):
    body = payload("push/1.json")
    given = {"event_type": "push", "delivery_id": "d-2", "callback_token": "a.b.c", "payload": body}
    site.start(json.dumps({"action": "push", "client_payload": given}))
    assert handed_over(site) == given
    if site.NAME == "buildkite":
        assert site.asked[0]["env"] == {"UPSTREAM_REPOSITORY": body["repository"]["full_name"], "UPSTREAM_SHA": body["after"]}
        assert site.asked[0]["message"] == f"push {body['ref']}"
