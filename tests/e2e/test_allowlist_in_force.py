"""One bad line in the allowlist stops nothing: the last good version stays in force."""
from lib.processes import wait_for
from lib.relay import ALLOWLIST, pull_request

BAD = "L1: [org-one/backend-one]\nL4:\n  - org-four/backend-four: @oncall\n"


def dispatched(relay, delivery):
    return sorted(d["repo"] for d in relay.state()["dispatches"]
                  if d["client_payload"]["delivery_id"] == delivery)


def test_a_bad_file_is_named_by_line_and_column_and_changes_nothing(fresh_relay):
    relay = fresh_relay(environment={"ALLOWLIST_TTL_SECONDS": "1"})
    relay.start_all()
    relay.allowlist_file.write_text(BAD)
    relay.parts["dispatcher"].wait_text("allowlist_refused", 30)
    assert "allowlist.yml:3:28" in relay.parts["dispatcher"].text()
    _, _, delivery = relay.send_webhook(pull_request(number=1))
    wait_for("all four are still dispatched", lambda: len(dispatched(relay, delivery)) == 4)
    assert relay.metric("dispatcher", "crcr_allowlist_valid") == 0
    said = wait_for("the pages to say so", lambda: relay.api("/api/crcr/summary")["allowlist"]["error"])
    assert "allowlist.yml:3:28" in said

    # A restart while the file is bad keeps the last good version: it is in the topic.
    relay.parts["dispatcher"].stop()
    relay.start("dispatcher")
    relay.wait_ready("dispatcher")
    _, _, delivery = relay.send_webhook(pull_request(number=2))
    wait_for("all four are dispatched after a restart", lambda: len(dispatched(relay, delivery)) == 4)

    # Mended: the new repository is in force after the time to live.
    relay.allowlist_file.write_text(ALLOWLIST + "  - org-five/backend-five: dave\n")
    wait_for("the mended file to be in force",
             lambda: relay.metric("dispatcher", "crcr_allowlist_valid") == 1)
    wait_for("the pages to be content", lambda: relay.api("/api/crcr/summary")["allowlist"]["error"] is None)
    def new_repo_is_dispatched():
        _, _, again = relay.send_webhook(pull_request(number=3))
        wait_for("a dispatch", lambda: len(dispatched(relay, again)) >= 4)
        return "org-five/backend-five" in dispatched(relay, again)
    wait_for("the new repository to be dispatched", new_repo_is_dispatched, 30, every=1)


def test_a_push_that_touches_the_file_fetches_it_at_once(fresh_relay):
    relay = fresh_relay(environment={"ALLOWLIST_TTL_SECONDS": "3600"})
    relay.start_all()
    relay.allowlist_file.write_text(ALLOWLIST + "  - org-five/backend-five: dave\n")
    push = {"ref": "refs/heads/main", "before": "0" * 40, "after": "a" * 40, "deleted": False,
            "repository": {"full_name": "pytorch/pytorch", "default_branch": "main"},
            "commits": [{"added": [], "removed": [], "modified": [".github/allowlist.yml"]}]}
    assert relay.send_webhook(push, event="push")[0] == 202
    def new_repo_is_dispatched():
        _, _, again = relay.send_webhook(pull_request(number=3))
        wait_for("a dispatch", lambda: len(dispatched(relay, again)) >= 4)
        return "org-five/backend-five" in dispatched(relay, again)
    wait_for("the new repository to be dispatched", new_repo_is_dispatched, 30, every=1)


def test_without_any_allowlist_events_wait_and_none_is_lost(fresh_relay):
    relay = fresh_relay(environment={"ALLOWLIST_TTL_SECONDS": "1"})
    relay.allowlist_file.unlink()
    relay.start_github()
    for name in ("ingest", "dispatcher"):
        relay.start(name)
    relay.wait_ready("ingest")
    _, _, delivery = relay.send_webhook(pull_request(number=5))
    relay.parts["dispatcher"].wait_text("allowlist", 30)
    assert dispatched(relay, delivery) == []
    relay.allowlist_file.write_text(ALLOWLIST)
    wait_for("the event is dispatched once there is a list",
             lambda: len(dispatched(relay, delivery)) == 4, 60)
