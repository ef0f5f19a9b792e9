"""`method: kd` in joint jobs: the single holder's table, delivered, checked, and nothing told beside it."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymize.kd.single import anonymize_kd
from anonymize.kd.table import release_of_boxes
from anonymize.table import joined
from anonymize.tds import Observer
from jobs.data.tables import Loaded
from jobs.errors import PartyError, PolicyError
from jobs.lkc.checked import verify_table
from jobs.lkc.kd.result import KdResult
from jobs.lkc.requirement import requirement
from jobs.owner.own_groups import OwnGroups
from jobs.release.csv import REPORT, TABLE, read_csv
from jobs.release.delivery import checked_release
from jobs.release.sums import SUMS, sums_of
from tests.support import jobs
from tests.support.horizontal import recorded
from tests.support.joint import sample_rows
from tests.support.kd_runs import Run
from tests.support.kd_told import table_of_release, told_by
from tests.support.samples import AS_IT_IS, PARTIES, columns, joint_job

LEAST = 3
"""K of the jobs."""


def job(**changes: Any) -> dict[str, Any]:
    model = {"lkc": {"L": "all", "K": str(LEAST), "C": "0.5"}}
    return joint_job(**{"method": "kd", "goal": "general", "disclosure": "sealed", "model": model, **changes})


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(jobs.task_of(job()), tmp_path)


@pytest.mark.parametrize("n", [2, 3])
def test_the_table_is_that_of_one_holder_of_all_rows(tmp_path: Path, n: int) -> None:
    parties = {name: {"address": f"127.0.0.1:740{i}"} for i, name in enumerate(PARTIES[:n])}
    run = Run(jobs.task_of(job(parties=parties)), tmp_path)
    tables = [table.table for table in run.tables.values() if isinstance(table, Loaded)]
    alone = anonymize_kd(joined(tables), requirement(run.task))
    files = run.written(tmp_path / "out")
    table = read_csv(files[TABLE], run.task.job.published)
    expected = release_of_boxes(alone.schema, alone.table).ordered(run.task.job.published)
    assert jobs.multiset(table) == jobs.multiset(expected)
    report = json.loads(files[REPORT])
    of_column = zip(report["cuts"].values(), alone.cuts.tolist(), strict=True)
    assert all(told == own for told, own in of_column)
    assert report["model"]["lkc"]["method"] == "kd"
    assert len(report["protection"]) == 6
    assert {len(result.encoded) for result in run.results.values()} == {len(run.result.encoded)}


def test_all_that_a_real_run_told_is_computed_from_the_released_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From labels and counts of the CSV file alone, and the job; besides, what the report lists is just that."""
    seen = recorded(monkeypatch)
    run = Run(jobs.task_of(job()), tmp_path)
    told = list(seen)
    files = run.written(tmp_path / "out")
    table = read_csv(files[TABLE], run.task.job.published)
    computed = told_by(
        run.task.schema, table_of_release(run.task.schema, table), LEAST, {"surgery": Fraction(1, 2)}
    )
    assert len(told) == len(PARTIES)
    assert all(own == computed for own in told)
    listed = [(each["name"], each["to"]) for each in json.loads(files[REPORT])["reveals"]]
    assert listed == [(name, to) for name, _, to in computed]


def test_parties_and_readers_accept_what_is_delivered(run: Run, tmp_path: Path) -> None:
    files = run.written(tmp_path / "out")
    for result in run.results.values():
        sent = {name: files[name] for name in run.task.delivered}
        assert TABLE not in sent
        assert checked_release(run.task, result, sent, {}).files == {**sent, TABLE: files[TABLE]}
    checked = verify_table(run.task, tmp_path / "out")
    assert checked.fields["rows"] == 120


@pytest.mark.some(3)
@pytest.mark.parametrize("spoil", ["cuts", "loss", "ncp", "boxes", "finer"])
def test_readers_find_what_labels_do_not_bear_out(run: Run, tmp_path: Path, spoil: str) -> None:
    run.written(tmp_path / "out")
    path = tmp_path / "out" / (TABLE if spoil in ("boxes", "finer") else REPORT)
    if spoil == "boxes":  # one of them over all ages
        text = path.read_text()
        low, *_, high = sorted({int(end) for row in csv.reader(text.splitlines()[1:]) for end in _ends(row)})
        row = next(row for row in csv.reader(text.splitlines()[1:]) if _ends(row) != [str(low), str(high)])
        label = next(cell for cell in row if cell.startswith("["))
        path.write_text(text.replace(label, f"[{low},{high})"))
        found = "the groups overlap"
    elif spoil == "finer":  # each box without the last of its cells, where it has several
        text = path.read_text()
        ends = {tuple(map(int, _ends(row))) for row in csv.reader(text.splitlines()[1:])}
        for low, high in ends:
            text = text.replace(f"[{low},{high})", f"[{low},{max(high - 10, low + 10)})")
        path.write_text(text)
        found = "boxes, but no run makes these boxes"
    else:
        report = json.loads(path.read_text())
        if spoil == "cuts":
            report["cuts"]["age"][0] += 1
        elif spoil == "loss":
            report["metrics"]["generalization_loss"]["age"] /= 2
        else:
            report["metrics"]["ncp"] /= 2
        path.write_text(json.dumps(report))
        found = {
            "cuts": "`cuts.age\\[0\\]` is not",
            "loss": "`metrics.generalization_loss",
            "ncp": "`metrics.ncp` is not",
        }[spoil]
    with pytest.raises(PartyError, match=found):
        verify_table(run.task, tmp_path / "out")


def _ends(row: list[str]) -> list[str]:
    return next(cell[1:-1].split(",") for cell in row if cell.startswith("["))


@pytest.mark.parametrize("spoil", ["cuts", "rows", "method", "table"])
def test_what_does_not_follow_from_the_result_is_refused(run: Run, tmp_path: Path, spoil: str) -> None:
    files = run.written(tmp_path / "out")
    report = json.loads(files[REPORT])
    if spoil == "table":
        lines = files[TABLE].decode().splitlines()
        files[TABLE] = "\n".join([*lines[:-1], lines[1], ""]).encode()
    elif spoil == "cuts":
        report["cuts"]["age"][0] += 1
    else:
        report[spoil] = "other"
    files[REPORT] = json.dumps(report).encode()
    files[SUMS] = sums_of({name: files[name] for name in (TABLE, REPORT)})
    with pytest.raises(PartyError) as caught:
        checked_release(run.task, run.result, files, {})
    assert caught.value.problem.error_id == "result-mismatch"


def test_a_result_comes_back_from_its_bytes(run: Run) -> None:
    again = run.task.model.decode(run.task, run.result.encoded, "p")
    assert isinstance(again, KdResult)
    assert again.encoded == run.result.encoded
    assert jobs.multiset(again.counted) == jobs.multiset(run.result.counted)
    assert np.array_equal(again.cuts, run.result.cuts)


def malformed(result: KdResult) -> dict[str, bytes]:
    table = result.table
    wide = replace(table.boxes, last=table.boxes.last + np.array([[0], [99]]))
    n = len(table.count)
    moved = table.boxes.last.copy()
    moved[1, 0] += 1
    swapped = np.r_[1, 0, 2:n]
    return {
        "nothing": b"",
        "no header": b"\0" * 64,
        "cut off": result.encoded[:-8],
        "more": result.encoded + bytes(8),
        "beyond the root": replace(result, table=replace(table, boxes=wide)).encoded,
        "no boxes of a run": replace(
            result, table=replace(table, boxes=replace(table.boxes, last=moved))
        ).encoded,
        "no records": replace(result, table=replace(table, count=np.zeros(n, dtype=np.int64))).encoded,
        "too many": replace(result, table=replace(table, count=table.count + 2**31)).encoded,
        "a cell too high": replace(result, table=replace(table, cell=table.cell + 99)).encoded,
        "out of order": replace(
            result, table=replace(table, cell=table.cell[swapped], count=table.count[swapped])
        ).encoded,
        "a group left out": replace(result, table=replace(table, group=np.maximum(table.group, 1))).encoded,
    }


def test_malformed_results_are_their_senders(run: Run) -> None:
    for name, encoded in malformed(run.result).items():
        with pytest.raises(PartyError) as caught:
            run.task.model.decode(run.task, encoded, "p")
        assert (caught.value.problem.error_id, caught.value.problem.party) == ("peer-protocol", "p"), name


def test_plain_columns_stay_with_their_rows(tmp_path: Path) -> None:
    plain = Run(jobs.task_of(job(columns=columns(patient=AS_IT_IS))), tmp_path)
    files = plain.written(tmp_path / "out")
    names = ["patient", "age", "surgery"]
    table = read_csv(files[TABLE], plain.task.job.published).ordered(names)
    rows = {row["patient"]: row for row in sample_rows(120)}
    assert table.n_rows == 120
    for patient, age, surgery in jobs.multiset(table):
        low, high = age[1:-1].split(",")
        assert int(low) <= int(rows[patient]["age"]) < int(high)
        assert surgery == rows[patient]["surgery"]


def test_own_k_ends_a_run_before_a_small_group_of_ours_is_opened(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="fewer of our records"):
        Run(jobs.task_of(job()), tmp_path, hospital_b=OwnGroups(Observer(), 3))
