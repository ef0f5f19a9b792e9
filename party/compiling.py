"""Machine code for circuits and transfers, where the package for it (`jointcut[fast]`) is installed.

Making it takes a quarter of a second of processor time, so only a process that runs circuits of some size does it,
beside its work. Until the code is there, and wherever it cannot be, NumPy computes the same.
"""

from __future__ import annotations

import importlib.util
import logging
import threading

from crypto import engine

log = logging.getLogger("party")

_PACKAGE = "llvmlite"
ENOUGH_GATES = 1 << 18
"""AND gates from which compiling pays. One small job computes fewer."""


def compile_where_it_pays() -> None:
    """Begin to compile once circuits came to ``ENOUGH_GATES``, if the package is there."""
    if importlib.util.find_spec(_PACKAGE) is not None:
        engine.after(ENOUGH_GATES, lambda: threading.Thread(target=_compile, name="compiling").start())


def engine_line() -> str:
    """Say in words which engine would compute circuits here."""
    if importlib.util.find_spec(_PACKAGE) is None:
        return "NumPy (`jointcut[fast]` is not installed)"
    found = _compiled()
    return f"NumPy ({found})" if isinstance(found, str) else "code compiled for this CPU"


def _compile() -> None:
    found = _compiled()
    if isinstance(found, str):
        log.warning("circuits are computed by NumPy: %s", found)
    else:
        engine.use(found)


def _compiled() -> engine.Engine | str:
    """The compiled engine, or why there is none."""
    try:
        from crypto.compiled.loading import load

        return load()
    except Exception as error:  # noqa: BLE001  an optional package that fails must not fail a job
        return next(iter(str(error).splitlines()), type(error).__name__)
