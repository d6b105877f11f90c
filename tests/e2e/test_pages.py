"""What people see in a browser: the page and its JSON."""
import urllib.request

from lib.processes import wait_for
from lib.relay import http, pull_request


def test_page_is_served_with_a_strict_policy(relay):
    with urllib.request.urlopen(relay.url("hud", "/")) as answer:
        page = answer.read().decode()
        assert "text/html" in answer.headers["Content-Type"]
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "<html" in page.lower()


def test_json_follows_a_pull_request(relay):
    _, _, delivery = relay.send_webhook(pull_request(number=777))
    wait_for("the delivery to be completed", lambda: [
        job["status"] for job in (relay.api(f"/api/crcr/deliveries/{delivery}") or {}).get("jobs", [])
    ] == ["completed"] * 3, 60)
    assert delivery in str(relay.api("/api/crcr/prs/777"))
    assert relay.api("/api/crcr/repos/org-two/backend-two") is not None
    summary = relay.api("/api/crcr/summary")
    assert "org-two/backend-two" in str(summary)


def test_a_refused_dispatch_is_shown_with_its_reason(relay):
    relay.script({"method": "POST", "path": "*/dispatches", "repo": "org-two/backend-two", "count": 1, "status": 404,
                  "body": {"message": "Not Found"}})
    _, _, delivery = relay.send_webhook(pull_request(number=778))

    def refused():
        downstreams = (relay.api(f"/api/crcr/deliveries/{delivery}") or {"downstreams": []})["downstreams"]
        return [one["dispatch"] for one in downstreams if one["repo"] == "org-two/backend-two"
                and one["dispatch"]["outcome"] == "failed"]
    shown = wait_for("the refusal to be shown", refused)[0]
    assert shown["http_status"] == 404 and "Not Found" in shown["error"]


def test_unknown_things_are_404_with_a_detail(relay):
    for path in ("/api/crcr/deliveries/none-such", "/api/crcr/prs/424242", "/api/crcr/nothing"):
        status, body = http("GET", relay.url("hud", path))
        assert status == 404 and b"detail" in body, path
    status, _ = http("POST", relay.url("hud", "/api/crcr/summary"), b"{}")
    assert status == 405
