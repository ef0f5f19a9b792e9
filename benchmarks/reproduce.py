"""Figures of the papers beside ours, in one run.

    python -m benchmarks.reproduce [--data FOLDER] [--runs 5] [FIGURE ...]

Figures: 3.5, 5.4 and 6.4 of the thesis ([T]) on Adult; Tables 4.1 to 4.5 of the thesis, whose records stand in the
thesis; Figures 9 to 11 of the paper on several sensitive attributes ([MSA]), on Adult, because the registry of that
paper is not public. FOLDER has `adult.data` and `adult.test` as the UCI repository has the files
(https://archive.ics.uci.edu/dataset/2/adult); or `adult.csv` or `adult.csv.gz` with a header and a column `split`
(train, test). FOLDER may have `hierarchies/COLUMN.csv` without header, leaf first; without the file a column's values
stand below one root, so the table loses more. The papers show curves as pictures: the printed figures of the papers
are the numbers in their text.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.size import Size
from anonymize.dp.diffgen import release_single
from anonymize.dp.noise import exact_noise
from anonymize.kd.single import anonymize_kd
from anonymize.lkc.requirement import Ask
from anonymize.table import CodedTable, Ints, Schema, SensitiveColumn
from anonymize.trajectory.everywhere import Frequent, Violations, minimal_violating, suppress_everywhere
from anonymize.trajectory.frequent import maximal_frequent
from anonymize.trajectory.paths import Paths, paths_of
from anonymize.trajectory.requirement import Bounds, bounds_of
from benchmarks.bench_kd import worth
from benchmarks.bench_utility import anonymous, tree_error
from benchmarks.dp_utility import Released, majority, worth_of
from benchmarks.shared_jobs import OUT
from benchmarks.support import Row, publish
from crypto.rng import SystemRng
from jobs.data.sources import Csv
from jobs.dp.requirement import requirement
from jobs.lkc.requirement import requirement as lkc_requirement
from jobs.loading import load_task
from jobs.reading import load_table
from jobs.release.csv import read_csv
from jobs.task import Task

Records = Sequence[Mapping[str, str]]

CLASS, SENSITIVE = "income", "marital-status"
GRIDS: Mapping[str, tuple[int, int, int]] = {
    "age": (17, 91, 1),
    "fnlwgt": (13492, 1490401, 11539),
    "education-num": (1, 17, 1),
    "capital-gain": (0, 100000, 781),
    "capital-loss": (0, 4357, 35),
    "hours-per-week": (1, 100, 1),
}
"""Smallest value, end and step of each column of numbers ([T] Table 5.5); about 128 cells for wide columns."""
IMMIGRATION = (
    "age",
    "education-num",
    "fnlwgt",
    "relationship",
    "race",
    "sex",
    "marital-status",
    "native-country",
    "education",
)
"""Columns of the first party of [T] Figure 5.4; the second party has the others."""


class Adult:
    """Complete records of Adult in a folder, and jobs on these records."""

    def __init__(self, folder: Path | None) -> None:
        """Take the folder. None: any figure that needs a record ends the program."""
        self._given = folder

    @property
    def _folder(self) -> Path:
        if self._given is None:
            raise SystemExit(f"this figure needs Adult: name a folder with --data; {_DOWNLOAD}")
        return self._given.resolve()

    @cached_property
    def rows(self) -> Records:
        """Records without a missing value. Ends the program if the folder has no table."""
        return [row for row in _read(self._folder) if "?" not in row.values()]

    @property
    def names(self) -> list[str]:
        """Columns of the table."""
        return [name for name in self.rows[0] if name != "split"]

    def job(
        self, model: Mapping[str, Any], changes: Mapping[str, Any] = MappingProxyType({})
    ) -> dict[str, Any]:
        """Return a single holder's job. changes: columns in place of quasi-identifiers."""
        columns = {name: changes.get(name, self._column(name)) for name in self.names}
        kept = {name: column for name, column in columns.items() if column is not None}
        return {"model": model, "goal": "classification", "columns": kept}

    def several(self, protected: Sequence[str], K: int, diversity: int) -> dict[str, Any]:
        """Return a job with some sensitive columns; others are left out. No gain and no loss are not protected."""
        model = {"lkc": {"L": "all", "K": K, "C": 1, "diversity": diversity, "method": "kd"}}
        changes = {
            name: {"role": "sensitive", **self._sensitive(name)} if name in protected else None
            for name in (*_SENSITIVE, "fnlwgt", "education-num", CLASS)
        }
        return {**self.job(model, changes), "goal": "general"}

    def _sensitive(self, name: str) -> dict[str, Any]:
        if name in KD_COLUMNS:
            cuts = KD_COLUMNS[name]
            some = [f"[{low},{high})" for low, high in pairwise((*cuts, GRIDS[name][1]))]
            return {"numeric": {"min": 0, "max": GRIDS[name][1], "cuts": cuts}, "values": some}
        return {"domain": sorted({row[name] for row in self.rows})}

    def written(self, name: str, job: Mapping[str, Any], rows: Records = ()) -> Task:
        """Return a job on some rows, or on all, which are written beside the job."""
        folder = OUT / "reproduce" / name
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "t.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, self.names, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows or self.rows)
        common = {"version": 1, "name": name, "partition": "single", "data": "t.csv"}
        (folder / "job.yaml").write_text(json.dumps({**common, **job}))
        return load_task(folder / "job.yaml")

    def table(self, task: Task) -> CodedTable:
        """Return the table of a job in codes."""
        return load_table(Csv(OUT / "reproduce" / task.job.name / "t.csv"), task).table

    def _column(self, name: str) -> dict[str, Any]:
        """Return a column as class or quasi-identifier."""
        if name in GRIDS:
            low, high, step = GRIDS[name]
            return {"role": "qid", "numeric": {"min": low, "max": high, "step": step}}
        values = sorted({row[name] for row in self.rows})
        if name == CLASS:
            return {"role": "class", "domain": values}
        path = self._folder / "hierarchies" / f"{name}.csv"
        tree: Any = str(path) if path.is_file() else {"*": values}
        return {"role": "qid", "taxonomy": tree, "missing": "drop"}

    def protected(self) -> dict[str, Any]:
        """Return the sensitive column of [T] 3.4."""
        values = sorted({row[SENSITIVE] for row in self.rows})
        return {"role": "sensitive", "domain": values, "values": ["Divorced", "Separated"]}


_PARTS = {"train": "adult.data", "test": "adult.test"}
"""File of the UCI repository by split."""
_NAMES = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship",
    "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
"""Columns of the files of the UCI repository, which have no header."""
_DOWNLOAD = (
    f"download {' and '.join(_PARTS.values())} from https://archive.ics.uci.edu/dataset/2/adult into the folder, "
    "under these names"
)


def _read(folder: Path) -> list[dict[str, str]]:
    """Read the files of the UCI repository, adult.csv or adult.csv.gz. Ends the program if there are none."""
    for name, opened in (("adult.csv.gz", gzip.open), ("adult.csv", open)):
        if (folder / name).is_file():
            with opened(folder / name, "rt", newline="") as file:
                return list(csv.DictReader(file))
    if missing := [name for name in _PARTS.values() if not (folder / name).is_file()]:
        raise SystemExit(f"{folder} has no {' and no '.join(missing)} (and no adult.csv): {_DOWNLOAD}")
    return [row for split, name in _PARTS.items() for row in _of_repository(folder / name, split)]


def _of_repository(path: Path, split: str) -> Iterator[dict[str, str]]:
    """Yield the records of a file of the UCI repository. Values have blanks around, classes of the test a point."""
    with path.open(newline="") as file:
        for values in csv.reader(file, skipinitialspace=True):
            if len(values) == len(_NAMES):  # not the comment above the test, nor the empty line at the end
                row = dict(zip(_NAMES, map(str.strip, values), strict=True))
                yield {**row, CLASS: row[CLASS].rstrip("."), "split": split}


# ---- [T] Figure 3.5 and Figure 5.4: the error of a tree on the anonymous table


def _lkc(adult: Adult) -> tuple[Task, CodedTable]:
    """Return the job of Figures 3.5 and 5.4, with the thesis' score, which splits a value into all children."""
    model = {"lkc": {"L": 4, "K": 20, "C": "1/5", "score": "infogain"}}
    task = adult.written("lkc", adult.job(model, {SENSITIVE: adult.protected()}))
    return task, adult.table(task)


def figure_35(adult: Adult, runs: int) -> Iterator[Row]:
    """Yield the classification error over L and K, and over L and C.

    [T] has C from 5 %. Below 13.9 %, the share of Divorced in the table, no table with these values meets C.
    """
    task, table = _lkc(adult)
    path = OUT / "reproduce" / "lkc" / "t.csv"
    raw, predictors = read_csv(path, adult.names), [name for name in adult.names if name != CLASS]
    base, alone = tree_error(raw, predictors), tree_error(raw, task.job.names("sensitive"))
    yield Row("[T] 3.5 BE: raw table", base, "%", anchor="[T] 14.7")
    yield Row("[T] 3.5 UE: no quasi-identifier", alone, "%", anchor="[T] 24.5")
    for L in (2, 4, 6):
        for K in (20, 40, 60, 80, 100):
            error = tree_error(anonymous(table, L, K, "0.2"), predictors)
            said = "BE + less than 1" if L == 2 else "BE + 1.1 to 4.1"
            said = f"[T] {said}; here BE + {error - base:.1f}"
            yield Row(f"[T] 3.5a CE: L={L} K={K} C=20 %", error, "%", anchor=said)
    for L in (2, 4, 6):
        for c in ("0.15", "0.2", "0.25", "0.3"):
            error = tree_error(anonymous(table, L, 100, c), predictors)
            said = f"[T] hardly depends on C; here BE + {error - base:.1f}"
            yield Row(f"[T] 3.5b CE: L={L} K=100 C={float(c):.0%}", error, "%", anchor=said)


def figure_54(adult: Adult, runs: int) -> Iterator[Row]:
    """Yield the error of each party's own columns, and of the joint table, which has a single holder's cut."""
    _, table = _lkc(adult)
    raw = read_csv(OUT / "reproduce" / "lkc" / "t.csv", adult.names)
    predictors = [name for name in adult.names if name != CLASS]
    taxation = [name for name in predictors if name not in IMMIGRATION]
    yield Row("[T] 5.4 SE(A): nine columns alone", tree_error(raw, IMMIGRATION), "%", anchor="[T] 17.7")
    yield Row("[T] 5.4 SE(B): five columns alone", tree_error(raw, taxation), "%", anchor="[T] 17.9")
    for K in (20, 40, 60, 80, 100):
        error = tree_error(anonymous(table, 4, K, "0.2"), predictors)
        yield Row(f"[T] 5.4 CE: L=4 K={K} C=20 %", error, "%", anchor="[T] 16.8" if K == 100 else "")


# ---- [T] Figure 6.4: the accuracy of DiffGen


_TOLD = {("max", "1", 10): "82.2", ("max", "0.5", 10): "80.5 to 81.7", ("max", "0.1", 10): "78 at most"}


def figure_64(adult: Adult, runs: int) -> Iterator[Row]:
    """Yield the accuracy over ε and h, for both utilities; ε = 1 with each h."""
    train, test = ([row for row in adult.rows if row["split"] == part] for part in ("train", "test"))
    held = adult.table(adult.written("dp-test", adult.job(_dp("max", "1", 10)), test))
    first = True
    for utility in ("max", "infogain"):
        for epsilon, h in [("0.1", 10), ("0.25", 10), ("0.5", 10), *(("1", h) for h in (4, 7, 10, 13, 16))]:
            task = adult.written("dp-train", adult.job(_dp(utility, epsilon, h)), train)
            table = adult.table(task)
            if first:
                yield Row("[T] 6.4 LA: most frequent class", majority(table, held), "%", anchor="[T] 75.5")
                first = False
            found = []
            for _ in range(runs):
                made = release_single(table, requirement(task), exact_noise(SystemRng()))
                found.append(worth_of(Released(made.outcome, made.table), held).accuracy)
            spread = statistics.stdev(found) if runs > 1 else 0.0
            told = _TOLD.get((utility, epsilon, h))
            said = f"± {spread:.1f} over {runs} runs" + (f"; [T] {told}" if told else "")
            yield Row(f"[T] 6.4 CA: {utility} ε={epsilon} h={h}", statistics.mean(found), "%", anchor=said)


def _dp(utility: str, epsilon: str, h: int) -> dict[str, Any]:
    return {"dp": {"epsilon": epsilon, "specializations": h, "max_rows": 100_000, "utility": utility}}


# ---- [T] Tables 4.1 to 4.5: the example of trajectories


PATHS = (
    ("b2 d3 c4 f6 c7", "AIDS"),
    ("f6 c7 e8", "Flu"),
    ("d3 c4 f6 e8", "Fever"),
    ("b2 c5 c7 e8", "Flu"),
    ("d3 c7 e8", "Fever"),
    ("c5 f6 e8", "Diabetes"),
    ("b2 f6 c7 e8", "Diabetes"),
    ("b2 c5 f6 c7", "AIDS"),
)
"""[T] Table 4.1: path and diagnosis of each record."""
ITEMS = ("b2", "d3", "c4", "c5", "f6", "c7", "e8")
TABLE_42 = ("d3 f6 c7", "f6 c7 e8", "d3 f6 e8", "c5 c7 e8", "d3 c7 e8", "c5 f6 e8", "f6 c7 e8", "c5 f6 c7")
COUNTER = (("a1 d2", "Flu"), ("a1 b2", "AIDS"), ("a1 b2 c3", "AIDS"), ("a1 b2 c3", "Fever"))
"""[T] Table 4.3."""
TABLE_43 = {"a1 d2": (1, "0 %"), "a1 b2 c3": (2, "50 %"), "a1 b2": (3, "100 %")}
"""Records of each sequence, and the share with AIDS, as the thesis says."""
TABLE_44 = {"b2": (3, 4), "d3": (1, 4), "c4": (3, 2), "f6": (1, 5), "c7": (1, 6), "e8": (1, 5)}
TABLE_45 = {"b2": (2, 4), "d3": (1, 3), "f6": (1, 4)}
"""Gain and cost of each item: sequences that its removal mends; one more than the lost frequent sequences."""
_MANY = 10_000


def tables_4(adult: Adult, runs: int) -> Iterator[Row]:
    """Yield the agreeing entries of the example: L=2, K=2, C=50 %, AIDS protected, frequent from 2 records on."""
    paths, number, asked = _example()
    violations = Violations(minimal_violating(paths, asked, _MANY)[0], len(ITEMS))
    cost = Frequent(maximal_frequent(paths, 2, _MANY), len(ITEMS))
    yield _agreeing("[T] Table 4.4: gain and loss of each item", TABLE_44, _scores(violations, cost))
    taken = ITEMS.index("c4")
    violations.take(taken)
    cost.take(taken)
    why = "without c4, d3 f6 is a maximal frequent sequence, which the thesis does not count"
    yield _agreeing("[T] Table 4.5: the same without c4", TABLE_45, _scores(violations, cost), why)
    made = suppress_everywhere(paths, asked, _MANY, 2)
    left = [" ".join(ITEMS[item] for item in made.paths.path(int(r))) for r in number]
    told = {str(i): (path,) for i, path in enumerate(TABLE_42)}
    why = "of records 2, 3 and 4 two have AIDS, not all"
    yield _agreeing("[T] Table 4.3: records and share of AIDS", TABLE_43, _shares(), why)
    yield _agreeing(
        "[T] Table 4.2: paths of the eight records", told, {str(i): (p,) for i, p in enumerate(left)}
    )


def _example() -> tuple[Paths, Ints, Bounds]:
    """Return Table 4.1 as paths, the path of each record, and the requirement."""
    diagnoses = tuple(dict.fromkeys(value for _, value in PATHS))
    schema = Schema((), None, ("",), (SensitiveColumn("diagnosis", diagnoses, (diagnoses.index("AIDS"),)),))
    half = Fraction(1, 2)
    asked = Ask(2, (Size(2), Confidences(half, (("diagnosis", half),))))
    pairs = [(r, ITEMS.index(item)) for r, (path, _) in enumerate(PATHS) for item in path.split()]
    records, items = (np.array(codes, dtype=np.int64) for codes in zip(*pairs, strict=True))
    cells = np.array([diagnoses.index(value) for _, value in PATHS], dtype=np.int64)
    paths, number = paths_of(records, items, cells, len(ITEMS))
    return paths, number, bounds_of(asked, schema)


def _scores(violations: Violations, cost: Frequent) -> dict[str, tuple[int, ...]]:
    found = zip(ITEMS, violations.gains, cost.counts, strict=True)
    return {name: (int(gain), int(lost)) for name, gain, lost in found if gain}


def _shares() -> dict[str, tuple[int, str]]:
    """Count the records of the sequences of Table 4.3."""
    found = {}
    for asked in TABLE_43:
        values = [value for path, value in COUNTER if set(asked.split()) <= set(path.split())]
        found[asked] = (len(values), f"{100 * values.count('AIDS') / len(values):.0f} %")
    return found


def _agreeing(
    name: str, told: Mapping[str, tuple[Any, ...]], ours: Mapping[str, tuple[Any, ...]], why: str = ""
) -> Row:
    """Return the share of the table's entries that are ours, too."""
    same = sum(a == b for key, entry in told.items() for a, b in zip(entry, ours.get(key, ()), strict=False))
    entries = sum(map(len, told.values()))
    differ = "; ".join(
        f"{key}: {told[key]}, here {ours.get(key)}" for key in told if told[key] != ours.get(key)
    )
    return Row(name, same, f"of {entries}", anchor=differ and f"{differ}: {why}" if why else differ)


# ---- [MSA] Figures 9 to 11: the discernibility of several sensitive columns


KD_COLUMNS: Mapping[str, Sequence[int]] = {
    "capital-gain": (1, 3000, 5000, 7000, 15000),
    "capital-loss": (1, 1500, 2000),
}
_SENSITIVE = ("workclass", "occupation", "capital-gain", "capital-loss")


def figures_s(adult: Adult, runs: int) -> Iterator[Row]:
    """Yield the group of an average record over L, K and the number m of sensitive columns; K is the least possible.

    The registry of [MSA] has columns with hundreds of values, and L = 10. Adult's columns have 4 to 14: here L = 3.
    """
    settings = [
        *(("9", 50, diversity, 2) for diversity in (2, 3, 4)),
        *(("10", K, 3, 2) for K in (10, 25, 50, 100)),
        *(("11", 50, 3, m) for m in (1, 2, 3, 4)),
    ]
    for figure, K, diversity, m in settings:
        job = adult.several(_SENSITIVE[:m], K, diversity)
        task = adult.written(f"several-{figure}-{K}-{diversity}-{m}", job)
        found, _ = worth(anonymize_kd(adult.table(task), lkc_requirement(task)))
        said = f"{found.average_group / K:.2f} K; [MSA] below 2 K in most cases, at L = 10"
        name = f"[MSA] {figure} average group: K={K} L={diversity} m={m}"
        yield Row(name, found.average_group, "records", anchor=said)


FIGURES: Mapping[str, Callable[[Adult, int], Iterator[Row]]] = {
    "4": tables_4,
    "3.5": figure_35,
    "5.4": figure_54,
    "6.4": figure_64,
    "several": figures_s,
}
"""Figures by name."""
NOTES: Mapping[str, str] = {
    "several": "[MSA] measured a registry that is not public, so nobody can measure the figures of the paper again. "
    "The figures here are of Adult, with its columns and a smaller L: compare their course over K, L and m, not the "
    "numbers. The average group is the discernibility of [MSA]: the sum of the squared sizes of all groups / records."
}
"""Sentence below the table, by figure."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reproduce", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help=f"folder of Adult: {_DOWNLOAD}")
    parser.add_argument(
        "--runs", type=int, default=5, help="releases of each DP setting; the mean is printed"
    )
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=", ".join(FIGURES))
    said = parser.parse_args(arguments)
    chosen = said.figures or list(FIGURES)
    if unknown := set(chosen) - set(FIGURES):
        raise SystemExit(f"no such figure: {', '.join(sorted(unknown))}; there are {', '.join(FIGURES)}")
    adult = Adult(said.data)
    rows: list[Row] = []
    try:
        for name in chosen:
            rows += FIGURES[name](adult, said.runs)
    finally:  # the tables of the thesis need no data
        if rows:  # an error before the first figure leaves the file of an earlier run as it is
            notes = [NOTES[name] for name in chosen if name in NOTES]
            publish("The papers' figures", rows, OUT.parent / "reproduce.json", notes)


if __name__ == "__main__":
    main()
