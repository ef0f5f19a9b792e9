"""How many examples a property draws: a number in full, and a share of it in the profiles that draw few."""

from __future__ import annotations

from hypothesis import settings

FULL = 100
"""The examples that hypothesis draws where a property says nothing, in the profiles `many` and `failing`."""

FEW = 20
"""The same in the profile `few`, which is the suite's own."""

LEAST = 5


def examples(full: int) -> int:
    """Return how many examples the profile in force draws of a property that draws ``full`` in `many`."""
    return min(full, max(LEAST, full * settings.default.max_examples // FULL))
