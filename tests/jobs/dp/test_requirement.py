"""DP jobs: everything about the domain is public and stated, and nothing exact is asked for."""

from __future__ import annotations

import unicodedata
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from anonymize.dp.utility import gain_sensitivity
from anonymize.errors import PrivacyError, SchemaError
from anonymize.joint.dp.circuits import noisy_width
from anonymize.joint.dp.noise import DELTA
from anonymize.score import f_score
from coordinator.single import run_single
from jobs.data.sources import Csv
from jobs.dp.settings import GREATEST_EPSILON, LEAST_EPSILON, MAX_EPSILON
from jobs.errors import ConfigError, Exit, problem_of
from jobs.file.bundle import Bundle
from jobs.loading import check_task, decode_task, open_task, parse_job
from jobs.options import Options
from tests.support import jobs
from tests.support.dp_jobs import PARTITIONS, dp_joint, dp_single, dp_site
from tests.support.dp_runs import request_for
from tests.support.dp_tables import numeric, schema_of
from tests.support.joint import sample_rows
from tests.support.samples import COLUMNS, columns, joint_job, single_job

CODES = {"role": "qid", "set": {"taxonomy": {"Any": {"1": ["11", "12"], "2": ["21", "22"]}}}}


def refused(fields: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_job(fields, "job.yaml")
    assert caught.value.problem.exit_code == Exit.USAGE
    return caught.value.problem.message.removeprefix("job.yaml: ")


def _check_opened(bundle: Bundle) -> None:
    check_task(open_task(bundle))


def changed(name: str, **keys: Any) -> dict[str, Any]:
    """The sample columns with keys of one of them changed; None removes a key."""
    fields = {**COLUMNS[name], **keys}
    return columns(**{name: {key: value for key, value in fields.items() if value is not None}})


def test_defaults_are_those_of_the_design() -> None:
    model = parse_job(dp_single(), "job").model.dp
    assert model is not None
    assert (model.epsilon, model.utility, model.noise, model.engine) == (1, "max", "joint", "circuit")
    assert (model.max_cells, model.max_fanout) == (100_000, 64)
    bare = parse_job(single_job(model={"dp": {"epsilon": "0.1", "specializations": "4"}}), "job").model.dp
    assert bare is not None
    assert (bare.epsilon, bare.max_rows) == (Fraction(1, 10), 1_000_000)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ({"epsilon": "0"}, "`model.dp.epsilon` is 0: write a number above 0"),
        ({"epsilon": "-1"}, "`model.dp.epsilon` is -1: write a number above 0"),
        ({"epsilon": "nan"}, "`model.dp.epsilon`"),
        ({"epsilon": "inf"}, "`model.dp.epsilon`"),
        ({"epsilon": "much"}, "`model.dp.epsilon`"),
        ({"epsilon": "0.000999"}, "an epsilon of 0.000999 releases nothing but noise"),
        ({"epsilon": "1e-20"}, "raise epsilon to at least 0.001"),
        ({"epsilon": "100.001", "accept_large_epsilon": "true"}, "an epsilon of 100.001 protects nothing"),
        ({"epsilon": "1e30", "accept_large_epsilon": "true"}, "lower epsilon to at most 10, or to 100 with"),
        ({"epsilon": "10.001"}, "an epsilon of 10.001 protects very little; lower epsilon to at most 10"),
        ({"specializations": "0"}, "`model.dp.specializations`: h must be at least 1: with h = 0 nothing is"),
        ({"specializations": "-1"}, "`model.dp.specializations`: h must be at least 1"),
        ({"specializations": "1.5"}, "`model.dp.specializations`"),
        ({"max_rows": "0"}, "`model.dp.max_rows`"),
        ({"max_cells": "0"}, "`model.dp.max_cells`"),
        ({"max_fanout": "1"}, "`model.dp.max_fanout`"),
        ({"utility": "best"}, "`model.dp.utility`"),
        ({"noise": "none"}, "`model.dp.noise`"),
        ({"engine": "fast"}, "`model.dp.engine`"),
        ({"K": "3"}, "unknown key `model.dp.K`"),
    ],
)
@pytest.mark.parametrize("partition", PARTITIONS)
def test_numbers_that_make_no_sense(partition: str, model: dict[str, str], says: str) -> None:
    assert says in refused(dp_joint(partition, model))


def test_a_large_epsilon_must_be_meant() -> None:
    assert "accept_large_epsilon: true" in refused(dp_single({"epsilon": "50"}))
    parse_job(dp_single({"epsilon": "50", "accept_large_epsilon": "true"}), "job")
    parse_job(dp_single({"epsilon": "10"}), "job")


@pytest.mark.some(2)
@pytest.mark.parametrize("epsilon", [LEAST_EPSILON, GREATEST_EPSILON])
@pytest.mark.parametrize(
    ("partition", "utility"),
    [("horizontal", "max"), ("vertical", "max"), ("vertical", "infogain")],
)
def test_joint_runs_at_the_bounds_of_epsilon(
    tmp_path: Path, partition: str, utility: str, epsilon: Fraction
) -> None:
    """A run can do all that the job accepts, and its δ is the promised one."""
    large = "true" if epsilon > MAX_EPSILON else "false"
    site = dp_site(
        tmp_path,
        partition,
        epsilon=str(epsilon),
        utility=utility,
        accept_large_epsilon=large,
        max_rows="1000000",
    )
    results, _ = site.run(limits=dict.fromkeys(site.tables, epsilon))
    for result in results.values():
        assert result.spent.spent == epsilon
        assert 0 < Fraction(result.delta) <= DELTA
        assert result.table.counts.dtype == np.int64


@pytest.mark.parametrize("epsilon", [LEAST_EPSILON, GREATEST_EPSILON])
@pytest.mark.parametrize("utility", ["max", "infogain"])
@pytest.mark.parametrize("max_cells", ["100000", "4"])
def test_a_single_holders_run_at_the_bounds_of_epsilon(
    tmp_path: Path, epsilon: Fraction, utility: str, max_cells: str
) -> None:
    model = {
        "epsilon": str(epsilon),
        "utility": utility,
        "max_cells": max_cells,
        "accept_large_epsilon": "true",
    }
    table = jobs.write_csv(tmp_path / "table.csv", sample_rows(60), COLUMNS)
    run_single(jobs.task_of(dp_single(model)), Csv(table), tmp_path / "out", Options())
    assert (tmp_path / "out" / "counts.csv").exists()


@pytest.mark.parametrize(("max_rows", "sensitivity"), [(10**6, None), (1 << 31, 1 << 32)])
def test_noisy_scores_fit_words_at_the_least_epsilon(max_rows: int, sensitivity: int | None) -> None:
    """The longest run with a hundred numeric columns. Of the largest max_rows the sensitivity is estimated: 33 bits
    of 2**20 units, and twice the rows for the rounding.
    """
    schema = schema_of(*(numeric(f"x{i}", 2) for i in range(100)))
    request = request_for(schema, epsilon=LEAST_EPSILON, specializations=1000)
    rate = request.requirement.step_epsilon(schema) / 2 / (sensitivity or gain_sensitivity(max_rows))
    plan = request.plans().geometric(rate, 4096)
    score_bits = int(f_score(np.array([max_rows]))[0]).bit_length() + 1
    assert 50 < noisy_width(score_bits, plan) < 64


def test_one_privacy_model() -> None:
    both = {"dp": {"epsilon": "1", "specializations": "1"}, "lkc": {"L": "1", "K": "1"}}
    for model in (both, {}):
        assert "give one of `lkc`, `dp`" in refused(single_job(model=model))


@pytest.mark.parametrize("missing", ["epsilon", "specializations"])
def test_what_has_no_default(missing: str) -> None:
    model = {"epsilon": "1", "specializations": "2"}
    del model[missing]
    assert f"`model.dp.{missing}` is missing" in refused(single_job(model={"dp": model}))


@pytest.mark.parametrize("fields", [dp_single, lambda **c: dp_joint("horizontal", **c)])
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"columns": changed("transfused", domain=None)},
            "columns.transfused: a joint or DP job needs its `domain`",
        ),
        ({"columns": changed("surgery", domain=None, values=None)}, "needs its `domain`"),
        ({"columns": changed("age", numeric={"step": "10"})}, "columns.age.numeric.min` is missing"),
        (
            {"columns": changed("transfused", role="qid", domain=None)},
            "one of `taxonomy`, `numeric` and `dates`",
        ),
        ({"columns": columns(transfused=None), "goal": "general"}, "needs a column with `role: class`"),
        ({"goal": "general"}, "DiffGen chooses generalizations that predict a class: leave `goal` out"),
        ({"columns": columns(ward={"role": "plain"})}, "columns.ward: a DP release holds nothing exact"),
        ({"columns": columns(count=COLUMNS["age"])}, "columns.count: the release has a column count"),
        ({"columns": changed("age", other="7")}, "`other` is for categorical columns"),
        ({"columns": changed("transfused", other="maybe")}, "`other` must be in `domain`"),
    ],
)
def test_what_is_not_public_or_not_protected(fields: Any, changes: dict[str, Any], says: str) -> None:
    assert says in refused(fields(**changes))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (dp_joint("horizontal", {"utility": "infogain"}), "utility: infogain is for single holders"),
        (dp_joint("vertical", {"utility": "infogain", "engine": "thesis"}), "utility: infogain is for"),
        (dp_joint("horizontal", columns=columns(codes=CODES)), "set-valued columns are for jobs of a single"),
        (
            dp_joint("horizontal", disclosure="leader"),
            "`disclosure: leader` and `disclosure: strict` are for LKC jobs",
        ),
        (
            dp_joint("vertical", columns=changed("transfused", shared_by="hospital-a")),
            "both parties must hold the class",
        ),
        (dp_single({"noise": "each"}), "model.dp.noise is for joint jobs"),
        (dp_single({"engine": "thesis"}), "model.dp.engine is for joint jobs"),
        (single_job(columns=columns(codes=CODES)), "columns.codes.set is for DP jobs"),
        (joint_job(columns=changed("job", other="Lawyer")), "columns.job.other is for DP jobs"),
    ],
)
def test_what_goes_with_what(fields: dict[str, Any], says: str) -> None:
    assert says in refused(fields)


@pytest.mark.parametrize("name", ["job", "age", "surgery", "transfused"])
def test_a_vertical_job_cannot_drop_rows_by_their_values(name: str) -> None:
    """The peer, which matches ids, would see whose value is missing."""
    said = refused(dp_joint("vertical", columns=changed(name, missing="drop")))
    assert f"columns.{name}.missing: in vertical DP jobs `drop` would tell the peer" in said
    parse_job(dp_joint("horizontal", columns=changed(name, missing="drop")), "job")
    leaf = changed("job", missing="leaf")
    parse_job(dp_joint("vertical", columns=leaf), "job")


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_published_protocols_are_for_two(partition: str) -> None:
    parties = {f"p{i}": {"address": "127.0.0.1:7401"} for i in range(3)}
    if partition == "vertical":
        for name, held in zip(parties, ("job", "age", "surgery"), strict=True):
            parties[name] |= {"columns": [held]}  # type: ignore[dict-item]
    said = refused(dp_joint(partition, {"engine": "thesis"}, parties=parties, leader=None))
    assert "two parties, not 3" in said


# ---- with the taxonomies


def test_more_cells_than_the_limit_are_refused_with_the_number() -> None:
    """Any first choice makes 8 cells or more of two specializations: 2·2·2 with the class."""
    bundle = jobs.bundle_of(dp_joint("horizontal", {"max_cells": "5"}))
    with pytest.raises(PrivacyError) as caught:
        _check_opened(bundle)
    assert caught.value.error_id == "too-many-cells"
    assert "above max_cells = 5" in str(caught.value)
    assert "raise max_cells to 6 or more" in caught.value.remedy
    assert problem_of(caught.value).exit_code == Exit.USAGE
    _check_opened(jobs.bundle_of(dp_joint("horizontal", {"max_cells": "6"})))
    _check_opened(
        jobs.bundle_of(dp_single({"max_cells": "5"}))
    )  # a single holder lists cells above a threshold


def test_other_is_a_value_of_the_taxonomy() -> None:
    with pytest.raises(SchemaError) as caught:
        _check_opened(jobs.bundle_of(dp_single(columns=changed("job", other="White"))))
    assert "columns.job: `other` must be a value of the taxonomy" in str(caught.value)
    _check_opened(jobs.bundle_of(dp_single(columns=changed("job", other="Lawyer"))))


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_other_is_found_in_any_unicode_form(form: Literal["NFC", "NFD"]) -> None:
    other = unicodedata.normalize(form, "Müller")
    for listed in ("Müller", unicodedata.normalize("NFD", "Müller")):
        jobs_column = {"role": "qid", "taxonomy": {"Any": [listed, "Maler"]}, "other": other}
        classes = {"role": "class", "domain": [listed, "Maler"], "other": other}
        _check_opened(jobs.bundle_of(dp_single(columns=columns(job=jobs_column, transfused=classes))))


@pytest.mark.parametrize(
    ("tree", "separator", "says"),
    [
        ({"Any": {"g": {"g": ["a", "b"], "h": ["c"]}}}, ";", "print alike"),
        ({"Any": ["a;b", "c"]}, ";", "contains the separator"),
        ({"Any": ["a b", "c"]}, " ", "contains the separator"),
    ],
)
def test_items_of_sets_can_be_told_apart(tree: Any, separator: str, says: str) -> None:
    codes = {"role": "qid", "set": {"taxonomy": tree, "separator": separator}}
    with pytest.raises(SchemaError) as caught:
        _check_opened(jobs.bundle_of(dp_single(columns=columns(codes=codes))))
    assert says in str(caught.value)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_ranges_that_the_published_protocols_cannot_take(partition: str) -> None:
    bundle = jobs.bundle_of(dp_joint(partition, {"engine": "thesis", "max_rows": "1000000"}))
    with pytest.raises(SchemaError) as caught:
        _check_opened(bundle)
    assert any(character.isdigit() for character in str(caught.value))  # how large it would have to be


def test_a_bundle_with_sets_survives_the_journey() -> None:
    bundle = jobs.bundle_of(dp_single(columns=columns(codes=CODES)))
    (column,) = [c for c in decode_task(bundle.encoded).schema.qid if c.name == "codes"]
    assert column.sets is not None
    assert column.sets.separator == ";"
