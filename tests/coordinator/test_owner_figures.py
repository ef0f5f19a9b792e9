"""Rows left out and ids matched: who is told how many, and who is not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from coordinator.run import conduct
from jobs.file.bundle import Bundle
from jobs.loading import load_task
from jobs.release.csv import REPORT
from jobs.release.folder import OWN
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.dp_jobs import dp_joint
from tests.support.duplex import run
from tests.support.joint import sample_rows
from tests.support.loan import BANK, LOAN, Rows, loan_job, loan_rows, loan_tables
from tests.support.network import Network, network, report_of, serving, write_job
from tests.support.samples import COLUMNS, PARTIES, joint_job, single_job
from tests.support.wards import dealt_records, joint_wards_job, movements, wards_job


def holed(rows: list[dict[str, str]], n: int) -> list[dict[str, str]]:
    """The first ``n`` rows without an age."""
    return [{**row, "age": ""} if i < n else row for i, row in enumerate(rows)]


def own_accounts(net: Network, out: Path) -> dict[str, dict[str, Any]]:
    """Run a job with daemons; what each party keeps for its owner."""

    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, out)

    run(scenario())
    files = {party: net.account(party) for party in net.roster}
    assert {path.stat().st_mode & 0o777 for path in files.values()} == {0o600}
    return {party: json.loads(path.read_text()) for party, path in files.items()}


def sites(root: Path, bundle: Bundle, lost: Mapping[str, int]) -> Network:
    root.mkdir()
    rows = sample_rows(60)
    tables = {
        name: jobs.write_csv(root / f"{name}.csv", holed(rows[i::3], lost.get(name, 0)), COLUMNS)
        for i, name in enumerate(PARTIES)
    }
    return network(root, bundle, tables)


@pytest.mark.some(1)
@pytest.mark.parametrize("deliver", ["all", "coordinator"])
def test_each_party_finds_its_own_rows_beside_the_release(tmp_path: Path, deliver: str) -> None:
    bundle = jobs.bundle_of(joint_job(deliver=deliver))
    own = own_accounts(sites(tmp_path / "net", bundle, {PARTIES[1]: 7}), tmp_path / "out")
    assert {party: account["data"] for party, account in own.items()} == {
        PARTIES[0]: {"read": 20, "dropped": {}, "used": 20},
        PARTIES[1]: {"read": 20, "dropped": {"age": {"missing": 7}}, "used": 13},
        PARTIES[2]: {"read": 20, "dropped": {}, "used": 20},
    }
    assert own[PARTIES[1]]["in_words"] == [
        "20 rows read, 7 left out, 13 used",
        "left out: 7 rows have no value (an empty cell, `?` or a text of `missing`) in age",
    ]
    assert all(account["cost"]["phases"] and account["reveals"] for account in own.values())
    report = report_of(tmp_path / "out")
    assert report["rows"] == 53
    assert "data" not in report


def test_dp_reports_hold_no_number_of_rows_but_the_owner_has_them(tmp_path: Path) -> None:
    bundle = jobs.bundle_of(dp_joint("horizontal"))
    own = own_accounts(sites(tmp_path / "net", bundle, {PARTIES[0]: 11}), tmp_path / "out")
    assert own[PARTIES[0]]["data"] == {"read": 20, "dropped": {"age": {"missing": 11}}, "used": 9}
    assert own[PARTIES[0]]["repeated"] is False
    report = report_of(tmp_path / "out")
    assert "data" not in report
    assert not {11, 9, 20} & set(numbers_of({key: report[key] for key in report.keys() - {"cost", "cut"}}))


def numbers_of(value: Any) -> list[int]:
    """Every integer in JSON."""
    if isinstance(value, dict):
        return [n for item in value.values() for n in numbers_of(item)]
    if isinstance(value, list):
        return [n for item in value for n in numbers_of(item)]
    return [value] if isinstance(value, int) else []


# ---- vertical


def other_format(tables: Mapping[str, Rows], n: int) -> dict[str, Rows]:
    """The bank writes the ids of its first ``n`` people in another way."""
    bank = [
        {**row, "person": f"CUST-{row['person']}"} if i < n else row for i, row in enumerate(tables[BANK])
    ]
    return {**tables, BANK: bank}


@pytest.fixture
def tables() -> dict[str, Rows]:
    all_rows = {party: loan_rows(party) for party in (LOAN, BANK)}
    common = {row["person"] for row in all_rows[LOAN]} & {row["person"] for row in all_rows[BANK]}
    return {party: [row for row in rows if row["person"] in common][:600] for party, rows in all_rows.items()}


def test_each_owner_is_told_how_many_of_its_ids_matched(tmp_path: Path, tables: dict[str, Rows]) -> None:
    given = other_format(tables, 400)
    ids = {party: {row["person"].strip() for row in rows} for party, rows in given.items()}
    n_common = len(ids[LOAN] & ids[BANK])
    assert 50 < n_common < 300
    bundle = load_task(loan_job(tmp_path)).bundle
    net = network(tmp_path / "net", bundle, loan_tables(tmp_path / "tables", given))
    own = own_accounts(net, tmp_path / "out")
    for party, account in own.items():
        n_ids = len(ids[party])
        assert (account["data"]["ids"], account["data"]["matched"]) == (n_ids, n_common)
        assert f"{n_common:,} of your {n_ids:,} ids matched" in account["in_words"]
        assert "NFKC" in account["in_words"][-1]
    # The coordinator is told no set sizes (docs/security.md), so the report has none.
    assert len(ids[LOAN]) not in numbers_of(report_of(tmp_path / "out")["reveals"])


@pytest.mark.some(1)
@pytest.mark.parametrize("how", [["--in-process"], []])
def test_who_simulates_is_told_of_every_table(
    tmp_path: Path, tables: dict[str, Rows], how: list[str]
) -> None:
    paths = loan_tables(tmp_path / "tables", other_format(tables, 400))
    given = [f"--data={party}={path}" for party, path in paths.items()]
    ran = invoke(
        "coordinator",
        "simulate",
        loan_job(tmp_path),
        *given,
        *how,
        "--out",
        tmp_path / "out",
        "--format",
        "json",
    )
    assert ran.code == 0, ran.err
    notes = {line["party"]: line for line in ran.lines if line["event"] == "note"}
    rows = json.loads((tmp_path / "out" / REPORT).read_text())["rows"]
    told = {party: (line["ids"], line["matched"]) for party, line in notes.items()}
    assert told == dict.fromkeys((LOAN, BANK), (600, rows))


# ---- sequences


WARD_PARTIES = ("north", "south")


@pytest.mark.some(1)
@pytest.mark.parametrize("how", [["--in-process"], []])
def test_who_simulates_is_told_what_became_of_every_partys_records(tmp_path: Path, how: list[str]) -> None:
    records = movements(60)
    tables = dealt_records(tmp_path, WARD_PARTIES, records)
    given = [f"--data={party}={path}" for party, path in tables.items()]
    job, out = write_job(tmp_path / "job", joint_wards_job()), tmp_path / "out"
    ran = invoke("coordinator", "simulate", job, *given, *how, "--out", out)
    assert ran.code == 0, ran.err
    single = write_job(tmp_path, wards_job())
    dealt_records(tmp_path, ["table"], records)
    assert invoke("coordinator", "run", single, "--out", tmp_path / "alone").code == 0
    own = {path.stem: json.loads(path.read_text()) for path in (out / OWN).glob("*.json")}
    assert set(own) == {path.stem for path in (out / OWN).glob("*.html")} == set(WARD_PARTIES)
    for party, account in own.items():
        lost = account["records"]["lost"]
        assert account["data"]["records"] == 30
        begins = f"{party}: suppressed: {lost['instances']} of {lost['of_instances']} readings, in "
        assert [line.startswith(begins) for line in (ran.out + ran.err).splitlines()].count(True) == 1
        assert (out / OWN / f"{party}.json").stat().st_mode & 0o777 == 0o600
    total = report_of(tmp_path / "alone")["lost"]
    for key in ("instances", "of_instances", "records"):
        assert sum(account["records"]["lost"][key] for account in own.values()) == total[key] > 0
    assert not (out / REPORT).read_text().count("suppressed: ")


def test_vertical_dp_reports_leave_out_the_number_of_common_records(
    tmp_path: Path, tables: dict[str, Rows]
) -> None:
    job = tmp_path / "dp.yaml"
    example = Path(__file__).resolve().parents[2] / "examples" / "loan"
    job.write_text((example / "dp.yaml").read_text().replace("hierarchies/", f"{example}/hierarchies/"))
    net = network(tmp_path / "net", load_task(job).bundle, loan_tables(tmp_path / "tables", tables))
    own = own_accounts(net, tmp_path / "out")
    n_common = len({row["person"] for row in tables[LOAN]} & {row["person"] for row in tables[BANK]})
    assert {account["data"]["matched"] for account in own.values()} == {n_common}
    report = report_of(tmp_path / "out")
    assert n_common not in numbers_of({key: report[key] for key in report.keys() - {"cost"}})


# ---- one holder


def test_a_single_holder_reads_it_on_the_console_and_in_the_report(tmp_path: Path) -> None:
    job = write_job(tmp_path, single_job())
    jobs.write_csv(tmp_path / "table.csv", holed(sample_rows(60), 13), COLUMNS)
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith("sample: 47 rows, ")
    assert lines[1:3] == [
        "60 rows read, 13 left out, 47 used",
        "left out: 13 rows have no value (an empty cell, `?` or a text of `missing`) in age",
    ]
    report = report_of(tmp_path / "out")
    assert report["data"] == {"read": 60, "dropped": {"age": {"missing": 13}}, "used": 47}


def test_a_table_without_gaps_needs_no_words(tmp_path: Path) -> None:
    job = write_job(tmp_path, single_job())
    jobs.write_csv(tmp_path / "table.csv", sample_rows(60), COLUMNS)
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert "left out" not in ran.out
    assert report_of(tmp_path / "out")["data"] == {"read": 60, "dropped": {}, "used": 60}
