"""Pages in headless Chromium: their width, colours, keyboard, and what axe-core says.

The screenshots go to SHOTS; a person looks at them.
"""

import os
import shutil
from pathlib import Path

import pytest
from conftest import FIGURES, recorded

from artidx_report import figures_page, server_page
from artidx_report.page import Page, render

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is needed")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """SHOTS, with a page of recorded rows and one of the benches; the tests of servers leave others."""
    folder = Path(os.environ.get("SHOTS") or tmp_path_factory.mktemp("shots"))
    (folder / "server.html").write_text(render(server_page.page(recorded())))
    (folder / "figures.html").write_text(render(Page("artidx: figures", "All of them.", figures_page.sections(FIGURES))))
    return folder


NAMES = ["server", "figures", "pgbench", "flights", "standby", "names", "many"]


@pytest.mark.parametrize("name", NAMES)
def test_a_page(browser, folder, name):
    from axe_playwright_python.sync_playwright import Axe

    path = folder / f"{name}.html"
    if not path.exists():
        pytest.skip("the tests of servers make this page")
    colours = {}
    for width in (400, 1600):
        for scheme in ("light", "dark"):
            asked, said = [], []
            page = browser.new_page(viewport={"width": width, "height": 1000}, color_scheme=scheme)
            page.set_default_timeout(180_000)
            page.on("request", lambda r: asked.append(r.url))
            page.on("console", lambda m: said.append(m.text))
            page.on("pageerror", lambda e: said.append(str(e)))
            page.goto(path.as_uri())
            assert [u for u in asked if not u.startswith(("file:", "data:"))] == [] and len([u for u in asked if u.startswith("file:")]) == 1
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{width} px: the page is wider than the window"
            # of each drawing the one for this width, and every drawing has its words
            shown = page.evaluate("[...document.querySelectorAll('figure svg')].filter(s => s.getBoundingClientRect().width > 0).map(s => s.classList[0])")
            assert set(shown) <= {"narrow" if width == 400 else "wide"} and len(shown) == page.locator("figure").count() == page.locator("figcaption").count()
            # no word of a drawing is outside of it
            outside = page.evaluate("""[...document.querySelectorAll('figure svg')].filter(s => s.getBoundingClientRect().width > 0).flatMap(s => {
                const box = s.getBoundingClientRect();
                return [...s.querySelectorAll('text')].filter(t => { const b = t.getBoundingClientRect();
                    return b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1 || b.bottom > box.bottom + 2 }).map(t => t.textContent) })""")
            assert outside == []
            colours[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
            page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=name != "many")
            if width == 400 or scheme == "light":
                found = Axe().run(page).response["violations"]
                assert [(v["id"], [n["html"][:120] for n in v["nodes"]][:3]) for v in found] == []
            assert said == []
            page.close()
    assert colours["light"] == "rgb(255, 255, 255)" and colours["dark"] != colours["light"]


def test_keyboard(browser, folder):
    """Tab reaches the skip link, the sections' links, and every table that scrolls; arrows scroll it."""
    page = browser.new_page(viewport={"width": 400, "height": 1000})
    page.goto((folder / "server.html").as_uri())
    order = []
    for _ in range(60):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.className || document.activeElement.tagName"))
    assert order[0] == "skip" and order.count("scroll") >= page.locator(".scroll").count()
    page.focus(".scroll")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.scroll').scrollLeft > 0", timeout=60_000)
    page.close()
