"""What a visit of the pages costs, in Chromium: requests, and bytes as they are sent. The figures of reporter/web/README.md."""
import json
import subprocess
import types

import pytest

from lib.kafka import write_all
from lib.processes import BIN, ROOT, wait_for
from test_pages_browser import chromium, page, reporter  # noqa: F401 (fixtures)
from test_reporter import Job

JOBS, BACK_ENDS = 1000, 10
PLAIN_MAX, CHARTS_MAX = 60_000, 110_000  # bytes of a page with all that it loads, compressed
AGAIN_MAX = 6  # requests of a second visit
PATHS = {"/": PLAIN_MAX, "/repo/org/size0": CHARTS_MAX, "/metrics-board": CHARTS_MAX}

# Of the document and all that it has loaded: path; bytes sent, 0: the browser had it; bytes of the body, compressed.
LOADED = """return ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type)).map(
  (one) => [new URL(one.name).pathname, one.transferSize, one.encodedBodySize]);"""


@pytest.fixture(scope="module")
def many(reporter):  # noqa: F811
    """Back ends with a thousand jobs."""
    job, records = Job(reporter, "org/size0", "L2", pr=904), []
    job.reporter = types.SimpleNamespace(put=lambda _, key, value, headers, **how: records.append((key, json.dumps(value), headers, 0)))
    for number in range(JOBS):
        job.repo, job.pr = f"org/size{number % BACK_ENDS}", 904 + number // 100
        job.call("completed", 2000, job_name=f"linux-jammy / test (default, {number // BACK_ENDS % 20 + 1}, 20)", run_id=number // 100,
                 conclusion="failure" if number % 7 == 0 else "success", check_run_id=str(number))
    write_all(reporter.relay.kafka, reporter.relay.topic("callbacks"), records)
    wait_for("all of them", lambda: (reporter.relay.api("/api/crcr/repos/org/size0?limit=1000") or {"jobs": []})["jobs"], 60)
    reporter.count()
    return job


def visit(page, path):  # noqa: F811
    """One visit, until all is drawn and the page waits for a change (its last request, which ends later)."""
    page.open(path).wait("size0")
    wait_for("the charts", lambda: page.js("return [...document.querySelectorAll('figure')].every((one) => one.querySelector('.plot') || one.innerText.includes('No data'))"))
    page.wait("Live", selector="#fresh")
    loaded = [one for one in page.js(LOADED) if one[0] != "/api/crcr/live"]
    sent = [one for one in loaded if one[1] > 0]
    return types.SimpleNamespace(requests=len(sent) + 1, sent=sum(one[1] for one in sent),
                                 code=sum(size for path, _, size in loaded if not path.startswith("/api/")),
                                 json=sum(size for path, _, size in loaded if path.startswith("/api/")))


@pytest.mark.parametrize("path", PATHS)
def test_a_page_is_small_and_a_second_visit_asks_little(many, page, path):  # noqa: F811
    page.driver.execute_cdp_cmd("Network.clearBrowserCache", {})
    first, second = visit(page, path), visit(page, path)
    print(f"{path}: first {first.requests} requests, {first.sent:,} bytes (pages {first.code:,}, JSON {first.json:,}); "
          f"second {second.requests} requests, {second.sent:,} bytes")
    assert first.code + first.json <= PATHS[path]
    assert second.requests <= AGAIN_MAX


def test_a_second_build_has_the_same_bytes(tmp_path):
    done = subprocess.run(["cmake", "-S", ROOT, "-B", tmp_path], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    built = [{path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
             for folder in (BIN.parent / "pages", tmp_path / "pages")]
    assert built[0] == built[1] and any(str(name).endswith("app.js.gz") for name in built[0])
