"""Parts that a party hands on besides the result: only what does not follow from it, in an order that tells
nothing.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from jobs.lkc.parts import COLUMNS, PARTS, ROWS, columns_sent, rows_sent, rows_shuffled
from jobs.release.csv import csv_header
from tests.support import jobs
from tests.support.lkc_runs import LkcRun, run_lkc
from tests.support.samples import AS_IT_IS, PARTIES, columns, joint_job, single_job, vertical_job

PLAIN = columns(patient=AS_IT_IS)


def test_boxes_are_sent_by_the_deputy_where_the_coordinator_alone_opens_them() -> None:
    assert {rows_sent(jobs.task_of(joint_job(deliver="coordinator")), party) for party in PARTIES} == {
        frozenset()
    }
    assert {rows_sent(jobs.task_of(joint_job(columns=PLAIN)), party) for party in PARTIES} == {frozenset()}
    task = jobs.task_of(joint_job(columns=PLAIN, deliver="coordinator"))
    assert [rows_sent(task, party) for party in PARTIES] == [frozenset(), {ROWS}, frozenset()]


def test_rows_of_one_holder_or_of_columns_are_not_mixed() -> None:
    assert not rows_shuffled(jobs.task_of(single_job(columns=PLAIN)))
    assert not rows_shuffled(jobs.task_of(vertical_job(columns=columns(patient={"role": "id"}))))
    assert rows_shuffled(jobs.task_of(joint_job(columns=PLAIN)))


def test_columns_are_sent_by_whom_contributes_others_than_quasi_identifiers() -> None:
    task = jobs.task_of(vertical_job())
    assert columns_sent(task, "loan") == frozenset()
    assert columns_sent(task, "bank") == {COLUMNS}


def test_every_mode_sends_what_can_be_made() -> None:
    mixed = joint_job(columns=PLAIN, deliver="coordinator")
    for fields in (mixed, {**mixed, "disclosure": "sealed"}, vertical_job()):
        task = jobs.task_of(fields)
        assert {name for party in task.job.roster for name in task.mode.parts(task, party)} <= set(PARTS)


@pytest.fixture
def horizontal(tmp_path: Path) -> LkcRun:
    return run_lkc(jobs.task_of(joint_job(columns=PLAIN)), tmp_path)


def test_the_result_is_sent_as_it_is_agreed_on(horizontal: LkcRun) -> None:
    sent = {horizontal.part("result", party) for party in PARTIES}
    assert sent == {horizontal.result.encoded}


def test_columns_are_one_value_for_each_common_record(tmp_path: Path) -> None:
    run = run_lkc(jobs.task_of(vertical_job()), tmp_path)
    sent = run.part(COLUMNS, "bank")
    assert csv_header(sent) == ["surgery"]
    values = Counter(line.decode() for line in sent.splitlines()[1:])
    raw = [line.split(",") for line in run.sources["bank"].path.read_text().splitlines()]
    place = raw[0].index("surgery")
    assert values == Counter(line[place] for line in raw[1:])
    assert values.total() == run.result.generalized.n_records
