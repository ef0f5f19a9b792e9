"""Some cells of the fault matrix, over real daemons. All of them: `make faults`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.attacks.matrix import CELLS, FAULTS, Cell, Ended, cells_of, possible, table, wrong
from tests.attacks.site import a_site

FEW: list[Cell] = [
    ("leader", "protocol", "kill"),
    ("deputy", "signing", "stop, go on"),
    ("coordinator", "commit", "kill"),
    ("deputy", "table", "corrupt"),
    ("leader", "kept", "cut"),
    ("other", "table", "disk full"),
    ("deputy", "commit", "state read-only"),
    ("leader", "protocol", "clock back"),
]
"""Each role, each phase but the first, and a fault of each kind."""


def test_some_cells_end_as_they_may(tmp_path: Path) -> None:
    done = [cell for cell in FEW if possible(cell)]

    async def found() -> dict[Cell, Ended]:
        with a_site(tmp_path) as site:
            return {cell: ended async for cell, ended in cells_of(site, done)}

    ended = asyncio.run(found())
    assert {cell: each.how for cell, each in ended.items() if wrong(cell, each)} == {}
    assert list(ended) == done
    if done != FEW:
        pytest.skip("clocks are left as they are: libfaketime is not installed (apt-get install faketime)")


@pytest.mark.parametrize(
    ("role", "fault", "how", "bad"),
    [
        ("leader", "kill", "peer-lost", False),
        ("leader", "kill", "bug", True),
        ("leader", "delay", "peer-lost", True),
        ("leader", "delay", "ran", False),
        ("leader", "cut", "BROKEN: TimeoutError", True),
        ("leader", "disk full", "no-such-error", True),
        ("coordinator", "cut", "peer-lost; all parties keep it", False),
        ("leader", "cut", "peer-lost; all parties keep it", True),
    ],
)
def test_what_an_end_must_not_be(role: str, fault: str, how: str, bad: bool) -> None:
    assert wrong((role, "commit", fault), Ended(how, 1)) == bad


def test_the_table_has_every_fault_and_what_is_wrong_in_bold() -> None:
    found = {cell: Ended("ran" if cell[2] == "delay" else "peer-protocol", 2) for cell in CELLS}
    lines = list(table(found))
    assert len(lines) == 2 + len({(role, fault) for role, _, fault in CELLS})
    assert sum("**peer-protocol**" in line for line in lines) == 4 * (len(FAULTS) - 1)
