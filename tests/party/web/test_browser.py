"""The owner's page in a real browser, as somebody uses it who has a keyboard, and no script runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.approving import approvals_of, asking_network, task_called
from tests.support.browser import Browser, browsing, chromium
from tests.support.loopback import HOST
from tests.support.pages import Site, page_of
from tests.support.samples import PARTIES

A = PARTIES[0]
PAGES = ("/", "/jobs", "/jobs/1", "/running", "/releases", "/budget", "/audit?verify=yes", "/certificates")

pytestmark = pytest.mark.skipif(chromium() is None, reason="Chromium is not installed (Debian: chromium)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with page_of(asking_network(tmp_path_factory.mktemp("net")), A) as site:
        site.proposed(task_called())
        yield site


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def address(site: Site, path: str) -> str:
    return f"http://{HOST}:{site.port}{path}"


def signed_in(site: Site, browser: Browser) -> None:
    browser.open(address(site, f"/sign-in?token={site.token()}"))
    browser.tab_to("button.main")
    browser.press("Enter", leads=True)
    assert browser.at == "/"


def test_somebody_signs_in_reads_and_decides_by_keyboard_alone(site: Site, browser: Browser) -> None:
    signed_in(site, browser)
    browser.tab_to("a[href='/jobs/1']")
    browser.press("Enter", leads=True)
    assert "Beyond that, others will learn on the way" in browser.text
    browser.tab_to("#runs")
    browser.write("none")
    browser.press("Enter", leads=True)
    assert "Write a whole number from 1 on" in browser.text
    assert browser.says("document.querySelector('#runs').getAttribute('aria-invalid')") == "true"
    browser.tab_to("#runs")
    browser.says("document.activeElement.value = ''")
    browser.write("2")
    browser.press("Enter", leads=True)
    assert browser.at == "/jobs/1"
    assert "last decided by anna" in browser.text
    (proposal,) = approvals_of(site.net, A).listed()
    assert (proposal.state, proposal.runs) == ("approved", 2)
    browser.tab_to("form.who button")
    browser.press("Enter", leads=True)
    assert browser.at == "/sign-in"
    browser.open(address(site, "/jobs/1"))
    assert browser.at == "/sign-in"


def test_every_page_is_whole_narrow_and_wide_and_breaks_no_rule(site: Site, browser: Browser) -> None:
    """No complaint of the browser about the page's own policy, and nothing that only fits a wide window."""
    signed_in(site, browser)
    for path in PAGES:
        browser.open(address(site, path))
        assert browser.at == path
        assert browser.complaints == []
        assert (
            browser.says("getComputedStyle(document.body).maxWidth") == "1152px"
        )  # the stylesheet is in force
        for width in (320, 1280):
            browser.looks(width)
            assert browser.says("document.documentElement.scrollWidth") <= width, (path, width)


def test_every_page_is_told_whole_to_screen_readers(site: Site, browser: Browser) -> None:
    signed_in(site, browser)
    for path in PAGES:
        browser.open(address(site, path))
        nodes = browser.nodes()
        roles = [role for role, _ in nodes]
        assert [roles.count(role) for role in ("banner", "main")] == [1, 1], path
        assert ("navigation", "Pages") in nodes
        unnamed = [role for role, name in nodes if role in NAMED and not name.strip()]
        assert unnamed == [], path
        levels = browser.says("[...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])")
        assert levels[0] == 1, path
        assert levels.count(1) == 1, path
        assert all(after - before <= 1 for before, after in pairwise(levels)), path
        assert (
            browser.says("document.querySelectorAll('th:not([scope]), table:not(:has(caption))').length") == 0
        )
        browser.press("Tab")
        assert browser.says("document.activeElement.className") == "skip"


NAMED = {
    "link",
    "button",
    "textbox",
    "table",
    "region",
    "heading",
    "progressbar",
    "Date",
    "columnheader",
    "rowheader",
}


def test_what_was_focused_can_be_seen(site: Site, browser: Browser) -> None:
    signed_in(site, browser)
    browser.tab_to("nav a")
    assert browser.says("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_a_report_that_was_made_elsewhere_cannot_act(site: Site, browser: Browser) -> None:
    folder = site.state / "releases" / "sample-0123456789ab"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.html").write_text(
        "<!doctype html><p>report</p><script>document.body.textContent = 'changed'</script>"
        "<img src='/log-level'><form action='/sign-out' method='post'><button>go</button></form>"
    )
    signed_in(site, browser)
    browser.tell("Emulation.setScriptExecutionDisabled", value=False)
    try:
        browser.open(address(site, f"/releases/{folder.name}/report.html"))
        assert browser.says("document.body.innerText").startswith("report")
        assert browser.says("document.querySelector('img').naturalWidth") == 0
        assert browser.says("location.origin === self.origin") is False
        browser.says("document.querySelector('button').click()")
    finally:
        browser.tell("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(address(site, "/"))
    assert browser.at == "/"  # still signed in


def test_no_form_of_another_site_gets_through(site: Site, browser: Browser, tmp_path: Path) -> None:
    """One that sends itself, from a file, with the session that the browser has."""
    signed_in(site, browser)
    page = tmp_path / "page.html"
    sign_out = address(site, "/sign-out")
    page.write_text(f"<!doctype html><form method=post action='{sign_out}'><button>win</button></form>")
    browser.open(page.as_uri())
    browser.tab_to("button")
    browser.press("Enter", leads=True)
    assert browser.says("document.title").startswith("Forbidden")
    browser.open(address(site, "/"))
    assert browser.at == "/"
