"""Daemons of a simulation, forked from one process: how they start, and that none outlives what started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import coordinator.daemons
from coordinator.daemons import Daemons
from coordinator.simulate import CONFIG
from jobs.errors import TransportError
from tests.support.bare import bare
from tests.support.network import GUARD_S, Network, sample_network
from tests.support.samples import PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def configs(net: Network) -> dict[str, Path]:
    return {name: net.root / name / CONFIG for name in net.roster}


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gone(pid: int) -> bool:
    """Wait until a process has ended, and return True."""
    until = time.monotonic() + GUARD_S
    while time.monotonic() < until:
        stat = Path(f"/proc/{pid}/stat")
        with suppress(FileNotFoundError, ProcessLookupError):
            if stat.read_text().rpartition(")")[2].split()[0] != "Z":
                time.sleep(0.01)
                continue
        return True
    return False


def test_all_daemons_listen_and_end_with_the_block(net: Network) -> None:
    with Daemons() as daemons:
        daemons.start(configs(net))
        pids = children(daemons.process.pid)
        assert len(pids) == len(net.roster)
    assert daemons.process.returncode == 0
    assert all(gone(pid) for pid in pids)


STARTS = """
import sys, time
from pathlib import Path
from coordinator.daemons import Daemons
with Daemons() as daemons:
    daemons.start({name: Path(root) for name, root in zip(sys.argv[1::2], sys.argv[2::2])})
    print(daemons.process.pid, flush=True)
    time.sleep(600)
"""


def test_daemons_end_with_what_started_them(net: Network) -> None:
    given = [str(word) for pair in configs(net).items() for word in pair]
    with subprocess.Popen(
        [sys.executable, "-c", STARTS, *given], stdout=subprocess.PIPE, env=bare()
    ) as started:
        assert started.stdout is not None
        pid = int(started.stdout.readline())
        pids = children(pid)
        assert len(pids) == len(net.roster)
        started.kill()
    assert all(gone(each) for each in [pid, *pids])


@pytest.mark.more
def test_a_daemon_that_does_not_stop_is_killed(net: Network) -> None:
    with Daemons() as daemons:
        daemons.start(configs(net))
        pids = children(daemons.process.pid)
        os.kill(pids[0], signal.SIGSTOP)
    assert all(gone(pid) for pid in pids)


def test_a_daemon_that_does_not_start_says_why(net: Network) -> None:
    net.change(PARTIES[1], lambda fields: fields["tls"].update(key="nowhere.pem"))
    with Daemons() as daemons, pytest.raises(TransportError) as caught:
        daemons.start(configs(net))
    problem = caught.value.problem
    assert (problem.error_id, problem.party) == ("peer-unreachable", PARTIES[1])
    assert "nowhere.pem" in problem.message


def test_a_daemon_that_never_listens_is_not_waited_for(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator.daemons, "_START_S", 0.0)
    with Daemons() as daemons, pytest.raises(TransportError, match="did not start: see its log"):
        daemons.start(configs(net))
    assert daemons.process.returncode == 0


def test_a_process_that_cannot_fork_is_told(net: Network) -> None:
    with Daemons() as daemons:
        daemons.process.kill()
        daemons.process.wait()
        with pytest.raises(TransportError, match="did not start"):
            daemons.start(configs(net))


COINS = """
import os
from crypto.rng import SystemRng
from party.cli.daemons import import_all
import_all()
for _ in range(2):
    if os.fork() == 0:
        os.write(1, SystemRng().bytes(16).hex().encode() + b"\\n")
        os._exit(0)
    os.wait()
"""


def test_daemons_draw_different_coins() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COINS], capture_output=True, text=True, env=bare(), check=True
    )
    assert len(set(done.stdout.split())) == 2
