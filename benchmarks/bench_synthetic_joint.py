"""Joint runs of a synthetic table: gates, bytes, seconds. `make bench-synthetic`.

Two processes with a socket between them, from the first message to the last opening; fitting and drawing are not in
it, as every party does them alone. Adult: 30,162 records, 14 columns, horizontally by halves of the rows; 45,222 with
the test records, vertically by halves of the columns, once aligned. A table of 50 columns, horizontally. Beside the
figures stand the estimates made before the program (docs/performance.md) and what the program says before a run.

    python -m benchmarks.bench_synthetic_joint [adult] [vertical] [fifty]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anonymize.joint.roster import Roster
from anonymize.joint.synthetic.costs import Cost, Joined, Rows
from anonymize.joint.synthetic.horizontal import synthesize_horizontally
from anonymize.joint.synthetic.run import SyntheticRequest, cost_at_most
from anonymize.joint.synthetic.vertical import synthesize_aligned
from anonymize.synthetic.requirement import Synthetic
from anonymize.tds import Observer
from benchmarks.bench_dp import own_columns, part_of
from benchmarks.shared_jobs import OUT
from benchmarks.socket_driver import Measured, run_pair
from benchmarks.support import Row, publish
from benchmarks.synthetic_tables import Coded, adult, generated
from crypto.rng import SystemRng
from crypto.rounds import Rounds

PARTIES = ("p0", "p1")
LATENCY_S, BYTES_PER_S = 0.01, 12.5e6
"""One way of a round trip of 20 ms, at 100 Mbit/s."""
MAX_ROWS = 100_000


@dataclass(frozen=True)
class Estimate:
    """What was expected of a run before there was one; where nothing was said, 0."""

    gates: float
    megabytes: float
    line_s: float


class Gates(Observer):
    """Counts them."""

    def __init__(self) -> None:
        self.count = 0

    def gates(self, count: int) -> None:
        self.count += count


def requested(rows: Coded, edges: int) -> SyntheticRequest:
    return SyntheticRequest(rows.schema, Synthetic(Fraction(1), edges, MAX_ROWS), bytes(32))


def measured(release: Callable[..., Any], parts: Sequence[Any], request: SyntheticRequest, mode: str) -> Any:
    """Both processes' figures; the first's output is its gates and what was opened."""

    def side(me: str, part: Any) -> Any:
        def run(drive: Callable[[Rounds[Any]], Any]) -> Any:
            observer, roster = Gates(), Roster(me, PARTIES, *PARTIES)
            drive(release(roster, part, request, SystemRng(), mode=mode, observer=observer))
            return observer.count

        return run

    return run_pair({me: side(me, part) for me, part in zip(PARTIES, parts, strict=True)})


def figures(name: str, found: Mapping[str, Measured], said: Cost, estimate: Estimate) -> list[Row]:
    gates, sent = found["p0"].output, sum(each.bytes_sent for each in found.values())
    line = Cost(gates, sent, said.rounds).seconds(LATENCY_S, BYTES_PER_S)
    before = f"said before: {said.gates / 1e6:.1f} M, {said.bytes / 1e6:.0f} MB, {said.rounds} rounds"
    cpu = sum(each.cpu_s for each in found.values())
    return [
        Row(f"{name}, AND gates", gates / 1e6, "M", anchor=f"estimate {estimate.gates:g}; {before}"),
        Row(f"{name}, sent", sent / 1e6, "MB", anchor=f"estimate {estimate.megabytes:g}"),
        Row(f"{name}, loopback", max(each.wall_s for each in found.values()), "s"),
        Row(f"{name}, both processors", cpu, "CPU s"),
        Row(
            f"{name}, by bytes and rounds at 20 ms and 100 Mbit/s",
            line,
            "s",
            anchor=f"estimate {estimate.line_s:g}",
        ),
    ]


def of_rows(name: str, rows: Coded, edges: int, estimate: Estimate) -> list[Row]:
    request, table = requested(rows, edges), rows.table
    halves = [part_of(table, np.arange(i, len(table.weights), 2)) for i in (0, 1)]
    found = measured(synthesize_horizontally, halves, request, "dp/horizontal/synthetic")
    return figures(name, found, cost_at_most(request, Rows(2, MAX_ROWS)), estimate)


def of_columns(name: str, rows: Coded, edges: int, estimate: Estimate) -> list[Row]:
    request, table = requested(rows, edges), rows.table
    order = np.repeat(np.arange(len(table.weights)), table.weights)
    half = len(table.qid) // 2
    sides = [own_columns(table, order, range(half)), own_columns(table, order, range(half, len(table.qid)))]
    found = measured(synthesize_aligned, sides, request, "dp/vertical/synthetic")
    return figures(name, found, cost_at_most(request, Joined(range(half), len(order))), estimate)


def whole_adult() -> Coded:
    """The training and the test records."""
    parts = adult()
    leaves, classes = (np.concatenate([getattr(p, name) for p in parts]) for name in ("leaves", "classes"))
    return Coded(parts[0].schema, leaves, classes)


def fifty(n_rows: int = 30_000) -> Coded:
    """Fifty columns of 32 and of 6 values that depend on the class."""
    rng = np.random.default_rng(50)
    classes = rng.integers(0, 2, n_rows)
    sizes = {f"x{i}": (32, 6)[i % 2] for i in range(50)}
    columns = {
        name: np.minimum(rng.binomial(size, 0.3 + 0.2 * classes), size - 1) for name, size in sizes.items()
    }
    return generated(columns, sizes, classes)


PARTS: Mapping[str, Callable[[], list[Row]]] = {
    "adult": lambda: of_rows("Adult, rows of two", adult()[0], 9, Estimate(3.4, 150, 15)),
    "vertical": lambda: of_columns("Adult, columns of two", whole_adult(), 9, Estimate(3.4, 260, 25)),
    "fifty": lambda: of_rows("50 columns, rows of two", fifty(), 20, Estimate(28, 1100, 95)),
}


def main(names: Sequence[str]) -> None:
    rows = [row for name in names or PARTS for row in PARTS[name]()]
    publish("Joint runs of a synthetic table, ε = 1", rows, OUT / "bench-synthetic-joint.json")


if __name__ == "__main__":
    main(sys.argv[1:])
