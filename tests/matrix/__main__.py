"""The whole matrix, and its table: `python -m tests.matrix [--out table.md] [--only WORD ...]`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.matrix.cells import ABORTS, CELLS, NOTES, ROLES, Cell
from tests.matrix.outcome import DEFECT, outcome
from tests.matrix.rehearsal import PHASES
from tests.matrix.site import COMPILER, a_site
from tests.support.bare import strip
from tests.support.forked import Popen


def run(cells: Sequence[Cell], folder: Path) -> Iterator[tuple[Cell, str]]:
    """Run cells: those with jumps of clocks at a site of their own."""
    for clocks in (False, True):
        chosen = [cell for cell in cells if cell.has_clock == clocks]
        if not chosen:
            continue
        with ExitStack() as stack:
            site = stack.enter_context(a_site(folder / f"clocks-{clocks}", clocks=clocks and bool(COMPILER)))
            for cell in chosen:
                yield cell, outcome(site, cell)


def table(found: Mapping[Cell, str]) -> str:
    """Return the outcomes as Markdown: a row for each role and phase, a column for each fault."""
    faults = list(ABORTS)
    lines = [f"| role | phase | {' | '.join(faults)} |", f"| --- | --- |{' --- |' * len(faults)}"]
    for role in ROLES:
        for phase in PHASES:
            cells = (found.get(Cell(role, phase, fault), "") for fault in faults)
            lines.append(f"| {role} | {phase} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"- {note}" for note in NOTES), ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="file for the table")
    parser.add_argument("--only", nargs="*", default=[], help="words that the cells' names have")
    asked = parser.parse_args()
    strip(os.environ)
    subprocess.Popen = Popen  # type: ignore[misc]  processes of our programs are forked
    cells = [cell for cell in CELLS if all(word in str(cell) for word in asked.only)]
    found = {}
    with tempfile.TemporaryDirectory(prefix="jointcut-matrix-", ignore_cleanup_errors=True) as folder:
        for cell, came in run(cells, Path(folder)):
            found[cell] = came
            print(f"{len(found)}/{len(cells)} {cell}: {came}", flush=True)
    if asked.out:
        asked.out.write_text(table(found), encoding="utf-8")
    defects = [came for came in found.values() if came.startswith(DEFECT)]
    print(f"{len(found)} cells, {len(defects)} defects")
    return min(len(defects), 1)


if __name__ == "__main__":
    sys.exit(main())
