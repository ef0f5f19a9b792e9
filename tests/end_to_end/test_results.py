"""Real runs give what one holder of all rows would get, however the rows are dealt out."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from coordinator.run import conduct, run_in_process, run_joint
from coordinator.simulate import run_simulated
from coordinator.single import run_single
from jobs.data.sources import Csv, Source
from jobs.errors import PartyError
from jobs.file.bundle import Bundle
from jobs.loading import load_task, open_task
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.duplex import run
from tests.support.example import example_job, example_tables
from tests.support.joint import sample_rows
from tests.support.network import Network, network, released, report_of, sample_network, served, serving
from tests.support.placed import placed
from tests.support.samples import AS_IT_IS, PARTIES, columns, joint_job

PATIENTS = Path(__file__).resolve().parents[1] / "fixtures" / "patients"
TABLE_5_2 = {
    "party-a": ["Janitor M 34 Y Transgender", "Lawyer F 58 N Plastic", "Mover M 58 N Urology"],
    "party-b": [
        "Lawyer M 24 N Vascular",
        "Mover M 34 Y Transgender",
        "Janitor M 44 Y Plastic",
        "Doctor F 44 N Vascular",
    ],
    "party-c": [
        "Doctor M 58 N Plastic",
        "Doctor M 24 N Urology",
        "Carpenter F 63 Y Vascular",
        "Technician F 63 Y Plastic",
    ],
}
"""[T] Table 5.2: the eleven patients of Table 3.1 at three hospitals (some of their ids differ)."""


def sources(tables: Mapping[str, Path]) -> dict[str, Source]:
    return {name: Csv(path) for name, path in tables.items()}


def decided(out: Path, kinds: Sequence[str] = ("specializations", "discarded")) -> tuple[Any, ...]:
    """Return the decisions and the release of a run, without what differs between kinds of runs."""
    report = report_of(out)
    steps = [
        [(step["attribute"], step["value"], step["children"]) for step in report[kind]] for kind in kinds
    ]
    scores = [round(step["score"], 9) for step in report["specializations"]]
    return (steps, scores, report["cut"], report["metrics"], report["rows"])


def alone(folder: Path, joint: Bundle, tables: Sequence[Path]) -> tuple[Path, Bundle]:
    """Run the job on all tables together as a single holder's, with a column for whose rows are whose if it asks."""
    fields = yaml.safe_load(joint.job.canonical())
    if fields["model"]["lkc"].get("colluders"):
        fields["columns"]["holder"] = {"role": "party", "domain": list(joint.job.roster)}
    for key in ("parties", "leader", "deputy", "disclosure", "data"):
        fields.pop(key, None)
    fields["model"]["lkc"].pop("secure_sum", None)
    text = {**fields, "partition": "single", "data": "all.csv"}
    for name, content in joint.files.items():
        (folder / f"{name}.csv").write_text(content)
    (folder / "single.yaml").write_text(yaml.safe_dump(text, sort_keys=False))
    parts = [path.read_text().splitlines() for path in tables]
    lines = (f"{line},{who}" for who, part in zip(joint.job.roster, parts, strict=True) for line in part[1:])
    (folder / "all.csv").write_text("\n".join([f"{parts[0][0]},holder", *lines, ""]))
    bundle = load_task(folder / "single.yaml").bundle
    run_single(open_task(bundle), Csv(folder / "all.csv"), folder / "single")
    return folder / "single", bundle


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "changes",
    [
        {"disclosure": "leader"},
        {"disclosure": "leader", "goal": "general", "secure_sum": "ring", "leader": "hospital-c"},
        {"disclosure": "sealed"},
        {"model": {"lkc": {"L": "2", "K": "20", "C": "0.1", "colluders": "1"}}, "disclosure": "sealed"},
    ],
    ids=["leader", "leader, general, ring", "sealed", "sealed, colluders"],
)
def test_three_daemons_one_process_one_holder(tmp_path: Path, changes: dict[str, Any]) -> None:
    _, bundle = example_job(tmp_path / "job", **changes)
    tables = example_tables()
    if changes == {"disclosure": "sealed"}:  # daemons of their own
        run_simulated(open_task(bundle), sources(tables), tmp_path / "daemons")
    else:
        net = network(tmp_path / "net", bundle, tables)
        with served(net):
            run_joint(open_task(bundle), net.coordinator, tmp_path / "daemons")
    single, single_bundle = alone(tmp_path, bundle, list(tables.values()))
    assert decided(tmp_path / "daemons") == decided(single)
    assert released(tmp_path / "daemons", bundle) == released(single, single_bundle)
    if changes["disclosure"] == "leader":  # sealed runs over gates take longer; their own suite compares them
        run_in_process(open_task(bundle), sources(tables), tmp_path / "process")
        assert decided(tmp_path / "process") == decided(single)
        assert released(tmp_path / "process", bundle) == released(single, single_bundle)
    job = tmp_path / "job" / "job.yaml"
    assert invoke("coordinator", "verify", job, tmp_path / "daemons").code == 0


def thesis_job(folder: Path, **changes: Any) -> tuple[Bundle, dict[str, Path]]:
    """The thesis' example as a joint job of three parties, and their tables."""
    fields = yaml.load((PATIENTS / "job.yaml").read_text(), Loader=yaml.BaseLoader)  # noqa: S506  text only
    fields.pop("data")
    fields |= {
        "partition": "horizontal",
        "disclosure": "leader",
        "parties": {name: {"address": "127.0.0.1:1"} for name in TABLE_5_2},
        **changes,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.yaml").write_text(yaml.safe_dump(placed(fields), sort_keys=False))
    tables, number = {}, 0
    for name, rows in TABLE_5_2.items():
        tables[name] = folder / f"{name}.csv"
        with tables[name].open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["patient", "job", "sex", "age", "transfuse", "surgery"])
            for row in rows:
                number += 1
                writer.writerow([number, *row.split()])
    return load_task(folder / "job.yaml").bundle, tables


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "changes",
    [{}, {"secure_sum": "ring"}, {"goal": "general", "score": "groups"}, {"disclosure": "sealed"}],
    ids=str,
)
def test_the_thesis_patients_at_three_hospitals(tmp_path: Path, changes: dict[str, str]) -> None:
    bundle, tables = thesis_job(tmp_path / "job", **changes)
    net = network(tmp_path / "net", bundle, tables)

    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, tmp_path / "out")

    run(scenario())
    single, single_bundle = alone(tmp_path, bundle, list(tables.values()))
    assert decided(tmp_path / "out") == decided(single)
    assert released(tmp_path / "out", bundle) == released(single, single_bundle)
    if changes.get("goal", "classification") == "classification":
        # [T] Table 5.4 stops at Non-Technical; Janitors and Movers can still be told apart at (2, 2, 50 %).
        assert report_of(tmp_path / "out")["cut"] == {
            "job": ["Technical", "Janitor", "Mover", "White-collar"],
            "sex": ["M", "F"],
            "age": ["[1,30)", "[30,60)", "[60,99)"],
        }


def dealt(
    root: Path, parties: Sequence[str], hands: Sequence[Sequence[Mapping[str, str]]], **changes: Any
) -> Network:
    """The sample job among these parties, each with its hand of rows."""
    roster = {name: {"address": "127.0.0.1:1"} for name in parties}
    fields = joint_job(**{"parties": roster, "leader": parties[-1], **changes})
    bundle = jobs.bundle_of(fields)
    root.mkdir(parents=True)
    tables = {
        name: jobs.write_csv(root / f"{name}.csv", hand, fields["columns"])
        for name, hand in zip(parties, hands, strict=True)
    }
    return network(root / "net", bundle, tables)


def expect_same_as_alone(net: Network, folder: Path) -> None:
    """The run in folder/out decided and released what one holder of all rows would have.

    Of a strict run nobody knows what it discarded.
    """
    tables = [net.root.parent / f"{name}.csv" for name in net.roster]
    single, bundle = alone(folder, net.bundle, tables)
    known = (
        ("specializations",) if net.bundle.job.disclosure == "strict" else ("specializations", "discarded")
    )
    assert decided(folder / "out", known) == decided(single, known)
    assert released(folder / "out", net.bundle) == released(single, bundle)


def conducted(net: Network, out: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, out)

    run(scenario())


MODES: list[dict[str, str]] = [{"disclosure": "leader"}, {"disclosure": "sealed"}]


@pytest.mark.more
@pytest.mark.parametrize(
    "changes",
    [
        {"disclosure": "leader"},
        {"disclosure": "sealed"},
        {"disclosure": "sealed", "goal": "general", "leader": "p3", "deputy": "p1"},
        {"disclosure": "sealed", "leader": "p1", "deputy": "p0"},
    ],
    ids=str,
)
def test_five_parties_very_uneven(tmp_path: Path, changes: dict[str, str]) -> None:
    rows = sample_rows(60)
    names = [f"p{i}" for i in range(5)]
    hands = [rows[:1], rows[1:3], rows[3:4], rows[4:58], rows[58:]]
    net = dealt(tmp_path / "five", names, hands, **changes)
    conducted(net, tmp_path / "out")
    expect_same_as_alone(net, tmp_path)
    assert all(len(net.releases(name)) == 1 for name in names)
    assert report_of(tmp_path / "out").get("deputy") == (
        changes.get("deputy", "p0") if changes["disclosure"] == "sealed" else None
    )


@pytest.mark.more
@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize("leader", [0, 1])
def test_two_parties(tmp_path: Path, goal: str, leader: int) -> None:
    """One of them has three rows only, and leads or does not."""
    rows, names = sample_rows(60), PARTIES[:2]
    net = dealt(
        tmp_path / "two", names, [rows[:3], rows[3:]], disclosure="sealed", goal=goal, leader=names[leader]
    )
    conducted(net, tmp_path / "out")
    expect_same_as_alone(net, tmp_path)
    report = report_of(tmp_path / "out")
    assert (report["leader"], report["deputy"]) == (names[leader], names[1 - leader])
    assert any(
        "each party learns the generalized table of its peer" in words for words in report["protection"]
    )


@pytest.mark.some(1)
@pytest.mark.parametrize(("disclosure", "n"), [("sealed", 2), ("sealed", 3), ("strict", 3)])
def test_shared_counts_with_plain_columns(tmp_path: Path, disclosure: str, n: int) -> None:
    """Each row keeps its plain value, whoever had it."""
    fields = columns(name=AS_IT_IS)
    rows = [{**row, "name": f"w{row['patient']}"} for row in sample_rows(60)]
    hands = [rows[:1], rows[1:20], rows[20:]] if n == 3 else [rows[:7], rows[7:]]
    net = dealt(tmp_path / "plain", PARTIES[:n], hands, disclosure=disclosure, columns=fields)
    conducted(net, tmp_path / "out")
    expect_same_as_alone(net, tmp_path)
    assert any("plain columns" in words for words in report_of(tmp_path / "out")["protection"])


@pytest.mark.some(1)
@pytest.mark.parametrize("changes", MODES, ids=str)
def test_a_party_with_a_single_row_takes_part_one_without_cannot(
    tmp_path: Path, changes: dict[str, str]
) -> None:
    rows = sample_rows(60)
    net = dealt(tmp_path / "one", PARTIES, [rows[:1], rows[1:30], rows[30:]], **changes)
    conducted(net, tmp_path / "out")
    assert report_of(tmp_path / "out")["rows"] == 60
    expect_same_as_alone(net, tmp_path)
    net = dealt(tmp_path / "none", PARTIES, [[], rows[:30], rows[30:]], **changes)
    with pytest.raises(PartyError) as caught:
        conducted(net, tmp_path / "two")
    problem = caught.value.problem
    assert (problem.error_id, problem.party, problem.phase) == ("data-empty", PARTIES[0], "load")
    assert not (tmp_path / "two").exists()


@pytest.mark.some(1)
@pytest.mark.parametrize("changes", MODES, ids=str)
def test_the_order_of_rows_and_of_files_makes_no_difference(tmp_path: Path, changes: dict[str, str]) -> None:
    rows = sample_rows(60)
    one = dealt(tmp_path / "one", PARTIES, [rows[0::3], rows[1::3], rows[2::3]], **changes)
    other = dealt(tmp_path / "other", PARTIES, [rows[40:][::-1], rows[:39], rows[39:40]], **changes)
    conducted(one, tmp_path / "out-one")
    conducted(other, tmp_path / "out-other")
    assert decided(tmp_path / "out-one") == decided(tmp_path / "out-other")
    assert released(tmp_path / "out-one", one.bundle) == released(tmp_path / "out-other", other.bundle)


@pytest.mark.more
@pytest.mark.parametrize("changes", MODES, ids=str)
def test_the_same_job_twice_differs_in_nothing_but_order_and_time(
    tmp_path: Path, changes: dict[str, str]
) -> None:
    net = sample_network(tmp_path / "net", **changes)
    conducted(net, tmp_path / "one")
    conducted(net, tmp_path / "two")
    assert decided(tmp_path / "one") == decided(tmp_path / "two")
    assert report_of(tmp_path / "one")["reveals"] == report_of(tmp_path / "two")["reveals"]
    runs = {path.name for party in PARTIES for path in net.releases(party)}
    assert len(runs) == 2  # the same name at every party, another for every run
    assert Counter(name.rpartition("-")[0] for name in runs) == {"sample": 2}
