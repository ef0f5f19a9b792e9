"""One holder's synthetic table: charged before it is made, kept before it is seen, the same when asked again."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from anonymize.tds import Observer
from jobs.data.sources import Csv
from jobs.dp.settings import MARGINALS, SYNTHETIC_TABLE
from jobs.dp.single import release_to_folder
from jobs.errors import BudgetError
from jobs.options import NO_OPTIONS, Noted, Options
from jobs.page.page import PAGE
from jobs.release.csv import REPORT, read_csv
from jobs.release.folder import OWN_PAGE
from jobs.release.sums import SUMS, check_folder
from jobs.stopwatch import Stopwatch
from jobs.synthetic import single
from jobs.synthetic.marginals import read_marginals
from tests.support import jobs
from tests.support.commands import listing
from tests.support.dp_jobs import dp_single
from tests.support.joint import sample_rows
from tests.support.samples import COLUMNS
from tests.support.synthetic_jobs import N_ROWS, general, synthesize, synthetic_single, write_table

FILES = [SUMS, MARGINALS, OWN_PAGE, PAGE, REPORT, SYNTHETIC_TABLE]
ONE = Options(budget=Fraction(5))


def spent(source: Csv) -> tuple[list[str], Fraction]:
    ledger = NO_OPTIONS.own_ledger(source)
    return [entry.state for entry in ledger.entries()], ledger.spent()


def told(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / REPORT).read_bytes())
    return found


def test_a_release_is_charged_and_written(tmp_path: Path) -> None:
    source, task = write_table(tmp_path), jobs.task_of(synthetic_single())
    noted = synthesize(task, source, tmp_path / "out")
    assert noted.rows is not None
    assert (noted.rows.read, noted.rows.used) == (N_ROWS, N_ROWS)
    assert listing(tmp_path / "out") == FILES
    check_folder(tmp_path / "out", (MARGINALS, SYNTHETIC_TABLE))
    assert spent(source) == (["released"], 5)
    table = read_csv(tmp_path / "out" / SYNTHETIC_TABLE, task.job.published)
    assert list(table.columns) == ["job", "age", "transfused", "surgery"]
    assert table.n_rows == told(tmp_path / "out")["rows"]
    assert abs(table.n_rows - N_ROWS) < 60  # twenty scales of a count


def test_the_same_job_gives_the_same_files_whatever_became_of_the_table(tmp_path: Path) -> None:
    source, task = write_table(tmp_path), jobs.task_of(synthetic_single())
    synthesize(task, source, tmp_path / "first", ONE)
    jobs.write_csv(source.path, sample_rows(10, seed=5), COLUMNS)
    assert synthesize(task, source, tmp_path / "again", ONE) == Noted(again=True, charged=(Fraction(5),))
    for name in set(FILES) - {OWN_PAGE}:
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()
    assert spent(source) == (["released"], 5)


def test_both_methods_spend_of_one_budget(tmp_path: Path) -> None:
    source, budget = write_table(tmp_path), Options(budget=Fraction(6))
    synthesize(jobs.task_of(synthetic_single()), source, tmp_path / "synthetic", budget)
    how = (Stopwatch(lambda name: None), Observer())
    release_to_folder(jobs.task_of(dp_single()), source, tmp_path / "counts", budget, *how)
    with pytest.raises(BudgetError):
        synthesize(jobs.task_of(synthetic_single({"epsilon": "0.1"})), source, tmp_path / "more", budget)
    assert spent(source) == (["released", "released"], 6)


def test_a_run_that_ends_before_anything_is_opened_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_table(tmp_path)

    def fails(*given: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(single, "synthesize_single", fails)
    with pytest.raises(MemoryError):
        synthesize(jobs.task_of(synthetic_single()), source, tmp_path / "out")
    assert spent(source) == (["returned"], 0)
    assert not (tmp_path / "out").exists()


@pytest.mark.some(3)
@pytest.mark.parametrize("edges", ["0", "2", "auto"])
@pytest.mark.parametrize("job", [synthetic_single, general])
def test_the_marginals_say_all_that_was_opened(tmp_path: Path, job: Any, edges: str) -> None:
    task = jobs.task_of(job({"edges": edges}))
    synthesize(task, write_table(tmp_path), tmp_path / "out")
    outcome = read_marginals((tmp_path / "out" / MARGINALS).read_bytes(), task)
    report = told(tmp_path / "out")
    n_pairs = {"0": 0, "2": 2}.get(edges, len(outcome.opened.pairs))
    assert len(report["edges"]) == len(outcome.opened.pairs) == n_pairs
    assert len(report["tables"]) == 2 * len(task.schema.qid) + n_pairs
    account = [Fraction(charge["epsilon"]) for charge in report["privacy"]["account"]]
    assert sum(account) == 5
    n = len(task.schema.qid)
    assert len(report["not_measured"]["pairs"]) == n * (n - 1) // 2 - n_pairs
    assert (report["privacy"]["delta"], report["privacy"]["unit"]) == ("0", "one record")


def test_all_noise_is_as_large_as_so_many_records_of_a_person_ask(tmp_path: Path) -> None:
    """Every rate is divided by m, of the choice as of the counts; and no person has more records than that."""
    rows = [
        {**row, "patient": "same" if i < 250 else row["patient"]} for i, row in enumerate(sample_rows(N_ROWS))
    ]
    source = write_table(tmp_path, rows)
    one, many = (
        jobs.task_of(synthetic_single()),
        jobs.task_of(synthetic_single({"max_records_per_person": "3"})),
    )
    synthesize(one, source, tmp_path / "one")
    synthesize(many, source, tmp_path / "many")
    scales = [[float(t["scale"]) for t in told(tmp_path / name)["tables"]] for name in ("one", "many")]
    assert scales[1] == pytest.approx([3 * scale for scale in scales[0]], rel=1e-5)
    assert told(tmp_path / "many")["privacy"]["unit"] == "one person at one holder"
    assert told(tmp_path / "many")["rows"] < 250


def test_an_empty_table_is_no_error(tmp_path: Path) -> None:
    """That there are no rows would tell of rows: the release is of noise."""
    source = write_table(tmp_path, sample_rows(1))
    jobs.write_csv(source.path, [], COLUMNS)
    synthesize(jobs.task_of(synthetic_single()), source, tmp_path / "out")
    assert told(tmp_path / "out")["rows"] < 60
