"""Both engines of :mod:`crypto.engine` on the same work, in turn: part of ``make bench AREA=crypto``."""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.support import Row
from crypto import engine
from crypto.blocks import random_blocks
from crypto.circuit import Circuit
from crypto.garbling import Evaluation, Garbling
from crypto.hashing import BlockHash
from crypto.point_function import LOW_BITS
from crypto.rng import SystemRng
from crypto.small_vectors import SMALL_BITS
from crypto.trees import NODES_AT_ONCE

TURNS = 5
RNG = SystemRng()
_GATES = 1 << 19
_COLUMNS = 1026
_VECTORS = 1024

EMP = {131_072: (1 / 0.93, 45 / 51, 32 / 43), 10_000: (1 / 0.78, 0.80, 0.66)}
"""EMP-toolkit's rate, and CPU time of garbler and evaluator, as multiples of NumPy's; recorded idle, in pairs."""


def engines() -> dict[str, engine.Engine]:
    """Return NumPy, and compiled code if available."""
    found: dict[str, engine.Engine] = {"NumPy": engine.Reference()}
    if importlib.util.find_spec("llvmlite") is not None:
        from crypto.compiled.loading import load

        found["compiled"] = load()
    return found


def in_turn(measure: Callable[[], Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Measure with the engines in turn, several times; by engine, return the median of each figure."""
    before, all_engines = engine.in_force(), engines()
    seen: dict[str, list[Mapping[str, float]]] = {name: [] for name in all_engines}
    for _ in range(TURNS):
        for name, each in all_engines.items():
            engine.use(each)
            seen[name].append(measure())
    engine.use(before)
    return {name: {k: statistics.median(turn[k] for turn in s) for k in s[0]} for name, s in seen.items()}


def rows_of(
    what: str, unit: str, found: Mapping[str, Mapping[str, float]], better: str = "more"
) -> Iterator[Row]:
    """Yield a row for each figure and engine; for a compiled engine with the factor over NumPy."""
    for figure in found["NumPy"]:
        for name, figures in found.items():
            ratio = figures[figure] / found["NumPy"][figure]
            anchor = "" if name == "NumPy" else f"{ratio:.2f} × NumPy in turn"
            yield Row(f"{figure}, {what}, {name}", figures[figure], unit, anchor=anchor, better=better)


def gate_rows(circuits: Mapping[str, Circuit]) -> Iterator[Row]:
    """Measure gates alone, on a single core, for so many instances side by side."""
    for name, circuit in circuits.items():
        for n in (1, 8, 100, 1_000, 5_000):
            found = in_turn(lambda circuit=circuit, n=n: _gates(circuit, n))
            yield from rows_of(f"{name}, {n:,} instances, one core", "M AND per CPU s", found)


def _gates(circuit: Circuit, n: int) -> dict[str, float]:
    delta = random_blocks(RNG, 1)[0] | np.array([1, 0], dtype=np.uint64)
    garbling, evaluation = Garbling(circuit, n, delta, bytes(16)), Evaluation(circuit, n, bytes(16))
    garbling.labels[1:] = random_blocks(RNG, (circuit.rows - 1) * n).reshape(-1, 2 * n)
    evaluation.labels[1:] = garbling.labels[1:]
    tables = [table.copy() for table in garbling.tables()]
    passes = max(2, min(200, _GATES // (n * circuit.and_gates)))

    def evaluate() -> None:
        for piece, table in zip(evaluation.pieces, tables, strict=True):
            evaluation.feed(piece, table)

    works = {"garble": lambda: [len(table) for table in garbling.tables()], "evaluate": evaluate}
    return {name: n * circuit.and_gates / _cpu_s(work, passes) / 1e6 for name, work in works.items()}


def transpose_rows() -> Iterator[Row]:
    """Measure the bit transpose of a message of transfers."""
    rows = random_blocks(RNG, 64 * _COLUMNS).reshape(128, _COLUMNS)
    scratch, out = np.empty(64 * _COLUMNS, dtype=np.uint64), np.empty((64 * _COLUMNS, 2), dtype=np.uint64)

    def measure() -> dict[str, float]:
        transpose = engine.in_force().transpose
        return {"transpose": 64 * _COLUMNS / _cpu_s(lambda: transpose(rows, scratch, out), 20) / 1e6}

    yield from rows_of("65,664 transfers, one core", "M per CPU s", in_turn(measure))


def look_up_rows() -> Iterator[Row]:
    """Measure a side of look-ups in 2^16 entries: microseconds to grow a vector, and to answer from 22 planes."""
    depth, words, planes = 16 - LOW_BITS, 1 << 10, random_blocks(RNG, 11 << 10).reshape(1, 22, 1 << 10)
    correction = random_blocks(RNG, _VECTORS)
    vectors = random_blocks(RNG, _VECTORS * words // 2).reshape(_VECTORS, words)
    shifts, of = correction[:, 0] >> np.uint64(48), np.zeros(_VECTORS, dtype=np.intp)

    def grow() -> None:
        hashing = BlockHash(bytes(16), NODES_AT_ONCE)
        make = engine.in_force().trees
        for levels in (LOW_BITS - SMALL_BITS, depth):
            trees = make(correction[0], _VECTORS, levels, hashing)
            for _ in range(levels):
                trees.sum()
                trees.grow(correction)
            trees.sum()
            trees.vectors(correction)

    def answer() -> None:
        engine.in_force().inner_products(planes, of, vectors, shifts)

    for name, work in (("vector", grow), ("answer", answer)):
        found = in_turn(lambda work=work, name=name: {name: _cpu_s(work, 3) / _VECTORS * 1e6})
        yield from rows_of("2^16 entries, a side", "CPU us", found, "less")


def _cpu_s(work: Callable[[], Any], passes: int) -> float:
    """Return CPU seconds of a pass, after an uncounted pass."""
    work()
    start = time.process_time()
    for _ in range(passes):
        work()
    return (time.process_time() - start) / passes


def pair_rows(compare: Callable[[int, int], Row]) -> Iterator[Row]:
    """Measure two processes, transfers and input and output included; ``compare`` runs a batch so many times."""
    for batch, runs in ((131_072, 3), (10_000, 15)):
        found = in_turn(lambda batch=batch, runs=runs: _sides(compare(batch, runs)))
        for name, figures in found.items():
            for (figure, value), share in zip(figures.items(), EMP[batch], strict=True):
                better, unit = ("more", "M AND/s") if figure == "rate" else ("less", "CPU ns an AND")
                emp = found["NumPy"][figure] * share
                what = f"{figure}, {batch:,} comparisons, 2 processes, {name}"
                aim = None if name == "NumPy" else emp
                yield Row(
                    what,
                    value,
                    unit,
                    aim,
                    better,
                    f"EMP-toolkit, were it run here: {emp:.3g} (recorded ratio)",
                )


def _sides(row: Row) -> dict[str, float]:
    sides = {name: 1e3 / row.detail[name]["m_and_per_cpu_s"] for name in ("garbler", "evaluator")}
    return {"rate": row.value, **sides}
