"""Machine code for circuits and transfers, if the package (`jointcut[fast]`) is installed.

Compiling takes a quarter of a second of processor time or more, so only a process with circuits of some size
compiles, beside its work, and a daemon that has waited for its first job for a while. Until then, and if compiling is
impossible, NumPy computes the same.
"""

from __future__ import annotations

import importlib.util
import logging
import threading
from functools import cache

import numpy as np

from crypto import engine
from crypto.circuits.score import log2_table
from jobs.data.arrow import pa_csv, pc
from jobs.loading import import_packages

log = logging.getLogger("party")

_PACKAGE = "llvmlite"
ENOUGH_GATES = 1 << 18
"""Number of AND gates from which compiling pays. A small job computes fewer."""


def compile_where_it_pays() -> None:
    """Begin to compile once circuits came to ``ENOUGH_GATES``, if the package is there."""
    if importlib.util.find_spec(_PACKAGE) is not None:
        engine.after(ENOUGH_GATES, _begin)


def _begin() -> None:
    """Compile beside the work. A process waits for this at its end: LLVM ends a process that ends beside it."""
    threading.Thread(target=_compile, name="compiling", daemon=False).start()


def prepare() -> None:
    """Import what jobs need, make tables, and compile if not begun, beside the work of this process.

    The first job waits less.
    """
    threading.Thread(target=_prepare, name="preparing", daemon=True).start()


def _prepare() -> None:
    import_packages()
    for _ in (pa_csv.ReadOptions, pc.value_counts, np.ma):  # imported at first use; np.ma by np.unique
        pass
    log2_table()
    engine.begin(ENOUGH_GATES)


def engine_line() -> str:
    """Name the engine that would compute circuits here."""
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


@cache
def _compiled() -> engine.Engine | str:
    """Return the compiled engine, or the reason against; compile the first time."""
    try:
        from crypto.compiled.loading import load

        return load()
    except Exception as error:  # noqa: BLE001  a failing optional package must not fail a job
        return next(iter(str(error).splitlines()), type(error).__name__)
