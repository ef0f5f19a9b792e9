"""Comparison of kd on Adult with anonypy's Mondrian, and a check of a kd table by pyCANON.

Both programs run in a separate environment below `out/`, made if absent. Their figures must equal ours: k, the
fewest different values, and t of equal distance, of every sensitive column.

    python -m benchmarks.bench_kd_anchors
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from anonymize.criteria.size import Size
from anonymize.kd.metrics import Groups
from anonymize.kd.single import anonymize_kd
from anonymize.kd.table import release_of_boxes
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.release import Release
from anonymize.verification.tables import Bound
from benchmarks.kd_tables import GRIDS, QID, SENSITIVE, adult, adult_rows
from benchmarks.shared_jobs import OUT
from benchmarks.support import Row, median_cpu_s, publish

HERE = Path(__file__).resolve().parent / "anchors"
K = 50


def environment() -> Path:
    """Return the interpreter of the environment."""
    folder = OUT.parent / "anchors"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = ["-m", "pip", "install", "--quiet", "-r", str(HERE / "requirements.txt")]
        subprocess.run([str(python), *install], check=True)
    return python


def asked(**what: Any) -> Any:
    """Return the answer of `measure.py`."""
    command = [str(environment()), str(HERE / "measure.py")]
    done = subprocess.run(command, input=json.dumps(what), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def printed(release: Release, names: Sequence[str]) -> list[list[str]]:
    """Return the rows of a table."""
    columns = (release.columns[name] for name in names)
    labels = [[column.labels[code] for code in column.codes] for column in columns]
    return [list(row) for row in zip(*labels, strict=True)]


def check_rows(release: Release) -> list[Row]:
    """Check a kd table by pyCANON and compare the figures with ours. Raises ValueError for a difference."""
    names = [*QID, *SENSITIVE]
    bounds = [Bound(name, frozenset(), Fraction(1)) for name in SENSITIVE]

    def measured() -> tuple[Any, Any]:
        groups = Groups(release, QID, bounds)
        return groups.metrics, groups.inferences

    seconds, (metrics, inferences) = median_cpu_s(measured, 5), measured()
    table = printed(release, names)
    theirs = asked(what="checks", columns=names, rows=table, qid=QID, sensitive=SENSITIVE)
    same = theirs["k"] == metrics.smallest and all(
        theirs["l"][name] == own.fewest_values and math.isclose(theirs["t"][name], own.greatest_t)
        for name, own in inferences.items()
    )
    if not same:
        raise ValueError("pyCANON finds other figures in the table")
    took, said = theirs["seconds"], f"ours: {seconds:.2f} s for all of them, and entropy l; the same figures"
    rows = [Row("pyCANON, k of a kd table of Adult", took["k"], "CPU s", anchor=said)]
    for key in ("l", "t"):
        total = sum(took[f"{key}({name})"] for name in SENSITIVE)
        rows.append(Row(f"pyCANON, {key} of its four columns", total, "CPU s", anchor=said))
    return rows


def mondrian_row() -> Row:
    """Measure anonypy's Mondrian of the raw table, K alone."""
    names = [*QID, SENSITIVE[1]]
    raw = [[int(row[name]) if name in GRIDS else row[name] for name in names] for row in adult_rows()]
    found = asked(what="mondrian", columns=names, rows=raw, qid=QID, sensitive=SENSITIVE[1:2], k=K)
    sizes = found["sizes"]
    average = sum(n * n for n in sizes) / sum(sizes)
    said = f"{len(sizes)} groups, smallest {min(sizes)}, average {average:.1f}"
    return Row(f"anonypy, Mondrian of Adult, K={K}", found["seconds"], "CPU s", anchor=said)


def main() -> None:
    table = adult()
    outcome = anonymize_kd(table, AskedList((Ask(len(QID), (Size(K),)),)))
    release = release_of_boxes(outcome.schema, outcome.table)
    publish(
        "kd and its anchors", [*check_rows(release), mondrian_row()], OUT.parent / "bench-kd-anchors.json"
    )


if __name__ == "__main__":
    main()
