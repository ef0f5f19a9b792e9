"""Numbers with their nouns."""

from __future__ import annotations


def noun(n: int, one: str, many: str) -> str:
    """Return the words for 1, or for any other number."""
    return one if n == 1 else many


def counted(n: int, one: str, many: str) -> str:
    """Return a number with its words: `1 row has`, `1,000 rows have`."""
    return f"{n:,} {noun(n, one, many)}"
