"""Changes in a release are found, by what must follow from job and marginals."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymize.synthetic.foreseen import Foreseen
from anonymize.synthetic.loop import Synthesis
from anonymize.synthetic.marginals import Axis, pairs_of
from anonymize.tds import Observer, Turn, at_once, run_single
from coordinator.verify import verify_folder
from jobs.dp.settings import MARGINALS, SYNTHETIC_TABLE
from jobs.errors import PartyError
from jobs.release.csv import REPORT
from jobs.release.making import files_of
from jobs.release.sums import SUMS, file_fields, write_sums
from jobs.synthetic import table as table_file
from jobs.synthetic.files import render
from jobs.synthetic.marginals import marginals_csv, read_marginals
from jobs.synthetic.replay import counts_of, edge_number, edges_of, replayed
from jobs.synthetic.requirement import requirement
from jobs.synthetic.result import SyntheticResult
from jobs.synthetic.table import require_drawn, synthetic_csv
from jobs.synthetic.verify import require_verified
from jobs.task import Task
from tests.support import jobs
from tests.support.synthetic_jobs import general, synthesize, synthetic_single, write_table

TASK = jobs.task_of(synthetic_single())
Rows = list[list[str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    synthesize(TASK, write_table(folder), folder / "out")
    return folder / "out"


@pytest.fixture
def out(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "out"))


def change(out: Path, name: str, how: Callable[[Rows], object]) -> None:
    """Change rows of a file, header first, and the digests with them, as whoever has the folder can."""
    rows = list(csv.reader(io.StringIO((out / name).read_text())))
    how(rows)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(rows)
    (out / name).write_text(text.getvalue().replace(",,", ',"",').replace(",,", ',"",'))
    follow(out)


def follow(out: Path) -> None:
    report = json.loads((out / REPORT).read_bytes())
    report["files"] = file_fields({n: (out / n).read_bytes() for n in (MARGINALS, SYNTHETIC_TABLE)})
    (out / REPORT).write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    write_sums(out, (SYNTHETIC_TABLE, MARGINALS, REPORT))


def refused(out: Path) -> str:
    with pytest.raises(PartyError) as caught:
        verify_folder(TASK, out)
    return str(caught.value)


def test_a_release_is_what_its_marginals_make(out: Path) -> None:
    checked = verify_folder(TASK, out)
    assert checked.fields["rows"] == len((out / SYNTHETIC_TABLE).read_text().splitlines()) - 1
    assert "byte for byte as drawn from the marginals" in checked.text
    assert checked.fields["not_verified"] == ["report.finished", "report.versions", "report.cost"]
    assert "do not determine them: finished, versions, cost" in checked.text
    follow(out)
    assert verify_folder(TASK, out).fields["verified"] is True


def test_the_rows_alone_are_checked_against_the_marginals_beside_them(out: Path) -> None:
    assert "not_verified" not in verify_folder(TASK, out / SYNTHETIC_TABLE).fields
    (out / MARGINALS).unlink()
    with pytest.raises(PartyError) as caught:
        verify_folder(TASK, out / SYNTHETIC_TABLE)
    assert caught.value.problem.error_id == "file-missing"


def set_cell(row: int, column: int, value: str) -> Callable[[Rows], object]:
    return lambda rows: rows[row].__setitem__(column, value)


def raise_count(rows: Rows) -> None:
    rows[1][6] = str(int(rows[1][6]) + 40)


def swap_pair(rows: Rows) -> None:
    """The last table is of another pair than was chosen, as far as names go."""
    other = ["job", "surgery"] if (rows[-1][1], rows[-1][3]) == ("age", "surgery") else ["age", "surgery"]
    for row in rows[1:]:
        if row[3]:
            row[1], row[3] = other


MARGINAL_CHANGES: dict[str, Callable[[Rows], object]] = {
    "a count": raise_count,
    "a scale": set_cell(1, 7, "0.1"),
    "a value": set_cell(1, 2, "Lawyer"),
    "a class": set_cell(-1, 5, "Y"),
    "a table": set_cell(1, 0, "2"),
    "no number": set_cell(1, 0, "one"),
    "a fraction": set_cell(1, 6, "1.5"),
    "a count that no noise makes": set_cell(1, 6, "100000000"),
    "a line less": lambda rows: rows.pop(),
    "a line more": lambda rows: rows.append(rows[-1]),
    "another pair": swap_pair,
    "another header": set_cell(0, 0, "number"),
    "the order": lambda rows: rows[1:3].reverse() or rows.insert(1, rows.pop(2)),
    "nothing left": lambda rows: rows.__delitem__(slice(1, None)),
}


@pytest.mark.parametrize("what", list(MARGINAL_CHANGES))
def test_marginals_that_were_changed(out: Path, what: str) -> None:
    change(out, MARGINALS, MARGINAL_CHANGES[what])
    assert refused(out)


TABLE_CHANGES: dict[str, Callable[[Rows], object]] = {
    "a row less": lambda rows: rows.pop(),
    "a row more": lambda rows: rows.append(rows[-1]),
    "a value that there is not": set_cell(1, 0, "Baker"),
    "a number outside": set_cell(1, 1, "100"),
    "no number": set_cell(1, 1, "old"),
    "another class": lambda rows: [row.__setitem__(2, "Y") for row in rows[1:]],
    "a column alike": lambda rows: [row.__setitem__(3, "Knee") for row in rows[1:]],
    "a column shuffled": lambda rows: [
        row.__setitem__(0, value) for row, value in zip(rows[1:], sorted(r[0] for r in rows[1:]), strict=True)
    ],
    "another header": set_cell(0, 0, "work"),
    "all ages at the lowest": lambda rows: [row.__setitem__(1, "0") for row in rows[1:]],
    "two rows swapped": lambda rows: rows.insert(1, rows.pop(_other_than_first(rows))),
    "all rows in another order": lambda rows: rows.__setitem__(slice(1, None), sorted(rows[1:])),
    "a correlation planted": lambda rows: _plant(rows, 1, 3),
    "a number of another place in its cell": lambda rows: rows[1].__setitem__(1, _in_its_cell(rows[1][1])),
}


def _other_than_first(rows: Rows) -> int:
    return next(number for number, row in enumerate(rows) if number > 1 and row != rows[1])


def _plant(rows: Rows, one: int, other: int) -> None:
    """Two columns that were not measured together ordered alike within each class: every count of the marginals, and
    every bin of each column by class, is kept.
    """
    for label in {row[2] for row in rows[1:]}:
        places = [number for number, row in enumerate(rows) if number and row[2] == label]
        values = sorted(rows[number][other] for number in places)
        for number, value in zip(sorted(places, key=lambda n: rows[n][one]), values, strict=True):
            rows[number][other] = value


def _in_its_cell(number: str) -> str:
    return number[:-1] + str((int(number[-1]) + 1) % 10)


@pytest.mark.parametrize("what", list(TABLE_CHANGES))
def test_tables_that_were_changed(out: Path, what: str) -> None:
    change(out, SYNTHETIC_TABLE, TABLE_CHANGES[what])
    said = refused(out)
    assert SYNTHETIC_TABLE in said or "columns" in said


REPORT_CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "more charged": lambda r: r["privacy"]["account"][0].update(epsilon="2"),
    "another epsilon": lambda r: r["privacy"].update(epsilon="1"),
    "a delta": lambda r: r["privacy"].update(delta="1E-13"),
    "an endless delta": lambda r: r["privacy"].update(delta="1e99999999"),
    "no delta": lambda r: r["privacy"].pop("delta"),
    "no privacy": lambda r: r.pop("privacy"),
    "another job": lambda r: r.update(job_sha256="00" * 32),
    "another seed": lambda r: r.update(seed="00" * 32),
    "another number of rows": lambda r: r.update(rows=r["rows"] + 1),
    "bins": lambda r: r["bins"].update(job=[]),
    "an edge": lambda r: r["edges"].pop(),
    "what is expected": lambda r: r["edges"][0].update(expected_rows=0),
    "a scale": lambda r: r["tables"][0].update(scale="0.1"),
    "a fit": lambda r: r["fit"][0].update(chi_square="1e6"),
    "a last digit": lambda r: r["fit"][0].update(chi_square=str(float(r["fit"][0]["chi_square"]) * 1.001)),
    "a fit that is none": lambda r: r["fit"][0].update(chi_square="small"),
    "a fit less": lambda r: r["fit"].pop(),
    "no fit": lambda r: r.pop("fit"),
    "more": lambda r: r.update(exact_rows=300),
    "signatures of nobody": lambda r: r.update(signatures=None),
    "repeated by nobody": lambda r: r.update(repeated=False),
    "noise claimed": lambda r: r["mostly_noise"]["tables"].append(1),
    "noise belittled": lambda r: r["mostly_noise"].update(meaning="Nothing to worry about."),
    "no word of noise": lambda r: r.pop("mostly_noise"),
    "other words": lambda r: r["privacy"].update(guarantees=["Nobody learns anything."]),
    "additions below the top": lambda r: r["fit"][0].update(note="safe"),
    "another type": lambda r: r.update(rows=float(r["rows"])),
}


OF_FILES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no digest of the marginals": lambda files: files.pop(MARGINALS),
    "no digest of the table": lambda files: files.pop(SYNTHETIC_TABLE),
    "a digest of counts": lambda files: files.update({"counts.csv": files[MARGINALS]}),
    "a digest of the report": lambda files: files.update({REPORT: files[MARGINALS]}),
}


@pytest.mark.parametrize("what", list(OF_FILES))
def test_files_of_a_report_are_those_of_the_release(out: Path, what: str) -> None:
    report = json.loads((out / REPORT).read_bytes())
    OF_FILES[what](report["files"])
    (out / REPORT).write_text(json.dumps(report))
    write_sums(out, (SYNTHETIC_TABLE, MARGINALS, REPORT))
    with pytest.raises(PartyError, match="`files` does not follow from job and marginals") as caught:
        verify_folder(TASK, out)
    assert caught.value.problem.error_id == "verification-failed"


@pytest.mark.parametrize("what", list(REPORT_CHANGES))
def test_reports_that_were_changed(out: Path, what: str) -> None:
    report = json.loads((out / REPORT).read_bytes())
    REPORT_CHANGES[what](report)
    (out / REPORT).write_text(json.dumps(report))
    write_sums(out, (SYNTHETIC_TABLE, MARGINALS, REPORT))
    refused(out)


def alike(task: Task, n_rows: int) -> dict[str, bytes]:
    """The release of a run that opened so many rows in every table, spread evenly."""
    holder = Foreseen(n_rows)
    outcome = run_single(Synthesis(task.schema, requirement(task), holder, Observer()).run())
    return files_of(render(task, SyntheticResult(b"", outcome)), {"cost": {"parties": {}}})


@pytest.mark.parametrize(
    ("opened", "n_rows", "noted"),
    [(396, 396, [1, 2, 3]), (400, 400, [2]), (1056, 1056, [2]), (1144, 1136, [])],
)
def test_tables_with_more_noise_than_records_are_noted(opened: int, n_rows: int, noted: list[int]) -> None:
    """At ε = 1/10 the scale of the first three is 100; the second has 11 counts, the others 4."""
    task = jobs.task_of(synthetic_single({"epsilon": "0.1"}))
    files = alike(task, opened)
    report = json.loads(files[REPORT])
    told = report["mostly_noise"]["tables"]
    assert report["rows"] == n_rows
    assert [number for number in told if number <= 3] == noted
    said = [line for line in task.model.shown(task, report).lines if line.startswith("Mostly noise")]
    assert said == [f"Mostly noise: {len(told)} of 7 tables; {report['mostly_noise']['meaning']}."]

    def verified(content: dict[str, Any]) -> None:
        require_verified(task, files[MARGINALS], files[SYNTHETIC_TABLE], content)

    verified(report)
    told.pop()
    with pytest.raises(PartyError, match=r"`mostly_noise\.tables` does not follow from job"):
        verified(report)


def test_a_report_of_counts_above_their_noise_has_no_word_of_it_on_the_console() -> None:
    report = json.loads(alike(TASK, 880)[REPORT])
    assert report["mostly_noise"]["tables"] == []
    earlier = {name: value for name, value in report.items() if name != "mostly_noise"}
    for each in (report, earlier):
        assert "Mostly noise" not in "".join(TASK.model.shown(TASK, each).lines)


def test_a_report_that_is_none(out: Path) -> None:
    (out / REPORT).write_text("[]")
    assert "is not a report" in refused(out)


def test_a_folder_without_its_report_is_not_whole(out: Path) -> None:
    (out / REPORT).unlink()
    assert "but not the report.json" in refused(out)
    (out / SUMS).unlink()
    assert verify_folder(TASK, out).fields["verified"] is True


@pytest.mark.parametrize(("column", "value"), [(1, "1000000"), (1, "-1"), (0, "Pilot"), (2, "Perhaps")])
def test_what_this_machine_draws_is_held_to_the_domains_too(
    made: Path, monkeypatch: pytest.MonkeyPatch, column: int, value: str
) -> None:
    """A draw that leaves a domain is no better for being drawn the same way again."""
    outcome = read_marginals((made / MARGINALS).read_bytes(), TASK)
    header, first, *rest = synthetic_csv(TASK, outcome).decode().splitlines(keepends=True)
    cells = first.rstrip("\n").split(",")
    cells[column] = value
    outside = "".join([header, ",".join(cells) + "\n", *rest]).encode()
    monkeypatch.setattr(table_file, "drawn_csv", lambda task, outcome, model: outside)
    with pytest.raises(PartyError, match="has a value outside its domain"):
        require_drawn(TASK, outcome, outside)


@pytest.mark.parametrize("more", [-1, 1])
def test_nothing_is_drawn_to_compare_a_table_of_another_size(
    made: Path, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    """A short table with counts of many rows makes nobody draw these."""
    outcome = read_marginals((made / MARGINALS).read_bytes(), TASK)
    lines = (made / SYNTHETIC_TABLE).read_bytes().splitlines(keepends=True)
    other = lines[:-1] if more < 0 else [*lines, lines[-1]]
    monkeypatch.delattr(table_file, "drawn_csv")
    with pytest.raises(PartyError, match="the number of rows does not follow"):
        require_drawn(TASK, outcome, b"".join(other))


class Forged:
    """A holder that has no records, and answers with what it likes."""

    def __init__(self, low: int, high: int) -> None:
        self._rng, self._low, self._high = np.random.default_rng(3), low, high

    def measure(self, marginals: Any, rate: Fraction) -> Turn[list[Any]]:
        return at_once([self._rng.integers(self._low, self._high, m.shape) for m in marginals])

    def choose(self, question: Any, rate: Fraction, n_edges: int) -> Turn[Any]:
        return at_once(tuple(range(n_edges)))  # all of the first column: a star


@pytest.mark.parametrize("job", [synthetic_single, general])
@pytest.mark.parametrize("edges", ["0", "2", "auto"])
@pytest.mark.parametrize(("low", "high"), [(-3, 30), (-20, 0), (0, 1)])
def test_forged_marginals_have_a_table_too(job: Any, edges: str, low: int, high: int) -> None:
    """Model and rows are functions of job and marginals alone: nothing of a data set is needed, or there."""
    task = jobs.task_of(job({"edges": edges}))
    made = run_single(Synthesis(task.schema, requirement(task), Forged(low, high), Observer()).run())
    marginals = marginals_csv(made)
    table = synthetic_csv(task, made)
    verified = require_verified(task, marginals, table, None)
    outcome = verified.result.outcome
    assert verified.n_rows == len(table.splitlines()) - 1
    assert (verified.n_rows > 0) == (high > 1)
    assert edges_of(outcome) == edges_of(made)
    assert counts_of(outcome).tolist() == counts_of(made).tolist()
    assert len(outcome.accountant.charges) == (4 if edges_of(made) else 2)
    assert edges == "auto" or len(edges_of(made)) == int(edges)


def test_nobody_can_make_a_table_that_fills_memories(made: Path) -> None:
    """Counts are bounded, and so are their sums: the rows are so many as the marginals say."""
    outcome = read_marginals((made / MARGINALS).read_bytes(), TASK)
    counts, edges = counts_of(outcome), edges_of(outcome)
    one = counts.copy()
    one[0] = 1310
    all_high = counts.copy()
    all_high[:4] = 900
    for forged, says in (
        (one, "no noise of the job makes the count"),
        (all_high, "no noise of the job makes the sum of counts"),
    ):
        with pytest.raises(ValueError, match=says):
            replayed(TASK, edges, forged)


def test_a_run_has_the_pairs_and_counts_of_its_job(made: Path) -> None:
    outcome = read_marginals((made / MARGINALS).read_bytes(), TASK)
    counts, edges = counts_of(outcome), edges_of(outcome)
    for forged, of_edges, says in (
        (counts[:-1], edges, "fewer counts"),
        (np.append(counts, 0), edges, "more than the job opens"),
        (counts, [*edges, 2], "not as many pairs"),
        (counts, [3], "is missing, or closes a cycle"),
        (counts, [-1], "is missing, or closes a cycle"),
    ):
        with pytest.raises(ValueError, match=says):
            replayed(TASK, of_edges, forged)
    task = jobs.task_of(synthetic_single({"edges": "2"}))
    with pytest.raises(ValueError, match="closes a cycle"):
        replayed(task, [1, 1], counts)
    nothing = jobs.task_of(synthetic_single({"edges": "0"}))
    n = sum(m.counts.size for m in (*outcome.opened.leaves, *outcome.opened.bins))
    with pytest.raises(ValueError, match="more than the job opens"):
        replayed(nothing, [1], counts[:n])


def test_pairs_are_numbered_as_the_loop_has_them() -> None:
    for n in range(2, 7):
        axes = [Axis(i, (0,)) for i in range(n)]
        found = [edge_number(n, *pair.columns) for pair in pairs_of(axes, 1)]
        assert found == list(range(n * (n - 1) // 2))


@pytest.mark.parametrize("name", [SYNTHETIC_TABLE, MARGINALS])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe1,2\n"])
def test_a_file_that_is_no_table_is_named(out: Path, name: str, content: bytes) -> None:
    (out / name).write_bytes(content)
    write_sums(out, (SYNTHETIC_TABLE, MARGINALS, REPORT))
    with pytest.raises(PartyError, match=f"^{name} cannot be read"):
        verify_folder(TASK, out)
