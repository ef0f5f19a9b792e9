"""Sensitive columns with taxonomies, grids and missing cells: what is tested and published (semantics §10.14)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import DataError, PrivacyError, SchemaError
from anonymize.release import Release
from jobs.errors import ConfigError, PartyError
from jobs.file.values import Values, values_of
from jobs.lkc.parts import COLUMNS
from jobs.lkc.release import release_of_result
from jobs.lkc.report import protected_fields
from jobs.lkc.rules import rules
from jobs.lkc.verify import require_verified
from jobs.loading import check_task
from jobs.owner.policy import Policy
from jobs.owner.rules import objections
from jobs.release.csv import TABLE, read_csv
from jobs.task import Task
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.examples import examples
from tests.support.joint import sample_rows
from tests.support.lkc_runs import run_lkc
from tests.support.network import write_job
from tests.support.samples import PARTIES, columns, joint_job, release_of, single_job, vertical_job
from tests.support.tables import Case, cases

TREE = {
    "Any": {"Chest": ["Heart", "Lung"], "Limb": {"Leg": ["Knee", "Hip"], "Arm": ["Wrist"]}, "Sky": ["Eye"]}
}
"""`Sky` has one value, `Leg` and `Arm` stand two steps below the root."""
CHAPTER = {
    v: c
    for c, vs in {"Chest": ["Heart", "Lung"], "Limb": ["Knee", "Hip", "Wrist"], "Sky": ["Eye"]}.items()
    for v in vs
}
SECTION = CHAPTER | {
    "Knee": "Leg",
    "Hip": "Leg",
    "Wrist": "Arm",
    "Heart": "Heart",
    "Lung": "Lung",
    "Eye": "Eye",
}


def with_surgery(fields: Mapping[str, Any], **surgery: Any) -> Any:
    return {**fields, "columns": columns(surgery={"role": "sensitive", **surgery})}


def task_with(**surgery: Any) -> Task:
    task = jobs.task_of(with_surgery(single_job(), **surgery))
    check_task(task)
    return task


def values(**surgery: Any) -> Values:
    return values_of(task_with(**surgery), "surgery")


# ---- what is tested and published


def test_a_test_value_is_the_ancestor_at_level() -> None:
    found = values(taxonomy=TREE, level="1")
    assert found.published == ("Heart", "Lung", "Knee", "Hip", "Wrist", "Eye")
    assert found.tested == ("Chest", "Limb", "Sky")
    assert [found.tested[i] for i in found.of] == [CHAPTER[v] for v in found.published]
    assert found.protected == found.tested


def test_a_value_above_the_level_is_its_own_test_value() -> None:
    found = values(taxonomy=TREE, level="2", values=["Leg", "Heart"])
    assert [found.tested[i] for i in found.of] == [SECTION[v] for v in found.published]
    assert found.protected == ("Leg", "Heart")


def test_without_level_values_are_tested() -> None:
    found = values(taxonomy=TREE)
    assert found.tested == found.published
    assert found.categories is None


def test_the_category_can_be_what_is_published() -> None:
    found = values(taxonomy=TREE, level="1", publish="category", values=["Limb"])
    assert found.published == found.tested == ("Chest", "Limb", "Sky")
    assert {v: found.published[i] for v, i in found.read.items()} == CHAPTER
    assert found.protected == ("Limb",)


def test_cells_of_a_grid_are_values() -> None:
    grid = {"min": "0", "max": "100", "cuts": ["5", "20"]}
    found = values(numeric=grid, missing="leaf", values=["[20,100)"])
    assert found.published == found.tested == ("[0,5)", "[5,20)", "[20,100)", "?")
    assert found.protected == ("[20,100)",)
    assert values(numeric=grid, missing="leaf").protected == ("[0,5)", "[5,20)", "[20,100)")


@pytest.mark.parametrize(
    "surgery", [{"domain": ["Heart", "Knee"]}, {"taxonomy": {"Any": ["Heart", "Knee"]}, "level": "1"}]
)
def test_a_missing_cell_is_a_value_that_is_protected_only_if_it_is_named(surgery: dict[str, Any]) -> None:
    assert values(**surgery, missing="leaf").tested == ("Heart", "Knee", "?")
    assert values(**surgery, missing="leaf").protected == ("Heart", "Knee")
    assert values(**surgery, missing="leaf", values=["?", "Knee"]).protected == ("?", "Knee")
    assert "?" not in values(**surgery, missing="drop").tested


# ---- what is refused


@pytest.mark.parametrize(
    ("surgery", "says"),
    [
        ({"taxonomy": TREE, "domain": ["Heart"]}, "one of `domain`, `taxonomy` and `numeric`"),
        ({"domain": ["Heart"], "level": "1"}, "`level` is for columns with a `taxonomy`"),
        ({"taxonomy": TREE, "publish": "category"}, "`publish` is for sensitive columns with `taxonomy` and"),
        ({"taxonomy": TREE, "level": "0"}, "level"),
        ({"taxonomy": TREE, "level": "1", "publish": "leaf"}, "publish"),
        ({"taxonomy": TREE, "refine": "child"}, "a column of role sensitive has no key 'refine'"),
    ],
)
def test_keys_that_do_not_fit(surgery: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=r"columns\.surgery") as caught:
        task_with(**surgery)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("surgery", "says"),
    [
        ({"taxonomy": TREE, "level": "1", "values": ["Heart"]}, "names 'Heart', which is not a category"),
        ({"taxonomy": TREE, "values": ["Chest"]}, "names 'Chest', which is not a category"),
        ({"numeric": {"min": "0", "max": "2", "step": "1"}, "values": ["[0,2)"]}, r"names '\[0,2\)'"),
        ({"taxonomy": TREE, "level": "4"}, "`level: 4` is below all leaves .* are 3 below the root"),
        ({"taxonomy": {"*": {"a": {"x": ["1"]}, "b": {"x": ["2"]}}}, "level": "2"}, r"have the label 'x\*'"),
    ],
)
def test_values_and_labels_that_name_nothing_or_too_much(surgery: dict[str, Any], says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        task_with(**surgery)


def test_dp_jobs_have_no_taxonomy_of_sensitive_columns() -> None:
    dp = {"model": {"dp": {"epsilon": "1", "specializations": "1"}}}
    with pytest.raises(ConfigError, match=r"columns.surgery: a DP job generalizes .* for LKC jobs"):
        jobs.task_of(with_surgery(single_job(**dp), taxonomy=TREE))


def test_distinct_counts_test_values() -> None:
    model = {"lkc": {"L": "2", "K": "2", "C": "1", "distinct": {"surgery": "4"}}}
    with pytest.raises(
        SchemaError, match=r"model\.lkc\.distinct: surgery has 3 values in its domain, so no group has 4"
    ):
        check_task(jobs.task_of(single_job(model=model)))
    check_task(jobs.task_of(with_surgery(single_job(model=model), taxonomy=TREE)))
    with pytest.raises(SchemaError, match="distinct: surgery has 3 values in its domain"):
        check_task(jobs.task_of(with_surgery(single_job(model=model), taxonomy=TREE, level="1")))


def test_a_joint_job_counts_every_published_value() -> None:
    codes = {"Any": {f"c{i}": [f"v{i}.{j}" for j in range(30)] for i in range(40)}}
    drugs = {"role": "sensitive", "domain": [f"d{i}" for i in range(500)]}

    def check(fields: Mapping[str, Any], **surgery: Any) -> None:
        of = {"role": "sensitive", "taxonomy": codes, "level": "1", **surgery}
        check_task(jobs.task_of({**fields, "columns": columns(surgery=of, drug=drugs)}))

    with pytest.raises(SchemaError, match=r"combine to 1200000 cells, more than 1048576.*") as caught:
        check(joint_job())
    assert "`publish: category`" in str(caught.value.remedy)
    check(joint_job(), publish="category")
    check(single_job())


@pytest.mark.parametrize(
    ("surgery", "error_id"),
    [
        ({"taxonomy": TREE, "level": "1"}, "data-unknown-value"),  # a category is no value of a cell
        ({"numeric": {"min": "0", "max": "9", "step": "3"}}, "data-outside-domain"),
    ],
)
def test_cells_outside_are_refused(surgery: dict[str, Any], error_id: str) -> None:
    row = {**sample_rows(1)[0], "surgery": "Chest"}
    with pytest.raises(DataError) as caught:
        jobs.coded(jobs.bundle_of(with_surgery(single_job(), **surgery)), [row])
    assert (caught.value.error_id, caught.value.column) == (error_id, "surgery")


@pytest.mark.parametrize("surgery", [{"taxonomy": TREE}, {"numeric": {"min": "0", "max": "9", "step": "3"}}])
def test_missing_cells_are_refused_dropped_or_kept(surgery: dict[str, Any]) -> None:
    is_number = "numeric" in surgery
    row = {**sample_rows(1)[0], "surgery": " " if is_number else "?"}
    good = {**row, "patient": "other", "surgery": "1" if is_number else "Eye"}

    def read(missing: str | None) -> Any:
        said = {} if missing is None else {"missing": missing}
        return jobs.coded(jobs.bundle_of(with_surgery(single_job(), **surgery, **said)), [row, good])

    with pytest.raises(DataError) as caught:
        read(None)
    assert caught.value.error_id == "data-missing-value"
    assert read("drop").n_records == 1
    kept = read("leaf")
    domain = kept.schema.sensitive[0].domain
    assert {domain[code] for code in kept.axis(1)} == {"?", "[0,3)" if is_number else "Eye"}


def test_a_domain_of_the_data_may_have_missing_cells() -> None:
    rows = [{**row, "surgery": s} for row, s in zip(sample_rows(3), ["Knee", "?", ""], strict=True)]
    table = jobs.coded(jobs.bundle_of(with_surgery(single_job(), missing="leaf")), rows)
    (column,) = table.schema.sensitive
    assert column.domain == ("?", "Knee")
    assert column.protected == (1,)
    assert int(table.weights[table.axis(1) == 0].sum()) == 2


# ---- policies


@pytest.mark.parametrize(
    ("surgery", "demanded", "is_met"),
    [
        ({"level": "1", "values": ["Limb"]}, ["Limb"], True),
        ({"level": "1", "values": ["Limb"]}, ["Knee"], True),  # a share of Limb bounds that of Knee
        ({"level": "1", "values": ["Limb"]}, ["Knee", "Heart"], False),
        ({"level": "1", "values": ["Limb"], "publish": "category"}, ["Knee"], True),
        ({"level": "2"}, ["Limb"], False),  # bounds on Leg and Arm do not bound both together
        ({}, ["Knee"], True),
        ({"values": ["Knee"]}, ["Hip"], False),
    ],
)
def test_a_policy_names_values_or_test_values(
    surgery: dict[str, Any], demanded: list[str], is_met: bool
) -> None:
    task = jobs.task_of(with_surgery(joint_job(), taxonomy=TREE, **surgery))
    columns: dict[str, Any] = {"surgery": ("sensitive",)}
    policy = Policy(min_k=1, max_c=Fraction(1), columns=columns, protected={"surgery": tuple(demanded)})
    says = [o for o in objections(rules(task, ["surgery"]), policy) if "protected" in o]
    assert (not says) == is_met


# ---- runs


def coarse(case: Case, coins: st.DataObject, publish: str) -> tuple[Any, list[dict[str, str]]]:
    """The same job with values below those of its sensitive columns, and its rows with any of these."""
    fields, rows = dict(case.fields["columns"]), [dict(row) for row in case.rows]
    for name in case.problem.sensitive:
        domain = fields[name]["domain"]
        below = {v: [f"{v}.{i}" for i in range(coins.draw(st.integers(1, 2)))] for v in domain}
        kept = {k: v for k, v in fields[name].items() if k != "domain"}
        fields[name] = {**kept, "taxonomy": {"*": below}, "level": "1", "publish": publish}
        for row in rows:
            row[name] = coins.draw(st.sampled_from(below[row[name]]))
    return {**case.fields, "columns": fields}, rows


@settings(max_examples=examples(60), deadline=None)
@given(case=cases(), coins=st.data(), publish=st.sampled_from(["value", "category"]))
def test_a_run_goes_by_test_values_alone(case: Case, coins: st.DataObject, publish: str) -> None:
    fields, rows = coarse(case, coins, publish)
    plain, bundle = jobs.bundle_of(case.fields), jobs.bundle_of(fields)
    try:
        outcome, release = jobs.run_single(plain, jobs.coded(plain, case.rows))
    except PrivacyError:
        with pytest.raises(PrivacyError):
            jobs.run_single(bundle, jobs.coded(bundle, rows))
        return
    found, table = jobs.run_single(bundle, jobs.coded(bundle, rows))
    assert jobs.turns(found) == jobs.turns(outcome)
    require_verified(table, jobs.task_of(fields))
    names = list(table.columns)
    of_rows = Counter(
        tuple(
            v.partition(".")[0] if n in case.problem.sensitive else v for n, v in zip(names, row, strict=True)
        )
        for row in jobs.multiset(table).elements()
    )
    assert of_rows == jobs.multiset(release)


def surgery_rows(n: int = 80) -> list[dict[str, str]]:
    coins = random.Random(5)  # noqa: S311
    return [{**row, "surgery": coins.choice([*CHAPTER, "Knee", "?"])} for row in sample_rows(n, seed=3)]


SURGERY = {"taxonomy": TREE, "level": "1", "values": ["Limb"], "missing": "leaf"}
MODEL = {"lkc": {"L": "2", "K": "4", "C": "0.7", "distinct": {"surgery": "2"}}}
MODES = {
    "leader": joint_job(model=MODEL, score="infogain"),
    "sealed": joint_job(model=MODEL, disclosure="sealed", score="infogain"),
    "strict": joint_job(model=MODEL, disclosure="strict", score="infogain"),
    "vertical": vertical_job(model=MODEL, score="infogain"),
}


def alone(rows: list[dict[str, str]], **surgery: Any) -> Release:
    bundle = jobs.bundle_of(with_surgery(single_job(model=MODEL, score="infogain"), **surgery))
    return jobs.run_single(bundle, jobs.coded(bundle, rows))[1]


@pytest.mark.some(2)
@pytest.mark.parametrize("publish", ["value", "category"])
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_makes_the_table_of_one_holder(mode: str, publish: str, tmp_path: Path) -> None:
    rows, surgery = surgery_rows(), {**SURGERY, "publish": publish}
    fields = with_surgery(MODES[mode], **surgery)
    run = run_lkc(jobs.task_of(fields), tmp_path, rows=rows)
    parts = run.parts(COLUMNS) if mode == "vertical" else {}
    table = release_of_result(run.task, run.result, parts)
    expected = alone(rows, **surgery)
    # in a vertical run sensitive values stand in any order inside a cell
    looked_at = list(expected.columns) if mode != "vertical" else ["job", "age", "transfused"]
    assert jobs.multiset(table.ordered(looked_at)) == jobs.multiset(expected.ordered(looked_at))
    assert Counter(values_in(table)) == Counter(values_in(expected))
    assert (
        set(values_in(table)) == set(CHAPTER) | {"?"} if publish == "value" else {"Chest", "Limb", "Sky", "?"}
    )
    require_verified(table, run.task)
    of_categories = {"domain": ["Chest", "Limb", "Sky", "?"], "values": ["Limb"]}
    coarse_rows = [{**row, "surgery": CHAPTER.get(row["surgery"], "?")} for row in rows]
    plain = alone(coarse_rows, **of_categories)
    assert jobs.multiset(table.ordered(["job", "age"])) == jobs.multiset(plain.ordered(["job", "age"]))
    told = protected_fields(run.task, table)["surgery"]
    assert told == {"C": "7/10", "values": ["Limb"], "level": 1, "publish": publish}


@pytest.mark.some(1)
@pytest.mark.parametrize("publish", ["value", "category"])
def test_kd_goes_by_test_values_too(publish: str, tmp_path: Path) -> None:
    rows, surgery = surgery_rows(), {**SURGERY, "publish": publish}
    of_kd = {
        "method": "kd",
        "goal": "general",
        "score": None,
        "model": {"lkc": {**MODEL["lkc"], "L": "all"}},
    }
    single = with_surgery(single_job(**of_kd), **surgery)
    jobs.write_csv(tmp_path / "table.csv", rows, columns())
    done = invoke("coordinator", "run", write_job(tmp_path, single), "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert invoke("coordinator", "verify", tmp_path / "job.yaml", tmp_path / "out").code == 0
    expected = read_csv(tmp_path / "out" / TABLE, jobs.task_of(single).job.published)
    (tmp_path / "joint").mkdir()
    fields = with_surgery(joint_job(**{**of_kd, "disclosure": "sealed"}), **surgery)
    tables = [
        f"--data={n}={jobs.write_csv(tmp_path / 'joint' / f'{n}.csv', rows[i::3], columns())}"
        for i, n in enumerate(PARTIES)
    ]
    job, out = write_job(tmp_path / "joint", fields), tmp_path / "joint" / "out"
    done = invoke("coordinator", "simulate", job, *tables, "--in-process", "--out", out)
    assert done.code == 0, done.err
    table = read_csv(out / TABLE, jobs.task_of(fields).job.published)
    assert jobs.multiset(table) == jobs.multiset(expected.ordered(list(table.columns)))
    assert len(set(column_in(expected, "age"))) > 1


def column_in(release: Release, name: str) -> list[str]:
    column = release.in_rows().columns[name]
    return [column.labels[code] for code in column.codes]


def values_in(release: Release) -> list[str]:
    return column_in(release, "surgery")


# ---- the independent check


def table_of(*surgeries: str) -> Release:
    rows = [("Mover", "[0,10)", surgery, "Y") for surgery in surgeries]
    return release_of(["job", "age", "surgery", "transfused"], rows)


@pytest.mark.parametrize(
    ("level", "surgeries", "finding"),
    [
        ("1", ["Knee", "Wrist", "Heart", "Eye"], None),
        ("1", ["Knee", "Wrist", "Hip", "Eye"], "C for surgery"),  # three of four are Limb
        ("2", ["Knee", "Wrist", "Hip", "Eye"], None),  # two of four are Leg
        ("2", ["Knee", "Knee", "Hip", "Eye"], "C for surgery"),
        (
            "1",
            ["Knee", "Wrist", "?", "?"],
            "C for surgery",
        ),  # values protected, the missing one not: 1/2 each
    ],
)
def test_the_check_maps_printed_values_to_test_values(
    level: str, surgeries: list[str], finding: str | None
) -> None:
    c = "0.4" if "?" in surgeries else "0.5"
    model = {"lkc": {"L": "2", "K": "2", "C": c}}
    task = jobs.task_of(with_surgery(single_job(model=model), taxonomy=TREE, level=level, missing="leaf"))
    if finding is None:
        require_verified(table_of(*surgeries), task)
        return
    with pytest.raises(PartyError, match=finding):
        require_verified(table_of(*surgeries), task)


def test_the_check_counts_different_test_values() -> None:
    model = {"lkc": {"L": "2", "K": "2", "C": "1", "distinct": {"surgery": "2"}}}
    task = jobs.task_of(with_surgery(single_job(model=model), taxonomy=TREE, level="1"))
    require_verified(table_of("Knee", "Eye"), task)
    with pytest.raises(PartyError, match="distinct for surgery"):
        require_verified(table_of("Knee", "Hip"), task)


def test_one_holder_has_no_bound_on_combinations() -> None:
    coins = random.Random(7)  # noqa: S311
    rows = [
        {**row, "surgery": f"v{coins.randrange(1200)}", "drug": f"d{coins.randrange(900)}"}
        for row in sample_rows(300)
    ]
    tree = {"Any": {f"c{i}": [f"v{j}" for j in range(1200) if j % 3 == i] for i in range(3)}}
    of = {"role": "sensitive", "taxonomy": tree, "level": "1"}
    model = {"lkc": {"L": "2", "K": "20", "C": {"surgery": "1/2"}, "distinct": {"surgery": "3"}}}
    fields = single_job(
        model=model, columns=columns(surgery=of, drug={"role": "sensitive", "C": "1"}), goal="general"
    )
    bundle = jobs.bundle_of(fields)
    table = jobs.coded(bundle, rows)
    assert table.schema.n_cells <= 300
    outcome, release = jobs.run_single(bundle, table)
    assert outcome.applied
    require_verified(release, jobs.task_of(fields))
    found = jobs.multiset(release.ordered(["surgery", "drug", "transfused"]))
    assert found == Counter((row["surgery"], row["drug"], row["transfused"]) for row in rows)
