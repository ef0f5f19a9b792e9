"""Figures of a report that do not follow from its table, held against the table and against each other.

What became of raw readings only their holder can count. But figures of one report belong together: a reader finds out
some that cannot be, and for the rest has the holder's word. Of a joint run all figures follow but the sweeps, which
its parties sign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from itertools import pairwise
from math import comb
from operator import le
from typing import Any

from anonymize.joint.disclosure import RevealLedger
from anonymize.trajectory.exclusion import Exclusion, Untested, excludes
from anonymize.trajectory.gaps import SAMPLE, Gaps, Guessed
from anonymize.trajectory.paths import Paths
from anonymize.trajectory.sweep import Sweep
from crypto.errors import LocalProtocolError
from jobs.data.rows_read import WITHOUT_VALUE
from jobs.owner.charge import reveal_earlier
from jobs.release.encoded import MALFORMED
from jobs.release.report import as_text
from jobs.release.reveals import reveal_fields
from jobs.sequences.domains import is_wide, places_of, time_column, vocabulary_in
from jobs.sequences.reading import ReadingsRead, settings
from jobs.sequences.report import exclusion_fields, gaps_fields, sweeps_fields
from jobs.sequences.result import coding_of, sweeps_of
from jobs.sequences.settings import GLOBAL, REPAIR
from jobs.sequences.settings import REPORT as SAID
from jobs.task import Task


@dataclass(frozen=True)
class Lost:
    """Items that are gone, of how many, and how many records lost one."""

    instances: int = field(repr=False)
    of_instances: int = field(repr=False)
    records: int = field(repr=False)


@dataclass(frozen=True)
class Stated:
    """A report beside a table. Its figures are properties, which raise one of MALFORMED where they are none.

    sequences:  how many the table has, by size. maximal: how many are maximal frequent; None: too many to be counted.
    """

    task: Task
    paths: Paths = field(repr=False)
    report: Mapping[str, Any] = field(repr=False)
    sequences: tuple[int, ...]
    maximal: int | None

    @cached_property
    def sweeps(self) -> tuple[Sweep, ...]:
        return sweeps_of(self.report["sweeps"], settings(self.task.job).L)

    @cached_property
    def lost(self) -> Lost:
        said = self.report["lost"]
        found = Lost(*(_number(said, each.name) for each in fields(Lost)))
        if not _same(said, asdict(found)):
            raise ValueError("more than what was lost")
        return found

    @cached_property
    def repaired(self) -> bool:
        """Whether records were emptied beside what suppression took."""
        return bool(self.report["exclusion"].get("turns", 0))

    @cached_property
    def everywhere(self) -> bool:
        return settings(self.task.job).suppress == GLOBAL


def disputed(stated: Stated) -> Iterator[str]:
    """Keys of the report with figures that cannot be."""
    of_it = _OF_A_JOINT_RUN if stated.task.job.roster else _OF_ONE_HOLDER
    for key, can_be in of_it.items():
        try:
            if not can_be(stated):
                yield key
        except (*MALFORMED, AttributeError, LocalProtocolError):
            yield key


def figures_of(task: Task) -> tuple[str, ...]:
    """Keys of a report that do not follow from its table, of those that such a report has."""
    return tuple(_OF_A_JOINT_RUN if task.job.roster else _OF_ONE_HOLDER)


def unchecked(task: Task) -> tuple[str, ...]:
    """Keys of a report of which a reader has somebody's word: their figures are only held against the others."""
    return ("sweeps",) if task.job.roster else tuple(key for key in _OF_ONE_HOLDER if key != "reveals")


def _number(said: Mapping[str, Any], name: str) -> int:
    """A number of 0 or more. Raises ValueError, TypeError or LookupError."""
    found = said[name]
    if type(found) is not int or found < 0:
        raise ValueError(f"{name} is no such number")
    return found


def _same(told: Any, found: Any) -> bool:
    return as_text(told) == as_text(found)


def _sweeps(on: Stated) -> bool:
    """The first asks for every item, then for all sets of which each part is kept; the last keeps what is left."""
    first, *later = on.sweeps
    every = first.tested[0] == on.paths.domain or places_of(on.task) is None
    pairs_on = [comb(first.kept[0], size) for size in range(2, len(first.kept) + 1)]
    joined = first.tested[1:2] == tuple(pairs_on[:1]) and all(map(le, first.tested[1:], pairs_on))
    fewer = all(all(map(le, sweep.kept, sweep.tested)) for sweep in on.sweeps)
    written = _same(on.report["sweeps"], sweeps_fields(on.sweeps)["sweeps"])
    if not (every and joined and fewer and written):
        return False
    left = on.sequences + (0,) * (len(first.kept) - len(on.sequences))
    if on.everywhere:
        return not later and all(map(le, left, first.kept))
    return _in_turn(on.sweeps) and on.sweeps[-1].kept == left


def _in_turn(sweeps: Sequence[Sweep]) -> bool:
    """Whether each asks for what the one before kept, and only the last keeps all of it."""
    again = all(
        now.tested[0] == before.kept[0]
        and all(map(le, now.tested, before.kept))
        and (now.kept == before.kept) == (now is sweeps[-1])
        for before, now in pairwise(sweeps)
    )
    return len(sweeps) > 1 and again


def _items_suppressed(on: Stated) -> bool:
    """Each is lost by some record. Local suppression takes none from all, and global takes nothing else."""
    n = on.report["items_suppressed"]
    if type(n) is not int or not 0 <= n <= (on.lost.instances if on.everywhere else 0):
        return False
    first, *_ = on.sweeps
    no_more = n == 0 and on.everywhere
    return not no_more or (sum(first.kept) == sum(on.sequences) and (on.repaired or on.lost.instances == 0))


def _lost(on: Stated) -> bool:
    """Every raw record has an item, and none more than the job allows; so one that has none left lost some."""
    lost, most = on.lost, settings(on.task.job).max_items
    return (
        lost.of_instances - lost.instances == on.paths.n_instances
        and lost.of_instances <= on.paths.n_records * most
        and on.paths.n_empty <= lost.records <= min(lost.instances, on.paths.n_records)
        and lost.instances <= lost.records * most
    )


def _frequent(on: Stated) -> bool:
    """What was maximal frequent before and after. None where there was too much to count, as in the table itself."""
    said = on.report["frequent"]
    if said is None or on.maximal is None:
        return said is None
    before, after, kept = (_number(said, name) for name in ("before", "after", "kept"))
    mean, greatest = (said[f"{which}_support_lost"] for which in ("mean", "greatest"))
    if len(said) != _FREQUENT_FIGURES or not all(type(part) is float for part in (mean, greatest)):
        return False
    nothing_lost = greatest == 0 and before == after == kept
    return (
        after == on.maximal
        and kept <= min(before, after)
        and 0 <= mean <= greatest <= 1
        and (mean > 0) == (greatest > 0)
        and (nothing_lost or on.lost.instances > 0)
    )


def _exclusion(on: Stated) -> bool:
    """What can be found out by discarding records; a job that asks for a test has one, in which nothing was found."""
    asked, said, lost = settings(on.task.job), on.report["exclusion"], on.lost
    if not excludes(on.paths, vocabulary_in(on.task, on.paths)):
        return _same(said, exclusion_fields(None, time_column(on.task.job) is not None, 0, 0))
    if said["exposed"] is None:
        return asked.exclusion == SAID and _same(said, exclusion_fields(Untested(), True, 0, 0))
    exposed, records, turns, emptied = (
        _number(said, name) for name in ("exposed", "records", "turns", "emptied")
    )
    fewest = None if said["fewest_candidates"] is None else _number(said, "fewest_candidates")
    if asked.exclusion != SAID and exposed:
        return False
    left = lost.instances == 0 if fewest is None else fewest <= on.paths.n_records and lost.instances > 0
    enough = fewest is None or fewest >= asked.K or exposed > 0
    by_repair = turns <= emptied <= lost.instances and (turns > 0) == (emptied > 0)
    found = Exclusion((), records, fewest)
    whole = exclusion_fields(found, True, turns, emptied) | {"exposed": exposed}
    return (
        _same(said, whole)
        and left
        and enough
        and records <= lost.records
        and (records > 0) == (exposed > 0)
        and by_repair
        and (turns == 0 or asked.exclusion == REPAIR)
    )


def _gaps(on: Stated) -> bool:
    """Who knows more guesses no worse, and what is sure is likely."""
    said = on.report["gaps"]
    sampled = SAMPLE if on.lost.instances else 0
    different = _number(said, "different")
    neighbours, timed = (
        Guessed(_number(said["likely"], reader), _number(said["sure"], reader))
        for reader in ("neighbours", "timed")
    )
    alike = neighbours == timed or time_column(on.task.job) is not None
    return (
        _same(said, gaps_fields(Gaps(sampled, different, neighbours, timed)))
        and min(sampled, 1) <= different <= min(sampled, on.lost.instances)
        and alike
        and neighbours.sure <= neighbours.likely <= timed.likely <= sampled
        and neighbours.sure <= timed.sure <= timed.likely
    )


def _data(on: Stated) -> bool:
    """What became of the rows. Every item was in a row that was used, and every record had one."""
    said, wide = on.report["data"], is_wide(on.task.job)
    read, used, records, without = (
        _number(said, name) for name in ("read", "used", "records", "records_dropped")
    )
    gone = read - used
    dropped = {name: _number(why, WITHOUT_VALUE) for name, why in said["dropped"].items()}
    told = {name: {WITHOUT_VALUE: n} for name, n in dropped.items()}
    of_rows = used == records if wide else used >= max(records, on.lost.of_instances)
    return (
        dropped.keys() <= set(on.task.job.names("location", "time", "items", "sensitive"))
        and _same(said, ReadingsRead(read, used, told, records=records, without=without).fields())
        and all(0 < n <= gone for n in dropped.values())
        and gone <= sum(dropped.values())
        and records == on.paths.n_records
        and of_rows
        and (without == gone if wide else without <= gone)
    )


def _nothing_revealed(on: Stated) -> bool:
    return _same(on.report["reveals"], [])


def _reveals(on: Stated) -> bool:
    """What a run with these sweeps and records reveals, and nothing else."""
    task, said = on.task, on.report["reveals"]
    n_parties, ledger = len(task.job.roster), RevealLedger(task.mode.name)
    if said[0]["name"] == "earlier_run":
        reveal_earlier(ledger, n_parties)
    ledger.reveal("root_check", None, "all", ())
    ledger.reveal("root_counts", None, "all", (task.schema.n_cells,))
    for sweep in on.sweeps:
        ledger.iteration += sweep.tested[0] > 0
        for n in filter(None, sweep.tested):
            ledger.reveal("kept", None, "all", (n,))
    ledger.reveal("row_counts", None, "leader", (n_parties,))
    ledger.reveal("rows", None, "all", (on.paths.n_records, coding_of(task).width))
    return _same(said, reveal_fields(ledger))


_FREQUENT_FIGURES = 5
_OF_ONE_HOLDER: Mapping[str, Callable[[Stated], bool]] = {
    "sweeps": _sweeps,
    "items_suppressed": _items_suppressed,
    "lost": _lost,
    "frequent": _frequent,
    "exclusion": _exclusion,
    "gaps": _gaps,
    "data": _data,
    "reveals": _nothing_revealed,
}
_OF_A_JOINT_RUN: Mapping[str, Callable[[Stated], bool]] = {
    "sweeps": _sweeps,
    "reveals": _reveals,
}
