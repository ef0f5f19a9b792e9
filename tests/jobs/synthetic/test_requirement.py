"""Limits of a job with `method: synthetic`, and its forecast before any data is read."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from anonymize.errors import SchemaError
from anonymize.joint.disclosure import ALLOWED
from jobs.description import description_lines
from jobs.errors import ConfigError
from jobs.loading import check_task, decode_task, parse_job
from jobs.owner.policy import Policy
from jobs.owner.rules import allowance, objections
from jobs.synthetic import requirement
from tests.support import jobs
from tests.support.commands import invoke, listing
from tests.support.dp_jobs import dp_single
from tests.support.network import write_job
from tests.support.samples import COLUMNS
from tests.support.synthetic_jobs import general, own_columns, synthetic_single, write_table

FINE = {"role": "qid", "numeric": {"min": "0", "max": "257", "step": "1"}}
SETS = {"role": "qid", "set": {"taxonomy": {"Any": ["a", "b"]}}}


def refused(fields: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_job(fields, "job.yaml")
    return caught.value.problem.message.removeprefix("job.yaml: ")


def not_opened(fields: dict[str, Any]) -> str:
    with pytest.raises(SchemaError) as caught:
        check_task(jobs.task_of(fields))
    return f"{caught.value}; {caught.value.remedy}"


def lines_of(fields: dict[str, Any]) -> str:
    return "\n".join(description_lines(jobs.task_of(fields)))


@pytest.mark.parametrize("key", ["specializations", "utility", "max_cells", "max_fanout", "engine", "noise"])
def test_what_diffgen_is_asked_for_is_refused(key: str) -> None:
    value = {"utility": "max", "engine": "circuit", "noise": "each"}.get(key, "5")
    assert refused(synthetic_single({key: value})) == (
        f"`model.dp`: `{key}` is for `method: diffgen`; `method: synthetic` has no such choice"
    )


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (synthetic_single({"method": "aim"}), "`model.dp.method` is aim: write diffgen or synthetic"),
        (synthetic_single({"edges": "many"}), "`model.dp.edges` is many: write auto, or how many pairs"),
        *(
            (
                synthetic_single({"edges": edges}),
                f"`model.dp.edges` is {edges or 'empty'}: write auto, or how many",
            )
            for edges in ("-1", "1.5", "[1, 2]", "true", "")
        ),
        (synthetic_single({"epsilon": "0.0001"}), "releases nothing but noise"),
        (synthetic_single({"epsilon": "11"}), "protects very little"),
        (synthetic_single({"epsilon": "1", "max_records_per_person": "1000", "edges": "0"}), ""),
        (
            synthetic_single({"epsilon": "0.5", "max_records_per_person": "600"}),
            "for 600 records of a person",
        ),
        (synthetic_single(goal="general"), "columns.transfused: goal general has no `role: class`"),
        (general(goal="classification"), "goal classification needs a column with `role: class`"),
        (
            synthetic_single(columns=own_columns(codes=SETS)),
            "columns.codes: `method: synthetic` cannot publish set",
        ),
        (synthetic_single(columns=own_columns(ward={"role": "plain"})), "holds nothing exact"),
        (
            synthetic_single(columns=own_columns(job={**COLUMNS["job"], "missing": "drop"})),
            "columns.job.missing: with `method: synthetic` missing values have a separate cell",
        ),
        (
            synthetic_single(columns=own_columns(transfused={**COLUMNS["transfused"], "missing": "drop"})),
            "columns.transfused.missing: with `method: synthetic` missing values have a separate cell",
        ),
        (
            dp_single(columns=own_columns(job={**COLUMNS["job"], "missing": "cell"})),
            "columns.job.missing: `cell` is for DP jobs with `method: synthetic`",
        ),
        (
            synthetic_single({"max_records_per_person": "2"}, columns=own_columns(patient=None)),
            "needs a column with `role: id`",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused(fields: dict[str, Any], says: str) -> None:
    if not says:
        assert parse_job(fields, "job").model.name == "synthetic"
    else:
        assert says in refused(fields)


def test_a_number_of_pairs_that_is_none_is_refused_with_those_that_are() -> None:
    assert "how many pairs of columns are measured, 0 or more" in refused(synthetic_single({"edges": "-1"}))


def test_more_pairs_than_a_forest_has_are_refused() -> None:
    assert jobs.task_of(synthetic_single({"edges": "2"})).schema.qid
    assert "edges must be at most 2: more pairs of 3 columns have cycles" in not_opened(
        synthetic_single({"edges": "3"})
    )


def test_a_fine_grid_is_refused_with_the_step_that_fits() -> None:
    said = not_opened(synthetic_single(columns=own_columns(age=FINE)))
    assert "the grid of column age has 257 cells; `method: synthetic` takes 256 at most" in said
    assert "take a step of at least 1.00390625" in said


@pytest.mark.parametrize(
    ("highest", "cuts"),
    [("100000000", ["0.0000000000001", "50"]), ("1e19", ["10", "50", "1e18"])],
)
def test_numbers_of_too_many_digits_are_refused_before_data_is_read_or_charged(
    tmp_path: Path, highest: str, cuts: list[str]
) -> None:
    domain = {"min": "0", "max": highest, "cuts": cuts}
    path = write_job(tmp_path, synthetic_single(columns=own_columns(age={"role": "qid", "numeric": domain})))
    write_table(tmp_path)
    ran = invoke("coordinator", "run", path, "--out", tmp_path / "out", "--format", "json")
    assert ran.problem["error"] == "grid-invalid"
    assert "numbers of column age would have more than 15 digits" in ran.problem["message"]
    assert listing(tmp_path) == ["job.yaml", "table.csv"]  # no ledger


def test_pairs_of_more_cells_than_can_be_looked_at_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 2 * (4 * 11 + 4 * 4 + 11 * 4)  # job, age and surgery with their missing values, by class
    monkeypatch.setattr(requirement, "MOST_PAIR_CELLS", most)
    check_task(jobs.task_of(synthetic_single()))
    monkeypatch.setattr(requirement, "MOST_PAIR_CELLS", most - 1)
    assert f"the pairs of 3 columns may have {most} cells by class" in not_opened(synthetic_single())
    check_task(jobs.task_of(synthetic_single({"edges": "0"})))


def test_jobs_that_ask_the_same_have_one_form() -> None:
    said = {
        name: {**column, "missing": "cell"} for name, column in own_columns().items() if name != "patient"
    }
    said |= {name: own_columns()[name] for name in ("patient", "transfused")}
    ordered = {name: said[name] for name in own_columns()}
    one, other = jobs.task_of(synthetic_single()), jobs.task_of(synthetic_single(columns=ordered))
    assert one.digest == other.digest
    assert decode_task(one.bundle.encoded).job == one.job
    assert jobs.task_of(dp_single()).digest == jobs.task_of(dp_single({"method": "diffgen"})).digest


def test_a_job_of_diffgen_has_the_form_that_it_had_before_there_was_a_choice() -> None:
    fields = json.loads(jobs.task_of(dp_single()).job.canonical())
    assert "method" not in fields["model"]["dp"]
    assert all("missing" not in column for column in fields["columns"].values())


def test_the_requirement_is_what_the_job_says() -> None:
    found = requirement.requirement(
        jobs.task_of(synthetic_single({"edges": "auto", "max_records_per_person": "3"}))
    )
    assert (found.epsilon, found.edges, found.max_rows, found.per_person) == (Fraction(5), None, 1000, 3)
    assert requirement.requirement(jobs.task_of(synthetic_single({"edges": "2"}))).edges == 2


def test_approval_sees_tables_noise_and_the_rows_below_which_no_pair_is_measured() -> None:
    """0.3 of ε for 3 tables, 0.1 for the choice; of the rest, 3, the tables by class get 3 parts and the pair 2."""
    said = lines_of(synthetic_single())
    assert "at most 19 counts, each with noise of scale 2 (95 of 100 within ±6)" in said
    assert (
        "3 tables of each column by bin and class: at most 38 counts, each with noise of scale 1.67 " in said
    )
    assert "1 table of each pair of columns by bin and class: at most 88 counts" in said
    assert "at most 1 of 3 pairs of columns chosen" in said
    assert "auto" not in said
    widths = re.findall(r"95 of 100 within ±(\S+)\)", lines_of(synthetic_single({"epsilon": "10"})))
    assert len(widths) == 3
    assert all(map(str.isdigit, widths))  # noise is a whole number
    auto = lines_of(synthetic_single({"edges": "auto"}))
    rows = 4 * 20 * 3 // 5
    assert (
        f"`edges: auto` measures no pair of columns below about {rows} rows (epsilon times rows below {5 * rows}; by "
        "the noisy number of rows)\n" in auto
    )
    assert "by bin and class" not in lines_of(general())


def test_approval_sees_below_how_many_rows_counts_are_mostly_noise() -> None:
    """The widest column has 11 values, each with noise of scale 2 at ε = 5, so of scale 100 at ε = 1/10."""
    says = "rows the counts of a column by its values are on average smaller than the noise"
    assert f"below 22 {says}: first of the column with most values" in lines_of(synthetic_single())
    assert "warning" not in lines_of(synthetic_single({"epsilon": "0.1", "max_rows": "1100"}))
    said = lines_of(synthetic_single({"epsilon": "0.1", "max_rows": "1099"}))
    assert f"warning: below 1,100 {says}, and max_rows allows no more" in said


@pytest.mark.parametrize(("epsilon", "rows", "clear"), [("5", 7, 30), ("1", 32, 147)])
def test_approval_sees_that_measuring_begins_where_counts_are_noise(
    epsilon: str, rows: int, clear: int
) -> None:
    """Without a class `auto` begins at 8 of ε times the rows for each column, whatever noise there is."""
    said = lines_of(general({"epsilon": epsilon, "edges": "auto"}))
    assert f"measures no pair of columns below about {rows} rows" in said
    assert "noisy number of rows); measuring begins among counts that are mostly noise (below)\n" in said
    assert f"below {clear} rows the counts of a column by its values are on average smaller" in said


def test_approval_sees_what_tables_are_opened() -> None:
    """Of leaves there is no class, and of goal general none at all."""
    said = next(each.meaning for each in ALLOWED["dp/horizontal/synthetic"] if each.name == "noisy_marginal")
    assert "of a column by leaf, of a column by bin, or of a chosen pair by bin" in said
    assert "the latter two by class if the job has a class" in said


def test_a_policy_of_other_dp_jobs_is_one_of_these_too() -> None:
    task = jobs.task_of(synthetic_single())
    rules = task.model.rules(task, ())
    allowed = allowance(rules)
    assert allowed == {"max_epsilon": "5", "max_rows": 1000}
    assert list(objections(rules, Policy(**allowed))) == []
    assert len(list(objections(rules, Policy(max_epsilon=Fraction(4), max_rows=1001)))) == 2
    assert next(iter(objections(rules, Policy()))).startswith("no DP job is allowed")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"taxonomy": {"Any": ["a", "?"]}}, "columns.job: the values list '?', a missing cell"),
        ({"taxonomy": {"Any": ["a"]}}, "columns.job: the column has a single value and is never missing"),
        ({"numeric": {"min": "0", "max": "1", "step": "1"}}, "columns.job: the column has a single value"),
    ],
)
def test_a_column_that_is_never_missing_has_values(column: dict[str, Any], message: str) -> None:
    job = {"role": "qid", "missing": "never", **column}
    assert message in not_opened(synthetic_single(columns=own_columns(job=job)))


def test_that_a_column_is_never_missing_is_for_synthetic_tables() -> None:
    fields = dp_single(columns=own_columns(job={**COLUMNS["job"], "missing": "never"}))
    assert "columns.job.missing: `never` is for DP jobs with `method: synthetic`" in refused(fields)
