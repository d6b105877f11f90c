"""crcr-ingest against real Kafka and Redis: behaviour.md, POST /github/webhook and /github/callback."""
import concurrent.futures
import hashlib
import json
import pathlib
import random
import socket
import sys
import threading
import time
import urllib.parse

import jwt
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from integration.ingest_env import (ACTIONS, BUILDKITE, ORGANIZATION, PIPELINE, SHA, Ingest,  # noqa: E402
                                    Issuer, callback, callback_token, payload)
from lib.kafka import Kafka, create_topics  # noqa: E402
from lib.processes import wait_for  # noqa: E402
from lib.redis_server import RedisServer  # noqa: E402

TWO_JOB = "crcr:job:Org%2FTwo/d-1/CI/CI/99-1"


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    node = Kafka(tmp_path_factory.mktemp("kafka")).start()
    yield node
    node.stop()


@pytest.fixture(scope="module")
def redis_node(tmp_path_factory):
    node = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield node
    node.stop()


@pytest.fixture(scope="module")
def issuer():
    one = Issuer()
    yield one
    one.close()


@pytest.fixture(scope="module")
def shared(broker, redis_node, issuer, tmp_path_factory):
    """An ingest that nothing is done to."""
    one = Ingest(tmp_path_factory.mktemp("ingest"), broker.brokers, redis_node.endpoint, issuer,
                 RATE_LIMIT_PER_MIN="1000000")
    one.publish_allowlist()
    one.start().wait_ready()
    wait_for("the allowlist to be read", lambda: one.callback({}, issuer.token())[0] != 503)
    yield one
    one.stop()


@pytest.fixture
def ingest(shared, redis_node):
    """The same, with an empty view that is whole."""
    redis_node.client().flushall()
    redis_node.client().set("crcr:epoch", "1")
    return shared


@pytest.fixture
def own(broker, redis_node, issuer, tmp_path):
    """Makes an ingest of the test's own."""
    made = []

    def make(**options):
        options.setdefault("redis_endpoint", redis_node.endpoint)
        made.append(Ingest(tmp_path / str(len(made)), broker.brokers, issuer=issuer, **options))
        return made[-1]
    yield make
    for one in made:
        one.stop()


def detail(answer):
    return json.loads(answer)["detail"]


# ---- webhooks -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name,event,key", [
    ("pull_request/synchronize.json", "pull_request", "pytorch/pytorch#2"),
    ("pull_request/closed.json", "pull_request", "pytorch/pytorch#2"),
    ("push/5.json", "push", "pytorch/pytorch@refs/heads/master"),
    ("check_suite/rerequested.json", "check_suite", None),
    ("check_run/rerequested.json", "check_run", None),
])
def test_accepted_webhook_stands_in_events_byte_for_byte(ingest, name, event, key):
    body = payload(name)
    delivery = name.replace("/", "-").replace(".", "-").replace("_", "-")
    before = int(time.time() * 1000)
    status, answer, _ = ingest.webhook(body, event, delivery)
    assert (status, json.loads(answer)) == (202, {"ok": True, "delivery_id": delivery})
    [record] = ingest.records("events", delivery)
    assert record.value == body
    head = dict(record.headers)
    assert before <= int(head.pop("received_ms")) <= time.time() * 1000
    parsed = json.loads(body)
    sha = {"pull_request": lambda: parsed["pull_request"]["head"]["sha"],
           "push": lambda: parsed["after"]}.get(event, lambda: parsed[event]["head_sha"])()
    expected = {"event": event, "delivery": delivery, "head_sha": sha, "source": "webhook"}
    if "action" in parsed:
        expected["action"] = parsed["action"]
    if event == "pull_request":
        expected["pr"] = "2"
    assert head == expected
    assert record.key == (key or f"pytorch/pytorch@{sha}")


def test_ciflow_tag_belongs_to_its_pull_request(ingest):
    body = payload("push/5.json", ref="refs/tags/ciflow/trunk/171269")
    assert ingest.webhook(body, "push", "ciflow-tag")[0] == 202
    [record] = ingest.records("events", "ciflow-tag")
    assert record.key == "pytorch/pytorch#171269"
    assert record.headers["pr"] == "171269"


def test_form_encoded_webhook_is_stored_as_its_json(ingest):
    text = payload("pull_request/opened.json")
    body = b"payload=" + urllib.parse.quote_plus(text).encode()
    status, _, _ = ingest.webhook(body, delivery="form-1",
                                  Content_Type="application/x-www-form-urlencoded")
    assert status == 202
    assert ingest.records("events", "form-1")[0].value == text


def test_any_configured_secret_is_taken(ingest):
    assert ingest.webhook(payload("pull_request/opened.json"), secret="next-secret")[0] == 202
    status, answer, _ = ingest.webhook(payload("pull_request/opened.json"), secret="former-secret")
    assert status == 401 and "signature" in detail(answer)


@pytest.mark.parametrize("status,headers", [
    (400, {"X_Hub_Signature_256": None}),
    (401, {"X_Hub_Signature_256": "sha1=" + "0" * 40}),
    (401, {"X_Hub_Signature_256": "sha256=" + "0" * 64}),
    (401, {"X_Hub_Signature_256": "sha256=" + "0" * 64, "X_GitHub_Event": "issues"}),
    (401, {"X_GitHub_Hook_Installation_Target_ID": "999"}),
    (400, {"X_GitHub_Delivery": None}),
    (400, {"X_GitHub_Delivery": "not/valid"}),
])
def test_refused_webhook_is_not_stored(ingest, status, headers):
    answer = ingest.webhook(payload("pull_request/opened.json"), delivery="refused", **headers)
    assert answer[0] == status and detail(answer[1])
    assert ingest.records("events", "refused") == []


@pytest.mark.parametrize("event,body", [
    ("issues", b"{}"),
    ("ping", b'{"zen":"Keep it logically awesome."}'),
    ("pull_request", payload("pull_request/assigned.json")),
    ("pull_request", payload("pull_request/labeled.json")),
    ("push", payload("push/2.json")),
    ("check_run", payload("check_run/completed.json")),
    ("pull_request", b'{"action":"opened","repository":{"full_name":"pytorch/vision"}}'),
])
def test_ignored_webhook_is_answered_200_and_not_stored(ingest, event, body):
    status, answer, _ = ingest.webhook(body, event, "ignored")
    assert (status, json.loads(answer)) == (200, {"ignored": True})
    assert ingest.records("events", "ignored") == []


def test_our_label_is_stored(ingest):
    body = payload("pull_request/labeled.json", label={"name": "ciflow/crcr/npu"})
    assert ingest.webhook(body, delivery="label-1")[0] == 202


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff{}", b'{"a":"\\u0000"}', b"{}{}"])
def test_body_that_is_no_json_object_is_400(ingest, body):
    status, answer, _ = ingest.webhook(body)
    assert status == 400 and detail(answer)


def test_other_paths_and_methods(ingest):
    assert ingest.post("/github/other", b"{}", {})[0] == 404
    status, answer, headers = ingest.post("/github/webhook/", b"{}", {})
    assert status == 400 and "X-Hub-Signature-256" in detail(answer)
    from integration.ingest_env import http_request
    status, answer, headers = http_request("GET", f"http://127.0.0.1:{ingest.port}/github/webhook")
    assert status == 405 and headers["Allow"] == "POST" and detail(answer)


def raw_request(port, head, body=b"", timeout=15):
    """The first bytes of the answer to what is sent as it is."""
    with socket.create_connection(("127.0.0.1", port), timeout) as connection:
        connection.sendall(head + body)
        return connection.recv(4096)


def test_declared_length_is_judged_before_the_body_is_read(ingest):
    head = (b"POST /github/webhook HTTP/1.1\r\nHost: x\r\nX-GitHub-Event: push\r\n"
            b"X-Hub-Signature-256: sha256=" + b"0" * 64 + b"\r\nContent-Length: 26214401\r\n\r\n")
    answer = raw_request(ingest.port, head)
    assert answer.startswith(b"HTTP/1.1 413") and b'"detail"' in answer


def test_missing_signature_is_judged_before_the_body_is_read(ingest):
    head = (b"POST /github/webhook HTTP/1.1\r\nHost: x\r\nX-GitHub-Event: push\r\n"
            b"Content-Length: 1000\r\n\r\n")
    assert raw_request(ingest.port, head).startswith(b"HTTP/1.1 400")


def test_webhook_of_25_mib_is_stored(ingest):
    body = payload("pull_request/opened.json")
    body = body[:-1] + b',"x":"' + b"x" * (25 * 1024 * 1024 - len(body) - 7) + b'"}'
    assert len(body) == 25 * 1024 * 1024
    assert ingest.webhook(body, delivery="large-1")[0] == 202
    [record] = ingest.records("events", "large-1")
    assert hashlib.sha256(record.value).digest() == hashlib.sha256(body).digest()
    assert ingest.webhook(body + b" ", delivery="large-2")[0] == 413


def test_bodies_in_hand_are_bounded(own):
    one = own(CRCR_MAX_INFLIGHT_BYTES="1MiB").start().wait_ready()
    body = payload("pull_request/opened.json")[:-1] + b',"x":"' + b"x" * (2 << 20) + b'"}'
    status, answer, headers = one.webhook(body)
    assert status == 503 and int(headers["Retry-After"]) > 0 and detail(answer)
    assert one.webhook(payload("pull_request/opened.json"))[0] == 202


def test_neither_redis_nor_github_nor_an_allowlist_is_needed(own, issuer):
    issuer_was_down, issuer.down = issuer.down, True
    try:
        one = own(redis_endpoint="127.0.0.1:1").start().wait_ready()
        assert one.webhook(payload("pull_request/opened.json"), delivery="alone")[0] == 202
        assert len(one.records("events", "alone")) == 1
    finally:
        issuer.down = issuer_was_down


# ---- acknowledgement ------------------------------------------------------------------------------------
def test_202_comes_only_after_the_acknowledgement(own, broker):
    one = own().start().wait_ready()
    assert one.webhook(payload("pull_request/opened.json"), delivery="warm")[0] == 202
    answers = []
    sender = threading.Thread(target=lambda: answers.append(
        one.webhook(payload("pull_request/opened.json"), delivery="held")))
    broker.freeze()
    try:
        sender.start()
        sender.join(2)
        assert sender.is_alive() and not answers
    finally:
        broker.thaw()
    sender.join(10)
    assert answers[0][0] == 202
    assert len(one.records("events", "held")) == 1


def test_no_acknowledgement_is_503_within_10_s_and_again_is_harmless(own, broker):
    one = own().start().wait_ready()
    body = payload("pull_request/opened.json")
    assert one.webhook(body, delivery="warm")[0] == 202
    broker.freeze()
    try:
        start = time.monotonic()
        status, answer, headers = one.webhook(body, delivery="unknown", timeout=12)
        took = time.monotonic() - start
        assert status == 503 and int(headers["Retry-After"]) > 0 and "unknown" in detail(answer)
        assert 6 < took < 9.5
        wait_for("not ready", lambda: one.get_admin("/readyz")[0] == 503)
        assert one.get_admin("/healthz")[0] == 200
    finally:
        broker.thaw()
    wait_for("ingest to take webhooks again",
             lambda: one.webhook(body, delivery="unknown")[0] == 202)
    assert 1 <= len(one.records("events", "unknown"))
    assert 'status="503"' in one.get_admin("/metrics")[1]


def test_what_was_answered_202_before_sigterm_is_stored(own):
    one = own().start().wait_ready()
    body = payload("pull_request/opened.json")
    stored, stop = [], threading.Event()

    def send(sender):
        for number in range(100000):
            if stop.is_set():
                return
            delivery = f"t-{sender}-{number}"
            try:
                if one.webhook(body, delivery=delivery)[0] == 202:
                    stored.append(delivery)
            except OSError:
                return
    with concurrent.futures.ThreadPoolExecutor(8) as senders:
        for sender in range(8):
            senders.submit(send, sender)
        wait_for("some webhooks", lambda: len(stored) > 200)
        one.stop()
        stop.set()
    assert set(stored) <= {record.headers["delivery"] for record in one.records("events")}


def test_broker_that_comes_late_is_waited_for(redis_node, issuer, tmp_path):
    node = Kafka(tmp_path / "kafka")
    one = Ingest(tmp_path / "ingest", node.brokers, redis_node.endpoint, issuer, create_topics=False)
    one.start()
    try:
        body = payload("pull_request/opened.json")
        wait_for("the port", lambda: one.webhook(body, timeout=12)[0] == 503)
        assert one.callback(callback(), issuer.token())[0] == 503
        assert one.get_admin("/readyz")[0] == 503
        node.start()
        create_topics(node.brokers, one.prefix)
        one.wait_ready()
        assert one.webhook(body, delivery="late-broker")[0] == 202
        assert len(one.records("events", "late-broker")) == 1
    finally:
        one.stop()
        node.stop()


def test_missing_topics_are_named_and_end_the_start(own):
    one = own(create_topics=False)
    one.start()
    assert one.process.popen.wait(30) == 1
    assert one.prefix + "events" in one.process.text() and one.prefix + "callbacks" in one.process.text()
    one.process = None


def test_bad_configuration_is_told(own):
    one = own(create_topics=False, GITHUB_APP_SECRET="hush,,hush")
    one.start()
    assert one.process.popen.wait(30) == 2
    assert "GITHUB_APP_SECRET" in one.process.text() and "hush" not in one.process.text()
    one.process = None


def test_logs_and_metrics_tell_no_body_and_no_secret(ingest, issuer):
    token = issuer.token()
    body = callback(token=callback_token(), name="very-special-name")
    assert ingest.callback(body, token)[0] == 200
    assert ingest.webhook(payload("pull_request/opened.json"), delivery="logged")[0] == 202
    log = ingest.process.text()
    assert '"delivery":"logged"' in log
    for secret in (token, body["callback_token"], "very-special-name", "the-secret"):
        assert secret not in log


# ---- callbacks ------------------------------------------------------------------------------------------
def test_callback_with_token_stands_in_callbacks_byte_for_byte(ingest, issuer):
    raw = json.dumps(callback(delivery="cb-1", token=callback_token(delivery_id="cb-1")), indent=1)
    status, answer, _ = ingest.callback(raw.encode(), issuer.token("ORG/two"))
    assert (status, json.loads(answer)) == (200, {"ok": True, "status": "in_progress"})
    [record] = ingest.records("callbacks", "cb-1")
    assert record.value == raw.encode()
    assert record.key == "cb-1/Org/Two"
    head = dict(record.headers)
    assert abs(int(head.pop("received_ms")) - time.time() * 1000) < 60000
    assert head == {"repo": "Org/Two", "level": "L2", "issuer": ACTIONS, "provenance": "token",
                    "delivery": "cb-1", "pr": "42", "head_sha": SHA, "dispatched_ms": "1763700000001"}


def forged(issuer, kind):
    now = int(time.time())
    good = {"iss": ACTIONS, "aud": "pytorch-cross-repo-ci-relay", "repository": "Org/Two",
            "iat": now, "nbf": now, "exp": now + 300}
    return {
        "none": lambda: None,
        "no JWT": lambda: "abc",
        "alg none": lambda: jwt.encode(good, None, algorithm="none", headers={"kid": "kid-1"}),
        "HS256": lambda: jwt.encode(good, "s" * 32, algorithm="HS256", headers={"kid": "kid-1"}),
        "another key": lambda: issuer.token(key=Issuer().keys["kid-1"]),
        "expired": lambda: issuer.token(exp=now - 61),
        "not yet valid": lambda: issuer.token(nbf=now + 90),
        "another audience": lambda: issuer.token(aud="somebody-else"),
        "another issuer": lambda: issuer.token(issuer="https://evil.example"),
        "no repository": lambda: issuer.token(without=["repository"]),
    }[kind]()


@pytest.mark.parametrize("kind", ["none", "no JWT", "alg none", "HS256", "another key", "expired",
                                  "not yet valid", "another audience", "another issuer",
                                  "no repository"])
def test_bad_oidc_token_is_401(ingest, issuer, kind):
    status, answer, _ = ingest.callback(callback(token=callback_token()), forged(issuer, kind))
    assert status == 401 and detail(answer)


def test_clocks_may_differ_by_60_s(ingest, issuer):
    now = int(time.time())
    body = callback(token=callback_token())
    assert ingest.callback(body, issuer.token(exp=now - 40))[0] == 200
    assert ingest.callback(body, issuer.token(nbf=now + 40))[0] == 200


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"a":1,"a":2}', b'{"a":{"b":1,"\\u0062":2}}',
                                  b'{"a":"\\u0000"}', b'{"a":"\xff"}', b'{"a":"\\ud83d"}',
                                  b'{"a":' + b"[" * 64 + b"]" * 64 + b"}"])
def test_callback_that_two_parsers_could_read_differently_is_400(ingest, issuer, body):
    status, answer, _ = ingest.callback(body, issuer.token())
    assert status == 400 and detail(answer)


def test_token_is_judged_before_the_body(ingest):
    assert ingest.callback(b"{", None)[0] == 401


def test_callback_over_2_mib_is_413(ingest, issuer):
    assert ingest.callback(b" " * (2 * 1024 * 1024 + 1), issuer.token())[0] == 413


@pytest.mark.parametrize("repo", ["org/unknown", "org/one"])
def test_unlisted_and_level_1_repos_are_ignored(ingest, issuer, repo):
    status, answer, _ = ingest.callback(b"{}", issuer.token(repo))
    assert (status, json.loads(answer)) == (200, {"ok": True, "status": "ignored"})


@pytest.mark.parametrize("changes", [
    {"delivery": ""}, {"status": "queued"}, {"status": "completed"}, {"run_id": 0}, {"name": ""},
    {"status": "completed", "conclusion": "splendid"},
])
def test_bad_fields_are_400(ingest, issuer, changes):
    status, answer, _ = ingest.callback(callback(token=callback_token(), **changes), issuer.token())
    assert status == 400 and detail(answer)


@pytest.mark.parametrize("token", [
    callback_token(delivery_id="d-2"), callback_token(repo="org/three"), callback_token(exp=1),
    callback_token(key="k1:" + "x" * 32), callback_token(key="k9:" + "s" * 32), "abc",
])
def test_bad_callback_token_is_403(ingest, issuer, token):
    status, answer, _ = ingest.callback(callback(token=token), issuer.token())
    assert status == 403 and detail(answer)


def buildkite_claims(**changes):
    return {"issuer": BUILDKITE, "without": ["repository"], "organization_id": ORGANIZATION,
            "pipeline_id": PIPELINE, "build_branch": "main", **changes}


def test_buildkite_speaks_for_the_repo_it_is_registered_for(ingest, issuer):
    body = callback(delivery="bk-1", token=callback_token(delivery_id="bk-1", repo="org/four"),
                    run_id="018e5c1a-0000-4000-8000-000000000000")
    assert ingest.callback(body, issuer.token(**buildkite_claims()))[0] == 200
    [record] = ingest.records("callbacks", "bk-1")
    assert record.headers["repo"] == "org/four" and record.headers["issuer"] == BUILDKITE
    assert record.headers["level"] == "L4"


@pytest.mark.parametrize("status,changes", [
    (403, {"pipeline_id": ORGANIZATION}), (403, {"build_branch": "dev"}),
    (401, {"without": ["repository", "pipeline_id"]}),
])
def test_buildkite_without_registration(ingest, issuer, status, changes):
    body = callback(token=callback_token(repo="org/four"))
    assert ingest.callback(body, issuer.token(**buildkite_claims(**changes)))[0] == status


def test_dispatch_record_proves_a_callback_without_a_token(ingest, issuer, redis_node):
    redis_node.client().hset("crcr:claim:rec-1|org/two|dispatch|", mapping={
        "state": "done", "pr": "7", "head_sha": SHA, "level": "2", "event_type": "pull_request",
        "dispatched_ms": "1763700000500"})
    assert ingest.callback(callback(delivery="rec-1"), issuer.token())[0] == 200
    [record] = ingest.records("callbacks", "rec-1")
    assert record.headers["provenance"] == "record"
    assert (record.headers["pr"], record.headers["head_sha"]) == ("7", SHA)
    assert record.headers["dispatched_ms"] == "1763700000500"


def test_no_record_in_a_whole_view_is_400(ingest, issuer):
    status, answer, _ = ingest.callback(callback(delivery="nobody-knows"), issuer.token())
    assert status == 400 and detail(answer) == "no matching dispatch record"


def version_1_id(age_s):
    ticks = int((time.time() - age_s) * 1e7) + 0x01B21DD213814000
    return (f"{ticks & 0xffffffff:08x}-{ticks >> 32 & 0xffff:04x}-1{ticks >> 48 & 0xfff:03x}-"
            f"8000-{random.randrange(1 << 48):012x}")


def test_record_may_be_late_by_60_s(ingest, issuer):
    fresh = version_1_id(5)
    assert ingest.callback(callback(delivery=fresh), issuer.token())[0] == 200
    assert ingest.records("callbacks", fresh)[0].headers["provenance"] == "pending"
    assert ingest.callback(callback(delivery=version_1_id(70)), issuer.token())[0] == 400


def test_callback_is_pending_while_the_view_is_rebuilt(ingest, issuer, redis_node):
    redis_node.client().delete("crcr:epoch")
    assert ingest.callback(callback(delivery="pend-1"), issuer.token())[0] == 200
    [record] = ingest.records("callbacks", "pend-1")
    assert record.headers["provenance"] == "pending"
    assert "pr" not in record.headers and "head_sha" not in record.headers


def test_nightly_needs_neither_token_nor_record(ingest, issuer):
    body = callback("completed", delivery="night-1", event_type="nightly", conclusion=None)
    status, answer, _ = ingest.callback(body, issuer.token())
    assert (status, json.loads(answer)) == (200, {"ok": True, "status": "completed"})
    assert ingest.records("callbacks", "night-1")[0].headers["provenance"] == "self"
    body = callback("in_progress", event_type="nightly")
    assert ingest.callback(body, issuer.token())[0] == 400


def test_view_tells_duplicates_and_contradictions(ingest, issuer, redis_node):
    view = redis_node.client()
    started = callback(token=callback_token())
    done = callback("completed", token=callback_token(), conclusion="success")
    for state, body, expected in [("in_progress", started, "duplicate"),
                                  ("in_progress", done, "completed"),
                                  ("completed", started, "duplicate"),
                                  ("completed", done, "duplicate")]:
        view.hset(TWO_JOB, mapping={"status": state, "conclusion": "success"})
        status, answer, _ = ingest.callback(body, issuer.token())
        assert (status, json.loads(answer)) == (200, {"ok": True, "status": expected})
    failed = callback("completed", token=callback_token(), conclusion="failure")
    status, answer, _ = ingest.callback(failed, issuer.token())
    assert status == 409 and "success" in detail(answer)


def test_without_an_allowlist_callbacks_wait(own, issuer):
    one = own().start().wait_ready()
    status, answer, headers = one.callback(callback(token=callback_token()), issuer.token())
    assert status == 503 and int(headers["Retry-After"]) > 0
    one.publish_allowlist()
    wait_for("the callback to be taken",
             lambda: one.callback(callback(token=callback_token()), issuer.token())[0] == 200)


def send_until_429(one, issuer, limit):
    for number in range(limit):
        assert one.callback(callback(token=callback_token()), issuer.token())[0] == 200, number
    status, answer, headers = one.callback(callback(token=callback_token()), issuer.token())
    assert status == 429 and 1 <= int(headers["Retry-After"]) <= 65 and detail(answer)


def test_rate_limit_is_shared_through_redis(own, issuer, redis_node):
    redis_node.client().flushall()
    first, second = own(RATE_LIMIT_PER_MIN="5"), own(RATE_LIMIT_PER_MIN="5")
    for one in (first, second):
        one.publish_allowlist()
        one.start().wait_ready()
        wait_for("the allowlist", lambda one=one: one.callback(b"{}", issuer.token("org/one"))[0] == 200)
    send_until_429(first, issuer, 5)
    assert second.callback(callback(token=callback_token()), issuer.token())[0] == 429
    other = callback(token=callback_token(repo="org/three"))
    assert second.callback(other, issuer.token("org/three"))[0] == 200


def test_20_mib_in_60_s_are_the_limit_too(own, issuer, redis_node):
    redis_node.client().flushall()
    one = own()
    one.publish_allowlist()
    one.start().wait_ready()
    wait_for("the allowlist", lambda: one.callback(b"{}", issuer.token("org/one"))[0] == 200)
    body = callback(token=callback_token())
    body["payload"] = {"x": "x" * (2 * 1024 * 1024 - 2000)}
    statuses = [one.callback(body, issuer.token())[0] for _ in range(11)]
    assert statuses == [200] * 10 + [429]


def test_redis_away_local_limiter_decides_and_callbacks_are_pending(own, issuer):
    one = own(redis_endpoint="127.0.0.1:1", RATE_LIMIT_PER_MIN="3")
    one.publish_allowlist()
    one.start().wait_ready()
    wait_for("the allowlist", lambda: one.callback(b"{}", issuer.token("org/one"))[0] == 200)
    assert one.callback(callback(delivery="away-1"), issuer.token("org/three"))[0] == 200
    assert one.records("callbacks", "away-1")[0].headers["provenance"] == "pending"
    send_until_429(one, issuer, 3)
    assert "crcr_ingest_limiter_fallbacks_total 5" in one.get_admin("/metrics")[1]


def test_new_key_of_an_issuer_is_fetched_at_once_but_not_all_the_time(own, broker, redis_node, tmp_path):
    rotating = Issuer()
    one = Ingest(tmp_path / "rotation", broker.brokers, redis_node.endpoint, rotating,
                 RATE_LIMIT_PER_MIN="1000")
    one.publish_allowlist()
    one.start().wait_ready()
    body = callback(token=callback_token())
    wait_for("the first keys", lambda: one.callback(body, rotating.token())[0] == 200)
    fetches = rotating.fetches
    rotating.add_key("kid-2")
    # Within 30 s of the last fetch an unknown key is not asked for.
    assert one.callback(body, rotating.token(kid="kid-2"))[0] == 401
    assert rotating.fetches == fetches
    rotating.down = True
    assert one.callback(body, rotating.token())[0] == 200
    one.stop()
    rotating.close()


def test_first_keys_are_waited_for(own, broker, redis_node, tmp_path):
    late = Issuer()
    late.down = True
    one = Ingest(tmp_path / "late", broker.brokers, redis_node.endpoint, late)
    one.publish_allowlist()
    one.start().wait_ready()
    body = callback(token=callback_token())
    status, answer, headers = one.callback(body, late.token())
    assert status == 503 and int(headers["Retry-After"]) > 0 and ACTIONS in detail(answer)
    late.down = False
    wait_for("the keys", lambda: one.callback(body, late.token())[0] == 200, 20)
    assert "crcr_ingest_jwks_age_seconds" in one.get_admin("/metrics")[1]
    one.stop()
    late.close()
