"""Files of a party are its owner's alone, whatever the umask."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from party.owner.identity import lax_files
from tests.support.bare import bare
from tests.support.commands import invoke
from tests.support.network import command, processes, sample_network
from tests.support.samples import PARTIES


def modes(folder: Path) -> dict[str, int]:
    return {
        path.relative_to(folder).as_posix(): path.stat().st_mode & 0o777 for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("program", ["party", "coordinator"])
def test_init_gives_files_to_the_owner_alone(tmp_path: Path, program: str) -> None:
    folder = tmp_path / "here"
    folder.mkdir(mode=0o700)
    data = ["--data", "table.csv"] if program == "party" else []
    init = command("init", "--name", "hospital-a", "--dir", folder, *data, program=program)
    subprocess.run(init, check=True, umask=0, env=bare(), capture_output=True)
    found = modes(folder)
    assert {f"{program}.yaml", "tls", "tls/key.pem", "tls/certificate.pem", "peers"} <= set(found)
    assert all(not mode & 0o077 for mode in found.values()), found


def test_check_names_what_is_laxer(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net")
    config = net.config_path(PARTIES[0])
    key = net.config(PARTIES[0]).tls.key
    config.chmod(0o666)
    key.chmod(0o640)
    ran = invoke("party", "check", "--config", config)
    assert f"warning      others may write {config}: chmod 600 {config}" in ran.out
    assert f"warning      others may read or write {key}: chmod 600 {key}" in ran.out
    config.chmod(0o644)
    key.chmod(0o600)
    assert f"others may write {config}" not in invoke("party", "check", "--config", config).out


def test_a_daemon_makes_its_state_for_the_owner_alone(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net")
    name = PARTIES[0]
    before = os.umask(0)
    try:
        with processes(net, only=[name]):
            mode = net.config(name).state_dir.stat().st_mode & 0o777
    finally:
        os.umask(before)
    assert mode == 0o700
    ran = invoke("party", "check", "--config", net.config_path(name))
    assert str(net.config(name).state_dir) not in "".join(re.findall("others may .*", ran.out))


def test_what_is_not_there_is_not_lax(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    assert lax_files([folder], []) == []
    folder.mkdir()
    os.chmod(folder, 0o755)  # noqa: S103
    assert lax_files([folder], [folder]) == [f"others may read or write {folder}: chmod 700 {folder}"]
