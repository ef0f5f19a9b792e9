"""Jobs of tables in PostgreSQL, by the command lines and with daemons: the same release, and the password nowhere."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

from coordinator.run import run_joint
from coordinator.simulate import COORDINATOR, parties_on_loopback
from jobs.data.coding import Coded, Coding
from jobs.data.postgres import Postgres
from jobs.data.sources import Csv, Source
from jobs.loading import load_task
from jobs.release_csv import TABLE
from tests.support.commands import invoke
from tests.support.databases import DSN_ENV, PASSWORD, Database
from tests.support.example import EXAMPLE, example_tables
from tests.support.loan import BANK, LOAN, loan_job, loan_sample, loan_tables, table_of
from tests.support.network import Network, network, served

ROOT = EXAMPLE.parent
SECRETS = (PASSWORD.encode(), quote(PASSWORD, safe="").encode())


def rows(path: Path) -> Counter[tuple[str, ...]]:
    with path.open(newline="") as file:
        return Counter(map(tuple, csv.reader(file)))


def discharges(folder: Path, **data: str) -> Path:
    """The example's job with its table in the database."""
    shutil.copytree(ROOT / "discharges" / "hierarchies", folder / "hierarchies")
    fields = yaml.load((ROOT / "discharges" / "job.yaml").read_text(), Loader=yaml.BaseLoader)  # noqa: S506
    (folder / "job.yaml").write_text(yaml.safe_dump({**fields, "data": {"postgres": data}}, sort_keys=False))
    return folder / "job.yaml"


def everything(*folders: Path) -> bytes:
    """All bytes of all files, with their names."""
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    return b"\n".join(str(path).encode() + path.read_bytes() for path in files)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's state folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_job_of_one_holder_comes_to_the_table_that_its_csv_comes_to(
    tmp_path: Path, database: Database, state: Path
) -> None:
    database.load(ROOT / "discharges" / "discharges.csv", age="int")
    job = discharges(tmp_path, dsn_env=DSN_ENV, query="SELECT * FROM patients")
    done = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    expected = invoke("coordinator", "run", ROOT / "discharges" / "job.yaml", "--out", tmp_path / "csv")
    assert expected.code == 0
    assert rows(tmp_path / "out" / TABLE) == rows(tmp_path / "csv" / TABLE)
    assert invoke("coordinator", "verify", job, tmp_path / "out").code == 0


def test_a_ledger_of_one_holder_is_in_the_state_folder(
    tmp_path: Path, database: Database, state: Path
) -> None:
    database.load(ROOT / "discharges" / "discharges.csv")
    fields = yaml.load((ROOT / "discharges" / "synthetic.yaml").read_text(), Loader=yaml.BaseLoader)  # noqa: S506
    data = {"postgres": {"dsn_env": DSN_ENV, "table": "public.patients"}}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump({**fields, "data": data}, sort_keys=False))
    shutil.copytree(ROOT / "discharges" / "hierarchies", tmp_path / "hierarchies")
    done = invoke("coordinator", "run", tmp_path / "job.yaml", "--out", tmp_path / "out", "--format", "json")
    assert done.code == 0, done.err
    assert (state / "jointcut" / "privacy.sqlite").is_file()
    budget = invoke("coordinator", "budget", tmp_path / "job.yaml", "--format", "json")
    assert len(json.loads(budget.out)["releases"]) == 1
    written = everything(tmp_path) + (done.out + done.err + budget.out + budget.err).encode()
    assert not [secret for secret in SECRETS if secret in written]


def test_parties_with_a_database_and_with_files_make_one_table(tmp_path: Path, database: Database) -> None:
    tables = example_tables()
    database.load(tables["hospital-a"])
    sources: dict[str, Source] = {name: Csv(path) for name, path in tables.items()}
    sources["hospital-a"] = Postgres(DSN_ENV, table="public.patients")
    task = load_task(EXAMPLE / "job.yaml")
    with parties_on_loopback(task, sources) as config:
        run_joint(task, config, tmp_path / "out")
        laid_out = config.peers["hospital-a"].certificate.parents[2]
        written = everything(tmp_path, laid_out)
        own = laid_out / "hospital-a" / "config.yaml"
        checked = invoke("party", "check", "--offline", "--config", own, "--job", EXAMPLE / "job.yaml")
        budget = invoke("party", "budget", "--config", own)
    assert (checked.code, budget.code) == (0, 0)
    assert b"privacy.sqlite" in written
    said = (checked.out + checked.err + budget.out + budget.err).encode()
    assert not [secret for secret in SECRETS if secret in written + said]
    alone = invoke("coordinator", "simulate", EXAMPLE / "job.yaml", "--in-process", "--out", tmp_path / "csv",
                   *(word for name, path in tables.items() for word in ("--data", f"{name}={path}")))  # fmt: skip
    assert alone.code == 0, alone.err
    assert rows(tmp_path / "out" / TABLE) == rows(tmp_path / "csv" / TABLE)


def loan_site(folder: Path, database: Database) -> tuple[Path, Network]:
    """The loan company has its table in the database and publishes a plain column of it, so it is read twice."""
    tables = loan_tables(folder / "tables", loan_sample(100))
    database.load(tables[LOAN])
    job = loan_job(folder / "job", model={"lkc": {"L": "2", "K": "10", "C": "0.9"}})
    net = network(folder / "net", load_task(job).bundle, tables)
    data = {"postgres": {"dsn_env": DSN_ENV, "table": "public.patients"}}
    net.change(LOAN, lambda fields: fields.update(data=data))
    return job, net


def between_passes(monkeypatch: pytest.MonkeyPatch, fault: Callable[[], object]) -> None:
    """Let something happen as soon as the table was read for the first time."""
    collapse, passes = Postgres.collapse, iter([fault])

    def and_then(self: Postgres, coding: Coding) -> Coded:
        found = collapse(self, coding)
        next(passes, lambda: None)()
        return found

    monkeypatch.setattr(Postgres, "collapse", and_then)


def test_a_table_that_changes_during_a_joint_job_is_refused(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its owner is told of which table; the others that it was the owner's, and nobody has a file."""
    job, net = loan_site(tmp_path, database)
    person = database.run("SELECT person FROM patients ORDER BY 1 LIMIT 1")
    change = f"UPDATE patients SET years = '61' WHERE person = '{person}'"  # noqa: S608
    between_passes(monkeypatch, lambda: database.run(change))
    config = net.config_path(COORDINATOR)
    with served(net):
        done = invoke(
            "coordinator", "run", job, "--config", config, "--out", tmp_path / "out", "--format", "json"
        )
    assert (done.code, done.problem["error"], done.problem["party"]) == (7, "data-unreadable", LOAN)
    assert done.problem["message"] == "the table changed while it was read"
    identity = Postgres(DSN_ENV, table="public.patients").identity
    problems = {
        name: invoke("party", "problems", "--config", net.config_path(name)).out for name in net.roster
    }
    assert problems[LOAN].count("the table changed while it was read") == 1
    assert identity in problems[LOAN]
    assert problems[BANK].endswith("no problem is on record\n")
    assert identity not in done.out + done.err + caplog.text
    assert not (tmp_path / "out").exists()
    assert [net.releases(name) for name in net.roster] == [[], []]


def test_a_server_that_restarts_during_a_joint_job_is_connected_to_anew(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, net = loan_site(tmp_path, database)
    restarts: list[None] = []
    between_passes(monkeypatch, lambda: restarts.append(database.server.restart()))
    with served(net):
        run_joint(load_task(job), net.coordinator, tmp_path / "out")
    assert len(restarts) == 1
    words = [word for name in (LOAN, BANK) for word in ("--data", f"{name}={tmp_path}/tables/{name}.csv")]
    alone = invoke("coordinator", "simulate", job, "--in-process", "--out", tmp_path / "csv", *words)
    assert alone.code == 0, alone.err
    found, expected = (
        Counter((*(row[name] for name in row if name != "credit"),) for row in table_of(tmp_path / made))
        for made in ("out", "csv")  # `credit` is the bank's, which sends its own in another order each time
    )
    assert found == expected


@pytest.mark.parametrize("fault", ["wrong password", "no address", "no table", "wrong type"])
def test_a_fault_is_one_error_and_leaves_nothing(
    tmp_path: Path, database: Database, state: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    database.load(ROOT / "discharges" / "discharges.csv")
    if fault == "wrong password":
        monkeypatch.setenv(DSN_ENV, database.dsn(password="hush"))
    if fault == "no address":
        monkeypatch.delenv(DSN_ENV)
    if fault == "wrong type":
        database.run("ALTER TABLE patients ALTER age TYPE int[] USING ARRAY[age::int]")
    table = "public.others" if fault == "no table" else "public.patients"
    job = discharges(tmp_path, dsn_env=DSN_ENV, table=table)
    done = invoke("coordinator", "run", job, "--out", tmp_path / "out", "--format", "json")
    unreachable = fault in ("wrong password", "no address")
    assert done.problem["error"] == ("data-unreachable" if unreachable else "data-unreadable")
    assert done.code == 7
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hierarchies", "job.yaml"]
    assert "hush" not in done.out + done.err
    assert PASSWORD not in done.out + done.err


@pytest.mark.parametrize(
    "data",
    [
        {"dsn_env": DSN_ENV},
        {"dsn_env": DSN_ENV, "query": "SELECT 1", "table": "a.b"},
        {"dsn_env": "postgresql://u:hush@h/d", "table": "a.b"},
        {"dsn_env": DSN_ENV, "table": "patients"},
        {"dsn_env": DSN_ENV, "dsn": "x", "table": "a.b"},
    ],
)
def test_a_table_is_named_one_way_and_its_address_nowhere(tmp_path: Path, data: dict[str, str]) -> None:
    done = invoke("coordinator", "validate", discharges(tmp_path, **data))
    assert done.code == 2
    assert "data" in done.err
    assert "hush" not in done.out + done.err
