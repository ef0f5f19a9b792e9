"""Versions that talk with each other."""

from __future__ import annotations

import hashlib

import pytest

from jobs import version
from jobs.version import PROTOCOLS, talks_with
from tests.support.vectors import VECTORS


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


OF_CONTROL = "wire.json"
"""Messages between coordinator and party, which tell themselves if they are understood."""


def test_protocols_have_the_name_of_their_transcripts() -> None:
    """A change of a protocol changes the name, so that parties with others are told at once."""
    digest = hashlib.sha256()
    for path in sorted(VECTORS.glob("*.json")):
        if path.name != OF_CONTROL:
            digest.update(path.name.encode() + path.read_bytes())
    assert PROTOCOLS == digest.hexdigest()[:8], "write this name in jobs/version.py"
