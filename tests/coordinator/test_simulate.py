"""Simulating: real daemons on loopback that leave nothing behind, and an explicit policy for each."""

from __future__ import annotations

import stat
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

import coordinator.simulate
from coordinator.daemons import Daemons
from coordinator.simulate import CONFIG, COORDINATOR, free_ports, lay_out, run_simulated
from jobs.data.sources import Csv, Source
from jobs.errors import ConfigError, Exit, PartyError
from jobs.loading import open_task
from jobs.owner.objections import check_policy
from party.owner.config import CoordinatorConfig, PartyConfig, credentials_of, load_config, peers_of
from party.owner.identity import is_loopback
from tests.support import jobs
from tests.support.commands import listing
from tests.support.joint import sample_rows
from tests.support.network import released
from tests.support.samples import COLUMNS, PARTIES, columns, joint_job


def sources(folder: Path, n: int = 60, **bad: list[dict[str, str]]) -> dict[str, Source]:
    folder.mkdir(parents=True, exist_ok=True)
    rows = sample_rows(n)
    return {
        name: Csv(jobs.write_csv(folder / f"{name}.csv", bad.get(name[-1], rows[i::3]), COLUMNS))
        for i, name in enumerate(PARTIES)
    }


def test_what_is_laid_out_allows_this_job_and_nothing_else(tmp_path: Path) -> None:
    surgery = {**COLUMNS["surgery"], "C": "0.3"}
    bundle = jobs.bundle_of(joint_job(columns=columns(surgery=surgery)))
    ports = free_ports(PARTIES)
    reached = {port: port + 1 if port == ports[PARTIES[0]] else port for port in ports.values()}
    addresses = lay_out(tmp_path / "root", open_task(bundle), sources(tmp_path / "data"), ports, reached)
    assert set(addresses) == set(PARTIES)
    assert len(set(addresses.values())) == 3
    for name in PARTIES:
        config = load_config(PartyConfig, tmp_path / "root" / name / CONFIG)
        assert config.listen == f"127.0.0.1:{ports[name]}"
        assert addresses[name] == f"127.0.0.1:{reached[ports[name]]}"
        assert is_loopback(config.listen)
        check_policy(config.policy, open_task(bundle), name, COORDINATOR)
        policy = config.policy
        assert policy.coordinators == (COORDINATOR,)
        assert set(policy.parties) == set(PARTIES) - {name}
        assert policy.columns == {c: (spec["role"],) for c, spec in COLUMNS.items()}
        assert (policy.min_l, policy.min_k, policy.max_c) == (2, 2, Fraction("0.3"))
        assert policy.disclosure == ("leader",)
        assert stat.S_IMODE(config.tls.key.stat().st_mode) == 0o600
        credentials_of(config)
        assert set(peers_of(config)) == {COORDINATOR, *PARTIES} - {name}
    coordinator_config = load_config(CoordinatorConfig, tmp_path / "root" / COORDINATOR / CONFIG)
    assert {name: peer.address for name, peer in peers_of(coordinator_config).items()} == addresses


def test_a_simulation_leaves_nothing_but_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    bundle, tables = jobs.bundle_of(joint_job()), sources(tmp_path / "data")
    run_simulated(open_task(bundle), tables, tmp_path / "out")
    assert sum(released(tmp_path / "out", bundle).values()) == 60
    assert listing(temporary) == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data", "out", "tmp"]


def test_a_folder_that_is_there_is_refused_before_a_daemon_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(coordinator.simulate, "Daemons", lambda: started.append("daemons"))
    with pytest.raises(ConfigError) as caught:
        run_simulated(jobs.task_of(joint_job()), sources(tmp_path / "data"), tmp_path)
    assert (caught.value.problem.error_id, started) == ("output-exists", [])


def test_the_owner_of_all_tables_sees_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon tells its owner only; whoever simulates owns all the tables. No daemon outlives what failed."""
    started: list[subprocess.Popen[bytes]] = []

    class Noted(Daemons):
        def __init__(self) -> None:
            super().__init__()
            started.append(self.process)

    monkeypatch.setattr(coordinator.simulate, "Daemons", Noted)
    rows = sample_rows(20)
    rows[3]["job"] = "Zebra-4711"
    with pytest.raises(PartyError) as caught:
        run_simulated(jobs.task_of(joint_job()), sources(tmp_path / "data", b=rows), tmp_path / "out")
    problem = caught.value.problem
    assert (problem.error_id, problem.party, problem.phase) == ("data-unknown-value", PARTIES[1], "load")
    assert problem.private.endswith(".csv, line 5: 'Zebra-4711'")
    assert problem.exit_code == Exit.DATA
    assert not (tmp_path / "out").exists()
    assert [process.poll() for process in started] == [0]
