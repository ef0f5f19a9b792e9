"""Details of a failed job for the owner alone: kept, bounded, and where messages say they are."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path

import pytest

from coordinator.run import conduct
from jobs.data.sources import Source
from jobs.errors import JobFailed, PartyError, Problem
from party.owner.config import PartyConfig
from party.owner.problems import FOLDER, MOST, FailedJob, ProblemBook, note_problem, tell_owner
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.duplex import run
from tests.support.joint import sample_rows
from tests.support.network import Network, sample_network, serving
from tests.support.samples import COLUMNS, PARTIES

SECRET = "Zebra-4711"
B = PARTIES[1]
PROBLEM = Problem(
    "data-unknown-value", "column job has a value", "b", "load", "job", private=f"row 3: {SECRET}"
)


def test_a_problem_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    path = ProblemBook(tmp_path).keep(PROBLEM, FailedJob("flu", "ab" * 32, "cd" * 16, "coordinator"))
    assert path == tmp_path / FOLDER / f"flu-{'cd' * 6}.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    fields = json.loads(path.read_text())
    assert fields["private"] == f"row 3: {SECRET}"
    assert (fields["job"], fields["run"], fields["coordinator"]) == ("flu", "cd" * 16, "coordinator")
    assert (fields["error"], fields["remedy"]) == (PROBLEM.error_id, PROBLEM.advice(to_owner=True))


def test_a_bug_of_another_party_has_no_place_here(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for hops, lines in ((0, 3), (1, 1)):
        caplog.clear()
        problem = Problem("bug", "unexpected KeyError", "b", hops=hops)
        with pytest.raises(JobFailed) as caught:
            raise JobFailed(problem)
        note_problem(problem, caught.value, None, ProblemBook(tmp_path))
        assert len(caplog.records) == lines


def test_only_the_last_problems_are_kept(tmp_path: Path) -> None:
    book = ProblemBook(tmp_path)
    for i in range(MOST + 3):
        book.keep(PROBLEM, FailedJob("flu", run=f"{i:032x}"[::-1]))
    names = sorted(path.name for path in (tmp_path / FOLDER).iterdir())
    assert len(names) == MOST
    assert f"flu-{f'{0:032x}'[::-1][:12]}.json" not in names
    assert [fields["run"] for _, fields in book.entries(2)] == [
        f"{i:032x}"[::-1] for i in (MOST + 1, MOST + 2)
    ]


def test_a_new_problem_stays_when_the_clock_was_set_back(tmp_path: Path) -> None:
    book = ProblemBook(tmp_path)
    for i in range(MOST + 1):
        path = book.keep(PROBLEM, FailedJob("flu", run=f"{i:032x}"[::-1]))
        os.utime(path, (later := 4e9 + i, later))
    newest = book.keep(PROBLEM, FailedJob("flu", run="f" * 32))
    names = {path.name for path in (tmp_path / FOLDER).iterdir()}
    assert newest.name in names
    assert len(names) == MOST


def test_a_terminal_is_told_at_once_and_nothing_else_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tell_owner([SECRET])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    tell_owner([SECRET])
    assert capsys.readouterr().err == f"{SECRET}\n"


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def failed(net: Network, out: Path) -> Problem:
    async def scenario() -> Problem:
        async with serving(net):
            with pytest.raises(PartyError) as caught:
                await conduct(net.task, net.coordinator, out)
            return caught.value.problem

    return run(scenario())


def told(net: Network, party: str = B) -> str:
    ran = invoke("party", "problems", "--config", net.config_path(party))
    assert ran.code == 0, ran.err
    return ran.out


def source_of(net: Network) -> Source:
    config: PartyConfig = net.config(B)
    return config.source


def test_a_bad_value_is_shown_to_the_owner_and_to_nobody_else(
    net: Network, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    rows = sample_rows(20)
    rows[2]["job"] = SECRET
    jobs.write_csv(source_of(net).path, rows, COLUMNS)
    problem = failed(net, tmp_path / "out")
    assert (problem.error_id, problem.party) == ("data-unknown-value", B)
    assert SECRET not in caplog.text + str(problem)
    (named,) = [r.getMessage() for r in caplog.records if "`party problems`" in r.getMessage()]
    (path,) = (net.config(B).state_dir / FOLDER).iterdir()
    assert str(path) in named  # what the log promises is there
    for part in (
        "data-unknown-value",
        "column job",
        f"'{SECRET}'",
        "line 4",
        "job sample",
        "asked by coordinator",
    ):
        assert part in told(net)
    assert told(net, PARTIES[0]).endswith("no problem is on record\n")


@pytest.mark.parametrize("harm", ["missing", "bad row"])
def test_a_table_that_cannot_be_read_is_named_to_its_owner(
    net: Network, tmp_path: Path, caplog: pytest.LogCaptureFixture, harm: str
) -> None:
    caplog.set_level(logging.DEBUG)
    table = source_of(net).path
    if harm == "missing":
        table.unlink()
    else:
        table.write_text(f"{','.join(COLUMNS)}\n1,{SECRET}\n")
    problem = failed(net, tmp_path / "out")
    assert problem.error_id == {"missing": "file-missing", "bad row": "data-unreadable"}[harm]
    assert str(table) not in str(problem)
    assert str(table) in told(net)
    assert SECRET not in caplog.text
    if harm == "missing":  # no data: the log says it outright
        assert f"[{table}: No such file or directory]" in caplog.text
        assert "configuration of the table's owner" in problem.advice(to_owner=False)
    else:
        assert "2 values on line 2" in told(net)
        assert "`party problems`" in problem.advice(to_owner=False)


def test_what_cannot_be_written_is_named_with_its_path(
    net: Network, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = net.config(B).state_dir
    state.mkdir(parents=True, exist_ok=True)
    (state / "releases").write_text("a file where a folder should be")
    problem = failed(net, tmp_path / "out")
    assert (problem.error_id, problem.party) == ("io-failed", B)
    assert str(state) not in str(problem)
    assert f"[{state / 'releases'}: " in caplog.text
    assert str(state / "releases") in told(net)


def test_a_ledger_that_cannot_be_used_is_named_with_its_cause(
    net: Network, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = net.config(B).state_dir
    state.mkdir(parents=True)
    (state / "privacy.sqlite").write_bytes(b"no database" * 100)
    problem = failed(net, tmp_path / "out")
    assert (problem.error_id, problem.party) == ("budget-ledger", B)
    assert f"[{state / 'privacy.sqlite'}: file is not a database]" in caplog.text
    assert "restore the ledger" in told(net)


def test_a_full_disk_for_the_problem_itself_is_said(
    net: Network, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = net.config(B).state_dir
    state.mkdir(parents=True)
    (state / FOLDER).write_text("a file where a folder should be")
    source_of(net).path.unlink()
    assert failed(net, tmp_path / "out").error_id == "file-missing"
    assert "could not be kept" in caplog.text
