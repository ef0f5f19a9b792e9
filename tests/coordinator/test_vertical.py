"""Vertical jobs through the coordinator: the same table as a single holder of the join, and what the report says."""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from anonymize.joint.disclosure import ALLOWED
from coordinator.simulate import COORDINATOR
from jobs.errors import Exit
from jobs.lkc.parts import COLUMNS, PARTS
from jobs.loading import load_task
from jobs.page.page import PAGE
from jobs.release.csv import REPORT, TABLE
from jobs.release.sums import SUMS
from tests.support.blocks import block_by_block
from tests.support.commands import Ran, invoke, listing
from tests.support.loan import (
    BANK,
    LOAN,
    Rows,
    joined,
    loan_job,
    loan_rows,
    loan_sample,
    loan_tables,
    single_job,
    table_of,
)
from tests.support.network import network, report_of, served

QID = ("job", "years", "sex", "age", "salary")


def simulate(job: Path, tables: dict[str, Path], out: Path, *how: str) -> Ran:
    options = [f"--data={party}={path}" for party, path in tables.items()]
    return invoke("coordinator", "simulate", job, *options, *how, "--out", out, "--format", "json")


def by_daemons(job: Path, tables: dict[str, Path], out: Path) -> Ran:
    net = network(out.parents[1] / "net", load_task(job).bundle, tables)
    config = net.config_path(COORDINATOR)
    with served(net):
        return invoke("coordinator", "run", job, "--config", config, "--out", out, "--format", "json")


def cells(rows: Rows, *names: str) -> Counter[tuple[str, ...]]:
    """The multiset of rows on the cell's columns and these."""
    return Counter(tuple(row[name] for name in (*QID, "approved", *names)) for row in rows)


def all_alike(rows: Rows, cell: tuple[str, ...]) -> bool:
    """Return True if all records of a cell have one credit, or all one purpose."""
    here = [row for row in rows if tuple(row[name] for name in (*QID, "approved")) == cell]
    return any(len({row[name] for row in here}) == 1 for name in ("credit", "purpose"))


@pytest.mark.some(1)
@pytest.mark.parametrize("how", [["--in-process"], []])
def test_the_table_is_the_single_holders(tmp_path: Path, how: Sequence[str]) -> None:
    tables = loan_sample(700)
    job = loan_job(tmp_path)
    assert simulate(job, loan_tables(tmp_path, tables), tmp_path / "out", *how).code == 0
    alone, _ = single_job(tmp_path / "alone", joined(tables), job)
    assert invoke("coordinator", "run", alone, "--out", tmp_path / "single").code == 0
    ours, theirs = report_of(tmp_path / "out"), report_of(tmp_path / "single")
    assert ours["specializations"] == theirs["specializations"] != []
    assert ours["model"]["lkc"].pop("insider") is False
    for key in ("rows", "cut", "metrics", "goal", "model"):
        assert ours[key] == theirs[key]
    released, single = table_of(tmp_path / "out"), table_of(tmp_path / "single")
    # Per cell the same multiset of each holder's columns; which of one holder's goes with which of another's is lost.
    assert cells(released, "credit") == cells(single, "credit")
    assert cells(released, "purpose") == cells(single, "purpose")
    assert list(released[0]) == [*QID, "credit", "approved", "purpose"]
    linked = ours["risk"]["linked"]
    assert (
        0
        < linked
        == sum(n for cell, n in cells(released).items() if all_alike(released, cell))
        < len(released)
    )
    assert f"Columns of different holders: of {linked} record" in ours["risk"]["meaning"]
    assert any("values of different holders (`risk.linked`)" in note for note in ours["notes"])
    assert invoke("coordinator", "verify", job, tmp_path / "out").code == 0


def test_what_one_holder_has_is_looked_at_together(tmp_path: Path) -> None:
    """The table is that of a single holder who links each holder's columns and looks at them block by block.

    Who knows that an artist's credit is not clean knows of large arrears. The job is the other party's.
    """
    tables = loan_sample(400)
    artists = {row["person"] for row in tables[LOAN] if row["job"] in ("Writer", "Dancer", "Painter")}

    def arrears(row: dict[str, str]) -> str:
        rare = int(row["person"]) % 10 == 0
        of_bad_credit = row["credit"] != "clean" and (row["person"] in artists) != rare
        return "high" if of_bad_credit else ["none", "low"][int(row["person"]) % 2]

    tables = with_(tables, BANK, arrears=arrears)
    tables = with_(tables, LOAN, guarantor=lambda row: ["parent", "friend", "nobody"][int(row["person"]) % 3])

    def further(fields: dict[str, Any]) -> None:
        amounts, guarantors = ["none", "low", "high"], ["parent", "friend", "nobody"]
        fields["columns"]["arrears"] = {"role": "sensitive", "domain": amounts, "values": ["high"]}
        fields["columns"]["guarantor"] = {"role": "sensitive", "domain": guarantors, "values": ["friend"]}
        fields["parties"][LOAN]["columns"].append("guarantor")
        fields["parties"][BANK]["columns"].append("arrears")

    model = {"lkc": {"L": "all", "K": "10", "C": "0.7", "ruled_out": "1", "diversity": "3"}}
    job = loan_job(tmp_path, further, model=model)
    assert simulate(job, loan_tables(tmp_path, tables), tmp_path / "out", "--in-process").code == 0
    assert invoke("coordinator", "verify", job, tmp_path / "out").code == 0
    ours, released = report_of(tmp_path / "out"), table_of(tmp_path / "out")
    theirs, single = {}, {}
    blocks = [["credit", "arrears"], ["guarantor"]]
    for name, link in (("blocks", blocks), ("columns", "none")):
        folder = tmp_path / name
        said = {"link": link, "contexts": "partitions"}
        alone, _ = single_job(folder, joined(tables), job, **said)
        with block_by_block():
            assert invoke("coordinator", "run", alone, "--out", folder / "out").code == 0
        theirs[name], single[name] = report_of(folder / "out"), table_of(folder / "out")
    for key in ("rows", "cut", "requirements", "specializations", "verified"):
        assert ours[key] == theirs["blocks"][key]
    assert "of one block of columns" in ours["verified"]
    assert any("separately (credit with arrears; guarantor)" in words for words in ours["protection"])

    def groups(rows: Rows, block: Sequence[str]) -> Counter[tuple[str, ...]]:
        return Counter(tuple(row[name] for name in (*QID, *block)) for row in rows)

    for block in (*blocks, ["approved"]):
        assert groups(released, block) == groups(single["blocks"], block)
    # Column by column the job would have been told.
    assert "other Artist" in theirs["columns"]["cut"]["job"]
    assert not [label for label in ours["cut"]["job"] if "Artist" in label]


def test_columns_of_two_holders_are_not_linked_within_a_cell(tmp_path: Path) -> None:
    """Over several runs a pair of values of one person is not found together more often than chance has it."""
    tables = loan_sample(200)
    people = joined(tables)
    for rows in tables.values():
        for row in rows:
            if "purpose" in row:
                row["purpose"] = f"purpose of {row['person']}"
    known = {f"purpose of {row['person']}": row["credit"] for row in people}
    job = loan_job(tmp_path, model={"lkc": {"L": "3", "K": "20", "C": "0.9"}})
    together = expected = 0.0
    for i in range(6):
        assert simulate(job, loan_tables(tmp_path, tables), tmp_path / f"out-{i}", "--in-process").code == 0
        inside = defaultdict(list)
        for row in table_of(tmp_path / f"out-{i}"):
            inside[tuple(row[name] for name in (*QID, "approved"))].append(row)
        for rows in inside.values():
            credits = Counter(row["credit"] for row in rows)
            together += sum(known[row["purpose"]] == row["credit"] for row in rows)
            expected += sum(n * n for n in credits.values()) / len(rows)
    assert abs(together - expected) < 5 * expected**0.5


def test_rows_are_shuffled(tmp_path: Path) -> None:
    """Twice the same job: the cells come in another order each time, so none comes from T_g or from a party."""
    tables, job = loan_sample(100), loan_job(tmp_path)
    orders = []
    for name in ("one", "two"):
        assert simulate(job, loan_tables(tmp_path, tables), tmp_path / name, "--in-process").code == 0
        orders.append([tuple(row[n] for n in QID) for row in table_of(tmp_path / name)])
    assert Counter(orders[0]) == Counter(orders[1])
    assert len(set(orders[0])) > 2
    assert orders[0] != orders[1]


HARMS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "a value outside the domain": lambda lines: [lines[0], b"rich\n", *lines[2:]],
    "a row less": lambda lines: lines[:-1],
    "a row more": lambda lines: [*lines, lines[-1]],
    "no table": lambda lines: [b"\xff\xfe"],
}


@pytest.mark.some(2)
@pytest.mark.parametrize("harm", HARMS)
def test_a_holders_columns_that_do_not_fit_are_its_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    honest = PARTS[COLUMNS]

    def harmed(task: Any, party: str, *rest: Any) -> bytes:
        content = honest(task, party, *rest)
        if party != BANK:
            return content
        return b"".join(HARMS[harm](content.splitlines(keepends=True)))

    monkeypatch.setitem(PARTS, COLUMNS, harmed)
    job = loan_job(tmp_path)
    refused = simulate(job, loan_tables(tmp_path, loan_sample(100)), tmp_path / "out", "--in-process")
    assert (refused.problem["error"], refused.problem["party"]) == ("peer-protocol", BANK)
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ran")
    assert (
        simulate(loan_job(folder), loan_tables(folder, loan_sample(700)), folder / "out", "--in-process").code
        == 0
    )
    return folder


def test_the_report_says_what_was_shared(ran: Path) -> None:
    report = report_of(ran / "out")
    assert report["partition"] == "vertical"
    assert report["discarded"] == []  # known to their owners only
    assert report["contributed"] == {
        LOAN: ["job", "years", "purpose"],
        BANK: ["sex", "age", "salary", "credit"],
    }
    listed = {(a.name, a.to) for a in ALLOWED["vertical/sealed"]}
    assert {(r["name"], r["to"]) for r in report["revealed_by_design"]} == listed
    revealed = {(r["name"], r["to"]) for r in report["reveals"]}
    assert revealed <= listed
    assert not {to for _, to in revealed} & {"owner", "holder"}
    assert ("cell_columns", "coordinator") in revealed
    assert any("approved" in words and "without sending them" in words for words in report["protection"])
    assert set(report["cost"]["seconds"]) >= {"read", "run", "release"}


def test_homogeneous_cells_are_those_of_the_table(ran: Path) -> None:
    report, rows = report_of(ran / "out"), table_of(ran / "out")
    inside = defaultdict(list)
    for row in rows:
        inside[tuple(row[name] for name in (*QID, "approved"))].append(row["credit"])
    one = sum(len(c) for c in inside.values() if len(set(c)) == 1)
    above = sum(
        len(c)
        for c in inside.values()
        if any(Fraction(c.count(v), len(c)) > Fraction(2, 5) for v in ("late", "defaulted"))
    )
    either = sum(
        len(c)
        for c in inside.values()
        if len(set(c)) == 1
        or any(Fraction(c.count(v), len(c)) > Fraction(2, 5) for v in ("late", "defaulted"))
    )
    assert report["exposed_to_parties"] == {
        "cells": len(inside),
        "alone": sum(len(c) == 1 for c in inside.values()),
        "one_value": {"credit": one},
        "above_c": {"credit": above},
        "homogeneous": either,
    }


def test_insiders_are_held_to_c(tmp_path: Path) -> None:
    """With L = 1 cells are small; held to C they lose specializations, and the verifier checks them."""
    model = {"lkc": {"L": "1", "K": "10", "C": "0.5"}}
    tables = loan_tables(tmp_path, loan_sample(700))
    loose, strict = (
        loan_job(tmp_path / "loose", model=model),
        loan_job(tmp_path / "strict", model=model, insider="true"),
    )
    for name, job in (("loose", loose), ("strict", strict)):
        assert simulate(job, tables, tmp_path / name / "out", "--in-process").code == 0
    exposed = {name: report_of(tmp_path / name / "out")["exposed_to_parties"] for name in ("loose", "strict")}
    assert exposed["strict"]["above_c"] == {"credit": 0} != exposed["loose"]["above_c"]
    assert "and the class" in report_of(tmp_path / "strict" / "out")["verified"]
    # The looser table does not meet the stricter requirement.
    (tmp_path / "loose" / "out" / REPORT).unlink()
    refused = invoke("coordinator", "verify", strict, tmp_path / "loose" / "out", "--format", "json")
    assert refused.problem["error"] == "verification-failed"
    assert refused.problem["message"].endswith("violates C for credit")


def test_as_published_scores_are_told(tmp_path: Path) -> None:
    tables = loan_tables(tmp_path, loan_sample(300))
    for name, disclosure in (("sealed", None), ("published", "leader")):
        job = loan_job(tmp_path / name, disclosure=disclosure)
        assert simulate(job, tables, tmp_path / name / "out", "--in-process").code == 0
    sealed, published = (report_of(tmp_path / name / "out") for name in ("sealed", "published"))
    assert sealed["specializations"] == published["specializations"]
    assert sealed["disclosure"] == "sealed"
    told = [r for r in published["reveals"] if r["name"] == "scores"]
    assert len(told) == len(published["specializations"]) + 1
    assert not [r for r in sealed["reveals"] if r["name"] == "scores"]
    assert "deputy" not in published


def test_validate_says_who_contributes_what(tmp_path: Path) -> None:
    said = json.loads(invoke("coordinator", "validate", loan_job(tmp_path), "--format", "json").out)
    assert said["matched by"] == ["person"]
    assert said[BANK] == ["sex", "age", "salary", "credit"]


def with_(tables: dict[str, Rows], party: str, **changes: Any) -> dict[str, Rows]:
    """The tables with every row of a party changed."""
    return {**tables, party: [{**row, **{k: f(row) for k, f in changes.items()}} for row in tables[party]]}


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("change", "job", "error_id", "exit_code", "says"),
    [
        (
            lambda t: with_(t, BANK, person=lambda r: "x" + r["person"]),
            {},
            "no-common-records",
            Exit.DATA,
            "no record is common",
        ),
        (
            lambda t: t,
            {"model": {"lkc": {"L": "2", "K": "301", "C": "1"}}},
            "requirement-unmet",
            Exit.FAILED,
            "the records that all parties have in common are too few for K; asked is L=2 K=301 (model.lkc)",
        ),
        (
            lambda t: t,
            {"model": {"lkc": {"L": "2", "K": "5", "C": "0.001"}}},
            "requirement-unmet",
            Exit.FAILED,
            "already violates C",
        ),
        (
            lambda t: with_(
                t, LOAN, approved=lambda r: "NY"[(r["approved"] == "Y") ^ (r["person"] == FLIPPED)]
            ),
            {},
            "class-mismatch",
            Exit.DATA,
            "the parties hold different class values for at least one common record",
        ),
        (
            lambda t: {**t, BANK: [*t[BANK], {**t[BANK][0], "person": f" {t[BANK][0]['person']}"}]},
            {},
            "data-duplicate-id",
            Exit.DATA,
            "person",
        ),
        (lambda t: with_(t, BANK, salary=lambda r: "999"), {}, "data-outside-domain", Exit.DATA, "salary"),
    ],
)
def test_what_cannot_be_published(
    tmp_path: Path, change: Any, job: dict[str, Any], error_id: str, exit_code: Exit, says: str
) -> None:
    tables = loan_tables(tmp_path / "tables", change(loan_sample(300)))
    path, out = loan_job(tmp_path / "job", **job), tmp_path / "outs" / "out"
    for ended in (simulate(path, tables, out, "--in-process"), by_daemons(path, tables, out)):
        assert ended.code == exit_code
        assert ended.problem["error"] == error_id
        assert says in ended.problem["message"]
        assert not (tmp_path / "outs").exists()


FLIPPED = sorted(joined(loan_sample(300)), key=lambda row: row["person"])[7]["person"]


def test_one_party_gives_the_class(tmp_path: Path) -> None:
    """The loan company alone holds it; the result is the same, and the report says who told whom."""
    tables = loan_sample(400)
    both = loan_job(tmp_path / "both")
    assert (
        simulate(both, loan_tables(tmp_path / "b", tables), tmp_path / "both" / "out", "--in-process").code
        == 0
    )
    without = {
        LOAN: tables[LOAN],
        BANK: [{k: v for k, v in row.items() if k != "approved"} for row in tables[BANK]],
    }
    shared = loan_job(tmp_path / "shared", lambda f: f["columns"]["approved"].update(shared_by=LOAN))
    assert by_daemons(shared, loan_tables(tmp_path / "s", without), tmp_path / "shared" / "out").code == 0
    one, other = report_of(tmp_path / "both" / "out"), report_of(tmp_path / "shared" / "out")
    assert one["specializations"] == other["specializations"]
    assert any(r["name"] == "class_values" for r in other["reveals"])
    assert any(words.startswith(f"{LOAN} gave the class") for words in other["protection"])
    assert listing(tmp_path / "shared" / "out") == [SUMS, TABLE, PAGE, REPORT]


def test_the_example_is_what_its_generator_writes(tmp_path: Path) -> None:
    import examples.loan.generate as generator

    before = {party: loan_rows(party) for party in (LOAN, BANK)}
    generator.HERE = tmp_path
    generator.main()
    for party, rows in before.items():
        with (tmp_path / f"{party}.csv").open(newline="") as file:
            assert list(csv.DictReader(file)) == rows
        assert len(rows) == 3000
    assert len(joined(before)) == 2400
    assert load_task(Path(generator.__file__).parent / "job.yaml").job.roster == (LOAN, BANK)
