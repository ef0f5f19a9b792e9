"""Kernel of Jupyter with the Python and the sources of the tests, in an environment and with folders of its own."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import KernelManager

from tests.support.bare import bare

ROOT = Path(__file__).resolve().parents[2]
_PATIENCE_S = 120


class _Specs(KernelSpecManager):
    """Specifications that are not looked for: a machine may have a kernel `python3` of another Python."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name=kernel_name, language="python")


@dataclass
class Cell:
    """Outputs of an executed cell.

    text:     the texts of streams and results.
    lines:    the states of each display, one after the other. drawn: the same as HTML.
    error:    the name of the exception that ended the cell, or an empty text.
    """

    text: str = ""
    lines: dict[str, list[str]] = field(default_factory=dict)
    drawn: list[str] = field(default_factory=list)
    error: str = ""


class Kernel:
    """Running kernel."""

    def __init__(self, manager: KernelManager) -> None:
        self.manager, self._client = manager, manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=_PATIENCE_S)

    def execute(self, code: str, seen: Callable[[str], None] = lambda text: None) -> Cell:
        """Execute a cell. seen: is called with each state of a display."""
        cell, request = Cell(), self._client.execute(code)
        while True:
            message = self._client.get_iopub_msg(timeout=_PATIENCE_S)
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind in ("display_data", "update_display_data"):
                text = content["data"]["text/plain"]
                cell.lines.setdefault(content.get("transient", {}).get("display_id", ""), []).append(text)
                cell.drawn.append(content["data"].get("text/html", ""))
                seen(text)
            elif kind in ("execute_result", "stream"):
                cell.text += content["text"] if kind == "stream" else content["data"]["text/plain"]
            elif kind == "error":
                cell.error = content["ename"]
                cell.text += content["evalue"]
            elif kind == "status" and content["execution_state"] == "idle":
                return cell

    def stop(self) -> None:
        self._client.stop_channels()


@contextmanager
def kernel(folder: Path) -> Iterator[Kernel]:
    """Run a kernel in a folder during the block."""
    own = Path(tempfile.mkdtemp(prefix="kernel-"))  # paths of sockets are short
    manager = KernelManager(kernel_spec_manager=_Specs(), transport="ipc", ip=str(own / "socket"))
    manager.connection_file = str(own / "connection.json")
    environ: dict[str, Any] = {**bare(), "PYTHONPATH": str(ROOT), "TMPDIR": str(own)}
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "HOME"):
        environ[name] = str(own)
    try:
        manager.start_kernel(cwd=str(folder), env=environ)
        running = Kernel(manager)
        try:
            yield running
        finally:
            running.stop()
    finally:
        manager.shutdown_kernel(now=True)
        shutil.rmtree(own, ignore_errors=True)
