"""`crcrctl send-callback`: what it sends, under whose token, and with which exit code."""
import json
import ssl
import subprocess

import pytest

from lib.ctl import Ctl
from lib.sim import Inbox

PAYLOAD = {"event_type": "pull_request", "delivery_id": "d-1", "payload": {"number": 7}, "callback_token": "t"}

TOKEN = ("--token-file", "-")  # standard input, which has "t"


@pytest.fixture
def inbox():
    one = Inbox()
    yield one
    one.close()


@pytest.fixture
def send(inbox, tmp_path):
    ctl = Ctl("127.0.0.1:1", "t.")  # it needs no Kafka
    file = tmp_path / "body.json"
    file.write_bytes(json.dumps(PAYLOAD).encode())

    def run(*arguments, expect=0, body=None, input="t", **environment):
        if body is not None:
            file.write_bytes(body)
        return ctl("send-callback", file, "--url", inbox.url + "/github/callback", *arguments, expect=expect,
                   input=input, **environment)
    return run


def sent(inbox):
    path, headers, body, _ = inbox.requests[-1]
    assert path == "/github/callback" and headers["Content-Type"] == "application/json"
    return headers["Authorization"].removeprefix("Bearer "), body


def test_the_file_is_sent_byte_for_byte_under_the_token_given(send, inbox, tmp_path):
    (tmp_path / "token").write_text("a.b.c\n")
    done = send("--token-file", tmp_path / "token", body=b'{"a": "\xc3\xa9"}\n')
    assert sent(inbox) == ("a.b.c", b'{"a": "\xc3\xa9"}\n') and done.stdout.startswith("200 in ")
    send("--token-file", "-", input="d.e.f\n")
    assert sent(inbox)[0] == "d.e.f"


def test_a_token_is_not_taken_from_the_command_line_which_ps_shows(send, inbox):
    for arguments in (["--token", "d.e.f"], ["--token=d.e.f"], ["--token-fil", "d.e.f"]):
        said = send(*arguments, expect=2).stderr
        assert "--token-file" in said and "d.e.f" not in said and inbox.requests == []


def test_the_workflow_is_put_into_what_was_dispatched(send, inbox):
    send(*TOKEN, "--status", "completed", "--workflow", "CI", "--job", "test / a", "--run-id", "77",
         "--attempt", "2", "--conclusion", "failure")
    assert json.loads(sent(inbox)[1]) == {**PAYLOAD, "workflow": {
        "schema_version": "1", "status": "completed", "conclusion": "failure", "name": "CI",
        "job_name": "test / a", "run_id": "77", "run_attempt": "2"}}
    send(*TOKEN, "--status", "in_progress")
    assert json.loads(sent(inbox)[1])["workflow"] == {
        "schema_version": "1", "status": "in_progress", "name": "crcrctl", "run_id": "1"}


def test_nul_and_halves_of_surrogate_pairs_are_left_to_ingest(send, inbox):
    send(*TOKEN, "--status", "completed", body=b'{"a": "\\u0000\\ud800b", "a\\u0000": 1, "a\\udc00": 2}')
    said = json.loads(sent(inbox)[1])
    assert said.pop("workflow") and said == {"a": "\0\0b", "a\ufffd000": 1, "a\ufffdc00": 2}
    refused = send(*TOKEN, "--status", "completed", body=b'{"a": 1, "a": 2}', expect=1).stderr
    assert "duplicate object key" in refused


def test_a_refusal_is_exit_1_and_no_answer_exit_3(send, inbox, tmp_path):
    inbox.answers.append((403, {}))
    assert send(*TOKEN, expect=1).stdout.startswith("403 in ")
    assert "is crcr-ingest running there?" in send(*TOKEN, "--url", "http://127.0.0.1:1/x", expect=3).stderr
    assert "not a JSON object" in send(*TOKEN, "--status", "completed", body=b"[]", expect=1).stderr
    assert "No such file" in send("--token-file", tmp_path / "none", expect=1).stderr


def test_the_authority_of_the_relay_is_the_one_that_is_set(send, inbox, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=relay",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    inbox.server.socket = context.wrap_socket(inbox.server.socket, server_side=True)
    secure = [*TOKEN, "--url", inbox.url.replace("http:", "https:") + "/github/callback"]
    assert "certificate" in send(*secure, expect=3).stderr and inbox.requests == []
    send(*secure, CRCR_CA_FILE=str(certificate))
    assert sent(inbox)[0] == "t"


def test_standard_input_is_one_thing_only(inbox):
    said = Ctl("127.0.0.1:1", "t.")("send-callback", "-", "--url", inbox.url + "/github/callback", *TOKEN, input="{}", expect=2)
    assert "standard input" in said.stderr and inbox.requests == []


@pytest.mark.parametrize("arguments", (
    [], [*TOKEN, "--status", "queued"], [*TOKEN, "--status", "completed", "--conclusion", "fine"],
    [*TOKEN, "--job", "a"], [*TOKEN, "--nonsense"], [*TOKEN, "second"]), ids=" ".join)
def test_wrong_usage_of_send_callback_is_exit_2_and_sends_nothing(send, inbox, arguments):
    assert send(*arguments, expect=2).stderr.strip() and inbox.requests == []
