"""Two worlds that differ in what one party must not learn: does anything that it sees tell them apart?

Horizontal: the rows of the two other parties are exchanged. Vertical: the other party's sensitive values move
among people who are alike in everything else. Compared, over runs with fresh coins in either world: lengths and
order of all messages, blocks of 8 bytes that are seen twice in a view or in two (a mask, a seed, a key used twice),
and the mean of every byte.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from crypto.local import Message
from jobs.data.sources import Csv
from tests.attacks.tampering import JOINT, Stage, fields_of
from tests.support import jobs
from tests.support.joint import sample_rows
from tests.support.samples import COLUMNS

WORLDS = (0, 1)
CASES: Mapping[str, tuple[str, ...]] = {
    "horizontal/sealed": ("hospital-a", "hospital-b", "hospital-c"),
    "horizontal/strict": ("hospital-a", "hospital-b", "hospital-c"),
    "horizontal/leader": ("hospital-b", "hospital-c"),
    "vertical/sealed": ("loan",),
}
"""Modes and who looks; the leader of `disclosure: leader` is told sums, which the worlds have in common."""
PUBLIC = (
    *(
        "shares/open",
        "sealed/candidate",
        "sealed/split",
        "sealed/valid",
        "sealed/root",
        "strict/same",
        "horizontal/open",
        "horizontal/root",
        "horizontal/asked",
        "horizontal/verdicts",
        "horizontal/split",
    ),
    *("sealed/only_child", "horizontal/only_child", "vertical/only_child"),
    *("ot/begin", "joint_histogram/shape", "lkc/earlier", "vertical/children", "vertical/candidate"),
    *("intersection/agree", "intersection/size", "intersection/common"),
)
"""Steps whose messages hold public numbers, which recur."""
SHORT = ("look_up/open",)
"""Steps whose messages hold uniform numbers of a few bits, which recur by chance; their means are compared."""
MOST_Z = 6.5
"""Largest deviation of a mean in standard errors that chance gives 10^5 bytes of ``LEAST_RUNS`` runs or more."""
LEAST_RUNS = 30
_HEAD = 1 << 17
_N_ROWS = 60


def world(mode: str, looks: str, number: int) -> Stage:
    """One of the two worlds that differ in what ``looks`` must not learn."""
    fields = fields_of(JOINT[mode])
    if JOINT[mode].partition == "vertical":
        return _stage(fields, _vertical(number))
    rows, others = sample_rows(_N_ROWS), [party for party in fields["parties"] if party != looks]
    parts = [rows[i::3] for i in range(3)]
    return _stage(fields, {looks: parts[0], others[0]: parts[1 + number], others[1]: parts[2 - number]})


def _stage(fields: Mapping[str, Any], rows: Mapping[str, Sequence[Mapping[str, str]]]) -> Stage:
    task = jobs.task_of(fields)
    with tempfile.TemporaryDirectory() as folder:
        paths = {me: jobs.write_csv(Path(folder) / f"{me}.csv", rows[me], COLUMNS) for me in task.job.roster}
        tables = {me: task.load(Csv(path), me) for me, path in paths.items()}
        return Stage(task, tables, {me: path.read_bytes() for me, path in paths.items()})


def _vertical(number: int) -> dict[str, list[dict[str, str]]]:
    """The bank's sensitive values, in the other world each person's neighbour's among those who are alike."""
    coins = random.Random(5)  # noqa: S311
    people = [{**row, "age": coins.choice(["10", "60"])} for row in sample_rows(2 * _N_ROWS)]
    alike: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for person in people:
        alike.setdefault((person["job"], person["age"], person["transfused"]), []).append(person)
    for group in alike.values() if number else ():
        values = [person["surgery"] for person in group]
        for person, value in zip(group, values[1:] + values[:1], strict=True):
            person["surgery"] = value
    return {"loan": people, "bank": people}


@dataclass
class Seen:
    """Views of one party in runs of either world."""

    shapes: tuple[set[Any], set[Any]] = field(default_factory=lambda: (set(), set()))
    heads: tuple[list[Any], list[Any]] = field(default_factory=lambda: ([], []))
    blocks: set[int] = field(default_factory=set)
    repeated: list[tuple[str, int]] = field(default_factory=list)

    def add(self, number: int, view: Sequence[Message]) -> None:
        """A view of a run in a world."""
        self.shapes[number].add(tuple((m.sender, m.step, len(m.payload)) for m in view))
        secret = [m for m in view if m.step not in PUBLIC]
        here = Counter(_blocks(m for m in secret if m.step not in SHORT))
        self.repeated += [block for block, n in here.items() if n > 1 or block[1] in self.blocks]
        self.blocks |= {block for _, block in here}
        head = b"".join(m.payload for m in secret)[:_HEAD].ljust(_HEAD, b"\0")
        self.heads[number].append(np.frombuffer(head, dtype=np.uint8).astype(np.float64))

    def tells(self, most_z: float) -> list[str]:
        """Return the differences that tell the worlds apart, or repetitions of what should be fresh; nothing
        where all is well.
        """
        found = [] if self.shapes[0] == self.shapes[1] else ["lengths or order of messages"]
        steps = sorted({step for step, _ in self.repeated})
        found += [f"{len(self.repeated)} blocks seen twice, in {', '.join(steps)}"] if steps else []
        z = self.largest_z()
        return found + ([f"a byte with z = {z:.1f}"] if z > most_z else [])

    def largest_z(self) -> float:
        """The largest deviation between the worlds of a byte's mean; infinite for one that is fixed and differs."""
        x, y = (np.stack(heads) for heads in self.heads)
        variance = x.var(axis=0) + y.var(axis=0)
        if (x[0] != y[0])[variance == 0].any():
            return float("inf")
        moving = variance > 0
        z = np.abs(x.mean(axis=0) - y.mean(axis=0))[moving] / np.sqrt(variance[moving] / len(x))
        return float(z.max(initial=0.0))


def _blocks(messages: Iterable[Message]) -> list[tuple[str, int]]:
    """All blocks of 8 bytes but zeros, with their steps; short messages hold flags and numbers."""
    found = []
    for message in messages:
        body = message.payload[: len(message.payload) // 8 * 8]
        words = np.frombuffer(body, dtype="<u8").tolist() if len(body) >= 16 else []
        found += [(message.step, word) for word in words if word]
    return found


def seen(mode: str, looks: str, runs: int) -> Seen:
    """Return a party's views of so many runs of each world, all with different coins."""
    worlds, coins, views = [world(mode, looks, number) for number in WORLDS], count(), Seen()
    for _ in range(runs):
        for number in WORLDS:
            _, transcript = worlds[number].run(("world", next(coins)))
            views.add(number, transcript.view(looks))
    return views


def _main(runs: int) -> int:
    found = 0
    for mode, parties in CASES.items():
        for looks in parties:
            views = seen(mode, looks, runs)
            told = views.tells(MOST_Z if runs >= LEAST_RUNS else float("inf"))
            print(
                mode,
                looks,
                f"{2 * runs} runs, largest z {views.largest_z():.2f}",
                told or "nothing",
                flush=True,
            )
            found += len(told)
    return found


if __name__ == "__main__":
    sys.exit(min(_main(int(sys.argv[1])), 1))
