"""The engine in force; the reference is the default."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from crypto import engine
from crypto.garbling import Evaluation, Garbling
from tests.support.circuits import mixed


def test_whoever_waits_for_gates_hears_of_them_once() -> None:
    heard: list[str] = []
    engine.after(10, lambda: heard.append("enough"))
    engine.begin(9)
    assert heard == []
    engine.begin(1)
    engine.begin(100)
    assert heard == ["enough"]


def test_gates_of_all_instances_are_counted_on_either_side() -> None:
    circuit, n = mixed(), 3
    for begun in (
        lambda: next(Garbling(circuit, n, np.array([1, 0], dtype=np.uint64), bytes(16)).tables()),
        Evaluation(circuit, n, bytes(16)).begin,
    ):
        heard: list[str] = []
        engine.after(n * circuit.table_blocks // 2, lambda heard=heard: heard.append("enough"))
        begun()
        assert heard == ["enough"]
        engine.after(n * circuit.table_blocks // 2 + 1, lambda heard=heard: heard.append("more"))
        begun()
        assert heard == ["enough"]


def test_an_engine_is_in_force_for_what_begins_then() -> None:
    other = engine.Reference()
    engine.use(other)
    assert engine.in_force() is other


def test_without_a_choice_it_is_the_reference_and_no_compiler_is_imported() -> None:
    code = (
        "import sys, crypto.two_party; from crypto import engine;"
        "assert type(engine.in_force()) is engine.Reference; assert 'llvmlite' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
