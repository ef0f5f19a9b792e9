"""The mutation script: its mutants fit the sources, and a few of them run for real."""

from __future__ import annotations

from functools import partial

import pytest

from tests import mutants
from tests.mutants import MUTANTS, PRESENT, ROOT, Mutant, survivors

QUICK = ("overdraft", "r-at-most-l-alone", "lower-threshold-for-occupied-cells")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_a_mutant_is_one_fault_in_sources_that_still_compile(mutant: Mutant) -> None:
    source = (ROOT / mutant.file).read_text()
    compile(mutant.mutated(source), mutant.file, "exec")
    assert not mutant.needs or mutant.needs in PRESENT
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


def test_a_mutant_without_its_program_is_not_run_and_not_counted_as_caught(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    needy = Mutant("needy", "anonymize/dp/noise.py", "a", "b", (), needs="java")
    plain = Mutant("plain", "anonymize/dp/noise.py", "a", "b", ())
    run: list[list[str]] = []
    monkeypatch.setattr(mutants, "MUTANTS", (needy, plain))

    def noted(chosen: list[Mutant]) -> list[str]:
        run.append([each.name for each in chosen])
        return []

    monkeypatch.setattr(mutants, "survivors", noted)
    monkeypatch.setattr("sys.argv", ["mutants"])
    for is_here in (False, True):
        monkeypatch.setattr(mutants, "PRESENT", {"java": partial(bool, is_here)})
        mutants.main()
    assert run == [["plain"], ["needy", "plain"]]
    assert capsys.readouterr().out.splitlines() == [
        "not run: needy (no java)",
        "all 1 mutants that were run are caught; 1 not run",
        "all 2 mutants that were run are caught",
    ]


def test_mutants_are_caught_and_a_harmless_change_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    quick = [mutant for mutant in MUTANTS if mutant.name in QUICK]
    harmless = Mutant(
        "harmless", "anonymize/dp/accounting.py", "The accountant of", "An accountant of", quick[-1].tests
    )
    assert survivors([*quick, harmless]) == ["harmless"]
    assert capsys.readouterr().out.count("caught") == len(QUICK)
