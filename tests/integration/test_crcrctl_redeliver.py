"""`crcrctl redeliver` between the simulated GitHub and a real broker: what GitHub could not hand over arrives
once, whatever ends it in the middle."""
import datetime
import json
import re
import secrets
import signal
import time

import pytest

from lib.ctl import Ctl
from lib.github_app import sim, simulator  # noqa: F401 (fixtures)
from lib.kafka import configure_topic
from lib.mock_kafka import MockKafka
from lib.processes import BIN, Process, wait_for
from lib.relay import pull_request


CREATED = {"action": "created", "check_run": {}, "repository": {"full_name": "pytorch/pytorch"}}


@pytest.fixture
def ctl(kafka_node, sim):
    one = Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.").create_topics()
    one.more = sim.settings()
    return one


def redeliver(ctl, *arguments, expect=0, **environment):
    return ctl("redeliver", "--rate", "1000", *arguments, expect=expect, **{**ctl.more, **environment})


def started(ctl, tmp_path, *arguments):
    return Process("redeliver", [BIN / "crcrctl", "redeliver", *arguments], tmp_path,
                   ctl.environment(**ctl.more))


def guids(ctl):
    return [record.headers["delivery"] for record in ctl.read("events")]


def ago(**delta):
    then = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(**delta)
    return then.isoformat(timespec="milliseconds").replace("+00:00", "Z")


# ---- what is published --------------------------------------------------------------------------------------
def test_what_was_not_delivered_is_published_as_ingest_would_have_stored_it(ctl, sim):
    body = pull_request(number=77, title_with_accent="é", a_number=1.50)
    guid = sim.remember(502, body=body)
    done = redeliver(ctl)
    assert "1 deliveries (1 attempts): 0 delivered, 0 already here, 1 published" in done.stdout
    record, = ctl.read("events")
    assert record.key == "pytorch/pytorch#77"
    assert json.loads(record.value) == body
    assert record.headers["delivery"] == guid and record.headers["source"] == "redelivered"
    assert record.headers["event"] == "pull_request" and record.headers["action"] == "opened"
    assert record.headers["pr"] == "77" and record.headers["head_sha"] == body["pull_request"]["head"]["sha"]
    assert abs(int(record.headers["received_ms"]) - time.time() * 1000) < 60000
    redeliver(ctl)
    began, ended = ctl.read("audit")  # a round that publishes nothing is none
    assert began.headers["verb"] == "redeliver" and ended.headers["result"].startswith("1 deliveries")


def test_who_cannot_be_noted_publishes_nothing(ctl, sim):
    sim.remember(502)
    configure_topic(ctl.brokers, ctl.prefix + "audit", **{"max.message.bytes": "100"})
    assert "nothing was done" in redeliver(ctl, expect=1).stderr
    assert ctl.read("events") == []


def test_escaped_nul_and_halves_of_surrogate_pairs_are_published_byte_for_byte(ctl, sim):
    body = pull_request(number=78)
    body["pull_request"]["body"] = "a\0b\ud800c"
    text = json.dumps({**body, "more\0": "\udc00"})
    guid = sim.remember(502)
    one, = (one["id"] for one in sim.state()["deliveries"] if one["guid"] == guid)
    sim.script({"method": "GET", "path": f"/app/hook/deliveries/{one}", "count": 1, "status": 200,
                "body": f'{{"id": {one}, "guid": "{guid}", "request": {{"headers": {{}}, "payload": {text}}}}}'})
    redeliver(ctl)
    record, = ctl.read("events")
    assert record.value.decode() == text and record.headers["pr"] == "78"


def test_every_page_is_read(ctl, sim):
    lost = {}
    for number in range(250):
        wanted = number % 50 == 0
        guid = sim.remember(500, number=1000 + number, **({} if wanted else {"event": "check_run", "body": CREATED}))
        if wanted:
            lost[guid] = f"pytorch/pytorch#{1000 + number}"
    said = redeliver(ctl).stdout
    assert "250 deliveries (250 attempts): 0 delivered, 0 already here, 5 published" in said
    assert "245 skipped (other_action 245)" in said
    assert {r.headers["delivery"]: r.key for r in ctl.read("events")} == lost
    assert [r["query"].get("per_page") for r in sim.asked("")][:3] == ["100"] * 3
    assert len(sim.asked("/")) == 5, "a payload was fetched that was not needed"


def test_what_was_delivered_is_not_even_listed(ctl, sim):
    """GitHub sends the App every check run of the upstream: pages of what was delivered would use up its budget."""
    for _ in range(250):
        sim.remember(200, event="check_run", body=CREATED)
    failed = [sim.remember(status, number=status) for status in (404, 500, 502, 504)]
    assert "4 deliveries (4 attempts): 0 delivered, 0 already here, 4 published" in redeliver(ctl).stdout
    assert sorted(guids(ctl)) == sorted(failed)
    assert [r["query"].get("status") for r in sim.asked("") if r["path"] == "/app/hook/deliveries"] == ["failure"]
    said = redeliver(ctl, "--all", "--dry-run").stdout
    assert "254 deliveries (254 attempts): 0 delivered, 4 already here, 0 to publish" in said, "--all lists all"


def test_a_github_that_does_not_know_the_filter_changes_nothing(ctl, sim):
    delivered, failed = sim.remember(202, number=1), sim.remember(503, number=2)
    everything = [one for one in sim.state()["deliveries"]]
    assert {one["guid"] for one in everything} == {delivered, failed}
    sim.script({"method": "GET", "path": "/app/hook/deliveries", "count": 1, "status": 200, "body": everything})
    assert "2 deliveries (2 attempts): 1 delivered, 0 already here, 1 published" in redeliver(ctl).stdout
    assert guids(ctl) == [failed]


def stored(ctl, guid):
    ctl.write("events", "pytorch/pytorch#1", json.dumps(pull_request(number=1)), event="pull_request", delivery=guid, pr=1,
              source="webhook")


def test_a_delivery_that_a_later_attempt_delivered_is_not_published(ctl, sim):
    guid = sim.remember(503)
    sim.remember(202, guid=guid, redelivery=True)
    stored(ctl, guid)
    assert "1 deliveries (1 attempts): 0 delivered, 1 already here, 0 published" in redeliver(ctl).stdout
    assert guids(ctl) == [guid]


def test_a_delivery_that_was_delivered_and_then_redelivered_in_vain_is_not_published(ctl, sim):
    guid = sim.remember(202)
    sim.remember(503, guid=guid, redelivery=True)
    stored(ctl, guid)
    assert "1 deliveries (1 attempts): 0 delivered, 1 already here, 0 published" in redeliver(ctl).stdout
    assert guids(ctl) == [guid]


def test_what_the_relay_stored_although_github_saw_no_2xx_is_already_here(ctl, sim):
    late = sim.remember(504, number=5)
    lost = sim.remember(504, number=6)
    ctl.write("events", "pytorch/pytorch#5", b"{}", event="pull_request", action="opened", delivery=late, pr=5,
              head_sha="a" * 40, received_ms=1, source="webhook")
    assert "0 delivered, 1 already here, 1 published" in redeliver(ctl).stdout
    assert sorted(guids(ctl)) == sorted([late, lost])


def test_an_event_stored_long_before_the_attempts_in_sight_is_found(ctl, sim):
    """Only a redelivery is young enough to be listed; its first attempt was stored long before."""
    guid = sim.remember(504, redelivery=True)
    old_ms = int((time.time() - 2 * 86400) * 1000)
    ctl.write("events", "pytorch/pytorch#1", b"{}", timestamp_ms=old_ms, event="pull_request", action="opened",
              delivery=guid, pr=1, head_sha="a" * 40, received_ms=1, source="webhook")
    assert "1 already here, 0 published" in redeliver(ctl).stdout


def test_all_brings_back_what_github_delivered_and_kafka_lost_and_only_that(ctl, sim):
    kept, lost, failed = sim.remember(202, 1), sim.remember(202, 2), sim.remember(503, 3)
    ctl.write("events", "pytorch/pytorch#1", json.dumps(pull_request(number=1)), event="pull_request",
              delivery=kept, pr=1, source="webhook")
    assert "0 delivered, 0 already here, 1 published" in redeliver(ctl).stdout
    done = redeliver(ctl, "--all").stdout
    assert "0 delivered, 2 already here, 1 published" in done, done
    assert sorted(guids(ctl)) == sorted([kept, lost, failed])
    assert "0 delivered, 3 already here, 0 published" in redeliver(ctl, "--all").stdout


def test_a_second_run_publishes_nothing(ctl, sim):
    for number in range(3):
        sim.remember(500, number=number + 1)
    assert "3 published" in redeliver(ctl).stdout
    assert "3 already here, 0 published" in redeliver(ctl).stdout
    assert len(guids(ctl)) == 3


def test_only_what_ingest_would_have_accepted_is_published(ctl, sim):
    other = pull_request()
    other["repository"]["full_name"] = "else/where"
    broken = pull_request()
    del broken["pull_request"]["head"]["sha"]
    sim.remember(500, event="issues", body={"action": "opened"})
    sim.remember(500, body=pull_request(action="assigned"))
    sim.remember(500, body=other)
    sim.remember(500, body=broken)
    good = sim.remember(500, number=9)
    said = redeliver(ctl).stdout
    assert "1 published" in said and "0 failed" in said
    assert "4 skipped (other_event 1, other_action 1, other_repository 1, body_malformed 1)" in said
    assert guids(ctl) == [good]
    assert len(sim.asked("/")) == 3, "the event and its action alone say that two of them are not wanted"


def test_an_attempt_without_an_answer_yet_is_left_to_the_next_run(ctl, sim):
    sim.remember(0, number=1)
    gone = sim.remember(0, number=2, delivered_at=ago(minutes=5))
    assert "0 deliveries (0 attempts)" in redeliver(ctl).stdout, "to GitHub neither has failed"
    assert "1 published, 1 not answered yet" in redeliver(ctl, "--all").stdout
    assert guids(ctl) == [gone]


def test_since_bounds_how_far_back_is_looked(ctl, sim):
    sim.remember(500, number=1, delivered_at=ago(hours=5))
    young = sim.remember(500, number=2, delivered_at=ago(hours=1))
    assert "1 published" in redeliver(ctl, "--since", "2h").stdout
    assert guids(ctl) == [young]
    assert "1 already here, 1 published" in redeliver(ctl).stdout


def test_the_oldest_is_published_first(ctl, sim):
    sent = [sim.remember(500, number=7) for _ in range(4)]  # one key, so one partition
    redeliver(ctl)
    assert guids(ctl) == sent


def test_a_dry_run_says_what_it_would_publish_and_writes_nothing(ctl, sim):
    guid = sim.remember(500, number=12)
    said = redeliver(ctl, "--dry-run").stdout
    assert f"would publish {guid}  pull_request opened  pytorch/pytorch#12" in said and "1 to publish" in said
    assert guids(ctl) == []


def test_the_name_of_a_branch_turns_no_line_around(ctl, sim):
    sim.remember(500, event="push", body={"ref": "refs/heads/a\u202eb", "before": "0" * 40, "after": "1" * 40, "deleted": False,
                                          "repository": {"full_name": "pytorch/pytorch", "default_branch": "main"}, "commits": []})
    said = redeliver(ctl, "--dry-run").stdout
    assert "pytorch/pytorch@refs/heads/a b" in said and "\u202e" not in said


# ---- GitHub's troubles -----------------------------------------------------------------------------------------
def test_the_rate_holds_between_payloads(ctl, sim):
    for number in range(12):
        sim.remember(500, number=number + 1)
    redeliver(ctl, "--rate", "10/s")
    times = [r["at_ms"] for r in sim.asked("/")]
    # Of the eleven steps two may be lost where the first request arrives late: the next ones are due by then.
    assert len(times) == 12 and times[-1] - times[0] >= 890, times


def test_what_takes_long_tells_how_far_it_is(ctl, sim):
    for number in range(8):
        sim.remember(500, number=number + 1)
    said = redeliver(ctl, "--rate", "1").stderr
    assert re.search(r"crcrctl redeliver: fetching … [1-8] of 8\n", said), said


def test_a_limit_is_waited_out_and_costs_nothing(ctl, sim):
    sim.remember(500)
    sim.script({"method": "GET", "path": "/app/hook/deliveries", "count": 1, "status": 429,
                "headers": {"Retry-After": "2"}})
    done = redeliver(ctl)
    assert "1 published" in done.stdout and "GitHub's limit: going on in" in done.stderr
    first, second = [r["at_ms"] for r in sim.asked("")][:2]
    assert second - first >= 2000


def test_a_5xx_is_asked_again(ctl, sim):
    sim.remember(500)
    sim.script({"method": "GET", "path": "/app/hook/deliveries/*", "count": 2, "status": 502})
    assert "1 published" in redeliver(ctl).stdout
    assert len(sim.asked("/")) == 3


def test_a_payload_that_github_refuses_fails_alone(ctl, sim):
    sim.remember(500, number=1)
    good = sim.remember(500, number=2)
    sim.script({"method": "GET", "path": "/app/hook/deliveries/*", "count": 1, "status": 404})
    done = redeliver(ctl, expect=1)
    assert "1 published" in done.stdout and "1 failed" in done.stdout and "404" in done.stderr
    assert guids(ctl) == [good]
    assert "1 already here, 1 published" in redeliver(ctl).stdout


def test_a_webhook_whose_payload_github_has_no_more_is_named(ctl, sim):
    lost, good = sim.remember(500, number=1), sim.remember(500, number=2)
    one = next(one["id"] for one in sim.state()["deliveries"] if one["guid"] == lost)
    sim.script({"method": "GET", "path": f"/app/hook/deliveries/{one}", "count": 1, "status": 200,
                "body": {"id": one, "guid": lost, "request": {"headers": {}, "payload": None}}})
    done = redeliver(ctl, expect=1)
    assert "1 published" in done.stdout and "1 failed" in done.stdout
    assert f"{lost}: GitHub lists it, but has no payload of it any more" in done.stderr
    assert guids(ctl) == [good]


def unserved(sim, count, path="*"):
    """The next answers with payloads are 502: four to one, which is asked for so often."""
    sim.script({"method": "GET", "path": f"/app/hook/deliveries/{path}", "count": count, "status": 502,
                "headers": {"Retry-After": "0"}})


def test_a_payload_that_github_cannot_serve_fails_alone_also_when_it_is_the_oldest(ctl, sim):
    lost, good = sim.remember(500, number=1), sim.remember(500, number=2)
    unserved(sim, 100, next(one["id"] for one in sim.state()["deliveries"] if one["guid"] == lost))
    for already, published in ((0, 1), (1, 0)):
        done = redeliver(ctl, expect=1)
        assert f"{already} already here, {published} published" in done.stdout and "1 failed" in done.stdout
        assert f"crcrctl redeliver: {lost}: GET http://" in done.stderr and "502" in done.stderr
    assert guids(ctl) == [good]


def test_after_three_payloads_in_a_row_that_were_not_served_github_is_asked_whether_it_is_there(ctl, sim):
    for number in range(7):
        sim.remember(500, number=number + 1)
    unserved(sim, 14)  # three, four times each; two more, each once, for GitHub is there; then it answers
    done = redeliver(ctl, expect=1)
    assert "2 published" in done.stdout and "5 failed" in done.stdout
    assert [request["query"].get("per_page") for request in sim.asked("")
            if request["path"] == "/app/hook/deliveries"] == ["100", "1"]
    sim.send("POST", "/_sim/script", [])
    unserved(sim, 100)
    sim.script({"method": "GET", "path": "/app/hook/deliveries", "skip": 1, "count": 100, "status": 502,
                "headers": {"Retry-After": "0"}})
    done = redeliver(ctl, expect=3)
    assert "0 published" in done.stdout and "3 failed, 2 not looked at" in done.stdout
    assert "GitHub is unavailable: GET http://" in done.stderr


def test_a_long_pause_that_github_asks_for_is_reported(ctl, sim):
    sim.remember(500)
    sim.script({"method": "GET", "path": "/app/hook/deliveries/*", "count": 1, "status": 503,
                "headers": {"Retry-After": "6"}})
    done = redeliver(ctl)
    assert "1 published" in done.stdout and re.search("GitHub asks to wait: going on in [67] s .*503", done.stderr)


def test_no_answer_is_exit_3_and_says_from_where(ctl, sim):
    done = redeliver(ctl, expect=3, CRCR_GITHUB_API_URL="http://127.0.0.1:1")
    assert "GET http://127.0.0.1:1/app/hook/deliveries" in done.stderr
    done = redeliver(ctl, expect=3, KAFKA_BROKERS="127.0.0.1:1")
    assert "cannot reach Kafka at 127.0.0.1:1" in done.stderr


# ---- ended in the middle ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", ["kill", "interrupt"])
def test_what_was_ended_in_the_middle_is_gone_on_with(ctl, sim, tmp_path, how):
    lost = [sim.remember(500, number=number + 1) for number in range(25)]
    process = started(ctl, tmp_path, "--rate", "2")  # so slow that a busy machine sees it in the middle
    wait_for("one to be published", lambda: len(sim.asked("/")) >= 2, every=0.05)
    if how == "kill":
        process.kill()
    else:
        process.signal(signal.SIGINT)
        assert process.popen.wait(60) == 1
        assert "stopped before the end; run it again to go on" in process.tail()
    # The broker may take in what the killed one had sent a moment after its end.
    seen = len(guids(ctl))
    here, published = map(int, re.search(r"(\d+) already here, (\d+) published", redeliver(ctl).stdout).groups())
    assert 0 < here < 25 and seen <= here and here + published == 25
    assert sorted(guids(ctl)) == sorted(lost)


def test_the_loop_goes_on_until_sigterm(ctl, sim, tmp_path):
    process = started(ctl, tmp_path, "--every", "1s")
    process.wait_text("0 deliveries (0 attempts)")
    guid = sim.remember(500)
    wait_for("the loop to publish it", lambda: guids(ctl) == [guid], 30)
    sim.script({"method": "GET", "path": "/app/hook/deliveries*", "count": 8, "status": 500})
    process.wait_text("GET http://127.0.0.1", 60)
    another = sim.remember(500, number=2)
    wait_for("the loop to outlive GitHub's trouble", lambda: sorted(guids(ctl)) == sorted([guid, another]), 60)
    assert process.stop() == 0


def test_the_loop_ends_when_kafka_takes_nothing_from_this_process_any_more(sim, tmp_path):
    """As the daemons do: who started it starts it anew."""
    kafka, process = MockKafka(tmp_path / "kafka").start(), None
    try:
        one = Ctl(kafka.brokers, kafka.prefix)
        one.more = sim.settings()
        sim.remember(500)
        kafka.errors("init_producer_id", "CLUSTER_AUTHORIZATION_FAILED", 20)
        process = started(one, tmp_path, "--every", "1s")
        wait_for("the loop to end", lambda: not process.running())
        assert process.popen.returncode == 1 and "Cluster authorization failed" in process.tail()
    finally:
        if process:
            process.kill()
        kafka.stop()


# ---- usage --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("arguments", (["--since", "soon"], ["--since", "90d"], ["--rate", "fast"], ["--rate", "0"],
                                       ["--every", "0s"], ["extra"], ["--nonsense"]), ids=" ".join)
def test_wrong_arguments_are_exit_2(ctl, arguments):
    assert redeliver(ctl, *arguments, expect=2).stderr.strip()


@pytest.mark.parametrize("name", ["GITHUB_APP_ID", "GITHUB_APP_PRIVATE_KEY"])
def test_what_is_not_configured_is_named(ctl, name):
    del ctl.more[name if name in ctl.more else name + "_FILE"]
    assert f"{name} is not set" in redeliver(ctl, expect=2).stderr


def test_a_missing_topic_is_named(ctl, sim):
    ctl.prefix = "nowhere."
    sim.remember(500)
    assert "nowhere.events" in redeliver(ctl, expect=1).stderr
