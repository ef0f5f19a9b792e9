"""What sources raise, worded once: the same fault is the same error, whatever reads the table.

A table that changes is told of by :func:`anonymize.errors.changed`.

``private``, everywhere, is what a reader or an engine said, which may quote cells; ``cause`` what the operating
system or a server said of itself (:mod:`anonymize.errors`).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from anonymize.errors import DataError


def unreadable(private: str = "", cause: str = "") -> DataError:
    """The error of a table of which no reader makes sense."""
    return DataError("data-unreadable", "the table cannot be read", private=private, cause=cause)


def not_there(named: str = "path", *, private: str = "", cause: str = "") -> DataError:
    """The error of a table that is not where it is said to be. ``named``: what says so."""
    remedy = f"correct the {named} under `data` in the configuration of the table's owner"
    return DataError("file-missing", "the table is not there", remedy=remedy, private=private, cause=cause)


def library(module: str, name: str, extra: str) -> Any:
    """What a source reads with, and an extra installs. Raises DataError where it is not installed.

    name: as people call it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        message = f"this table needs {name}, which is not installed"
        remedy = f"its owner: pip install 'jointcut[{extra}]'"
        raise DataError("extra-missing", message, remedy=remedy) from error
