"""What a stranger may send, and how often: requests that two servers could read differently, heads that do not end,
more connections than anybody needs."""
import contextlib
import ctypes
import hashlib
import hmac
import os
import pathlib
import re
import resource
import socket
import time

import pytest

from ingest_env import SECRET, Ingest, payload
from lib.processes import BIN, wait_for

BODY = payload("pull_request/opened.json")
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
LENGTH = b"Content-Length: %d" % len(BODY)
SIGNATURE = b"X-Hub-Signature-256: sha256=" + hmac.new(SECRET.encode(), BODY, hashlib.sha256).hexdigest().encode()
IDLE = 12_000  # of 10,000


def webhook(*more, delivery=b"hidden", target=b"/github/webhook", version=b"HTTP/1.1", sign=SIGNATURE, body=BODY):
    """A webhook that is taken, but for the lines in `more`."""
    lines = [b"POST " + target + b" " + version, b"Host: x", b"X-GitHub-Event: pull_request",
             b"X-GitHub-Delivery: " + delivery, sign, *more]
    return b"\r\n".join([*lines, b"", b""]) + body


HIDDEN = webhook(LENGTH)
# Each is signed, and followed by a webhook that is fine.
AMBIGUOUS = {
    "transfer-encoding with content-length": webhook(b"Transfer-Encoding: chunked", LENGTH, body=CHUNKED),
    "content-length with transfer-encoding": webhook(LENGTH, b"Transfer-Encoding: chunked", body=CHUNKED),
    "two lengths that differ": webhook(LENGTH, b"Content-Length: 5"),
    "two lengths that are equal": webhook(LENGTH, LENGTH),
    "a list of lengths": webhook(LENGTH + b", %d" % len(BODY)),
    "a length with a sign": webhook(b"Content-Length: +%d" % len(BODY)),
    "transfer-encoding identity": webhook(b"Transfer-Encoding: identity"),
    "transfer-encoding unknown": webhook(b"Transfer-Encoding: xchunked", body=CHUNKED),
    "transfer-encoding stacked": webhook(b"Transfer-Encoding: gzip, chunked", body=CHUNKED),
    "transfer-encoding chunked twice": webhook(b"Transfer-Encoding: chunked, chunked", body=CHUNKED),
    "two transfer-encodings": webhook(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=CHUNKED),
    "transfer-encoding behind a control character": webhook(b"Transfer-Encoding: \x0bchunked", body=CHUNKED),
    "transfer-encoding in HTTP/1.0": webhook(b"Transfer-Encoding: chunked", version=b"HTTP/1.0", body=CHUNKED),
    "a chunk's size in another form": webhook(b"Transfer-Encoding: chunked", body=b"0x" + CHUNKED),
    "a blank before the colon": webhook(b"Content-Length : %d" % len(BODY)),
    "a tab before the colon": webhook(LENGTH, b"Transfer-Encoding\t: chunked"),
    "a blank in a name": webhook(LENGTH, b"X Y: 1"),
    "a line without a colon": webhook(LENGTH, b"X-Y"),
    "a bare CR": webhook(LENGTH, b"X-Y: 1\rTransfer-Encoding: chunked"),
    "an escaped NUL in the path": webhook(LENGTH, target=b"/github/webhook%00"),
    "an escaped slash in the path": webhook(LENGTH, target=b"/github%2fwebhook"),
    "an escaped slash, in capitals": webhook(LENGTH, target=b"/github%2Fwebhook?a=b"),
    "two signatures": webhook(LENGTH, SIGNATURE),
    "two Authorizations": webhook(LENGTH, b"Authorization: Bearer a", b"authorization: Bearer b"),
    "two hosts": webhook(LENGTH, b"Host: y"),
}
WRONG = b"X-Hub-Signature-256: sha256=" + b"0" * 64
PLAIN = webhook(LENGTH, sign=WRONG)
# libmicrohttpd's part. 0.9.75 (Debian 12) reads these as one request; a stranger's is refused and closed all the same.
LIBRARY = {
    "a folded line": webhook(LENGTH, b"X-Y: 1\r\n 2", sign=WRONG),
    "a folded Transfer-Encoding": webhook(LENGTH, b"Transfer-Encoding:\r\n chunked", sign=WRONG),
    "a bare LF after a header": PLAIN.replace(b"Host: x\r\n", b"Host: x\n"),
    "a bare LF after the request line": PLAIN.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\n"),
    "a bare LF before the body": PLAIN.replace(b"\r\n\r\n", b"\r\n\n"),
    "a NUL in the path": webhook(LENGTH, target=b"/github/webhook\0x", sign=WRONG),
    "a NUL in a header": webhook(LENGTH, b"X-Y: 1\x002", sign=WRONG),
}


@pytest.fixture(scope="module")
def one(kafka_node, redis_node, issuer, tmp_path_factory):
    made = Ingest(tmp_path_factory.mktemp("stranger"), kafka_node.brokers, redis_node.endpoint, issuer)
    made.start().wait_ready()
    yield made
    made.stop()


def all_answers(port, sent, seconds=10):
    """The statuses until the server closes. 0.9.75 may send the head of its own 400 twice."""
    with socket.create_connection(("127.0.0.1", port), seconds) as link:
        link.sendall(sent)
        answers = b""
        with contextlib.suppress(ConnectionResetError):  # it closed with something unread
            while got := link.recv(65536):
                answers += got
    return re.findall(rb"HTTP/1\.1 (\d{3}) ", answers)


def library_version():
    library = ctypes.CDLL("libmicrohttpd.so.12")
    library.MHD_get_version.restype = ctypes.c_char_p
    return tuple(int(part) for part in library.MHD_get_version().decode().split(".")[:2])


@pytest.mark.parametrize("what", AMBIGUOUS)
def test_a_request_that_two_servers_could_read_differently_is_400_and_closed(one, what):
    assert set(all_answers(one.port, AMBIGUOUS[what] + HIDDEN)) == {b"400"}


@pytest.mark.parametrize("what", LIBRARY)
def test_what_only_the_library_sees_opens_no_second_request(one, what):
    answers = set(all_answers(one.port, LIBRARY[what] + HIDDEN))  # 1.0 closes without a word on some
    assert answers <= {b"400"} or (library_version() < (1, 0) and answers == {b"401"})


def test_a_refusal_closes_and_no_ambiguous_request_was_stored(one):
    for refused in (webhook(LENGTH, sign=WRONG), webhook(LENGTH, target=b"/nothing"), webhook(b"Content-Length: 1")):
        assert len(all_answers(one.port, refused + HIDDEN)) == 1
    assert one.webhook(BODY, delivery="honest")[0] == 202
    assert {record.headers["delivery"] for record in one.records("events")} == {"honest"}
    assert re.search(r'route="webhook",status="400",reason="ambiguous"\} [1-9]', one.get_admin("/metrics")[1])
    one.process.wait_text('"delivery":"hidden","status":400,"reason":"ambiguous"')


def test_what_is_plain_is_taken_and_its_connection_kept(one):
    """Chunked, blanks around a value, an escape in the path and the query. Of chunk extensions, which nobody sends,
    libmicrohttpd 1.0 thinks otherwise than 0.9."""
    plain = [webhook(b"Transfer-Encoding: Chunked", delivery=b"plain-1", body=CHUNKED),
             webhook(b"Content-Length:\t%d" % len(BODY), delivery=b"plain-2"),
             webhook(LENGTH, delivery=b"plain-3", target=b"/github/%77ebhook/?a=%2f%00"),
             webhook(LENGTH, b"Connection: close", delivery=b"plain-4")]
    with socket.create_connection(("127.0.0.1", one.port), 20) as link:
        for request in plain:
            link.sendall(request)
            assert link.recv(65536).startswith(b"HTTP/1.1 202 ")
        assert link.recv(1) == b""


def test_a_head_that_does_not_end_is_cut_off_after_10_s(one):
    """Also on a connection that was good for one request, and however busily it comes."""
    with socket.create_connection(("127.0.0.1", one.port), 20) as fresh, \
            socket.create_connection(("127.0.0.1", one.port), 20) as kept:
        kept.sendall(webhook(LENGTH, delivery=b"kept"))
        assert kept.recv(65536).startswith(b"HTTP/1.1 202 ")
        began = time.monotonic()
        for link in (fresh, kept):
            link.sendall(b"POST /github/webhook HTTP/1.1\r\nX-Drip: ")
            link.settimeout(0.5)
        for link in (fresh, kept):
            while time.monotonic() - began < 30:
                with contextlib.suppress(TimeoutError):
                    try:
                        link.sendall(b"x")
                        if link.recv(1) == b"":
                            break
                    except ConnectionError:
                        break
        assert 9 < time.monotonic() - began < 15


def test_connections_of_one_address_are_limited_and_others_served(own):
    one = own(CRCR_MAX_CONNECTIONS_PER_ADDRESS="2").start().wait_ready()
    with contextlib.ExitStack() as opened:
        links = [opened.enter_context(socket.create_connection(("127.0.0.1", one.port), 20, ("127.0.0.2", 0)))
                 for _ in range(2 * min(8, os.cpu_count()) + 1)]  # each HTTP thread counts on its own
        wait_for("one of them to be closed", lambda: any(is_closed(link) for link in links))
        assert one.webhook(BODY)[0] == 202


def is_closed(link):
    link.settimeout(0.01)
    try:
        return link.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def resident_bytes(one):
    return int(re.search(r"VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{one.process.pid}/status").read_text())[1]) * 1024


@pytest.mark.long
def test_idle_connections_cost_64_mb_at_most_and_others_are_served(own):
    """More of them than are taken: from 7/8 of the limit on each new one ends the oldest that has sent no head."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(most, 20_000),) * 2)
    # The sanitizers' own bytes: as few as they can do with, and as many again as ours.
    most_bytes = (64 << 20) * (2 if b"__asan_init" in (BIN / "crcr-ingest").read_bytes() else 1)
    one = own(ASAN_OPTIONS="max_malloc_fill_size=0:max_redzone=16:quarantine_size_mb=1").start().wait_ready()
    assert one.webhook(BODY)[0] == 202
    before, grown, took = resident_bytes(one), [], []
    with contextlib.ExitStack() as opened:
        for n in range(1, IDLE + 1):
            opened.enter_context(socket.create_connection(("127.0.0.1", one.port), 20))
            if n % 500 == 0:
                began = time.monotonic()
                assert one.webhook(BODY, timeout=5)[0] == 202
                took.append(time.monotonic() - began)
                grown.append(resident_bytes(one) - before)
    print(f"flood: {IDLE} idle connections, +{max(grown) / 2**20:.0f} MiB, a webhook beside them took {max(took) * 1000:.0f} ms at most")
    assert max(grown) <= most_bytes, grown
    assert sorted(took)[-2] < 1, took
