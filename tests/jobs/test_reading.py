"""Reading tables: what is kept, dropped or refused, and who is told what about it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import DataError
from jobs.data import sources
from jobs.data.dialect import Dialect
from jobs.data.sources import Csv
from jobs.data.tables import Loaded
from jobs.errors import Exit, problem_of
from jobs.file.bundle import Bundle
from jobs.loading import open_task
from jobs.reading import check_columns, load_table
from tests.support import jobs
from tests.support.csv_tables import GOOD, HEADER, codes, lines
from tests.support.examples import examples
from tests.support.samples import columns, single_job
from tests.support.tables import Case, cases

SECRET = "Zebra-4711"


@pytest.fixture
def bundle() -> Bundle:
    return jobs.bundle_of(single_job())


@pytest.fixture
def load(tmp_path: Path, bundle: Bundle) -> Callable[..., Loaded]:
    def load(content: str | bytes, name: str = "table.csv", job: Bundle = bundle, **how: Any) -> Loaded:
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return load_table(Csv(tmp_path / name, **how), open_task(job))

    return load


def with_missing(rule: str | None, name: str = "job", **more: Any) -> Bundle:
    changed = {**columns()[name], **({"missing": rule} if rule else {}), **more}
    return jobs.bundle_of(single_job(columns=columns(**{name: changed})))


# ---- what is read


def test_a_plain_table(load: Callable[..., Loaded]) -> None:
    loaded = load(lines(GOOD, ["2", "Lawyer", "99.5", "N", "Rare"], ["3", "Janitor", "0", "Y", "Heart"]))
    assert (loaded.rows.read, loaded.rows.n_dropped, loaded.table.n_records) == (3, 0, 3)
    assert codes(loaded.table) == [(0, 0, 0), (0, 0, 0), (2, 9, 5)]


@pytest.mark.parametrize(
    ("content", "how"),
    [
        ("\ufeff" + lines(GOOD), {}),
        (lines(GOOD).replace("\n", "\r\n"), {}),
        (lines(GOOD).rstrip("\n"), {}),
        ("\n\n" + lines(GOOD) + "\n\n", {}),
        (lines(GOOD, delimiter=";"), {"dialect": Dialect(";")}),
        (lines(GOOD, delimiter="\t"), {"dialect": Dialect("\t")}),
        (gzip.compress(lines(GOOD).encode(), mtime=0), {"name": "table.csv.gz"}),
        (lines(["x", "zzz", *GOOD], header=["more", "yet more", *HEADER]), {}),
        (lines(["x", "y", *GOOD], header=["twice", "twice", *HEADER]), {}),
        (lines(list(reversed(GOOD)), header=list(reversed(HEADER))), {}),
        (lines(["two\nlines", *GOOD[1:]]), {}),
        (lines(['Größe, "so"', *GOOD[1:]]), {}),
        (lines(["1", "Janitor", " 5\t", "Y", "Heart"]), {}),
        (lines(["1", "Janitor", "+5.0e0", "Y", "Heart"]), {}),
    ],
)
def test_the_same_row_written_otherwise(load: Callable[..., Loaded], content: str | bytes, how: Any) -> None:
    loaded = load(content, **how)
    assert (loaded.rows.read, codes(loaded.table)) == (1, [(0, 0, 0)])


@pytest.mark.parametrize(
    ("text", "cell"), [("0", 0), ("9.999", 0), ("10", 1), ("99.99", 9), ("1e1", 1), ("-0", 0), (" 42 ", 4)]
)
def test_numbers_fall_into_their_cells(load: Callable[..., Loaded], text: str, cell: int) -> None:
    assert load(lines(["1", "Janitor", text, "Y", "Heart"])).table.qid[1].tolist() == [cell]


def test_domains_left_to_the_data_are_sorted(load: Callable[..., Loaded]) -> None:
    job = jobs.bundle_of(
        single_job(
            columns=columns(transfused={"role": "class"}, surgery={"role": "sensitive", "missing": "drop"})
        )
    )
    rows = [["1", "Mover", "5", "b", "y"], ["2", "Mover", "5", "a", "x"], ["3", "Mover", "5", "a", "?"]]
    loaded = load(lines(*rows), job=job)
    assert loaded.table.schema.classes == ("a", "b")
    assert loaded.table.schema.sensitive[0].domain == ("x", "y")
    assert codes(loaded.table) == [(1, 0, 0), (1, 0, 3)]


def test_a_protected_value_that_does_not_occur_may_be_misspelt(load: Callable[..., Loaded]) -> None:
    """Nothing else would notice that the value protects nothing, where the domain comes from the data."""
    surgery = {"role": "sensitive", "values": ["Heart", "Rare"]}
    job = jobs.bundle_of(single_job(columns=columns(surgery=surgery)))
    with pytest.raises(DataError) as caught:
        load(lines(GOOD), job=job)
    assert (caught.value.error_id, caught.value.column) == ("data-unknown-value", "surgery")
    assert "'Rare' is in no row" in str(caught.value)
    job = jobs.bundle_of(single_job(columns=columns(surgery=surgery | {"domain": ["Heart", "Knee", "Rare"]})))
    assert load(lines(GOOD), job=job).table.schema.sensitive[0].protected == (0, 2)


# ---- missing cells (semantics §3.3)


@pytest.mark.parametrize("mark", ["", "?"])
@pytest.mark.parametrize(
    ("rule", "column", "kept"),
    [
        (None, "job", [(0, 0, 0), (3, 0, 0)]),
        ("leaf", "job", [(0, 0, 0), (3, 0, 0)]),
        ("drop", "job", [(0, 0, 0)]),
        (None, "age", [(0, 0, 0)]),
        ("drop", "age", [(0, 0, 0)]),
        ("drop", "transfused", [(0, 0, 0)]),
        ("drop", "surgery", [(0, 0, 0)]),
    ],
)
def test_missing_cells_go_by_their_rule(
    load: Callable[..., Loaded], mark: str, rule: str | None, column: str, kept: list[tuple[int, ...]]
) -> None:
    holed = ["2", *GOOD[1:]]
    holed[HEADER.index(column)] = mark
    loaded = load(lines(GOOD, holed), job=with_missing(rule, column))
    assert codes(loaded.table) == kept
    assert (loaded.rows.read, loaded.rows.n_dropped) == (2, 2 - len(kept))


@pytest.mark.parametrize("mark", ["", "?"])
@pytest.mark.parametrize("column", ["transfused", "surgery"])
def test_a_missing_class_or_sensitive_cell_is_an_error(
    load: Callable[..., Loaded], mark: str, column: str
) -> None:
    holed = list(GOOD)
    holed[HEADER.index(column)] = mark
    with pytest.raises(DataError) as caught:
        load(lines(GOOD, holed))
    problem = problem_of(caught.value)
    assert (problem.error_id, problem.column, problem.exit_code) == ("data-missing-value", column, Exit.DATA)


def test_a_domain_may_list_the_missing_value(load: Callable[..., Loaded]) -> None:
    job = with_missing(None, "transfused", domain=["Y", "N", "?"])
    rows = [["1", "Mover", "5", "", "Heart"], ["2", "Mover", "5", "?", "Heart"]]
    assert codes(load(lines(*rows), job=job).table) == [(1, 0, 6), (1, 0, 6)]


def test_a_taxonomy_may_have_the_missing_value_as_a_leaf(load: Callable[..., Loaded]) -> None:
    tree = {"Any": {"Known": ["Janitor", "Mover"], "Unknown": ["?"]}}
    job = jobs.bundle_of(single_job(columns=columns(job={"role": "qid", "taxonomy": tree})))
    assert codes(load(lines(["1", "", "5", "Y", "Heart"]), job=job).table) == [(2, 0, 0)]


def test_rows_are_dropped_before_their_id_counts(load: Callable[..., Loaded]) -> None:
    loaded = load(lines(["7", "Mover", "", "Y", "Heart"], ["7", "Mover", "5", "Y", "Heart"]))
    assert loaded.table.n_records == 1


# ---- what is refused; the value goes to the owner only


@pytest.mark.parametrize(
    ("changes", "error_id", "column", "private"),
    [
        ({"job": SECRET}, "data-unknown-value", "job", f"line 3: '{SECRET}'"),
        ({"job": "janitor"}, "data-unknown-value", "job", "line 3: 'janitor'"),
        ({"transfused": SECRET}, "data-unknown-value", "transfused", f"line 3: '{SECRET}'"),
        ({"surgery": SECRET}, "data-unknown-value", "surgery", f"line 3: '{SECRET}'"),
        ({"age": SECRET}, "data-outside-domain", "age", f"line 3: '{SECRET}'"),
        ({"age": "100"}, "data-outside-domain", "age", "line 3: '100'"),
        ({"age": "-0.001"}, "data-outside-domain", "age", "line 3: '-0.001'"),
        ({"age": "nan"}, "data-outside-domain", "age", "line 3: 'nan'"),
        ({"age": "inf"}, "data-outside-domain", "age", "line 3: 'inf'"),
        ({"age": "1,500"}, "data-outside-domain", "age", "line 3: '1,500'"),
        ({"age": "0x10"}, "data-outside-domain", "age", "line 3: '0x10'"),
        ({"patient": "1"}, "data-duplicate-id", "patient", "2 rows, 1 different id"),
    ],
)
def test_a_bad_row(
    load: Callable[..., Loaded], changes: dict[str, str], error_id: str, column: str, private: str
) -> None:
    bad = [changes.get(name, value) for name, value in zip(HEADER, ["2", *GOOD[1:]], strict=True)]
    with pytest.raises(DataError) as caught:
        load(lines(GOOD, bad))
    problem = problem_of(caught.value)
    assert (problem.error_id, problem.column, problem.exit_code) == (error_id, column, Exit.DATA)
    assert private in problem.private
    assert column in problem.message
    shared = json.dumps(problem.shared())
    for value in [*changes.values(), "line 3", "2 rows"]:
        if len(value) > 3:
            assert value not in shared


@pytest.mark.parametrize(
    ("content", "error_id"),
    [
        ("", "data-empty"),
        ("\n\n", "data-empty"),
        (lines(), "data-empty"),
        (lines().rstrip(), "data-empty"),
        (lines(["1", "Mover", "?", "Y", "Heart"]), "data-empty"),
        (lines(GOOD, ["2", SECRET]), "data-unreadable"),
        (lines(GOOD, [*GOOD, SECRET]), "data-unreadable"),
        (lines(GOOD) + f'2,"{SECRET},5,Y,Heart\n', "data-unreadable"),
        (
            lines(*([[str(i), *GOOD[1:]] for i in range(20_000)] + [["ä", *GOOD[1:]]])).encode("latin-1"),
            "data-unreadable",
        ),
        (lines(GOOD).encode("utf-16-le"), "data-unreadable"),
        (lines(GOOD[1:], header=HEADER[1:]), "data-missing-column"),
        (lines([*GOOD, "Mover"], header=[*HEADER, "job"]), "data-missing-column"),
        (lines(GOOD, delimiter="/"), "data-missing-column"),
    ],
)
def test_a_bad_table(load: Callable[..., Loaded], content: str | bytes, error_id: str) -> None:
    with pytest.raises(DataError) as caught:
        load(content)
    problem = problem_of(caught.value)
    assert (problem.error_id, problem.exit_code) == (error_id, Exit.DATA)
    assert SECRET not in json.dumps(problem.shared())


def test_which_columns_a_party_has_is_its_own_business(tmp_path: Path, bundle: Bundle) -> None:
    (tmp_path / "t.csv").write_text(f"patient,{SECRET}\n")
    with pytest.raises(DataError) as caught:
        check_columns(Csv(tmp_path / "t.csv"), open_task(bundle))
    problem = problem_of(caught.value)
    assert problem.column == "job"
    assert SECRET in problem.private
    assert SECRET not in json.dumps(problem.shared())


# ---- in batches


@settings(max_examples=examples(60), deadline=None)
@given(case=cases(), block=st.integers(40, 400))
def test_the_size_of_the_batches_makes_no_difference(case: Case, block: int) -> None:
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "_BLOCK_BYTES", block)
        assert codes(jobs.coded(bundle, case.rows)) == codes(whole)


def test_the_row_of_an_error_counts_over_batches(
    load: Callable[..., Loaded], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_BLOCK_BYTES", 200)
    rows = [[str(i), "Mover", "5", "Y", "Heart"] for i in range(50)]
    (tmp_path / "clean.csv").write_text(lines(*rows))
    assert len(list(Csv(tmp_path / "clean.csv").batches(HEADER))) > 3
    rows[40][1] = SECRET
    with pytest.raises(DataError) as caught:
        load(lines(*rows))
    assert caught.value.private == f"table.csv, line 42: '{SECRET}'"


def test_ids_are_compared_over_batches(load: Callable[..., Loaded], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_BLOCK_BYTES", 200)
    rows = [[str(i), "Mover", "5", "Y", "Heart"] for i in range(50)]
    assert load(lines(*rows)).table.n_records == 50
    with pytest.raises(DataError) as caught:
        load(lines(*rows, ["0", *GOOD[1:]]))
    assert caught.value.error_id == "data-duplicate-id"


def test_two_rows_without_an_id_are_told_so(load: Callable[..., Loaded]) -> None:
    with pytest.raises(DataError, match="the same value of patient, or both have none"):
        load(lines(["", *GOOD[1:]], ["", *GOOD[1:]]))


def test_ids_of_several_columns_are_one(load: Callable[..., Loaded]) -> None:
    job = jobs.bundle_of(single_job(columns={"ward": {"role": "id"}, **columns()}))
    header = ["ward", *HEADER]
    assert load(lines(["a", *GOOD], ["b", *GOOD], header=header), job=job).table.n_records == 2
    with pytest.raises(DataError):
        load(lines(["a", *GOOD], ["a", *GOOD], header=header), job=job)
