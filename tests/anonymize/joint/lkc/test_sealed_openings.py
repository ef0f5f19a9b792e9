"""Openings of sealed horizontal LKC: those of the ledger, and nothing that depends on more than the table."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from anonymize.grid import from_step
from anonymize.joint.disclosure import ALLOWED
from anonymize.joint.lkc.request import Request
from anonymize.lkc.single import anonymize_single
from anonymize.table import CodedTable, QidColumn, Schema, coded_table, joined
from crypto.local import Transcript
from tests.support import jobs
from tests.support.computations import Computed
from tests.support.entries import lkc
from tests.support.horizontal import (
    NONE_LEFT,
    Revealed,
    expect_openings,
    flat_case,
    regeneralized,
    run_sealed,
    small_case,
    whole_of,
)
from tests.support.scores import PUBLISHED
from tests.support.tamper import AHEAD


def views(transcript: Transcript, party: str) -> list[tuple[str, str, int]]:
    """The shape of what a party received: sender, step, size of every message."""
    return [(m.sender, m.step, len(m.payload)) for m in transcript.view(party)]


@pytest.mark.some(1)
@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize("whose", [0, 1, 2])
def test_views_do_not_depend_on_what_is_not_published(revealed: Revealed, whose: int, goal: Any) -> None:
    """Change one party's data, of the pair or not, without changing the table or the sequence of candidates:
    everything that anybody receives has the same shape, and all opened values are the same.
    """
    tables, request = small_case()
    request = dataclasses.replace(request, goal=PUBLISHED[goal])
    results, before = run_sealed(tables, request)
    told = revealed[0]
    changed = 0
    for seed in range(60):
        variant = regeneralized(tables[whose], results["p0"].outcome, np.random.default_rng(seed))
        others = [variant if i == whose else table for i, table in enumerate(tables)]
        outcome = anonymize_single(whole_of(others), request.requirement, PUBLISHED[goal])
        if jobs.turns(outcome) != jobs.turns(results["p0"].outcome) or _same(variant, tables[whose]):
            continue
        changed += 1
        _, after = run_sealed(others, request)
        for party in ("p0", "p1", "p2"):
            assert views(after, party) == views(before, party)
        if changed == 3:
            break
    assert changed == 3
    assert all(seen == told for seen in revealed)
    assert len(revealed) == 3 * (changed + 1)


def _same(one: CodedTable, other: CodedTable) -> bool:
    rows = [
        sorted(zip(*(c.tolist() for c in (*t.qid, t.cells, t.weights)), strict=True)) for t in (one, other)
    ]
    return rows[0] == rows[1]


@pytest.mark.parametrize(
    ("ages", "goal", "expected"),
    [
        ([37] * 40, "general", [("split", [0], "all"), NONE_LEFT]),
        ([37] * 40, "classification", [("split", [0, 0], "all"), ("order", [], "all"), NONE_LEFT]),
        (
            [20, 20, 60, 60] * 10,
            "classification",
            [("split", [0, 0], "all"), ("order", [], "all"), NONE_LEFT],
        ),
    ],
)
def test_what_the_end_says_of_nodes_never_taken(
    ages: list[int], goal: Any, expected: list[Any], revealed: Revealed
) -> None:
    """It is finer than the table: that all have one age (not which), that ages do not tell the classes apart."""
    age = QidColumn("age", from_step(Decimal(0), Decimal(100), Decimal(1), "age"))
    schema = Schema((age,), "c", ("y", "n"), ())
    whole = coded_table(schema, [np.array(ages)], np.array([0, 1] * 20), [])
    results, _ = run_sealed(
        jobs.split_among(whole, np.arange(40) % 2, 2), Request(schema, lkc(1, 2), PUBLISHED[goal], bytes(32))
    )
    assert results["p0"].outcome.steps == ()
    assert [told[2:] for told in revealed] == [expected] * 2
    allowed = (*ALLOWED["horizontal/sealed"], *PUBLISHED[goal].reveals["horizontal/sealed"])
    finer = {a.name for a in allowed if a.finer}
    assert {name for name, _, _ in expected} <= finer


@pytest.mark.some(2)
@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize("n", [2, 3])
def test_what_leaves_the_circuits(n: int, goal: Any, revealed: Revealed, computed: list[Computed]) -> None:
    tables, request = small_case()
    request = dataclasses.replace(request, goal=PUBLISHED[goal])
    run_sealed([*tables[: n - 1], joined(tables[n - 1 :])], request)
    expect_openings(computed, revealed[0], request)
    assert {True, False} <= {value for name, value, _ in revealed[0] if name == "valid"}


def test_what_leaves_the_circuits_where_an_interval_is_no_candidate(
    revealed: Revealed, computed: list[Computed]
) -> None:
    tables, request = flat_case()
    run_sealed(tables, request)
    assert next(value for name, value, _ in revealed[0] if name == "split")[0] == 0
    expect_openings(computed, revealed[0], request)


def test_what_is_opened_outside_the_circuits(revealed: Revealed) -> None:
    """Sums are opened as the ledger says, in those shapes; to others the pair tells what it opened."""
    tables, request = small_case()
    results, transcript = run_sealed(tables, request)
    shapes = [r.shape for r in results["p0"].ledger.reveals if r.name in ("root_counts", "partition_counts")]
    for sender, recipient in (("p0", "p1"), ("p1", "p0"), ("p0", "p2"), ("p1", "p2")):
        sent = [m for m in transcript.messages if (m.sender, m.recipient) == (sender, recipient)]
        opened = [len(m.payload) for m in sent if m.step == "shares/open"]
        assert opened == [4 * int(np.prod(shape)) for shape in shapes]
    verdicts = 0
    for message in transcript.view("p2"):  # of the deputy, with the number of candidates decided by it
        if (message.sender, message.step) == ("p1", "sealed/valid"):
            (n_discarded,) = np.frombuffer(message.payload, "<u8").tolist()
            names = [value for name, value, _ in revealed[2] if name == "valid"]
            assert not any(names[verdicts : verdicts + n_discarded])
            verdicts += n_discarded
            if verdicts < len(names) and names[verdicts]:
                verdicts += 1
    assert verdicts == sum(name == "valid" for name, _, _ in revealed[2])
    for sender in ("p0", "p1"):  # what one of them says, and the other one's digest of it
        told = [m for m in transcript.view("p2") if m.sender == sender and m.step != "shares/open"]
        steps = [m.step for m in told]
        assert steps[0] == "sealed/root"
        assert set(steps[1:]) == {"sealed/split", "sealed/valid"}
        assert steps.count("sealed/split") == sum(name == "split" for name, _, _ in revealed[2])
        digests = {len(m.payload) for m in told if (m.step in AHEAD) == (sender == "p0")}
        assert digests == {16}
