"""deploy/proxy/nginx.conf in a real nginx, in front of a real ingest: only names, ports and certificate are the test's own."""
import hashlib
import hmac
import http.client
import json
import os
import socket
import ssl
import subprocess

import pytest

from lib.ports import free_port
from lib.processes import ROOT, Process, wait_for
from lib.redis_server import redis_server
from lib.relay import SECRET, Relay, pull_request

CONF = ROOT / "deploy" / "proxy" / "nginx.conf"
AROUND = """{user} daemon off; pid {folder}/nginx.pid; error_log stderr; worker_processes 1;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    include {folder}/crcr.conf;
}}
"""


def sign(body):
    return "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()


def written(folder, replaced):
    text = CONF.read_text()
    for old, new in replaced.items():
        assert text.count(old) == 1, old
        text = text.replace(old, str(new))
    (folder / "crcr.conf").write_text(text)
    (folder / "nginx.conf").write_text(AROUND.format(folder=folder, user="" if os.geteuid() else "user root;"))
    return ["nginx", "-e", "stderr", "-p", folder, "-c", folder / "nginx.conf"]


@pytest.fixture(scope="module")
def proxied(kafka_node, tmp_path_factory):
    folder = tmp_path_factory.mktemp("proxy")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=crcr.example.org",
                    "-addext", "subjectAltName=DNS:crcr.example.org", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
                   check=True, capture_output=True)
    with redis_server(folder / "redis") as redis:
        relay = Relay(folder, kafka_node.brokers, redis)
        try:
            relay.start_all()
            port = free_port()
            command = written(folder, {
                "443 ssl http2": f"127.0.0.1:{port} ssl http2", "listen 80": f"listen 127.0.0.1:{free_port()}",
                "/etc/ssl/crcr/fullchain.pem": folder / "cert.pem", "/etc/ssl/crcr/privkey.pem": folder / "key.pem",
                "127.0.0.1:8080": f"127.0.0.1:{relay.ports['ingest']}", "127.0.0.1:8090": f"127.0.0.1:{relay.ports['hud']}"})
            checked = subprocess.run([*command, "-t"], capture_output=True, text=True, timeout=60)
            assert checked.returncode == 0 and "warn" not in checked.stderr, checked.stderr
            nginx = Process("nginx", command, folder)

            def ask(method, path, body=None, headers=None):
                context = ssl.create_default_context(cafile=str(folder / "cert.pem"))
                connection = http.client.HTTPSConnection("crcr.example.org", port, context=context, timeout=20)
                connection._create_connection = lambda *_: socket.create_connection(("127.0.0.1", port), 20)
                connection.request(method, path, body, headers or {})
                answer = connection.getresponse()
                return answer.status, answer.read()
            wait_for("nginx", lambda: ask("GET", "/")[0])
            yield relay, ask
            nginx.stop()
        finally:
            relay.stop()


def test_a_webhook_and_the_pages_come_through_tls(proxied):
    relay, ask = proxied
    assert b"<!doctype html>" in ask("GET", "/")[1].lower()
    body = json.dumps(pull_request(number=88)).encode()
    headers = {"X-GitHub-Event": "pull_request", "X-GitHub-Delivery": "d-88", "X-Hub-Signature-256": sign(body)}
    assert ask("POST", "/github/webhook", body, headers)[0] == 202
    assert ask("POST", "/github/webhook", body, {**headers, "X-Hub-Signature-256": "sha256=" + "0" * 64})[0] == 401


def test_a_body_of_25_mib_comes_through_and_a_larger_one_is_413(proxied):
    _, ask = proxied
    body = b"[" + b" " * ((25 << 20) - 2) + b"]"
    assert ask("POST", "/github/webhook", body, {"X-GitHub-Event": "push", "X-Hub-Signature-256": sign(body)})[0] == 400  # of ingest: no object
    assert ask("POST", "/github/webhook", b" " * (27 << 20))[0] == 413
