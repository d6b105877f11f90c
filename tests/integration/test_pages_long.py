"""The pages in Chromium, what takes long: axe-core on each, and deliveries of ten thousand jobs. All of tests/run --all."""
import json
import pathlib
import re
import subprocess
import time
import types

import pytest

from lib.bundle import bundled
from lib.kafka import write_all
from lib.processes import ROOT, wait_for
from test_pages_browser import NARROW, WIDE, chromium, failed, page, reporter  # noqa: F401 (fixtures)
from test_reporter import Job, label_event
from test_reporter_commits import push_event, report, sha_of

pytestmark = pytest.mark.long
MANY = 10_000
RENDERED_MAX_MS = 1000

# Draws what a URL gives three times, first into an empty page; the milliseconds of each, to the picture.
DRAW = bundled("delivery.js", "dom.js") + """
const [url, done] = arguments, { show, patch } = ours;
(async () => {
  const text = await (await fetch(url)).text(), main = document.getElementById("main"), times = [];
  for (let i = 0; i < 3; i++) {
    const began = performance.now();
    const nodes = show(JSON.parse(text));
    if (i) patch(main, nodes, false); else main.replaceChildren(...nodes);
    main.getBoundingClientRect();
    await new Promise((there) => requestAnimationFrame(() => setTimeout(there)));
    times.push(performance.now() - began);
  }
  done(times);
})().catch((error) => done(`${error.stack}`));
"""


@pytest.fixture(scope="module")
def axe():
    done = subprocess.run([ROOT / "tests" / "lib" / "fetch-axe"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return pathlib.Path(done.stdout.strip()).read_text()


@pytest.fixture(scope="module")
def rich(reporter):  # noqa: F811
    """Pages with something of everything; the paths of all of them."""
    job = failed(reporter, pr=901, job_name="gpu / 1")
    label_event(job, "synchronize", ["ciflow/crcr/npu"], "", 1)
    three = Job(reporter, "org/three", "L3", pr=901)
    three.delivery, three.sha = job.delivery, job.sha
    three.outcome("dispatched").call("in_progress", 2000).wait_result("in_progress")
    Job(reporter, "org/two", "L2", pr=901).outcome("failed", error="404", http_status=404)
    report(reporter, sha_of("axe"), "org/two", "L2", conclusion="success")
    label_event(job, "opened", [], "", 2)
    push_event(reporter, "0" * 40, [(sha_of(f"axe {i}"), f"Change (#{i})") for i in (1, 2)])
    for i, result in ((1, "success"), (2, "failure")):
        report(reporter, sha_of(f"axe {i}"), job_name="kernels", run_id=9000 + i, conclusion=result)
    reporter.put("dlq", "axe", {}, {"class": "refused", "error": "no", "source_topic": "callbacks", "parked_ms": str(int(time.time() * 1000))})
    for number in range(120):
        Job(reporter, "org/five", pr=902, job_name=f"job {number}", run_id=902).call("completed", 2000, conclusion="success")
    wait_for("the last job", lambda: "job 119" in json.dumps(reporter.relay.api("/api/crcr/repos/org/five")))
    reporter.count()
    wait_for("a job to fail on main", lambda: (reporter.relay.api("/api/crcr/repos/org/four/since") or {}).get("failing"))
    wait_for("the dead-letter queue", lambda: reporter.relay.api("/api/crcr/pipeline")["dlq"]["entries"])
    return {"/": ["/", "/?days=1"], "/prs": ["/prs", "/prs?state=failing", "/prs?q=none"], "/pipeline": ["/pipeline"],
            "/pr/<n>": ["/pr/901", "/pr/999999"], "/delivery/<id>": [f"/delivery/{job.delivery}", "/delivery/none-such"],
            "/repo/<owner>/<repo>": ["/repo/org/four", "/repo/org/two", "/repo/org/five"],
            "/repo/<owner>/<repo>/since": ["/repo/org/four/since", "/repo/org/five/since"],
            "/metrics-board": ["/metrics-board", "/metrics-board?days=7"], "none": ["/prz"]}


def test_every_page_of_the_readme_is_tried(rich):
    described = re.findall(r"^\| `(/[^`]*)`", (ROOT / "reporter" / "web" / "README.md").read_text(), re.M)
    assert set(described) - {"/repo/<owner>/<repo>/badge.svg"} == set(rich) - {"none"}


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(rich, page, axe, scheme, size):  # noqa: F811
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    found = []
    for path in sum(rich.values(), []):
        page.open(path, size)
        wait_for(f"{path} to be there", lambda: page.js("return document.querySelector('main h1') !== null"))
        wait_for(f"the charts of {path}", lambda: page.js("return [...document.querySelectorAll('figure')].every((one) => one.querySelector('.plot') || one.innerText.includes('No data'))"))
        page.js("document.querySelectorAll('main details').forEach((one) => { one.open = true; });")
        page.js(axe)
        result = page.driver.execute_async_script("const done = arguments[0]; axe.run().then(done, (error) => done({ error: String(error) }));")
        assert "violations" in result, result
        found += [f"{path}: {one['id']}: {one['help']}: {[node['target'] for node in one['nodes']][:5]}" for one in result["violations"]]
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert found == []


@pytest.fixture(scope="module")
def many(reporter):  # noqa: F811
    """A delivery of ten thousand jobs of ten back ends, each tenth of which failed, and of one that reported nothing."""
    job, records = Job(reporter, "org/many0", "L2", pr=903), []
    job.reporter = types.SimpleNamespace(put=lambda _, key, value, headers, **how: records.append((key, json.dumps(value), headers, 0)))
    for number in range(MANY):
        job.repo = f"org/many{number % 10}"
        job.call("completed", 2000, job_name=f"a job with a name of usual length, number {number}",
                 conclusion="failure" if number % 100 < 10 else "success", check_run_id=str(number))
    quiet = Job(reporter, "org/quiet", "L2", pr=903)
    quiet.delivery, quiet.sha = job.delivery, job.sha
    quiet.outcome("dispatched")
    write_all(reporter.relay.kafka, reporter.relay.topic("callbacks"), records)
    def jobs():
        delivery = reporter.relay.api(f"/api/crcr/deliveries/{job.delivery}?limit={MANY}")
        return delivery and len(delivery["jobs"]) == MANY
    wait_for("all of them", jobs, 300, every=2)
    return job


@pytest.mark.parametrize("path, jobs", [("/delivery/{}?limit=10000", MANY), ("/pr/903", 1000)])
def test_ten_thousand_jobs_are_drawn_within_a_second(many, page, path, jobs):  # noqa: F811
    """From the JSON that came to the picture: parsed, made into elements, laid out. And again, when it has changed."""
    page.open(path.format(many.delivery)).wait("org/many0", f"{jobs // 10} ✗ failure", f"org/quiet L2 none of the first {jobs:,} jobs")
    shown = page.js("return document.querySelectorAll('main .jobs > li').length")
    assert shown == jobs
    assert "its first report" not in page.text(), "it may be among the others"
    drawn = page.driver.execute_async_script(DRAW, f"/api/crcr/deliveries/{many.delivery}?limit={jobs}")
    assert isinstance(drawn, list), drawn
    print(f"{jobs} jobs: drawn in {drawn[0]:.0f} ms, changed in {min(drawn[1:]):.0f} ms")
    assert drawn[0] < RENDERED_MAX_MS and min(drawn[1:]) < RENDERED_MAX_MS
