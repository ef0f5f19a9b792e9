"""The account of a run that nobody charges."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anonymize.tds import Observer
from crypto.rng import Rng
from crypto.rounds import Rounds
from jobs.data.tables import Table
from jobs.task import Result, Task


class Unaccounted:
    """A simulation in one process keeps no ledgers."""

    remark = ""
    number = None
    keeps = False

    def check(self) -> None:
        """There is no limit."""

    def read(self, task: Task, me: str, table: Table, rng: Rng) -> None:
        """There is no limit."""

    def conducted(
        self,
        task: Task,
        peers: Sequence[str],
        protocol: Callable[[Observer], Rounds[Result]],
        shown: Observer,
    ) -> Rounds[Result]:
        """The protocol alone."""
        return protocol(shown)

    def deliver(self, release: bytes, *, agreed: bool) -> None:
        """Nothing is kept."""
