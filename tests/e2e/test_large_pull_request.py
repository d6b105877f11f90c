"""A pull request of nearly 25 MiB still arrives as a dispatch on which the downstreams' workflows run
(payload_fit). Both templates are evaluated on the very body that GitHub got."""
import json
import re

import pytest

from lib.actions import FOLDER, REUSABLE, Expression
from lib.kafka import read_topic
from lib.processes import ROOT, wait_for
from lib.relay import http, payload, pull_request
from lib.vendor import sha_of

TEMPLATES = {"the upstream's": [ROOT / "tests/e2e/workflows/ci-integration.yml"],
             "ours": [FOLDER / "workflow.yml", REUSABLE]}
REPO = "org-four/backend-four"
MIB = 1 << 20
# What workflows of downstreams read: it is never cut.
KEPT = ["action", "number", "pull_request.number", "pull_request.title", "pull_request.html_url", "pull_request.head.sha",
        "pull_request.head.ref", "pull_request.head.label", "pull_request.base.sha", "pull_request.base.ref",
        "pull_request.draft", "pull_request.merged", "pull_request.user.login", "repository.full_name", "after", "ref",
        "sender.login"]


def expressions(paths):
    """Every expression of the files that reads the dispatch: within ${{ }}, and what is bare after `if:`."""
    text = "".join(path.read_text() for path in paths)
    found = re.findall(r"\$\{\{(.*?)\}\}", text, re.S)
    found += [one for one in re.findall(r"^\s*if: (.+)$", text, re.M) if "${{" not in one]
    return [one for one in found if "client_payload" in one]


def inflated(body):
    """All that a webhook can be made of, up to GitHub's 25 MB."""
    owner = body.get("pull_request", body)
    person = body["sender"]
    deep = {"end": True}
    for _ in range(50):
        deep = {"inner": deep, "text": "§" * 200, "list": [1, {"a": None}]}
    owner["requested_reviewers"] = [{**person, "login": f"reviewer-{i}"} for i in range(3000)]
    owner["assignees"] = owner["requested_reviewers"][:500]
    owner["labels"] = [{"id": i, "name": f"l-{i}", "description": "d" * 400, "color": "ffffff"} for i in range(1500)]
    owner["news_of_tomorrow"] = [deep] * 20
    body["repository"]["custom_properties"] = {f"property-{i}": "v" * 50 for i in range(3000)}
    for i in range(2000):
        body["repository"][f"thing{i}_url"] = "https://api.github.com/things/" + "x" * 60
    if "pull_request" in body:
        owner["title"] = "Größe \"zählt\" 🚀 \\ </script>"
    left = int(24.9 * MIB) - len(json.dumps(body))
    owner["body"] = "A long story. 0123456789\n" * (left // 27)
    return body


def at(value, path):
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def sent(relay, body, event):
    raw = json.dumps(body).encode()
    assert 24 * MIB < len(raw) < 25 * MIB
    status, _, delivery = relay.deliver(raw, event=event)
    assert status == 202
    return wait_for("the dispatch", lambda: [one for one in relay.state()["dispatches"]
                                             if one["client_payload"]["delivery_id"] == delivery and one["repo"] == REPO],
                    90)[0]


@pytest.fixture(scope="module")
def large(relay):
    """[(the webhook's body, the dispatch that GitHub took)] of a pull request and of a push."""
    http("POST", relay.url("github", "/_sim/downstreams"), json.dumps({"repo": "*", "reports": False}).encode())
    pull = inflated(pull_request(number=7001, sha=sha_of(7001)))
    push = payload("push/1.json")
    push["repository"]["full_name"], push["deleted"], push["ref"] = "pytorch/pytorch", False, "refs/heads/main"
    return [(pull, sent(relay, pull, "pull_request")), (inflated(push), sent(relay, push, "push"))]


def test_it_is_within_githubs_limits_and_says_what_went(large):
    for body, dispatch in large:
        client = dispatch["client_payload"]
        assert dispatch["event_type"] == client["event_type"] == ("pull_request" if "number" in body else "push")
        assert len(client) <= 10
        assert len(json.dumps(client, ensure_ascii=False, separators=(",", ":")).encode()) < 64 * 1024
        assert len(json.dumps(client["payload"], ensure_ascii=False, separators=(",", ":")).encode()) <= 59_000
        trimmed = client["payload_trimmed"]
        links = ["_links", "*_url"] if "number" in body else ["*_url"]
        assert set(trimmed[:len(links)]) == set(links)
        assert any("body" in path for path in trimmed)


@pytest.mark.parametrize("template", TEMPLATES, ids=["upstream", "ours"])
def test_every_expression_of_both_templates_has_the_originals_value(large, template):
    found = expressions(TEMPLATES[template])
    assert len(found) >= 6
    for body, dispatch in large:
        for text in found:
            for action in (None, "closed"):
                values = []
                for one in (body, dispatch["client_payload"]["payload"]):
                    one = {**one, "action": action} if action else one
                    client = {**dispatch["client_payload"], "payload": one}
                    values.append(Expression(text, {"github": {"run_id": 5, "event": {"client_payload": client}}}).value())
                assert values[0] == values[1], text
                assert values[0] is not None or at(body, "pull_request.number") is None, text


@pytest.mark.parametrize("path", KEPT)
def test_what_workflows_read_is_kept(large, path):
    for body, dispatch in large:
        assert at(dispatch["client_payload"]["payload"], path) == at(body, path)
    pull, dispatch = large[0]
    kept = dispatch["client_payload"]["payload"]["pull_request"]
    assert [label["name"] for label in kept["labels"]] == [label["name"] for label in pull["pull_request"]["labels"]]
    for side in ("head", "base"):
        assert kept[side]["repo"]["full_name"] == pull["pull_request"][side]["repo"]["full_name"]


def test_what_cannot_fit_is_parked_with_the_reason(relay):
    body = pull_request(number=7002, sha=sha_of(7002), labels=[f"label-{i}-" + "x" * 40 for i in range(2000)])
    _, _, delivery = relay.deliver(body)
    rows = wait_for("it to be parked", lambda: [one for one in read_topic(relay.kafka, relay.topic("dlq"))
                                                if one.headers.get("delivery") == delivery], 60)
    assert {row.headers["class"] for row in rows} == {"refused"} and "must stay" in rows[0].headers["error"]
    assert not [one for one in relay.state()["dispatches"] if one["client_payload"]["delivery_id"] == delivery]
    outcomes = wait_for("the outcomes", lambda: [
        json.loads(one.value) for one in read_topic(relay.kafka, relay.topic("dispatches"))
        if one.headers["delivery"] == delivery])
    assert {one["outcome"] for one in outcomes} == {"failed"}
