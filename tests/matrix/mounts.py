"""Small disks and mounts of the matrix."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SIZE = "48m"


def mount(*words: str) -> bool:
    """Mount; return True if this machine lets us."""
    command = ["mount", *words]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def small_disk(folder: Path) -> bool:
    """Mount a small disk at a folder; return True if this machine lets us."""
    folder.mkdir(mode=0o700, exist_ok=True)
    options = f"size={SIZE},mode=0700"
    return os.geteuid() == 0 and mount("-t", "tmpfs", "-o", options, "tmpfs", str(folder))


def unmount(folder: Path) -> None:
    """Take the uppermost mount away, also while a process has a file there."""
    command = ["umount", "--lazy", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
