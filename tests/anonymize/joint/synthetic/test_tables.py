"""Shares of counts: leader's and deputy's add up to those of all records, missing cells too, at any width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from anonymize.joint.dp.columns import session_of
from anonymize.joint.pair import open_pair
from anonymize.joint.roster import Roster
from anonymize.joint.sessions import open_sessions
from anonymize.joint.synthetic.horizontal import SharedRows
from anonymize.joint.synthetic.vertical import JoinedColumns
from anonymize.synthetic.marginals import Marginal, leaf_marginals
from anonymize.table import CodedTable
from anonymize.tds import Observer
from crypto.local import run_local
from crypto.rounds import Rounds
from tests.support.dp_runs import names_of, split_columns, thirds
from tests.support.dp_tables import categorical, numeric, schema_of, table_of
from tests.support.rng import SeededRng
from tests.support.synthetic_joint import some_pairs

SCHEMA = schema_of(
    replace(numeric("age", 7), missing_cell=True),
    categorical("job", {"*": {"White": ["clerk", "lawyer"], "Blue": ["mason", "mover"]}}),
    replace(numeric("hours", 3), missing_cell=True),
    categorical("sex", {"*": ["m", "f"]}),
    classes=("a", "b", "c"),
)


def records(n: int, seed: int = 0) -> CodedTable:
    """Missing cells in both grids; no record of class b."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, [8, 4, 4, 2, 2], (n, 5))
    rows[:, 4] *= 2
    return table_of(SCHEMA, rows.tolist())


def asked() -> list[Marginal]:
    return [*leaf_marginals(SCHEMA), *some_pairs(SCHEMA)]


def expect_counts(shares: dict[str, Sequence[Any]], table: CodedTable, bits: int) -> None:
    """Modulo 2**bits."""
    for marginal, one, other in zip(asked(), shares["p0"], shares["p1"], strict=True):
        total = (one + other) & np.uint64((1 << bits) - 1)
        assert total.tolist() == marginal.counts(table).reshape(-1).tolist()


@pytest.mark.parametrize("bits", [9, 16, 17, 33])
@pytest.mark.parametrize("n", [2, 3])
def test_of_rows(bits: int, n: int) -> None:
    table, names = records(300), names_of(n)

    def protocol(me: str, part: CodedTable) -> Rounds[Any]:
        pair = yield from open_pair(Roster(me, names, "p0", "p1"), bytes(32), SeededRng(me), Observer())
        return (yield from SharedRows(pair, part, 500).shares(asked(), bits))

    parts = zip(names, thirds(table, n), strict=True)
    shares, transcript = run_local({me: protocol(me, part) for me, part in parts})
    expect_counts(shares, table, bits)
    for outside in names[2:]:
        assert shares[outside] == [None] * len(asked())
        words = sum(marginal.size for marginal in asked())
        assert transcript.bytes_sent(outside) == 16 + words * (2 if bits <= 16 else 4 if bits <= 32 else 8)


@pytest.mark.some(10)
@pytest.mark.parametrize("bits", [9, 16, 17, 33])
@pytest.mark.parametrize("first", [[0, 1], [1, 2], [3], []])
@pytest.mark.parametrize("leader", ["p0", "p1"])
def test_of_columns(bits: int, first: list[int], leader: str) -> None:
    table = records(300)

    def protocol(me: str, own: Any) -> Rounds[Any]:
        roster = Roster(me, ("p0", "p1"), leader, "p1" if leader == "p0" else "p0")
        rng, ends = SeededRng(me), [(roster.leader, roster.deputy)]
        session = session_of(roster, (yield from open_sessions(me, ends, rng, Observer())))
        return (yield from JoinedColumns(roster, own, session, rng).shares(asked(), bits))

    parts = zip(("p0", "p1"), split_columns(table, first), strict=True)
    shares, transcript = run_local({me: protocol(me, own) for me, own in parts})
    expect_counts(shares, table, bits)
    asks = sum(message.step == "joint_histogram/shape" for message in transcript.messages)
    assert asks == (0 if not first else 4 - len(first) if leader == "p0" else len(first))
