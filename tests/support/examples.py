"""Share of a test that each run of the suite does, and the share that is left to `make test-all`.

Properties draw a number of examples in full, and a share of it in the profile `few`. Of a test that is marked
`some(n)` n cases run each time.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import settings

FULL = 100
"""The examples that hypothesis draws where a property says nothing, in the profiles `many` and `failing`."""

FEW = 8
"""The same in the profile `few`, which is the suite's own."""

LEAST = 3


def examples(full: int) -> int:
    """Return how many examples the profile in force draws of a property that draws ``full`` in `many`."""
    return min(full, max(LEAST, full * settings.default.max_examples // FULL))


def leave_cases_out(items: Sequence[pytest.Item]) -> None:
    """Mark with `more` all but n cases, at even distances, of each test that is marked `some(n)`."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("some"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        marker = cases[0].get_closest_marker("some")
        assert marker
        (n,) = marker.args
        stay = {round(i * (len(cases) - 1) / max(1, n - 1)) for i in range(n)}
        for place, item in enumerate(cases):
            if place not in stay:
                item.add_marker(pytest.mark.more)
