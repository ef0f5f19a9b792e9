"""The owner's page in a real Chromium: by keyboard, for screen readers, on narrow and wide screens; and attacked."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from jobs.page.html import document, tag
from party.owner.accounts import RELEASES
from tests.support.browser import expect_access, served
from tests.support.commands import invoke
from tests.support.network import GUARD_S
from tests.support.owners_page import ME, Site
from tests.support.samples import joint_job

EVIL = "<script>window.ran = 1</script>"


def signed_in(browser: Chrome, site: Site) -> None:
    """Sign in as an owner does: with the link of the command, by keyboard."""
    browser.delete_all_cookies()
    printed = invoke("party", "web", "--config", site.net.config_path(ME))
    assert printed.code == 0, printed.err
    browser.get(printed.out.split()[0])
    press(browser, Keys.TAB, Keys.ENTER)
    until(browser, "Jobs")


def press(browser: Chrome, *keys: str) -> None:
    for key in keys:
        ActionChains(browser).send_keys(key).perform()


def until(browser: Chrome, title: str) -> None:
    """Wait for a page that is whole."""
    found = "return document.readyState === 'complete' && document.title.startsWith(arguments[0])"
    WebDriverWait(browser, GUARD_S).until(lambda _: browser.execute_script(found, title))


def until_said(browser: Chrome, text: str) -> None:
    """Wait for a text. The page of before may go away meanwhile."""
    leaving = (NoSuchElementException, StaleElementReferenceException)
    WebDriverWait(browser, GUARD_S, ignored_exceptions=leaving).until(lambda _: text in words(browser))


def tab_to(browser: Chrome, label: str) -> None:
    """Press Tab until an element with a label or a text has the focus, which is to be seen."""
    for _ in range(60):
        press(browser, Keys.TAB)
        focused = browser.switch_to.active_element
        if label in (focused.text.strip(), focused.accessible_name):
            assert browser.execute_script(
                "return getComputedStyle(document.activeElement).outlineStyle"
            ) not in ("none", "")
            return
    raise AssertionError(f"no key leads to {label}")


def words(browser: Chrome) -> str:
    return browser.find_element(By.TAG_NAME, "main").text


def test_an_owner_decides_by_keyboard(browser: Chrome, site: Site) -> None:
    path = site.propose(name="by-keyboard")
    signed_in(browser, site)
    press(browser, Keys.TAB)
    assert (
        browser.switch_to.active_element.text == "To the content"
    )  # the first stop leads past the navigation
    tab_to(browser, "by-keyboard")
    press(browser, Keys.ENTER)
    until(browser, "by-keyboard")
    assert "Our columns" in words(browser)
    tab_to(browser, "Runs")
    press(browser, Keys.ARROW_UP)
    tab_to(browser, "Approve")
    press(browser, Keys.ENTER)
    until_said(browser, "for 2 runs; begun: 0")
    assert browser.current_url == site.url + path  # loading the page again sends no form again
    browser.refresh()
    tab_to(browser, "Reason")
    press(browser, "ages are too fine")
    tab_to(browser, "Deny")
    press(browser, Keys.ENTER)
    until_said(browser, "ages are too fine")
    found = site.approvals.exactly(path.split("/")[2], "coordinator", datetime.now(UTC))
    assert found is not None
    assert found.decision is not None
    assert (found.decision.approved, found.decision.reason) == (False, "ages are too fine")
    tab_to(browser, "Sign out")
    press(browser, Keys.ENTER)
    until(browser, "Sign in")
    browser.get(site.url + path)
    until(browser, "Sign in")


@pytest.mark.more
def test_a_browser_does_not_send_an_empty_reason(browser: Chrome, site: Site) -> None:
    path = site.propose(name="no-reason")
    signed_in(browser, site)
    browser.get(site.url + path)
    browser.find_element(By.CSS_SELECTOR, "button.bad").click()
    assert browser.switch_to.active_element.get_attribute("id") == "reason"
    assert "no decision yet" in words(browser)


def furnished(site: Site) -> tuple[str, ...]:
    """Fill each page; return the addresses."""
    path = site.propose(name="furnished")
    waits = site.propose(name="waits-" + "long" * 10)
    site.send(path, f"{path}/deny", {"reason": "x" * 500})
    release = site.net.config(ME).state_dir / RELEASES / "furnished-0123456789ab"
    if not release.exists():
        release.mkdir(parents=True)
        (release / "report.html").write_text(document("Release", tag("h1", "Release"), tag("p", EVIL)))
    return ("/", path, waits, "/releases", "/budget", "/audit?verify=yes", "/certificates")


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.more)])
def test_nothing_hinders_access(browser: Chrome, site: Site, every: bool) -> None:
    """Each time one page with forms, one with cards and one with a table; all pages in long runs."""
    _, job, _, releases, _, audit, _ = pages = furnished(site)
    signed_in(browser, site)
    for path in pages if every else (job, releases, audit):
        expect_access(browser, site.url + path)
    browser.delete_all_cookies()
    for path in (f"/sign-in?token={site.token()}", "/sign-in")[: 2 if every else 1]:
        expect_access(browser, site.url + path)


def test_no_script_runs_whatever_a_job_says(browser: Chrome, site: Site) -> None:
    columns = {**joint_job()["columns"], EVIL: {"role": "plain", "publish_as_is": "true"}}
    path = site.propose(name="scripted", columns=columns)
    signed_in(browser, site)
    browser.get(site.url + path)
    assert EVIL in words(browser)
    assert browser.execute_script("return window.ran") is None
    assert browser.get_log("browser") == []
    # If an element came through after all, the policy would still forbid what the element does.
    browser.execute_script(
        "document.body.insertAdjacentHTML('beforeend', `<img src=x onerror='window.ran = 1'>`);"
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s);"
    )
    refused = browser.execute_async_script(
        "fetch('/audit.csv').then(() => arguments[0]('sent'), () => arguments[0]('refused'))"
    )
    assert refused == "refused"
    assert browser.execute_script("return window.ran") is None
    assert "Content Security Policy" in str(browser.get_log("browser"))


def test_the_page_of_a_release_runs_no_script(browser: Chrome, site: Site) -> None:
    furnished(site)
    release = site.net.config(ME).state_dir / RELEASES / "furnished-0123456789ab" / "report.html"
    styled = release.read_text()
    hostile = f"{EVIL}<form action='/sign-out' method='post'><button>Go</button></form>"
    release.write_text(styled.replace("</main>", f"{hostile}</main>"))
    signed_in(browser, site)
    browser.get(f"{site.url}/releases/furnished-0123456789ab/report.html")
    family = browser.find_element(By.TAG_NAME, "body").value_of_css_property("font-family")
    assert "system-ui" in family  # its one style is allowed
    browser.find_element(By.TAG_NAME, "button").click()
    assert browser.current_url.endswith("report.html")
    assert browser.execute_script("return window.ran") is None
    browser.get_log("browser")
    browser.get(site.url)
    until(browser, "Jobs")


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("localhost", marks=pytest.mark.more)])
def test_a_form_of_another_page_decides_nothing(
    browser: Chrome, site: Site, tmp_path: Path, host: str
) -> None:
    """Another port of this machine is the same site to a cookie, and still another page: `Origin` tells."""
    path = site.propose(name=f"forged-{host}")
    signed_in(browser, site)
    cookie = browser.get_cookies()[0]
    own = site.cookie
    site.cookie = f"{cookie['name']}={cookie['value']}"
    token = site.get(path).tokens()[f"{path}/approve"]
    site.cookie = own
    (tmp_path / "index.html").write_text(
        f'<form method="post" action="{site.url}{path}/approve"><input name="csrf" value="{token}">'
        '<input name="runs" value="1"><button>A kitten</button></form>'
    )
    with served(tmp_path) as other:
        browser.get(other.replace("127.0.0.1", host))
        browser.find_element(By.TAG_NAME, "button").click()
        WebDriverWait(browser, GUARD_S).until(lambda _: "another page" in browser.page_source)
    browser.get_log("browser")
    found = site.approvals.exactly(path.split("/")[2], "coordinator", datetime.now(UTC))
    assert found is not None
    assert found.decision is None
