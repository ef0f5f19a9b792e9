"""The list of what `make test-fast` leaves out names tests that exist."""

from __future__ import annotations

from pathlib import Path

from tests.support.fast import taking_seconds

TESTS = Path(__file__).resolve().parent


def test_what_is_left_out_exists() -> None:
    for name in sorted(taking_seconds()):
        module, _, test = name.partition("::")
        assert (TESTS / module).exists(), name
        assert not test or f"def {test}(" in (TESTS / module).read_text(encoding="utf-8"), name
