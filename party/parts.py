"""What a party hands to the coordinator in the end: the result, and what of the table does not follow from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from anonymize.joint.horizontal import JointOutcome
from anonymize.joint.vertical import VerticalOutcome
from crypto.rng import Rng
from party.bundle import Bundle
from party.data import Loaded, LoadedColumns, Source, cell_columns, generalized_rows
from party.release_file import rows_to_csv
from party.result import encode_result


def part_of(
    name: str,
    bundle: Bundle,
    me: str,
    source: Source,
    loaded: Loaded | LoadedColumns,
    result: JointOutcome,
    rng: Rng,
) -> bytes:
    """One of the parts that :meth:`party.job.Job.parts_of` lists.

    result:   steps and T_g.
    rows:     our generalized rows with their plain columns (pass 2), in random order.
    columns:  our sensitive and plain columns, entry by entry of T_g, in random order inside each.
    """
    if name == "result":
        return encode_result(result)
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
    keys = np.frombuffer(rng.bytes(8 * table.num_rows), dtype="<u8")
    shuffled: list[pa.RecordBatch] = table.take(pa.array(np.argsort(keys))).combine_chunks().to_batches()
    return shuffled
