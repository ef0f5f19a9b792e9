"""The test that noticed each mutant at the last record.

A mutant names the tests that must notice it, often all tests of a module. The test that did is run first; the others
run if it passes, or is gone. So the record spares time, and decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.mutants.mutant import Mutant

RECORD = Path(__file__).with_name("caught.json")


def recorded() -> dict[str, str]:
    """Return the test of each mutant, by the mutant's name."""
    found: dict[str, str] = json.loads(RECORD.read_text("utf-8"))
    return found


def record(caught: Mapping[str, str]) -> None:
    """Write the record anew."""
    RECORD.write_text(json.dumps(dict(sorted(caught.items())), indent=1) + "\n", "utf-8")


def in_turn(mutant: Mutant, caught: Mapping[str, str]) -> Iterator[Sequence[str]]:
    """Yield the tests of a mutant in the order in which they are to run: the recorded test, then all."""
    first = caught.get(mutant.name)
    if first is not None and is_named(mutant, first):
        yield (first,)
    yield mutant.tests


def is_named(mutant: Mutant, test: str) -> bool:
    """Return True if a test is among those that the mutant names."""
    return any(test == named or test.startswith((f"{named}::", f"{named}[")) for named in mutant.tests)
