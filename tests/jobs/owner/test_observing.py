"""Observers that pass on what they are told pass on everything."""

from __future__ import annotations

import inspect
from typing import Any

from anonymize.tds import Observer
from jobs.owner.observing import PassedOn


def test_everything_is_passed_on() -> None:
    told: list[tuple[str, tuple[Any, ...]]] = []
    methods = [name for name in vars(Observer) if not name.startswith("_")]

    class Shown(Observer):
        def __getattribute__(self, name: str) -> Any:
            if name in methods:
                return lambda *given: told.append((name, given))
            return super().__getattribute__(name)

    said = []
    for name in methods:
        takes = len(inspect.signature(getattr(Observer, name)).parameters) - 1
        said.append((name, tuple(range(takes))))
        getattr(PassedOn(Shown()), name)(*range(takes))
    assert len(methods) >= 5
    assert told == said
