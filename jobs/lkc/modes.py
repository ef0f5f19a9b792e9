"""Modes of joint LKC jobs."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from anonymize.joint.disclosure import ALLOWED, MIX
from anonymize.joint.grids import check_grids
from anonymize.joint.lkc import strict
from anonymize.linked_columns import counted_blocks
from anonymize.lkc.exposure import measure_exposure
from anonymize.release import Release
from jobs.lkc import costs, files, parts, protection, run, shuffled
from jobs.lkc.kd import run as kd_run
from jobs.lkc.linked_columns import counted_apart
from jobs.lkc.verify import protected_bounds, told_apart
from jobs.release.report import joint_fields
from jobs.task import HiddenCosts, Mode, Task


def _joint_run_fields(task: Task, _: None, release: Release) -> dict[str, Any]:
    """Return the fields of a joint run: the computing parties, their knowledge, and the protection."""
    return {**joint_fields(task), **task.mode.words(task, None)}


def _vertical_run_fields(task: Task, _: None, release: Release) -> dict[str, Any]:
    """Return the fields of a vertical run: also contributions, and counts of values readable by parties in the
    table.
    """
    job = task.job
    tested = told_apart(release, task)
    exposure = measure_exposure(tested, job.names("qid", "class"), protected_bounds(tested, task))
    return _joint_run_fields(task, None, release) | {
        "contributed": {party: list(job.contributed_by(party)) for party in job.roster},
        "exposed_to_parties": asdict(exposure),
    }


def _check_schema(task: Task) -> None:
    task.schema.require_few_cells()


def _check_blocks(task: Task) -> None:
    """Check the blocks: cells are counted block by block, and numbered in the result."""
    for block in counted_blocks(task.schema, counted_apart(task.job)):
        block.schema.require_few_cells()
    task.schema.require_numbers()


def _check_blocks_and_grids(task: Task) -> None:
    _check_blocks(task)
    check_grids(task.schema)


def _check_strict(task: Task) -> None:
    _check_schema(task)
    strict.check_strict(run.request(task))


def _testing(task: Task) -> frozenset[frozenset[str]]:
    """Return the pairs that test candidates: a holder of a sensitive column, and an owner of a quasi-identifier.

    The number of tests tells how many candidates were refused, and only these two parties may know.
    """
    columns = {party: set(task.job.contributed_by(party)) for party in task.job.roster}
    holders = [party for party in columns if columns[party].intersection(task.job.names("sensitive"))]
    owners = [party for party in columns if columns[party].intersection(task.job.names("qid"))]
    return frozenset(frozenset((holder, owner)) for holder in holders for owner in owners if holder != owner)


# In `score` and `integrate` a party waits for peers in the middle of tests: seconds would disclose the tests.
_TESTS = HiddenCosts(frozenset({"validity"}), frozenset({"score", "integrate"}), links=True)
# How many rows each party has is told to the leader alone.
_MIX = HiddenCosts(frozenset({MIX}))

_horizontal = partial(
    Mode,
    "lkc",
    "horizontal",
    mixed=parts.rows_shuffled,
    finish=shuffled.mix,
    parts=parts.rows_sent,
    part=parts.made,
    digests=files.digests_of_tables,
    sent=files.sent,
    withheld=_MIX,
    fields=_joint_run_fields,
)
_vertical = partial(
    Mode,
    "lkc",
    "vertical",
    check=_check_schema,
    withheld=_TESTS,
    apart=_testing,
    parts=parts.columns_sent,
    part=parts.made,
    sent=files.sent,
    fields=_vertical_run_fields,
    costs=costs.of_tests,
)

MODES: tuple[Mode, ...] = (
    _horizontal(
        "sealed",
        "horizontal/sealed",
        run.run_sealed,
        ALLOWED["horizontal/sealed"],
        shared=True,
        check=_check_blocks_and_grids,
        words=protection.of_sealed_sums,
        costs=costs.of_tests,
    ),
    _horizontal(
        "leader",
        "horizontal/leader",
        run.run_led,
        ALLOWED["horizontal/leader"],
        least=3,
        least_because="`disclosure: leader` needs three or more, because with two the sum minus one's own counts is "
        "the other's counts; say `disclosure: sealed`",
        paired=False,
        check=_check_schema,
        words=protection.of_led_sums,
    ),
    _horizontal(
        "strict",
        "horizontal/strict",
        run.run_strict,
        ALLOWED["horizontal/strict"],
        shared=True,
        check=_check_strict,
        words=protection.of_strict_sums,
    ),
    _horizontal(
        "sealed/kd",
        "horizontal/sealed/kd",
        kd_run.run_sealed,
        ALLOWED["horizontal/sealed/kd"],
        shared=True,
        check=_check_blocks,
        words=protection.of_sealed_groups,
        costs=costs.of_tests,
    ),
    _vertical(
        "sealed",
        "vertical/sealed",
        run.run_vertically,
        ALLOWED["vertical/sealed"],
        words=protection.of_sealed_scores,
    ),
    _vertical(
        "leader",
        "vertical/leader",
        run.run_vertically_led,
        ALLOWED["vertical/leader"],
        paired=False,
        words=protection.of_told_scores,
    ),
)
