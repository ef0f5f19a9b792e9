"""Joint runs draw noise of exactly the rates that were charged, one variable for every option and every cell."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any

import pytest

from anonymize.dp.noise import exact_noise
from anonymize.dp.utility import utility
from anonymize.joint.dp import vertical as dp_vertical
from anonymize.joint.dp.noise import Plans
from tests.support.dp_runs import request_for, run_horizontal, run_vertical, split_columns, thirds
from tests.support.dp_tables import people
from tests.support.thesis import published, small

Asked = list[tuple[str, Fraction, int]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Record the noise that the plans of a run were asked for, by all parties."""
    found: Asked = []
    for kind in ("geometric", "laplace"):
        monkeypatch.setattr(Plans, kind, recording(kind, getattr(Plans, kind), found))
    return found


def recording(kind: str, original: Any, found: Asked) -> Any:
    def asked(self: Plans, rate: Fraction, draws: int) -> Any:
        found.append((kind, rate, draws))
        return original(self, rate, draws)

    return asked


def options(results: Any) -> list[int]:
    """Count the candidates of every choice, from the public course of the run."""
    schema, steps = results["p0"].released.outcome.schema, results["p0"].released.outcome.steps
    open_nodes = [(i, c.root) for i, c in enumerate(schema.qid)]
    counts = []
    for step in steps:
        counts.append(len(open_nodes))
        open_nodes.remove((step.candidate.column, step.candidate.node))
        column = schema.qid[step.candidate.column]
        for child in step.candidate.children:
            n = child.last - child.first if column.is_numeric else len(column.children(child))
            if n > 1:
                open_nodes.append((step.candidate.column, child))
    return counts


def test_horizontal(asked: Asked) -> None:
    table, h = people(), 4
    request = request_for(table.schema, specializations=h)
    results, _ = run_horizontal(thirds(table), request)
    released = results["p0"].released
    step = request.requirement.step_epsilon(table.schema)
    choices = [("geometric", step, n) for n in options(results)]
    final = ("laplace", released.accountant.charges[-1].epsilon, released.table.n_cells)
    expected = expected_splits(results, step)
    assert sorted(asked) == sorted(3 * [*choices, *expected, final])


def test_horizontal_for_people_of_several_records(asked: Asked) -> None:
    """Every rate, of choices, split points and counts, is that of one of so many records; δ is for the person."""
    table, m = people(), 3
    request = request_for(table.schema, specializations=2, per_person=m)
    results, _ = run_horizontal(thirds(table), request)
    released = results["p0"].released
    step = request.requirement.step_epsilon(table.schema) / m
    choices = [("geometric", step, n) for n in options(results)]
    final = ("laplace", released.accountant.charges[-1].epsilon / m, released.table.n_cells)
    assert sorted(asked) == sorted(3 * [*choices, *expected_splits(results, step), final])
    assert request.plans().epsilon == request.requirement.epsilon == released.accountant.spent


def expected_splits(results: Any, rate: Fraction) -> Asked:
    """The root interval of age, and the new intervals of every specialization of it but in the last round."""
    steps = results["p0"].released.outcome.steps
    found: Asked = [("geometric", rate, 7)]
    for step in steps[:-1]:
        points = sum(child.last - child.first - 1 for child in step.candidate.children)
        if step.candidate.column == 0 and points:
            found.append(("geometric", rate, points))
    return found


@pytest.mark.parametrize("name", ["max", "infogain"])
def test_vertical(name: Any, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Split points are drawn by their owner alone, at the same rate."""
    alone: list[tuple[int, Fraction]] = []
    original = dp_vertical.noisy_max

    def spy(scores: Any, rate: Fraction, noise: Any) -> int:
        alone.append((len(scores), rate))
        return original(scores, rate, noise)

    monkeypatch.setattr(dp_vertical, "noisy_max", spy)
    table, h = people(), 4
    request = request_for(table.schema, specializations=h, utility=name)
    results, _ = run_vertical(split_columns(table, [0]), request)
    released = results["p0"].released
    step = request.requirement.step_epsilon(table.schema)
    rate = utility(name, request.requirement.max_rows).rate(step)
    choices = [("geometric", rate, n) for n in options(results)]
    final = (
        "laplace",
        released.accountant.charges[-1].epsilon,
        prod(map(len, released.outcome.cut.nodes)) * 2,
    )
    assert sorted(asked) == sorted(2 * [*choices, final])
    assert alone[0] == (7, rate)
    assert {r for _, r in alone} == {rate}


def spied(module: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Fraction, int]]:
    """Record what the parties' own discrete Laplace noise was asked for."""
    found: list[tuple[Fraction, int]] = []

    def spying(rng: Any) -> Any:
        noise = exact_noise(rng)
        original = noise.laplace
        noise.laplace = lambda rate, n: found.append((rate, n)) or original(rate, n)  # type: ignore
        return noise

    monkeypatch.setattr(f"anonymize.joint.{module}.exact_noise", spying)
    return found


@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_exact_noise_of_each_has_the_rate_of_the_counts(
    partition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = spied(f"dp.{partition}", monkeypatch)
    table = people()
    request = request_for(table.schema, noise="each")
    if partition == "horizontal":
        results, _ = run_horizontal(thirds(table), request)
    else:
        results, _ = run_vertical(split_columns(table, [0]), request)
    released = results["p0"].released
    assert found == 2 * [(released.accountant.charges[-1].epsilon, released.table.n_cells)]


@pytest.mark.some(1)
@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_so_has_that_of_the_published_protocols(partition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = spied(f"dp.thesis.{partition}", monkeypatch)
    results, _ = published(partition, small())
    released = results["p0"].released
    assert found == 2 * [(released.accountant.charges[-1].epsilon, released.table.n_cells)]
