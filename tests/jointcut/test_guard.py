"""No core of a process reaches a disk: it would have keys and rows in it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jointcut import isolated
from tests.support.bare import bare
from tests.support.network import processes, sample_network
from tests.support.samples import PARTIES

DIE = """
import ctypes, os, signal, sys
sys.path.insert(0, sys.argv[1])
from jointcut.isolated import guard
guard(sys.argv[2])
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), oct(os.umask(0)), flush=True)
os.kill(os.getpid(), signal.SIGSEGV)
"""
ROOT = Path(isolated.__file__).resolve().parent.parent


@pytest.mark.skipif(sys.platform != "linux", reason="/proc and prctl are of Linux")
@pytest.mark.parametrize(
    ("program", "told"), [("party", "0 0o77"), ("reader", "0 0o77"), ("coordinator", "1 0o22")]
)
def test_a_crash_leaves_no_core(tmp_path: Path, program: str, told: str) -> None:
    shell = 'ulimit -c unlimited 2>/dev/null; exec "$@"'
    ran = subprocess.run(
        ["/bin/sh", "-c", shell, "sh", sys.executable, "-c", DIE, str(ROOT), program],
        cwd=tmp_path,
        env=bare(),
        capture_output=True,
        text=True,
        umask=0o022,
    )
    assert ran.returncode in (-signal.SIGSEGV, 128 + signal.SIGSEGV)
    assert ran.stdout.strip() == told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is of Linux")
def test_a_daemon_has_the_limit(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net")
    with processes(net, PARTIES[:1]) as daemons:
        pid = daemons.running[PARTIES[0]].process.pid
        limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
    (core,) = [line.split() for line in limits if line.startswith("Max core file size")]
    assert core[4:6] == ["0", "0"]
