"""Releases changed as a whole, report and digests with them, under the signatures of the run that made another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anonymize.dp.noisy_table import NoisyTable
from coordinator.verify import verify_folder
from jobs.dp.counts import COUNTS
from jobs.dp.files import render as counts_of_result
from jobs.dp.replay import replayed_run
from jobs.dp.reread import readings
from jobs.dp.result import DpResult, joint_result
from jobs.dp.settings import MARGINALS, SYNTHETIC_TABLE
from jobs.errors import PartyError
from jobs.release.csv import REPORT, TABLE
from jobs.release.delivery import checked_release
from jobs.release.making import write_release
from jobs.release.sums import SUMS, file_fields, write_sums
from jobs.synthetic import result as synthetic_result
from jobs.synthetic.files import render as tables_of_result
from jobs.synthetic.replay import counts_of, edges_of
from jobs.synthetic.replay import replayed_run as synthetic_run
from jobs.synthetic.result import SyntheticResult
from jobs.task import Checked, Task
from tests.support import dp_jobs, jobs, synthetic_jobs
from tests.support.commands import invoke
from tests.support.delivered import made_files
from tests.support.dp_jobs import PARTITIONS
from tests.support.joint import sample_rows
from tests.support.network import write_job
from tests.support.samples import COLUMNS, PARTIES, columns, joint_job
from tests.support.signed import signatures_of


def refused(task: Task, out: Path) -> str:
    with pytest.raises(PartyError) as caught:
        verify_folder(task, out)
    assert caught.value.problem.error_id == "verification-failed"
    return caught.value.problem.message


def synthetic(task: Task, result: SyntheticResult, signed: dict[str, Any], out: Path) -> Path:
    out.mkdir()
    write_release(task, out, made_files(tables_of_result(task, result), {}, signed), {})
    return out


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_synthetic_table_of_other_marginals_than_were_signed(partition: str, tmp_path: Path) -> None:
    site, result = synthetic_jobs.made(partition)
    task, signed = site.task, signatures_of(site.task, result.encoded)
    checked = verify_folder(task, synthetic(task, result, signed, tmp_path / "signed"))
    assert "signed by all parties" in checked.text
    counts = counts_of(result.outcome).copy()
    counts[-1] += 500
    forged = synthetic_result.joint_result(synthetic_run(task, edges_of(result.outcome), counts))
    assert "signed a different result" in refused(task, synthetic(task, forged, signed, tmp_path / "forged"))


def counted(task: Task, result: DpResult, signed: dict[str, Any], out: Path) -> Path:
    out.mkdir()
    write_release(task, out, made_files(counts_of_result(task, result), {}, signed), {})
    return out


MODELS = [(), (("engine", "thesis"), ("max_rows", "30")), (("noise", "each"),)]


@pytest.mark.some(2)
@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("model", MODELS)
def test_counts_other_than_were_signed(
    partition: str, model: tuple[tuple[str, str], ...], tmp_path: Path
) -> None:
    site, result = dp_jobs.made(partition, model)
    task, signed = site.task, signatures_of(site.task, result.encoded)
    out = counted(task, result, signed, tmp_path / "signed")
    assert "signed by all parties" in verify_folder(task, out).text
    counts = result.table.counts.copy()
    counts[-1] += 500
    table = NoisyTable(result.table.cells, counts, result.table.n_cells)
    forged = joint_result(replayed_run(task, result.outcome.steps, table), task)
    assert "signed a different result" in refused(task, counted(task, forged, signed, tmp_path / "forged"))


def swapped_cells(out: Path) -> None:
    """The counts stay in their order; the first two cells change places."""
    lines = [line.rpartition(",") for line in (out / COUNTS).read_text().splitlines()]
    cells = [cell for cell, _, _ in lines]
    cells[1:3] = cells[2], cells[1]
    text = "".join(f"{cell},{count}\n" for cell, (_, _, count) in zip(cells, lines, strict=True))
    (out / COUNTS).write_text(text)


def no_specializations(report: dict[str, Any]) -> None:
    report["specializations"] = []


def one_twice(report: dict[str, Any]) -> None:
    report["specializations"] *= 2


def other_words(report: dict[str, Any]) -> None:
    report["specializations"][0]["value"] = "Astronaut"


def without_a_value(report: dict[str, Any]) -> None:
    del report["specializations"][0]["value"]


CHANGES: list[Callable[[dict[str, Any]], object]] = [
    no_specializations,
    one_twice,
    other_words,
    without_a_value,
]


def test_cells_in_another_order_than_were_signed(tmp_path: Path) -> None:
    site, result = dp_jobs.made("horizontal")
    signed = signatures_of(site.task, result.encoded)
    out = counted(site.task, result, signed, tmp_path / "out")
    swapped_cells(out)
    follow(out, lambda report: report["files"].update(file_fields({COUNTS: (out / COUNTS).read_bytes()})))
    assert "no run of the job makes" in refused(site.task, out)


@pytest.mark.parametrize("change", CHANGES)
def test_specializations_that_do_not_lead_to_the_counts(
    change: Callable[[dict[str, Any]], object], tmp_path: Path
) -> None:
    site, result = dp_jobs.made("horizontal")
    out = counted(site.task, result, signatures_of(site.task, result.encoded), tmp_path / "out")
    follow(out, change)
    assert refused(site.task, out)


def follow(out: Path, change: Callable[[dict[str, Any]], object], table: str = COUNTS) -> None:
    """Change a report, and the digests with it."""
    report = json.loads((out / REPORT).read_text())
    change(report)
    (out / REPORT).write_text(json.dumps(report))
    write_sums(out, (table, REPORT))


DOUBLED = ['"privacy": {"epsilon": "0.01"}', '"rows": 0.5e1', '"signatures": null']


@pytest.mark.parametrize("first", DOUBLED)
def test_what_a_report_says_twice_is_believed_by_nobody(first: str, tmp_path: Path) -> None:
    """People read the first, programs the last."""
    site, result = synthetic_jobs.made("horizontal")
    signed = signatures_of(site.task, result.encoded)
    out = synthetic(site.task, result, signed, tmp_path / "out")
    text = (out / REPORT).read_text()
    (out / REPORT).write_text(text.replace("{", f"{{{first}, ", 1))
    write_sums(out, (MARGINALS, SYNTHETIC_TABLE, REPORT))
    assert "must hold a single JSON object" in refused(site.task, out)
    files = {name: (out / name).read_bytes() for name in (MARGINALS, SYNTHETIC_TABLE, REPORT, SUMS)}
    with pytest.raises(PartyError) as caught:
        checked_release(site.task, result, files, {})
    assert caught.value.problem.error_id == "result-mismatch"


@pytest.mark.parametrize(
    "how", [{}, {"method": "kd", "goal": "general", "score": None, "disclosure": "sealed"}]
)
def test_a_table_that_signatures_do_not_bind_is_not_called_signed(
    how: dict[str, Any], tmp_path: Path
) -> None:
    """The result of an LKC run does not follow from its table."""
    fields = {key: value for key, value in {**joint_job(), **how}.items() if value is not None}
    job, out = write_job(tmp_path, fields), tmp_path / "out"
    tables = [
        f"--data={name}={jobs.write_csv(tmp_path / f'{name}.csv', sample_rows(60)[i::3], COLUMNS)}"
        for i, name in enumerate(PARTIES)
    ]
    ran = invoke("coordinator", "simulate", job, *tables, "--in-process", "--out", out)
    assert ran.code == 0, ran.err
    task = jobs.task_of(fields)
    follow(out, lambda report: report.update(signatures=signatures_of(task, b"another")), TABLE)
    checked: Checked = verify_folder(task, out)
    assert checked.result is None
    assert "signed by all" not in checked.text
    assert "not verified: whether the files belong to the result that all parties of run 5a" in checked.text
    assert checked.fields["not_verified"][-1] == "report.signatures.result"


FORGED: dict[str, Callable[[bytes], bytes]] = {
    "two rows in another order": lambda table: swapped(table, 1, 2),
    "another value": lambda table: table.replace(b",Y,", b",N,", 1),
    "quotes": lambda table: table.replace(b",Y,", b',"Y",', 1),
    "a byte order mark": lambda table: b"\xef\xbb\xbf" + table,
    "another end of a line": lambda table: table.replace(b"\n", b"\r\n", 1),
    "a blank line": lambda table: table + b"\n",
}


def swapped(table: bytes, one: int, other: int) -> bytes:
    lines = table.splitlines(keepends=True)
    other = next(i for i in range(other, len(lines)) if lines[i] != lines[one])
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


@pytest.mark.some(4)
@pytest.mark.parametrize("how", list(FORGED))
@pytest.mark.parametrize("method", [{}, {"method": "kd", "goal": "general", "disclosure": "sealed"}])
def test_signatures_bind_an_lkc_table_to_the_byte(method: dict[str, Any], how: str, tmp_path: Path) -> None:
    """A forger keeps the signatures and changes the table, its digests with it."""
    fields = joint_job(**method)
    job, out = write_job(tmp_path, fields), tmp_path / "out"
    tables = [
        f"--data={name}={jobs.write_csv(tmp_path / f'{name}.csv', sample_rows(60)[i::3], COLUMNS)}"
        for i, name in enumerate(PARTIES)
    ]
    assert invoke("coordinator", "simulate", job, *tables, "--in-process", "--out", out).code == 0
    task, made = jobs.task_of(fields), (out / TABLE).read_bytes()
    signed = signatures_of(task, b"the result", {TABLE: made})
    follow(out, lambda report: report.update(signatures=signed), TABLE)
    checked = verify_folder(task, out)
    assert "signed by all parties" in checked.text
    assert "report.signatures.result" not in checked.fields.get("not_verified", ())
    (out / TABLE).write_bytes(FORGED[how](made))
    follow(
        out, lambda report: report["files"].update(file_fields({TABLE: (out / TABLE).read_bytes()})), TABLE
    )
    with pytest.raises(PartyError) as caught:
        verify_folder(task, out)
    assert caught.value.problem.error_id == "verification-failed"


def test_specializations_that_print_alike_are_not_told_apart() -> None:
    """Then no result follows, and verify does not call the release signed."""
    below = {"p": ["1", "2"], "q": ["3", "4"]}, {"p": ["5", "6"], "q": ["7", "8"]}
    taxonomy = {"Any": {"x": {"g": below[0], "h": ["9", "0"]}, "y": {"g": below[1], "k": ["10", "11"]}}}
    job = {"role": "qid", "taxonomy": taxonomy}
    task = jobs.task_of(dp_jobs.dp_joint("horizontal", columns=columns(job=job)))
    made = [("Any", "x", "y", "?"), ("x", "g*", "h"), ("y", "g*", "k"), ("g*", "p*", "q*")]
    told = [{"attribute": "job", "value": value, "children": list(children)} for value, *children in made]
    assert len(readings(task.schema, told)) == 2
    with pytest.raises(ValueError, match="missing node"):
        readings(task.schema, [*told[:1], *told[3:]])  # neither is there yet
