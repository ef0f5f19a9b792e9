"""Arrow, imported at first use. Code that reads, writes or compares no table runs without Arrow.

All code with Arrow tables takes Arrow from here.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from threading import Lock, get_ident
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["pa", "pa_csv", "pc", "pq"]


_LOOK = Lock()
"""Lock of Arrow's looks for pandas. A look waits for an import of pandas, so no import waits for a look."""


class _Pandas(MetaPathFinder):
    """Import finder that hides pandas from Arrow's first look, and shows Arrow the pandas of a later import.

    hides_in:  the thread of the look; other threads find pandas.
    """

    def __init__(self) -> None:
        self.hides_in: int | None = get_ident()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "pandas":
            return None
        if self.hides_in == get_ident():
            raise ModuleNotFoundError(name)
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Shown(spec.loader, self)
        return spec


class _Shown(Loader):
    """Loader of pandas. After the import Arrow looks again, and knows a `Series` from there on.

    If another thread's look is under way, this look waits for the import, and finds pandas by itself.
    """

    def __init__(self, loader: Loader, finder: _Pandas) -> None:
        self._loader, self._finder = loader, finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        sys.meta_path.remove(self._finder)
        self._loader.exec_module(module)
        if _LOOK.acquire(blocking=False):
            try:
                import_module("pyarrow").array([]).to_pandas()
            finally:
                _LOOK.release()


@cache
def _find_no_pandas() -> None:
    """Hide pandas from Arrow's only look, before its first array.

    Importing pandas would cost a third of a second and tens of megabytes, only to learn that nothing is a `Series`.
    Other code still finds pandas, and Arrow then looks again: Arrow would take a `Series` for a sequence, and NaN for
    a number.
    """
    with _LOOK:
        if "pandas" in sys.modules or any(isinstance(finder, _Pandas) for finder in sys.meta_path):
            return
        finder = _Pandas()
        sys.meta_path.insert(0, finder)
        try:
            import_module("pyarrow").array([])
        finally:
            finder.hides_in = None


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
