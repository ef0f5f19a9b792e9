"""A page for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome

from tests.support.browser import chromium
from tests.support.network import sample_network
from tests.support.owners_page import Site, served_page


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A page of which a module has the only browser. Each test may propose jobs of its own."""
    net = sample_network(tmp_path_factory.mktemp("net"))
    with served_page(net) as opened:
        yield opened


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened
