"""What a party hands on besides the result: only what does not follow from it, and in an order that tells nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from jobs.lkc.parts import COLUMNS, PARTS, ROWS, columns_sent, rows_sent
from jobs.release_csv import csv_header, read_csv
from tests.support import jobs
from tests.support.lkc_runs import LkcRun, run_lkc
from tests.support.samples import PARTIES, columns, joint_job, vertical_job

PLAIN = columns(patient={"role": "plain"})


def test_rows_are_sent_where_plain_columns_have_to_stay_with_them() -> None:
    assert rows_sent(jobs.task_of(joint_job()), PARTIES[0]) == frozenset()
    assert rows_sent(jobs.task_of(joint_job(columns=PLAIN)), PARTIES[0]) == {ROWS}


def test_columns_are_sent_by_whom_contributes_others_than_quasi_identifiers() -> None:
    task = jobs.task_of(vertical_job())
    assert columns_sent(task, "loan") == frozenset()
    assert columns_sent(task, "bank") == {COLUMNS}


def test_every_mode_sends_what_can_be_made() -> None:
    for fields in (joint_job(columns=PLAIN), joint_job(columns=PLAIN, disclosure="sealed"), vertical_job()):
        task = jobs.task_of(fields)
        assert {name for party in task.job.roster for name in task.mode.parts(task, party)} <= set(PARTS)


@pytest.fixture
def horizontal(tmp_path: Path) -> LkcRun:
    return run_lkc(jobs.task_of(joint_job(columns=PLAIN)), tmp_path)


def test_the_result_is_sent_as_it_is_agreed_on(horizontal: LkcRun) -> None:
    sent = {horizontal.part("result", party) for party in PARTIES}
    assert sent == {horizontal.result.encoded}


def test_rows_of_a_party_are_its_own_generalized(horizontal: LkcRun) -> None:
    """Raw values of quasi-identifiers are nowhere in them; what is plain is as it was."""
    outcome = horizontal.result.outcome
    age = outcome.schema.qid[1]
    intervals = {age.label(node) for node in outcome.cut.nodes[1]}
    for party in PARTIES:
        sent = horizontal.part(ROWS, party)
        release = read_csv(sent, horizontal.task.job.published)
        own = horizontal.sources[party].path.read_text().splitlines()[1:]
        assert set(release.columns["age"].labels) <= intervals
        patients = release.columns["patient"]
        assert sorted(patients.labels[c] for c in patients.codes) == sorted(
            line.split(",")[0] for line in own
        )


def test_rows_are_in_another_order_with_other_coins(horizontal: LkcRun) -> None:
    def lines(seed: int) -> list[bytes]:
        return horizontal.part(ROWS, PARTIES[0], seed).splitlines()

    first, second = lines(1), lines(2)
    assert first == lines(1)
    assert first[0] == second[0]
    assert first != second
    assert Counter(first) == Counter(second)
    own = horizontal.sources[PARTIES[0]].path.read_text().splitlines()[1:]
    assert [line.split(b",")[0].decode() for line in first[1:]] != [line.split(",")[0] for line in own]


def test_columns_are_one_value_for_each_common_record(tmp_path: Path) -> None:
    run = run_lkc(jobs.task_of(vertical_job()), tmp_path)
    sent = run.part(COLUMNS, "bank")
    assert csv_header(sent) == ["surgery"]
    values = Counter(line.decode() for line in sent.splitlines()[1:])
    raw = [line.split(",") for line in run.sources["bank"].path.read_text().splitlines()]
    place = raw[0].index("surgery")
    assert values == Counter(line[place] for line in raw[1:])
    assert values.total() == run.result.generalized.n_records
