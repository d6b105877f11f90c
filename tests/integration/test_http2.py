"""http_client against nghttpd, a real HTTP/2 server: one connection for many requests at once, and
no answer from anyone whose certificate our CA did not sign.

The driver is tests/integration/http2_driver.c; what the server saw stands in its verbose log."""
import concurrent.futures
import json
import shutil
import socket
import subprocess
import threading

import pytest

from lib.ports import free_port
from lib.processes import BIN, Process, wait_for

DRIVER = BIN.parent / "integration" / "http2_driver"


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """A private CA and one certificate that it signed for a name."""

    def __init__(self, folder, name, hosts="IP:127.0.0.1,DNS:localhost"):
        self.ca, self.key, self.certificate = (folder / f"{name}.{kind}"
                                               for kind in ("ca.pem", "key.pem", "pem"))
        ca_key, request, extra = (folder / f"{name}.{kind}" for kind in ("ca.key", "csr", "ext"))
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", 2, "-subj", f"/CN={name}",
                "-keyout", ca_key, "-out", self.ca)
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=server", "-keyout", self.key,
                "-out", request)
        extra.write_text(f"subjectAltName={hosts}\n")
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", ca_key, "-CAcreateserial",
                "-days", 1, "-extfile", extra, "-out", self.certificate)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"), "ours")


@pytest.fixture
def serve(tmp_path):
    """Starts nghttpd with a certificate; gives its port and process. All are killed at the end."""
    assert shutil.which("nghttpd"), "nghttpd is missing: apt install nghttp2-server"
    running = []

    def start(authority, *options):
        port = free_port()
        (tmp_path / "hello").write_text("hello")
        process = Process("nghttpd", ["nghttpd", "--verbose", "--address=127.0.0.1", *options, "-d",
                                      tmp_path, port, authority.key, authority.certificate], tmp_path)
        running.append(process)
        process.wait_text("listen 127.0.0.1")
        return port, process

    yield start
    for process in running:
        process.kill()


def drive(ca, url, n=1, body_bytes=0, first=0):
    """The answers that the driver printed, one object for each request."""
    assert DRIVER.exists(), f"{DRIVER} is not built"
    done = subprocess.run([DRIVER, ca, url, str(n), str(body_bytes), str(first)], capture_output=True, text=True,
                          timeout=60)
    assert not done.stderr, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


class Gate:
    """A TCP proxy in front of the server that counts connections and holds back what the server
    says from its first request on, until opened."""

    def __init__(self, port, process):
        self.server, self.process = port, process
        self.opened = threading.Event()
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            server = socket.create_connection(("127.0.0.1", self.server))
            for source, sink, held in ((client, server, False), (server, client, True)):
                threading.Thread(target=self.pump, args=(source, sink, held), daemon=True).start()

    def pump(self, source, sink, held):
        with source, sink:
            while data := source.recv(65536):
                if held and self.requests():
                    assert self.opened.wait(60)
                sink.sendall(data)

    def requests(self):
        return self.process.text().count("recv HEADERS")


def test_many_requests_share_one_connection_at_the_same_time(authority, serve):
    port, process = serve(authority)
    gate = Gate(port, process)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        driven = pool.submit(drive, authority.ca, f"https://127.0.0.1:{gate.port}/hello", n=50)
        try:
            wait_for("50 requests while nothing was answered", lambda: gate.requests() == 50)
        finally:
            gate.opened.set()
        answers = driven.result()
    gate.listener.close()
    assert [(a["err"], a["status"], a["version"], a["bytes"]) for a in answers] \
        == [("ok", 200, 20, 5)] * 50
    assert gate.connections == 1


def test_requests_beyond_the_servers_streams_wait_and_are_all_answered(authority, serve):
    port, _ = serve(authority, "--max-concurrent-streams=4")
    answers = drive(authority.ca, f"https://127.0.0.1:{port}/hello", n=40, first=1)
    assert [(a["err"], a["version"]) for a in answers] == [("ok", 20)] * 41


def test_large_bodies_are_sent_through_flow_control(authority, serve):
    port, _ = serve(authority)
    answers = drive(authority.ca, f"https://127.0.0.1:{port}/hello", n=20, body_bytes=300_000)
    assert {(a["err"], a["version"]) for a in answers} == {("ok", 20)}


def test_certificate_of_another_authority_is_refused(authority, serve, tmp_path):
    port, process = serve(Authority(tmp_path, "theirs"))
    answers = drive(authority.ca, f"https://127.0.0.1:{port}/hello", n=3)
    assert [a["err"] for a in answers] == ["refuse"] * 3
    assert "certificate" in answers[0]["reason"]
    assert "recv HEADERS" not in process.text()


def test_certificate_for_another_host_is_refused(serve, tmp_path):
    elsewhere = Authority(tmp_path, "elsewhere", hosts="DNS:other.example")
    port, process = serve(elsewhere)
    assert [a["err"] for a in drive(elsewhere.ca, f"https://127.0.0.1:{port}/hello")] == ["refuse"]
    assert "recv HEADERS" not in process.text()


def test_where_nobody_listens_nothing_was_sent(authority):
    nobody = drive(authority.ca, f"http://127.0.0.1:{free_port()}/hello")
    assert [a["err"] for a in nobody] == ["retry"]
