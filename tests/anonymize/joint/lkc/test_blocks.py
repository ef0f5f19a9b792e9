"""Sealed top-down runs of a table that does not link all sensitive columns: the single holder's table, and no linked
count.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymize.errors import PrivacyError, SchemaError
from anonymize.joint.lkc.request import JointOutcome, Request
from anonymize.joint.lkc.turns import RankedTurns
from anonymize.linked_columns import counted_blocks, relinked
from anonymize.lkc.single import anonymize_single
from anonymize.partition import LocalRecords, fully_generalized, refine
from anonymize.release import release_of_counts, release_of_rows
from anonymize.scores.added import Added
from anonymize.table import CodedTable
from anonymize.tds import Outcome
from crypto.errors import RemoteProtocolError
from crypto.local import Message
from crypto.rounds import Rounds
from tests.support import jobs
from tests.support.blocks import COLUMNS, SENSITIVE, block_by_block, job_of, rows_of
from tests.support.computations import Computed
from tests.support.entries import ruled_lists
from tests.support.examples import examples
from tests.support.horizontal import Revealed, expect_openings, expect_sealed_ledger, run_sealed
from tests.support.tables import Case, cases, dealt
from tests.support.tamper import first_harmed, vouched
from tests.support.vectors import Golden

NONE, PAIR = (("disease",), ("treatment",), ("end",)), (("disease", "treatment"), ("end",))
AT_MOST = {**COLUMNS, "end": {**COLUMNS["end"], "at_most": "1"}}
ASKED = {"C": "0.8", "ruled_out": "1", "diversity": "3"}


def coded(
    rows: Sequence[Mapping[str, str]],
    asked: Mapping[str, str],
    linked: Sequence[Sequence[str]],
    **said: Any,
) -> tuple[CodedTable, Request]:
    """The table of all, and what is asked of it."""
    columns = COLUMNS if set(asked) == {"C"} else AT_MOST
    shape = {"method": None, "goal": None, "link": [list(block) for block in linked], "columns": columns}
    bundle = jobs.bundle_of(job_of(asked, **(shape | said)))
    with block_by_block():
        return jobs.dense(jobs.coded(bundle, rows)), replace(jobs.request_of(bundle), linked=tuple(linked))


def expect_blocks(result: JointOutcome, outcome: Outcome, whole: CodedTable, request: Request) -> None:
    """The single holder's turns, and its rows as far as blocks tell them."""
    assert jobs.turns(result.outcome) == jobs.turns(outcome)
    schema, table = whole.schema, result.generalized
    blocks = counted_blocks(schema, request.linked)
    joint, alone = release_of_counts(schema, outcome.cut, table), release_of_rows(whole, outcome.cut)
    qid = [column.name for column in schema.qid]
    for names in ([schema.class_name or ""], *request.linked):
        beside = [*qid, *names]
        assert jobs.multiset(joint.ordered(beside)) == jobs.multiset(alone.ordered(beside))
    again = relinked(schema, blocks, (table.partition, table.cell, table.count))
    assert all(map(np.array_equal, again, (table.partition, table.cell, table.count)))


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"C": "0.7"}, {}),
        (ASKED, {}),
        ({"diversity": "3"}, {"goal": "general"}),
    ],
    ids=["one column", "block by block", "zeros"],
)
def test_equals_the_single_holder(seed: int, asked: Mapping[str, str], said: Mapping[str, Any]) -> None:
    coins = random.Random(seed)  # noqa: S311
    linked, n = coins.choice([NONE, PAIR]), coins.choice([2, 3])
    whole, request = coded(rows_of(coins.choice([20, 80, 160]), seed), asked, linked, **said)
    leader, deputy = coins.sample(range(n), 2)
    tables = jobs.split_among(whole, np.array(coins.choices(range(n), k=whole.n_records)), n)
    try:
        outcome = anonymize_single(whole, request.requirement, request.goal)
    except PrivacyError:
        with pytest.raises(PrivacyError, match="already violates"):
            run_sealed(tables, request, leader=leader, deputy=deputy)
        return
    results, _ = run_sealed(tables, request, leader=leader, deputy=deputy)
    for result in results.values():
        expect_blocks(result, outcome, whole, request)
        assert result.ledger.reveals == results["p0"].ledger.reveals


@settings(max_examples=examples(25), deadline=None)
@given(case=cases(), data=st.data())
def test_random_tables_of_any_l_have_the_turns_of_the_single_holder(case: Case, data: st.DataObject) -> None:
    """Each sensitive column is a block, and is looked at by itself."""
    n_blocks = len(case.problem.sensitive) + (case.problem.class_name is not None)
    assume(case.problem.sensitive and n_blocks > 1)
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.dense(jobs.coded(bundle, case.rows))
    alone = tuple((column.name,) for column in whole.schema.sensitive)
    requirement, _ = data.draw(ruled_lists(case, blocks=alone))
    request = replace(jobs.request_of(bundle), requirement=requirement, linked=alone)
    if isinstance(request.goal, Added):
        request = replace(request, goal=replace(request.goal, contexts="partitions"))
    tables = dealt(data, whole, data.draw(st.sampled_from([2, 3])))
    try:
        outcome = anonymize_single(whole, requirement, request.goal)
    except PrivacyError:
        with pytest.raises(PrivacyError, match="already violates"):
            run_sealed(tables, request)
        return
    for result in run_sealed(tables, request)[0].values():
        expect_blocks(result, outcome, whole, request)


def told_of_blocks(result: JointOutcome, request: Request) -> list[tuple[str, Any]]:
    """The counts that a run opens, from its turns and the blocks of the released table, each by itself."""
    schema, final, told = request.schema, result.generalized, []
    qid = tuple(nodes[final.partition] for nodes in final.nodes)
    parts = []
    for block in counted_blocks(schema, request.linked):
        cells = np.ravel_multi_index(
            [schema.axes(final.cell)[axis] for axis in block.axes],
            [schema.cell_shape[axis] for axis in block.axes],
        )
        rows = CodedTable(block.schema, qid, cells.astype(np.int64), final.count).collapsed()
        counts = np.bincount(rows.cells, rows.weights, block.schema.n_cells).astype(np.int64)
        table = fully_generalized(len(schema.qid), counts)
        parts.append((counts, table, LocalRecords(rows, rows.cells, table)))
    told.append(("root_counts", [n for counts, *_ in parts for n in counts.tolist()]))
    tables, records = [table for _, table, _ in parts], [own for *_, own in parts]
    for candidate in result.outcome.applied:
        opened = []
        for i, own in enumerate(records):
            counts = own.counts(candidate, tables[i].entries_of(candidate))
            opened += counts[:, :-1].tolist()
            refinement = refine(tables[i], candidate, counts)
            own.follow(candidate, refinement)
            tables[i] = refinement.table
        told.append(("partition_counts", opened))
    return told


@pytest.mark.some(1)
@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("score", ["infogain", "groups"])
def test_what_is_opened_is_counted_block_by_block(
    score: str, n: int, revealed: Revealed, computed: list[Computed]
) -> None:
    """In the circuits nothing is opened but verdicts and candidates, outside of them the counts of each block."""
    goal = "classification" if score == "infogain" else "general"
    whole, request = coded(rows_of(160, 5), ASKED, NONE, score=score, goal=goal)
    tables = jobs.split_among(whole, np.arange(whole.n_records) % n, n)
    results, transcript = run_sealed(tables, request)
    told = told_of_blocks(results["p0"], request)
    for seen in revealed:
        assert [
            (name, value) for name, value, _ in seen if name in ("root_counts", "partition_counts")
        ] == told
    expect_openings(computed, revealed[0], request)
    expect_sealed_ledger(results["p0"], request, len(NONE) + 1)
    shapes = [r.shape for r in results["p0"].ledger.reveals if r.name in ("root_counts", "partition_counts")]
    opened = [
        m for m in transcript.messages if (m.sender, m.recipient, m.step) == ("p0", "p1", "shares/open")
    ]
    assert [len(m.payload) for m in opened] == [4 * int(np.prod(shape)) for shape in shapes]
    assert shapes[0] == (2 + sum(len(domain) for domain in SENSITIVE.values()),)


def test_criteria_of_several_blocks_are_refused() -> None:
    whole, request = coded(rows_of(40), ASKED, PAIR)
    with pytest.raises(SchemaError, match="looks at several blocks"):
        run_sealed([whole, whole], replace(request, linked=NONE))


def test_two_tables_with_equal_blocks_look_alike(revealed: Revealed) -> None:
    """Records of one party with equal quasi-identifiers exchange the values of a block: nobody receives messages of
    other sizes, all that is opened is the same, and so is the result.
    """
    whole, request = coded(rows_of(400, 3), ASKED, NONE, goal="general")
    tables = jobs.split_among(whole, np.arange(whole.n_records) % 3, 3)
    results, before = run_sealed(tables, request)
    moved = _exchanged(tables[2])
    again, after = run_sealed([*tables[:2], moved], request)
    assert all(seen == revealed[0] for seen in revealed)
    assert len(results["p0"].outcome.applied) > 2
    assert np.array_equal(again["p0"].generalized.cell, results["p0"].generalized.cell)
    for party in ("p0", "p1"):
        sizes = [[(m.sender, m.step, len(m.payload)) for m in each.view(party)] for each in (before, after)]
        assert sizes[0] == sizes[1]


def _exchanged(table: CodedTable) -> CodedTable:
    """The diseases of records with equal quasi-identifiers in another order."""
    rows, coins = np.repeat(np.arange(len(table.cells)), table.weights), np.random.default_rng(0)
    qid, axes = [codes[rows] for codes in table.qid], [axis[rows] for axis in table.schema.axes(table.cells)]
    _, kind = np.unique(np.stack(qid), axis=1, return_inverse=True)
    for number in range(int(kind.max()) + 1):
        own = np.flatnonzero(kind.reshape(-1) == number)
        axes[1][own] = coins.permutation(axes[1][own])
    cells = np.ravel_multi_index(axes, table.schema.cell_shape).astype(np.int64)
    assert sorted(cells.tolist()) != sorted(table.cells[rows].tolist())
    return CodedTable(table.schema, tuple(qid), cells, np.ones_like(cells)).collapsed()


@pytest.fixture(scope="module")
def small() -> tuple[list[CodedTable], Request]:
    whole, request = coded(rows_of(120, 2), {"C": "0.9"}, NONE, goal="general")
    return jobs.split_among(whole, np.arange(whole.n_records) % 3, 3), request


@pytest.mark.parametrize("where", ["root", "partitions"])
def test_a_record_more_in_one_block_names_all_others(
    where: str, small: tuple[list[CodedTable], Request]
) -> None:
    """The class has one record more than the other blocks: the numbers of records of blocks are compared."""
    shares: list[Message] = []

    def tamper(message: Message) -> bytes:
        if (message.step, message.sender) != ("shares/share", "p2"):
            return message.payload
        shares.append(message)
        # Of the root first what criteria count, then its counts; of the first candidates what the score needs, then
        # the counts that they are judged by.
        if len(shares) - 1 != (1 if where == "root" else 3):
            return message.payload
        words = np.frombuffer(message.payload, "<u4").copy()
        words[0] += np.uint32(1)
        return words.tobytes()

    with pytest.raises(RemoteProtocolError, match="blocks of one table with different numbers") as caught:
        run_sealed(*small, tamper=tamper)
    assert set(caught.value.culprit.split(" or ")) <= {"p0", "p1", "p2"}


def test_blocks_of_wide_columns_need_not_combine() -> None:
    """2^31 cells in all, of which nothing is as long; each block has 2^10 values."""
    domain = [str(value) for value in range(1 << 10)]
    wide = {name: {"role": "sensitive", "domain": domain, "values": ["0"]} for name in SENSITIVE}
    coins = random.Random(0)  # noqa: S311
    rows = [row | {name: str(coins.randrange(1 << 10)) for name in SENSITIVE} for row in rows_of(60, 1)]
    whole, request = coded(rows, {"C": "0.5"}, NONE, columns=COLUMNS | wide)
    assert whole.schema.n_cells == 1 << 31
    tables = jobs.split_among(whole, np.arange(whole.n_records) % 2, 2)
    outcome = anonymize_single(whole.sparse(), request.requirement, request.goal)
    results, _ = run_sealed(tables, request)
    assert len(outcome.applied) > 1
    expect_blocks(results["p0"], outcome, whole, request)


def test_a_pair_that_finds_everything_valid_is_found_out(
    small: tuple[list[CodedTable], Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All parties judge again what is asked of one block, from the counts that were opened of it."""
    run_sealed(*small)

    def always(self: Any, n_asked: int, met: Any) -> Rounds[int]:
        yield from self._pair.tell_ahead("sealed/valid", bytes(8))
        return 0

    monkeypatch.setattr(RankedTurns, "decide", always)
    with pytest.raises(RemoteProtocolError, match="do not meet the requirement") as caught:
        run_sealed(*small)
    assert caught.value.culprit == "p0 or p1"


def test_a_short_opening_of_blocks_names_its_sender(small: tuple[list[CodedTable], Request]) -> None:
    _, honest = run_sealed(*small)
    harmed = first_harmed("shares/open", "p1", lambda payload: payload[:-4])
    with pytest.raises(RemoteProtocolError) as caught:
        run_sealed(*small, tamper=vouched(harmed, honest))
    assert (caught.value.culprit, caught.value.step) == ("p1", "shares/open")


def test_golden_transcript(golden: Golden) -> None:
    """Three parties."""
    whole, request = coded(rows_of(60, 6), ASKED, NONE)
    tables = jobs.split_among(whole, np.arange(whole.n_records) % 3, 3)
    golden.check("sealed", "blocks", run_sealed(tables, request)[1].digest())
