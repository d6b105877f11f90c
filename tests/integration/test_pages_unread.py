"""A stranger asks for large pages and reads nothing: the reporter keeps its memory, and its other roles go on."""
import contextlib
import json
import os
import pathlib
import re
import resource
import socket
import threading
import time
import types

import pytest

from lib.kafka import write_all
from lib.processes import BIN, wait_for
from test_pages_api import assets, get
from test_reporter import Job, Reporter

JOBS = 1000  # so many make a page of half a MiB and more
CONNECTIONS = 2900  # of 3,000
SANITIZED = b"__asan_init" in (BIN / "crcr-reporter").read_bytes()
MOST_BYTES = (64 << 20) * (2 if SANITIZED else 1)  # the sanitizers' own bytes: as few as they can do with, and as many again


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    before = os.environ.get("ASAN_OPTIONS")
    os.environ["ASAN_OPTIONS"] = "max_malloc_fill_size=0:max_redzone=16:quarantine_size_mb=1"
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(most, 20_000),) * 2)
    try:
        one = Reporter(tmp_path_factory.mktemp("flood"), kafka_node.brokers)
    finally:
        os.environ.pop("ASAN_OPTIONS") if before is None else os.environ.update(ASAN_OPTIONS=before)
    try:
        yield one
    finally:
        one.close()


@pytest.fixture(scope="module")
def delivery(reporter):
    """One whose page is large."""
    job, records = Job(reporter, "org/many", "L2", pr=903), []
    job.reporter = types.SimpleNamespace(put=lambda _, key, value, headers, **how: records.append((key, json.dumps(value), headers, 0)))
    for number in range(JOBS):
        job.repo = f"org/many{number % 10}"
        job.call("completed", 2000, job_name=f"a job with a name of usual length, number {number} " + "x" * 100, conclusion="failure",
                 check_run_id=str(number))
    write_all(reporter.relay.kafka, reporter.relay.topic("callbacks"), records)
    wait_for("all of them", lambda: len((reporter.relay.api(f"/api/crcr/deliveries/{job.delivery}?limit={JOBS}") or {"jobs": []})["jobs"]) == JOBS,
             120, every=1)
    return job.delivery


def resident_bytes(reporter):
    return int(re.search(r"VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{reporter.relay.parts['reporter'].pid}/status").read_text())[1]) * 1024


@contextlib.contextmanager
def watched(reporter):
    """The largest resident size, in a list, seen meanwhile."""
    most, ended = [resident_bytes(reporter)], threading.Event()

    def watch():
        while not ended.wait(0.02):
            most[0] = max(most[0], resident_bytes(reporter))
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()


def ask(reporter, opened, target, more=""):
    link = socket.socket()
    opened.callback(link.close)
    link.settimeout(20)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    link.connect(("127.0.0.1", reporter.relay.ports["hud"]))
    link.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\n{more}\r\n".encode())


PAGE = f"/api/crcr/deliveries/{{at}}?limit={JOBS}"
SHAPES = {  # the n-th target; further headers
    "one page": (lambda n: PAGE, ""),
    "one page, with large heads": (lambda n: PAGE, f"X-Filler: {'x' * 7000}\r\n" * 2),
    "one of 300 pages": (lambda n: PAGE + str(n % 300), ""),
    "a script": (lambda n: "{script}", ""),
    "the page of no such path": (lambda n: "/none", "Accept: text/html\r\n"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_who_reads_nothing_costs_64_mb_at_most_and_the_others_are_served(reporter, delivery, shape):
    page, script = PAGE.format(at=delivery), assets(reporter)["app.js"]
    assert len(get(reporter, page)[2]) > 1 << 19
    before, statuses, took = resident_bytes(reporter), [], []
    with contextlib.ExitStack() as opened, watched(reporter) as most:
        target, more = SHAPES[shape]
        for number in range(1, CONNECTIONS + 1):
            ask(reporter, opened, target(number).format(at=delivery, script=script), more)
            if number % 290 == 0:
                began = time.monotonic()
                statuses.append(get(reporter, "/api/crcr/summary")[0])
                took.append(time.monotonic() - began)
        job = Job(reporter).call("completed", 2000, conclusion="success")
        job.wait_check()
        end = time.monotonic() + 5
        while time.monotonic() < end:
            statuses.append(get(reporter, page)[0])
            time.sleep(0.25)
    grown = most[0] - before
    print(f"flood: {CONNECTIONS} × {shape}, unread: +{grown / 2**20:.0f} MiB, pages beside them {max(took) * 1000:.0f} ms at most, "
          f"{statuses.count(503)} of {len(statuses)} answered 503")
    assert grown <= MOST_BYTES * (2 if shape == "one of 300 pages" else 1), grown / 2**20  # 48 MiB of pages, beside the connections
    if shape != "one of 300 pages":  # one thread renders: who asks for many holds it up for 12 s
        assert set(statuses) == {200}, statuses
    wait_for("the pages to be served", lambda: get(reporter, page)[0] == 200)
