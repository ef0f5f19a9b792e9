"""The mutation script: its mutants fit the sources, and a few of them run for real."""

from __future__ import annotations

import pytest

from tests.mutants import MUTANTS, ROOT, Mutant, survivors

QUICK = ("overdraft", "r-at-most-l-alone", "lower-threshold-for-occupied-cells")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_a_mutant_is_one_fault_in_sources_that_still_compile(mutant: Mutant) -> None:
    source = (ROOT / mutant.file).read_text()
    compile(mutant.mutated(source), mutant.file, "exec")
    assert all((ROOT / test.partition("::")[0]).exists() for test in mutant.tests)


def test_every_kind_of_fault_is_there() -> None:
    """Those that semantics §8.6 names."""
    names = " ".join(mutant.name for mutant in MUTANTS)
    for kind in (
        "half-scale",
        "r-at-most-l",
        "dropped-empty",
        "from-the-data",
        "threshold",
        "clamped",
        "coin",
    ):
        assert kind in names


def test_a_text_that_is_gone_is_an_error() -> None:
    mutant = Mutant("gone", "anonymize/dp/noise.py", "no such text", "", ())
    with pytest.raises(ValueError, match="occurs 0 times"):
        mutant.mutated("anything else")


def test_mutants_are_caught_and_a_harmless_change_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    quick = [mutant for mutant in MUTANTS if mutant.name in QUICK]
    harmless = Mutant(
        "harmless", "anonymize/dp/accounting.py", "The accountant of", "An accountant of", quick[-1].tests
    )
    assert survivors([*quick, harmless]) == ["harmless"]
    assert capsys.readouterr().out.count("caught") == len(QUICK)
