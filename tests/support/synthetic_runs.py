"""Joint runs of a synthetic table in process."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from anonymize.joint.dp.columns import OwnColumns
from anonymize.joint.roster import Roster
from anonymize.joint.synthetic.horizontal import synthesize_horizontally
from anonymize.joint.synthetic.run import JointSyntheticOutcome, SyntheticRequest
from anonymize.joint.synthetic.vertical import synthesize_aligned
from anonymize.synthetic.requirement import Synthetic
from anonymize.table import CodedTable, Schema
from crypto.local import Transcript, run_local
from tests.support.dp_runs import names_of
from tests.support.rng import SeededRng

Results = dict[str, JointSyntheticOutcome]


def request_for(schema: Schema, **settings: Any) -> SyntheticRequest:
    requirement = Synthetic(**{"epsilon": Fraction(1), "edges": 2, "max_rows": 1000, **settings})
    return SyntheticRequest(schema, requirement, bytes(32))


def run_rows(
    tables: Sequence[CodedTable], request: SyntheticRequest, **how: Any
) -> tuple[Results, Transcript]:
    return _run(synthesize_horizontally, tables, request, "dp/horizontal/synthetic", **how)


def run_columns(
    columns: Sequence[OwnColumns], request: SyntheticRequest, **how: Any
) -> tuple[Results, Transcript]:
    return _run(synthesize_aligned, columns, request, "dp/vertical/synthetic", **how)


def _run(
    release: Any,
    parts: Sequence[Any],
    request: SyntheticRequest,
    mode: str,
    *,
    leader: int = 0,
    deputy: int = 1,
    observer: Any = None,
    **how: Any,
) -> tuple[Results, Transcript]:
    names = names_of(len(parts))
    return run_local(
        {
            me: release(
                Roster(me, names, names[leader], names[deputy]),
                part,
                request,
                SeededRng(me),
                mode=mode,
                observer=observer if me == names[leader] else None,
            )
            for me, part in zip(names, parts, strict=True)
        },
        **how,
    )
