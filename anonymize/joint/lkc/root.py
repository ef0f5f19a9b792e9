"""Whole table of a sealed horizontal run: the root check, and then the counts, to all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonymize.errors import PrivacyError
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.lkc.sealed import RootTests
from anonymize.joint.messages import decode_bit, encode_bit
from anonymize.joint.pair import Pair
from anonymize.lkc.requirement import Entry, check_root_of_cells, check_sizes, given
from anonymize.table import MAX_RECORDS, Ints, Schema
from crypto.encoding import as_words
from crypto.errors import RemoteProtocolError
from crypto.rounds import Rounds
from crypto.shares import share_vector, width_for

_CELL_BITS = width_for(MAX_RECORDS)


def open_root(
    pair: Pair,
    schema: Schema,
    entries: Sequence[Entry],
    own: Ints,
    ledger: RevealLedger,
    step: str,
    refused: PrivacyError,
) -> Rounds[tuple[tuple[Entry, ...], Ints]]:
    """Check the whole table, and open its counts if it meets the requirement.

    Functionality:  a bit: the table of all meets every criterion and is small enough for exact arithmetic; if so, its
                    records of every cell.
    Input, each:    ``own``, records by cell: int64, shape (n_cells,). All else is public and equal for all.
    Output, each:   the entries, given the counts of the whole table, and the counts: int64, shape (n_cells,).
    Leakage:        the output; if the bit is 0, nothing else.
    Rounds:         6 with the counts, 4 with two parties; an opening of more than 1 MiB takes 1 more for every
                    further MiB. Criteria of more than ``MANY_CASES`` cases are tested side by side: 2 more.
    Bytes:          those of one circuit over words of 64 bits between the pair, and of these batches; as
                    :func:`crypto.shares.share_vector` of n_cells words, and of the tested words;
                    :func:`~crypto.shares.open_vector` of n_cells words; the bit, as :meth:`Pair.tell`.
    Assumes:        as those.
    Source:         semantics §6.

    Raises PrivacyError, ``refused``, if the bit is 0; RemoteProtocolError for a malformed message, or opened counts
    that are not valid.
    """
    yield from check_root(pair, schema, entries, own, ledger, step, refused)
    counts = yield from open_counts(pair, own, ledger)
    return opened_root(pair, schema, entries, counts, step), counts


def check_root(
    pair: Pair,
    schema: Schema,
    entries: Sequence[Entry],
    own: Ints,
    ledger: RevealLedger,
    step: str,
    refused: PrivacyError,
) -> Rounds[None]:
    """Run the first half of :func:`open_root`: the bit."""
    roster, tests = pair.roster, RootTests(schema, entries)
    share = yield from share_vector(pair.shares, as_words(tests.counts(own)))
    met = False
    if pair.engine is not None and share is not None:
        met = yield from tests.met(pair.engine, share.astype(np.uint64))
    payload = yield from pair.tell(step, encode_bit(met))
    if not ledger.reveal("root_check", decode_bit(payload, roster.leader, step), "all"):
        raise refused


def open_counts(pair: Pair, own: Ints, ledger: RevealLedger) -> Rounds[Ints]:
    """Run the second half of :func:`open_root`: all parties' counts; own: own counts, int64, shape (n_counts,)."""
    share = yield from pair.share_counts(own, None, _CELL_BITS)
    counts = yield from pair.open_counts(share, own, None, _CELL_BITS)
    return ledger.reveal("root_counts", counts, "all")


def opened_root(
    pair: Pair, schema: Schema, entries: Sequence[Entry], counts: Ints, step: str
) -> tuple[Entry, ...]:
    """Return the entries, given public counts of the whole table.

    Raises RemoteProtocolError for counts that violate the entries.
    """
    now = given(entries, schema, counts)
    check_sizes(now, int(counts.sum()))
    if check_root_of_cells(schema, now, counts) is not None:
        raise RemoteProtocolError(
            pair.roster.judges, step, "counts were opened that do not meet the requirement"
        )
    return now
