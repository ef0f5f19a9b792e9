"""A deputy whose choices differ between the columns of its transfers, to learn the garbler's offset.

With the offset it reads every private value of the garbler's in the session: the exact counts of a DP release, and in
vertical jobs each person's value at the other party. Its cheat: other choices in eight columns of each transfer of
one input bit, so that the labels it gets tell eight bits of the offset by the size of a count; sixteen counts tell
all of it. The check of the transfers stops it at that message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from crypto.builder import Builder
from crypto.circuit import Circuit, Held, To
from crypto.errors import RemoteProtocolError
from crypto.local import run_local
from crypto.ot import extension
from crypto.rng import SystemRng
from crypto.two_party import EvaluatorSession, GarblerSession
from tests.support.dp_runs import request_for, run_horizontal, run_vertical, split_columns, split_rows
from tests.support.dp_tables import categorical, numeric, schema_of, table_of

EACH, BLOCKS = 2, 16
RUNS = 20


@contextmanager
def columns_that_differ() -> Iterator[None]:
    """Let a receiver send other choices in ``EACH`` groups of four columns of every transfer; its check is made for
    that.
    """
    honest = extension.octets_of

    def cheating(words: np.ndarray) -> memoryview:
        words = words.copy()
        for transfer in range(64 * (words.shape[1] - 3)):
            first = EACH * (transfer % BLOCKS)
            words[first : first + EACH, transfer // 64] ^= np.uint64(1 << transfer % 64)
        return honest(words)

    extension.octets_of = cheating  # type: ignore[assignment]
    try:
        yield
    finally:
        extension.octets_of = honest  # type: ignore[assignment]


def cheat_in(is_aimed_at: Callable[[Circuit], bool]) -> type[EvaluatorSession]:
    """An evaluator that cheats in the runs of some circuits."""

    class Cheat(EvaluatorSession):
        def _send_choices(self, run: Any, chunk: slice) -> Any:
            sending = super()._send_choices(run, chunk)
            if not is_aimed_at(run.circuit):
                return (yield from sending)
            inbox = None
            while True:  # only while it makes its own message, since all parties of a test share the process
                try:
                    with columns_that_differ():
                        message = sending.send(inbox)
                except StopIteration as done:
                    return done.value
                inbox = yield message

    return Cheat


def opens_counts(circuit: Circuit) -> bool:
    return "count" in circuit.inputs and "noisy" in circuit.outputs


def expect_stopped(run: Callable[[], object], evaluator: str) -> None:
    with pytest.raises(RemoteProtocolError, match="differ between columns") as caught:
        run()
    assert (caught.value.culprit, caught.value.step) == (evaluator, "two_party/choices")


def test_one_session() -> None:
    """Sixteen shared counts are to be opened."""
    b = Builder("open shared counts")
    (x,) = b.input("count", Held.ADDITIVE_SHARED, 40)
    b.output("noisy", To.BOTH, [x])
    circuit, inputs = b.build(), {"count": np.ones((16, 1), np.uint64)}

    def garbler() -> Any:
        ot = yield from extension.setup_sender("leader", "deputy", SystemRng())
        yield from GarblerSession(ot, SystemRng()).run(circuit, 16, inputs)

    def evaluator() -> Any:
        ot = yield from extension.setup_receiver("deputy", "leader", SystemRng())
        yield from cheat_in(opens_counts)(ot, SystemRng()).run(circuit, 16, inputs)

    for _ in range(RUNS):
        expect_stopped(lambda: run_local({"leader": garbler(), "deputy": evaluator()}), "deputy")


@pytest.mark.some(1)
@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_a_release_with_differential_privacy(partition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    schema = schema_of(numeric("age", 8), categorical("job", {"any": {"a": ["x", "y"], "b": ["z", "w"]}}))
    table = table_of(schema, list(zip(*rng.integers(0, [[8], [4], [2]], (3, 120)).tolist(), strict=True)))
    request = request_for(schema)
    for module in ("crypto.two_party", "anonymize.joint.sessions"):
        monkeypatch.setattr(f"{module}.EvaluatorSession", cheat_in(opens_counts))
    for seed in range(RUNS):
        if partition == "horizontal":
            tables = split_rows(table, [i % 3 for i in range(120)], 3)
            expect_stopped(lambda tables=tables, seed=seed: run_horizontal(tables, request, seed=seed), "p1")
        else:
            columns = split_columns(table, [0])
            expect_stopped(lambda columns=columns, seed=seed: run_vertical(columns, request, seed=seed), "p1")
