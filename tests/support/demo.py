"""`coordinator demo` as a process: three real daemons, and what it printed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.bare import bare

MOST_S = 120.0
"""A demo that takes longer hangs."""

INSTALLED = [Path(sys.executable).parent / "coordinator"]


def in_locale(locale: Mapping[str, str]) -> dict[str, str]:
    """Return a bare environment with this locale alone."""
    return {name: value for name, value in bare().items() if name != "LANG"} | dict(locale)


def run_demo(start: Sequence[str | Path], folder: Path, environ: Mapping[str, str]) -> str:
    """Run the demo in a folder of its own. It must succeed; return what it printed."""
    folder.mkdir()
    done = subprocess.run(
        [*start, "demo"], cwd=folder, env=environ, capture_output=True, timeout=MOST_S, check=False
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode()
