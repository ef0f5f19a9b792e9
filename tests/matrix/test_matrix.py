"""Each fault at each role in each phase ends in the same table or a clean abort, and the next job runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.matrix.cells import ABORTS, CELLS, Cell
from tests.matrix.faults import FAULTS
from tests.matrix.outcome import DEFECT, NOT_RUN, SAME, outcome
from tests.matrix.site import COMPILER, Site, a_site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("matrix")) as made:
        yield made


@pytest.fixture(scope="module")
def clocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("clocked"), clocks=bool(COMPILER)) as made:
        yield made


def checked(site: Site, cell: Cell) -> None:
    came = outcome(site, cell)
    if came.startswith(NOT_RUN):
        pytest.skip(came)
    assert not came.startswith(DEFECT), came
    assert came.startswith(SAME) or cell.fault != "delay"


@pytest.mark.by_lot(3)
@pytest.mark.parametrize("cell", [cell for cell in CELLS if not cell.has_clock], ids=str)
def test_a_fault(site: Site, cell: Cell) -> None:
    checked(site, cell)


@pytest.mark.more
@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell.has_clock], ids=str)
def test_a_clock_that_jumps(clocked: Site, cell: Cell) -> None:
    checked(clocked, cell)


def test_every_fault_has_an_expectation() -> None:
    assert FAULTS.keys() == ABORTS.keys()
