"""Joint LKC jobs of all parties in one process, from their files to the folder of the release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anonymize.tds import Observer
from crypto.local import run_local
from jobs.data.sources import Csv
from jobs.lkc.result import Made
from jobs.modes import protocol_of
from jobs.options import NO_OPTIONS
from jobs.owner.account import Unaccounted
from jobs.release.making import write_joint_release
from jobs.stopwatch import Stopwatch
from jobs.task import Collected, RunInputs, Task
from tests.support import jobs
from tests.support.joint import sample_rows
from tests.support.rng import SeededRng


class Run:
    """A run of all parties on the sample rows, or others, in this process."""

    def __init__(
        self,
        task: Task,
        folder: Path,
        rows: Sequence[Mapping[str, str]] | None = None,
        **observers: Observer,
    ) -> None:
        self.task = task
        rows, roster = sample_rows(120) if rows is None else rows, task.job.roster
        self.sources = {
            me: Csv(jobs.write_csv(folder / f"{me}.csv", rows[i :: len(roster)], list(rows[0])))
            for i, me in enumerate(roster)
        }
        self.tables = {me: task.load(source, me) for me, source in self.sources.items()}
        shown = {me.replace("_", "-"): observer for me, observer in observers.items()}
        found, _ = run_local(
            {
                me: protocol_of(
                    task,
                    me,
                    self.tables[me],
                    SeededRng(me),
                    shown.get(me, Observer()),
                    Unaccounted(),
                    RunInputs(self.sources[me]),
                )
                for me in roster
            }
        )
        self.results: dict[str, Any] = {}
        for me, result in found.items():
            assert isinstance(result, Made)
            self.results[me] = result

    @property
    def result(self) -> Any:
        """Of the method of its job."""
        return self.results[self.task.job.roster[0]]

    def written(
        self, folder: Path, parts: Mapping[str, Mapping[str, bytes]] | None = None
    ) -> dict[str, bytes]:
        folder.mkdir()
        collected = Collected(self.result, parts or {}, {})
        write_joint_release(self.task, folder, collected, NO_OPTIONS, Stopwatch(lambda name: None))
        return {path.name: path.read_bytes() for path in folder.iterdir()}
