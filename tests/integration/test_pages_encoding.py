"""How the pages are sent: compressed to who takes that, and what never changes for good."""
import gzip
import http.client
import json
import re

import pytest

from test_pages_api import assets, live
from test_reporter import Job, Reporter

DIGEST = "[0-9a-f]{32}"
GZIP = {"Accept-Encoding": "gzip, deflate, br, zstd"}  # as browsers say it


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Reporter(tmp_path_factory.mktemp("encoding"), kafka_node.brokers)
    try:
        for number in range(20):
            Job(one, pr=821, job_name=f"job {number}").call("completed", 2000, conclusion="success")
        Job(one, "org/two", "L2", pr=821).call("completed", 2000, conclusion="success").wait_result()
        yield one
    finally:
        one.close()


@pytest.fixture(params=["/", "/prz", "app.js", "style.css", "/api/crcr/openapi.json", "/api/crcr/repos/org/four"])
def path(request, reporter):
    return request.param if request.param.startswith("/") else assets(reporter)[request.param]


def fetch(reporter, path, method="GET", **headers):
    """(status, headers, bytes) as they are sent."""
    link = http.client.HTTPConnection("127.0.0.1", reporter.relay.ports["hud"], timeout=20)
    try:
        link.request(method, path, headers={"Accept": "text/html", **headers})
        answer = link.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        link.close()


def test_who_takes_gzip_gets_it_and_all_others_the_same_plain(reporter, path):
    status, headers, body = fetch(reporter, path, **GZIP)
    plain_status, plain_headers, plain = fetch(reporter, path)
    assert status == plain_status == (404 if path == "/prz" else 200)
    assert (headers["Content-Encoding"], plain_headers["Content-Encoding"]) == ("gzip", None)
    assert gzip.decompress(body) == plain and len(body) < len(plain) * 0.7
    for name in ("Content-Type", "Cache-Control", "Vary", "Content-Security-Policy"):
        assert headers[name] == plain_headers[name], name
    assert headers["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize("accepted, encoding", [
    ("gzip", "gzip"), ("*", "gzip"), ("gzip;q=0.5, identity", "gzip"), ("br, *;q=0.1", "gzip"),
    ("gzip;q=0", None), ("gzip;q=0, *", None), ("*;q=0", None), ("identity", None), ("br", None), ("", None)])
def test_accept_encoding_is_read_as_http_says(reporter, accepted, encoding):
    for asked in (assets(reporter)["app.js"], "/api/crcr/repos/org/four"):
        assert fetch(reporter, asked, **{"Accept-Encoding": accepted})[1]["Content-Encoding"] == encoding


def test_each_form_has_an_etag_and_is_304_to_who_has_that_form(reporter, path):
    if path == "/prz":
        assert fetch(reporter, path)[1]["ETag"] is None
        return
    packed, plain = (fetch(reporter, path, **how)[1]["ETag"] for how in (GZIP, {}))
    assert re.fullmatch(f'"{DIGEST}"', plain) and packed == f'{plain[:-1]}-gzip"'
    for how, has, other in ((GZIP, packed, plain), ({}, plain, packed)):
        for known in (has, f'"x", W/{has}', "*"):
            status, headers, body = fetch(reporter, path, **how, **{"If-None-Match": known})
            assert (status, body, headers["ETag"], headers["Vary"]) == (304, b"", has, "Accept-Encoding")
            assert headers["Content-Encoding"] is None
        assert fetch(reporter, path, **how, **{"If-None-Match": other})[0] == 200
        assert fetch(reporter, path, **how, **{"If-None-Match": f"{other}, {has}"})[0] == 304


def test_head_says_what_get_says(reporter, path):
    for how in (GZIP, {}):
        status, headers, body = fetch(reporter, path, **how)
        head_status, head, nothing = fetch(reporter, path, "HEAD", **how)
        assert (head_status, nothing) == (status, b"") and int(head["Content-Length"]) == len(body)
        assert {name: value for name, value in head.items() if name != "Date"} == {
            name: value for name, value in headers.items() if name != "Date"}


def test_assets_are_kept_for_good_and_nothing_else_is(reporter):
    found = assets(reporter)
    assert set(found) == {"app.js", "style.css", "icon.svg"}
    for asset in found.values():
        assert fetch(reporter, asset)[1]["Cache-Control"] == "public, max-age=31536000, immutable"
        status, headers, _ = fetch(reporter, re.sub("-[0-9a-f]{12}", f"-{'0' * 12}", asset))
        assert (status, headers["Cache-Control"], headers["ETag"]) == (404, "no-cache", None)
    for none in ("/assets/app.js", "/assets/index.html", "/assets/", "/index.html"):
        assert (fetch(reporter, none)[0], fetch(reporter, none)[1]["Cache-Control"]) == (404, "no-cache"), none
    for other in ("/", "/prz", "/pr/821", "/api/crcr/openapi.json", "/api/crcr/summary", "/repo/org/four/badge.svg"):
        assert fetch(reporter, other)[1]["Cache-Control"] == "no-cache", other


def test_what_is_small_and_events_are_sent_plain(reporter):
    status, headers, body = fetch(reporter, "/api/crcr/prs/999999", **GZIP)
    assert (status, headers["Content-Encoding"]) == (404, None) and json.loads(body)
    tag = fetch(reporter, "/api/crcr/repos/org/four", **GZIP)[1]["ETag"]
    status, headers, body = live(reporter, "/api/crcr/repos/org/four", "0" * 32, **GZIP).result(30)
    assert (status, headers["Content-Encoding"], headers["Content-Type"]) == (200, None, "text/event-stream")
    assert f"id: {tag.strip(chr(34)).removesuffix('-gzip')}\n" in body, "the digest is that of the content"
