"""Arrow, imported at first use. Code that reads, writes or compares no table runs without Arrow.

All code with Arrow tables takes Arrow from here.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["pa", "pa_csv", "pc", "pq"]


class _NoPandas:
    """Import finder that reports pandas as missing."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


@cache
def _find_no_pandas() -> None:
    """Hide pandas from Arrow's only look, before its first array.

    Importing pandas would cost a third of a second and tens of megabytes, only to learn that nothing is a `Series`.
    Other code still finds pandas.
    """
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _NoPandas)
        try:
            import_module("pyarrow").array([])
        finally:
            sys.meta_path.remove(_NoPandas)


class _Library:
    """Stand-in for a module; keeps the used parts."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        _find_no_pandas()
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
