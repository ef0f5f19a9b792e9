"""Small circuits around one function, evaluated in the clear."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from crypto.builder import Builder, Word
from crypto.circuit import Circuit, Held, To, evaluate
from crypto.circuits.arithmetic import less, multiply

Function = Callable[..., Word]


def circuit_of(function: Function, widths: Sequence[int], held: Held = Held.GARBLER) -> Circuit:
    """One input word for each width; the output is what the function makes of the builder and the words."""
    b = Builder("test")
    words = [b.input(f"x{i}", held, width)[0] for i, width in enumerate(widths)]
    b.output("out", To.BOTH, [function(b, *words)])
    return b.build()


def mixed() -> Circuit:
    """Every kind of gate, inverted operands, groups of one gate and of several."""
    b = Builder("mixed")
    (x,), (y,), (p,) = (
        b.input(n, h, 4) for n, h in (("x", Held.GARBLER), ("y", Held.EVALUATOR), ("p", Held.PUBLIC))
    )
    product = multiply(b, x, y)
    picked = [b.and_(q ^ 1, b.xor(c, d ^ 1)) for q, c, d in zip(p, x, y, strict=True)]
    b.output(
        "o",
        To.BOTH,
        [
            product,
            [*picked, b.and_(p[0], p[1]), b.xor(p[2], x[0]), less(b, x, y), b.or_(x[1], y[1])],
            [b.and_(of_both, of_one ^ 1) for of_both in product[5:7] for of_one in (*x[:2], *y[:2])],
        ],
    )
    return b.build()


def apply(function: Function, widths: Sequence[int], arguments: Sequence[Sequence[int]]) -> list[int]:
    """Evaluate on every tuple of arguments."""
    circuit = circuit_of(function, widths)
    columns = np.array(arguments, dtype=np.uint64).reshape(len(arguments), len(widths))
    inputs = {f"x{i}": columns[:, i : i + 1] for i in range(len(widths))}
    return [int(value) for value in evaluate(circuit, len(arguments), inputs)["out"][:, 0]]


def every(*widths: int) -> list[tuple[int, ...]]:
    """All tuples of words of these widths."""
    return list(itertools.product(*(range(1 << width) for width in widths)))


def some(seed: int, count: int, *widths: int) -> list[tuple[int, ...]]:
    """Edge values in all combinations, then random ones."""
    edges = [sorted({0, 1, (1 << w) - 1, 1 << (w - 1), (1 << (w - 1)) - 1}) for w in widths]
    rng = np.random.default_rng(seed)
    columns = [
        rng.integers(0, 1 << w, count, dtype=np.uint64, endpoint=False).tolist()
        if w < 64
        else rng.integers(0, (1 << 64) - 1, count, dtype=np.uint64, endpoint=True).tolist()
        for w in widths
    ]
    return [*itertools.product(*edges), *zip(*columns, strict=True)]


def as_signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value
