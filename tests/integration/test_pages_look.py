"""Every page of a relay in which something of everything goes wrong (showcase.py), in Chromium: what a reader can see and reach. With
tests/run --all; deploy/hud/screenshots takes the pictures of the same pages."""
import contextlib

import pytest

from lib.processes import wait_for
from showcase import DRACO, HERE, LYRA, ORION, VEGA, Showcase
from test_pages_browser import NARROW, WIDE, Page, chromium, page  # noqa: F401 (fixtures)
from test_pages_long import axe  # noqa: F401 (a fixture)

pytestmark = pytest.mark.long
# Words that reach beyond the screen, or out of what holds them, without a way to scroll there.
CUT_OFF = """
  const scrolls = (one) => one && (/auto|scroll/.test(getComputedStyle(one).overflowX) || scrolls(one.parentElement));
  return [...document.querySelectorAll("main *")].filter((one) => one.checkVisibility() && [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) &&
    !scrolls(one) && one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.textContent.slice(0, 60));
"""


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Showcase(tmp_path_factory.mktemp("showcase"), kafka_node.brokers)
    try:
        yield one.fill()
    finally:
        one.close()


def opened(page, path, size):  # noqa: F811
    page.open(path, size)
    wait_for(f"{path} to be there", lambda: page.js("return document.querySelector('main h1') !== null && document.querySelector('#fresh').textContent !== ''"))


def test_the_states_are_those_that_the_pictures_are_to_show(reporter, page):  # noqa: F811
    home = page.open("/").wait("2 of 3 L4 backends get no events")
    assert "GitHub budget" in home and "No data" in home and "14 dead letters" in home
    shown = page.open(reporter.paths["pr"]).wait("2 backends block the merge", selector=".verdict")
    for known in ("fails on main too", "flaky", "fails on 3 other pull requests", "only here"):
        assert known in shown, known
    boxes = page.text()
    assert "Passed on attempt 2" in boxes and DRACO in boxes.replace("\u200b", "") and HERE in boxes
    page.open(reporter.paths["held"]).wait("our budget for GitHub is used up")
    page.open(reporter.paths["dead"]).wait("404 Not Found")
    page.open("/pipeline").wait("poison", "14 not resolved, of 3 causes")
    assert {VEGA, LYRA, ORION} <= set(page.open("/prs").wait("Blocks").replace("\u200b", "").split())
    page.open(reporter.paths["repo"])
    assert wait_for("the matrix", lambda: page.js("return document.querySelectorAll(\"[aria-label^='Pull requests and pushes'] thead th\").length")) == 40


def test_the_matrix_of_39_jobs_is_narrow_and_its_heads_stay(reporter, page):  # noqa: F811
    for size in (NARROW, WIDE):
        page.open(reporter.paths["repo"], size)
        wait_for("the matrix", lambda: page.js("return document.querySelectorAll('.matrix td').length"))
        width, height, cell = page.js("const box = document.querySelector('.matrix').getBoundingClientRect();"
                                      "return [document.querySelector('.matrix table').offsetWidth, box.height, document.querySelector('.matrix td').offsetWidth]")
        assert width < 1400 and height < 900 and cell <= 24, (size, width, height, cell)
        heads = page.js("const box = document.querySelector('.matrix'); box.scrollTo(300, 200); const at = box.getBoundingClientRect();"
                        "const of = (selector) => document.querySelector(selector).getBoundingClientRect();"
                        "return [of('.matrix thead th:nth-child(2)').top - at.top, of('.matrix tbody tr:last-child th').left - at.left]")
        assert all(0 <= one <= 2 for one in heads), heads


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_nothing_is_cut_off(reporter, page, axe, scheme, size):  # noqa: F811
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    found = []
    for name, path in [*reporter.paths.items(), ("no-redis", "/")]:
        with reporter.without_redis() if name == "no-redis" else contextlib.nullcontext():
            opened(page, path, size)
            found += [f"{name}: cut off: {text}" for text in page.js(CUT_OFF)]
            if page.js("return document.documentElement.scrollWidth > innerWidth"):
                found.append(f"{name}: wider than the screen")
            page.js("document.querySelectorAll('main details').forEach((one) => { one.open = true; });")
            page.js(axe)
            result = page.driver.execute_async_script("const done = arguments[0]; axe.run().then(done, (error) => done({ error: String(error) }));")
            assert "violations" in result, result
            found += [f"{name}: {one['id']}: {one['help']}: {[node['target'] for node in one['nodes']][:5]}" for one in result["violations"]]
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert found == []
