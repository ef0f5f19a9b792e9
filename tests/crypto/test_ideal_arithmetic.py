"""The ideal twins: the same signatures and the same functions as the protocols they stand for."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from crypto import intersection, joint_histogram, polynomial, scalar_product, shares
from crypto.joint_histogram import HistogramShape
from crypto.local import run_local
from crypto.ot.extension import setup_receiver, setup_sender
from crypto.polynomial import PolynomialShape
from crypto.rounds import Rounds
from crypto.scalar_product import ProductShape
from crypto.shares import ComputePair
from tests.support import ideal_arithmetic
from tests.support.keys import short_key
from tests.support.rng import SeededRng

NAMES = {
    scalar_product: ("scalar_product_holder", "scalar_product_masker"),
    polynomial: ("value_receiver", "value_sender", "share_receiver", "share_sender"),
    intersection: ("intersect",),
    joint_histogram: ("joint_histogram_send", "joint_histogram_receive"),
    shares: ("setup_shares", "share_vector", "open_vector"),
}
PARTIES = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in NAMES.items() for name in names]
)
def test_signatures_agree(module: ModuleType, name: str) -> None:
    real = inspect.signature(getattr(module, name)).parameters
    twin = inspect.signature(getattr(ideal_arithmetic, name)).parameters
    assert [(p.name, p.kind, p.default) for p in real.values()] == [
        (p.name, p.kind, p.default) for p in twin.values()
    ]


def both(module: ModuleType) -> list[ModuleType]:
    return [module, ideal_arithmetic]


@pytest.mark.parametrize("module", both(scalar_product))
def test_scalar_product(module: Any) -> None:
    key, shape = short_key("a"), ProductShape(2, 3, 4, 4)
    x, y = np.array([[1, 2, 3], [4, 5, 6]], np.uint64), np.array([[7, 8, 9], [0, 0, 1]], np.uint64)
    outputs, _ = run_local(
        {
            "a": module.scalar_product_holder("b", key, x, shape, SeededRng(0)),
            "b": module.scalar_product_masker("a", key.public, y, shape, SeededRng(1)),
        }
    )
    assert (outputs["a"] + outputs["b"]).tolist() == [50, 6]


@pytest.mark.parametrize("module", both(polynomial))
def test_polynomials(module: Any) -> None:
    key, shape = short_key("a"), PolynomialShape(2, 2, 8, 8)
    polynomials, values = [[1, -2, 3], [-5, 0, 0]], [66, -5]
    for kind in ("value", "share"):
        outputs, _ = run_local(
            {
                "a": getattr(module, f"{kind}_receiver")("b", key, [5, 9], shape, SeededRng(0)),
                "b": getattr(module, f"{kind}_sender")("a", key.public, polynomials, shape, SeededRng(1)),
            }
        )
        if kind == "value":
            assert outputs == {"a": values, "b": None}
        else:
            assert (outputs["a"] + outputs["b"]).view(np.int64).tolist() == values


@pytest.mark.parametrize("module", both(intersection))
def test_intersection(module: Any) -> None:
    sets = {"a": [b"x", b"y", b"z"], "b": [b"z", b"x"], "c": [b"w", b"x", b"z", b"v"]}
    outputs, _ = run_local(
        {me: module.intersect(me, PARTIES, "a", sets[me], b"job", SeededRng(me)) for me in PARTIES}
    )
    found = [[sets[me][i] for i in outputs[me]] for me in PARTIES]
    assert found[0] == found[1] == found[2]
    assert set(found[0]) == {b"x", b"z"}


@pytest.mark.parametrize("groups", [None, [1, 0, 3]])
@pytest.mark.parametrize("module", both(joint_histogram))
def test_joint_histogram(module: Any, groups: list[int] | None) -> None:
    sizes = None if groups is None else np.array(groups)
    shape = HistogramShape(4, 2, 3, max_weight=9, omissions=True)
    ideal = module is ideal_arithmetic

    def sender() -> Rounds[Any]:
        session: Any = ideal_arithmetic.Session("b")
        if not ideal:
            session = yield from setup_sender("a", "b", SeededRng("a"))
        weights = np.array([9, 8, 7, 6])
        return (
            yield from module.joint_histogram_send(
                session, np.array([0, 1, -1, 1]), shape, SeededRng("s"), weights, sizes
            )
        )

    def receiver() -> Rounds[Any]:
        session: Any = ideal_arithmetic.Session("a")
        if not ideal:
            session = yield from setup_receiver("b", "a", SeededRng("b"))
        return (yield from module.joint_histogram_receive(session, np.array([2, 0, 1, -1]), shape, sizes))

    outputs, _ = run_local({"a": sender(), "b": receiver()})
    assert outputs["a"].dtype == outputs["b"].dtype == np.uint16
    first, second, none = [[0, 0, 9], [0, 0, 0]], [[0, 0, 0], [8, 0, 0]], [[0] * 3] * 2
    expected = [[0, 0, 9], [8, 0, 0]] if groups is None else [first, none, second]
    assert (outputs["a"] + outputs["b"]).tolist() == expected


@pytest.mark.parametrize("module", both(shares))
@pytest.mark.parametrize("recipients", [None, ["c"], ["a"]])
def test_shares(module: Any, recipients: list[str] | None) -> None:
    pair = ComputePair("a", "b")

    def party(me: str) -> Rounds[Any]:
        session = yield from module.setup_shares(me, PARTIES, pair, b"job", SeededRng(me))
        held = yield from module.share_vector(session, np.array([1, 2**16 - 1], np.uint16))
        return (yield from module.open_vector(session, 2, 16, held, recipients))

    outputs, _ = run_local({me: party(me) for me in PARTIES})
    for me in PARTIES:
        total = outputs[me]
        assert (None if total is None else total.tolist()) == (
            [3, 2**16 - 3] if me in (recipients or PARTIES) else None
        )
