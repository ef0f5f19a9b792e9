"""A job of daemons of this version and of the last tag. Until the first tag, the stored messages stand for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.bare import bare
from tests.support.house import House
from tests.support.network import processes, report_of, sample_network, write_job
from tests.support.samples import PARTIES, joint_job

ROOT = Path(__file__).resolve().parents[2]
GIT = ["git", "-C", str(ROOT)]
A, B, C = PARTIES


def last_tag() -> str:
    """Return the newest tag of a version; empty if there is none, or no history."""
    words = [*GIT, "describe", "--tags", "--abbrev=0", "--match", "v*"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


@pytest.mark.more
def test_a_daemon_of_the_last_version_takes_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tag = last_tag()
    if not tag:
        pytest.skip("no version has a tag yet: tests/party/net/test_stored.py has its messages")
    source, home = tmp_path / "source", tmp_path / "old"
    subprocess.run([*GIT, "worktree", "add", "--detach", str(source), tag], check=True)
    try:
        subprocess.run(
            [sys.executable, "-m", "venv", "--system-site-packages", str(home)], check=True, env=bare()
        )
        install = [
            str(home / "bin" / "pip"),
            "install",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            str(source),
        ]
        subprocess.run(install, check=True, env=bare())
        net = sample_network(tmp_path / "net")
        write_job(tmp_path, joint_job())
        with processes(net, only=[A, B]) as daemons:
            monkeypatch.setattr(
                "tests.support.network.command",
                lambda *words, program: [str(home / "bin" / program), *map(str, words)],
            )
            daemons.start(C)
            assert House(net).run("out").code == 0
        assert report_of(net.root / "out")["rows"] == 60
    finally:
        subprocess.run([*GIT, "worktree", "remove", "--force", str(source)], check=True)
