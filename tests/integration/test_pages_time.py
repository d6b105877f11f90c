"""What the pages say once time has passed without any news, in Chromium. The browser's clock is set, so that no test waits."""
import datetime
import json
import time

import pytest

from lib.bundle import bundled
from lib.processes import wait_for
from test_pages_browser import Page, chromium, failed, page, reporter, tab  # noqa: F401 (fixtures)
from test_reporter import Job

# Sets the clock of a page forward, and lets its timer have its turn.
LATER = """
  const [seconds] = arguments, Clock = Date;
  window.Date = class extends Clock {
    constructor(...all) { super(...(all.length ? all : [window.Date.now()])); }
    static now() { return Clock.now() + seconds * 1000; }
  };
  document.dispatchEvent(new Event("visibilitychange"));
"""
# What the cards of "/" say of a health, by name: their state and all of their text.
CARDS = bundled("health.js") + """
  return Object.fromEntries([...ours.cards(arguments[0]).querySelectorAll(".card")].map(
    (one) => [one.dataset.key, [one.querySelector(".state").textContent, one.textContent]]));
"""
HOUR = 3600


def silent(reporter, pr):  # noqa: F811
    """A delivery whose L4 reports nothing and whose L2 succeeds, once GitHub has the check run of the first."""
    job = Job(reporter, pr=pr)
    job.outcome("dispatched", action="synchronize", received_ms=job.started_ms)
    two = Job(reporter, "org/two", "L2", pr=pr)
    two.delivery, two.sha = job.delivery, job.sha
    two.outcome("dispatched").call("completed", 2000, conclusion="success")

    def shown():
        delivery = reporter.relay.api(f"/api/crcr/deliveries/{job.delivery}") or {"downstreams": [], "jobs": []}
        rows = {row["repo"]: row for row in delivery["downstreams"]}
        return delivery["jobs"] and (rows["org/four"]["check_run"] or {}).get("id") and delivery["silent_after_seconds"]
    return job, wait_for("its check run, and the other's job", shown)


@pytest.mark.parametrize("path, pr", [("/pr/{pr}", 721), ("/delivery/{delivery}", 722)])
def test_a_back_end_that_never_reports_is_bad_once_its_time_is_over(reporter, page, path, pr):  # noqa: F811
    job, limit = silent(reporter, pr)
    shown = page.open(path.format(pr=pr, delivery=job.delivery)).wait("no job yet", "is queued. It blocks the merge until it has passed")
    assert ("then its check run is timed out" in shown) == path.startswith("/delivery")
    page.js(LATER, limit + 60)
    shown = page.wait("✗ never reported", selector="[data-key='org/four'] h3") and page.text()
    assert "its first report" not in shown and "no job yet" not in shown
    assert page.js("return document.querySelector(\"[data-key='org/four'] .state\").className") == "state bad"
    if path.startswith("/pr"):
        assert "org/four ✗ never reported" in page.text(".commits"), "of each commit too"


def test_of_what_was_closed_no_report_is_awaited(reporter, page):  # noqa: F811
    job, limit = silent(reporter, 724)
    closed = Job(reporter, pr=724)
    closed.sha = job.sha
    closed.outcome("dispatched", action="closed")
    wait_for("it", lambda: (reporter.relay.api(f"/api/crcr/deliveries/{closed.delivery}") or {}).get("action") == "closed")
    page.open(f"/delivery/{closed.delivery}").wait("no job yet", "Nothing: every job that reported has ended")
    page.js(LATER, limit + 60)
    assert "never reported" not in page.text()


def test_the_allowlist_becomes_old_on_an_open_page(reporter, page):  # noqa: F811
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    reporter.redis.client(reporter.relay.prefix).hset("crcr:allowlist", "fetched_at", now)
    wait_for("it to be shown", lambda: reporter.relay.api("/api/crcr/health")["allowlist"]["fetched_at"] == now)
    page.open("/")
    wait_for("the card", lambda: page.js("return document.querySelector(\"[data-key='Allowlist'] .state\")?.textContent") == "✓ OK")
    page.click("#auto")  # nothing that is asked for helps
    page.js(LATER, 3 * HOUR)
    page.wait("! Warning", selector="[data-key='Allowlist'] .state")


def test_the_cards_do_not_call_well_what_is_not_known(reporter, page):  # noqa: F811
    health = wait_for("a look", lambda: reporter.relay.api("/api/crcr/health"))
    page.open("/prs").wait("Pull requests")

    def cards(**changed):
        return page.js(CARDS, {**health, **changed})
    ago = lambda minutes: time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - minutes * 60))  # noqa: E731
    queue = "Dead-letter queue"
    assert cards(dlq={"open": 0, "more": False, "newest_at": None})[queue][0] == "✓ OK"
    state, text = cards(dlq={"open": 0, "more": True, "newest_at": None})[queue]
    assert state == "! Warning" and "crcrctl dlq list" in text and "Nothing is left over" not in text
    for answered, state in ((None, "! Warning"), (ago(20), "! Warning"), (ago(40), "✗ Critical")):
        breakers = {"open": 1, "downstreams": [{"repo": "org/five", "answered_at": answered, "put_off_at": ago(0)}]}
        assert cards(breakers=breakers)["Breakers"][0] == state, json.dumps(breakers)


def test_the_footer_and_the_banner_say_of_when_the_page_is(reporter, tab):  # noqa: F811
    failed(reporter, pr=723)
    tab.open("/pr/723").wait("test_add")
    first = tab.wait("Live, as of", selector="#fresh")
    tab.click("#auto")
    tab.wait("As of", selector="#fresh")
    tab.click("#auto")
    tab.wait("Live", selector="#fresh")
    tab.js(LATER, 3 * HOUR)
    tab.js("window.source = counts.sources.at(-1); source.onopen(); source.dispatchEvent(new MessageEvent('unchanged')); source.onerror();")
    assert tab.wait("Live", selector="#fresh") != first, "3 h later"
    tab.js("counts.fetch = window.fetch; window.fetch = async () => { throw new Error('cut'); };"
           "source.dispatchEvent(new MessageEvent('changed'))")
    shown = tab.wait("No answer from the server", "The data below is of", selector="#banner")
    asked, confirmed = first.removeprefix("Live, as of "), tab.text("#fresh").removeprefix("As of ").split(",")[0]
    assert confirmed in shown and confirmed != asked, "nothing had changed since it was asked for"
    tab.js("document.getElementById('what').value = 'no/such/page'")
    tab.click("#find button")
    tab.wait("No such page")
    assert tab.text("#fresh") == "" and tab.js("return document.getElementById('raw').hidden")
    tab.js("window.fetch = counts.fetch")
    tab.driver.back()
    tab.wait("test_add")
    tab.wait("Live", selector="#fresh")
    assert tab.js("return document.getElementById('raw').pathname") == "/api/crcr/prs/723"


def test_a_page_asks_and_does_not_say_live_when_nobody_looked_for_it(reporter, tab):  # noqa: F811
    job = Job(reporter, "org/two", "L2", pr=719).outcome("dispatched").call("in_progress", 1000)
    tab.open("/pr/719").wait("in progress", selector="[data-key='org/two']")
    tab.wait("Live", selector="#fresh")
    tab.js("window.source = counts.sources.at(-1); source.onopen(); source.dispatchEvent(new MessageEvent('unseen'))")
    assert "Live" not in tab.wait("As of", "asked every 5 s", selector="#fresh")
    assert tab.js("return source.readyState") == 2, "it is left"
    job.call("completed", 5000, conclusion="success")
    tab.wait("success", selector="[data-key='org/two']")
    assert "Live" not in tab.text("#fresh")
