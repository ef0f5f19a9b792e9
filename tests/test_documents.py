"""Generated documents are current, and the site is built from all documents without a warning."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.expected_conditions import element_to_be_clickable as visible
from selenium.webdriver.support.ui import WebDriverWait

from tests.support.bare import bare
from tests.support.browser import chromium, served

ROOT = Path(__file__).resolve().parent.parent


def generator() -> Any:
    """Return docs/generate.py as a module: the folder is no package."""
    spec = spec_from_file_location("generate_documents", ROOT / "docs" / "generate.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_documents_are_current() -> None:
    for name, text in generator().pages().items():
        assert (ROOT / "docs" / name).read_text("utf-8") == text, f"docs/{name} is out of date: make generate"


def test_every_job_of_the_tables_of_keys_is_accepted() -> None:
    """Otherwise an empty cell would say nothing about its key."""
    generate = generator()
    jobs = {(title, kind): job for title, each in generate.TABLES.items() for kind, job in each.items()}
    assert [place for place, job in jobs.items() if not generate.accepted(job)] == []


def test_every_key_that_is_tried_is_taken_by_some_job() -> None:
    generate = generator()
    jobs = [job for each in generate.TABLES.values() for job in each.values()]
    taken = {key for key in generate.TRIED if any(generate.takes(job, key) for job in jobs)}
    assert taken == set(generate.TRIED)


def test_every_key_of_a_model_is_tried() -> None:
    """But those that every job of a table has."""
    generate = generator()
    tried = {generate.tried(key) for key in generate.TRIED}
    models = ("LkcModel", "LkcList", "DpModel", "SyntheticModel", "SequencesModel")
    keys = {key for model in models for key in generate.schema()["$defs"][model]["properties"]}
    assert keys - tried == {"C", "K", "L", "epsilon", "specializations", "method", "clusters"}


def build(folder: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a folder with mkdocs.yml and docs."""
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(site)]
    return subprocess.run(command, cwd=folder, env=bare(), capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site once."""
    folder = tmp_path_factory.mktemp("documents") / "site"
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_is_built_without_a_warning(site: Path) -> None:
    """Nothing of it is fetched from elsewhere; search has every page."""
    pages = list(site.rglob("*.html"))
    assert {path.stem for path in pages} >= {path.stem for path in (ROOT / "docs").rglob("*.md")}
    for path in pages:
        text = path.read_text("utf-8")
        assert 'src="http' not in text, path
        assert '<link rel="stylesheet" href="http' not in text, path
    assert "guide/hospitals.html" in (site / "search" / "search_index.json").read_text("utf-8")


@pytest.mark.more
def test_a_broken_link_ends_the_build(tmp_path: Path) -> None:
    """A page that is not there, and a heading: each has a warning of its own, and any warning ends the build."""
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    with (tmp_path / "docs" / "index.md").open("a") as page:
        page.write("\n[a](no-page.md)\n[a](job.md#no-heading)\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    warned = [line for line in done.stderr.splitlines() if "WARNING" in line and "index.md" in line]
    assert [any(link in line for line in warned) for link in ("no-page.md", "#no-heading")] == [True, True]
    assert len(warned) == 2


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with served(site) as found:
        yield found


def test_search_finds_a_page(browser: Chrome, address: str) -> None:
    """As a reader does: type a word, and follow the first result. No script of the page fails."""
    browser.set_window_size(1400, 900)
    browser.get(f"{address}/index.html")
    browser.find_element(By.CSS_SELECTOR, "input.md-search__input").send_keys("own_k")
    first = (By.CSS_SELECTOR, ".md-search-result__item a.md-search-result__link")
    WebDriverWait(browser, 30).until(visible(first)).click()
    WebDriverWait(browser, 30).until(lambda b: "index.html" not in b.current_url)
    assert "own_k" in browser.find_element(By.TAG_NAME, "article").text
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.mark.parametrize("width", [1400, 420])
@pytest.mark.parametrize(
    "page",
    [
        "job",  # the widest tables
        *(
            pytest.param(page, marks=pytest.mark.more)
            for page in ("index", "guide/first-table", "architecture")
        ),
    ],
)
def test_a_page_fits_its_window(page: str, width: int, browser: Chrome, address: str) -> None:
    """Wide tables scroll in their own frame; the page does not."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 800},
    )
    browser.get(f"{address}/{page}.html")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.more
def test_the_reader_chooses_dark_colours(browser: Chrome, address: str) -> None:
    """The colours are those of the reader's system until the reader chooses others."""

    def brightness(_: object = None) -> int:
        colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in re.findall(r"[0-9]+", colour)[:3])

    def visited(of_system: str) -> None:
        """Open a page as a new reader; the page's script sets and stores the colours some time after."""
        media = {"features": [{"name": "prefers-color-scheme", "value": of_system}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        browser.get("about:blank")  # the script of the page before would store its colours again
        browser.execute_cdp_cmd(
            "Storage.clearDataForOrigin", {"origin": address, "storageTypes": "local_storage"}
        )
        browser.get(f"{address}/index.html")

    browser.get(f"{address}/index.html")
    visited("light")
    WebDriverWait(browser, 30).until(lambda _: brightness() > 300)
    visited("dark")
    WebDriverWait(browser, 30).until(lambda _: brightness() < 300)
    browser.find_element(By.CSS_SELECTOR, "form[data-md-component=palette] label:not([hidden])").click()
    WebDriverWait(browser, 30).until(lambda _: brightness() > 300)
