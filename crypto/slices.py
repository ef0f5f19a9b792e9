"""A count cut into parts of bounded size: messages, chunks of memory."""

from __future__ import annotations

from collections.abc import Iterator


def slices(count: int, most: int) -> Iterator[slice]:
    """Cut the numbers from 0 to below ``count`` into slices of ``most``, the last one of what is left; none for 0."""
    return (slice(start, min(start + most, count)) for start in range(0, count, most))
