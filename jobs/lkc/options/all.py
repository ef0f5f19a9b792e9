"""The options of LKC requirements by their keys, and the only place that knows all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

from jobs.lkc.options.option import Facts, Option
from jobs.lkc.settings import Requirement

OPTIONS: Mapping[tuple[str, ...], str] = {
    ("distinct",): "jobs.lkc.options.distinct",
    ("t",): "jobs.lkc.options.closeness",
    ("ruled_out", "diversity"): "jobs.lkc.options.diversity",
    ("colluders",): "jobs.lkc.options.colluders",
}
"""By keys the module of an option, in the order in which options are told: it is imported for a job that asks for it.
"""


_KEYS = [key for keys in OPTIONS for key in keys]


def in_order(options: Iterable[Option]) -> list[Option]:
    """Return options of several entries in the order in which they are told."""
    return sorted(options, key=lambda option: _KEYS.index(option.key))


def options_of(said: Requirement, facts: Facts) -> tuple[Option, ...]:
    """Return the options of an entry: those whose keys it gives."""
    given = (
        module for keys, module in OPTIONS.items() if any(getattr(said, key) is not None for key in keys)
    )
    return tuple(import_module(module).made(said, facts) for module in given)
