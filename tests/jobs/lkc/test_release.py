"""The table of a joint run: its counts written out with what the parties sent, or nobody's table."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anonymize.release import release_of_counts
from crypto.mixing import OpeningKey, Rows, sealed, slips_of
from jobs.errors import PartyError, Problem
from jobs.lkc.parts import COLUMNS, ROWS
from jobs.lkc.release import release_of_result
from jobs.lkc.result import ShuffledRows
from jobs.lkc.tables import arrange
from jobs.release.csv import TABLE, csv_bytes
from jobs.release.stores import drawn_order
from tests.support import jobs
from tests.support.lkc_runs import LkcRun, run_lkc
from tests.support.rng import SeededRng
from tests.support.samples import AS_IT_IS, PARTIES, columns, joint_job, vertical_job

A, B, C = PARTIES


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> LkcRun:
    """Nothing is needed but counts."""
    return run_lkc(jobs.task_of(joint_job()), tmp_path_factory.mktemp("counted"))


def mixed_run(folder: Path, deliver: str) -> LkcRun:
    """With a plain column, rows of all parties are mixed."""
    task = jobs.task_of(joint_job(columns=columns(patient=AS_IT_IS), deliver=deliver))
    return run_lkc(task, folder)


@pytest.fixture(scope="module")
def by_boxes(tmp_path_factory: pytest.TempPathFactory) -> LkcRun:
    return mixed_run(tmp_path_factory.mktemp("boxes"), "coordinator")


@pytest.fixture(scope="module", params=["all", "coordinator"])
def by_rows(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LkcRun:
    return mixed_run(tmp_path_factory.mktemp("rows"), request.param)


@pytest.fixture(scope="module")
def by_columns(tmp_path_factory: pytest.TempPathFactory) -> LkcRun:
    """Vertical: the bank sends what is sensitive."""
    return run_lkc(jobs.task_of(vertical_job()), tmp_path_factory.mktemp("columns"))


def of_counts(run: LkcRun) -> Counter[tuple[str, ...]]:
    outcome = run.result.outcome
    return jobs.multiset(release_of_counts(outcome.schema, outcome.cut, run.result.generalized))


def test_counts_alone(counted: LkcRun) -> None:
    release = release_of_result(counted.task, counted.result, {})
    assert jobs.multiset(release) == of_counts(counted)
    assert list(release.columns) == list(counted.task.job.published)


def test_rows_are_in_random_order(counted: LkcRun) -> None:
    rows, orders = release_of_result(counted.task, counted.result, {}), set()
    for seed in range(3):
        table = arrange(counted.task, rows, SeededRng(0)).tables[TABLE]
        orders.add(csv_bytes(table, drawn_order(table, SeededRng(seed))))
    assert len(orders) > 1


def test_rows_of_all_parties_make_the_table(by_rows: LkcRun) -> None:
    """Test rows at the parties, and at the coordinator alone."""
    release = release_of_result(by_rows.task, by_rows.result, by_rows.parts(ROWS), by_rows.key)
    assert list(release.columns) == list(by_rows.task.job.published)
    patients = release.columns["patient"]
    order = [int(patients.labels[c]) for c in patients.codes]
    assert sorted(order) == list(range(60))
    assert order != sorted(order)
    without = jobs.multiset(release.ordered([n for n in release.columns if n != "patient"]))
    assert without == of_counts(by_rows)


def without_last(content: bytes) -> bytes:
    return b"".join(content.splitlines(keepends=True)[:-1])


def twice(content: bytes) -> bytes:
    return content + content.splitlines(keepends=True)[-1]


def test_rows_that_do_not_add_up_are_nobodys_in_particular(by_rows: LkcRun) -> None:
    """The last row twice in the place of the first, or in the place of all."""
    mixed = by_rows.result.mixed
    assert mixed is not None
    if mixed.rows is not None:
        changed = replace(mixed, rows=np.concatenate([mixed.rows[1:], mixed.rows[-1:]]))
        parts: dict[str, dict[str, bytes]] = {}
    else:
        assert by_rows.key is not None
        row = by_rows.key.opened(boxes_of(by_rows)[:1], "", "")
        boxes = sealed(np.repeat(row, 60, axis=0), by_rows.key.public, SeededRng(0))
        slips = hashlib.sha256(slips_of(boxes).tobytes()).hexdigest()
        changed, parts = replace(mixed, slips=slips), {ROWS: {B: boxes.tobytes()}}
    problem = refused(replace_result(by_rows, changed), parts)
    assert (problem.error_id, problem.party) == ("result-mismatch", None)


def boxes_of(run: LkcRun) -> Rows:
    return np.frombuffer(run.part(ROWS, B), dtype=np.uint8).reshape(60, -1)


def replace_result(run: LkcRun, mixed: ShuffledRows | None) -> LkcRun:
    return replace(run, results={A: replace(run.result, mixed=mixed)})


def test_a_result_of_another_form_than_its_job_asks_for_is_the_leaders(by_rows: LkcRun) -> None:
    mixed = by_rows.result.mixed
    assert mixed is not None
    other = (
        replace(mixed, rows=None, slips="0" * 64)
        if mixed.rows is not None
        else replace(mixed, rows=np.zeros((60, mixed.width), np.uint8))
    )
    for changed in (None, other):
        problem = refused(replace_result(by_rows, changed), by_rows.parts(ROWS))
        assert (problem.error_id, problem.party) == ("peer-protocol", A)


@pytest.mark.parametrize("harm", [lambda c: b"", lambda c: c[:-1], lambda c: c + b"\0"])
def test_other_boxes_than_records_are_the_deputys(by_boxes: LkcRun, harm: Callable[[bytes], bytes]) -> None:
    problem = refused(by_boxes, {ROWS: {B: harm(by_boxes.part(ROWS, B))}})
    assert (problem.error_id, problem.party) == ("peer-protocol", B)


def test_other_boxes_than_the_parties_know_are_the_deputys(by_boxes: LkcRun) -> None:
    """As good as they may be: a row of its own in the place of another's."""
    assert by_boxes.key is not None
    boxes = boxes_of(by_boxes)
    again = sealed(by_boxes.key.opened(boxes, "", "")[:1], by_boxes.key.public, SeededRng("again"))
    parts = {ROWS: {B: np.concatenate([again, boxes[1:]]).tobytes()}}
    problem = refused(by_boxes, parts)
    assert (problem.error_id, problem.party) == ("result-mismatch", B)


def test_boxes_that_cannot_be_opened_are_nobodys_in_particular(by_boxes: LkcRun) -> None:
    problem = refused(replace(by_boxes, key=OpeningKey(SeededRng("other"))), by_boxes.parts(ROWS))
    assert (problem.error_id, problem.party) == ("peer-protocol", None)
    assert "cannot be opened" in problem.message


def refused(run: LkcRun, parts: dict[str, dict[str, bytes]]) -> Problem:
    with pytest.raises(PartyError) as caught:
        release_of_result(run.task, run.result, parts, run.key)
    return caught.value.problem


def test_columns_of_a_holder_stand_in_their_cells(by_columns: LkcRun) -> None:
    release = release_of_result(by_columns.task, by_columns.result, by_columns.parts(COLUMNS))
    assert list(release.columns) == list(by_columns.task.job.published)
    without = [name for name in release.columns if name != "surgery"]
    assert jobs.multiset(release.ordered(without)) == of_counts(by_columns)
    surgery = release.columns["surgery"]
    assert set(surgery.labels) <= {"Heart", "Knee", "Rare"}
    assert len(surgery.codes) == 60


@pytest.mark.parametrize(
    "harm",
    [
        without_last,
        twice,
        lambda content: content.replace(b"Heart", b"Liver"),  # not in the domain
        lambda content: content.replace(b"surgery", b"age"),
        lambda content: b"",
        lambda content: b"\xff" + content,
    ],
    ids=["too few", "too many", "unknown value", "another column", "nothing", "not UTF-8"],
)
def test_columns_that_do_not_fit_are_the_senders(by_columns: LkcRun, harm: Callable[[bytes], bytes]) -> None:
    parts = by_columns.parts(COLUMNS)
    parts[COLUMNS]["bank"] = harm(parts[COLUMNS]["bank"])
    problem = refused(by_columns, parts)
    assert (problem.error_id, problem.party) == ("peer-protocol", "bank")
    assert "Liver" not in problem.message
