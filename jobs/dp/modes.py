"""Modes of joint DiffGen jobs."""

from __future__ import annotations

from functools import partial

from anonymize.joint.disclosure import ALLOWED
from anonymize.joint.dp.thesis import ranges
from anonymize.joint.grids import check_grids
from jobs.dp import report, run, sentences
from jobs.dp.requirement import request
from jobs.modes import SECONDS
from jobs.task import HiddenCosts, Mode, Task


def _check_cells(task: Task) -> None:
    task.schema.require_few_cells()
    request(task).check(0)


def _check_grids_and_cells(task: Task) -> None:
    check_grids(task.schema)
    _check_cells(task)


def _check_ranges(task: Task) -> None:
    _check_grids_and_cells(task)
    ranges.check_ranges(request(task))


def _check_weights(task: Task) -> None:
    _check_cells(task)
    ranges.check_weights(request(task))


# The size of messages grows with the number of records, known to the parties only.
_RECORDS = HiddenCosts(frozenset({"align", "count"}), None, links=True)

_horizontal = partial(Mode, "dp", "horizontal", shared=True, withheld=SECONDS, fields=report.joint_run_fields)
_vertical = partial(
    Mode,
    "dp",
    "vertical",
    withheld=_RECORDS,
    words=sentences.of_vertical_runs,
    fields=report.joint_run_fields,
)

MODES: tuple[Mode, ...] = (
    _horizontal(
        "circuit",
        "dp/horizontal/circuit",
        run.run_horizontally,
        ALLOWED["dp/horizontal/circuit"],
        check=_check_grids_and_cells,
        words=sentences.of_horizontal_runs,
    ),
    _horizontal(
        "thesis",
        "dp/horizontal/thesis",
        run.run_horizontally_as_published,
        ALLOWED["dp/horizontal/thesis"],
        check=_check_ranges,
        words=sentences.of_published_horizontal_runs,
    ),
    _vertical(
        "circuit",
        "dp/vertical/circuit",
        run.run_vertically,
        ALLOWED["dp/vertical/circuit"],
        check=_check_cells,
    ),
    _vertical(
        "thesis",
        "dp/vertical/thesis",
        run.run_vertically_as_published,
        ALLOWED["dp/vertical/thesis"],
        check=_check_weights,
    ),
)
