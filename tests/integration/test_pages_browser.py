"""The pages in a real browser (Debian's Chromium), served by crcr-reporter from what stands in its topics."""
import contextlib
import datetime
import json
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from lib.processes import BIN, wait_for
from lib.relay import pull_request
from test_reporter import Job, label_event
from test_reporter_commits import push_event, report, sha_of
from test_reporter_hours import Counting

WIDE, NARROW = (1280, 900), (390, 844)
HOSTILE = "<img src=x onerror=document.title='taken'>"


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Counting(tmp_path_factory.mktemp("pages"), kafka_node.brokers)
    try:
        yield one
    finally:
        one.close()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                     f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(argument)
    options.binary_location = "/usr/bin/chromium"
    driver = webdriver.Chrome(service=webdriver.chrome.service.Service("/usr/bin/chromedriver"), options=options)
    driver.set_script_timeout(300)  # axe takes half a minute on a busy machine
    try:
        yield driver
    finally:
        driver.quit()


class Page:
    """One page as a reader has it before them."""

    def __init__(self, reporter, driver):
        self.reporter, self.driver = reporter, driver

    def open(self, path, size=WIDE):
        """As if typed into the address bar."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == NARROW})
        self.driver.get("about:blank")  # else another #fragment loads nothing
        self.driver.get(self.reporter.relay.url("hud", path))
        return self

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def text(self, selector="main"):
        return self.js("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def wait(self, *wanted, selector="main"):
        """Until the element shows all of them."""
        return wait_for(f"{selector} to show {wanted}",
                        lambda: all(one in self.text(selector) for one in wanted) and self.text(selector))

    def wait_rows(self, condition):
        """The rows of the table, by what stands first in them, once the condition holds."""
        def rows():
            texts = self.js("return [...document.querySelectorAll('main tbody tr')].map((row) => "
                            "[row.querySelector('th').innerText, row.innerText])")
            found = {name.replace("\u200b", ""): text for name, text in texts}
            return found if condition(found) else None
        return wait_for("the rows", rows)

    def click(self, selector):
        self.driver.find_element(By.CSS_SELECTOR, selector).click()


@pytest.fixture
def page(reporter, chromium):
    return Page(reporter, chromium)


def failed(reporter, pr, repo="org/four", level="L4", message="assert 2 == 3", **workflow):
    """A job of a pull request that failed one test."""
    job = Job(reporter, repo, level, pr=pr, **workflow).outcome("dispatched", action="opened")
    job.call("in_progress", 1500)
    job.call("completed", 11_750, conclusion="failure", test_results={"passed": 8, "failed": 1, "skipped": 1},
             failed_tests_detail=[{"name": "test_add", "classname": "TestOps", "message": message}],
             triage_verdict={"schema_version": "1", "category": "backend", "confidence": "high", "summary": "our kernel"})
    job.wait_result()
    return job


def test_the_first_page_has_the_worst_of_the_highest_level_first(reporter, page):
    Job(reporter, "org/five", pr=701).call("completed", 2000, conclusion="success").wait_result()
    failed(reporter, pr=701)
    two = Job(reporter, "org/two", "L2", pr=701).call("completed", 2000, conclusion="success")
    two.wait_result()
    report(reporter, sha_of("browser"), "org/two", "L2", conclusion="failure")
    reporter.count()
    page.open("/").wait("org/four", "org/two", "org/five", "failure")
    rows = page.wait_rows(lambda rows: "0.0 %" in rows["org/two"])
    assert list(rows)[0] == "org/four" and "0.0 %" in rows["org/four"], "L4 before L2, what failed before what did not"
    assert "100 %" in rows["org/two"], "what a back end starts itself does not count in its pass rate"
    assert page.js("return document.querySelector('main th [data-tip]') !== null"), "each number has its definition"
    assert "of 1 jobs 1 not successful" in page.js("return document.querySelector(\"[data-key='org/four'] svg\").getAttribute('aria-label')")
    page.click("nav.choice a[href='/?days=1']")
    page.wait("1 day", selector="nav.choice [aria-current]")  # the rows before it have the same numbers
    page.wait_rows(lambda rows: "0.0 %" in rows.get("org/four", ""))
    assert len(page.js("return [...document.querySelectorAll(\"[data-key='org/four'] svg rect\")].map(String)")) == 48, "24 hours"


@pytest.mark.long
def test_charts_change_in_place_and_have_tables(reporter, page):
    job = failed(reporter, pr=709, repo="org/five")
    reporter.count()
    page.open("/repo/org/five?days=30").wait("Trends", "Duration")
    drawn = "return [...document.querySelectorAll('#trends figure')].map((one) => one.querySelectorAll('.plot .dots').length)"
    wait_for("four charts, the second of bars", lambda: page.js(drawn) == [3, 0, 2, 2])
    page.click("#trends figure:nth-of-type(2) summary")
    page.js("document.querySelector('#trends figure:nth-of-type(2) .plot').ours = true")
    row = "return document.querySelector('#trends figure:nth-of-type(2) tbody tr').innerText"
    before = page.js(row).split()
    Job(reporter, "org/five", pr=709).call("completed", 2000, conclusion="failure").wait_result()
    reporter.count()
    wait_for("one failure more", lambda: page.js(row).split() != before)
    assert page.js("const [plot, more] = document.querySelectorAll('#trends figure:nth-of-type(2) :is(.plot, details)'); return plot.ours && more.open"), "in place"
    assert page.js("return document.querySelector('#trends .plot .dots[d^=M]').getBoundingClientRect().width > 0"), "a point alone is a dot"
    hover = page.js("return [...document.querySelectorAll('#trends figure:nth-of-type(2) .hit title')].at(-1).textContent")
    assert "so far: failed 2" in hover, hover
    page.open("/metrics-board").wait("Metrics", "End to end", "org/five", job.repo)
    assert page.js("return [...document.querySelectorAll('.smalls section')].every((one) => one.querySelectorAll('.plot').length === 2)")
    assert "org/two" not in page.open("/metrics-board?level=L4").wait("org/four", selector=".smalls")
    page.open("/metrics-board?runs=nightly").wait("nightly, worst first")
    page.open("/metrics-board", NARROW).wait("org/five")
    assert page.js("return document.documentElement.scrollWidth <= innerWidth")
    errors = [one for one in page.driver.get_log("browser") if one["level"] == "SEVERE"]
    assert errors == [], json.dumps(errors)


def test_a_pull_request_shows_failed_tests_what_blocks_and_what_to_do(reporter, page):
    job = failed(reporter, pr=702)
    three = Job(reporter, "org/three", "L3", pr=702)
    three.delivery, three.sha = job.delivery, job.sha
    three.outcome("dispatched").call("completed", 2000, conclusion="success").wait_result()
    shown = page.open("/pr/702#org/four").wait("org/four", "org/three", "TestOps::test_add", "assert 2 == 3")
    assert "our kernel" in shown
    page.wait("ended as failure and blocks the merge", selector="[data-key='org/four']")
    page.wait("1 backend blocks the merge: org/four", selector=".verdict")
    assert "ciflow/crcr/npu" in shown and "to see its check on the pull request" in shown
    assert shown.index("org/four") < shown.index("org/three"), "what failed comes first"
    assert page.js("return document.querySelector('.box:target').id") == "org/four"
    page.js("document.querySelector(\"[data-key='org/three'] h3 a\").focus()")
    label_event(three, "labeled", ["ciflow/crcr/NPU"], "ciflow/crcr/NPU", 1)  # GitHub ignores the case
    page.wait("has the label ciflow/crcr/npu")
    assert page.js("return document.activeElement.getAttribute('href')") == "/repo/org/three", "the first label moves nothing"


def test_a_pull_request_shows_each_commit_and_the_artifacts(reporter, page):
    old = failed(reporter, pr=712)
    new = Job(reporter, pr=712).outcome("dispatched", 5000)
    for name in ("cpu", "gpu"):
        new.call("completed", 6000, conclusion="success", job_name=name, artifact_url=f"https://example.org/{name}.zip")
    page.open("/pr/712").wait(old.sha[:10], new.sha[:10], selector=".commits")
    wait_for("both jobs", lambda: "Artifacts of 2 jobs" in page.text(".boxes"))
    commits = "return [...document.querySelectorAll('.commits > li')].map((one) => one.innerText)"
    newest, before = page.js(commits)
    assert new.sha[:10] in newest and "success" in newest and "shown above" in newest
    assert old.sha[:10] in before and "failure" in before and "shown above" not in before
    assert page.js("return [...document.querySelectorAll('.box details li a')].map((one) => one.pathname)") == ["/cpu.zip", "/gpu.zip"]
    page.click(".commits details summary")
    page.wait(old.repo, "1 failed, 8 passed", selector=".commits details[open]")
    assert page.js("return document.querySelector('.commits .jobs a[href^=\"/delivery/\"]').pathname") == f"/delivery/{old.delivery}"


def test_pull_requests_are_listed_and_found(reporter, page):
    job = failed(reporter, pr=708)
    label_event(job, "synchronize", [], "", 5)
    page.open("/prs").wait("#708", "org/four", "failure")
    page.js("document.getElementById('q').value = '708'")
    page.click("form[action='/prs'] button")
    page.wait("1 pull request,")
    assert page.js("return location.search") == "?q=708"
    assert page.js("return document.querySelectorAll('main tbody tr').length") == 1
    page.open("/prs?q=no-such-title").wait("No pull request")


def test_no_pull_request_of_one_millisecond_is_passed_over(reporter):
    for number in (711, 710):
        reporter.put("events", f"pytorch/pytorch#{number}", pull_request(number=number), {
            "event": "pull_request", "action": "opened", "delivery": f"p-{number}", "pr": str(number), "head_sha": "a" * 40,
            "received_ms": "1795231200123", "source": "webhook"})

    def behind(before):
        return [pr["pr_number"] for pr in reporter.relay.api(f"/api/crcr/prs?before=1795231200{before}")["prs"]]
    wait_for("both", lambda: behind("124-0")[:2] == [711, 710])
    assert behind("123-711")[0] == 710 and not {710, 711} & set(behind("123-710"))


def test_a_delivery_and_a_back_end_have_pages_of_their_own(reporter, page):
    job = failed(reporter, pr=703, job_name="gpu / 1")
    page.open(f"/delivery/{job.delivery}").wait(job.delivery, "gpu / 1", "test_add", "crcrctl trace")
    page.open("/repo/org/four").wait("#703", "gpu / 1", "failure", "On call: carol")
    page.click("a[href='/pr/703']")
    page.wait("#703", "Pull request of pytorch/pytorch")
    assert page.js("return location.pathname") == "/pr/703"
    page.driver.back()
    page.wait("On call: carol")
    page.open(f"/#/delivery/{job.delivery}").wait("crcrctl trace")  # as links were before


def test_since_when_a_job_fails_on_main_and_which_are_flaky(reporter, page):
    shas = [sha_of(f"main {i}") for i in range(5)]
    push_event(reporter, "0" * 40, [(sha, f"Change {i} (#{900 + i})\n\nmore") for i, sha in enumerate(shas)])
    for commit, result in ((1, "success"), (3, "failure"), (4, "failure")):
        report(reporter, shas[commit], job_name="kernels", run_id=9000 + commit, conclusion=result)
    for attempt, result in ((1, "failure"), (2, "success")):
        report(reporter, shas[4], job_name="network", run_id=9100, run_attempt=attempt, conclusion=result)

    def row():
        data = reporter.relay.api("/api/crcr/repos/org/four/since") or {"failing": [], "flaky": []}
        found = [one for one in data["failing"] if one["first_red"]["failure"]["job_name"] == "kernels"]
        flaky = [one for one in data["flaky"] if one["failure"]["job_name"] == "network"]
        return found and found[0]["failing_commits"] == 2 and flaky and (found[0], flaky[0])
    failing, flaky = wait_for("the job to fail", row)
    assert failing["last_green"]["sha"] == shas[1] and failing["first_red"]["sha"] == shas[3]
    assert [one["pr_number"] for one in failing["commits"]] == [903, 902] and not failing["push_missing"]
    assert (flaky["flaky_commits"], flaky["commits"]) == (1, 1)
    page.open("/repo/org/four").wait("Flaky jobs", "network", "on main")
    page.js("const badge = document.querySelector('img.badge'); badge.closest('details').open = true; badge.scrollIntoView();")
    wait_for("the badge", lambda: page.js("return document.querySelector('img.badge').naturalWidth > 0"))
    page.click("a[href='/repo/org/four/since']")
    page.wait("kernels", "#902", "Change 3")
    badge = urllib.request.urlopen(reporter.relay.url("hud", "/repo/org/four/badge.svg"))
    assert badge.headers["Content-Type"] == "image/svg+xml" and b"L4, " in badge.read()
    with pytest.raises(urllib.error.HTTPError) as grey:
        urllib.request.urlopen(reporter.relay.url("hud", "/repo/no/such/badge.svg"))
    assert grey.value.code == 404 and b"unknown" in grey.value.read()


@pytest.mark.long
def test_the_matrix_has_pages_with_addresses_and_rows_under_their_day(reporter, page):
    for i in range(60):
        name = {0: "gpu (a)", 1: "gpu (b)"}.get(i, "build")
        Job(reporter, "org/five", pr=800 + i, job_name=name).call("completed", 1000 + i, conclusion="success")
    page.open("/repo/org/five?days=30").wait("#859", "Older")
    shown = lambda: page.js("return [...document.querySelectorAll(\"[aria-label='Pull requests and pushes'] tbody [scope=row] a\")].map((one) => one.innerText)")  # noqa: E731
    first = shown()
    assert len(first) == 50 and "#801" not in first
    page.click("nav.pages a")
    page.wait("#801", "Newer")
    second, address = shown(), page.js("return location.pathname + location.search")
    assert "days=30" in address
    assert {"#800", "#801"} <= set(second) and not set(first) & set(second), "no row twice, and none is left out"
    assert page.js("return document.querySelectorAll('.matrix .day').length") == 1
    assert page.js("return [...document.querySelectorAll('.matrix thead .tip')].map((one) => one.innerText)") == ["ci / build", "ci / gpu (a)", "ci / gpu (b)"]
    top = page.js("document.querySelector('.matrix').scrollTop = 400; return ['.matrix', '.matrix thead th'].map((one) => document.querySelector(one).getBoundingClientRect().top)")
    assert 0 <= top[1] - top[0] < 5, "the heads stay"
    assert page.js("return document.querySelector('.matrix td').getBoundingClientRect().width") <= 40
    assert page.open(address).wait("#801") and shown() == second, "the address is a page's own"


def test_a_job_that_reported_no_conclusion_says_so(reporter, page):
    Job(reporter, "org/four", pr=719).outcome("dispatched").call("completed", 2000, conclusion=None).wait_result()
    page.open("/pr/719").wait("failure", "reported without a conclusion")


def test_a_delivery_has_a_timeline_and_is_found_by_a_part_of_its_id(reporter, page):
    job = Job(reporter, "org/four", pr=709).outcome("dispatched").call("in_progress", 1500)
    page.open(f"/delivery/{job.delivery[:-3]}").wait(job.delivery, "Timeline, by the relay's clock", "first report", "the end of ci / build")
    job.call("completed", 5000, conclusion="failure")
    page.wait("Nothing: every job that reported has ended.")
    label_event(job, "synchronize", [], "", 9)
    page.open("/prs?state=failing").wait("#709")
    page.open("/prs?state=passing&q=709").wait("No pull request")


@pytest.mark.parametrize("live, pr", [
    pytest.param(True, 704, id="live"), pytest.param(False, 714, id="polling", marks=pytest.mark.long)])
def test_a_job_turns_green_while_one_looks_and_nothing_is_lost(reporter, page, live, pr):
    failed(reporter, pr=pr, run_id=pr)
    job = Job(reporter, "org/two", "L2", pr=pr).outcome("dispatched").call("in_progress", 1000)
    if not live:
        script = page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": "delete window.EventSource"})
    page.open(f"/pr/{pr}").wait("in progress", selector="[data-key='org/two']")
    page.wait("Live" if live else "As of", selector="#fresh")
    if not live:
        page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    page.js("document.querySelector(\"[data-key='org/two'] h3 a\").focus();"
            "document.body.style.minHeight = '3000px'; window.scrollTo(0, 40);"
            "getSelection().selectAllChildren(document.querySelector('main h1'));")
    before = page.js("return [scrollY, String(getSelection()), document.querySelectorAll('details[open]').length]")
    job.call("completed", 5000, conclusion="success")
    page.wait("success", selector="[data-key='org/two']")
    assert page.js("return [scrollY, String(getSelection()), document.querySelectorAll('details[open]').length]") == before
    assert page.js("return document.activeElement.getAttribute('href')") == "/repo/org/two"
    assert page.js("return getSelection().isCollapsed") is False


def test_the_last_good_data_stays_while_redis_is_unavailable(reporter, page):
    failed(reporter, pr=705)
    page.open("/pr/705").wait("test_add")
    assert page.js("return document.getElementById('banner').hidden")
    reporter.redis.process.signal(signal.SIGSTOP)
    try:
        page.wait("503", "asked for again", "The data below is of", selector="#banner")
        assert "test_add" in page.text()
        page.open("/repo/org/four").wait("Nothing to show yet")
    finally:
        reporter.redis.process.signal(signal.SIGCONT)
    page.wait("On call: carol")
    assert page.js("return document.getElementById('banner').hidden")


def test_names_from_outside_are_text(reporter, page):
    """RIGHT-TO-LEFT OVERRIDE in what may hold it: it turns nothing around but the name itself."""
    job = failed(reporter, pr=706, job_name=HOSTILE, name="w" * 200, message=f"{HOSTILE}\u202eevil")
    for path in ("/pr/706", f"/delivery/{job.delivery}", "/repo/org/four"):
        page.open(path).wait(HOSTILE)
        assert page.js("return document.querySelectorAll('main img:not(.badge)').length") == 0
        assert "taken" not in page.driver.title
    page.open("/pr/706").wait("evil")
    assert page.js("return [...document.querySelectorAll('main pre')].every((one) => "
                   "getComputedStyle(one).unicodeBidi.startsWith('isolate'))")


@pytest.mark.parametrize("path", ["/", "/pr/707", "/repo/org/four", "/repo/org/four/since"])
def test_a_phone_shows_each_state_without_scrolling_sideways(reporter, page, path):
    if not reporter.relay.api("/api/crcr/prs/707"):
        failed(reporter, pr=707, job_name="a job with a rather long name " * 3)
        report(reporter, sha_of("phone"), job_name="phone " * 20, conclusion="failure")
    page.open(path, NARROW).wait("failure")
    assert page.js("return innerWidth") == NARROW[0]
    assert page.js("return document.documentElement.scrollWidth <= innerWidth")
    beyond = page.js("return [...document.querySelectorAll('main .state')].filter((one) => one.checkVisibility() && "
                     "one.getBoundingClientRect().right > innerWidth).map((one) => one.innerText)")
    assert beyond == []


@pytest.mark.parametrize("path,says", [
    ("/pr/999999", "CRCR_STATUS_TTL"), ("/delivery/none-such", "crcrctl trace none-such"), ("/repo/no/such", "first page")])
def test_unknown_things_say_where_to_look(page, path, says):
    page.open(path).wait("Nothing to show", says)


def test_everything_that_a_page_loads_is_ours(reporter, page):
    page.open("/").wait("Backends of")
    loaded = page.js("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert all(one.startswith(reporter.relay.url("hud", "/")) for one in loaded)
    assert len([one for one in loaded if "/assets/" in one]) == 2, "a script and styles; what draws charts only where there are some"
    errors = [one for one in page.driver.get_log("browser") if one["level"] == "SEVERE" and "status of" not in one["message"]]
    assert errors == [], json.dumps(errors)
    assert re.search(r"default-src 'none'", urllib.request.urlopen(reporter.relay.url("hud", "/pr/1")).headers["Content-Security-Policy"])


# Counts what a page asks, and the turns of its timer.
COUNTED = """
  window.counts = { asked: 0, turns: 0, sources: [] };
  const ask = window.fetch, every = window.setInterval;
  window.fetch = (...all) => { counts.asked += 1; return ask(...all); };
  window.setInterval = (turn, ms) => every(() => { turn(); counts.turns += 1; }, ms);
  window.EventSource = class extends EventSource { constructor(url) { super(url); counts.sources.push(this); } };
"""


@pytest.fixture
def tab(page):
    """A tab of its own, which counts what its page asks."""
    first, driver = page.driver.current_window_handle, page.driver
    driver.switch_to.new_window("tab")
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": COUNTED})
    yield page
    driver.close()
    driver.switch_to.window(first)


def visibility(page, state):
    """As when the reader looks at another tab; headless Chromium shows them all."""
    page.js("Object.defineProperty(document, 'hidden', { value: arguments[0], configurable: true });"
            "document.dispatchEvent(new Event('visibilitychange'))", state == "hidden")


def test_a_hidden_tab_asks_nothing_and_is_up_to_date_once_it_is_shown(reporter, tab):
    job = Job(reporter, "org/two", "L2", pr=715).outcome("dispatched").call("in_progress", 1000)
    tab.open("/pr/715").wait("in progress", selector="[data-key='org/two']")
    tab.wait("Live", selector="#fresh")
    visibility(tab, "hidden")
    open_sources = "return counts.sources.filter((one) => one.readyState !== EventSource.CLOSED).length"
    assert tab.js("return counts.sources.length") > 0 and tab.js(open_sources) == 0
    before = tab.js("counts.turns = 0; return counts.asked")
    job.call("completed", 5000, conclusion="success")
    wait_for("the end of the job", lambda: reporter.relay.api("/api/crcr/prs/715")["deliveries"][0]["jobs"][0]["conclusion"])
    wait_for("a turn of its timer", lambda: tab.js("return counts.turns"))
    assert tab.js("return counts.asked") == before and tab.js(open_sources) == 0
    assert "in progress" in tab.text("[data-key='org/two']")
    visibility(tab, "visible")
    tab.wait("success", selector="[data-key='org/two']")
    tab.wait("Live", selector="#fresh")
    assert tab.js(open_sources) == 1


@pytest.mark.long
def test_a_page_follows_all_that_it_shows(reporter, page):
    """A push makes a job one of main's: of the answers that the page is made of that changes one alone, and not the first."""
    job = failed(reporter, pr=718, repo="org/six")
    wait_for("it to be counted", lambda: (reporter.window("org/six") or {"pull_requests": {}})["pull_requests"].get("completed"))
    page.open("/repo/org/six").wait("No job fails on main")
    page.wait("Live", selector="#fresh")
    push_event(reporter, "0" * 40, [(job.sha, "Change (#718)")])
    page.wait("1 job fails on main")


@pytest.mark.parametrize("path", ["/prz", "/pr/abc", "/repo/org/four/nothing"])
def test_a_path_that_is_no_page_says_which_pages_there_are(page, path):
    shown = page.open(path).wait("No such page", path, "/repo/<owner>/<name>/since")
    assert page.js("return [...document.querySelectorAll('main a')].map((one) => one.pathname)") == ["/", "/prs", "/pipeline", "/metrics-board"], shown
    page.click("main a[href='/prs']")
    page.wait("Pull requests", "Number, title, author or commit")


def test_times_are_local_and_utc_on_hover(reporter, page):
    failed(reporter, pr=716)
    page.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
    try:
        page.open("/pr/716").wait("test_add")
        texts = page.js("return [...document.querySelectorAll('main time')].map((one) => [one.title, one.querySelector('small').innerText])")
        assert texts
        for utc, local in texts:
            at = datetime.datetime.strptime(utc, "%Y-%m-%dT%H:%M:%S.%fZ") + datetime.timedelta(hours=5, minutes=30)
            assert f"{at:%I:%M}" in local or f"{at:%H:%M}" in local, (utc, local)
    finally:
        page.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


@pytest.mark.long
def test_nothing_moves_for_who_wants_less_motion(reporter, page):
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
    try:
        for path in ("/", "/repo/org/four", "/pipeline"):
            page.open(path).wait("Definitions" if path != "/" else "Backends of")
            assert page.js("return matchMedia('(prefers-reduced-motion: reduce)').matches")
            assert page.js("return document.getAnimations().length") == 0
            assert page.js("""return [...document.querySelectorAll('*')].filter((one) => {
                const style = getComputedStyle(one);
                return style.animationName !== "none" || !/^0s(, 0s)*$/.test(style.transitionDuration) || style.scrollBehavior !== "auto";
            }).map((one) => one.outerHTML.slice(0, 80))""") == [], path
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.long
@pytest.mark.parametrize("url, refused", [("https://crcr.example.org", None), ("http://127.0.0.1:8090", None),
                                          ("https://example.org/crcr", "https://crcr.example.org"),
                                          ("https://example.org?a", "a base URL has no query and no fragment")])
def test_the_address_of_the_pages_has_no_path(reporter, url, refused):
    environment = {**reporter.relay.environment("admin_reporter"), "CRCR_PUBLIC_URL": url}
    done = subprocess.run([BIN / "crcr-reporter", "--check-config"], env=environment, capture_output=True, text=True, timeout=30)
    assert done.returncode == (2 if refused else 0), done.stderr
    assert not refused or ("CRCR_PUBLIC_URL" in done.stderr and refused in done.stderr)


@pytest.fixture
def crowd(reporter):
    """2,000 who wait for what does not change; their connections."""
    path, port = "/api/crcr/prs/999999", reporter.relay.ports["hud"]
    with pytest.raises(urllib.error.HTTPError) as none:
        urllib.request.urlopen(reporter.relay.url("hud", path))
    tag = none.value.headers["ETag"].strip('"')
    with contextlib.ExitStack() as connections:
        for _ in range(2000):
            one = connections.enter_context(socket.create_connection(("127.0.0.1", port)))
            one.sendall(f"GET /api/crcr/live?of={path}&etag={tag} HTTP/1.1\r\nHost: crcr\r\n\r\n".encode())
        wait_for("2,000 to wait", lambda: reporter.relay.metric("reporter", "crcr_pages_waiting") == 2000, 18)
        yield


@pytest.mark.long
def test_a_page_polls_while_2000_wait(reporter, page, request):
    """The last one here: those who went away count for 20 s more."""
    job = Job(reporter, "org/two", "L2", pr=717).outcome("dispatched").call("in_progress", 1000)
    job.wait_result("in_progress")
    request.getfixturevalue("crowd")
    with pytest.raises(urllib.error.HTTPError) as full:
        urllib.request.urlopen(reporter.relay.url("hud", "/api/crcr/live?of=/api/crcr/prs/717&etag=x"))
    assert full.value.code == 503 and json.loads(full.value.read()) == {"detail": "too many wait"}
    page.open("/pr/717").wait("in progress", selector="[data-key='org/two']")
    page.wait("As of", selector="#fresh")
    job.call("completed", 5000, conclusion="success")
    page.wait("success", selector="[data-key='org/two']")
    assert "As of" in page.text("#fresh")
