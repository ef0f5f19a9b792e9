"""Real daemons that die, freeze, or are not there: one error each, nothing half-written, and the next job runs.

No test asserts how long this takes; every wait has a generous limit so that a hang is a failure.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import Exit
from tests.support.bare import bare
from tests.support.commands import invoke, listing
from tests.support.example import example_job, example_tables, long_network
from tests.support.hostile import answer
from tests.support.house import lines_of
from tests.support.network import GUARD_S, Network, Processes, command, processes, report_of
from tests.support.waiting import until

A, B, C = (f"hospital-{x}" for x in "abc")


@dataclass
class Site:
    """Three daemons, jobs that take minutes, seconds and less, on tables of ``n_rows`` in all."""

    folder: Path
    net: Network
    daemons: Processes
    long: Path
    middle: Sequence[Path]
    quick: Path
    n_rows: int
    n: int = 0

    def out(self) -> Path:
        self.n += 1
        return self.folder / "outs" / f"out-{self.n}"

    def start(self, job: Path, out: Path, *options: str) -> subprocess.Popen[str]:
        config = self.net.config_path("coordinator")
        return subprocess.Popen(
            command("run", job, "--out", out, "--config", config, "--format", "json", *options),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=bare(),
        )

    def next_job_runs(self) -> None:
        out = self.out()
        config = self.net.config_path("coordinator")
        ran = invoke("coordinator", "run", self.quick, "--out", out, "--config", config)
        assert ran.code == 0, ran.err
        assert report_of(out)["rows"] == self.n_rows

    def free(self) -> None:
        """Wait until no daemon runs a job any more: the log's last word on every start is an end."""
        for name in (A, B, C):
            until(lambda name=name: self.ended(name), f"{name} does not end")  # type: ignore[misc]

    def ended(self, name: str) -> bool:
        lines = self.daemons.log_of_this_life(name)
        return not lines or not lines[-1]["message"].startswith("started by")

    def traces(self) -> list[str]:
        """Everything that a failed job may not leave: outputs, releases, hidden folders."""
        releases = [path for name in (A, B, C) for path in self.net.releases(name)]
        return [*listing(self.folder / "outs"), *map(str, releases)]


@contextmanager
def a_site(folder: Path, disclosure: str, n_rows: int) -> Iterator[Site]:
    long, net = long_network(folder, example_tables(folder / "tables", n_rows // 3), disclosure=disclosure)
    model = {"lkc": {"L": "2", "K": "20", "C": "0.5"}}
    slow = {"lkc": {"L": "2", "K": "60", "C": "0.5"}}
    slower = {"fine": True, "disclosure": disclosure, "model": slow, "goal": "general"}
    middle = [example_job(folder / name, name=name, **slower)[0] for name in ("first", "second")]
    quick, _ = example_job(folder / "quick", disclosure=disclosure, model=model)
    (folder / "outs").mkdir()
    for name in (A, B, C, "coordinator"):  # less than the usual patience, for the sake of the suite
        net.change(name, lambda fields: fields.update(timeouts={"connect_s": 3}))
    with processes(net) as daemons:
        yield Site(folder, net, daemons, long, middle, quick, n_rows)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("site"), "leader", 5580) as made:
        yield made


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with a_site(tmp_path_factory.mktemp("sealed"), "sealed", 900) as made:
        yield made


def started(site: Site) -> subprocess.Popen[str]:
    """Start the long job; return when it is in the middle of its turns."""
    process = site.start(site.long, site.out())
    assert process.stderr is not None
    for line in process.stderr:
        if json.loads(line)["event"] == "turn":
            return process
    raise AssertionError("the job ended before its first turn")


def problem_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The error a coordinator ends with: its last line, the only one that is an error."""
    out, err = process.communicate(timeout=GUARD_S)
    assert out == ""
    lines = [json.loads(line) for line in err.splitlines()]
    (error,) = [line for line in lines if "error" in line]
    assert lines[-1] == error
    assert process.returncode == error["exit_code"]
    assert error["message"]
    assert error["remedy"]
    assert isinstance(error, dict)
    return error


WHO = [("site", A), ("site", C), ("sealed", B)]
"""Under a leader, the leader and another; sealed, one of the compute pair."""


@pytest.mark.some(1)
@pytest.mark.parametrize(("where", "victim"), WHO)
def test_a_party_that_is_killed(request: pytest.FixtureRequest, where: str, victim: str) -> None:
    site: Site = request.getfixturevalue(where)
    before = site.traces()
    process = started(site)
    site.daemons.signal(victim, signal.SIGKILL)
    error = problem_of(process)
    assert (error["error"], error["party"], error["exit_code"]) == ("peer-lost", victim, Exit.UNREACHABLE)
    assert error["phase"]
    site.daemons.restart(victim)
    site.free()
    assert site.traces() == before
    site.next_job_runs()


@pytest.mark.some(1)
@pytest.mark.parametrize(("where", "victim"), [WHO[0], WHO[2]])
def test_a_party_that_freezes(request: pytest.FixtureRequest, where: str, victim: str) -> None:
    """Its kernel still answers for its connections; only the signs of life stop."""
    site: Site = request.getfixturevalue(where)
    before = site.traces()
    process = started(site)
    site.daemons.signal(victim, signal.SIGSTOP)
    try:
        error = problem_of(process)
        assert (error["error"], error["party"]) == ("peer-lost", victim)
        assert error["phase"]
        for name in {A, B, C} - {victim}:
            until(lambda name=name: site.ended(name), f"{name} does not end")  # type: ignore[misc]
    finally:
        site.daemons.signal(victim, signal.SIGCONT)
    site.free()
    assert site.traces() == before
    site.next_job_runs()


def test_a_party_that_is_told_to_stop_ends_its_job_first(sealed: Site) -> None:
    """Further jobs are refused meanwhile; a job that waits goes on waiting, and runs when the daemon is back."""
    out = sealed.out()
    process = sealed.start(sealed.middle[0], out)
    assert process.stderr is not None
    assert any(json.loads(line)["event"] == "turn" for line in process.stderr)
    sealed.daemons.signal(B, signal.SIGTERM)
    said_by_b = sealed.daemons.log_of_this_life
    until(
        lambda: any("about to stop" in line["message"] for line in said_by_b(B)), "B does not hear the signal"
    )
    refused = asyncio.run(answer(sealed.net, "coordinator", B, b"{}")).failed.problem
    assert json.loads(refused)["error"] == "busy"
    assert "is about to stop, and takes no further job" in refused
    _, err = process.communicate(timeout=GUARD_S)
    assert process.returncode == 0, err
    assert report_of(out)["rows"] == sealed.n_rows
    assert sealed.daemons.running[B].process.wait(GUARD_S) == 0
    sealed.daemons.restart(B)
    sealed.next_job_runs()


def test_a_job_is_tried_again_when_a_party_was_killed(sealed: Site) -> None:
    """Each attempt is a run of its own at every party."""
    out = sealed.out()
    process = sealed.start(sealed.middle[1], out, "--retries", "9", "--wait", "5m")
    assert process.stderr is not None
    assert any(json.loads(line)["event"] == "turn" for line in process.stderr)
    sealed.daemons.signal(B, signal.SIGKILL)
    sealed.daemons.restart(B)
    _, err = process.communicate(timeout=GUARD_S)
    assert process.returncode == 0, err
    assert report_of(out)["rows"] == sealed.n_rows
    retries = [line for line in map(json.loads, err.splitlines()) if line["event"] == "retry"]
    assert {line["error"] for line in retries} <= {"peer-lost", "peer-unreachable"}
    assert retries
    begun = [line for line in lines_of(sealed.net.config(A).state_dir) if line["event"] == "start"]
    assert len({line["run"] for line in begun}) == len(begun)


@pytest.mark.some(1)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
@pytest.mark.parametrize("where", ["site", "sealed"])
def test_a_coordinator_that_dies(request: pytest.FixtureRequest, where: str, number: signal.Signals) -> None:
    site: Site = request.getfixturevalue(where)
    before = site.traces()
    process = started(site)
    process.send_signal(number)
    process.communicate(timeout=GUARD_S)
    site.free()
    assert site.traces() == before
    site.next_job_runs()


@pytest.mark.more
def test_a_coordinator_that_freezes(sealed: Site) -> None:
    before = sealed.traces()
    process = started(sealed)
    process.send_signal(signal.SIGSTOP)
    stopped = time.monotonic()
    try:
        sealed.free()
        sealed.next_job_runs()
        time.sleep(max(0.0, stopped + 5 - time.monotonic()))  # it says so from three seconds on
    finally:
        process.send_signal(signal.SIGCONT)
    error = problem_of(process)
    assert error["error"] in {"peer-lost", "cancelled"}
    assert "this process did not run" in error["message"]  # and not that a party is to blame
    assert error.get("party") is None
    assert [path for path in sealed.traces() if "releases" not in path and f"out-{sealed.n}" not in path] == [
        path for path in before if "releases" not in path
    ]


@pytest.mark.more
def test_a_party_that_is_not_running(site: Site) -> None:
    before = site.traces()
    site.daemons.signal(B, signal.SIGKILL)
    site.daemons.running[B].process.wait(GUARD_S)
    error = problem_of(site.start(site.quick, site.out()))
    assert (error["error"], error["party"], error["phase"]) == ("peer-unreachable", B, "connect")
    assert error["exit_code"] == Exit.UNREACHABLE
    assert error["message"] == f"coordinator cannot reach {B}: Connection refused"
    assert error["private"] == f"at {site.net.addresses[B]}"
    site.daemons.restart(B)
    assert site.traces() == before
    site.next_job_runs()


@pytest.mark.more
def test_a_second_coordinator_while_one_is_at_work(sealed: Site) -> None:
    first = started(sealed)
    error = problem_of(sealed.start(sealed.quick, sealed.out()))
    assert error["error"] == "busy"
    assert error["party"] in {A, B, C}
    assert error["exit_code"] == Exit.FAILED
    assert first.poll() is None  # undisturbed
    first.terminate()
    first.communicate(timeout=GUARD_S)
    sealed.free()
    sealed.next_job_runs()


@pytest.mark.some(1)  # the other daemons are started for `make test-all` alone
@pytest.mark.parametrize("where", ["site", "sealed"])
def test_every_line_of_every_log_is_json_with_known_fields(
    request: pytest.FixtureRequest, where: str
) -> None:
    """Last: after all that went wrong above, no traceback, no stray line, no bug."""
    site: Site = request.getfixturevalue(where)
    for name in (A, B, C):
        for line in site.daemons.log(name).splitlines():
            fields = json.loads(line)
            assert set(fields) <= {"time", "level", "source", "job", "party", "phase", "error_id", "message"}
            assert fields.get("error_id") != "bug"
