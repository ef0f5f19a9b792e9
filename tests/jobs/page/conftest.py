"""Releases and a browser for tests of pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from tests.jobs.page.releases import made_releases
from tests.support.browser import chromium


@pytest.fixture(scope="session")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    return made_releases(tmp_path_factory)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened
