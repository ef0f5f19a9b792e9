"""Vertical runs for tests: one table cut by columns, ids that overlap in part, runs, and what must be equal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from anonymize.errors import PrivacyError
from anonymize.joint.columns import Columns, Holding, class_schema
from anonymize.joint.lkc.request import Request
from anonymize.joint.lkc.vertical import VerticalOutcome, anonymize_vertically
from anonymize.joint.lkc.winner import Maximum, OpenMaximum, SealedMaximum
from anonymize.joint.roster import Roster
from anonymize.lkc.single import anonymize_single
from anonymize.release import release_of_counts, release_of_rows
from anonymize.table import CodedTable, Schema
from anonymize.tds import Observer, Outcome
from crypto.local import Transcript, run_local
from crypto.rounds import Rounds
from tests.support import jobs
from tests.support.rng import SeededRng

MAXIMA: tuple[type[Maximum], ...] = SealedMaximum, OpenMaximum
MODES: dict[type[Maximum], str] = {SealedMaximum: "vertical/sealed", OpenMaximum: "vertical/leader"}
"""By maximum, the mode whose list its reveals are held to."""


@dataclass(frozen=True)
class Cut:
    """A table cut by columns.

    whole:     the join, what a single holder would have: one row per common record.
    holdings:  by party. ids: of every row of ``whole``.
    """

    columns: Columns
    whole: CodedTable
    holdings: Mapping[str, Holding]
    ids: tuple[bytes, ...]

    @property
    def parties(self) -> tuple[str, ...]:
        return tuple(self.holdings)


def units(table: CodedTable) -> CodedTable:
    """One row for each record."""
    rows = np.repeat(np.arange(len(table.weights)), table.weights)
    part = jobs.part_of(table, rows)
    return replace(part, weights=np.ones(len(rows), dtype=np.int64))


def drawn_cut(data: st.DataObject, table: CodedTable, parties: Sequence[str]) -> Cut:
    """A table whose columns go to parties at random."""
    qid, sensitive = (
        tuple(data.draw(st.sampled_from(parties)) for _ in columns)
        for columns in (table.schema.qid, table.schema.sensitive)
    )
    return cut_by_columns(table, Columns(qid, sensitive), parties)


def cut_by_columns(
    table: CodedTable,
    columns: Columns,
    parties: Sequence[str],
    seed: object = 0,
    strangers: int = 0,
    id_of: Any = lambda i: b"id-%06d" % i,
) -> Cut:
    """Give every party its columns of every record, in an order of its own.

    strangers:  rows that each party has besides, some of which other parties have, too, but not all.
    """
    whole, schema = units(table), table.schema
    rng = np.random.default_rng(np.frombuffer(SeededRng(("cut", seed)).bytes(16), dtype=np.uint32))
    ids = [id_of(i) for i in range(whole.n_records)]
    holdings = {}
    for number, party in enumerate(parties):
        # Strangers are copies of random rows; the next party shares half of ours if there are three or more.
        own = [b"%s-%d" % (party.encode(), i) for i in range(strangers)]
        if len(parties) > 2:
            shared = parties[(number + number % 2) % len(parties)].encode()
            own[: strangers // 2] = [b"both-%s-%d" % (shared, i) for i in range(strangers // 2)]
        source = [*range(whole.n_records), *rng.integers(0, max(whole.n_records, 1), len(own)).tolist()]
        order = rng.permutation(len(source))
        rows, known = np.array(source, dtype=np.int64)[order], [*ids, *own]
        names = [known[i] for i in order]
        holdings[party] = _holding(whole, columns, party, rows, names, schema)
    return Cut(columns, whole, holdings, tuple(ids))


def _holding(
    whole: CodedTable, columns: Columns, me: str, rows: Any, names: list[bytes], schema: Schema
) -> Holding:
    gives = schema.class_name is not None and columns.class_from in (None, me)
    return Holding(
        names,
        tuple(c[rows] if owner == me else None for c, owner in zip(whole.qid, columns.qid, strict=True)),
        whole.axis(0)[rows] if gives else None,
        tuple(whole.axis(i + 1)[rows] if h == me else None for i, h in enumerate(columns.sensitive)),
    )


def run_vertical(
    cut: Cut,
    request: Request,
    *,
    leader: int = 0,
    deputy: int = 1,
    maximum: type[Maximum] = SealedMaximum,
    observers: Mapping[str, Observer] | None = None,
    seed: object = "",
    **how: Any,
) -> tuple[dict[str, VerticalOutcome], Transcript]:
    parties = generators(cut, request, leader, deputy, maximum, observers, seed)
    return run_local(parties, **how)


def generators(
    cut: Cut,
    request: Request,
    leader: int = 0,
    deputy: int = 1,
    maximum: type[Maximum] = SealedMaximum,
    observers: Mapping[str, Observer] | None = None,
    seed: object = "",
) -> dict[str, Rounds[VerticalOutcome]]:
    """Every party's generator."""
    names = cut.parties
    return {
        me: anonymize_vertically(
            Roster(me, names, names[leader], names[deputy]),
            cut.columns,
            holding,
            request,
            SeededRng((me, seed)),
            mode=MODES[maximum],
            maximum=maximum,
            observer=(observers or {}).get(me),
        )
        for me, holding in cut.holdings.items()
    }


def applied(outcome: Outcome) -> list[Any]:
    """The turns of a run in which a candidate was applied."""
    return [turn for turn in jobs.turns(outcome) if turn[-1]]


def cut_at_random(data: st.DataObject, whole: CodedTable) -> Cut:
    """Two or three parties that have columns at random."""
    return drawn_cut(data, whole, [f"p{i}" for i in range(data.draw(st.integers(2, 3)))])


def blocks_of(cut: Cut) -> tuple[tuple[str, ...], ...]:
    """The sensitive columns of every party that has some."""
    columns = cut.whole.schema.sensitive
    held = (tuple(columns[i].name for i in cut.columns.sensitive_of(party)) for party in cut.parties)
    return tuple(block for block in held if block)


def expect_as_alone(data: st.DataObject, whole: CodedTable, request: Request) -> None:
    """Two or three parties that have columns at random come to what one holder does, or are refused likewise."""
    expect_cut_as_alone(data, cut_at_random(data, whole), request)


def expect_cut_as_alone(data: st.DataObject, cut: Cut, request: Request) -> None:
    """The same of parties that have the columns of a cut."""
    maximum = data.draw(st.sampled_from(MAXIMA))
    try:
        anonymize_single(cut.whole, request.requirement, request.goal)
    except PrivacyError:
        with pytest.raises(PrivacyError) as caught:
            run_vertical(cut, request, maximum=maximum)
        assert caught.value.error_id == "requirement-unmet"
        return
    results, _ = run_vertical(cut, request, maximum=maximum)
    expect_same(cut, results, request)


def expect_same(cut: Cut, results: Mapping[str, VerticalOutcome], request: Request) -> None:
    """The same result as the single holder's on the join, in the sense of semantics §3.7."""
    outcome = anonymize_single(cut.whole, request.requirement, request.goal)
    rows = released_cells(cut.whole, outcome)
    for party, result in results.items():
        assert applied(result.outcome) == applied(outcome) == jobs.turns(result.outcome)
        assert [s.score for s in result.outcome.steps] == [s.score for s in outcome.steps if s.applied]
        schema = class_schema(request.schema)
        public = release_of_counts(schema, result.outcome.cut, result.generalized)
        assert jobs.multiset(public) == Counter({cell: len(inside) for cell, inside in rows.items()})
        assert _own_columns(cut, party, result) == {
            cell: Counter(tuple(row[i] for i in cut.columns.sensitive_of(party)) for row in inside)
            for cell, inside in rows.items()
        }


def released_cells(whole: CodedTable, outcome: Outcome) -> dict[tuple[str, ...], list[tuple[int, ...]]]:
    """Per (leaf partition, class) cell of a single holder's release the sensitive values of its records."""
    labels = release_of_rows(replace(whole, schema=outcome.schema), outcome.cut).in_rows()
    names = [c.name for c in whole.schema.qid]
    names += [whole.schema.class_name] if whole.schema.class_name else []
    columns = [[labels.columns[n].labels[code] for code in labels.columns[n].codes] for n in names]
    sensitive = [whole.axis(i + 1).tolist() for i in range(len(whole.schema.sensitive))]
    cells = defaultdict(list)
    for key, row in zip(
        zip(*columns, strict=True),
        zip(*sensitive, strict=True) if sensitive else [()] * whole.n_records,
        strict=True,
    ):
        cells[key].append(row)
    return cells


def _own_columns(cut: Cut, party: str, result: VerticalOutcome) -> dict[Any, Counter[Any]]:
    """Return the columns that the party releases: per cell the multiset of its sensitive columns."""
    holding, schema = cut.holdings[party], class_schema(cut.whole.schema)
    public = release_of_counts(schema, result.outcome.cut, result.generalized).in_rows()
    columns = [[c.labels[code] for code in c.codes] for c in public.columns.values()]
    own = [codes[result.rows].tolist() for codes in holding.sensitive if codes is not None]
    cells: dict[Any, Counter[Any]] = defaultdict(Counter)
    for key, row in zip(
        zip(*columns, strict=True), zip(*own, strict=True) if own else [()] * len(result.rows), strict=True
    ):
        cells[key][row] += 1
    return cells


def named(results: Mapping[str, VerticalOutcome], name: str) -> int:
    """Count how often a value was revealed, at all parties together."""
    return sum(r.name == name for result in results.values() for r in result.ledger.reveals)
