"""Questions, openings and charges of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from anonymize.dp.noise import Noise, exact_noise
from anonymize.errors import PrivacyError, SchemaError
from anonymize.grid import from_cuts
from anonymize.synthetic.holder import Question
from anonymize.synthetic.loop import Synthesis, n_rows
from anonymize.synthetic.marginals import Marginal
from anonymize.synthetic.requirement import MAX_GRID_CELLS, Synthetic, check_synthetic
from anonymize.synthetic.single import SingleHolder, synthesize_single
from anonymize.table import CodedTable, Ints, QidColumn
from anonymize.tds import Observer, Turn, run_single
from tests.support.coins import ScriptedNoise
from tests.support.dp_tables import categorical, numeric, schema_of, set_valued, table_of
from tests.support.rng import SeededRng
from tests.support.synthetic import people, requirement, same_openings, scripted


class Overheard(SingleHolder):
    """Also notes what it is asked."""

    def __init__(self, table: CodedTable, noise: Noise) -> None:
        super().__init__(table, noise)
        self.asked: list[tuple[Any, ...]] = []

    def measure(self, marginals: Sequence[Marginal], rate: Fraction) -> Turn[list[Ints]]:
        self.asked.append((tuple(marginals), rate))
        return super().measure(marginals, rate)

    def choose(self, question: Question, rate: Fraction, n_edges: int) -> Turn[tuple[int, ...]]:
        expected = [e.tolist() for e in question.expected]
        self.asked.append((tuple(question.pairs), expected, list(question.penalties), rate, n_edges))
        return super().choose(question, rate, n_edges)


def overheard(table: CodedTable, asked: Synthetic, noise: Noise) -> list[tuple[Any, ...]]:
    holder = Overheard(table, noise)
    run_single(Synthesis(table.schema, asked, holder, Observer()).run())
    return holder.asked


def with_one_more(table: CodedTable, record: Sequence[int]) -> CodedTable:
    rows = [*map(tuple, np.array([*table.qid, table.axis(0)]).T.tolist()), tuple(record)]
    return table_of(table.schema, rows)


# ---- what is charged is what the noise was drawn for


@pytest.mark.parametrize("edges", [0, 1, 3])
@pytest.mark.parametrize("per_person", [1, 2])
def test_every_step_costs_what_the_account_says(edges: int, per_person: int) -> None:
    """Measuring: a table costs its rate. Choosing: 2·T times its rate (test_choice.py). All times m records."""
    asked = requirement(edges, per_person=per_person)
    outcome, noise = scripted(people(), asked)
    charges = [charge.epsilon for charge in outcome.accountant.charges]
    cost = dict.fromkeys(("leaves", "bins", "pairs"), Fraction(0))
    drawn = iter(each for each in noise.asked if each[0] == "laplace")
    for step in cost:
        for measured in getattr(outcome.opened, step):
            assert next(drawn) == ("laplace", measured.rate, measured.counts.size)
            cost[step] += per_person * measured.rate
    (choice,) = [each for each in noise.asked if each[0] == "geometric"] or [None]
    if choice is None:
        assert list(cost.values()) == [*charges, 0]
    else:
        assert [cost["leaves"], cost["bins"], per_person * 2 * edges * choice[1], cost["pairs"]] == charges
    assert sum(charges) == asked.epsilon == Fraction(1)


def test_the_account_is_measure_measure_choose_measure() -> None:
    outcome, _ = scripted(people(), requirement(2))
    said = [charge.purpose for charge in outcome.accountant.charges]
    assert said == [
        "counts of the columns by leaf",
        "counts of the columns by bin and class",
        "choice of pairs of columns",
        "counts of pairs of columns",
    ]
    assert outcome.accountant.distance == 0


def test_without_pairs_all_that_is_left_goes_to_the_columns() -> None:
    outcome, _ = scripted(people(), requirement(0))
    assert [charge.epsilon for charge in outcome.accountant.charges] == [Fraction(3, 10), Fraction(7, 10)]
    assert outcome.opened.pairs == ()


def test_a_pair_gets_twice_what_a_column_gets() -> None:
    outcome, _ = scripted(people(), requirement(3))
    assert {m.rate for m in outcome.opened.pairs} == {2 * outcome.opened.bins[0].rate}


def test_every_count_has_noise_of_its_own() -> None:
    """Coins are not used twice: no draw goes to two counts or two scores."""
    n, script = 0, []
    first, _ = scripted(people(), requirement(1))
    opened = first.opened
    for measured in (*opened.leaves, *opened.bins, *opened.pairs):
        script.append(list(range(n, n + measured.counts.size)))
        n += measured.counts.size
    exact = [each.marginal.counts(people()) for each in (*opened.leaves, *opened.bins)]
    outcome, noise = scripted(people(), requirement(1), ScriptedNoise(laplace=script[: len(exact)]))
    found = [*outcome.opened.leaves]
    added = np.concatenate([(m.counts - e).reshape(-1) for m, e in zip(found, exact, strict=False)])
    assert added.tolist() == list(range(len(added)))
    assert [kind for kind, _, _ in noise.asked].count("geometric") == 1
    assert ("geometric", Fraction(1, 20), 6) in noise.asked


# ---- what is asked follows from what was opened


@pytest.mark.parametrize("edges", [0, 1, 3, None])
@pytest.mark.parametrize("record", [(0, 0, 0, 0, 0), (8, 4, 1, 3, 1), (5, 2, 0, 1, 0)])
def test_neighbours_that_open_the_same_are_asked_the_same(edges: int | None, record: tuple[int, ...]) -> None:
    """All questions and decisions are functions of the job and of what was opened: bins, N̂, e, penalties, T."""
    table, asked = people(), requirement(edges, within_classes=4)
    run, _ = scripted(table, asked)
    other = with_one_more(table, record)
    one, two = (overheard(each, asked, same_openings(each, run)) for each in (table, other))
    assert one == two
    twin, _ = scripted(other, asked, same_openings(other, run))
    assert twin.accountant.charges == run.accountant.charges
    for step in ("leaves", "bins", "pairs"):
        of_run, of_twin = getattr(run.opened, step), getattr(twin.opened, step)
        assert [m.marginal for m in of_run] == [m.marginal for m in of_twin]
        assert all((a.counts == b.counts).all() for a, b in zip(of_run, of_twin, strict=True))


def test_auto_goes_by_the_noisy_number_of_rows() -> None:
    """75 rows for each of four columns, and about 47 more by noise; a pair needs four times 25."""
    asked = requirement(None, within_classes=25)
    noise = ScriptedNoise(laplace=[[50] * size for size in (9, 5, 2, 4)])
    assert len(overheard(people(), asked, ScriptedNoise())) == 2
    _, _, (*_, n_edges), _ = overheard(people(), asked, noise)
    assert n_edges == 1


def test_bins_go_by_the_noisy_counts() -> None:
    """No region has 200 of the 300 rows, but all do with noise."""
    asked = requirement(0, theta=Fraction(200, 16))
    (_, (exact, _)), (_, (noisy, _)) = (
        overheard(people(), asked, noise)
        for noise in (ScriptedNoise(), ScriptedNoise(laplace=[[0] * 9, [0] * 5, [0] * 2, [200] * 4]))
    )
    assert exact[3].shape == (1, 2)
    assert noisy[3].shape == (4, 2)


def test_expectations_and_penalties_go_by_the_noisy_counts() -> None:
    """Columns of which noise makes a single bin in a single class: nothing is expected elsewhere."""
    asked = requirement(1)
    run, _ = scripted(people(), asked)
    still = [[0] * each.counts.size for each in run.opened.leaves]
    moved = [
        [1000 - each.counts.item(0), *(-each.counts.reshape(-1)[1:]).tolist()] for each in run.opened.bins
    ]
    _, _, (pairs, expected, penalties, _, _), _ = overheard(
        people(), asked, ScriptedNoise(laplace=[*still, *moved])
    )
    for pair, e in zip(pairs, expected, strict=True):
        counts = np.array(e)
        assert counts.shape == pair.shape
        assert np.flatnonzero(counts).tolist() == [0]
    rate = scripted(people(), asked)[0].opened.pairs[0].rate
    assert penalties == [int(pair.size / rate) for pair in pairs]


def test_the_number_of_rows_is_a_weighted_mean_of_all_columns() -> None:
    outcome, _ = scripted(people(), requirement(0))
    assert n_rows(outcome.opened.leaves) == 300
    sizes = [9, 5, 2, 4]
    noise = ScriptedNoise(laplace=[[10] * size for size in sizes])
    outcome, _ = scripted(people(), requirement(0), noise)
    assert n_rows(outcome.opened.leaves) == 300 + round(4 * 10 / sum(1 / size for size in sizes))


# ---- what is measured


def test_what_is_opened_are_counts_and_noise() -> None:
    table = people()
    outcome, _ = scripted(table, requirement(2))
    for measured in (*outcome.opened.leaves, *outcome.opened.bins, *outcome.opened.pairs):
        columns = [np.array(axis.bins)[table.qid[axis.column]] for axis in measured.marginal.axes]
        classes = [table.axis(0)] if measured.marginal.n_classes > 1 else []
        found = np.zeros([*measured.marginal.shape[:-1], *([2] * len(classes))], dtype=np.int64)
        np.add.at(found, (*columns, *classes), 1)
        assert (measured.counts.reshape(found.shape) == found).all()
        assert measured.counts.sum() == 300  # no row is left out, whatever it lacks


def test_dependent_columns_are_chosen_first() -> None:
    outcome, _ = scripted(people(n=2000), requirement(1, epsilon="5"))
    assert outcome.opened.pairs[0].marginal.columns == (0, 1)


def test_a_table_without_rows_and_one_without_class() -> None:
    empty = people(n=0)
    assert synthesize_single(empty, requirement(None), exact_noise(SeededRng(1))).opened.pairs == ()
    assert len(synthesize_single(empty, requirement(3), exact_noise(SeededRng(1))).opened.pairs) == 3
    schema = replace(empty.schema, class_name=None, classes=("",))
    general = table_of(schema, [(1, 1, 1, 1, 0)] * 40)
    outcome, _ = scripted(general, requirement(3))
    assert all(m.marginal.n_classes == 1 for m in outcome.opened.pairs)


def test_exact_noise_is_unbiased_noise() -> None:
    """Signed counts, neither clamped nor of the wrong scale."""
    outcome = synthesize_single(people(n=0), requirement(0, epsilon="1/10"), exact_noise(SeededRng(5)))
    counts = np.concatenate([m.counts.reshape(-1) for m in outcome.opened.leaves])
    assert counts.min() < 0 < counts.max()
    scale = float(1 / outcome.opened.leaves[0].rate)
    assert scale / 2 < np.abs(counts).mean() < 2 * scale


# ---- what is refused


def test_too_many_rows_are_refused_without_a_number() -> None:
    asked = replace(requirement(0), max_rows=299)
    with pytest.raises(PrivacyError, match=r"more than max_rows = 299 rows$"):
        synthesize_single(people(), asked, ScriptedNoise())


@pytest.mark.parametrize(
    ("columns", "edges", "said"),
    [
        ((), 0, "a column beside the class"),
        ((numeric("x", 2), numeric("y", 2)), 2, "edges must be at most 1"),
        ((numeric("x", MAX_GRID_CELLS + 1),), 0, f"has {MAX_GRID_CELLS + 1} cells"),
        ((set_valued("s", {"*": ["a", "b"]}),), 0, "set-valued"),
    ],
)
def test_schemas_that_cannot_be_published(columns: tuple[QidColumn, ...], edges: int, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        check_synthetic(schema_of(*columns), requirement(edges))


def test_a_grid_of_the_most_cells_is_fine() -> None:
    check_synthetic(schema_of(numeric("x", MAX_GRID_CELLS), categorical("c", {"*": ["a"]})), requirement(1))


@pytest.mark.parametrize(
    "edges",
    [
        "0 0.0000000000001 50 100000000",
        "0 10 50 1e18 1e19",
        "-1e19 0 1e19",
        "-1000000000000001 0",
        "0 1000000000000001",
        "0 0.000000000000000000000000000001 1",
        "0 0.0000000000000000000000000000000000001 1",
    ],
)
def test_grids_whose_numbers_doubles_cannot_tell_apart(edges: str) -> None:
    low, *cuts, high = map(Decimal, edges.split())
    column = QidColumn("x", from_cuts(low, high, tuple(cuts), "x"))
    with pytest.raises(SchemaError, match="column x would have more than 15 digits") as caught:
        check_synthetic(schema_of(column), requirement(0))
    assert caught.value.column == "x"
    assert "fewer digits behind the point" in (caught.value.remedy or "")


@pytest.mark.parametrize(
    "changed", [{"epsilon": Fraction(0)}, {"max_rows": 0}, {"per_person": 0}, {"edges": -1}]
)
def test_requirements_that_make_no_sense(changed: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        replace(requirement(1), **changed)


def test_from_how_many_rows_auto_measures_pairs() -> None:
    asked = requirement(None, epsilon="1/4", per_person=2)
    schema = schema_of(*(numeric(f"x{i}", 2) for i in range(14)))
    least = asked.rows_for_edges(schema)
    assert least == 4 * 20 * 14 * 8
    rows = (0, least - 1, least, 9 * least // 4 - 1, 9 * least // 4, 25 * least, 10**9)
    assert [asked.n_edges(schema, n) for n in rows] == [0, 0, 1, 1, 2, 9, 13]
    general = replace(schema, class_name=None, classes=("",))
    assert asked.rows_for_edges(general) == least // 10
