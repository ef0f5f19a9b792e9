"""What every test may use."""

from __future__ import annotations

import pytest

from tests.support.vectors import Golden


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-vectors", action="store_true", help="write the golden vectors anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(bool(request.config.getoption("--rewrite-vectors")))
