"""Jobs over tables in a real PostgreSQL server: the release of the CSV, whatever others write or cut meanwhile."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.run import run_joint
from jobs.data.coding import Coded, Coding
from jobs.data.postgres import Postgres
from jobs.errors import Exit, PartyError
from jobs.loading import load_task
from jobs.page.page import PAGE
from jobs.release.csv import REPORT, TABLE
from jobs.release.folder import OWN_PAGE
from party.owner.problems import FOLDER as PROBLEMS
from tests.support.commands import Ran, invoke
from tests.support.loan import BANK, LOAN, loan_job, loan_tables
from tests.support.network import Network, network, served
from tests.support.postgres import PASSWORD, Server, serving

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "discharges"
VARIABLE = "JOINTCUT_TEST_DSN"
QUERY = "SELECT * FROM discharges"
COLUMNS = (
    "age integer, sex char(1), postcode text, admission text, diagnosis text, treatment text, outcome text"
)
OF_A_RUN = ("job_sha256", "finished", "files", "cost", "run", "signatures", "parties")
"""Fields of a report that differ between any two runs, or any two jobs."""
OF_A_PAGE = re.compile(r"[0-9a-f]{64}|took [0-9.]+ s|[0-9-]+T[0-9:]+\+00:00")
"""Parts of a page that differ between any two runs, or any two jobs."""
OPEN_ONES = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'jointcut'"
WRONG = "wr@ng pass/word"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as made:
        made.load("discharges", COLUMNS, EXAMPLE / "discharges.csv")
        made.sql("GRANT SELECT ON discharges TO reader")
        yield made


def run(job: Path, out: Path) -> Ran:
    return invoke("coordinator", "run", job, "--out", out, "--format", "json")


def rows_of(folder: Path) -> list[str]:
    """Return the rows of a release, which stand in random order."""
    return sorted((folder / TABLE).read_text().splitlines())


def facts(folder: Path) -> dict[str, Any]:
    """Return a report without what differs between any two runs."""
    report: dict[str, Any] = json.loads((folder / REPORT).read_text())
    return {key: value for key, value in report.items() if key not in OF_A_RUN}


def written(*folders: Path) -> str:
    """Return all that stands in files below folders."""
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def assert_clean(server: Server, *texts: str, password: str = PASSWORD) -> None:
    """Assert that texts hold no connection string and no password."""
    for text in texts:
        for secret in (server.reader(password), password, *password.split(), server.folder.name):
            assert secret not in text


# ---- a single holder


@pytest.fixture
def single(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The job of one holder over the table in the server."""
    shutil.copytree(EXAMPLE / "hierarchies", tmp_path / "job" / "hierarchies")
    text = (EXAMPLE / "job.yaml").read_text()
    held = f"data: {{name: discharges, postgres: {{dsn_env: {VARIABLE}, query: {QUERY}}}}}"
    assert "data: discharges.csv" in text
    (tmp_path / "job" / "job.yaml").write_text(text.replace("data: discharges.csv", held))
    monkeypatch.setenv(VARIABLE, server.reader())
    return tmp_path / "job" / "job.yaml"


def test_the_release_is_that_of_the_csv(tmp_path: Path, server: Server, single: Path) -> None:
    held, of_csv = tmp_path / "held", tmp_path / "csv"
    ended = [run(single, held), run(EXAMPLE / "job.yaml", of_csv)]
    assert [ran.code for ran in ended] == [0, 0], ended[0].err
    assert rows_of(held) == rows_of(of_csv)
    assert facts(held) == facts(of_csv)
    for name in (PAGE, OWN_PAGE):
        page, other = ((folder / name).read_text() for folder in (held, of_csv))
        assert OF_A_PAGE.sub("", page) == OF_A_PAGE.sub("", other)
    assert invoke("coordinator", "verify", single, held).code == 0
    assert_clean(server, ended[0].out, ended[0].err, written(tmp_path))
    assert not [word for word in (VARIABLE, "SELECT", "postgres") if word in written(held)]


def test_a_server_that_does_not_run(tmp_path: Path, server: Server, single: Path) -> None:
    server.stop()
    try:
        done = run(single, tmp_path / "out")
    finally:
        server.start()
    assert done.code == Exit.DATA
    assert done.problem["error"] == "data-unreadable"
    assert "no connection to the server: No such file or directory" in done.err
    assert_clean(server, done.out, done.err)
    assert [path.name for path in tmp_path.iterdir()] == ["job"]
    assert run(single, tmp_path / "out").code == 0


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_secret_is_told_of_a_wrong_password(
    tmp_path: Path, server: Server, single: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv(VARIABLE, server.reader(WRONG))
    done = invoke("coordinator", "run", single, "--out", tmp_path / "out", "--format", form)
    assert done.code == Exit.DATA
    assert "password authentication failed" in done.err
    assert_clean(server, done.out, done.err, written(tmp_path), password=WRONG)


# ---- a party of a joint job


@pytest.fixture
def joint(tmp_path: Path, server: Server) -> Network:
    """The loan company and the bank. The loan company, with a plain column, reads its table from the server."""
    tables = loan_tables(tmp_path / "tables")
    header = tables[LOAN].read_text().splitlines()[0]
    server.load("loans", ", ".join(f'"{name}" text' for name in header.split(",")), tables[LOAN])
    server.sql("GRANT SELECT ON loans TO reader")
    net = network(tmp_path / "net", load_task(loan_job(tmp_path / "job")).bundle, tables)
    dsn = tmp_path / "dsn"
    dsn.write_text(server.reader())
    dsn.chmod(0o600)
    held = {"name": "loans", "postgres": {"dsn_file": str(dsn), "table": "loans"}}
    net.change(LOAN, lambda fields: fields.update(data=held))
    return net


def ran(net: Network, out: Path) -> Path:
    with served(net):
        run_joint(net.task, net.coordinator, out)
    return out


def parts_of(folder: Path) -> tuple[list[str], list[str]]:
    """Return the columns of the counts, and the plain column: each run deals the cells out anew in a group."""
    rows = [row.rpartition(",") for row in rows_of(folder)]
    return sorted(counted for counted, _, _ in rows), sorted(plain for _, _, plain in rows)


def states(net: Network) -> str:
    """Return all that the daemons wrote."""
    return written(*(net.root / party / "state" for party in (LOAN, BANK)))


@pytest.fixture
def before_pass_2(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Return what does a thing once, before the second pass over a table."""

    def do(thing: Callable[[], object]) -> None:
        plain, things = Postgres.collapse, [lambda: None, thing]

        def collapse(self: Postgres, coding: Coding) -> Coded:
            if things:
                things.pop(0)()
            return plain(self, coding)

        monkeypatch.setattr(Postgres, "collapse", collapse)

    return do


@pytest.mark.more
def test_a_party_reads_both_passes_from_the_server(
    tmp_path: Path,
    server: Server,
    joint: Network,
    before_pass_2: Callable[[Callable[[], object]], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Writes of others between the passes change nothing, and a daemon between jobs holds no rows."""
    before_pass_2(
        lambda: server.sql("DELETE FROM loans WHERE person < '5'", "UPDATE loans SET purpose = 'none'")
    )
    held = ran(joint, tmp_path / "held")
    assert server.sql("SELECT DISTINCT purpose FROM loans").split() == ["none"]
    csv = network(tmp_path / "csv", joint.bundle, loan_tables(tmp_path / "tables"))
    of_csv = ran(csv, tmp_path / "of csv")
    assert parts_of(held) == parts_of(of_csv)
    assert facts(held) == facts(of_csv)
    assert server.sql("SELECT pg_sleep(0.05)", OPEN_ONES).strip() == "0"
    assert_clean(server, states(joint), written(held), caplog.text)
    assert "postgres" not in written(held)


@pytest.mark.more
def test_a_server_that_restarts_between_the_passes(
    tmp_path: Path,
    server: Server,
    joint: Network,
    before_pass_2: Callable[[Callable[[], object]], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    def restart() -> None:
        server.stop()
        server.start()

    before_pass_2(restart)
    with pytest.raises(PartyError) as caught:
        ran(joint, tmp_path / "out")
    problem = caught.value.problem
    assert (problem.error_id, problem.party, problem.private) == ("data-unreadable", LOAN, "")
    assert "the connection to the server was lost" in written(joint.root / LOAN / "state" / PROBLEMS)
    assert_clean(server, states(joint), str(problem), caplog.text)
    assert not (tmp_path / "out").exists()
    assert joint.releases(LOAN) == joint.releases(BANK) == []


def test_a_party_with_a_wrong_password_tells_nobody(
    tmp_path: Path, server: Server, joint: Network, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "dsn").write_text(server.reader(WRONG))
    with pytest.raises(PartyError) as caught:
        ran(joint, tmp_path / "out")
    problem = caught.value.problem
    assert (problem.error_id, problem.party, problem.private) == ("data-unreadable", LOAN, "")
    assert "password authentication failed" in written(joint.root / LOAN / "state" / PROBLEMS)
    assert_clean(server, states(joint), str(problem), caplog.text, password=WRONG)
    assert not (tmp_path / "out").exists()


def test_party_check_reads_the_server(joint: Network, server: Server) -> None:
    done = invoke("party", "check", "--config", joint.config_path(LOAN))
    assert done.code == 0, done.err
    assert "purpose" in done.out
    assert_clean(server, done.out, done.err)
