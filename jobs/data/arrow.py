"""Arrow, imported when something of it is first used: what reads, writes or compares no table does without.

Whoever works on Arrow tables takes it from here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["pa", "pa_csv", "pc", "pq"]


class _Library:
    """Stands for a module; keeps what was used of it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(import_module(self._name), attribute)
        setattr(self, attribute, found)
        return found


if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq
else:
    pa, pc = _Library("pyarrow"), _Library("pyarrow.compute")
    pa_csv, pq = _Library("pyarrow.csv"), _Library("pyarrow.parquet")
