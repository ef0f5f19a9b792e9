"""`diversity: 2`: no group has one protected value in all its records, in every mode."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from anonymize.errors import SchemaError
from jobs.errors import PartyError
from jobs.lkc.entries import covering, entries_of
from jobs.lkc.parts import COLUMNS
from jobs.lkc.release import release_of_result
from jobs.lkc.rules import rules
from jobs.lkc.verify import require_verified, verified_fields
from jobs.loading import check_task
from jobs.owner.objections import allowance
from jobs.owner.policy import Policy
from jobs.owner.rules import objections
from jobs.release.csv import TABLE, read_csv
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.joint import sample_rows
from tests.support.lkc_runs import run_lkc
from tests.support.network import write_job
from tests.support.refusals import refused
from tests.support.samples import PARTIES, columns, joint_job, release_of, single_job, vertical_job

PROTECTED = {"role": "sensitive", "domain": ["Heart", "Knee", "Rare"], "values": ["Heart", "Rare"], "C": "1"}
LKC = {"L": "2", "K": "2", "diversity": "2"}
HOW: dict[str, Any] = {
    "model": {"lkc": LKC},
    "columns": columns(surgery=PROTECTED),
    "goal": "general",
}
MODES = {
    "leader": joint_job(**HOW),
    "sealed": joint_job(**HOW, disclosure="sealed"),
    "strict": joint_job(**HOW, disclosure="strict"),
    "vertical": vertical_job(**HOW),
    "insider": vertical_job(**HOW, insider="true"),
}


def uneven_rows() -> list[dict[str, str]]:
    """Movers are all operated on the heart, and lawyers on the knee: only the latter may stand apart."""
    of = {"Mover": "Heart", "Lawyer": "Knee"}
    return [{**row, "surgery": of.get(row["job"], row["surgery"])} for row in sample_rows(90, seed=4)]


@pytest.mark.some(3)
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_makes_the_table_of_one_holder(mode: str, tmp_path: Path) -> None:
    rows = uneven_rows()
    run = run_lkc(jobs.task_of(MODES[mode]), tmp_path, rows=rows)
    table = release_of_result(run.task, run.result, run.parts(COLUMNS))
    require_verified(table, run.task)
    if mode == "insider":
        return
    bundle = jobs.bundle_of(single_job(**HOW))
    _, expected = jobs.run_single(bundle, jobs.coded(bundle, rows))
    qid = ["job", "age", "transfused"]
    assert jobs.multiset(table.ordered(qid)) == jobs.multiset(expected.ordered(qid))
    without = jobs.bundle_of(single_job(**{**HOW, "model": {"lkc": {"L": "2", "K": "2"}}}))
    _, loose = jobs.run_single(without, jobs.coded(without, rows))
    with pytest.raises(PartyError, match="diversity for surgery"):
        require_verified(loose, jobs.task_of(single_job(**HOW)))


def table_of(*surgeries: str, job: str = "Mover") -> Any:
    return release_of(["job", "age", "surgery", "transfused"], [(job, "[0,10)", s, "Y") for s in surgeries])


def test_the_check_goes_by_the_definition() -> None:
    task = jobs.task_of(single_job(**HOW))
    require_verified(table_of("Heart", "Rare", "Rare"), task)
    require_verified(table_of("Knee", "Knee"), task)  # not protected
    for protected in ("Heart", "Rare"):
        with pytest.raises(PartyError, match="a group on no column violates diversity for surgery"):
            require_verified(table_of(protected, protected), task)


def test_it_is_said_reported_and_covered() -> None:
    fields = single_job(
        **{**HOW, "model": {"requirements": [{**LKC}, {"L": "2", "K": "2"}, {"diversity": "2"}]}}
    )
    task = jobs.task_of(fields)
    first, second, third = entries_of(task.job)
    assert first.words == "L=2 K=2 diversity=2"
    assert covering([first, second, third]) == {1: 0, 2: 0}
    assert not third.is_met_with(second)
    told = verified_fields(require_verified(table_of("Heart", "Rare"), task))
    assert [entry.get("diversity") for entry in told] == [2, None, 2]


def test_a_c_below_one_needs_no_further_test() -> None:
    schema = jobs.task_of(single_job(**HOW)).schema

    def asked(c: str) -> list[str]:
        bounded = columns(surgery={**PROTECTED, "C": c})
        (entry,) = entries_of(jobs.task_of(single_job(**{**HOW, "columns": bounded})).job)
        return [criterion.name for demand in entry.demands for criterion in demand.criteria(schema)]

    assert asked("1") == ["K", "diversity"]
    assert asked("1/2") == ["K", "C"]


def test_what_cannot_be_met_or_is_not_there_is_refused() -> None:
    one = {"role": "sensitive", "domain": ["Rare"], "C": "1"}
    with pytest.raises(
        SchemaError, match=r"model.lkc.diversity: surgery has 1 values in its domain, and protects some"
    ):
        check_task(jobs.task_of(single_job(**{**HOW, "columns": columns(surgery=one)})))
    for more in ("1", "7"):
        model = {"lkc": {**LKC, "diversity": more}}
        assert "model.lkc.diversity" in refused(single_job(**{**HOW, "model": model})).message


@pytest.mark.parametrize(
    ("lkc", "least", "is_met"),
    [
        ({"diversity": "2", "C": "1"}, 2, True),
        ({"C": "1"}, 2, False),
        ({"C": "0.5"}, 2, True),  # less than all of it
        ({"C": "0.5"}, 3, False),
        ({"C": "1"}, 1, True),
    ],
)
@pytest.mark.parametrize("partial", [False, True])
def test_policies_have_a_bound(lkc: dict[str, str], least: int, is_met: bool, partial: bool) -> None:
    surgery = {key: value for key, value in PROTECTED.items() if key != "C"}
    fields = joint_job(model={"lkc": {"L": "2", "K": "2", **lkc}}, columns=columns(surgery=surgery))
    task = jobs.task_of(fields)
    policy = Policy(
        min_k=1,
        max_c=Fraction(1),
        min_diversity=least,
        partial_requirements=partial,
        columns={"surgery": ("sensitive",)},
        protected={"surgery": ("Rare",)},
    )
    says = list(objections(rules(task, ["surgery"]), policy))
    asked = 1 if lkc.get("C") == "1" else 2
    refused = f"diversity must be at least {least}, not {asked} (`policy.min_diversity`)"
    assert says == ([] if is_met else [refused])


@pytest.mark.parametrize(
    ("at_most", "C", "counts"),
    [("0", "1", 1), ("0", "0.5", 2), ("1", "1", 2), (None, "1", 3)],
)
def test_policies_count_what_a_limit_leaves(at_most: str | None, C: str, counts: int) -> None:
    """`at_most: 0` takes a column out of `diversity`, so that all records of a group may have its protected value."""
    surgery = {**PROTECTED, "C": C} | ({} if at_most is None else {"at_most": at_most})
    model = {"lkc": {"L": "2", "K": "2", "diversity": "3"}}
    task = jobs.task_of(joint_job(model=model, columns=columns(surgery=surgery)))
    allowed = allowance(task, PARTIES[0], "coordinator")
    assert allowed.get("min_diversity", 1) == counts
    for partial in (False, True):
        for least in (1, 2, 3):
            changed = {**allowed, "min_diversity": least, "partial_requirements": partial}
            says = list(objections(rules(task, ["surgery"]), Policy.model_validate(changed)))
            refused = f"diversity must be at least {least}, not {counts} (`policy.min_diversity`)"
            assert says == ([] if least <= counts else [refused])


def test_a_policy_that_allows_just_this_asks_for_it() -> None:
    task = jobs.task_of(joint_job(**HOW))
    assert allowance(task, PARTIES[0], "coordinator")["min_diversity"] == 2


def test_kd_has_it_in_one_hand_and_under_seal(tmp_path: Path) -> None:
    rows = uneven_rows()
    of_kd = {**HOW, "method": "kd", "model": {"lkc": {**LKC, "L": "all"}}}
    tables = []
    for number, fields in enumerate((single_job(**of_kd), joint_job(**of_kd, disclosure="sealed"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        jobs.write_csv(folder / "table.csv", rows, columns())
        parts = [
            f"--data={n}={jobs.write_csv(folder / f'{n}.csv', rows[i::3], columns())}"
            for i, n in enumerate(PARTIES)
        ]
        how = ["simulate", "--in-process", *parts] if number else ["run"]
        done = invoke("coordinator", *how, write_job(folder, fields), "--out", folder / "out")
        assert done.code == 0, done.err
        tables.append(read_csv(folder / "out" / TABLE, jobs.task_of(fields).job.published))
    one, joint = tables
    require_verified(one, jobs.task_of(single_job(**of_kd)))
    assert jobs.multiset(one) == jobs.multiset(joint.ordered(list(one.columns)))
