"""The table of a joint run: its counts written out with what the parties sent, or nobody's table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from anonymize.release import release_of_counts
from jobs.errors import PartyError, Problem
from jobs.lkc.parts import COLUMNS, ROWS
from jobs.lkc.release import release_of_result
from tests.support import jobs
from tests.support.lkc_runs import LkcRun, run_lkc
from tests.support.samples import PARTIES, columns, joint_job, vertical_job

A, B, C = PARTIES


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> LkcRun:
    """Nothing is needed but counts."""
    return run_lkc(jobs.task_of(joint_job()), tmp_path_factory.mktemp("counted"))


@pytest.fixture(scope="module")
def by_rows(tmp_path_factory: pytest.TempPathFactory) -> LkcRun:
    """With a plain column, each party sends its rows."""
    task = jobs.task_of(joint_job(columns=columns(patient={"role": "plain"})))
    return run_lkc(task, tmp_path_factory.mktemp("rows"))


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
    orders = set()
    for _ in range(3):
        released = release_of_result(counted.task, counted.result, {})
        columns_of_rows = [[c.labels[code] for code in c.codes] for c in released.columns.values()]
        orders.add(tuple(zip(*columns_of_rows, strict=True)))
    assert len(orders) > 1


def test_rows_of_all_parties_make_the_table(by_rows: LkcRun) -> None:
    release = release_of_result(by_rows.task, by_rows.result, by_rows.parts(ROWS))
    assert list(release.columns) == list(by_rows.task.job.published)
    patients = release.columns["patient"]
    assert sorted(int(patients.labels[c]) for c in patients.codes) == list(range(60))
    without = jobs.multiset(release.ordered([n for n in release.columns if n != "patient"]))
    assert without == of_counts(by_rows)


def without_last(content: bytes) -> bytes:
    return b"".join(content.splitlines(keepends=True)[:-1])


def twice(content: bytes) -> bytes:
    return content + content.splitlines(keepends=True)[-1]


def other_class(content: bytes) -> bytes:
    header, first, *rest = content.splitlines(keepends=True)
    changed = first.replace(b",Y,", b",\0,").replace(b",N,", b",Y,").replace(b",\0,", b",N,")
    assert changed != first
    return b"".join([header, changed, *rest])


@pytest.mark.parametrize("harm", [without_last, twice, other_class])
def test_rows_that_do_not_add_up_are_nobodys_in_particular(
    by_rows: LkcRun, harm: Callable[[bytes], bytes]
) -> None:
    parts = by_rows.parts(ROWS)
    parts[ROWS][B] = harm(parts[ROWS][B])
    problem = refused(by_rows, parts)
    assert (problem.error_id, problem.party) == ("result-mismatch", None)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"job\nJanitor\n", b'"'])
def test_rows_that_cannot_be_read_are_the_senders(by_rows: LkcRun, content: bytes) -> None:
    parts = by_rows.parts(ROWS)
    parts[ROWS][C] = content
    problem = refused(by_rows, parts)
    assert (problem.error_id, problem.party) == ("peer-protocol", C)


def refused(run: LkcRun, parts: dict[str, dict[str, bytes]]) -> Problem:
    with pytest.raises(PartyError) as caught:
        release_of_result(run.task, run.result, parts)
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
