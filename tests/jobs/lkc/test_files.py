"""Deliveries of a coordinator to a party: the table that was computed, and a report that follows from it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import jobs.release.csv
from anonymize.release import Release
from jobs.errors import PartyError
from jobs.file.bundle import Bundle
from jobs.lkc.files import render
from jobs.lkc.parts import COLUMNS, ROWS
from jobs.lkc.release import release_of_result
from jobs.lkc.verify import require_verified
from jobs.loading import open_task
from jobs.options import NO_OPTIONS
from jobs.release.csv import REPORT, TABLE
from jobs.release.csv import csv_bytes as jobs_csv
from jobs.release.delivery import checked_release
from jobs.release.making import write_joint_release
from jobs.release.sums import SUMS, digests_of, file_fields, sums_of
from jobs.stopwatch import Stopwatch
from jobs.task import Collected, Rendered
from tests.support import jobs
from tests.support.bytes import OTHER_BYTES
from tests.support.delivered import made_files
from tests.support.joint import run_joint_sample
from tests.support.lkc_runs import LkcRun, run_lkc
from tests.support.samples import AS_IT_IS, columns, joint_job, vertical_job


def test_how_large_a_sent_table_may_be_follows_from_the_result(tmp_path: Path) -> None:
    task, result, _ = run_joint_sample()
    assert task.delivered == (REPORT, SUMS)  # the parties make the table from the result
    assert task.model.most_bytes(task, result) == 0
    run = run_lkc(jobs.task_of(vertical_job()), tmp_path)
    assert run.task.delivered == (TABLE, REPORT, SUMS)
    parts = {**run.parts(ROWS), **run.parts(COLUMNS)}
    size = len(jobs_csv(release_of_result(run.task, run.result, parts, None)))
    assert size <= run.task.model.most_bytes(run.task, run.result) <= 2 * size
    raw = jobs.task_of(joint_job(goal="general", columns=columns(patient=AS_IT_IS)))
    assert task.model.most_bytes(raw, result) == 0


def test_the_signed_digests_are_those_of_the_tables() -> None:
    task, result, _ = run_joint_sample()
    files = render(task, result).tables
    assert set(files) == {TABLE}
    assert task.mode.digests(task, result) == digests_of(files)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[LkcRun, dict[str, bytes]]:
    """A run with a plain column, and the files that the coordinator makes of it."""
    task = jobs.task_of(joint_job(goal="general", columns=columns(patient=AS_IT_IS)))
    folder = tmp_path_factory.mktemp("mixed")
    run = run_lkc(task, folder)
    (folder / "out").mkdir()
    write_joint_release(
        task, folder / "out", Collected(run.result, {}, {}), NO_OPTIONS, Stopwatch(lambda _: None)
    )
    return run, {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


def test_how_large_a_table_of_mixed_rows_is_follows_from_the_result(
    mixed: tuple[LkcRun, dict[str, bytes]],
) -> None:
    run, files = mixed
    size = len(files[TABLE])
    assert size <= run.task.model.most_bytes(run.task, run.result) <= 2 * size


def test_every_party_compares_plain_cells_too(mixed: tuple[LkcRun, dict[str, bytes]]) -> None:
    run, files = mixed
    checked_release(run.task, run.result, files, {})
    table = files[TABLE].replace(b"\n59,", b"\n58,")
    assert table != files[TABLE]
    report = json.loads(files[REPORT]) | {"files": file_fields({TABLE: table})}
    changed = {TABLE: table, REPORT: json.dumps(report).encode()}
    with pytest.raises(PartyError, match="not the one that was computed"):
        checked_release(run.task, run.result, {**changed, SUMS: sums_of(changed)}, {})


def written(release: Release, rows: Sequence[tuple[str, ...]]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(release.columns)
    writer.writerows(rows)
    return out.getvalue().encode()


def delivered(**changes: Any) -> None:
    task, result, release = run_joint_sample()
    content = changes.get("content", render(task, result).tables[TABLE])
    if "rows" in changes:
        content = written(release, changes["rows"])
    task = changes.get("task", task)
    table = {TABLE: content}
    made = Rendered(table, result.report(task, release, require_verified(release, task)))
    fields = json.loads(made_files(made)[REPORT]) | changes.get("fields", {})
    changes.get("change", lambda _: None)(fields)
    files = {**table, REPORT: changes.get("report", json.dumps(fields).encode())}
    checked_release(task, result, {**files, SUMS: changes.get("sums", sums_of(files))}, {})


BYTES: dict[str, Callable[[bytes], bytes]] = {
    "quotes": lambda table: table.replace(b",Y,", b',"Y",', 1),
    **OTHER_BYTES,
}

TOLD: dict[str, Callable[[dict[str, Any]], object]] = {
    "partition": lambda r: r.update(partition="vertical"),
    "model": lambda r: r["model"]["lkc"].update(K=3),
    "goal": lambda r: r.pop("goal"),
    "parties": lambda r: r["parties"].pop(),
    "leader": lambda r: r.update(leader="hospital-c"),
    "disclosure": lambda r: r.update(disclosure="sealed"),
    "revealed_by_design": lambda r: r["revealed_by_design"].pop(),
    "requirements": lambda r: r["requirements"][0].update(smallest_group=99),
    "sensitive": lambda r: r["sensitive"]["surgery"].update(values=["Knee"]),
    "rows": lambda r: r.update(rows=61),
    "cut": lambda r: r["cut"].update(job=["Blue"]),
    "specializations": lambda r: r["specializations"].pop(),
    "discarded": lambda r: r["discarded"].clear(),
    "stopped": lambda r: r["stopped"].clear(),
    "files": lambda r: r["files"][TABLE].update(sha256="0" * 64),
}


@pytest.mark.parametrize("what", list(TOLD))
def test_a_delivered_report_says_what_follows_from_the_result(what: str) -> None:
    with pytest.raises(PartyError, match=f"says of {what} what does not follow") as caught:
        delivered(change=TOLD[what])
    assert caught.value.problem.error_id == "result-mismatch"


@pytest.mark.parametrize("place", [lambda r: r, lambda r: r["specializations"][0]], ids=["", "a step"])
def test_a_delivered_report_has_no_key_of_its_own(place: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    def claims(report: dict[str, Any]) -> None:
        place(report)["guarantee"] = "20-anonymous, certified"

    with pytest.raises(PartyError, match=r"says more|does not follow") as caught:
        delivered(change=claims)
    assert caught.value.problem.error_id == "result-mismatch"


@pytest.mark.parametrize("key", ["data", "withheld"])
def test_a_delivered_report_says_nothing_that_only_one_holder_knows(key: str) -> None:
    with pytest.raises(PartyError, match="says more"):
        delivered(fields={key: {}})


@pytest.mark.parametrize("sums", [b"", b"x", sums_of({TABLE: b"", REPORT: b""})])
def test_other_digests_than_those_of_the_files_are_refused(sums: bytes) -> None:
    with pytest.raises(PartyError, match="of the delivered SHA256SUMS is not the one that was computed"):
        delivered(sums=sums)


def test_the_table_that_was_computed_is_accepted_in_one_order() -> None:
    """The order follows from the result, so that signatures bind it."""
    delivered()
    rows = list(jobs.multiset(run_joint_sample()[2]).elements())
    with pytest.raises(PartyError, match="not the one that was computed"):
        delivered(rows=rows[::-1])


@pytest.mark.parametrize("how", list(BYTES))
def test_bytes_that_hold_a_text_besides_the_values_are_refused(how: str) -> None:
    task, result, _ = run_joint_sample()
    with pytest.raises(PartyError, match="not the one that was computed"):
        delivered(content=BYTES[how](render(task, result).tables[TABLE]))


@pytest.mark.parametrize("harm", ["a row less", "a row more", "a cell changed"])
def test_any_other_table_is_refused(harm: str) -> None:
    rows = list(jobs.multiset(run_joint_sample()[2]).elements())
    changed = {
        "a row less": rows[1:],
        "a row more": [*rows, rows[0]],
        "a cell changed": [(*rows[0][:-2], "N" if rows[0][-2] == "Y" else "Y", rows[0][-1]), *rows[1:]],
    }[harm]
    with pytest.raises(PartyError) as caught:
        delivered(rows=changed)
    assert caught.value.problem.error_id == "result-mismatch"


def test_a_report_of_other_reveals_is_refused() -> None:
    ledger = list(run_joint_sample()[1].reveals)
    for reveals in ([], ledger[1:], [*ledger, ledger[-1]], None):
        with pytest.raises(PartyError, match="says of reveals what does not follow"):
            delivered(fields={"reveals": reveals})


def test_a_table_that_violates_the_job_is_refused_though_it_was_computed() -> None:
    """The second lock: all parties and the coordinator have the same mistake, and the verifier has not."""
    task, _, release = run_joint_sample()
    stricter = task.job.lkc.model_copy(update={"L": 1, "K": release.n_rows, "C": Fraction(1)})
    job = task.job.model_copy(update={"model": task.job.model.model_copy(update={"lkc": stricter})})
    with pytest.raises(PartyError) as caught:
        delivered(task=open_task(Bundle(job, task.bundle.files)))
    assert caught.value.problem.error_id == "verification-failed"


@pytest.mark.parametrize("report", [b"", b"[]", b"{}", b"\xff", b'{"job_sha256": "00"}'])
def test_a_report_about_something_else_is_refused(report: bytes) -> None:
    with pytest.raises(PartyError) as caught:
        delivered(report=report)
    assert caught.value.problem.error_id == "result-mismatch"
