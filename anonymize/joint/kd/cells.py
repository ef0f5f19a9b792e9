"""Last opening of a sealed kd run: the cells of the final groups, which are the released table.

Small tables are opened at once. Otherwise a group's cells are opened in runs, each step in sixteenths, only where a
run has records. So every step opens sums of released counts, at most 16 times the length of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from anonymize.criteria.criterion import RECORDS, Measure, Tally
from anonymize.criteria.views import views_of
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.pair import Pair
from anonymize.linked_columns import CountedBlock, Entries, linked_cells
from anonymize.table import MAX_RECORDS, CodedTable, Ints, Schema, tally
from crypto.errors import RemoteProtocolError
from crypto.rounds import Rounds
from crypto.shares import Shares, dtype, open_vector, width_for

_BITS = width_for(MAX_RECORDS)
_WORD = dtype(_BITS)

MOST_AT_ONCE = 1 << 19
"""Most cells of all groups opened in a step."""
_RADIX = 16


def open_blocks(
    pair: Pair,
    table: CodedTable,
    blocks: Sequence[CountedBlock],
    group: Ints,
    counts: Mapping[Measure, Ints],
    ledger: RevealLedger,
) -> Rounds[Entries]:
    """Run :func:`open_cells` for each block, and link the opened blocks in the fixed order of values.

    counts:  of the measures that judged the groups.
    """
    opened = []
    for block in blocks:
        told = {m: own for m, own in counts.items() if isinstance(m, Tally) and block.tells(m)}
        of_block: dict[Measure, Ints] = {block.renumbered(m): own for m, own in told.items()}
        opened.append((yield from open_cells(pair, block.own(table), group, of_block, ledger)))
    return linked_cells(table.schema, blocks, opened)


def open_cells(
    pair: Pair, table: CodedTable, group: Ints, counts: Mapping[Measure, Ints], ledger: RevealLedger
) -> Rounds[Entries]:
    """Open the non-empty cells of final groups to all: group, cell and count, in the order of group and cell.

    Functionality:  the records of all parties by (group, cell), to every party.
    Input, each:    ``table``, and the ``group`` of each of its rows; ``counts``, the opened counts of all measures
                    that judged the groups: public and equal for all, shape (n_groups,) each.
    Output, each:   int64, shape (n_entries,) each.
    Leakage:        sums of the output's counts over runs of cells. One bit: equality of the tallies to be opened and
                    the judged tallies.
    Rounds:         3 for a step, 1 more for the last if a sensitive column is protected; 2 and 1 for two parties. One
                    step, or log16 of the number of cells.
    Bytes:          from each party outside the pair 4 for each of the cells of every group, or 64 for each run with
                    records; from leader and deputy as many to every party.
    Assumes:        as :func:`crypto.shares.share_vector`.
    Source:         folklore.

    Raises RemoteProtocolError for impossible counts, or counts different from the judged counts.
    """
    schema, suspects = table.schema, pair.roster.suspects
    of_group, n_groups = counts[RECORDS], len(counts[RECORDS])
    radix = schema.n_cells if n_groups * schema.n_cells <= MOST_AT_ONCE else _RADIX
    span = 1
    while span < schema.n_cells:
        span *= radix
    groups, start, total = np.arange(n_groups), np.zeros(n_groups, dtype=np.int64), of_group
    run = group
    while span > 1:
        span //= radix
        part = (table.cells - start[run]) // span
        own = tally(run * radix + part, table.weights, len(groups) * radix).reshape(-1, radix)
        share = yield from pair.share_counts(own, total, _BITS)
        if span == 1:
            yield from _require_judged(pair, schema, (groups, start, total), share, counts, ledger)
        found = yield from pair.open_counts(share, own, total, _BITS)
        ledger.reveal("group_cells", found[:, :-1], "all")
        parent, child = np.nonzero(found)
        number = np.full(found.shape, -1, dtype=np.int64)
        number[parent, child] = np.arange(len(parent))
        run = number[run, part]
        groups, start, total = groups[parent], start[parent] + child * span, found[parent, child]
    if len(start) and int(start.max()) >= schema.n_cells:
        raise RemoteProtocolError(suspects, "shares/open", "records in cells that there are not")
    return groups, start, total


def _require_judged(
    pair: Pair,
    schema: Schema,
    runs: tuple[Ints, Ints, Ints],
    share: Shares | None,
    counts: Mapping[Measure, Ints],
    ledger: RevealLedger,
) -> Rounds[None]:
    """Check, before the opening, that the cells of every group have the judged tallies.

    The differences are opened. All are 0 if every party shares the same records as for the judged counts.

    runs:  group, first cell and records of each run. share: of all cells of a run but the last, flat.
    """
    judged = [measure for measure in counts if measure != RECORDS]
    if not judged:
        return
    n_groups = len(counts[RECORDS])
    flat = None
    if share is not None:
        tallies = [measure for measure in judged if isinstance(measure, Tally)]
        sums = _tallies(schema, tallies, runs, share, n_groups, leads=pair.roster.leads)
        public = _WORD.type(pair.roster.leads)
        flat = np.concatenate([sums[m] - counts[m].astype(_WORD) * public for m in judged])
    differences = yield from open_vector(pair.shares, len(judged) * n_groups, _BITS, flat)
    assert differences is not None
    if not ledger.reveal("same_counts", not differences.any(), "all"):
        message = "other records are to be opened than were judged"
        raise RemoteProtocolError(pair.roster.suspects, "kd/same", message)


def _tallies(
    schema: Schema,
    tallies: Sequence[Tally],
    runs: tuple[Ints, Ints, Ints],
    share: Shares,
    n_groups: int,
    *,
    leads: bool,
) -> dict[Measure, Shares]:
    """Return own shares of every group's tallies, from shares of its cells: shape (n_groups,) each."""
    group, start, total = runs
    told = share.reshape(len(group), -1)
    whole = total.astype(_WORD) if leads else np.zeros(len(group), dtype=_WORD)
    words = np.column_stack([told, whole - told.sum(axis=1, dtype=_WORD)])
    cells = start[:, None] + np.arange(words.shape[1])
    # Beyond the last cell there is nothing to count.
    there = np.minimum(cells, schema.n_cells - 1)
    found: dict[Measure, Shares] = {}
    for view in views_of(schema, tallies):
        labels = np.where(cells < schema.n_cells, view.of_cells(schema)[there], view.n_labels)
        by_label = np.zeros((view.n_labels + 1, n_groups), dtype=_WORD)
        np.add.at(by_label, (labels, np.broadcast_to(group[:, None], labels.shape)), words)
        found |= view.read(by_label)
    return found
