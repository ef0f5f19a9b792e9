"""Observer with a full pass-through, for observers with additional work."""

from __future__ import annotations

from collections.abc import Mapping

from anonymize.grouping import Grouping
from anonymize.table import Ints
from anonymize.tds import Observer, Step


class PassedOn(Observer):
    """Observer that tells another observer everything."""

    def __init__(self, shown: Observer) -> None:
        self._shown = shown

    def phase(self, name: str) -> None:
        self._shown.phase(name)

    def gates(self, count: int) -> None:
        self._shown.gates(count)

    def turn(self, iteration: int, step: Step) -> None:
        self._shown.turn(iteration, step)

    def trial(self, number: int, most: int) -> None:
        self._shown.trial(number, most)

    def front(self, number: int, n_open: int, n_cut: int) -> None:
        self._shown.front(number, n_open, n_cut)

    def sweep(self, number: int) -> None:
        self._shown.sweep(number)

    def revealed(self, name: str, shape: tuple[int, ...], to: str) -> None:
        self._shown.revealed(name, shape, to)

    def announced(self, own: int, others: Mapping[str, int]) -> None:
        self._shown.announced(own, others)

    def aligned(self, n_common: int) -> None:
        self._shown.aligned(n_common)

    def opening(self) -> None:
        self._shown.opening()

    def grouping(self, groups: Grouping) -> None:
        self._shown.grouping(groups)

    def opening_groups(self, own: Ints) -> None:
        self._shown.opening_groups(own)
