"""Small tables and runs of `method: synthetic`."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from anonymize.synthetic.loop import SyntheticOutcome, question
from anonymize.synthetic.marginals import score
from anonymize.synthetic.requirement import Design, Synthetic
from anonymize.synthetic.single import synthesize_single
from anonymize.table import CodedTable, Schema
from tests.support.coins import ScriptedNoise
from tests.support.dp_tables import JOBS, categorical, numeric, schema_of, table_of

_HIGH = 10**6
"""Above every score."""


def people_schema() -> Schema:
    age = replace(numeric("age", 8), missing_cell=True)
    sex = categorical("sex", {"*": ["m", "f"]})
    return schema_of(age, categorical("job", JOBS), sex, categorical("region", {"*": ["n", "e", "s", "w"]}))


def people(seed: int = 0, n: int = 300) -> CodedTable:
    """Age, with missing cells; job by age; sex by class; region alone."""
    rng = np.random.default_rng(seed)
    cls = rng.integers(0, 2, n)
    age = np.minimum(rng.integers(0, 6, n) + 3 * cls, 8)
    job = (age // 2 + (rng.random(n) < 0.2)) % 5
    sex = cls ^ (rng.random(n) < 0.3)
    return table_of(people_schema(), list(zip(age, job, sex, rng.integers(0, 4, n), cls, strict=True)))


def requirement(
    edges: int | None = 2, epsilon: str = "1", per_person: int = 1, **design: object
) -> Synthetic:
    changed = replace(Design(), **design)  # type: ignore[arg-type]
    return Synthetic(Fraction(epsilon), edges, per_person=per_person, design=changed)


def scripted(
    table: CodedTable, asked: Synthetic, noise: ScriptedNoise | None = None
) -> tuple[SyntheticOutcome, ScriptedNoise]:
    """A run with noise as a test wants it; without any it is exact."""
    noise = noise or ScriptedNoise()
    return synthesize_single(table, asked, noise), noise


def same_openings(table: CodedTable, run: SyntheticOutcome) -> ScriptedNoise:
    """The noise with which a table opens what another one's run did, whatever the scores are."""
    opened = run.opened
    measured = (*opened.leaves, *opened.bins, *opened.pairs)
    laplace = [(each.counts - each.marginal.counts(table)).reshape(-1).tolist() for each in measured]
    if not opened.pairs:
        return ScriptedNoise(laplace=laplace)
    asked = question(opened.bins, opened.pairs[0].rate)
    chosen = [each.marginal for each in opened.pairs]
    places = [chosen.index(pair) if pair in chosen else len(chosen) for pair in asked.pairs]
    pairs = zip(asked.pairs, asked.expected, asked.penalties, places, strict=True)
    drawn = [_HIGH - place - score(pair.counts(table), e, p) for pair, e, p, place in pairs]
    return ScriptedNoise(laplace=laplace, geometric=[drawn])
