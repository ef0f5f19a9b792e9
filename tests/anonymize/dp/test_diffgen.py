"""DiffGen, single holder: structure of the release, the account, what depends on data and what must not."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.candidates import profile_length
from anonymize.cut import top
from anonymize.dp.accounting import Dp
from anonymize.dp.diffgen import DpOutcome, Place, SingleHolder, barred, release_single
from anonymize.dp.noise import Noise, exact_noise
from anonymize.dp.noisy_table import cell_counts, cut_domain
from anonymize.errors import PrivacyError
from anonymize.table import CodedTable
from tests.support.coins import Quiet, ScriptedNoise
from tests.support.dp_tables import (
    categorical,
    hospital,
    leaf_sets,
    numeric,
    people,
    schema_of,
    set_valued,
    table_of,
)
from tests.support.rng import SeededRng


def noise_of(seed: object) -> Noise:
    return exact_noise(SeededRng(seed))


def released(table: CodedTable, seed: object = 0, **settings: Any) -> DpOutcome:
    requirement = Dp(**{"epsilon": Fraction(1), "specializations": 4, "max_rows": 1000, **settings})
    return release_single(table, requirement, noise_of(seed))


@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from(["max", "infogain"]))
def test_every_cell_of_the_product_is_released(seed: int, h: int, utility: str) -> None:
    """Test any data, also an empty table (semantics §8.6, point 5)."""
    for table in (people(seed), people(seed, 0), people(seed, 3)):
        outcome = released(table, seed, specializations=h, utility=utility)
        cut, schema = outcome.outcome.cut, table.schema
        assert len(outcome.outcome.steps) == h
        cells = prod(len(nodes) for nodes in cut.nodes) * schema.n_classes
        assert len(outcome.table.counts) == outcome.table.n_cells == cells
        assert outcome.table.threshold is None
        assert outcome.table.cells.n_rows == cells
        columns = outcome.table.cells.columns.values()
        assert len(set(zip(*(c.codes.tolist() for c in columns), strict=True))) == cells


def test_counts_are_exact_counts_plus_noise_and_keep_their_sign() -> None:
    """Nothing is rounded, clamped or left out."""
    table = people()
    plain = release_single(table, Dp(Fraction(1), 3, max_rows=1000), ScriptedNoise())
    cells = len(plain.table.counts)
    offsets = [(-1) ** i * i * 7 for i in range(cells)]
    noisy = release_single(table, Dp(Fraction(1), 3, max_rows=1000), ScriptedNoise(laplace=[offsets]))
    domain = cut_domain(table.schema, plain.outcome.cut)
    exact = cell_counts(table, plain.outcome.cut, domain, {})
    assert plain.table.counts.tolist() == exact.tolist()
    assert (noisy.table.counts - exact).tolist() == offsets
    assert noisy.table.counts.min() < 0


def test_the_account_itemizes_what_is_used_and_spends_the_rest_on_counts() -> None:
    table, h = people(), 4
    step = Dp(Fraction(1), h).step_epsilon(table.schema)
    assert step == Fraction(1, 18)
    outcome = released(table)
    charges = outcome.accountant.charges
    assert sum((c.epsilon for c in charges), Fraction(0)) == 1
    assert [c.purpose for c in charges if c.iteration == 0] == ["split points of age"]
    for i, taken in enumerate(outcome.outcome.steps, start=1):
        purposes = [c.purpose for c in charges[:-1] if c.iteration == i]
        numeric_step = table.schema.qid[taken.candidate.column].is_numeric
        splittable = any(child.last - child.first > 1 for child in taken.candidate.children)
        expected = ["choice of a specialization"]
        if numeric_step and splittable and i < h:
            expected.append("split points of age")
        assert purposes == expected
    assert all(c.epsilon == step for c in charges[:-1])
    assert charges[-1].purpose == "counts of the cells"
    assert charges[-1].epsilon >= Fraction(1, 2)


@given(st.integers(0, 10**6), st.integers(1, 8))
def test_no_run_spends_more_than_half_before_the_counts(seed: int, h: int) -> None:
    """[T] Theorem 6.3: |A_n|·ε′ + 2h·ε′ = ε/2 at most, also with set-valued columns."""
    table = hospital(seed, 60)
    outcome = released(table, seed, specializations=h, epsilon=Fraction(1, 3))
    assert outcome.accountant.spent == Fraction(1, 3)
    assert outcome.accountant.charges[-1].epsilon >= Fraction(1, 6)


def test_fewer_specializations_where_nothing_is_left() -> None:
    columns = (categorical("q", {"*": ["a", "b"]}), numeric("x", 1), categorical("one", {"*": ["z"]}))
    table = table_of(schema_of(*columns), [(0, 0, 0, 1), (1, 0, 0, 0)])
    outcome = released(table, specializations=9)
    assert [s.candidate.column for s in outcome.outcome.steps] == [0]
    assert outcome.accountant.spent == 1
    assert len(outcome.table.counts) == 4


def test_what_can_be_chosen_follows_from_the_cut_alone() -> None:
    """The same choices on a full and on an empty table: the same numbers of options at every step."""
    asked = []
    for n in (300, 0):
        noise = ScriptedNoise()
        vectors = {"age": 7}
        release_single(people(0, n), Dp(Fraction(1), 1, max_rows=1000), noise)
        asked.append(noise.asked)
        assert noise.asked[0][2] == vectors["age"]
    assert asked[0] == asked[1]


@pytest.mark.parametrize("utility", ["max", "infogain"])
def test_a_clear_signal_is_found(utility: str) -> None:
    """With a large budget the first split of age is where the class changes."""
    outcome = released(people(n=900), epsilon=Fraction(200), specializations=1, utility=utility)
    step = outcome.outcome.steps[0].candidate
    assert (step.column, step.children[0].last) == (0, 5)


def test_more_rows_than_the_public_bound_are_refused() -> None:
    with pytest.raises(PrivacyError) as caught:
        released(people(n=11), max_rows=10)
    assert caught.value.error_id == "too-many-rows"
    assert "11" not in str(caught.value)
    released(people(n=10), max_rows=10)


def test_weights_count_as_records() -> None:
    table = people(n=40)
    heavy = CodedTable(table.schema, table.qid, table.cells, table.weights * 3)
    with pytest.raises(PrivacyError):
        released(heavy, max_rows=100)
    exact = release_single(heavy, Dp(Fraction(1), 2, max_rows=200), ScriptedNoise()).table.counts
    assert exact.sum() == 120


# ---- beyond the limit of cells


def test_beyond_the_limit_only_cells_above_a_threshold_are_listed() -> None:
    table = people(n=40)
    whole, sparse = released(table, 3), released(table, 3, max_cells=10)
    assert whole.outcome.cut == sparse.outcome.cut
    assert whole.table.n_cells == sparse.table.n_cells > 10
    threshold = sparse.table.threshold
    assert threshold is not None
    assert (sparse.table.counts >= threshold).all()
    assert len(sparse.table.counts) < whole.table.n_cells
    assert (whole.accountant.charges, whole.accountant.epsilon) == (
        sparse.accountant.charges,
        sparse.accountant.epsilon,
    )


def test_which_threshold_does_not_depend_on_data(first_wins: None) -> None:
    thresholds = set()
    for n in (0, 1, 900):
        outcome = released(people(n=n), n, max_cells=5)
        thresholds.add((outcome.table.threshold, outcome.table.n_cells))
    assert len(thresholds) == 1


@pytest.mark.parametrize("max_cells", [8, 20, 60, 100_000])
@pytest.mark.parametrize("seed", range(4))
def test_what_the_limit_bars_follows_from_the_steps(
    max_cells: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a bounded run: in every turn each node that could be refined was either on offer or is said to be barred."""
    offered: list[set[Place]] = []
    original = SingleHolder.pick

    def pick(self: SingleHolder, places: Any, rate: Fraction) -> Any:
        offered.append(set(places))
        return original(self, places, rate)

    monkeypatch.setattr(SingleHolder, "pick", pick)
    table, requirement = people(), Dp(Fraction(1), 6, max_rows=1000, max_cells=max_cells)
    outcome = release_single(table, requirement, noise_of(seed), bounded=True).outcome
    said = barred(table.schema, requirement, outcome.steps)
    cut = top(table.schema)
    for turn, step in enumerate([*outcome.steps, None][:6], start=1):
        nodes = {Place(i, node) for i, of_column in enumerate(cut.nodes) for node in of_column}
        open_nodes = {p for p in nodes if profile_length(table.schema.qid[p.column], p.node) > 1}
        left_out = {place for place, first in said.items() if first <= turn} & nodes
        assert open_nodes - left_out == (offered[turn - 1] if step else set())
        assert not step or not offered[turn - 1] & left_out
        cut = cut.specialized(step.candidate) if step else cut
    assert bool(said) == (max_cells < 100_000)


@pytest.fixture
def first_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every selection takes its first option."""
    monkeypatch.setattr("anonymize.dp.diffgen.noisy_max", lambda scores, rate, noise: 0)


# ---- set-valued columns


def test_set_valued_columns_multiply_the_cells_by_their_combinations() -> None:
    table = hospital()
    seen = set()
    for seed in range(12):
        outcome = released(table, seed, epsilon=Fraction(1, 5), specializations=3)
        columns = outcome.table.cells.columns
        n_values = [len(columns[c.name].labels) for c in table.schema.qid]
        assert prod(n_values) * 2 == outcome.table.n_cells == len(outcome.table.counts)
        steps = [(s.candidate.column, i) for i, s in enumerate(outcome.outcome.steps, start=1)]
        tests = [c for c in outcome.accountant.charges if c.purpose == "test of the combinations of codes"]
        assert [c.iteration for c in tests] == [i for column, i in steps if column == 0 and i < 3]
        seen.add(len(tests))
    assert len(seen) > 1


@pytest.mark.parametrize("h", [1, 2, 3, 5])
def test_no_record_is_lost_to_a_test(h: int) -> None:
    """Combinations that fail stay together at the combination they had."""
    outcome = release_single(hospital(), Dp(Fraction(1, 5), h, max_rows=1000), Quiet())
    assert outcome.table.counts.sum() == 400
    assert (outcome.table.counts >= 0).all()


@pytest.mark.parametrize("max_cells", [100_000, 1], ids=["all cells", "above a threshold"])
@pytest.mark.parametrize("h", [1, 2, 4], ids=["last round", "tested", "tested again"])
@pytest.mark.parametrize("n", [0, 1, 40])
def test_a_release_with_sets_exists_whatever_the_data(
    n: int, h: int, max_cells: int, first_wins: None
) -> None:
    """Also of an empty table, in which no set occurs: a run that fails would tell that it is empty."""
    table = hospital(n=n)
    if n == 0:
        table = CodedTable(table.schema, table.qid, table.cells, table.weights, {0: leaf_sets([])})
    outcome = released(table, specializations=h, max_cells=max_cells)
    assert outcome.outcome.steps[0].candidate.column == 0
    assert outcome.table.counts.dtype == np.int64
    sparse = outcome.table.threshold is not None
    assert sparse == (outcome.table.n_cells > max_cells) == (max_cells == 1)
    assert sparse or len(outcome.table.counts) == outcome.table.n_cells


def test_a_set_valued_column_specialized_last_is_not_tested(first_wins: None) -> None:
    """All 7 combinations of three chapters are released, or those above a threshold if that is too many."""
    table = hospital()
    for max_cells in (1000, 10):
        outcome = released(table, specializations=1, max_cells=max_cells)
        assert [s.candidate.column for s in outcome.outcome.steps] == [0]
        assert not any("test" in c.purpose for c in outcome.accountant.charges)
        assert outcome.table.n_cells == 7 * 2
        assert (len(outcome.table.counts) == 14) == (max_cells == 1000)


def test_nodes_with_too_many_children_are_no_candidates() -> None:
    wide = set_valued("codes", {"*": [f"c{i}" for i in range(9)]})
    schema = schema_of(wide, categorical("sex", {"*": ["m", "f"]}))
    table = table_of(schema, [(0, 0, 1)], {0: leaf_sets([(0, 8)])})
    for fanout, columns in ((8, [1]), (9, [0, 1])):
        outcome = released(table, max_fanout=fanout, specializations=5, max_cells=10**6)
        assert sorted(s.candidate.column for s in outcome.outcome.steps) == columns


def test_combinations_of_64_children(first_wins: None) -> None:
    """2^64 − 1 of them, none gone through."""
    wide = set_valued("codes", {"*": [f"c{i}" for i in range(64)]})
    schema = schema_of(wide, categorical("sex", {"*": ["m", "f"]}))
    sets = leaf_sets([(0,), (5, 63), tuple(range(64))])
    table = table_of(schema, [(i % 3, i % 2, i % 2) for i in range(900)], {0: sets})
    outcome = released(table, specializations=1)
    assert outcome.table.n_cells == (2**64 - 1) * 2
    found = set(outcome.table.cells.columns["codes"].labels)
    assert {"c0", "c5;c63", ";".join(f"c{i}" for i in range(64))} <= found


def test_reproducible_from_the_coins_alone() -> None:
    one, other = released(people(), 7), released(people(), 7)
    assert one.outcome.cut == other.outcome.cut
    assert one.table.counts.tolist() == other.table.counts.tolist()
    assert released(people(), 8).table.counts.tolist() != one.table.counts.tolist()


def test_row_order_carries_no_meaning() -> None:
    table = people()
    order = np.random.default_rng(1).permutation(len(table.cells))
    mixed = CodedTable(table.schema, tuple(c[order] for c in table.qid), table.cells[order], table.weights)
    assert released(mixed, 5).table.counts.tolist() == released(table, 5).table.counts.tolist()
