"""How much of a test each run of the suite does, and how much is left to `make test-all`.

Properties draw a number of examples in full, and a share of it in the profile `few`. Of many cases some run
each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

FULL = 100
"""The examples that hypothesis draws where a property says nothing, in the profiles `many` and `failing`."""

FEW = 20
"""The same in the profile `few`, which is the suite's own."""

LEAST = 3


def examples(full: int) -> int:
    """Return how many examples the profile in force draws of a property that draws ``full`` in `many`."""
    return min(full, max(LEAST, full * settings.default.max_examples // FULL))


def some(cases: Iterable[Any], few: int) -> list[ParameterSet]:
    """Return cases of `parametrize`: ``few`` of them, at even distances, for every run, the others marked `more`.

    A case is a value, a tuple of values or a `pytest.param`.
    """
    listed = list(cases)
    chosen = {round(i * (len(listed) - 1) / max(1, few - 1)) for i in range(few)}
    return [_case(case, [] if i in chosen else [pytest.mark.more]) for i, case in enumerate(listed)]


def _case(case: Any, marks: list[pytest.MarkDecorator]) -> ParameterSet:
    if isinstance(case, ParameterSet):
        return case._replace(marks=[*case.marks, *marks])
    return pytest.param(*case, marks=marks) if isinstance(case, tuple) else pytest.param(case, marks=marks)
