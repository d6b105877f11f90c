"""`crcr-report check` against small servers; tests/integration/ingest/test_ingest_whoami.py has a relay."""
import datetime
import ipaddress
import json
import os
import ssl
import subprocess
import sys

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lib.actions import FOLDER, JWT, Job, Server
from lib.ports import free_port

ASKED = (401, {}, b'{"detail": "Authorization: Bearer <OIDC token> needed"}')
FOUND = {"repository": "org/a", "issuer": "https://issuer.example", "provider": None, "audience": "x", "level": "L2",
         "events": ["pull_request", "push"], "reports_taken": True, "reason": None, "page": "https://pages.example/repo/org/a",
         "next_step": "Nothing to mend."}


@pytest.fixture
def relay():
    with Server() as server:
        yield server


@pytest.fixture
def check(relay):
    """check("--option", …) → (exit code, the lines that it says)."""
    def run(*arguments, url=None, env=None):
        environment = {"PATH": os.environ["PATH"], "CRCR_OIDC_TOKEN": JWT, "CRCR_CALLBACK_URL": url or relay.url, **(env or {})}
        done = subprocess.run([sys.executable, FOLDER / "crcr-report", "check", *arguments], env=environment, capture_output=True,
                              text=True, timeout=60)
        assert JWT not in done.stdout.replace("::add-mask::" + JWT, "") + done.stderr and "Traceback" not in done.stderr
        return done.returncode, done.stderr.splitlines()
    return run


def found(**changes):
    return 200, {}, json.dumps({**FOUND, **changes}).encode()


def test_what_is_right_says_who_and_what(relay, check):
    relay.answers = [ASKED, found()]
    code, said = check()
    assert code == 0 and said == [
        "crcr-report: next step: Nothing to mend.",
        f"crcr-report: url: a relay answers at {relay.url}",
        "crcr-report: token: one could be had; it says: aud x, repository org/a",
        "crcr-report: repository: org/a, by https://issuer.example",
        "crcr-report: level: L2; events: pull_request, push; reports are taken",
        "crcr-report: last dispatches and reports: https://pages.example/repo/org/a"]
    assert [(path, headers["Authorization"]) for path, headers, _, _ in relay.requests] == [
        ("/github/whoami", None), ("/github/whoami", "Bearer " + JWT)]


def test_ignored_reports_are_something_to_mend(relay, check):
    relay.answers = [ASKED, found(level=None, events=[], reports_taken=False, reason="not_listed", page=None, next_step="Ask.")]
    code, said = check()
    assert code == 1 and said[0] == "crcr-report: warning: next step: Ask."
    assert said[-1] == "crcr-report: level: none; events: none; reports are ignored (not_listed)"


@pytest.mark.parametrize("answers, says", [
    ([(404, {}, b"<html>")], "answers HTTP 404 to a question that a relay answers with 401: it is none, or an older one"),
    ([(200, {}, b"{}")], "answers HTTP 200 to a question"), ([(401, {}, b"<html>")], "answers HTTP 401 to a question"),
    ([(302, {"Location": "https://login.example/"}, b"")], "answers HTTP 302 to a question"),
    ([(503, {}, b'{"detail":"shutting down"}')], "answers HTTP 503: shutting down. Try again later"),
    ([ASKED, (401, {}, b'{"detail":"the token\'s audience is x"}')], "the relay does not take the token: HTTP 401: the token's audience is x"),
    ([ASKED, (403, {}, b'{"detail":"not\\n::error::forged"}')], "HTTP 403: not ::error::forged"),
    ([ASKED, (200, {}, b"[]")], "the relay does not take the token: HTTP 200"),
])
def test_the_first_thing_to_mend_is_said_first(relay, check, answers, says):
    relay.answers = list(answers)
    code, said = check()
    assert code == 1 and said[0].startswith("crcr-report: warning: next step: ") and says in said[0]


def test_no_token_is_the_next_step_after_the_url(relay, check):
    relay.answers = [ASKED]
    code, said = check(env={"CRCR_OIDC_TOKEN": "", "GITHUB_ACTIONS": "true"})
    assert code == 1 and "permissions: id-token: write" in said[0] and "a relay answers" in said[1]
    relay.answers = [ASKED]
    code, said = check(env={"CRCR_OIDC_TOKEN": "", "CRCR_TOKEN_COMMAND": "exit 9"})
    assert code == 1 and "exit code 9" in said[0]


@pytest.mark.parametrize("url, code, says", [
    ("http://relay.example/github/callback", 2, "an https:// URL is needed"), ("relay.example", 2, "an https:// URL is needed"),
    ("https://relay.example/", 1, "--callback-url ends in '/'; the relay's ends in /github/callback"),
    ("https://relay.example/github/webhook", 1, "the relay's ends in /github/callback"),
    ("https://relay.invalid/github/callback", 1, "relay.invalid: no answer"),
])
def test_a_url_that_is_wrong_is_said(check, url, code, says):
    got, said = check(url=url)
    assert got == code and says in said[0]


def test_the_action_checks_too(relay, tmp_path):
    job = Job(tmp_path, "org/a", "{}", relay.url.replace("/github/callback", "/token?v=1"))
    inputs = {"status": "check", "callback_url": relay.url, "required": "true"}
    relay.answers = [ASKED, (200, {}, json.dumps({"value": JWT}).encode()), found()]
    code, log, _ = job.run(**inputs)
    assert code == 0 and "crcr-report: next step: Nothing to mend." in log and "level: L2" in log
    relay.answers = [ASKED, (200, {}, json.dumps({"value": JWT}).encode()), found(reports_taken=False, next_step="Ask.")]
    code, log, _ = job.run(**inputs)
    assert code == 1 and "::warning title=CRCR::next step: Ask." in log


def test_wrong_usage_is_2(check):
    assert check("--nonsense")[0] == 2 and check("--max-time", "soon")[0] == 2
    assert check(url=f"http://127.0.0.1:{free_port()}/github/callback")[0] == 1


def test_a_certificate_that_is_not_trusted_is_named(relay, check, tmp_path):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "relay")])
    now = datetime.datetime.utcnow()
    certificate = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
                   .not_valid_before(now).not_valid_after(now + datetime.timedelta(1))
                   .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
                   .sign(key, hashes.SHA256()))
    pem = tmp_path / "relay.pem"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    relay.http.socket = context.wrap_socket(relay.http.socket, server_side=True)
    url = relay.url.replace("http:", "https:")
    code, said = check(url=url)
    assert code == 1 and "its TLS certificate is not trusted here" in said[0] and "CERTIFICATE_VERIFY_FAILED" in said[0]
    relay.answers = [ASKED, found()]
    assert check(url=url, env={"SSL_CERT_FILE": str(pem)})[0] == 0
