"""The sentences of a DP report: which guarantee holds toward whom."""

from __future__ import annotations

from typing import Any

from jobs.dp.result import DpResult
from tests.support import jobs
from tests.support.dp_jobs import (
    dp_joint,
    dp_single,
)


def words(fields: dict[str, Any], delta: str = "1E-20") -> str:
    task, result = jobs.task_of(fields), DpResult(b"", None, None, None, delta)  # type: ignore[arg-type]
    return " ".join(task.mode.words(task, result)["guarantees"])


def test_the_guarantee_of_a_single_holder() -> None:
    said = words(dp_single({"epsilon": "0.5"}), "0")
    assert "pure ε-differential privacy, ε = 0.5, for adding or removing one record" in said
    assert "no float, no truncation" in said


def test_the_guarantee_of_horizontal_jobs() -> None:
    said = words(dp_joint("horizontal", {"epsilon": "0.25"}))
    assert "Toward the public: (ε, δ)-differential privacy, ε = 0.25, δ = 1E-20" in said
    assert "Toward each party: the same guarantee for every record of the remaining parties" in said
    assert "subtracts its own records and noise" in said
    assert "computational" in said
    assert "hospital-a and hospital-b" in said
    assert "2^−40" not in said
    assert "2^−40" in words(dp_joint("horizontal", {"engine": "thesis", "max_rows": "30"}), "0")


def test_the_guarantee_of_vertical_jobs() -> None:
    """A peer knows ids and n: substitution, so 2ε and δ(1 + e^ε)."""
    said = words(dp_joint("vertical", {"epsilon": "0.5"}))
    assert "knows the ids and the number of common records" in said
    assert "for replacing a record, twice the ε, ε = 1 and δ = 2.7E-20" in said
    pure = words(dp_joint("vertical", {"engine": "thesis", "max_rows": "30"}), "0")
    assert "Toward the public: pure ε-differential privacy, ε = 1" in pure
    assert "ε = 2. The guarantee is computational" in pure
