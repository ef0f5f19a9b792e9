"""Ids as parties compare them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from hypothesis import given
from hypothesis import strategies as st

from jobs.data.ids import IdForm, id_bytes, normalized_ids
from jobs.data.sources import Csv
from jobs.reading import load_table
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.network import yaml_of
from tests.support.samples import single_job


def test_ids_are_normalized() -> None:
    """NFKC, then trimmed; case kept; each behind its length."""

    def normalized(*ids: str) -> list[bytes]:
        return id_bytes([pa.chunked_array([normalized_ids(pa.array([text]))]) for text in ids])

    assert normalized("\uff21\uff11 ") == normalized("A1") == [b"\0\0\0\x02A1"]
    assert normalized("\u00a0e\u0301\t") == normalized("\u00e9")
    assert normalized("ab") != normalized("AB")
    assert normalized("a b") != normalized("ab")


@given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), min_size=2, max_size=2, unique=True))
def test_several_ids_are_joined_unambiguously(pairs: list[tuple[str, str]]) -> None:
    columns_of_ids = [
        pa.chunked_array([pa.array(list(column), pa.string())]) for column in zip(*pairs, strict=True)
    ]
    one, other = id_bytes(columns_of_ids)
    assert one != other


def by_hand(text: str, form: IdForm) -> str:
    """Return an id in a form, step by step."""
    found = text.lower() if form.ignore_case else text
    found = found.removeprefix(form.strip_prefix.lower() if form.ignore_case else form.strip_prefix)
    if form.digits:
        found = "".join(c for c in found if c in "0123456789")
    return found if found in ("", "?") else found.rjust(form.zfill, "0")


forms = st.builds(
    IdForm,
    st.booleans(),
    st.sampled_from(["", "C-", "c", "00", "é"]),
    st.booleans(),
    st.sampled_from([0, 3, 8]),
)


@given(texts=st.lists(st.text("C-c0Aéa1 ?9", max_size=8) | st.just("?"), min_size=1, max_size=6), form=forms)
def test_a_form_is_applied_step_by_step(texts: list[str], form: IdForm) -> None:
    plain = normalized_ids(pa.array(texts, pa.string())).to_pylist()
    found = form.applied(pa.array(plain, pa.string())).to_pylist()
    assert found == [by_hand(text, form) for text in plain]


def test_an_id_without_digits_is_missing() -> None:
    """Zeros in front would make the same id of all ids without digits, and match different people."""
    ids = pa.array(["A-17", "none", "unknown", "0"])
    assert IdForm(digits=True, zfill=4).applied(ids).to_pylist() == ["0017", "", "", "0000"]
    assert IdForm(strip_prefix="C-", zfill=4).applied(pa.array(["C-", "C-1"])).to_pylist() == ["", "0001"]


def test_ids_that_look_different_match(tmp_path: Path) -> None:
    """A shop writes CUST-000123, a bank 123; the job says how ids are compared."""
    rows = [
        {"age": str(20 + i % 50), "pay": "late" if i % 5 else "ok", "good": "YN"[i % 2]} for i in range(200)
    ]
    shop = [{"pid": f"cust-{i:06}", **{k: row[k] for k in ("age", "good")}} for i, row in enumerate(rows)]
    bank = [{"pid": f" {i}", **{k: row[k] for k in ("pay", "good")}} for i, row in enumerate(rows)]
    for name, table in (("shop", shop), ("bank", bank)):
        jobs.write_csv(tmp_path / f"{name}.csv", table)
    columns = {
        "pid": {"role": "id", "normalize": {"ignore_case": "true", "strip_prefix": "CUST-", "zfill": "6"}},
        "age": {"role": "qid", "numeric": {"min": "20", "max": "70", "step": "10"}},
        "pay": {"role": "sensitive", "domain": ["ok", "late"], "C": "1"},
        "good": {"role": "class", "domain": ["Y", "N"]},
    }
    fields = single_job(
        partition="vertical", data=None, columns=columns, model={"lkc": {"L": "1", "K": "4"}},
        parties={"shop": {"columns": ["age"]}, "bank": {"columns": ["pay"]}},
    )  # fmt: skip
    (tmp_path / "job.yaml").write_text(yaml_of(fields))
    tables = [f"--data={name}={tmp_path / name}.csv" for name in ("shop", "bank")]
    command = ("simulate", tmp_path / "job.yaml", *tables, "--in-process", "--out", tmp_path / "out")
    ran = invoke("coordinator", *command)
    assert ran.code == 0, ran.err
    assert json.loads((tmp_path / "out" / "report.json").read_text())["rows"] == 200


def test_people_of_one_table_are_told_apart_by_the_form(tmp_path: Path) -> None:
    """`unit: person` counts ids in the form of the job."""
    rows = [{"pid": f"{'P' if i % 2 else 'p'}{i // 4}", "job": "Clerk"} for i in range(40)]
    jobs.write_csv(tmp_path / "table.csv", rows)
    columns = {"pid": {"role": "id"}, "job": {"role": "qid", "taxonomy": {"Any": ["Clerk", "Cook"]}}}
    for normalize, n_people in ((None, 20), ({"ignore_case": "true"}, 10)):
        pid = {"role": "id"} if normalize is None else {"role": "id", "normalize": normalize}
        model = {"lkc": {"L": "1", "K": "2", "unit": "person"}}
        task = jobs.task_of(single_job(columns={**columns, "pid": pid}, goal="general", model=model))
        person = load_table(Csv(tmp_path / "table.csv"), task).person
        assert person is not None
        assert len(set(person.tolist())) == n_people
