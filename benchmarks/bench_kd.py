"""kd: one holder in memory, and sealed with three parties in one process. `make bench`.

The rows of a million are Adult's with a tenth of the quasi-identifiers redrawn. Times are seconds of one core; sealed
runs compute all three parties in it, one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.criterion import Demand
from anonymize.criteria.size import Size
from anonymize.joint.kd.sealed import JointKd, KdRequest, anonymize_kd_sealed
from anonymize.joint.roster import Roster
from anonymize.kd.metrics import Groups, Metrics, measure_loss
from anonymize.kd.single import KdOutcome, anonymize_kd
from anonymize.kd.table import release_of_boxes
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.table import CodedTable
from anonymize.tds import Observer
from benchmarks.kd_tables import adult, blown_up
from benchmarks.shared_jobs import OUT
from benchmarks.support import Row, median_cpu_s, publish
from crypto.local import Transcript, run_local
from crypto.rng import SystemRng
from crypto.rounds import Rounds

MILLION = 1_000_000
NAMES = ("a", "b", "c")


def required(table: CodedTable, *, diverse: bool) -> AskedList:
    """K = 50, and no group of one value in any sensitive column: C of one record less than all."""
    schema, n = table.schema, table.n_records
    demands: tuple[Demand, ...] = (Size(50),)
    if diverse:
        demands += (Confidences(bounds=tuple((c.name, Fraction(n - 1, n)) for c in schema.sensitive)),)
    return AskedList((Ask(len(schema.qid), demands),))


def single_rows(name: str, table: CodedTable, targets: dict[bool, float], runs: int) -> list[Row]:
    """Time, and what the table is worth."""
    rows = []
    for diverse, target in targets.items():
        requirement = required(table, diverse=diverse)

        def run(requirement: AskedList = requirement) -> None:
            anonymize_kd(table, requirement)

        seconds = median_cpu_s(run, runs)
        outcome = anonymize_kd(table, requirement)
        found, ncp = worth(outcome)
        said = f"{found.groups} groups, smallest {found.smallest}, average {found.average_group:.1f}"
        title = f"{name}, K=50{', diversity 2' if diverse else ''}"
        rows.append(Row(title, seconds, "CPU s", target, anchor=f"{said}, NCP {ncp:.3f}"))
    return rows


def worth(outcome: KdOutcome) -> tuple[Metrics, float]:
    """Of a table its groups, and NCP."""
    release = release_of_boxes(outcome.schema, outcome.table)
    names = [column.name for column in outcome.schema.qid]
    return Groups(release, names, []).metrics, measure_loss(outcome.schema, outcome.table).ncp


def worth_rows(table: CodedTable) -> list[Row]:
    """What the issue asks of Adult."""
    outcome = anonymize_kd(table, required(table, diverse=False))
    found, ncp = worth(outcome)
    return [
        Row("Adult, K=50: groups", found.groups, "", 600, "more", anchor="top-down, L=8: 48"),
        Row("Adult, K=50: average group", found.average_group, "records", 80, anchor="top-down, L=8: 2,701"),
        Row("Adult, K=50: NCP", ncp, "", 0.28, anchor="top-down, L=8: 0.53"),
    ]


@dataclass
class Counting(Observer):
    """Gates and fronts of a run at one of the pair."""

    and_gates: int = 0
    fronts: int = 0

    def gates(self, count: int) -> None:
        self.and_gates += count

    def front(self, number: int, n_open: int, n_cut: int) -> None:
        self.fronts = number


def sealed_rows(table: CodedTable) -> list[Row]:
    """Three parties in one process."""
    owner = np.random.default_rng(0).integers(0, len(NAMES), len(table.cells))
    tables = {name: table.some(np.flatnonzero(owner == i)) for i, name in enumerate(NAMES)}
    rows = []
    for diverse in (False, True):
        request = KdRequest(table.schema, required(table, diverse=diverse), bytes(32))
        ran: list[tuple[Transcript, Counting]] = []

        def run(request: KdRequest = request, ran: list[tuple[Transcript, Counting]] = ran) -> None:
            counting = Counting()
            results, transcript = run_local(
                {me: _party(me, tables[me], request, counting if me == "a" else Observer()) for me in NAMES}
            )
            assert results["c"].table.n_groups
            ran.append((transcript, counting))

        seconds = median_cpu_s(run, 3)
        transcript, counting = ran[-1]
        pair = sum(len(m.payload) for m in transcript.messages if {m.sender, m.recipient} == {"a", "b"})
        rounds = max(m.depth for m in transcript.messages)
        said = (
            f"{counting.fronts} fronts, {counting.and_gates / 1e6:.2f} M AND, {rounds} rounds, "
            f"{pair / 1e6:.0f} MB between the pair"
        )
        title = f"sealed, 3 parties, Adult, K=50{', diversity 2' if diverse else ''}: all parties"
        rows.append(Row(title, seconds, "CPU s", 6, anchor=said))
    return rows


def _party(me: str, table: CodedTable, request: KdRequest, observer: Observer) -> Rounds[JointKd]:
    roster = Roster(me, NAMES, NAMES[0], NAMES[1])
    return anonymize_kd_sealed(
        roster, table, request, SystemRng(), mode="horizontal/sealed/kd", observer=observer
    )


def main() -> None:
    table = adult()
    rows = [*worth_rows(table), *single_rows("Adult 45 k × 8", table, {False: 0.2, True: 0.2}, 5)]
    large = blown_up(table, MILLION)
    rows += single_rows("1 M × 8, 4 sensitive, in memory", large, {False: 2, True: 3}, 3)
    publish("kd", [*rows, *sealed_rows(table)], OUT.parent / "bench-kd.json")


if __name__ == "__main__":
    main()
