"""Inject faults into the library, and see that the suite notices each.

    python -m tests.mutants                  all mutants: about ten minutes on two cores
    python -m tests.mutants NAME ...         some
    python -m tests.mutants --drawn          what continuous integration runs: tests/mutants/drawing.py
    python -m tests.mutants --check          run nothing; see in a second whether every mutant still has its place
    python -m tests.mutants --record         all mutants; write down which test noticed each (tests/mutants/caught.py)

A mutant that survives, or whose code is not in the sources any more, is an error.
"""

from __future__ import annotations

import argparse

from tests.mutants.caught import record, recorded
from tests.mutants.drawing import changed_files, drawn
from tests.mutants.faults import MUTANTS
from tests.mutants.mutant import ROOT, Mutant, Sources
from tests.mutants.running import survivors


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument(
        "--drawn", action="store_true", help="the mutants that this state of the sources draws"
    )
    parser.add_argument("--check", action="store_true", help="run nothing")
    parser.add_argument("--record", action="store_true", help="write down which test noticed each")
    asked = parser.parse_args()
    sources = Sources()
    if problems := sources.check(MUTANTS):
        raise SystemExit("\n".join(problems))
    if asked.check:
        print(f"{len(MUTANTS)} mutants have their place")
        return
    chosen = drawn(MUTANTS, sources, changed_files(ROOT)) if asked.drawn else named(asked.names)
    caught = recorded()
    alive = survivors(chosen, sources, caught)
    if asked.record:
        record({mutant.name: caught[mutant.name] for mutant in MUTANTS if mutant.name in caught})
    if alive:
        raise SystemExit(f"{len(alive)} of {len(chosen)} mutants survive: {', '.join(alive)}")
    print(f"all {len(chosen)} mutants are caught, of {len(MUTANTS)}")


def named(names: list[str]) -> list[Mutant]:
    """Return the mutants of these names, or all. Ends the program where there is none of a name."""
    if unknown := set(names) - {mutant.name for mutant in MUTANTS}:
        raise SystemExit(f"no such mutant: {', '.join(sorted(unknown))}")
    return [mutant for mutant in MUTANTS if not names or mutant.name in names]


if __name__ == "__main__":
    main()
