"""Page of a release of sequences for the owner of raw records: the risk of whole paths, before and after."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anonymize.criteria.criterion import Criterion
from anonymize.table import Ints, tally
from anonymize.trajectory.paths import Paths, collapsed
from anonymize.trajectory.requirement import bounds_of
from jobs.page.own import risk_section, rows_section
from jobs.page.parts import Section, facts, number, paragraph
from jobs.sequences.reading import Tracks, settings
from jobs.sequences.requirement import requirement
from jobs.sequences.sentences import item_words
from jobs.task import Task


def own_sections(task: Task, tracks: Tracks, raw: Paths, left: Paths | None) -> Iterator[Section]:
    """Yield the sections. left: the paths of the release, if all records are the owner's."""
    yield rows_section(tracks.rows.words())
    if not raw.n_records:
        return
    after = None if left is None else sizes_of_paths(left)
    yield risk_section(sizes_of_paths(raw), after, settings(task.job).K, _WHOLE, known=["the whole sequence"])
    lines = [
        ("Records", *(number(paths.n_records) for paths in (raw, left) if paths is not None)),
        ("Items of all records", *(number(paths.n_instances) for paths in (raw, left) if paths is not None)),
        ("Records without an item", *(number(paths.n_empty) for paths in (raw, left) if paths is not None)),
    ]
    head = ("measure", "before") if left is None else ("measure", "before", "after")
    yield Section("Records before and after", [facts(lines, head=head)])
    if left is not None:
        yield from _lost(task, tracks, raw, left)


def _lost(task: Task, tracks: Tracks, raw: Paths, left: Paths) -> Iterator[Section]:
    """Yield the items that most records lost, each with the requirement that the item alone breaks."""
    bounds = bounds_of(requirement(task.job), tracks.schema)
    codes = np.unique(raw.items).astype(np.int64)
    before, after = (_records_with(codes, paths, paths.weights) for paths in (raw, left))
    lost = before - after
    chosen = np.lexsort((codes, -lost))[:_MOST_ITEMS]
    chosen = chosen[lost[chosen] > 0]
    if not len(chosen):
        return
    counts = np.stack([_records_with(codes, raw, weights) for weights in bounds.weights(raw)])[:, chosen]
    one, many = item_words(task.job)
    lines = [
        (_label(tracks, int(code)), number(int(had)), number(int(has)), _why(criterion, many))
        for code, had, has, criterion in zip(
            codes[chosen], before[chosen], after[chosen], bounds.first_broken(counts), strict=True
        )
    ]
    words = f"The {many} that most records lost, at most {_MOST_ITEMS}."
    head = (one, "records before", "records after", "reason")
    yield Section(f"Lost {many}", [paragraph(words), facts(lines, head=head)])


_MOST_ITEMS = 20


def _records_with(codes: Ints, paths: Paths, weights: Ints) -> Ints:
    """Count the records with each of some items: int64, shape of codes. weights: records of each path."""
    return tally(np.searchsorted(codes, paths.items), np.repeat(weights, paths.lengths), len(codes))


def _label(tracks: Tracks, code: int) -> str:
    item = np.array([code])
    place = tracks.places[int(tracks.vocabulary.locations_of(item)[0])]
    return f"{place}, {tracks.times[int(tracks.vocabulary.cells_of(item)[0])]}" if tracks.times else place


def _why(criterion: Criterion | None, many: str) -> str:
    if criterion is None:
        return f"alone within the requirement, but not with other {many} of the record"
    if criterion.name == "K":
        return "in fewer records than K"
    return f"alone breaks {criterion.name}" + (f" of {criterion.column}" if criterion.column else "")


_WHOLE = (
    "The quasi-identifier of a record is its whole sequence here. The requirement bounds readers with L items of a "
    "sequence; see report.html."
)


def sizes_of_paths(paths: Paths) -> Ints:
    """Return the number of records of each different sequence, whatever the sensitive values."""
    alike = np.zeros(paths.n_paths, dtype=np.int64)
    different, number = collapsed(paths.items, paths.starts, alike, paths.domain)
    return tally(number, paths.weights, different.n_paths)
