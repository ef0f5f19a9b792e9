"""A real Chromium for tests of pages, and a folder served to it on this machine."""

from __future__ import annotations

import shutil
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.print_page_options import PrintOptions

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Switches of a browser without a screen, which looks for nothing on other machines."""


_DRAWN = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));"
"""Script that ends once the page is drawn."""


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        return


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of 127.0.0.1, and return its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def chromium(profile: Path, *, dark: bool = False) -> Iterator[Chrome]:
    """Start Chromium with a new profile. Skip the test where Debian's chromium and chromium-driver are absent."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("needs Debian's packages chromium and chromium-driver")
    options = ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={profile}", *(["--force-dark-mode"] if dark else [])):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = Chrome(options=options, service=Service(driver))
    try:
        yield started
    finally:
        started.quit()


def expect_access(browser: Chrome, page: Path | str) -> None:
    """axe-core finds no violation; the page is as wide as the window, also a narrow one; the console is silent.

    page:  a file or an address.

    A dark page differs in its colours alone, so only their contrast is measured again.
    """
    _emulate(browser, "light")
    browser.get(page.as_uri() if isinstance(page, Path) else page)
    for width in (360, 1280):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    browser.execute_script(files("axe_core_python").joinpath("axe.min.js").read_text())
    assert len(_passed(browser, {})) > 10
    _emulate(browser, "dark")
    assert _passed(browser, {"runOnly": ["color-contrast"]}) == ["color-contrast"]
    assert browser.get_log("browser") == []


def expect_no_table_scrolls(browser: Chrome, page: Path) -> None:
    """Require that every table of a page fits into a narrow screen."""
    size = {"width": 360, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())
    widths = browser.execute_script(
        "return [...document.querySelectorAll('.scroll')].map(table => [table.scrollWidth, table.clientWidth])"
    )
    assert widths
    assert all(needed <= there for needed, there in widths), widths


def expect_no_table_is_cut_in_print(browser: Chrome, page: Path) -> None:
    """Require that every table of a page is no wider than a sheet of A4 with margins, 18 cm or 680 pixels."""
    size = {"width": 680, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    browser.get(page.as_uri())
    widths = browser.execute_script(
        "return [...document.querySelectorAll('table')].map(table => table.getBoundingClientRect().right)"
    )
    assert widths
    assert max(widths) <= 680, widths
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def printed_page(browser: Chrome, page: Path) -> bytes:
    """Return a page as PDF on A4 sheets. A window of another size or scheme is given up before."""
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    browser.get(page.as_uri())
    browser.execute_async_script(_DRAWN)  # a page is loaded before it is laid out, and would be printed empty
    options = PrintOptions()
    options.set_page_size({"width": 21.0, "height": 29.7})
    return b64decode(browser.print_page(options))


def _emulate(browser: Chrome, scheme: str) -> None:
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def _passed(browser: Chrome, options: dict[str, Any]) -> list[str]:
    """Run axe-core, expect no violation, and return the rules that passed."""
    words = "axe.run(document, arguments[0]).then(arguments[1])"
    found = browser.execute_async_script(words, options)
    assert [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]] == []
    return [each["id"] for each in found["passes"]]
