"""From a job to the public schema of its table."""

from __future__ import annotations

import unicodedata
from decimal import Decimal
from typing import Any

import pytest

from anonymize.errors import SchemaError
from anonymize.grid import Grid
from anonymize.table import SetRule
from anonymize.taxonomy import Taxonomy
from jobs.file.job import Job
from jobs.file.schema import check_values, holders_of, schema_of, taxonomies_of
from jobs.loading import parse_job
from tests.support.dp_jobs import TWO, dp_joint
from tests.support.samples import columns, joint_job, single_job, vertical_job


def job(fields: Any) -> Job:
    return parse_job(fields, "job")


def of(**column: Any) -> Any:
    """The hierarchy of one more column of the sample job."""
    fields = single_job(columns=columns(x={"role": "qid", **column}))
    return taxonomies_of(job(fields), {})["x"]


def test_every_column_that_is_specialized_has_a_hierarchy_in_the_order_of_the_job() -> None:
    found = taxonomies_of(job(single_job()), {})
    assert {name: type(values) for name, values in found.items()} == {"job": Taxonomy, "age": Grid}
    assert list(found) == ["job", "age"]


def test_a_cell_without_a_value_has_a_leaf_unless_its_row_is_dropped() -> None:
    tree = {"Any": ["a", "b"]}
    assert of(taxonomy=tree).leaves == ("a", "b", "?")
    assert of(taxonomy=tree, missing="drop").leaves == ("a", "b")


def test_a_taxonomy_in_a_file() -> None:
    fields = single_job(columns=columns(x={"role": "qid", "taxonomy": "x.csv", "missing": "drop"}))
    found = taxonomies_of(job(fields), {"x": "a;g;*\nb;g;*\nc;h;*\n"})["x"]
    assert isinstance(found, Taxonomy)
    assert found.leaves == ("a", "b", "c")
    assert [found.label(node) for node in found.child_nodes(found.root)] == ["g", "h"]


def test_grids_by_step_and_by_cuts() -> None:
    by_step = of(numeric={"min": "0", "max": "1", "step": "0.25"})
    by_cuts = of(numeric={"min": "0", "max": "1", "cuts": ["0.1", "0.7"]})
    assert (by_step.root.last, by_cuts.root.last) == (4, 3)
    assert by_cuts.label(by_cuts.root) == "[0,1)"
    assert isinstance(by_step.edges[1], Decimal | int)


def schema(fields: Any, found: Any = None) -> Any:
    made = job(fields)
    return schema_of(made, taxonomies_of(made, {}), (), found or {})


def test_the_class_is_that_of_the_job() -> None:
    made = schema(single_job())
    assert ([c.name for c in made.qid], made.class_name, made.classes) == (
        ["job", "age"],
        "transfused",
        ("Y", "N"),
    )


def test_a_domain_that_the_job_leaves_to_the_data_is_the_one_found() -> None:
    fields = single_job(columns=columns(transfused={"role": "class"}))
    assert schema(fields, {"transfused": ("maybe", "no")}).classes == ("maybe", "no")


def test_a_job_without_a_class_has_one_that_says_nothing() -> None:
    made = schema(single_job(goal="general", columns=columns(transfused=None)))
    assert (made.class_name, made.classes, made.n_classes) == (None, ("",), 1)


def test_set_valued_columns_keep_their_rule() -> None:
    spec = {
        "role": "qid",
        "set": {"taxonomy": {"Any": ["a", "b", "c"]}, "separator": "|", "max_items": "2"},
    }
    fields = single_job(
        model={"dp": {"epsilon": "1", "specializations": "1"}},
        columns=columns(x=spec, surgery=None),
    )
    rules = {column.name: column.sets for column in schema(fields).qid}
    assert rules == {"job": None, "age": None, "x": SetRule("|", 2)}


def test_columns_of_a_vertical_job_by_holder() -> None:
    holders = holders_of(job(vertical_job()))
    assert (holders.qid, holders.sensitive, holders.plain) == (("loan", "bank"), ("bank",), ())
    assert holders.class_from is None
    plain = vertical_job(
        columns=columns(
            note={"role": "plain"}, transfused={"role": "class", "domain": ["Y", "N"], "shared_by": "bank"}
        ),
        parties={
            "loan": {"address": "127.0.0.1:7401", "columns": ["age", "note"]},
            "bank": {"address": "127.0.0.1:7402", "columns": ["surgery", "job"]},
        },
    )
    holders = holders_of(job(plain))
    assert (holders.qid, holders.sensitive, holders.plain) == (("bank", "loan"), ("bank",), ("loan",))
    assert holders.class_from == "bank"


def test_a_sensitive_column_that_is_specialized_is_held_like_a_quasi_identifier() -> None:
    holders = holders_of(job(dp_joint("vertical")))
    assert (holders.qid, holders.sensitive) == ((TWO[0], TWO[1], TWO[1]), ())


def refused(fields: Any) -> SchemaError:
    made = job(fields)
    with pytest.raises(SchemaError) as caught:
        check_values(made, taxonomies_of(made, {}))
    return caught.value


FORMS = [unicodedata.normalize(form, "Müller") for form in ("NFC", "NFD")]


@pytest.mark.parametrize(
    "changes",
    [
        {"job": {"role": "qid", "taxonomy": {"Any": FORMS}}},
        {"surgery": {"role": "sensitive", "domain": FORMS, "values": FORMS[:1]}},
        {"transfused": {"role": "class", "domain": FORMS}},
    ],
    ids=["taxonomy", "sensitive", "class"],
)
def test_one_value_in_two_unicode_forms(changes: dict[str, Any]) -> None:
    assert FORMS[0] != FORMS[1]
    error = refused(joint_job(columns=columns(**changes)))
    assert (error.error_id, error.column) == ("taxonomy-two-parents", next(iter(changes)))
    assert "two Unicode forms" in str(error)


def test_the_sample_jobs_have_nothing_wrong() -> None:
    for fields in (single_job(), joint_job(), vertical_job()):
        made = job(fields)
        check_values(made, taxonomies_of(made, {}))
