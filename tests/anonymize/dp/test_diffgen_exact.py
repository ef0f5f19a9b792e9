"""DiffGen is ε-differentially private: by exact enumeration, without statistics (semantics §8.6, point 1).

All tables of a few records over a handful of cells, all their neighbours. The program itself is run down every
path of outcomes; each step's law is computed in fractions from the scores and the rate that the program used,
and compared with what its account says the step may cost. e^−rate is replaced by a fraction a: the proofs hold
for every a in (0, 1), so exp does not enter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest

import anonymize.dp.diffgen
from anonymize.dp.accounting import Charge, Dp
from anonymize.dp.diffgen import DpOutcome, noisy_max, release_single
from anonymize.dp.noise import Noise
from anonymize.table import CodedTable, QidColumn, Schema
from tests.support.coins import ScriptedNoise
from tests.support.dp_tables import (
    all_sets,
    all_tables,
    categorical,
    domain_records,
    leaf_sets,
    neighbours,
    numeric,
    schema_of,
    set_valued,
    table_of,
)
from tests.support.noisy_max import noisy_max_law

A = Fraction(2, 3)
EPSILON = Fraction(1)


@dataclass
class Selections:
    """Forces the outcome of every selection of a run, and records what it was made from."""

    script: Sequence[int]
    seen: list[tuple[tuple[int, ...], Fraction]] = field(default_factory=list)

    def noisy_max(self, scores: Sequence[int], rate: Fraction, noise: Noise) -> int:
        self.seen.append((tuple(scores), rate))
        place = len(self.seen) - 1
        return self.script[place] if place < len(self.script) else 0


@dataclass(frozen=True)
class Path:
    """One way through a run: the laws of its selections, and what was asked of the noise for the counts."""

    outcomes: tuple[int, ...]
    laws: tuple[tuple[Fraction, ...], ...]
    rates: tuple[Fraction, ...]
    charges: tuple[Charge, ...]
    counts: tuple[int, ...]
    asked: tuple[tuple[str, Fraction, int], ...]
    labels: tuple[tuple[str, ...], ...]


def run_path(
    table: CodedTable, requirement: Dp, script: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> tuple[DpOutcome, Selections, ScriptedNoise]:
    selections, noise = Selections(script), ScriptedNoise()
    monkeypatch.setattr(anonymize.dp.diffgen, "noisy_max", selections.noisy_max)
    return release_single(table, requirement, noise), selections, noise


def all_paths(table: CodedTable, requirement: Dp, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Every sequence of outcomes that the program can take."""
    pending: list[tuple[int, ...]] = [()]
    while pending:
        script = pending.pop()
        outcome, selections, noise = run_path(table, requirement, script, monkeypatch)
        for place in range(len(script), len(selections.seen)):
            before = (*script, *[0] * (place - len(script)))
            pending += [(*before, other) for other in range(1, len(selections.seen[place][0]))]
        outcomes = (*script, *[0] * (len(selections.seen) - len(script)))
        yield Path(
            outcomes,
            tuple(noisy_max_law(scores, A) for scores, _ in selections.seen),
            tuple(rate for _, rate in selections.seen),
            tuple(outcome.accountant.charges),
            tuple(outcome.table.counts.tolist()),
            tuple(noise.asked),
            tuple(c.labels for c in outcome.table.cells.columns.values()),
        )


def within(p: Fraction, q: Fraction, epsilon: Fraction, rate: Fraction) -> bool:
    """p ≤ e^ε·q, where e^−rate = A: e^ε = A^−(ε/rate), in integers by powers."""
    power = epsilon / rate
    ratio: Fraction = p / q
    return bool(ratio**power.denominator <= A**-power.numerator)


CASES: Mapping[str, tuple[tuple[QidColumn, ...], int, int]] = {
    # columns, most records, specializations: 6, 8 and 12 cells
    "interval": ((numeric("x", 3),), 4, 2),
    "two columns": ((categorical("p", {"*": ["a", "b"]}), categorical("q", {"*": ["c", "d"]})), 4, 2),
    "mixed": ((numeric("x", 3), categorical("q", {"*": ["c", "d"]})), 3, 2),
}


def laws_of(
    columns: Sequence[QidColumn], most: int, h: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[Schema, dict[tuple[int, ...], dict[tuple[int, ...], Path]], int]:
    """Of every table of up to ``most`` + 1 records the paths by outcome."""
    schema = schema_of(*columns)
    records = domain_records(schema)
    requirement = Dp(EPSILON, h, max_rows=10)
    laws = {}
    for numbers in all_tables(records, most):
        table = table_of(schema, [records[i] for i in numbers])
        laws[numbers] = {path.outcomes: path for path in all_paths(table, requirement, monkeypatch)}
    return schema, laws, len(records)


@pytest.mark.some(1)
@pytest.mark.parametrize("case", list(CASES))
def test_every_step_costs_what_the_account_says(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    columns, most, h = CASES[case]
    schema, laws, n_records = laws_of(columns, most, h, monkeypatch)
    step = Dp(EPSILON, h).step_epsilon(schema)
    pairs, tight = 0, False
    for table, paths in laws.items():
        for other in neighbours(table, n_records):
            if other not in laws:
                continue
            pairs += 1
            assert paths.keys() == laws[other].keys()  # what can happen does not depend on the data
            for outcomes, path in paths.items():
                twin = laws[other][outcomes]
                tight |= check_pair(path, twin, step)
    assert pairs > 100
    assert tight, "no step comes near its bound: too much noise, or nothing was tested"


def check_pair(path: Path, twin: Path, step: Fraction) -> bool:
    """Compare one path on two neighbouring tables, both ways; return whether a bound is met exactly."""
    tight = False
    assert path.rates == twin.rates
    for place, outcome in enumerate(path.outcomes):
        p, q = path.laws[place][outcome], twin.laws[place][outcome]
        for one, another in ((p, q), (q, p)):
            assert within(one, another, step, path.rates[place])
            tight |= one / another == A ** -(step / path.rates[place]).numerator
    assert path.charges == twin.charges
    assert path.labels == twin.labels
    check_counts(path, twin)
    return tight


def check_counts(path: Path, twin: Path) -> None:
    """The counts differ by one record in one cell, and their noise has the rate that was charged last."""
    assert sum(abs(x - y) for x, y in zip(path.counts, twin.counts, strict=True)) == 1
    last = path.charges[-1].epsilon
    assert path.asked[-1] == ("laplace", last, len(path.counts))
    assert sum((c.epsilon for c in path.charges), Fraction(0)) == EPSILON


@pytest.mark.parametrize("case", list(CASES))
def test_the_probabilities_of_all_paths_add_up(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    columns, _, h = CASES[case]
    _, laws, _ = laws_of(columns, 1, h, monkeypatch)
    for paths in laws.values():
        total = Fraction(0)
        for path in paths.values():
            chance = Fraction(1)
            for law, outcome in zip(path.laws, path.outcomes, strict=True):
                chance *= law[outcome]
            total += chance
        assert total == 1


def test_whole_paths_cost_no_more_than_the_selections_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    """The product over a path, against the sum of the selections' charges."""
    columns, _, h = CASES["mixed"]
    schema, laws, n_records = laws_of(columns, 2, h, monkeypatch)
    step = Dp(EPSILON, h).step_epsilon(schema)
    for table, paths in laws.items():
        for other in neighbours(table, n_records):
            if other in laws:
                for outcomes, path in paths.items():
                    selections = sum((c.epsilon for c in path.charges[:-1]), Fraction(0))
                    p, q = chance(path), chance(laws[other][outcomes])
                    assert within(p, q, selections, step)
                    assert within(q, p, selections, step)


def chance(path: Path) -> Fraction:
    product = Fraction(1)
    for law, outcome in zip(path.laws, path.outcomes, strict=True):
        product *= law[outcome]
    return product


# ---- people with several records


@pytest.mark.parametrize("case", ["two columns", "mixed"])
def test_a_person_of_two_records_costs_what_the_account_says(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole paths on all tables and on those with one or two records more: selections and counts, against ε."""
    columns, _, h = CASES[case]
    schema = schema_of(*columns)
    records = domain_records(schema)
    requirement = Dp(EPSILON, h, max_rows=10, per_person=2)
    step = requirement.step_epsilon(schema)

    def paths(numbers: tuple[int, ...]) -> dict[tuple[int, ...], Path]:
        table = table_of(schema, [records[i] for i in numbers])
        return {path.outcomes: path for path in all_paths(table, requirement, monkeypatch)}

    tight = False
    for table in ((), (0,), (1, 1), (1, len(records) - 1)):
        before = paths(table)
        for person in ((0,), (0, 0), (0, 1), (2, 2), (2, len(records) - 1)):
            after = paths(tuple(sorted((*table, *person))))
            assert before.keys() == after.keys()
            for outcomes, path in before.items():
                twin = after[outcomes]
                selections = sum((c.epsilon for c in path.charges[:-1]), Fraction(0))
                for one, another in ((path, twin), (twin, path)):
                    assert within(chance(one), chance(another), selections, step / 2)
                for place, outcome in enumerate(outcomes):
                    p, q = path.laws[place][outcome], twin.laws[place][outcome]
                    assert within(p, q, step, step / 2)
                    assert within(q, p, step, step / 2)
                    tight |= max(p / q, q / p) > A**-1
                moved = sum(abs(x - y) for x, y in zip(path.counts, twin.counts, strict=True))
                kind, rate, _ = path.asked[-1]
                assert kind == "laplace"
                assert moved * rate <= path.charges[-1].epsilon
                assert set(path.rates) == {step / 2}
    assert tight, "two records never cost more than one may"


# ---- the step itself: the program's noisy max against the law used above


@pytest.mark.parametrize("scores", [(0, 0), (3, 1), (0, 2), (1, 1, 1), (2, 0, 1), (0, 0, 3)])
def test_noisy_max_has_the_law_that_the_proof_uses(scores: tuple[int, ...]) -> None:
    """Every noise vector up to a bound, through the program; the rest is the mass left out."""
    a, most = Fraction(1, 2), 12
    found = [Fraction(0)] * len(scores)
    mass = [(1 - a) * a**k for k in range(most)]
    for vector in np.ndindex(*[most] * len(scores)):
        noise = ScriptedNoise(geometric=[vector])
        weight = Fraction(1)
        for k in vector:
            weight *= mass[k]
        found[noisy_max(scores, Fraction(7), noise)] += weight
        assert noise.asked == [("geometric", Fraction(7), len(scores))]
    left_out = 1 - sum(found)
    law = noisy_max_law(scores, a)
    assert sum(law) == 1
    assert all(low <= p <= low + left_out for low, p in zip(found, law, strict=True))


@pytest.mark.parametrize("a", [Fraction(1, 2), Fraction(9, 10)])
def test_noisy_max_on_all_small_scores(a: Fraction) -> None:
    """All pairs of scores 0 … 3 that differ by one at most: a^−2, and a^−1 where all move one way."""
    vectors = list(np.ndindex(4, 4, 4))
    laws = {scores: noisy_max_law(scores, a) for scores in vectors}
    worst = monotone = Fraction(0)
    for scores in vectors:
        for moves in np.ndindex(3, 3, 3):
            moved = tuple(int(s) + m - 1 for s, m in zip(scores, moves, strict=True))
            if moved in laws:
                ratio = max(p / q for p, q in zip(laws[scores], laws[moved], strict=True))
                worst = max(worst, ratio)
                if all(m >= 1 for m in moves) or all(m <= 1 for m in moves):
                    monotone = max(monotone, ratio)
    assert monotone <= 1 / a < worst <= 1 / a**2


# ---- set-valued columns


def test_the_test_of_combinations_costs_what_it_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbouring tables differ by one in one combination's count; noise and threshold are the same for all."""
    column = set_valued("s", {"*": ["a", "b"]})
    schema = schema_of(column, categorical("q", {"*": ["c", "d"]}))
    sets = {0: leaf_sets(all_sets(2))}
    records = domain_records(schema, sets)
    requirement = Dp(EPSILON, 2, max_rows=10)
    tests: dict[tuple[int, ...], tuple[object, ...]] = {}
    for numbers in all_tables(records, 3):
        table = table_of(schema, [records[i] for i in numbers], sets)
        tests[numbers] = combination_tests(table, requirement, monkeypatch)
    for numbers, seen in tests.items():
        for other in neighbours(numbers, len(records)):
            if other in tests:
                size, test, counts, charge = seen
                twin = tests[other]
                assert (size, test, charge) == (twin[0], twin[1], twin[3])
                assert isinstance(counts, dict)
                assert isinstance(twin[2], dict)
                cells = counts.keys() | twin[2].keys()
                assert sum(abs(counts.get(c, 0) - twin[2].get(c, 0)) for c in cells) == 1


def combination_tests(
    table: CodedTable, requirement: Dp, monkeypatch: pytest.MonkeyPatch
) -> tuple[object, ...]:
    """The first test of a run is made from these counts, where the set-valued column is chosen first."""
    seen: list[tuple[object, ...]] = []

    def spy(size: int, occupied: Mapping[int, int], test: object, noise: Noise) -> dict[int, int]:
        seen.append((size, test, dict(occupied)))
        return dict(occupied)

    monkeypatch.setattr("anonymize.dp.sets.sparse_counts", spy)
    outcome, _, _ = run_path(table, requirement, (0,), monkeypatch)
    charge = next(c for c in outcome.accountant.charges if c.purpose.startswith("test"))
    (size, test, occupied), *_ = seen
    assert getattr(test, "rate") == charge.epsilon  # noqa: B009
    return size, test, occupied, charge
