"""Sealed kd of a table that does not link all sensitive columns: the single holder's groups, and no linked count."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from anonymize.errors import PrivacyError, SchemaError
from anonymize.joint.kd import cells
from anonymize.kd.single import anonymize_kd
from anonymize.kd.table import BoxedTable
from anonymize.linked_columns import counted_blocks
from anonymize.lkc.requirement import AskedList
from anonymize.table import CodedTable
from crypto.errors import RemoteProtocolError
from crypto.local import Message
from tests.support import jobs
from tests.support.blocks import COLUMNS, SENSITIVE, block_by_block, job_of, rows_of
from tests.support.horizontal import recorded
from tests.support.kd import expect_same_table, relinked_boxes, run_sealed_kd
from tests.support.kd_told import told_of_blocks
from tests.support.tamper import first_harmed, vouched
from tests.support.vectors import Golden

NONE, PAIR = (("disease",), ("treatment",), ("end",)), (("disease", "treatment"), ("end",))
AT_MOST = {**COLUMNS, "end": {**COLUMNS["end"], "at_most": "1"}}
ASKED = {"C": "0.8", "ruled_out": "1", "diversity": "3"}


def coded(
    rows: Sequence[Mapping[str, str]],
    asked: Mapping[str, str],
    linked: Sequence[Sequence[str]],
) -> tuple[CodedTable, AskedList]:
    """The table of all, and what is asked of it."""
    link = [list(block) for block in linked]
    columns = COLUMNS if "C" in asked and len(asked) == 1 else AT_MOST
    bundle = jobs.bundle_of(job_of(asked, link=link, columns=columns))
    with block_by_block():
        return jobs.dense(jobs.coded(bundle, rows)), jobs.requirement_of(bundle)


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "asked",
    [
        ({"C": "0.7"}),
        (ASKED),
        ({"diversity": "3"}),
    ],
    ids=["one column", "block by block", "zeros"],
)
def test_equals_the_single_holder_and_opens_what_the_release_tells(
    seed: int, asked: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every opened value is computed from blocks alone."""
    coins = random.Random(seed)  # noqa: S311
    linked, n = coins.choice([NONE, PAIR]), coins.choice([2, 3])
    whole, requirement = coded(rows_of(coins.choice([20, 80, 160]), seed), asked, linked)
    leader, deputy = coins.sample(range(n), 2)
    tables = jobs.split_among(whole, np.array(coins.choices(range(n), k=whole.n_records)), n)
    if seed % 2:
        monkeypatch.setattr(cells, "MOST_AT_ONCE", 0)
    seen = recorded(monkeypatch)
    try:
        outcome = anonymize_kd(whole, requirement)
    except PrivacyError:
        with pytest.raises(PrivacyError, match="already violates"):
            run_sealed_kd(tables, requirement, leader=leader, deputy=deputy, linked=linked)
        return
    results, _ = run_sealed_kd(tables, requirement, leader=leader, deputy=deputy, linked=linked)
    blocks = counted_blocks(whole.schema, linked)
    for result in results.values():
        expect_same_table(result.table, relinked_boxes(whole.schema, blocks, outcome.table))
        assert result.ledger.reveals == results["p0"].ledger.reveals
    axes = [(1, 2), (3,)] if linked == PAIR else [(1,), (2,), (3,)]
    told = told_of_blocks(whole.schema, results["p0"].table, requirement, [(0,), *axes])
    assert all(own == told for own in seen)


def test_criteria_of_several_blocks_are_refused() -> None:
    whole, requirement = coded(rows_of(40), ASKED, PAIR)
    with pytest.raises(SchemaError, match="looks at several blocks"):
        run_sealed_kd([whole, whole], requirement, linked=NONE)


def test_two_tables_with_equal_blocks_look_alike() -> None:
    """Records of one party of the same box exchange the values of a block: nobody receives messages of other sizes,
    and the result is the same to the byte.
    """
    whole, requirement = coded(rows_of(120, 3), {"C": "0.7"}, NONE)
    tables = jobs.split_among(whole, np.arange(whole.n_records) % 3, 3)
    results, before = run_sealed_kd(tables, requirement, linked=NONE)
    table, group = tables[2], results["p2"].group
    axes, coins = list(table.schema.axes(table.cells)), np.random.default_rng(0)
    rows = np.repeat(np.arange(len(table.cells)), table.weights)
    by_row = [axis[rows] for axis in axes]
    for number in np.unique(group).tolist():
        own = np.flatnonzero(group[rows] == number)
        by_row[1][own] = coins.permutation(by_row[1][own])
    moved_cells = np.ravel_multi_index(by_row, table.schema.cell_shape).astype(np.int64)
    moved = CodedTable(
        table.schema, tuple(c[rows] for c in table.qid), moved_cells, np.ones_like(moved_cells)
    )
    assert sorted(moved_cells.tolist()) != sorted(table.cells[rows].tolist())
    again, after = run_sealed_kd([*tables[:2], moved.collapsed()], requirement, linked=NONE)
    expect_same_table(again["p0"].table, results["p0"].table)
    for party in ("p0", "p1"):
        sizes = [[(m.sender, m.step, len(m.payload)) for m in each.view(party)] for each in (before, after)]
        assert sizes[0] == sizes[1]


def test_relinked_tables_have_the_counts_of_every_block() -> None:
    """And of tables with equal blocks there is one."""
    whole, requirement = coded(rows_of(150, 5), {"C": "0.9"}, PAIR)
    table = anonymize_kd(whole, requirement).table
    blocks = counted_blocks(whole.schema, PAIR)
    again = relinked_boxes(whole.schema, blocks, table)
    assert (again.cell.tolist(), again.count.tolist()) != (table.cell.tolist(), table.count.tolist())
    assert [block.schema.cell_shape for block in blocks] == [(2,), (1, 4, 3), (1, 2)]
    for axes in ((0,), (1, 2), (3,)):
        assert counted(whole.schema, again, axes) == counted(whole.schema, table, axes)
    expect_same_table(relinked_boxes(whole.schema, blocks, again), again)
    keys = again.group * whole.schema.n_cells + again.cell
    assert (np.diff(keys) > 0).all()


def counted(schema: Any, table: BoxedTable, axes: Sequence[int]) -> dict[tuple[int, ...], int]:
    """Records by group and codes of some axes."""
    codes, found = schema.axes(table.cell), {}
    for row, count in enumerate(table.count.tolist()):
        key = (int(table.group[row]), *(int(codes[axis][row]) for axis in axes))
        found[key] = found.get(key, 0) + count
    return found


@pytest.fixture(scope="module")
def small() -> tuple[list[CodedTable], AskedList]:
    whole, requirement = coded(rows_of(60, 2), {"C": "0.7"}, NONE)
    return jobs.split_among(whole, np.arange(whole.n_records) % 3, 3), requirement


def test_a_record_less_in_one_block_names_all_others(small: tuple[list[CodedTable], AskedList]) -> None:
    """The class has one record more than the other blocks: the numbers of records of blocks are compared."""
    shares: list[Message] = []

    def tamper(message: Message) -> bytes:
        if (message.step, message.sender) != ("shares/share", "p2"):
            return message.payload
        shares.append(message)
        if len(shares) != 2:  # first what criteria count of the root, then its counts
            return message.payload
        words = np.frombuffer(message.payload, "<u4").copy()
        words[0] += np.uint32(1)
        return words.tobytes()

    with pytest.raises(RemoteProtocolError, match="blocks of one table with different numbers") as caught:
        run_sealed_kd(*small, linked=NONE, tamper=tamper)
    assert set(caught.value.culprit.split(" or ")) <= {"p0", "p1", "p2"}


def test_a_short_opening_of_blocks_names_its_sender(small: tuple[list[CodedTable], AskedList]) -> None:
    _, honest = run_sealed_kd(*small, linked=NONE)
    harmed = first_harmed("shares/open", "p1", lambda payload: payload[:-4])
    with pytest.raises(RemoteProtocolError) as caught:
        run_sealed_kd(*small, linked=NONE, tamper=vouched(harmed, honest))
    assert (caught.value.culprit, caught.value.step) == ("p1", "shares/open")


def test_no_linked_count_is_opened(small: tuple[list[CodedTable], AskedList]) -> None:
    """As many words as the domains of the blocks have values, in sum, and not in product."""
    results, _ = run_sealed_kd(*small, linked=NONE)
    n_values = 2 + sum(len(domain) for domain in SENSITIVE.values())
    shapes = {r.name: r.shape for r in results["p0"].ledger.reveals}
    assert shapes["root_counts"] == (n_values,)
    opened = [r.shape for r in results["p0"].ledger.reveals if r.name == "group_cells"]
    n_groups = results["p0"].table.n_groups
    assert opened == [(n_groups, size - 1) for size in (2, 4, 3, 2)]


def test_golden_transcript(golden: Golden) -> None:
    """Three parties."""
    whole, requirement = coded(rows_of(60, 6), ASKED, NONE)
    tables = jobs.split_among(whole, np.arange(whole.n_records) % 3, 3)
    golden.check("kd", "blocks", run_sealed_kd(tables, requirement, linked=NONE)[1].digest())
