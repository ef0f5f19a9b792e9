"""What every test may use."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.support.vectors import Golden

# Machines are shared: how long an example takes says nothing.
settings.register_profile("jointcut", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("jointcut")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-vectors", action="store_true", help="write the golden vectors anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(bool(request.config.getoption("--rewrite-vectors")))
