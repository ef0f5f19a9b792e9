"""The example of docs/crypto.md runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from crypto.circuit import Circuit, evaluate

DOCS = Path(__file__).resolve().parents[2] / "docs" / "crypto.md"


def test_the_example_circuit() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(example, names)  # noqa: S102
    circuit = names["circuit"]
    assert isinstance(circuit, Circuit)
    scores = np.arange(64, dtype=np.uint64).reshape(1, 64)
    valid = (scores < 40).astype(np.uint64)
    assert evaluate(circuit, 1, {"scores": scores, "valid": valid})["index"].tolist() == [[39]]
