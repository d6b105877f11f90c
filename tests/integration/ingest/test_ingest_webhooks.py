"""POST /github/webhook, against real Kafka."""
import concurrent.futures
import hashlib
import hmac
import http.client
import json
import re
import signal
import socket
import threading
import time
import urllib.parse

import pytest

from ingest_env import SECRET, callback, detail, http_request, payload
from lib.kafka import Kafka
from lib.processes import wait_for


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


@pytest.mark.parametrize("event,body,reason", [
    ("issues", b"{}", "other_event"),
    ("ping", b'{"zen":"Keep it logically awesome."}', "other_repository"),
    ("pull_request", payload("pull_request/assigned.json"), "other_action"),
    ("pull_request", payload("pull_request/labeled.json"), "other_action"),
    ("push", payload("push/2.json"), "other_action"),
    ("check_run", payload("check_run/completed.json"), "other_action"),
    ("pull_request", b'{"action":"opened","repository":{"full_name":"pytorch/vision"}}', "other_repository"),
])
def test_ignored_webhook_is_answered_200_and_not_stored(ingest, event, body, reason):
    status, answer, _ = ingest.webhook(body, event, "ignored")
    assert (status, json.loads(answer)) == (200, {"ignored": True, "reason": reason})
    assert ingest.records("events", "ignored") == []


def test_our_label_is_stored(ingest):
    body = payload("pull_request/labeled.json", label={"name": "ciflow/crcr/npu"})
    assert ingest.webhook(body, delivery="label-1")[0] == 202


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff{}", b'{"repository":{"full_name":"\\u0000"}}', b"{}{}"])
def test_body_that_is_no_json_object_is_400(ingest, body):
    status, answer, _ = ingest.webhook(body)
    assert status == 400 and detail(answer)


def test_an_escaped_nul_in_a_title_is_stored_as_it_came(ingest):
    body = payload("pull_request/opened.json").replace(b'"title":', b'"title":"a\\u0000b","was":', 1)
    assert b"u0000" in body and ingest.webhook(body, delivery="nul-1")[0] == 202
    record, = [one for one in ingest.records("events", "nul-1")]
    assert record.value == body


def test_the_upstream_has_one_key_however_it_is_spelled(ingest):
    for delivery, spelling in (("case-1", "PyTorch/PyTorch"), ("case-2", "pytorch/pytorch")):
        body = json.loads(payload("pull_request/opened.json"))
        body["repository"]["full_name"] = spelling
        assert ingest.webhook(json.dumps(body).encode(), delivery=delivery)[0] == 202
    keys = {ingest.records("events", delivery)[0].key for delivery in ("case-1", "case-2")}
    assert len(keys) == 1 and keys.pop().startswith("pytorch/pytorch#")


def test_other_paths_and_methods(ingest):
    assert ingest.post("/github/other", b"{}", {})[0] == 404
    status, answer, headers = ingest.post("/github/webhook/", b"{}", {})
    assert status == 400 and "X-Hub-Signature-256" in detail(answer)
    status, answer, headers = http_request("GET", f"http://127.0.0.1:{ingest.port}/github/webhook")
    assert status == 405 and headers["Allow"] == "POST" and detail(answer)


def raw_request(port, head, body=b"", timeout=15):
    """The first bytes of the answer to what is sent as it is."""
    with socket.create_connection(("127.0.0.1", port), timeout) as connection:
        connection.sendall(head + body)
        return connection.recv(4096)


def test_declared_length_is_checked_before_the_body_is_read(ingest):
    head = (b"POST /github/webhook HTTP/1.1\r\nHost: x\r\nX-GitHub-Event: push\r\n"
            b"X-Hub-Signature-256: sha256=" + b"0" * 64 + b"\r\nContent-Length: 26214401\r\n\r\n")
    answer = raw_request(ingest.port, head)
    assert answer.startswith(b"HTTP/1.1 413") and b'"detail"' in answer and b"at most 26214400 bytes" in answer
    assert 'route="webhook",status="413",reason="too_large"} ' in ingest.get_admin("/metrics")[1]


def test_missing_signature_is_checked_before_the_body_is_read(ingest):
    head = (b"POST /github/webhook HTTP/1.1\r\nHost: x\r\nX-GitHub-Event: push\r\n"
            b"Content-Length: 1000\r\n\r\n")
    assert raw_request(ingest.port, head).startswith(b"HTTP/1.1 400")


SIGNED = "X-Hub-Signature-256: sha256=" + "0" * 64


@pytest.mark.parametrize("status, line, headers", [
    (404, "POST /github/nothing", [SIGNED, "X-GitHub-Event: push"]),
    (405, "PUT /github/webhook", [SIGNED, "X-GitHub-Event: push"]),
    (401, "POST /github/webhook", ["X-Hub-Signature-256: sha256=00", "X-GitHub-Event: push"]),
    (401, "POST /github/webhook", [SIGNED, "X-GitHub-Event: push", "X-GitHub-Hook-Installation-Target-ID: 99",
                                   "X-GitHub-Hook-Installation-Target-Type: integration"]),
    (400, "POST /github/webhook", [SIGNED]),
    (401, "POST /github/callback", []),
])
def test_what_the_headers_alone_tell_is_answered_before_the_body_is_read(ingest, status, line, headers):
    head = "\r\n".join([f"{line} HTTP/1.1", "Host: x", *headers, "Content-Length: 1000", "", ""])
    assert raw_request(ingest.port, head.encode()).startswith(f"HTTP/1.1 {status}".encode())


def test_webhook_of_25_mib_is_stored(ingest):
    body = payload("pull_request/opened.json")
    body = body[:-1] + b',"x":"' + b"x" * (25 * 1024 * 1024 - len(body) - 7) + b'"}'
    assert len(body) == 25 * 1024 * 1024
    assert ingest.webhook(body, delivery="large-1")[0] == 202
    [record] = ingest.records("events", "large-1")
    assert hashlib.sha256(record.value).digest() == hashlib.sha256(body).digest()


def test_bodies_in_hand_are_bounded(own):
    one = own(CRCR_MAX_INFLIGHT_BYTES="1MiB").start().wait_ready()
    body = payload("pull_request/opened.json")[:-1] + b',"x":"' + b"x" * (2 << 20) + b'"}'
    status, answer, headers = one.webhook(body)
    assert status == 503 and int(headers["Retry-After"]) > 0 and detail(answer)
    assert 'route="webhook",status="503",reason="overloaded"} 1\n' in one.get_admin("/metrics")[1]
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
@pytest.fixture(scope="module")
def freezable(tmp_path_factory):
    """A broker that no other test uses."""
    node = Kafka(tmp_path_factory.mktemp("freezable")).start()
    yield node
    node.stop()


def test_202_comes_only_after_the_acknowledgement(own, freezable):
    one = own(brokers=freezable.brokers).start().wait_ready()
    body = payload("pull_request/opened.json")
    assert one.webhook(body, delivery="warm")[0] == 202

    def held(delivery):
        """Its status, and after how many seconds it came."""
        answers = []

        def send():
            sent = time.monotonic()
            answers.append((one.webhook(body, delivery=delivery, timeout=60)[0], time.monotonic() - sent))
        sender = threading.Thread(target=send)
        freezable.freeze()
        try:
            sender.start()
            sender.join(2)
            assert sender.is_alive() and not answers
        finally:
            freezable.thaw()
        sender.join(60)
        return answers[0]
    for delivery in ("held-1", "held-2", "held-3"):
        status, took = held(delivery)
        if took < 6:  # else the broker stood still, or was at a loss, for longer than ingest waits
            break
    assert status == 202
    assert len(one.records("events", delivery)) == 1


def test_no_acknowledgement_is_503_within_10_s_and_again_is_harmless(own, freezable):
    one = own(brokers=freezable.brokers).start().wait_ready()
    body = payload("pull_request/opened.json")
    assert one.webhook(body, delivery="warm")[0] == 202
    freezable.freeze()
    try:
        for _ in range(3):  # it takes 7 to 8 s: a machine that stands still for a second may spoil one
            start = time.monotonic()
            status, answer, headers = one.webhook(body, delivery="unknown", timeout=40)
            took = time.monotonic() - start
            assert status == 503 and "unknown" in detail(answer), answer
            assert int(headers["Retry-After"]) > 0
            assert took > 6
            if took < 9.5:
                break
        assert took < 9.5
        wait_for("not ready", lambda: one.get_admin("/readyz")[0] == 503)
        assert one.get_admin("/healthz")[0] == 200
    finally:
        freezable.thaw()
    wait_for("ingest to take webhooks again",
             lambda: one.webhook(body, delivery="unknown")[0] == 202)
    assert 1 <= len(one.records("events", "unknown"))
    assert re.search(r'route="webhook",status="503",reason="(late|publish_failed)"\} [1-9]',
                     one.get_admin("/metrics")[1])


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


def test_while_load_balancers_forget_it_webhooks_are_still_taken(own):
    """A client that keeps its connection is asked to come back on another one, and loses nothing."""
    one = own(CRCR_SHUTDOWN_DELAY="6s").start().wait_ready()
    body = payload("pull_request/opened.json")
    kept = http.client.HTTPConnection("127.0.0.1", one.port, timeout=20)

    def over_the_kept_one():  # a refusal would close it
        signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        kept.request("POST", "/github/webhook", body, {"X-GitHub-Event": "ping", "X-GitHub-Delivery": "w-2",
                                                       "X-Hub-Signature-256": f"sha256={signature}"})
        answer = kept.getresponse()
        answer.read()
        return answer.getheader("Connection")
    assert over_the_kept_one() is None
    began = time.monotonic()
    one.process.popen.send_signal(signal.SIGTERM)
    wait_for("/readyz to say so", lambda: "stopping" in one.get_admin("/readyz")[1])
    assert over_the_kept_one() == "close"
    status, _, headers = one.webhook(body, delivery="late-1")
    assert (status, headers["Connection"]) == (202, "close")
    assert one.get_admin("/healthz")[0] == 200
    assert one.process.popen.wait(60) == 0
    assert 6 <= time.monotonic() - began < 30
    assert len(one.records("events", "late-1")) == 1


def test_broker_that_comes_late_is_waited_for(own, freezable, issuer):
    one = own(brokers=freezable.brokers)  # its topics are there when the broker comes: ingest waits 10 s for them
    freezable.stop()
    try:
        one.start()
        body = payload("pull_request/opened.json")
        wait_for("the port", lambda: one.webhook(body, timeout=12)[0] == 503)
        assert one.callback(callback(), issuer.token())[0] == 503
        assert one.get_admin("/readyz")[0] == 503
    finally:
        freezable.start()
    one.wait_ready()
    assert one.webhook(body, delivery="late-broker")[0] == 202
    assert len(one.records("events", "late-broker")) == 1


def test_missing_topics_are_named_and_end_the_start(own):
    one = own(create_topics=False)
    one.start()
    assert one.process.popen.wait(30) == 1
    assert one.prefix + "events" in one.process.text() and one.prefix + "callbacks" in one.process.text()
    one.process = None


def test_bad_configuration_is_reported(own):
    one = own(create_topics=False, GITHUB_APP_SECRET="hush,,hush")
    one.start()
    assert one.process.popen.wait(30) == 2
    assert "GITHUB_APP_SECRET" in one.process.text() and "hush" not in one.process.text()
    one.process = None
