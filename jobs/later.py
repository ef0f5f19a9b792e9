"""Functions whose modules are imported when one is called.

The files that say which function answers what name many more than any job calls: all models, joint and alone, to run,
to report and to verify. They stand for those modules by :func:`later`, and import them for the type checker alone.
What is asked of a job without data they import as any file does: whoever opens a bundle needs it at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class _Function:
    """A function, by its module and its name there."""

    module: str
    name: str

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return getattr(import_module(self.module), self.name)(*arguments, **named)


@dataclass(frozen=True)
class _Module:
    """A module, of which functions are taken."""

    name: str

    def __getattr__(self, function: str) -> _Function:
        return _Function(self.name, function)


def later(module: str) -> Any:
    """Stand for a module, by its full name, of which nothing but functions is taken."""
    return _Module(module)
