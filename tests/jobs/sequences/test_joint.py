"""Joint jobs of sequences: the single holder's file, byte for byte; delivered, checked; and what owners are told."""

from __future__ import annotations

import hashlib
import json
import random
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymize.errors import DataError, PrivacyError
from anonymize.joint.disclosure import ALLOWED
from anonymize.tds import Observer
from coordinator.single import run_single
from crypto.local import run_local
from crypto.rounds import Rounds
from jobs.data.sources import Csv
from jobs.errors import PartyError, PolicyError
from jobs.modes import protocol_of
from jobs.options import NO_OPTIONS
from jobs.owner.account import Unaccounted
from jobs.owner.own_groups import OwnGroups
from jobs.release.csv import REPORT, TABLE
from jobs.release.delivery import checked_release
from jobs.release.making import write_joint_release
from jobs.release.shuffled_rows import ShuffledRows, unframed
from jobs.release.sums import SUMS, sums_of
from jobs.sequences import run as run_module
from jobs.sequences.checked import verify_table
from jobs.sequences.result import SequencesResult, decode_result
from jobs.sequences.verify import require_verified
from jobs.stopwatch import Stopwatch
from jobs.task import Collected, Result, Task
from tests.support import jobs
from tests.support.rng import SeededRng
from tests.support.wards import (
    HEADER,
    WARDS,
    dealt_records,
    joint_wards_job,
    movements,
    sets_job,
    wards_columns,
    wards_job,
)

Lines = list[str]


def parties(n: int) -> dict[str, Any]:
    return {"parties": {f"p{i}": {"address": f"p{i}:1"} for i in range(n)}}


class Run:
    """A run of all parties on records that are dealt out among them, in this process."""

    def __init__(
        self, task: Task, folder: Path, records: list[Lines], header: str = HEADER, **observers: Observer
    ) -> None:
        self.task = task
        roster = task.job.roster
        paths = dealt_records(folder, roster, records, header)
        self.tables = {me: task.load(Csv(path), me) for me, path in paths.items()}
        found, _ = run_local({me: self.party(me, observers.get(me, Observer())) for me in roster})
        self.results: dict[str, SequencesResult] = {}
        for me, result in found.items():
            assert isinstance(result, SequencesResult)
            self.results[me] = result

    def party(self, me: str, observer: Observer) -> Rounds[Result]:
        return protocol_of(self.task, me, self.tables[me], SeededRng(me), observer, Unaccounted())

    @property
    def result(self) -> SequencesResult:
        return self.results[self.task.job.roster[0]]

    def written(self, folder: Path) -> dict[str, bytes]:
        """As the coordinator writes it, who decodes what the leader sends."""
        folder.mkdir()
        task, told = self.task, [result.told for result in self.results.values()]
        result = decode_result(task, self.result.encoded, "p0").completed(told)
        write_joint_release(task, folder, Collected(result, {}, {}), NO_OPTIONS, Stopwatch(lambda name: None))
        return {name: (folder / name).read_bytes() for name in (TABLE, REPORT, SUMS)}


def whole(folder: Path, records: list[Lines], header: str = HEADER) -> Csv:
    """The table of one holder of all records."""
    return Csv(dealt_records(folder, ["all"], records, header)["all"])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(jobs.task_of(joint_wards_job(**parties(3))), tmp_path_factory.mktemp("run"), movements(60))


@pytest.mark.some(2)
@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize(
    "asked", [{}, {"L": "3", "K": "4", "C": "1/3"}, {"places": "first", "C": "1", "max_items": "5"}]
)
def test_the_file_is_that_of_one_holder_of_all_records(n: int, asked: dict[str, Any], tmp_path: Path) -> None:
    records = movements(60, seed=n)
    run_single(jobs.task_of(wards_job(asked)), whole(tmp_path, records), tmp_path / "alone")
    files = Run(jobs.task_of(joint_wards_job(asked, **parties(n))), tmp_path, records).written(
        tmp_path / "out"
    )
    assert files[TABLE] == (tmp_path / "alone" / TABLE).read_bytes()
    assert files[TABLE].count(b"\n") > 61
    alone, report = json.loads((tmp_path / "alone" / REPORT).read_text()), json.loads(files[REPORT])
    for key in ("sweeps", "records", "instances", "empty_paths", "requirement", "rows", "verified"):
        assert report[key] == alone[key]


def test_sets_of_three_holders(tmp_path: Path) -> None:
    coins = random.Random(5)  # noqa: S311
    rows = [
        [f"{';'.join(coins.sample('abcd', coins.randint(0, 3)))},{coins.choice(['HIV', 'flu'])}"]
        for _ in range(40)
    ]
    columns = sets_job()["columns"]
    run_single(
        jobs.task_of(sets_job({"C": "3/4"})),
        whole(tmp_path, rows, "codes,dx"),
        tmp_path / "alone",
    )
    task = jobs.task_of(joint_wards_job({"C": "3/4"}, columns=columns, **parties(3)))
    files = Run(task, tmp_path, rows, "codes,dx").written(tmp_path / "out")
    assert files[TABLE] == (tmp_path / "alone" / TABLE).read_bytes()


def test_the_report_tells_what_is_public_and_nothing_of_raw_records(run: Run, tmp_path: Path) -> None:
    report = json.loads(run.written(tmp_path / "out")[REPORT])
    assert not {"lost", "exclusion", "data", "frequent"} & report.keys()
    assert {r["name"] for r in report["reveals"]} == {row.name for row in ALLOWED[run.task.mode.name]} - {
        "earlier_run"
    }
    assert len(report["protection"]) == 7
    assert (report["leader"], report["deputy"], report["disclosure"]) == ("p0", "p1", "sealed")
    assert len(report["sweeps"]) > 1


def test_each_owner_is_told_what_its_own_records_lost(run: Run) -> None:
    accounts = [result.own["records"] for result in run.results.values()]
    before = sum(table.paths.n_instances for table in run.tables.values())  # type: ignore[attr-defined]
    lost = [account["lost"] for account in accounts]
    assert sum(own["of_instances"] for own in lost) == before
    assert sum(own["instances"] for own in lost) == before - run.result.table.n_instances > 0
    assert all(
        {"possible", "exposed", "fewest_candidates"} <= account["exclusion"].keys() for account in accounts
    )
    assert all(account["in_words"][0].startswith("suppressed: ") for account in accounts)
    assert "records" not in run.result.told
    assert run.results["p0"].encoded == run.results["p1"].encoded == run.results["p2"].encoded


def test_what_is_delivered_is_checked(run: Run, tmp_path: Path) -> None:
    files = run.written(tmp_path / "out")
    for result in run.results.values():
        sent = {name: files[name] for name in run.task.delivered}
        assert checked_release(run.task, result, sent, {}).files == files
    checked, signed = verify_table(run.task, tmp_path / "out"), hashlib.sha256(run.result.encoded).hexdigest()
    assert (checked.fields["verified"], checked.result) == (True, signed)
    report = json.loads(files[REPORT])
    singles, pairs = report["sweeps"][0]["kept"]
    earlier = [{**report["sweeps"][0], "kept": [singles, pairs + 1]}, *report["sweeps"][1:]]
    for said, words in [
        ({"sweeps": earlier}, None),  # figures that could be; what the parties sign has others
        ({"lost": {}}, "`lost` is not"),
        ({"guarantee": "20-anonymous, certified"}, "`guarantee` is not"),
        ({"reveals": [{"name": "everything"}]}, "`reveals` is not"),
        ({"protection": []}, "`protection` is not"),
    ]:
        (tmp_path / "out" / REPORT).write_text(json.dumps(report | said))
        with nullcontext() if words is None else pytest.raises(PartyError, match=words):
            checked = verify_table(run.task, tmp_path / "out")
            assert (checked.result == signed) == ("sweeps" not in said)
    lines = files[TABLE].decode().splitlines()
    swapped = "\n".join([*lines[:-2], lines[-1], lines[-2]]) + "\n"
    other = {**files, TABLE: swapped.encode()}
    sums = sums_of({name: content for name, content in other.items() if name != SUMS})
    with pytest.raises(PartyError, match="not the one that was computed"):
        checked_release(run.task, run.result, {**other, SUMS: sums}, {})


def _entry(i: int, **fields: Any) -> Any:
    """The reveals with one that tells something else."""
    return lambda told: [*told[:i], {**told[i], **fields}, *told[i + 1 :]]


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("reveals", _entry(2, shape=[71])),
        ("reveals", _entry(2, iteration=2)),
        ("reveals", _entry(2, to="leader")),
        ("reveals", _entry(2, value=1)),
        ("reveals", _entry(-2, shape=[4])),
        ("reveals", lambda told: told[:-1]),
        ("reveals", lambda told: told[1:]),
        ("reveals", lambda told: [*told[:2], told[3], told[2], *told[4:]]),
        ("reveals", lambda told: [told[0], *told]),
        ("reveals", lambda told: []),
        ("reveals", lambda told: "nothing"),
        ("sweeps", lambda told: told[1:]),
        ("sweeps", lambda told: [{**told[0], "tested": [71, 45]}, *told[1:]]),
    ],
)
def test_reveals_and_sweeps_of_another_run_are_named(key: str, change: Any, run: Run, tmp_path: Path) -> None:
    """With "earlier_run" before or without: only charged runs tell it."""
    report = json.loads(run.written(tmp_path / "out")[REPORT])
    earlier = {"name": "earlier_run", "shape": [3, 32], "to": "all", "iteration": 0}
    for before in ([], [earlier]):
        true = report | {"reveals": before + report["reveals"]}
        (tmp_path / "out" / REPORT).write_text(json.dumps(true))
        assert verify_table(run.task, tmp_path / "out").fields["verified"]
        false = report | {key: change(report[key])}
        if key == "reveals" and before and false["reveals"] != "nothing":
            false["reveals"] = before + false["reveals"]
        (tmp_path / "out" / REPORT).write_text(json.dumps(false))
        with pytest.raises(PartyError, match=r"`(reveals|sweeps)[^`]*` is not as job and table say"):
            verify_table(run.task, tmp_path / "out")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sweeps", []),
        ("records", 1),
        ("requirement", {}),
        ("reveals", []),
        ("parties", ["p0"]),
        ("protection", []),
        ("more", 1),
    ],
)
def test_a_report_that_says_otherwise_is_refused(key: str, value: Any, run: Run, tmp_path: Path) -> None:
    files = run.written(tmp_path / "out")
    told = json.dumps({**json.loads(files[REPORT]), key: value}).encode()
    sums = sums_of({TABLE: files[TABLE], REPORT: told})
    with pytest.raises(PartyError, match=r"what does not follow|says more"):
        checked_release(run.task, run.result, {**files, REPORT: told, SUMS: sums}, {})


def changed(encoded: bytes, sweeps: Any = None, rows: Any = None) -> bytes:
    said, mixed = unframed(encoded)
    assert mixed.rows is not None
    told = said if sweeps is None else json.dumps(sweeps(json.loads(said)), separators=(",", ":")).encode()
    own = mixed.rows if rows is None else rows(mixed.rows)
    return ShuffledRows(own.shape[1], rows=own).framed(told)


def first(value: Any) -> Any:
    def change(told: Any) -> Any:
        told["sweeps"][0] = value
        return told

    return change


@pytest.mark.parametrize(
    "harm",
    [
        lambda e: e[:-1],
        lambda e: e + b"\0",
        lambda e: b"",
        lambda e: changed(e, rows=lambda rows: rows[::-1]),
        lambda e: changed(e, rows=lambda rows: rows[:, 1:]),
        lambda e: changed(e, rows=lambda rows: np.full_like(rows, 255)),
        lambda e: changed(e, first({"tested": [1], "kept": [1]})),
        lambda e: changed(e, first({"tested": [1, True], "kept": [1, 1]})),
        lambda e: changed(e, first({"tested": [1, -1], "kept": [1, 1]})),
        lambda e: changed(e, first({"tested": [1, 1]})),
        lambda e: changed(e, lambda told: told | {"more": 1}),
        lambda e: changed(e, lambda told: []),
        lambda e: ShuffledRows(9, slips="0" * 64).framed(b"{}"),
    ],
)
def test_a_malformed_result_names_its_sender(harm: Any, run: Run) -> None:
    assert decode_result(run.task, run.result.encoded, "p0").table.n_records == 60
    with pytest.raises(PartyError) as caught:
        decode_result(run.task, harm(run.result.encoded), "p0")
    assert (caught.value.problem.error_id, caught.value.problem.party) == ("peer-protocol", "p0")


def test_own_k_is_asked_of_every_sequence_that_is_published(run: Run, tmp_path: Path) -> None:
    """The rarest that p1 has of what is published: with that many it agrees, with one more it does not."""
    own = run.results["p1"].own_records
    assert own is not None
    task, records = run.task, movements(60)
    seen: list[int] = []

    class Watching(Observer):
        def opening_groups(self, own: Any) -> None:
            seen.extend(own[own > 0].tolist())

    Run(task, tmp_path, records, p1=Watching())
    Run(task, tmp_path, records, p1=OwnGroups(Observer(), min(seen)))
    with pytest.raises(PolicyError) as caught:
        Run(task, tmp_path, records, p1=OwnGroups(Observer(), min(seen) + 1))
    assert caught.value.problem.error_id == "policy-refused"


def test_a_table_that_does_not_meet_the_requirement_has_no_release(tmp_path: Path) -> None:
    task = jobs.task_of(joint_wards_job({"K": "61"}))
    with pytest.raises(PrivacyError, match="without their paths already violates K or C") as caught:
        Run(task, tmp_path, movements(60))
    assert caught.value.error_id == "requirement-unmet"


def test_parties_with_other_vocabularies_have_no_common_job(tmp_path: Path) -> None:
    """The words are part of the job: another list is another job, and a place outside it stops its owner."""
    mine = joint_wards_job()
    other = joint_wards_job(columns=wards_columns(ward={"role": "location", "domain": [*WARDS, "lab"]}))
    assert jobs.task_of(mine).digest != jobs.task_of(other).digest
    with pytest.raises(DataError) as caught:
        Run(jobs.task_of(mine), tmp_path, [["1,lab,0,flu"], ["2,ER,0,flu"]])
    assert (caught.value.error_id, caught.value.column) == ("data-unknown-value", "ward")


def test_a_result_without_the_requirement_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Independent code has the last word before parties sign."""
    task = jobs.task_of(joint_wards_job())
    stricter = jobs.task_of(joint_wards_job({"K": "5"}))
    monkeypatch.setattr(run_module, "require_verified", lambda _, *table: require_verified(stricter, *table))
    with pytest.raises(PartyError, match="violates K"):
        Run(task, tmp_path, movements(60))
