"""DP releases of single holders and what is checked in any: every way to make one worse is noticed."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from anonymize.dp.sparse import filter_for
from jobs.dp.counts import COUNTS
from jobs.errors import Exit
from jobs.owner.ledger import PrivacyLedger
from jobs.page.page import PAGE
from jobs.release.csv import REPORT, TABLE
from jobs.release.folder import OWN_PAGE
from jobs.release.sums import SUMS, file_fields, write_sums
from tests.support import jobs
from tests.support.bytes import OTHER_BYTES
from tests.support.commands import Ran, invoke, listing
from tests.support.dp_jobs import dp_joint, dp_single
from tests.support.joint import sample_rows
from tests.support.network import report_of, write_job
from tests.support.samples import COLUMNS, columns, single_job

CODES = {"role": "qid", "set": {"taxonomy": {"Any": {"1": ["11", "12"], "2": ["21", "22"]}}}}
JOBS: dict[str, dict[str, Any]] = {
    "all cells": dp_single({"specializations": "3"}),
    "sets": dp_single({"specializations": "3"}, columns=columns(codes=CODES)),
    # With less noise, since the noise is real: with an epsilon of 1 none or all cells may be above the threshold.
    "threshold": dp_single({"specializations": "3", "max_cells": "4", "epsilon": "4"}),
    "sets beyond the limit": dp_single(
        {"specializations": "3", "max_cells": "4", "epsilon": "4"}, columns=columns(codes=CODES)
    ),
}
BEYOND = ("threshold", "sets beyond the limit")


def write_table(folder: Path, n: int = 60) -> Path:
    rows = [
        {**row, "codes": ("11", "11;12", "21;22", "12;21")[i % 4]} for i, row in enumerate(sample_rows(n))
    ]
    return jobs.write_csv(folder / "table.csv", rows, [*COLUMNS, "codes"])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    for name, fields in JOBS.items():
        job = write_job(folder / name, fields)
        write_table(folder / name)
        done = invoke("coordinator", "run", job, "--out", folder / name / "out", "--as-records")
        assert done.code == 0, done.err
    return folder


@pytest.fixture
def site(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "made")
    return tmp_path / "made"


def verified(folder: Path, what: str = "out") -> Ran:
    return invoke("coordinator", "verify", folder / "job.yaml", folder / what, "--format", "json")


def refused(folder: Path, what: str = "out") -> str:
    ran = verified(folder, what)
    assert (ran.code, ran.problem["error"], ran.out) == (Exit.FAILED, "verification-failed", "")
    return str(ran.problem["message"])


def change_rows(folder: Path, change: Callable[[list[list[str]]], object], name: str = COUNTS) -> None:
    with (folder / "out" / name).open(newline="") as file:
        rows = list(csv.reader(file))
    change(rows)
    with (folder / "out" / name).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def change_report(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    report = report_of(folder / "out")
    change(report)
    (folder / "out" / REPORT).write_text(json.dumps(report))
    write_sums(folder / "out", tuple(name for name in listing(folder / "out") if name != SUMS))


@pytest.mark.parametrize("name", list(JOBS))
def test_what_was_made_is_fine(made: Path, name: str) -> None:
    assert verified(made / name).code == 0
    assert verified(made / name, f"out/{COUNTS}").code == (Exit.FAILED if name in BEYOND else 0)
    report = report_of(made / name / "out")
    assert (report["threshold"] is None) == (name not in BEYOND)
    assert (report["cells"] == report["cells_listed"]) == (name not in BEYOND)


def set_count(text: str) -> Callable[[list[list[str]]], object]:
    return lambda rows: rows[1].__setitem__(-1, text)


def not_in_the_cut(rows: list[list[str]]) -> str:
    """A grid cell that the release has not: with what it has, it makes up no cut."""
    found = {row[1] for row in rows}
    return next(label for i in range(9) if (label := f"[{10 * i},{10 * i + 10})") not in found)


ROWS: dict[str, Callable[[list[list[str]]], object]] = {
    "a cell dropped": lambda rows: rows.pop(),
    "a cell twice": lambda rows: rows.append(rows[1]),
    "a cell instead of another": lambda rows: rows.__setitem__(1, rows[2]),
    "a value of no node": lambda rows: rows[1].__setitem__(0, "Astronaut"),
    "a value below the cut": lambda rows: rows[1].__setitem__(1, not_in_the_cut(rows)),
    "a class of no domain": lambda rows: rows[1].__setitem__(-3, "maybe"),
    "a count that is no integer": set_count("1.5"),
    "a count that is no number": set_count("many"),
}


def test_a_count_that_was_changed_is_found_by_its_digest_only(site: Path) -> None:
    """Counts are noisy: any integer might be one."""
    folder = site / "all cells"
    change_rows(folder, set_count("999"))
    (folder / "out" / TABLE).unlink()
    assert f"{REPORT} was made with a different {COUNTS}" in refused(folder)
    ran = verified(folder, f"out/{COUNTS}")
    assert ran.code == 0
    said = invoke("coordinator", "verify", folder / "job.yaml", folder / "out" / COUNTS).out
    assert "only the digest can show a changed count" in said


def test_rows_made_for_the_coordinator_are_in_the_digest(site: Path) -> None:
    folder = site / "all cells"
    assert TABLE in (folder / "out" / SUMS).read_text()
    (folder / "out" / TABLE).unlink()
    assert f"{TABLE} is missing" in refused(folder)


@pytest.mark.parametrize("what", list(ROWS))
@pytest.mark.parametrize("with_report", [True, False])
def test_rows_that_were_changed(site: Path, what: str, with_report: bool) -> None:
    folder = site / "all cells"
    change_rows(folder, ROWS[what])
    (folder / "out" / TABLE).unlink()
    if with_report:
        refused(folder)
    refused(folder, f"out/{COUNTS}")


@pytest.mark.parametrize("name", ["sets", "threshold"])
@pytest.mark.parametrize("what", ["a cell twice", "a value of no node", "a class of no domain"])
def test_rows_of_other_releases_that_were_changed(site: Path, name: str, what: str) -> None:
    change_rows(site / name, ROWS[what])
    refused(site / name)


def test_a_cell_dropped_from_a_release_with_sets(site: Path) -> None:
    """Its combinations are those it has, but the product of the columns must be whole."""
    change_rows(site / "sets", ROWS["a cell dropped"])
    change_report(site / "sets", lambda report: report.update(cells_listed=report["cells_listed"] - 1))
    assert "missing" in refused(site / "sets") or "product" in refused(site / "sets")


def test_a_count_below_the_threshold(site: Path) -> None:
    threshold = report_of(site / "threshold" / "out")["threshold"]
    change_rows(site / "threshold", set_count(str(threshold - 1)))
    assert "below the threshold" in refused(site / "threshold")


def charge(epsilon: str) -> Callable[[dict[str, Any]], object]:
    return lambda report: report["privacy"]["account"][0].update(epsilon=epsilon)


REPORTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a key of its own": lambda report: report.update(guarantee="20-anonymous, certified"),
    "a key of joint reports": lambda report: report.update(reveals=[]),
    "more of privacy": lambda report: report["privacy"].update(certified=True),
    "less charged": charge("1/1000"),
    "more charged": charge("1/2"),
    "another epsilon": lambda report: report["privacy"].update(epsilon="2"),
    "delta too large": lambda report: report["privacy"].update(delta="0.01"),
    "an endless delta": lambda report: report["privacy"].update(delta="1e99999999"),
    "an endless small delta": lambda report: report["privacy"].update(delta="1e-99999999"),
    "an endless epsilon": lambda report: report["privacy"].update(epsilon="1e99999999"),
    "an endless charge": charge("1e99999999"),
    "a charge with an endless denominator": charge("1/1" + "0" * 100_000),
    "delta is a number": lambda report: report["privacy"].update(delta=0),
    "no account": lambda report: report["privacy"].pop("account"),
    "no privacy": lambda report: report.pop("privacy"),
    "another job": lambda report: report.update(job_sha256="00" * 32),
    "another number of cells": lambda report: report.update(cells_listed=report["cells_listed"] + 1),
    "no threshold": lambda report: report.pop("threshold"),
    "a threshold that is text": lambda report: report.update(threshold="low"),
    "no cut": lambda report: report.pop("cut"),
    "a cut that is text": lambda report: report["cut"].update(job="Any"),
    "another cut": lambda report: report["cut"].update(job=["Blue", "White", "?"], age=["[0,100)"]),
    "another guarantee": lambda report: report["privacy"]["guarantees"].append("Nobody learns anything."),
    "nothing that is not covered": lambda report: report["privacy"].update(not_covered=[]),
    "another unit": lambda report: report["privacy"].update(unit="one person"),
    "another charge of the same sum": lambda report: report["privacy"]["account"].reverse(),
    "fewer specializations": lambda report: report["specializations"].pop(),
    "another specialization": lambda report: report["specializations"][0].update(children=["a", "b"]),
    "no specializations": lambda report: report.pop("specializations"),
    "specializations of numbers": lambda report: [step.update(value=7) for step in report["specializations"]],
    "children that are numbers": lambda report: [
        step.update(children=[1, 2]) for step in report["specializations"]
    ],
    "children that are text": lambda report: [
        step.update(children="ab") for step in report["specializations"]
    ],
    "one child": lambda report: [step.update(children=["Blue"]) for step in report["specializations"]],
    "more cells than there are": lambda report: report.update(cells=report["cells"] + 1),
    "cells are text": lambda report: report.update(cells="many"),
}


@pytest.mark.parametrize("what", list(REPORTS))
def test_reports_that_were_changed(site: Path, what: str) -> None:
    change_report(site / "all cells", REPORTS[what])
    refused(site / "all cells")


def test_an_error_names_the_key_that_is_missing(site: Path) -> None:
    """Keys of the maker, digests and the job have sentences of their own."""
    honest = report_of(site / "threshold" / "out")
    for key in honest.keys() - {"job_sha256", "files"}:
        change_report(site / "threshold", lambda report, key=key: report.pop(key))
        assert f"`{key}`" in refused(site / "threshold")
        change_report(site / "threshold", lambda report: report.update(honest))


@pytest.mark.parametrize("by", [-1, 1])
def test_another_threshold_than_so_many_cells_have(site: Path, by: int) -> None:
    change_rows(site / "threshold", lambda rows: [row.__setitem__(-1, "9999") for row in rows[1:]])
    change_report(site / "threshold", lambda report: report.update(threshold=report["threshold"] + by))
    assert "no run of the job makes" in refused(site / "threshold")


# ---- counts forged with the report and all digests that speak of them


def written_anew(folder: Path, rows: Callable[[list[list[str]]], object], **said: object) -> None:
    """Change counts and report, and write all digests anew."""
    (folder / "out" / PAGE).unlink(missing_ok=True)  # a page of other counts
    change_rows(folder, rows)
    (folder / "out" / TABLE).unlink(missing_ok=True)
    content = (folder / "out" / COUNTS).read_bytes()
    change_report(
        folder,
        lambda report: report.update(
            {"cells_listed": content.count(b"\n") - 1, "files": file_fields({COUNTS: content}), **said}
        ),
    )


def forge(folder: Path, rows: Callable[[list[list[str]]], object], **said: object) -> str:
    """Change counts and report, and write all digests anew; return why the folder is refused."""
    written_anew(folder, rows, **said)
    return refused(folder)


def threshold_of(report: dict[str, Any]) -> int:
    """The threshold that a release beyond the limit of cells has for this many cells."""
    return filter_for(Fraction(report["privacy"]["account"][-1]["epsilon"]), report["cells"]).threshold


def all_cells(report: dict[str, Any], count: str = "7") -> Callable[[list[list[str]]], object]:
    """Make a table that lists every cell of its cut, in the order of all cells."""
    cells = product(*(report["cut"][name] for name in ("job", "age", "surgery")), ("Y", "N"))
    listed = [[job, age, of_class, surgery, count] for job, age, surgery, of_class in cells]
    return lambda rows: rows.__setitem__(slice(1, None), listed)


@pytest.mark.parametrize("name", ["all cells", "sets"])
def test_cells_dropped_below_a_threshold_of_the_forger(site: Path, name: str) -> None:
    """Below the limit all cells are listed: a threshold would hide which counts were taken out."""
    threshold = threshold_of(report_of(site / name / "out"))

    def drop(rows: list[list[str]]) -> None:
        rows[1:] = [row for row in rows[1:] if int(row[-1]) >= threshold]

    assert "no run of the job makes" in forge(site / name, drop, threshold=threshold)


def test_all_cells_of_more_than_the_limit(site: Path) -> None:
    folder = site / "threshold"
    assert "no run of the job makes" in forge(folder, all_cells(report_of(folder / "out")), threshold=None)


@pytest.mark.parametrize("name", BEYOND)
@pytest.mark.parametrize("by", [1, -1, 10**6 + 1])
def test_another_number_of_cells_beyond_the_limit(site: Path, name: str, by: int) -> None:
    report = report_of(site / name / "out")
    report["cells"] += by
    threshold = threshold_of(report)
    said = forge(
        site / name,
        lambda rows: [row.__setitem__(-1, "9999") for row in rows[1:]],
        cells=report["cells"],
        threshold=threshold,
    )
    assert "no run of the job makes" in said


def swap(rows: list[list[str]]) -> None:
    rows[1], rows[-1] = rows[-1], rows[1]


@pytest.mark.parametrize("name", ["all cells", "sets"])
def test_counts_in_another_order(site: Path, name: str) -> None:
    """The order of cells is public: another one would tell something that nobody compares."""
    assert "no run of the job makes" in forge(site / name, swap)


def test_counts_above_the_threshold_in_another_order(site: Path) -> None:
    folder = site / "threshold"
    every = all_cells(report_of(folder / "out"), "9999")
    written_anew(folder, every)
    assert verified(folder).code == 0
    assert "no run of the job makes" in forge(folder, swap)


@pytest.mark.parametrize("name", ["sets", "threshold"])
def test_guarantees_of_other_releases_that_were_changed(site: Path, name: str) -> None:
    change_report(site / name, REPORTS["another guarantee"])
    assert "`privacy.guarantees` does not follow from job" in refused(site / name)


def test_a_report_that_is_none(site: Path) -> None:
    (site / "all cells" / "out" / REPORT).write_text("[]")
    refused(site / "all cells")


@pytest.mark.parametrize("name", list(JOBS))
def test_rows_made_of_other_counts(site: Path, name: str) -> None:
    change_rows(site / name, lambda rows: rows.append(rows[-1]), TABLE)
    assert "does not follow from the counts" in refused(site / name)


@pytest.mark.parametrize("name", list(JOBS))
def test_counts_of_more_rows_than_fit_anywhere(site: Path, name: str) -> None:
    """Rows are made of counts only if the file has as many."""
    change_rows(site / name, lambda rows: rows[1].__setitem__(-1, str(10**17)))
    assert "does not follow from the counts" in refused(site / name)


@pytest.mark.parametrize("how", list(OTHER_BYTES))
def test_counts_in_other_bytes(site: Path, how: str) -> None:
    path = site / "all cells" / "out" / COUNTS
    path.write_bytes(OTHER_BYTES[how](path.read_bytes()))
    assert "but not in the prescribed bytes" in refused(site / "all cells")


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe secret,1\n", b"\n"])
@pytest.mark.parametrize("what", ["out", f"out/{COUNTS}"])
def test_counts_that_are_no_table(site: Path, content: bytes, what: str) -> None:
    (site / "all cells" / "out" / COUNTS).write_bytes(content)
    write_sums(site / "all cells" / "out", (COUNTS, REPORT, TABLE))
    ran = verified(site / "all cells", what)
    assert ran.code == Exit.FAILED
    assert f"{COUNTS} cannot be read as a table" in ran.err
    assert "secret" not in ran.err
    assert "xff" not in ran.err


def test_no_counts_at_all(site: Path) -> None:
    (site / "all cells" / "out" / COUNTS).unlink()
    assert verified(site / "all cells").problem["error"] == "file-missing"


# ---- a single holder's ledger


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    write_job(tmp_path, dp_single())
    write_table(tmp_path)
    return tmp_path


def run(folder: Path, out: str, *more: str | Path) -> Ran:
    return invoke("coordinator", "run", folder / "job.yaml", "--out", folder / out, "--format", "json", *more)


def test_the_same_job_on_the_same_table_is_the_same_release(alone: Path) -> None:
    assert run(alone, "first").code == 0
    assert run(alone, "again", "--budget", "1").code == 0
    for name in (COUNTS, REPORT):
        assert (alone / "first" / name).read_bytes() == (alone / "again" / name).read_bytes()
    assert listing(alone / "first") == [SUMS, COUNTS, OWN_PAGE, PAGE, REPORT]
    budget = PrivacyLedger(alone / "table.csv.privacy.sqlite", str((alone / "table.csv").resolve()))
    assert [(e.state, e.charged) for e in budget.entries()] == [("released", 1)]


def test_the_owner_is_told_what_the_release_does_not_say(alone: Path) -> None:
    """On the own console; nothing of it is in any file."""
    rows = sample_rows(60)
    for row in rows[:7]:
        row["age"] = "4711"
    rows[9]["transfused"] = "?"
    jobs.write_csv(alone / "table.csv", rows, COLUMNS)
    notes = [line for line in run(alone, "out").lines if line["event"] == "note"]
    counted = {"read": 60, "dropped": {"transfused": {"missing": 1}}, "used": 59, "outside": {"age": 7}}
    charged = {"event": "note", "charged": "1", "runs": 1}
    assert notes == [{"event": "note", **counted}, charged]
    again = [line for line in run(alone, "again").lines if line["event"] == "note"]
    assert again == [{"event": "note", "again": True}, charged]


def test_another_release_of_the_same_table_needs_budget(alone: Path) -> None:
    assert run(alone, "first", "--budget", "3/2").code == 0
    write_job(alone, dp_single({"epsilon": "0.51"}))
    failed = run(alone, "none", "--budget", "3/2")
    assert (failed.code, failed.problem["error"]) == (Exit.BUDGET, "budget-exceeded")
    assert not (alone / "none").exists()
    write_job(alone, dp_single({"epsilon": "0.5"}))
    assert run(alone, "second", "--budget", "3/2").code == 0


SYNTHETIC = {
    "dp": {"method": "synthetic", "epsilon": "20", "accept_large_epsilon": "true", "max_rows": "1000"}
}


def test_a_single_holder_is_told_what_all_releases_add_up_to(alone: Path) -> None:
    """By whichever method, and whoever set no limit is told that there is none."""
    job = alone / "job.yaml"
    first = invoke("coordinator", "run", job, "--out", alone / "first")
    one = "privacy ledger of the table: epsilon 1 charged, by 1 run; the run set no limit (`--budget`)"
    assert one in first.err.splitlines()
    assert "epsilon adds up" not in first.err
    write_job(alone, {**dp_single(), "model": SYNTHETIC})
    second = invoke("coordinator", "run", job, "--out", alone / "second", "--budget", "30")
    assert second.code == 0, second.err
    said = second.err.splitlines()
    at = said.index("privacy ledger of the table: epsilon 21 charged, by 2 runs; limit of this run: 30")
    assert (
        "adds up: all these releases together protect like a single release with epsilon 21, not like"
        in said[at + 1]
    )
    refused = invoke(
        "coordinator",
        "run",
        write_job(alone, dp_single({"epsilon": "10"})),
        "--out",
        alone / "x",
        "--budget",
        "30",
    )
    assert refused.code == Exit.BUDGET
    assert "21 of 30 is spent" in refused.err
    assert "`--budget`" in refused.err
    assert "epsilon_budget" not in refused.err
    assert "party budget" not in refused.err


def test_a_single_holder_looks_its_ledger_up(alone: Path) -> None:
    job, ledger = alone / "job.yaml", alone / "ledgers" / "one"
    ledger.parent.mkdir()
    before = invoke("coordinator", "budget", job)
    assert before.code == 0
    assert before.out.startswith("privacy ledger of the table: epsilon 0 charged, by 0 runs\n")
    assert not (alone / "table.csv.privacy.sqlite").exists()
    assert run(alone, "out", "--ledger", ledger).code == 0
    shown = invoke("coordinator", "budget", job, "--ledger", ledger).out.splitlines()
    assert shown[0] == "privacy ledger of the table: epsilon 1 charged, by 1 run"
    assert "  dp   released  epsilon 1  sample  " in shown[1]
    release = json.loads(
        invoke("coordinator", "verify", job, alone / "out", "--format", "json").out.splitlines()[-1]
    )["release"]
    assert shown[2].endswith(release)
    fields = json.loads(invoke("coordinator", "budget", job, "--ledger", ledger, "--format", "json").out)
    assert (fields["charged"], fields["runs"], len(fields["releases"])) == ("1", 1, 1)
    joint = invoke("coordinator", "budget", write_job(alone / "joint", dp_joint("horizontal")))
    assert joint.code == Exit.USAGE
    assert "party budget" in joint.err


@pytest.mark.parametrize("budget", ["0", "-1", "lots"])
def test_budgets_that_are_none(alone: Path, budget: str) -> None:
    assert run(alone, "none", "--budget", budget).problem["error"] == "usage"


def test_a_ledger_elsewhere(alone: Path) -> None:
    """Its folder must be there: in a new folder no ledger would count earlier releases."""
    refused = run(alone, "out", "--ledger", alone / "ledgers" / "one")
    assert refused.problem["error"] == "budget-ledger"
    assert not (alone / "ledgers").exists()
    (alone / "ledgers").mkdir()
    assert run(alone, "out", "--ledger", alone / "ledgers" / "one").code == 0
    assert not (alone / "table.csv.privacy.sqlite").exists()
    budget = PrivacyLedger(alone / "ledgers" / "one", str((alone / "table.csv").resolve()))
    assert budget.spent() == Fraction(1)


def lkc_job(folder: Path) -> Path:
    return write_job(folder / "lkc", single_job(name="lkc", data="../table.csv"))


def lkc_run(folder: Path, out: str, *more: str | Path) -> Ran:
    return invoke("coordinator", "run", lkc_job(folder), "--out", folder / out, "--format", "json", *more)


def test_lkc_releases_of_the_table_are_listed(alone: Path) -> None:
    """Releases are listed where there is a ledger, or one is named; a run that ends without a release is not."""
    table = str((alone / "table.csv").resolve())
    budget, named = (
        PrivacyLedger(alone / "table.csv.privacy.sqlite", table),
        PrivacyLedger(alone / "named", table),
    )
    assert lkc_run(alone, "one").code == 0
    assert not budget.exists
    assert lkc_run(alone, "two", "--ledger", alone / "named").code == 0
    assert [(e.kind, e.job, e.charged) for e in named.entries()] == [("lkc", "lkc", 0)]
    assert run(alone, "dp").code == 0
    assert lkc_run(alone, "three").code == 0
    assert lkc_run(alone, "three").problem["error"] == "output-exists"
    assert [(e.kind, e.state) for e in budget.entries()] == [("dp", "released"), ("lkc", "released")]
    assert budget.spent() == 1
    write_table(alone, n=1)
    assert lkc_run(alone, "none").code != 0
    assert len(budget.entries()) == 2


def test_a_release_that_cannot_be_listed_is_none(alone: Path) -> None:
    (alone / "table.csv.privacy.sqlite").write_bytes(b"no database" * 100)
    assert lkc_run(alone, "none").problem["error"] == "budget-ledger"
    assert not (alone / "none").exists()


@pytest.mark.parametrize("ledger", [None, "one"])
def test_a_link_to_the_table_is_no_new_budget(alone: Path, ledger: str | None) -> None:
    """One data set, whatever path it is reached by."""
    (alone / "elsewhere").mkdir()
    (alone / "elsewhere" / "link.csv").symlink_to(alone / "table.csv")
    more = ["--budget", "3/2", *(["--ledger", alone / ledger] if ledger else [])]
    write_job(alone / "linked", dp_single(name="other", data="../elsewhere/link.csv"))
    assert run(alone, "first", *more).code == 0
    failed = invoke(
        "coordinator", "run", alone / "linked" / "job.yaml", "--out", alone / "x", "--format", "json", *more
    )
    assert (failed.code, failed.problem["error"]) == (Exit.BUDGET, "budget-exceeded")
    assert listing(alone / "elsewhere") == ["link.csv"]


def test_a_table_that_cannot_be_read_costs_nothing(alone: Path) -> None:
    (alone / "table.csv").write_text("patient,job\n1,Lawyer\n")
    assert run(alone, "none").problem["error"] == "data-missing-column"
    assert not (alone / "none").exists()
    budget = PrivacyLedger(alone / "table.csv.privacy.sqlite", str((alone / "table.csv").resolve()))
    assert budget.spent() == 0


def test_what_validate_says(alone: Path) -> None:
    said = invoke("coordinator", "validate", alone / "job.yaml").out
    assert "epsilon=1 specializations=2, at most " in said
    write_job(alone, dp_joint("horizontal", {"max_cells": "5"}))
    failed = invoke("coordinator", "validate", alone / "job.yaml", "--format", "json")
    assert (failed.code, failed.problem["error"]) == (Exit.USAGE, "too-many-cells")
    assert "raise max_cells to 6 or more" in failed.problem["remedy"]
