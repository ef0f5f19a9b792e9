"""Versions that talk with each other."""

from __future__ import annotations

import pytest

from jobs import version
from jobs.version import talks_with


@pytest.mark.parametrize(
    ("ours", "theirs", "talks"),
    [
        ("0.2.0", "0.2.9", True),
        ("0.2.0", "0.1.0", True),
        ("0.2.0", "0.3.1rc1", True),
        ("0.2.0", "0.4.0", False),
        ("1.0.0", "0.9.0", False),
        ("1.4.0", "1.3", True),
        ("1.4.0", "", False),
        ("1.4.0", "one.two", False),
        ("1.4.0", "1", False),
    ],
)
def test_versions_talk_with_the_next(
    monkeypatch: pytest.MonkeyPatch, ours: str, theirs: str, talks: bool
) -> None:
    monkeypatch.setattr(version, "__version__", ours)
    assert talks_with(theirs) == talks
