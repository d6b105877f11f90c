"""What each page answers first, in a real browser: what is wrong, what blocks, and what is to be done."""
import signal
import time

import pytest
from selenium.webdriver.common.keys import Keys

from lib.bundle import bundled
from lib.processes import wait_for
from test_pages_browser import WIDE, Page, chromium, failed, page  # noqa: F401
from test_pages_states import check_of, dispatches_of, serving
from test_reporter import Job, label_event
from test_reporter_commits import push_event, report, sha_of
from test_reporter_hours import Counting


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    yield from serving(Counting, tmp_path_factory.mktemp("answers"), kafka_node.brokers)


# Modules of the pages by themselves, with what an answer of the server may hold.
LEVEL = bundled("level.js") + "const node = ours.level(arguments[0]); return [...node.querySelectorAll('tbody tr')].map((row) => [...row.cells].map((one) => one.textContent));"
CARDS = bundled("health.js") + "return Object.fromEntries(ours.assessed(arguments[0]).map((one) => [one.title, [one.well, ours.cards(arguments[0]).textContent]]));"
CHART = bundled("charts.js") + """const plot = ours.chart("Queue", "", arguments[0]).querySelector("svg");
return { segments: [...plot.querySelectorAll("path:not(.grid)")].map((one) => [one.getAttribute("class"), one.getAttribute("d").split("M").length - 1]),
         texts: [...plot.querySelectorAll("text")].map((one) => one.textContent) };"""
VALUES = bundled("values.js") + "return arguments[0].map((one) => ours.seconds(one));"
SIZES = """return [...new Set([...document.querySelectorAll("body *")].filter((one) => one.checkVisibility() &&
  [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim())).map((one) => getComputedStyle(one).fontSize))];"""


def texts(page, selector):  # noqa: F811
    return page.js("return [...document.querySelectorAll(arguments[0])].map((one) => one.innerText)", selector)


def test_a_dead_l4_is_on_top_and_critical_and_the_sentence_says_it(reporter, page):  # noqa: F811
    Job(reporter, "org/four", pr=931).outcome("dispatched", action="opened").call("completed", 2000, conclusion="success").wait_result()
    for i in range(4):
        Job(reporter, "org/five", pr=932 + i).outcome("failed", 1000 * i, http_status=404, error="404 Not Found", action="opened")
    wait_for("its calls", lambda: (dispatches_of(reporter, "org/five") or {}).get("failed_in_a_row") == 4)
    wait_for("the canary", lambda: reporter.relay.api("/api/crcr/health")["canary"])
    page.open("/").wait("org/five", "gets no events: 4 dispatches failed in a row (HTTP 404)")
    assert texts(page, "#L4 ~ .scroll tbody th")[0].replace("\u200b", "") == "org/five"
    assert "Critical" in texts(page, "#L4 ~ .scroll tbody tr")[0]
    assert "1 of 2 L4 backends gets no events" in page.text(".verdict") and "bad" in page.js("return document.querySelector('.verdict').className")
    page.click(".verdict a[href='#L4']")
    assert page.js("return location.hash") == "#L4"
    assert page.js("return document.querySelector('.front .scroll').scrollWidth <= document.querySelector('.front .scroll').clientWidth"), "it fits 1,280 px"
    assert page.js("return document.documentElement.scrollWidth <= innerWidth")
    assert "pytorch/crcr-test" not in "".join(texts(page, "main tbody th")), "the canary has a card"
    assert "Canary" in page.js("return document.querySelector('[data-key=Canary]').textContent")


def test_without_redis_each_page_shows_what_it_can(reporter, page):  # noqa: F811
    page.open("/").wait("org/five")
    reporter.redis.process.signal(signal.SIGSTOP)
    try:
        wait_for("health to know", lambda: reporter.relay.api("/api/crcr/health")["redis"]["error"])
        page.wait("Redis has not answered since", selector=".verdict")
        assert "org/five" in page.wait("The backends could not be read", "Those below are of"), "the last good rows stay"
        page.open("/").wait("Redis has not answered since", "The backends could not be read", "Critical")
        assert page.js("return document.querySelector('[data-key=Redis]').className").endswith("bad-edge")
        page.open("/pipeline").wait("Redis: Has not answered since", "What waits")
        assert "Critical" in page.text(".line")
    finally:
        reporter.redis.process.signal(signal.SIGCONT)
    page.open("/").wait("org/five")
    wait_for("Redis to be OK", lambda: "OK" in page.js("return document.querySelector('[data-key=Redis]')?.textContent ?? ''"))


def test_a_green_re_run_keeps_the_attempt_before_one_click_away(reporter, page):  # noqa: F811
    job = failed(reporter, pr=941)
    job.call("in_progress", 20_000, run_attempt=2).call("completed", 30_000, conclusion="success", run_attempt=2, test_results={"passed": 9, "failed": 0, "skipped": 1})
    page.open("/pr/941").wait("Passed on attempt 2", selector="[data-key='org/four']")
    assert "test_add" not in page.text("[data-key='org/four']")
    page.click("[data-key='org/four'] .earlier summary")
    page.wait("Attempt 1", "TestOps::test_add", "assert 2 == 3", selector="[data-key='org/four']")


def test_failed_tests_are_grouped_by_message_and_the_rest_is_counted(reporter, page):  # noqa: F811
    job = Job(reporter, pr=942).outcome("dispatched", action="opened").call("in_progress", 1000)
    detail = [{"name": f"test_{i}", "classname": "T", "message": "same" if i < 12 else "other"} for i in range(15)]
    job.call("completed", 5000, conclusion="failure", test_results={"passed": 8, "failed": 40, "skipped": 0}, failed_tests_detail=detail, environment="mi300",
             triage_verdict={"schema_version": "1", "category": "upstream", "confidence": "high", "summary": "s",
                             "suspected_upstream": {"pr": 930, "commit": "abcdef0123", "reason": "it moved"},
                             "evidence": [{"job": "build", "test": "test_1", "excerpt": "it said no", "log_url": "https://example.org/log"}]})
    shown = page.open("/pr/942").wait("35 more", "T::test_4", "Suspected upstream change: #930 abcdef0123: it moved", "Evidence: 1 excerpt", "mi300")
    assert "T::test_5" not in shown and len([one for one in texts(page, ".box pre") if one == "same"]) == 1
    page.js("[...document.querySelectorAll('.box summary')].find((one) => one.innerText === '35 more').click()")
    page.wait("T::test_14", "25 are only in the log")


def test_who_blocks_comes_first_and_who_passed_is_folded(reporter, page):  # noqa: F811
    job = failed(reporter, pr=943, repo="org/four")
    for repo, level in (("org/two", "L2"), ("org/three", "L3"), ("org/five", "L4")):
        one = Job(reporter, repo, level, pr=943)
        one.delivery, one.sha = job.delivery, job.sha
        one.outcome("dispatched", action="opened").call("completed", 2000, conclusion="success", run_complete=True).wait_result()
    label_event(job, "opened", [], "", 1)
    wait_for("both check runs", lambda: len([one for one in reporter.checks(job.sha) if one["name"].count("/") == 2 and one["status"] == "completed"]) == 2)
    page.open("/pr/943").wait("1 backend blocks the merge: org/four", selector=".verdict")
    assert page.js("return document.querySelector('.verdict').classList.contains('bad')")
    page.wait("3 backends: org/five, org/three, org/two", selector=".boxes > details summary")
    assert not page.js("return document.querySelector('.boxes > details').open")
    assert texts(page, ".boxes > .box h3")[0].startswith("org/\u200bfour") or "four" in texts(page, ".boxes > .box h3")[0]
    page.open("/prs?q=943").wait("1 pull request", "org/four ✗ failure")
    assert page.js("return [...document.querySelectorAll('.mark')].map((one) => one.title)") == [
        "org/four, L4: failure", "org/five, L4: success", "org/three, L3: success", "org/two, L2: success"]
    for query, there in (("level=L4&state=failing", True), ("level=L2&state=failing", False), ("repo=five&state=failing", False), ("repo=four", True)):
        found = [one["pr_number"] for one in reporter.relay.api(f"/api/crcr/prs?q=943&{query}")["prs"]]
        assert (found == [943]) is there, query


def test_no_answer_seen_says_the_next_try_as_crcrctl_trace_does(reporter, page):  # noqa: F811
    job = Job(reporter, pr=944).outcome("unknown", action="opened", http_status=None, error="no answer", next_ms=int(time.time() * 1000) + 1_200_000)
    shown = page.open(f"/delivery/{job.delivery}").wait("The answer of GitHub was not seen; it is tried again", "no answer")
    assert "first report" not in shown
    traced = reporter.relay.ctl("trace", job.delivery).stdout
    assert "the answer of GitHub was not seen; it is tried again" in traced and "next try 20" in traced


def test_back_shows_the_list_and_the_box_as_they_were(reporter, page):  # noqa: F811
    label_event(failed(reporter, pr=945), "opened", [], "", 1)
    page.open("/prs").wait("#945")
    page.js("document.getElementById('q').value = '945'")
    page.click("form[action='/prs'] button")
    page.wait("1 pull request,")
    page.driver.back()
    wait_for("the list", lambda: page.js("return location.search === '' && document.querySelector('caption')?.innerText.startsWith('1 pull') === false"))
    assert page.js("return document.getElementById('q').value") == ""
    page.driver.forward()
    wait_for("the filter", lambda: page.js("return document.getElementById('q').value === '945'"))


def search(page, text):  # noqa: F811
    page.js("document.getElementById('what').value = arguments[0]", text)
    page.click("#find button")


@pytest.mark.parametrize("typed, path", [
    ("946", "/pr/946"), ("#946", "/pr/946"), ("https://github.com/pytorch/pytorch/pull/946/files", "/pr/946"), ("pytorch/pytorch#946", "/pr/946"),
    ("{sha}", "/pr/946"), ("{sha7}", "/pr/946"), ("https://github.com/pytorch/pytorch/commit/{sha}", "/pr/946"),
    ("thre", "/repo/org/three"), ("crcr/org/four", "/repo/org/four"), ("crcr/org/four/ci/build", "/repo/org/four"),
    ("https://github.com/org/four/actions", "/repo/org/four"), ("{self}/prs?state=failing", "/prs?state=failing"), ("/pipeline", "/pipeline"),
    ("org/", "/?q=org%2F"), ("72d3162e-cc78", "/delivery/72d3162e-cc78"), ("0123456789abcdef", "/delivery/0123456789abcdef")])
def test_the_search_takes_what_people_have_at_hand(reporter, page, typed, path):  # noqa: F811
    if not (found := reporter.relay.api("/api/crcr/prs?q=946")["prs"]):
        label_event(failed(reporter, pr=946), "opened", [], "", 1)
        found = wait_for("it", lambda: reporter.relay.api("/api/crcr/prs?q=946")["prs"])
    sha = found[0]["head_sha"]
    page.open("/prs").wait("#946")
    search(page, typed.format(sha=sha, sha7=sha[:7], self=reporter.relay.url("hud", "")))
    wait_for("the address", lambda: page.js("return location.pathname + location.search") == path)


def test_the_dead_letter_queue_is_by_cause_and_poison_is_not_replayed(reporter, page):  # noqa: F811
    prefix = reporter.relay.prefix
    for i in range(3):
        reporter.put("dlq", f"k{i}", b"{}", {"class": "refused", "source_topic": f"{prefix}dispatch.l4", "repos": "org/five", "delivery": f"dead-{i}",
                                             "error": f"404 Not Found, request {1000 + i}", "parked_ms": str(int(time.time() * 1000))})
    reporter.put("dlq", "bad", b"{", {"class": "poison", "source_topic": f"{prefix}callbacks", "error": "not JSON", "parked_ms": str(int(time.time() * 1000))})
    shown = page.open("/pipeline").wait("4 not resolved, of 2 causes", "--class refused --source dispatch.l4 --repo org/five")
    assert page.js("return document.querySelectorAll(\"[aria-label='Dead-letter queue'] tbody tr\").length") == 2
    poison = next(one for one in texts(page, "[aria-label='Dead-letter queue'] tbody tr") if "poison" in one)
    assert "dlq show" in poison and "dlq drop" in poison and "replay" not in poison
    assert "not before just now" not in shown and "4 dead letters" in page.open("/").wait("dead letters", selector=".verdict")


def test_copy_answers_on_the_button_and_topic_names_do_not_break(reporter, page):  # noqa: F811
    page.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    page.open("/pipeline").wait("Topics")
    broken = page.js("return [...document.querySelectorAll('code.name')].filter((one) => one.checkVisibility() && one.getClientRects().length > 1).map((one) => one.innerText)")
    assert broken == [] and page.js("return document.documentElement.scrollWidth <= innerWidth")
    page.js("document.querySelector('.copy').click()")
    wait_for("its answer", lambda: page.js("return document.querySelector('.copy').textContent").startswith(("copied", "not copied")))


def test_marks_that_turn_text_around_are_shown_and_turn_nothing(reporter, page):  # noqa: F811
    failed(reporter, pr=947, message="safe\u202eevil")
    page.open("/pr/947").wait("safe⟨U+202E⟩evil")


def test_a_delivery_has_a_waterfall_with_seconds(reporter, page):  # noqa: F811
    job = Job(reporter, pr=948)
    job.outcome("dispatched", 2000, action="opened", received_ms=job.started_ms).call("in_progress", 12_000).call("completed", 42_000, conclusion="success")
    page.open(f"/delivery/{job.delivery}")
    cells = wait_for("its bars", lambda: (found := texts(page, "[aria-label='Where its time went'] tbody td")) and found[-1] == "✓ success" and found)
    assert [float(one.split()[0]) for one in cells[1:4]] == pytest.approx([2, 10, 30], abs=1.1)
    assert len(page.js("return [...document.querySelectorAll('.fill rect')].map(String)")) == 3


def test_a_vendor_sees_the_last_check_run_what_fails_most_and_what_each_pass_rate_counts(reporter, page):  # noqa: F811
    label_event(failed(reporter, pr=949), "opened", [], "", 1)
    page.open("/repo/org/four").wait("last check run ✗ failure on #", "Top failing jobs", "ci / build", "Top failing tests", "TestOps::test_add",
                                     "Today and the 6 days before (UTC): pass rate of pull requests", "Measured over jobs of pull requests since")


def test_a_pass_rate_of_0_is_drawn(reporter, page):  # noqa: F811
    failed(reporter, pr=961, repo="org/quiet", level="L2")
    reporter.count()
    page.open("/repo/org/quiet")
    wait_for("its dot", lambda: page.js("return Boolean([...document.querySelectorAll('#trends figure')].find((one) => one.innerText.startsWith('Pass rate'))?.querySelector('.dots'))"))


def test_since_when_has_a_strip_of_commits_and_githubs_comparison(reporter, page):  # noqa: F811
    shas = [sha_of(f"strip {i}") for i in range(5)]
    push_event(reporter, "0" * 40, [(sha, f"Change {i} (#{970 + i})") for i, sha in enumerate(shas)])
    for i, result in ((0, "failure"), (1, "success"), (3, "failure"), (4, "failure")):
        report(reporter, shas[i], "org/two", "L2", job_name="kernels", run_id=9700 + i, conclusion=result)
    failing = wait_for("it to fail", lambda: (one := (reporter.relay.api("/api/crcr/repos/org/two/since") or {}).get("failing")) and one[0]["failing_commits"] == 2 and one[0])
    assert [(one["sha"], one["result"]) for one in failing["strip"]] == [(shas[0], "failure"), (shas[1], "success"), (shas[3], "failure"), (shas[4], "failure")]
    page.open("/repo/org/two/since").wait("kernels", "Failed on 2 commits in a row.", "#972", "#973")
    assert page.js("return [...document.querySelectorAll('main .mark')].map((one) => one.innerText + (one.classList.contains('first') ? ' first' : ''))") == ["✗", "✓", "✗ first", "✗"]
    assert page.js("return document.querySelector('main [href*=compare]').href") == f"https://github.com/pytorch/pytorch/compare/{shas[1]}...{shas[3]}"


def test_a_check_run_that_the_budget_holds_up_is_said_to_be_absent_and_why(reporter, page):  # noqa: F811
    """Redis has the budget of the upstream's account used up for an hour."""
    reporter.relay.parts["reporter"].stop()
    reporter.start(CRCR_BUDGET_CONTENT_HOUR="8", CRCR_BUDGET_CONTENT_MINUTE="4")
    jobs = [Job(reporter, pr=950 + i).outcome("dispatched", action="opened") for i in range(6)]
    held = wait_for("one to be held", lambda: next((job for job in jobs if (check_of(reporter, job) or {}).get("absent") == "budget"), None))
    assert check_of(reporter, held)["until"]
    page.open(f"/delivery/{held.delivery}").wait("is not on the pull request: our budget for GitHub is used up, until", "A merge that requires it waits")
    assert check_of(reporter, held)["blocks"]
    page.open("/", WIDE).wait("GitHub budget", selector=".verdict")


def test_what_was_not_measured_is_no_data_and_values_that_look_alike_say_which_is_greater(reporter, page):  # noqa: F811
    page.open("/prs").wait("Pull requests")

    def criterion(name, value, ok, threshold=10_800, unit="seconds"):
        return {"name": name, "value": value, "wanted": "<", "threshold": threshold, "unit": unit, "ok": ok, "over": 1, "of": "jobs"}
    rows = page.js(LEVEL, {"level": "L2", "level_since": None, "measured_from": None, "question": "ready_for_l3", "answer": False, "history": [], "criteria": [
        criterion("e2e_p50", None, None), criterion("queue_mean", 10_799.7, True), criterion("overrun", 10_800, False)]})
    assert [(row[1], row[3], row[4]) for row in rows] == [
        ("No data", "1 job", "? No data"), ("just under 3 h", "1 job", "✓ met"), ("exactly 3 h", "1 job", "✗ not met")]


def test_the_budget_says_what_is_left_of_what_and_when_it_is_full(reporter, page):  # noqa: F811
    health = wait_for("a look", lambda: reporter.relay.api("/api/crcr/health"))
    page.open("/prs").wait("Pull requests")
    bucket = {"bucket": "requests_hour", "account": "pytorch", "left": 1192, "left_l4": 1192, "of": 1250, "limit": 5000, "full_at": "2026-11-21T02:18:00Z", "l4_at": None, "rest_at": None}
    dispatches = {"dispatched": 2, "failed": 6, "p50_seconds": 1, "p99_seconds": 2}
    cards = page.js(CARDS, {**health, "budget": {"error": None, "limited_until": None, "buckets": [bucket]}, "dispatches": {**(health["dispatches"] or {}), **dispatches}})
    assert "1,192 of 1,250 requests an hour left for pytorch, all at " in cards["GitHub budget"][1] and "(limit 5,000)" in cards["GitHub budget"][1]
    assert cards["Dispatches today"][0] > 1, "a day on which most failed is not OK"


def test_a_plot_has_a_dot_for_a_point_alone_a_gap_where_nothing_is_known_and_round_marks(reporter, page):  # noqa: F811
    page.open("/prs").wait("Pull requests")
    plot = {"type": "line", "unit": "seconds", "labels": list("abcdefgh"),
            "sets": [{"name": "P95", "values": [None, 4000, None, 1000, 1200, None, 800, 900], "look": "series1"}]}
    drawn = page.js(CHART, plot)
    assert drawn["segments"] == [["line series1", 1], ["line open series1", 1], ["dots series1", 5]], "today is not over: its line is dashed"
    assert drawn["texts"][:4] == ["0 s", "30 min", "1 h", "1 h 30 min"]
    assert page.js(VALUES, [0.42, 300, 355, 3600, 4800, 259_200]) == ["0.4 s", "5 min", "5 min 55 s", "1 h", "1 h 20 min", "3 days"]


def test_a_definition_is_shown_by_mouse_finger_and_key(reporter, page):  # noqa: F811
    page.open("/pipeline").wait("Topics")
    shown = "return document.querySelector('#tip:popover-open')?.innerText ?? ''"
    page.js("document.querySelector(\"[aria-label='Topics'] th .tip\").scrollIntoView({ block: 'center' })")
    page.click("[aria-label='Topics'] th .tip")
    assert "Offsets between" in wait_for("the popover", lambda: page.js(shown))
    page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    wait_for("it to be closed", lambda: page.js(shown) == "")
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    wait_for("it again", lambda: page.js(shown))
    box = page.js("const { left, right, top, bottom } = document.querySelector('#tip').getBoundingClientRect(); return [left, innerWidth - right, top, innerHeight - bottom]")
    assert min(box) >= 0, "on the screen"
    assert page.js("return document.querySelectorAll('main th[title], .card[title]').length") == 0


def test_the_footer_says_the_zone_of_all_times_once(reporter, page):  # noqa: F811
    page.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
    try:
        page.open("/").wait("Backends of")
        assert "Times: UTC+5:30, 24 h" in page.text("footer") and "UTC+5:30" not in page.text("main")
    finally:
        page.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def test_a_backend_without_jobs_has_a_page_without_a_fault(reporter, page):  # noqa: F811
    page.driver.get_log("browser")
    page.open("/repo/pytorch/crcr-test").wait("No job has reported yet")
    page.wait("Live", selector="#fresh")
    assert [one["message"] for one in page.driver.get_log("browser") if one["level"] == "SEVERE"] == []


def test_text_has_four_sizes_and_what_is_well_has_no_colour(reporter, page):  # noqa: F811
    sizes = set()
    for path in ("/", "/prs", "/pipeline", "/pr/941", "/repo/org/four", "/repo/org/four/since", "/metrics-board", "/prz"):
        page.open(path)
        wait_for(f"{path} to be there", lambda: page.js("return document.querySelector('main h1') !== null"))
        page.js("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        sizes |= set(page.js(SIZES))
        assert set(page.js("return [...document.querySelectorAll('main .good:not(.verdict)')].map((one) => getComputedStyle(one).color)")) <= {
            page.js("return getComputedStyle(document.querySelector('footer')).color")}, path
        assert set(page.js("return [...document.querySelectorAll('main td a')].map((one) => getComputedStyle(one).textDecorationLine)")) <= {"none"}, path
    assert sizes == {"24px", "16px", "14px", "12px"}
