"""Two states of the project on the same jobs, in turn: `python -m benchmarks.before_after REVISION`.

The earlier state is taken out of git into the cache folder and run by the same Python. Each case is run by either
state in turn, several times; a row has both medians. What grew by more than a tenth is marked.

    python -m benchmarks.before_after REVISION [--turns N] [PART-OF-A-NAME...]
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table

from benchmarks.shared_jobs import OUT, ROOT, shared_job
from benchmarks.support import machine
from tests.support.placed import placed

WORSE = 1.1
LKC = ("L=4", "K=50", "C=0.2")
DENSE = ("L=2", "K=20", "C=1")
DP = ("model=dp", "epsilon=1", "h=10")


@dataclass(frozen=True)
class Case:
    """A job of ../shared/jobs, with changed job keys, on a line.

    line:  round trip in milliseconds and Mbit/s; zeros: loopback.
    runs:  runs per start of the daemons, after a warm-up run; 0: count the first run, since a DP ledger
           charges a second run, too.
    """

    name: str
    options: tuple[str, ...]
    keys: tuple[tuple[str, str], ...] = ()
    line: tuple[int, int] = (0, 0)
    runs: int = 2

    def folder(self) -> Path:
        """Return the folder of the job with its tables, made once."""
        made = shared_job("adult", *self.options)
        if not self.keys:
            return made
        folder = made.with_name("-".join([made.name, *(f"{key}-{value}" for key, value in self.keys)]))
        if not folder.exists():
            work = folder.with_suffix(".new")
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(made, work)
            fields = yaml.load((made / "job.yaml").read_text(), Loader=yaml.BaseLoader)  # noqa: S506  text only
            (work / "job.yaml").write_text(yaml.safe_dump(placed(fields | dict(self.keys)), sort_keys=False))
            work.rename(folder)
        return folder


INFOGAIN = (("score", "infogain"),)


def _cases() -> Iterator[Case]:
    for rows, said in ((), "45 k"), (("rows=450000",), "450 k"), (("rows=1000000",), "1 M"):
        for asked in LKC, DENSE:
            yield Case(f"single, {said}, {' '.join(asked)}", (*rows, *asked), runs=3)
    for parties in 3, 10:
        yield Case(f"leader, {parties} parties", (f"parties={parties}", "disclosure=leader", *LKC))
    for parties in 2, 3, 5, 10:
        sealed = (f"parties={parties}", "disclosure=sealed")
        yield Case(f"sealed, {parties} parties, infogain", (*sealed, *LKC), INFOGAIN)
    sealed = ("parties=3", "disclosure=sealed")
    yield Case("sealed, 3 parties, added", (*sealed, *LKC))
    yield Case("sealed, 3 parties, L=2 K=20, infogain", (*sealed, *DENSE), INFOGAIN)
    yield Case("sealed, 3 parties, L=2 K=20, added", (*sealed, *DENSE), runs=1)
    for rows in "450000", "1000000":
        yield Case(f"sealed, 3 parties, {rows} rows", (*sealed, f"rows={rows}", *LKC), INFOGAIN, runs=1)
    for parties in 2, 3:
        yield Case(
            f"vertical, {parties} parties", ("partition=vertical", f"parties={parties}", "extra=500", *LKC)
        )
    yield Case("vertical, 2 parties, 450 k", ("partition=vertical", "parties=2", "rows=450000", *LKC), runs=1)
    yield Case("dp, single", DP, runs=3)
    for parties in 2, 3:
        rows = (*DP, "partition=horizontal", f"parties={parties}")
        yield Case(f"dp, horizontal, {parties} parties", rows, runs=0)
    yield Case("dp, vertical, 2 parties", (*DP, "partition=vertical", "parties=2"), runs=0)
    for trip in 20, 50, 100:
        line = (trip, 100)
        yield Case(
            f"leader, 3 parties, {trip} ms", ("parties=3", "disclosure=leader", *LKC), line=line, runs=1
        )
        yield Case(f"sealed, 3 parties, infogain, {trip} ms", (*sealed, *LKC), INFOGAIN, line, 1)
        yield Case(
            f"vertical, 2 parties, {trip} ms",
            ("partition=vertical", "parties=2", "extra=500", *LKC),
            line=line,
            runs=1,
        )


def checked_out(revision: str) -> Path:
    """Return the sources of a revision, in the cache folder."""
    asked = ["git", "-C", str(ROOT), "rev-parse", "--verify", f"{revision}^{{commit}}"]
    commit = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    folder = OUT / "before" / commit
    if not folder.exists():
        work = folder.with_suffix(".new")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        pack = ["git", "-C", str(ROOT), "archive", commit]
        packed = subprocess.run(pack, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(work, filter="data")
        work.rename(folder)
    return folder


def one_run(tree: Path, case: Case) -> dict[str, float]:
    """Run a case with the sources of a tree."""
    trip, rate = case.line
    script = ROOT / "benchmarks" / "one_run.py"
    done = subprocess.run(
        [sys.executable, "-P", str(script), str(case.folder()), str(case.runs), str(trip), str(rate)],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compared(before: Path, case: Case, turns: int) -> dict[str, tuple[float, float]]:
    """Return medians of every figure, before and now."""
    runs: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
    for _ in range(turns):
        for found, tree in zip(runs, (before, ROOT), strict=True):
            found.append(one_run(tree, case))
    names = [name for name in runs[0][0] if name in runs[1][0]]
    return {
        name: (
            statistics.median(run[name] for run in runs[0]),
            statistics.median(run[name] for run in runs[1]),
        )
        for name in names
    }


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("revision")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("parts", nargs="*", help="only cases whose names hold one of these")
    asked = parser.parse_intermixed_args(arguments)
    before, results = checked_out(asked.revision), {}
    table = Table("case", "figure", "before", "now", "now / before", "load")
    for case in _cases():
        if asked.parts and not any(part in case.name for part in asked.parts):
            continue
        results[case.name] = compared(before, case, asked.turns)
        for name, (then, now) in results[case.name].items():
            ratio = now / then if then else float(now != then)
            marked = f"{ratio:.2f}{' WORSE' if ratio > WORSE else ''}"
            table.add_row(case.name, name, f"{then:.3g}", f"{now:.3g}", marked, f"{os.getloadavg()[0]:.1f}")
        said = ", ".join(
            f"{name} {then:.3g} -> {now:.3g}" for name, (then, now) in results[case.name].items()
        )
        print(f"{case.name}: {said}", file=sys.stderr, flush=True)
    Console(width=140).print(table)
    path = ROOT / "out" / "bench-change.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({"machine": machine(), "before": before.name, "cases": results}, indent=1) + "\n"
    )
    print(f"written: {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
