"""Benchmark of kd: a holder in memory, and sealed with three parties in a single process. `make bench AREA=kd`.

The million rows are Adult's with a tenth of the quasi-identifiers redrawn. Times are seconds of a single core;
sealed runs compute all three parties there in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from anonymize.criteria.criterion import Demand
from anonymize.criteria.ruled_out import DiverseValues
from anonymize.criteria.size import Size
from anonymize.joint.kd.sealed import JointKd, KdRequest, anonymize_kd_sealed
from anonymize.joint.roster import Roster
from anonymize.kd.metrics import Groups, Metrics, measure_loss
from anonymize.kd.single import KdOutcome, anonymize_kd
from anonymize.kd.table import release_of_boxes
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.table import CodedTable
from anonymize.tds import Observer
from benchmarks.kd_tables import CUTS, adult, blown_up
from benchmarks.shared_jobs import OUT
from benchmarks.support import Row, median_cpu_s, publish
from crypto.local import Transcript, run_local
from crypto.rng import SystemRng
from crypto.rounds import Rounds

MILLION = 1_000_000
NAMES = ("a", "b", "c")


def required(table: CodedTable, diversity: int = 1) -> AskedList:
    """Return K = 50 with a diversity; diversity 2: no group has a single value in any sensitive column."""
    demands: tuple[Demand, ...] = (Size(50),) if diversity < 2 else (Size(50), DiverseValues(diversity))
    return AskedList((Ask(len(table.schema.qid), demands),))


def with_none_unprotected(table: CodedTable) -> CodedTable:
    """Unprotect "no gain" and "no loss": every record has one of the two, which leaves no diversity of 3."""
    columns = tuple(
        replace(column, protected=column.protected[1:]) if column.name in CUTS else column
        for column in table.schema.sensitive
    )
    return replace(table, schema=replace(table.schema, sensitive=columns))


def single_rows(name: str, table: CodedTable, targets: dict[int, float], runs: int) -> list[Row]:
    """Measure time, and the worth of the table."""
    rows = []
    for diversity, target in targets.items():
        requirement = required(table, diversity)

        def run(requirement: AskedList = requirement) -> None:
            anonymize_kd(table, requirement)

        seconds = median_cpu_s(run, runs)
        outcome = anonymize_kd(table, requirement)
        found, ncp = worth(outcome)
        said = f"{found.groups} groups, smallest {found.smallest}, average {found.average_group:.1f}"
        title = f"{name}, K=50{_said(diversity)}"
        rows.append(Row(title, seconds, "CPU s", target, anchor=f"{said}, NCP {ncp:.3f}"))
    return rows


def worth(outcome: KdOutcome) -> tuple[Metrics, float]:
    """Return the groups of a table, and NCP."""
    release = release_of_boxes(outcome.schema, outcome.table)
    names = [column.name for column in outcome.schema.qid]
    return Groups(release, names, []).metrics, measure_loss(outcome.schema, outcome.table).ncp


def worth_rows(table: CodedTable) -> list[Row]:
    """Measure the loss of Adult for which the target is set."""
    outcome = anonymize_kd(table, required(table))
    found, ncp = worth(outcome)
    return [
        Row("Adult, K=50: groups", found.groups, "", 600, "more", anchor="top-down, L=8: 48"),
        Row("Adult, K=50: average group", found.average_group, "records", 80, anchor="top-down, L=8: 2,701"),
        Row("Adult, K=50: NCP", ncp, "", 0.28, anchor="top-down, L=8: 0.53"),
    ]


@dataclass
class Counting(Observer):
    """Gates and fronts of a run at a member of the pair."""

    and_gates: int = 0
    fronts: int = 0

    def gates(self, count: int) -> None:
        self.and_gates += count

    def front(self, number: int, n_open: int, n_cut: int) -> None:
        self.fronts = number


def sealed_rows(table: CodedTable) -> list[Row]:
    """Measure three parties in a single process."""
    owner = np.random.default_rng(0).integers(0, len(NAMES), len(table.cells))
    rows = []
    for diversity, target, runs in ((1, 6, 3), (2, 6, 3), (3, None, 1)):
        whole = table if diversity < 3 else with_none_unprotected(table)
        tables = {name: whole.some(np.flatnonzero(owner == i)) for i, name in enumerate(NAMES)}
        request = KdRequest(whole.schema, required(whole, diversity), bytes(32))
        ran: list[tuple[Transcript, Counting]] = []

        def run(
            request: KdRequest = request,
            tables: dict[str, CodedTable] = tables,
            ran: list[tuple[Transcript, Counting]] = ran,
        ) -> None:
            counting = Counting()
            results, transcript = run_local(
                {me: _party(me, tables[me], request, counting if me == "a" else Observer()) for me in NAMES}
            )
            assert results["c"].table.n_groups
            ran.append((transcript, counting))

        seconds = median_cpu_s(run, runs)
        transcript, counting = ran[-1]
        pair = sum(len(m.payload) for m in transcript.messages if {m.sender, m.recipient} == {"a", "b"})
        rounds = max(m.depth for m in transcript.messages)
        said = (
            f"{counting.fronts} fronts, {counting.and_gates / 1e6:.2f} M AND, {rounds} rounds, "
            f"{pair / 1e6:.0f} MB between the pair"
        )
        title = f"sealed, 3 parties, Adult, K=50{_said(diversity)}: all parties"
        detail = {"gates": counting.and_gates}
        rows.append(Row(title, seconds, "CPU s", target, anchor=said, detail=detail))
    return rows


def _said(diversity: int) -> str:
    return f", diversity {diversity}" if diversity > 1 else ""


def _party(me: str, table: CodedTable, request: KdRequest, observer: Observer) -> Rounds[JointKd]:
    roster = Roster(me, NAMES, NAMES[0], NAMES[1])
    return anonymize_kd_sealed(
        roster, table, request, SystemRng(), mode="horizontal/sealed/kd", observer=observer
    )


def main() -> None:
    table = adult()
    rows = [*worth_rows(table), *single_rows("Adult 45 k × 8", table, {1: 0.2, 2: 0.2}, 5)]
    large = blown_up(table, MILLION)
    rows += single_rows("1 M × 8, 4 sensitive, in memory", large, {1: 2, 2: 3}, 3)
    rows += single_rows("1 M × 8, 4 sensitive, in memory", with_none_unprotected(large), {3: 5, 4: 10}, 3)
    publish("kd", [*rows, *sealed_rows(table)], OUT.parent / "bench-kd.json")


if __name__ == "__main__":
    main()
