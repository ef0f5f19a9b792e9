"""A real HTTP proxy: Debian's tinyproxy, in a temporary folder."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.bare import bare
from tests.support.loopback import HOST, free_ports
from tests.support.network import GUARD_S

USER, PASSWORD = "jointcut", "kennwort9geheim"
"""Credentials of a proxy that asks for some."""
SECRET = "kennwort9%67eheim"
"""The password as a URL may have it. This proxy takes letters and digits alone."""

_CONFIG = """\
Port {port}
Listen {host}
Timeout 600
Allow {host}
MaxClients 50
LogLevel Connect
LogFile "{folder}/log"
PidFile "{folder}/pid"
"""


@dataclass(frozen=True)
class Server:
    """A running proxy."""

    folder: Path
    address: str

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def url(self, credentials: str = "") -> str:
        return f"http://{credentials}{self.address}"


@contextmanager
def tinyproxy(folder: Path, *lines: str) -> Iterator[Server]:
    """Run a proxy, with further lines of its configuration, or skip the test where Debian's package is missing."""
    program = shutil.which("tinyproxy", path="/usr/bin:/usr/sbin:/usr/local/bin")
    if program is None:
        pytest.skip("no tinyproxy here: apt-get install tinyproxy")
    port = free_ports(["proxy"])["proxy"]
    folder.mkdir()
    text = _CONFIG.format(port=port, host=HOST, folder=folder) + "".join(f"{line}\n" for line in lines)
    (folder / "conf").write_text(text)
    words = [program, "-d", "-c", str(folder / "conf")]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=bare()) as process:
        try:
            _until_listening(process, port)
            yield Server(folder, f"{HOST}:{port}")
        finally:
            process.terminate()


def _until_listening(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + GUARD_S
    while True:
        try:
            socket.create_connection((HOST, port)).close()
            return
        except ConnectionRefusedError:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
