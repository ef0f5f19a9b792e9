"""Joint LKC runs in this process with what each party hands on afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anonymize.tds import Observer
from crypto.local import Tamper, run_local
from crypto.mixing import OpeningKey
from crypto.rounds import Rounds
from jobs.data.sources import Csv
from jobs.data.tables import Table
from jobs.lkc.parts import PARTS
from jobs.lkc.result import Made
from jobs.modes import protocol_of
from jobs.owner.account import Unaccounted
from jobs.task import Result, RunInputs, Task
from tests.support import jobs
from tests.support.joint import sample_rows
from tests.support.rng import SeededRng


@dataclass(frozen=True)
class LkcRun:
    """A run of all parties on the sample rows: dealt out among them, or each its columns of all."""

    task: Task
    sources: Mapping[str, Csv]
    tables: Mapping[str, Table]
    results: Mapping[str, Any]
    key: OpeningKey | None

    @property
    def result(self) -> Any:
        """Of the method of its job."""
        return self.results[self.task.job.roster[0]]

    def part(self, name: str, party: str, seed: object = 0) -> bytes:
        """Return the part that a party sends under a name."""
        source, table, result = self.sources[party], self.tables[party], self.results[party]
        return PARTS[name](self.task, party, source, table, result, SeededRng((seed, party)))

    def parts(self, name: str) -> dict[str, dict[str, bytes]]:
        """Return the parts of all parties that send something of this name."""
        senders = [party for party in self.task.job.roster if name in self.task.mode.parts(self.task, party)]
        return {name: {party: self.part(name, party) for party in senders}}


def run_lkc(
    task: Task,
    folder: Path,
    n_rows: int = 60,
    rows: Sequence[Mapping[str, str]] | None = None,
    tamper: Tamper | None = None,
) -> LkcRun:
    """``rows``: others than the sample rows."""
    rows, parties = rows or sample_rows(n_rows), task.job.roster
    sources, tables = {}, {}
    for i, party in enumerate(parties):
        own = rows[i :: len(parties)] if task.job.partition == "horizontal" else rows
        held = [{name: row[name] for name in task.held_by(party)} for row in own]
        sources[party] = Csv(jobs.write_csv(folder / f"{party}.csv", held))
        tables[party] = task.load(sources[party], party)
    key = OpeningKey(SeededRng("coordinator")) if task.job.deliver == "coordinator" else None
    recipient = None if key is None else key.public
    run_inputs = {me: RunInputs(source, recipient) for me, source in sources.items()}
    results, _ = run_local(generators(task, tables, run_inputs), tamper=tamper)
    return LkcRun(task, sources, tables, {me: _made(result) for me, result in results.items()}, key)


def generators(
    task: Task, tables: Mapping[str, Table], run_inputs: Mapping[str, RunInputs]
) -> dict[str, Rounds[Result]]:
    """Return each party's run, by its table and what it has besides."""
    return {
        me: protocol_of(task, me, tables[me], SeededRng(me), Observer(), Unaccounted(), run_inputs[me])
        for me in run_inputs
    }


def _made(result: object) -> Made:
    assert isinstance(result, Made)
    return result
