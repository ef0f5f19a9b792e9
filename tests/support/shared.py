"""Real data sets beside the project, for tests and benchmarks that want them."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"


def shared(path: str) -> Path:
    """Return a path of the shared folder, or skip the test with the reason."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"needs ../shared/{path}, which is not here")
    return found
