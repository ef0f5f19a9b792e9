"""What `make test-fast` leaves out: tests, modules and folders that take seconds, listed in tests/seconds.txt."""

from __future__ import annotations

from pathlib import Path

LIST = Path(__file__).resolve().parents[1] / "seconds.txt"


def taking_seconds() -> frozenset[str]:
    """Names relative to tests/, without parameters: `crypto/test_x.py::test_y`, `crypto/test_x.py` or `crypto/`."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))
