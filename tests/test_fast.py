"""The list of what `make test-fast` leaves out names tests that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fast import taking_seconds

TESTS = Path(__file__).resolve().parent


@pytest.mark.parametrize("name", sorted(taking_seconds()))
def test_what_is_left_out_exists(name: str) -> None:
    module, _, test = name.partition("::")
    assert (TESTS / module).exists()
    assert not test or f"def {test}(" in (TESTS / module).read_text(encoding="utf-8")
