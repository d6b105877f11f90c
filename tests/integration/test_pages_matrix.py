"""The matrix of a back end's own runs, commits × jobs, in Chromium."""
import datetime

from test_pages_browser import chromium, page, reporter  # noqa: F401 (fixtures)
from test_reporter_commits import claim, report, sha_of


def test_the_nightly_runs_of_a_commit_are_one_row_in_which_the_newest_run_of_a_which_jobs(reporter, page):  # noqa: F811
    day = datetime.datetime(2026, 11, 20, tzinfo=datetime.timezone.utc)

    def ran(commit, run, hour, **jobs):
        for name, conclusion in jobs.items():
            at = (day + datetime.timedelta(hours=hour)).isoformat().replace("+00:00", "Z")
            claim(reporter, f"{run}-{name}", commit, "org/nights", run_id=run, job_name=name, check_run_id=f"{run}-{name}",
                  conclusion=conclusion, completed_at=at, started_at=at, name="night")
    first, second = sha_of("first night"), sha_of("second night")
    ran(first, "n-1", 1, build="success", test="failure", docs="success")
    ran(second, "n-2", 25, build="success", test="success")
    ran(first, "n-3", 30, test="success")                     # a re-run on the same commit, under a run id of its own
    ran(first, "n-4", 31, perf="failure")                     # another workflow's
    claim(reporter, "n-1-late", first, "org/nights", run_id="n-1", job_name="test", check_run_id="n-1-late",
          conclusion="failure", completed_at="2026-11-20T01:00:00Z", name="night")  # what comes late of an older run
    report(reporter, sha_of("an older relay"), "org/nights", name="night", run_id="n-5", conclusion="success")
    nights = "[aria-label='Nightly and periodic'] "
    page.open("/repo/org/nights").wait(first[:10], second[:10], sha_of("an older relay")[:10])
    rows = page.js(f"return [...document.querySelectorAll(\"{nights} tbody tr:not(:has(.day))\")].map((row) => "
                   "[row.querySelector('code').innerText, [...row.querySelectorAll('td a')].map((one) => one.ariaLabel)])")
    found = {commit: dict(words.split(",")[0].split(" / ")[1].split(": ") for words in cells) for commit, cells in rows}
    assert len(rows) == 3, rows
    assert found[first[:10]] == {"build": "success", "docs": "success", "perf": "failure", "test": "success"}
    assert found[second[:10]] == {"build": "success", "test": "success"}
    page.click(f"{nights} p a")
    page.wait("Show all", selector=f"{nights} p")
    assert page.js(f"return document.querySelectorAll(\"{nights} tbody td a\").length") == 1, "failing only"
    page.driver.back()
    page.wait("Failing only", selector=f"{nights} p")
    page.click(f"{nights} tbody th a")
    page.wait("Delivery")
