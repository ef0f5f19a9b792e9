"""Our figures of a kd table are those that pyCANON 1.3.6 found in it.

pyCANON pins versions that ours conflict with, so it is not run here: `benchmarks/anchors/measure.py` was, on the rows
of the fixture. Of the two sensitive columns it takes one, which is text, for equally far values, and the other one,
which are numbers, for values in a row.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from anonymize.kd.metrics import Groups
from anonymize.release import Release
from anonymize.verification.tables import Bound, Claim, examine
from tests.support.samples import release_of

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "pycanon.json"
SAID: dict[str, Any] = json.loads(FIXTURE.read_text())
FOUND = SAID["found"]


def table() -> Release:
    return release_of(SAID["columns"], [tuple(map(str, row)) for row in SAID["rows"]])


def test_metrics_of_a_kd_table_are_pycanons() -> None:
    bounds = [Bound(name, frozenset(), Fraction(1)) for name in SAID["sensitive"]]
    groups = Groups(table(), SAID["qid"], bounds)
    assert groups.metrics.smallest == FOUND["k"]
    assert {name: own.fewest_values for name, own in groups.inferences.items()} == FOUND["l"]
    assert groups.inferences["surgery"].greatest_t == pytest.approx(FOUND["t"]["surgery"], abs=1e-12)


@pytest.mark.parametrize(("name", "row"), [("surgery", None), ("stay", tuple("0123"))])
def test_the_verifier_finds_pycanons_t(name: str, row: tuple[str, ...] | None) -> None:
    for slack, holds in ((Fraction(1, 10**9), True), (Fraction(-1, 10**9), False)):
        most = Fraction(FOUND["t"][name]) + slack
        claim = Claim(tuple(SAID["qid"]), len(SAID["qid"]), {"K": FOUND["k"], "t": {name: (most, row)}})
        examined = examine(table(), claim)
        assert (examined.finding is None) == holds
        if holds:
            assert float(examined.worst["t", name]) == pytest.approx(FOUND["t"][name], abs=1e-12)
