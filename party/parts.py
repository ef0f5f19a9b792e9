"""What a party hands to the coordinator in the end: the result, and what of the table does not follow from it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from anonymize.joint.horizontal import JointOutcome
from anonymize.joint.vertical import VerticalOutcome
from anonymize.release import random_order
from crypto.rng import Rng
from party.bundle import Bundle
from party.data import Loaded, LoadedColumns, Source, cell_columns, generalized_rows
from party.dp_result import DpResult, decode_dp_result
from party.protocols import Result
from party.release_file import rows_to_csv
from party.result import LkcResult, decode_result, encode_result


def encoded_result(result: Result) -> bytes:
    """The canonical bytes that parties compare and the coordinator collects."""
    return result.encoded if isinstance(result, DpResult) else encode_result(result)


def decoded_result(encoded: bytes, bundle: Bundle, sender: str) -> LkcResult | DpResult:
    """Read what :func:`encoded_result` wrote. Raises PartyError (peer-protocol) for anything malformed."""
    if bundle.job.model.dp is not None:
        return decode_dp_result(encoded, bundle, sender)
    return LkcResult(*decode_result(encoded, bundle.result_schema(), sender))


def part_of(
    name: str,
    bundle: Bundle,
    me: str,
    source: Source,
    loaded: Loaded | LoadedColumns,
    result: Result,
    rng: Rng,
) -> bytes:
    """One of the parts that :meth:`party.job.Job.parts_of` lists.

    result:   steps and T_g.
    rows:     our generalized rows with their plain columns (pass 2), in random order.
    columns:  our sensitive and plain columns, entry by entry of T_g, in random order inside each.
    """
    if name == "result":
        return encoded_result(result)
    assert isinstance(result, JointOutcome)
    if name == "rows":
        outcome = result.outcome
        batches = generalized_rows(source, bundle, outcome.schema, outcome.cut)
        return rows_to_csv(_shuffled(list(batches), rng), bundle.job.published)
    assert isinstance(loaded, LoadedColumns)
    assert isinstance(result, VerticalOutcome)
    batch = cell_columns(source, bundle, me, loaded.holding, result.rows)
    return rows_to_csv([batch], batch.schema.names)


def _shuffled(batches: Sequence[pa.RecordBatch], rng: Rng) -> list[pa.RecordBatch]:
    """All rows in a random order: that of the file may say who came when."""
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    order = pa.array(random_order(table.num_rows, rng))
    shuffled: list[pa.RecordBatch] = table.take(order).combine_chunks().to_batches()
    return shuffled
