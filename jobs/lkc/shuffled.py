"""Rows with plain columns of a joint horizontal run: shuffled after the protocol, before the parties sign.

Counts do not hold plain columns, so each party reads its rows again (pass 2), and :mod:`crypto.mixing` combines all
rows. If all parties receive the table, the compared and signed result includes the rows. If only the coordinator
receives the table, the rows are sealed to the coordinator's key of the run, and the result has a digest of the
boxes. The coordinator then cannot receive different boxes than the parties have checked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

from anonymize.errors import DataError
from anonymize.joint.disclosure import MIX, Allowed, RevealLedger, mixed_reveals
from anonymize.release import Release
from anonymize.tds import Observer
from crypto.errors import LocalProtocolError
from crypto.mixing import SEAL_BYTES, VOUCHER_BYTES, agree_width, mix_for_recipient, mix_rows
from crypto.rng import Rng
from crypto.rounds import Rounds
from crypto.shares import ComputePair
from jobs.data.arrow import pa
from jobs.data.sources import Source
from jobs.data.tables import Table
from jobs.errors import PartyError
from jobs.lkc.parts import rows_shuffled
from jobs.lkc.release import table_of_rows
from jobs.lkc.result import Made
from jobs.lkc.rows import TEXT_WIDTHS, RowCoding, row_coding
from jobs.release.csv import labelled_release, same_rows
from jobs.release.encoded import MALFORMED
from jobs.release.reveals import reveal_fields
from jobs.release.shuffled_rows import ShuffledRows, unframed
from jobs.task import RunInputs, Task

MAX_BYTES = 1 << 30
"""Most bytes of all rows together in their slots. Every party sends as many bytes to the deputy."""


def mix(
    task: Task, me: str, table: Table, result: Made, run_inputs: RunInputs, rng: Rng, observer: Observer
) -> Rounds[Made]:
    """Add the rows of all parties to a result, if the job has plain columns.

    Functionality:  :func:`crypto.mixing.agree_width`, then :func:`~crypto.mixing.mix_rows` or, where only the
                    coordinator receives the table, :func:`~crypto.mixing.mix_for_recipient`, of the generalized
                    rows.
    Input, each:    its table; ``besides``: the source for a second reading, and the coordinator's key.
    Output, each:   the result with the shuffled rows.
    Leakage:        as there: `row_width`, `row_counts`, `rows` of the reveal ledger.
    Rounds, Bytes:  as there.
    Assumes:        as there.
    Source:         as there.

    Raises DataError if the source changed since pass 1, or a row is too long; PartyError if all rows together are
    too long, or do not add up to the counts; and the errors of the functions above.
    """
    if not rows_shuffled(task):
        return result
    observer.phase(MIX)
    coding, own = row_coding(task, result), _own_rows(task, table, result, run_inputs.source)
    roster = task.roster(me)
    who = (me, roster.parties, ComputePair(roster.leader, roster.deputy))
    needed = coding.text_bytes(own)
    if needed > TEXT_WIDTHS[-1]:
        raise _too_long(coding, f"a row has more than {TEXT_WIDTHS[-1]:,} bytes in plain columns")
    width = yield from agree_width(*who, needed, TEXT_WIDTHS, task.digest, rng)
    total = result.n_records
    if total * (coding.coded_bytes + width + SEAL_BYTES + VOUCHER_BYTES) > MAX_BYTES:
        raise _too_long(coding, f"all rows, each with {width:,} bytes for plain columns, are more than 1 GiB")
    rows = coding.encoded(own, width)
    ledger = RevealLedger(task.mode.name, task.reveals, observer)
    ledger.iteration = max((reveal["iteration"] for reveal in result.reveals), default=0)
    ledger.reveal("row_width", None, "all", ())
    ledger.reveal("row_counts", None, "leader", (len(roster.parties),))
    if task.job.deliver == "all":
        table_of_all = yield from mix_rows(*who, rows, total, rng)
        ledger.reveal("rows", table_of_all, "all")
        mixed = ShuffledRows(rows.shape[1], rows=table_of_all)
        table_of_rows(task, result, table_of_all)
    else:
        if run_inputs.recipient is None:
            raise LocalProtocolError("the coordinator alone receives the rows, and has no key")
        sealed = yield from mix_for_recipient(*who, rows, total, run_inputs.recipient, rng)
        ledger.reveal("rows", None, "coordinator", (total, rows.shape[1]))
        slips = hashlib.sha256(sealed.slips.tobytes()).hexdigest()
        mixed = ShuffledRows(rows.shape[1], slips=slips, boxes=sealed.boxes)
    told = tuple(reveal_fields(ledger))
    return replace(result, mixed=mixed, reveals=result.reveals + told, own_reveals=result.own_reveals + told)


def reveals_of_rows(task: Task) -> tuple[Allowed, ...]:
    """Return the reveals of rows beside the lists of mode and method."""
    return mixed_reveals(task.job.deliver) if rows_shuffled(task) else ()


def decode(task: Task, encoded: bytes, sender: str, counts: Callable[[Task, bytes, str], Made]) -> Made:
    """Read a result, with its rows where rows are shuffled; ``counts``: reads the part made of counts.

    Raises PartyError (peer-protocol) for a malformed result.
    """
    if not rows_shuffled(task):
        return counts(task, encoded, sender)
    try:
        inner, mixed = unframed(encoded)
    except MALFORMED as error:
        raise PartyError("peer-protocol", "the rows of the result are malformed", party=sender) from error
    result = replace(counts(task, inner, sender), mixed=mixed)
    if mixed.rows is not None and len(mixed.rows) != result.n_records:
        raise PartyError("peer-protocol", "the result has other rows than records", party=sender)
    return result


def _own_rows(task: Task, table: Table, result: Made, source: Source | None) -> Release:
    """Return our generalized rows with their plain columns. Raises DataError if different rows were counted."""
    if source is None:
        raise LocalProtocolError("plain columns are read again, and there is nothing to read")
    batches = list(result.relabelled(source, task, table))
    release = labelled_release(pa.Table.from_batches(batches)) if batches else None
    counted = result.own_counted(table)
    if release is None or not same_rows(release, counted, list(counted.columns)):
        raise DataError("data-unreadable", "the table changed during the job", private=source.identity)
    return release


def _too_long(coding: RowCoding, message: str) -> DataError:
    return DataError("row-too-long", f"columns.{coding.plain[0]}: {message}")
