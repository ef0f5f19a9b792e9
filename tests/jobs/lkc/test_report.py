"""`report.json` against numbers computed independently from the raw rows and the released table."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from anonymize.joint.disclosure import ALLOWED
from anonymize.lkc.metrics import Risk
from anonymize.scores.names import OF_GOAL
from jobs.errors import Exit
from jobs.lkc import run as lkc_run
from jobs.lkc import single
from jobs.lkc.forms.form import form_of
from jobs.release.csv import REPORT, TABLE
from jobs.version import __version__
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.entries import lkc
from tests.support.joint import sample_rows
from tests.support.network import write_job
from tests.support.samples import AS_IT_IS, COLUMNS, PARTIES, columns, joint_job, single_job
from tests.support.scores import PUBLISHED_NAMES


@pytest.mark.parametrize(
    ("risk", "says"),
    [
        (Risk(2, 1, 0.1, 1, 0.1), "then 1 record (10.0%) is unique and 1 (10.0%) is in groups below K."),
        (
            Risk(2, 0, 0, 1200, 0.5),
            "then 0 records (0.0%) are unique and 1,200 (50.0%) are in groups below K.",
        ),
        (Risk(2, 0, 0, 0, 0), "on all 2 quasi-identifiers is smaller than K=2."),
        (Risk(1, 0, 0, 0, 0), "on all 1 quasi-identifier is smaller than K=2."),
    ],
)
def test_one_record_is_a_record(risk: Risk, says: str) -> None:
    task = jobs.task_of(single_job())
    assert says in form_of(task.job).quasi.risk(task, risk)


JOB_VALUES = {"Any": {"Janitor", "Mover", "Lawyer", "?"}, "Blue": {"Janitor", "Mover"}, "White": {"Lawyer"}}
Row = Mapping[str, str]


def holds(column: str, label: str, row: Row) -> bool:
    """Return True if a row's raw value lies below a published label."""
    if column == "job":
        return row["job"] in JOB_VALUES.get(label, {label})
    low, high = label.strip("[)").split(",")
    return float(low) <= float(row["age"]) < float(high)


def width(column: str, label: str) -> int:
    """Count the leaves that a label covers."""
    if column == "job":
        return len(JOB_VALUES.get(label, {label}))
    low, high = label.strip("[)").split(",")
    return round((float(high) - float(low)) / 10)


LEAVES = {"job": 4, "age": 10}


def entropy(rows: Sequence[Row]) -> float:
    counts = Counter(row["transfused"] for row in rows)
    return -sum(n / len(rows) * math.log2(n / len(rows)) for n in counts.values())


def info_gain(column: str, value: str, children: Sequence[str], rows: Sequence[Row]) -> float:
    inside = [row for row in rows if holds(column, value, row)]
    parts = [[row for row in inside if holds(column, child, row)] for child in children]
    assert sum(map(len, parts)) == len(inside)
    return entropy(inside) - sum(len(part) / len(inside) * entropy(part) for part in parts if part)


def sum_of_squares(column: str, value: str, cut: Mapping[str, list[str]], rows: Sequence[Row]) -> int:
    """Σ |T[qid_v]|² over the leaf partitions that hold v ([T] Eq. 3.4)."""
    sizes = Counter(
        tuple(next(label for label in cut[name] if holds(name, label, row)) for name in ("job", "age"))
        for row in rows
        if holds(column, value, row)
    )
    return sum(n * n for n in sizes.values())


class Result:
    """A result folder, read without our code."""

    def __init__(self, out: Path, raw: Sequence[Row]) -> None:
        self.report: dict[str, Any] = json.loads((out / REPORT).read_text())
        with (out / TABLE).open(newline="") as file:
            self.rows = list(csv.DictReader(file))
        self.raw = raw


def run_single(folder: Path, **changes: Any) -> Result:
    rows = sample_rows(60)
    job = write_job(folder, single_job(**changes))
    jobs.write_csv(folder / "table.csv", rows, COLUMNS)
    assert invoke("coordinator", "run", job, "--out", folder / "out").code == 0
    return Result(folder / "out", rows)


def run_joint(folder: Path, *how: str, **changes: Any) -> Result:
    rows = sample_rows(60)
    job = write_job(folder, joint_job(**changes))
    options = []
    for i, name in enumerate(PARTIES):
        options.append(f"--data={name}={jobs.write_csv(folder / f'{name}.csv', rows[i::3], COLUMNS)}")
    assert invoke("coordinator", "simulate", job, *options, *how, "--out", folder / "out").code == 0
    return Result(folder / "out", rows)


RUNS: dict[str, Callable[..., Result]] = {
    "single": run_single,
    "in process": lambda folder, **changes: run_joint(folder, "--in-process", **changes),
    "daemons": run_joint,
}


@pytest.fixture(
    scope="module",
    params=[
        *((how, goal) for how in ("single", "in process") for goal in ("classification", "general")),
        pytest.param(("daemons", "classification"), marks=pytest.mark.more),
    ],
    ids=str,
)
def result(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Result:
    how, goal = request.param
    together = columns(job={**COLUMNS["job"], "refine": "children"})
    return RUNS[how](tmp_path_factory.mktemp("run"), goal=goal, columns=together, score=PUBLISHED_NAMES[goal])


@pytest.mark.some(1)
def test_what_was_asked_is_repeated(result: Result) -> None:
    report = result.report
    assert report["format"] == 1
    assert report["job"] == "sample"
    asked = report["model"]["lkc"]
    assert (asked["L"], asked["K"], asked["C"]) == (2, 2, "1/2")
    assert asked["score"] == PUBLISHED_NAMES[report["goal"]]
    assert "contexts" not in asked
    assert len(bytes.fromhex(report["job_sha256"])) == 32
    assert set(report["versions"]) == {"jointcut", "python", "numpy"}
    assert report["versions"]["jointcut"] == __version__
    assert report["sensitive"] == {"surgery": {"C": "1/2", "values": ["Rare"]}}
    assert "L=2" in report["verified"]
    assert "K=2" in report["verified"]


def test_rows_and_columns(result: Result) -> None:
    assert result.report["rows"] == len(result.rows) == 60
    assert list(result.rows[0]) == ["job", "age", "transfused", "surgery"]
    kept = ("transfused", "surgery")
    assert Counter(tuple(r[c] for c in kept) for r in result.rows) == Counter(
        tuple(r[c] for c in kept) for r in result.raw
    )


def test_the_released_rows_are_the_raw_ones_generalized(result: Result) -> None:
    cut = result.report["cut"]
    expected = Counter(
        (
            *(next(label for label in cut[name] if holds(name, label, row)) for name in ("job", "age")),
            row["transfused"],
            row["surgery"],
        )
        for row in result.raw
    )
    assert Counter(tuple(row.values()) for row in result.rows) == expected


@pytest.mark.parametrize("how", ["single", "in process"])
@pytest.mark.parametrize("plain", [{}, {"patient": AS_IT_IS}], ids=["counts", "plain"])
def test_rows_are_shuffled(tmp_path: Path, how: str, plain: dict[str, Any]) -> None:
    """Twice the same job, the same rows, in different orders: nothing of it can come from the data.

    A joint table without plain columns follows from its result, which has no order of rows.
    """
    one, two = (RUNS[how](tmp_path / name, columns=columns(**plain)) for name in ("one", "two"))
    rows = [[tuple(row.values()) for row in result.rows] for result in (one, two)]
    assert Counter(rows[0]) == Counter(rows[1])
    assert len(set(rows[0])) > 5
    assert (rows[0] == rows[1]) == (how == "in process" and not plain)
    assert rows[0] != sorted(rows[0])


# ---- the last gate


def lax(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every run forget K: its table is finer than its job allows."""
    for module in (single, lkc_run):
        monkeypatch.setattr(module, "requirement", lambda task: lkc(1, 1))


@pytest.mark.parametrize("how", ["single", "in process"])
def test_a_table_that_violates_its_job_is_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    lax(monkeypatch)
    rows = sample_rows(60)
    fields = single_job() if how == "single" else joint_job()
    job = write_job(tmp_path, fields | {"model": {"lkc": {"L": "2", "K": "20", "C": "1"}}})
    jobs.write_csv(tmp_path / "table.csv", rows, COLUMNS)
    if how == "single":
        ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    else:
        data = [
            f"--data={n}={jobs.write_csv(tmp_path / n, rows[i::3], COLUMNS)}" for i, n in enumerate(PARTIES)
        ]
        ran = invoke("coordinator", "simulate", job, *data, "--in-process", "--out", tmp_path / "out")
    assert ran.code == Exit.FAILED
    assert "verification-failed" in ran.err
    assert not (tmp_path / "out").exists()


def test_specializations_lead_to_the_cut_with_the_scores_they_have(result: Result) -> None:
    report = result.report
    cut = {"job": ["Any"], "age": ["[0,100)"]}
    assert report["specializations"]
    for step in report["specializations"]:
        column, value, children = step["attribute"], step["value"], step["children"]
        assert value in cut[column]
        if report["goal"] == "classification":
            exact = info_gain(column, value, children, result.raw)
            assert abs(step["score"] - exact) < 2e-5
        else:
            assert step["gain"] == sum_of_squares(column, value, cut, result.raw)
            assert step["score"] == round(step["gain"] / len(result.raw) ** 2, 6)
        at = cut[column].index(value)
        cut[column][at : at + 1] = children
    assert cut == report["cut"]


def test_discarded_specializations_would_break_the_requirement(result: Result) -> None:
    """Each on the final table at the latest (validity is anti-monotone); their scores are not told."""
    report = result.report
    assert report["discarded"]
    for step in report["discarded"]:
        assert "score" not in step
        assert step["value"] in report["cut"][step["attribute"]]
        refined = {**report["cut"]}
        at = refined[step["attribute"]].index(step["value"])
        labels = list(refined[step["attribute"]])
        labels[at : at + 1] = step["children"]
        assert not is_private({**refined, step["attribute"]: labels}, result.raw)
    assert is_private(report["cut"], result.raw)


def is_private(cut: Mapping[str, Sequence[str]], rows: Sequence[Row]) -> bool:
    """(2, 2, 1/2)-privacy of the raw rows under a cut, by the definition."""
    for names in [(), *combinations(("job", "age"), 1), ("job", "age")]:
        groups: dict[tuple[str, ...], list[Row]] = {}
        for row in rows:
            key = tuple(next(label for label in cut[n] if holds(n, label, row)) for n in names)
            groups.setdefault(key, []).append(row)
        for group in groups.values():
            if len(group) < 2 or 2 * sum(r["surgery"] == "Rare" for r in group) > len(group):
                return False
    return True


def test_metrics(result: Result) -> None:
    metrics = result.report["metrics"]
    sizes = Counter((row["job"], row["age"]) for row in result.rows)
    assert metrics["leaf_partitions"] == len(sizes)
    assert metrics["smallest_partition"] == min(sizes.values())
    assert metrics["discernibility_ratio"] == pytest.approx(sum(n * n for n in sizes.values()) / 60**2)
    for name in ("job", "age"):
        loss = sum((width(name, row[name]) - 1) / (LEAVES[name] - 1) for row in result.rows) / 60
        assert metrics["generalization_loss"][name] == pytest.approx(loss)


def test_only_joint_reports_speak_of_parties(result: Result) -> None:
    report = result.report
    joint = {"parties", "leader", "disclosure", "protection", "revealed_by_design"}
    if report["partition"] == "single":
        assert not joint & set(report)
        assert report["reveals"] == []
        assert set(report["stopped"]) == {"job", "age"}
        return
    assert joint <= set(report)
    reasons = {each["reason"] for found in report["stopped"].values() for each in found}
    assert "C" not in reasons  # it would tell which of two thresholds a discarded candidate broke
    assert report["parties"] == list(PARTIES)
    assert report["leader"] == PARTIES[0]
    allowed = {(a.name, a.to) for a in ALLOWED["horizontal/leader"]}
    revealed = {(r["name"], r["to"]) for r in report["reveals"]}
    assert revealed <= allowed
    # Nobody is charged for a simulation, and no child leaves its node alone.
    assert allowed - revealed <= {("earlier_run", "all"), ("only_child", "all")}
    assert [r["name"] for r in report["revealed_by_design"]] == [a.name for a in ALLOWED["horizontal/leader"]]


def test_reveals_are_those_of_the_turns(result: Result) -> None:
    report = result.report
    if report["partition"] == "single":
        return
    turns = len(report["specializations"]) + len(report["discarded"])
    names = Counter(reveal["name"] for reveal in report["reveals"])
    assert names["root_check"] == names["root_counts"] == names["root_totals"] == 1
    assert names["candidate"] == turns + 1  # the last says that there is none
    assert names["valid"] == turns
    asked = [reveal["shape"] for reveal in report["reveals"] if reveal["name"] == "asked"]
    assert 0 < names["group_counts"] == sum(shape != [0] for shape in asked) <= turns  # of several at once
    assert names["partition_counts"] == len(report["specializations"])
    assert max(reveal["iteration"] for reveal in report["reveals"]) == turns + 1
    for reveal in report["reveals"]:
        assert set(reveal) == {"name", "shape", "to", "iteration"}


def test_costs_by_phase_and_party(result: Result) -> None:
    cost = result.report["cost"]
    assert all(seconds >= 0 for seconds in cost["seconds"].values())
    if result.report["partition"] == "single":
        assert set(cost["seconds"]) == {"read", "anonymize", "release", "verify", "write", "report"}
        assert cost["parties"] == {}
        return
    assert {"run", "release"} <= set(cost["seconds"])
    if "connect" not in cost["seconds"]:
        assert cost["parties"] == {}
        return
    assert set(cost["parties"]) == set(PARTIES)
    for party, account in cost["parties"].items():
        assert set(account["phases"]) == {"start", "root", "count", "share", "score", "validity", "integrate"}
        assert set(account["links"]) == set(PARTIES) - {party}
        sent = sum(phase["bytes_sent"] for phase in account["phases"].values())
        assert sent == sum(link["bytes_sent"] for link in account["links"].values()) > 0
    for one in PARTIES:
        for other in set(PARTIES) - {one}:
            there = cost["parties"][one]["links"][other]
            back = cost["parties"][other]["links"][one]
            assert there["bytes_sent"] == back["bytes_received"]


@pytest.mark.parametrize(
    ("score", "no_candidate", "besides"),
    [
        ("infogain", "no specialization of them tells the classes apart", {"split", "order"}),
        ("added", "no specialization of them adds to what the table tells", {"split"}),
        ("groups", "lie in a single cell", {"split"}),
    ],
)
def test_a_sealed_report_says_what_is_finer_than_the_table(
    tmp_path: Path, score: str, no_candidate: str, besides: set[str]
) -> None:
    goal = next(goal for goal, names in OF_GOAL.items() if score in names)
    asked = {"disclosure": "sealed", "deputy": PARTIES[2], "goal": goal, "score": score}
    result = run_joint(tmp_path, "--in-process", **asked)
    report = result.report
    assert (report["leader"], report["deputy"]) == (PARTIES[0], PARTIES[2])
    finer = {r["name"] for r in report["revealed_by_design"] if r["finer_than_result"]}
    assert finer == {"candidate", "earlier_run"} | besides
    (pair,) = [sentence for sentence in report["protection"] if "compute pair" in sentence]
    assert all(name in pair for name in (PARTIES[0], PARTIES[2]))
    (sentence,) = [
        sentence
        for sentence in report["protection"]
        if sentence.startswith("The parties learned a few facts that are finer than the table")
    ]
    assert "order and the split points of discarded candidates" in sentence
    assert no_candidate in sentence


def test_a_strict_report_tells_of_no_discarded_candidate(tmp_path: Path) -> None:
    """Its parties know none; that there are none is said neither in the report nor on the console."""
    done = run_joint(tmp_path / "strict", "--in-process", disclosure="strict")
    sealed = run_joint(tmp_path / "sealed", "--in-process", disclosure="sealed", score="infogain")
    assert sealed.report["discarded"]
    assert done.report["discarded"] == []
    assert done.report["specializations"] == sealed.report["specializations"]
    finer = {r["name"] for r in done.report["revealed_by_design"] if r["finer_than_result"]}
    assert finer == {"earlier_run"}
    said = " ".join(done.report["protection"])
    assert "follows from the table and the job" in said
    assert "discarded" not in said


def test_a_report_of_ring_sums_says_who_can_collude(tmp_path: Path) -> None:
    result = run_joint(tmp_path, "--in-process", secure_sum="ring")
    assert any("ring" in sentence for sentence in result.report["protection"])


# ---- why columns were not specialized further, on a table small enough to see it


def stopped(
    folder: Path,
    rows: Sequence[Sequence[str]],
    spec: Mapping[str, Any],
    score: str = "infogain",
    **lkc: str,
) -> dict[str, Any]:
    """Run a single job on rows of the columns of ``spec``; return the report's `stopped`."""
    job = write_job(
        folder,
        single_job(columns=dict(spec), score=score, model={"lkc": {"L": "2", "K": "2", "C": "1", **lkc}}),
    )
    jobs.write_csv(folder / "table.csv", [dict(zip(spec, row, strict=True)) for row in rows], list(spec))
    assert invoke("coordinator", "run", job, "--out", folder / "out").code == 0
    found = json.loads((folder / "out" / REPORT).read_text())["stopped"]
    assert isinstance(found, dict)
    return found


LETTERS = {"role": "qid", "taxonomy": {"Any": {"AB": ["a", "b"], "CD": ["c", "d"]}}, "missing": "drop"}
CLASS = {"role": "class", "domain": ["Y", "N"]}


def test_stopped_by_k_on_one_column(tmp_path: Path) -> None:
    rows = ["aY", "aY", "bN", "cN", "cN", "dN", "dN"]
    assert stopped(tmp_path, [list(r) for r in rows], {"x": LETTERS, "cls": CLASS}) == {
        "x": [
            {"reason": "K", "columns": 1, "values": ["AB"]},
            {"reason": "no gain", "values": ["CD"]},
        ]
    }


def test_stopped_by_k_on_two_columns(tmp_path: Path) -> None:
    """Each column alone has groups of two and more; together one has a single record."""
    rows = ["acY", "acY", "acY", "adN", "bcN", "bcN", "bdN", "bdN"]
    two = {"role": "qid", "taxonomy": {"AB": ["a", "b"]}, "missing": "drop"}
    other = {"role": "qid", "taxonomy": {"CD": ["c", "d"]}, "missing": "drop"}
    found = stopped(tmp_path, [list(r) for r in rows], {"x": two, "y": other, "cls": CLASS})
    assert found == {
        "x": [{"reason": "leaf", "values": ["a", "b"]}],
        "y": [{"reason": "K", "columns": 2, "values": ["CD"]}],
    }
    assert stopped(tmp_path / "L1", [list(r) for r in rows], {"x": two, "y": other, "cls": CLASS}, L="1") == {
        "x": [{"reason": "leaf", "values": ["a", "b"]}],
        "y": [{"reason": "leaf", "values": ["c", "d"]}],
    }


def test_stopped_on_one_column_though_more_are_tested(tmp_path: Path) -> None:
    """The fewest columns are told: what a user can act on."""
    rows = ["acY", "acY", "adY", "adY", "adN", "bcN"]
    two = {"role": "qid", "taxonomy": {"AB": ["a", "b"]}, "missing": "drop"}
    other = {"role": "qid", "taxonomy": {"CD": ["c", "d"]}, "missing": "drop"}
    found = stopped(tmp_path, [list(r) for r in rows], {"x": two, "y": other, "cls": CLASS})
    assert found["x"] == [{"reason": "K", "columns": 1, "values": ["AB"]}]


def test_stopped_by_c(tmp_path: Path) -> None:
    secret = {"role": "sensitive", "domain": ["s", "t"], "values": ["s"]}
    rows = ["aYs", "aYs", "bNt", "bNt"]
    two = {"role": "qid", "taxonomy": {"AB": ["a", "b"]}, "missing": "drop"}
    assert stopped(tmp_path, [list(r) for r in rows], {"x": two, "cls": CLASS, "sec": secret}, C="1/2") == {
        "x": [{"reason": "C", "columns": 1, "sensitive": "sec", "values": ["AB"]}]
    }


def test_stopped_by_what_does_not_add(tmp_path: Path) -> None:
    """AB tells the classes apart, by 2 in 20; CD does, too, but d has one record; EF does not."""
    tree = {"Any": {"AB": ["a", "b"], "CD": ["c", "d"], "EF": ["e", "f"]}}
    spec = {"x": {"role": "qid", "taxonomy": tree, "missing": "drop"}, "cls": CLASS}
    rows = ["aY"] * 6 + ["aN"] * 4 + ["bY"] * 4 + ["bN"] * 6 + ["cN"] * 99 + ["dY"] + ["eY", "fY"] * 50
    assert stopped(tmp_path, [list(r) for r in rows], spec, score="added") == {
        "x": [
            {"reason": "adds nothing", "values": ["AB"]},
            {"reason": "K", "columns": 1, "values": ["CD"]},
            {"reason": "no gain", "values": ["EF"]},
        ]
    }


def test_stopped_by_nothing_but_the_taxonomy(tmp_path: Path) -> None:
    tree = {
        "Any": {"AB": ["a", "b"], "Chain": {"Inner": ["c", "i"]}, "Empty": ["e", "f"], "Same": ["g", "h"]}
    }
    spec = {"x": {"role": "qid", "taxonomy": tree, "missing": "drop"}, "cls": CLASS}
    rows = ["aY", "aY", "bN", "bN", "cY", "cN", "cN", "gY", "gY", "gN"]
    assert stopped(tmp_path, [list(r) for r in rows], spec) == {
        "x": [
            {"reason": "leaf", "values": ["a", "b"]},
            {"reason": "one value", "values": ["Inner", "Same"]},
            {"reason": "empty", "values": ["Empty"]},
        ]
    }


# ---- plain columns


@pytest.mark.parametrize("how", ["single", "in process"])
def test_plain_columns_stay_with_their_rows(tmp_path: Path, how: str) -> None:
    spec = columns(patient=None, name=AS_IT_IS)
    rows = [
        {**row, "name": f'w{row["patient"]}, "{row["surgery"]}"\n{row["transfused"]}'}
        for row in sample_rows(60)
    ]
    names = list(spec)
    if how == "single":
        job = write_job(tmp_path, single_job(columns=spec))
        jobs.write_csv(tmp_path / "table.csv", [{n: r[n] for n in names} for r in rows], names)
        ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    else:
        job = write_job(tmp_path, joint_job(columns=spec))
        options = []
        for i, name in enumerate(PARTIES):
            path = jobs.write_csv(
                tmp_path / f"{name}.csv", [{n: r[n] for n in names} for r in rows[i::3]], names
            )
            options.append(f"--data={name}={path}")
        ran = invoke("coordinator", "simulate", job, *options, "--in-process", "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    result = Result(tmp_path / "out", rows)
    assert Counter(row["name"] for row in result.rows) == Counter(row["name"] for row in rows)
    raw = {row["name"]: row for row in rows}
    for row in result.rows:
        assert holds("job", row["job"], raw[row["name"]])
        assert holds("age", row["age"], raw[row["name"]])
        assert (row["surgery"], row["transfused"]) == (
            raw[row["name"]]["surgery"],
            raw[row["name"]]["transfused"],
        )
    assert [row["name"] for row in result.rows] != [row["name"] for row in rows]
    if how != "single":
        said = result.report["protection"]
        assert any("no row carries its origin, as long as hospital-a and" in sentence for sentence in said)
        assert result.report["deputy"] == PARTIES[1]  # who mixed them, whatever the level
    assert invoke("coordinator", "verify", job, tmp_path / "out").code == 0
