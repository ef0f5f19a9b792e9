"""Released tables as files: what is written is what is read back, and a folder is there whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import party.release_file
from anonymize.release import LabelledColumn, Release
from party.bundle import Bundle
from party.errors import ConfigError, PartyError
from party.job import LkcModel
from party.release_file import (
    REPORT,
    TABLE,
    check_delivery,
    new_folder,
    read_csv,
    require_verified,
    rows_to_csv,
    same_rows,
    verify_release,
    write_csv,
    write_files,
)
from party.result import reveal_fields
from tests.support import jobs
from tests.support.joint import run_joint_sample
from tests.support.samples import columns, single_job

NASTY = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "  a",
            "a  ",
            ",",
            '"',
            '""',
            "\n",
            "\r\n",
            "a\rb",
            "\t",
            "?",
            "NA",
            "null",
            "1",
            "é",
            "\x85",
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)


def release_of(names: list[str], rows: list[tuple[str, ...]]) -> Release:
    built = {}
    for i, name in enumerate(names):
        labels = tuple(dict.fromkeys(row[i] for row in rows))
        built[name] = LabelledColumn(labels, np.array([labels.index(row[i]) for row in rows], dtype=np.int64))
    return Release(built)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, ...]]]:
    names = draw(st.lists(NASTY, min_size=1, max_size=4, unique=True))
    rows = draw(st.lists(st.tuples(*(NASTY for _ in names)), min_size=1, max_size=8))
    return names, rows


@settings(max_examples=200, deadline=None)
@given(table=tables(), chunk=st.integers(1, 5))
def test_whatever_the_labels_are_they_come_back(
    tmp_path_factory: pytest.TempPathFactory, table: tuple[list[str], list[tuple[str, ...]]], chunk: int
) -> None:
    names, rows = table
    path = tmp_path_factory.mktemp("t") / "t.csv"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(party.release_file, "_CHUNK_ROWS", chunk)
        write_csv(release_of(names, rows), path)
    content = path.read_bytes()
    assert list(csv.reader(io.StringIO(content.decode(), newline=""))) == [names, *map(list, rows)]
    for source in (path, content):
        back = read_csv(source, names)
        assert jobs.multiset(back) == Counter(rows)
        assert same_rows(back, release_of(names, rows), names)


def test_values_are_quoted_only_where_they_need_it(tmp_path: Path) -> None:
    rows = [("plain", "[1,2)"), ("", " x"), ('say "so"', "2\n3"), ("ü", "a b")]
    write_csv(release_of(["a", "b,c"], rows), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == (
        'a,"b,c"\nplain,"[1,2)"\n""," x"\n"say ""so""","2\n3"\nü,a b\n'
    )


def test_rows_of_batches_are_written_alike(tmp_path: Path) -> None:
    rows = [("a,b", "1"), ("", "2"), ("a,b", "3")]
    batches = [
        pa.RecordBatch.from_arrays(
            [pa.array(c).dictionary_encode() for c in zip(*part, strict=True)], ["x", "y"]
        )
        for part in (rows[:2], rows[2:])
    ]
    write_csv(release_of(["x", "y"], rows), tmp_path / "t.csv")
    assert rows_to_csv(batches, ["x", "y"]) == (tmp_path / "t.csv").read_bytes()
    assert rows_to_csv([], ["x", "y"]) == b"x,y\n"


@pytest.mark.parametrize("content", [b"", b"a,b\n1\n", b"a,b\n\xff,1\n", b"a,b\n1,2,3\n"])
def test_a_table_that_cannot_be_read(content: bytes) -> None:
    with pytest.raises(PartyError) as caught:
        read_csv(content, ["a", "b"])
    problem = caught.value.problem
    assert problem.error_id == "data-unreadable"
    assert problem.message == "the released table cannot be read"
    assert problem.private


@pytest.mark.parametrize("header", ["a", "a,b,c", "b,a", "a,a", "a, b", "A,b"])
def test_a_table_with_other_columns(header: str) -> None:
    content = f"{header}\n{','.join('1' for _ in header.split(','))}\n".encode()
    with pytest.raises(PartyError) as caught:
        read_csv(content, ["a", "b"])
    assert caught.value.problem.error_id == "verification-failed"


@given(table=tables(), data=st.data())
def test_same_rows_compares_multisets(
    table: tuple[list[str], list[tuple[str, ...]]], data: st.DataObject
) -> None:
    names, rows = table
    other = data.draw(st.permutations(rows))
    assert same_rows(release_of(names, rows), release_of(names, other), names)
    at = data.draw(st.integers(0, len(rows) - 1))
    changed = [*rows[:at], tuple(value + "x" for value in rows[at]), *rows[at + 1 :]]
    assert not same_rows(release_of(names, rows), release_of(names, changed), names)
    assert not same_rows(release_of(names, rows), release_of(names, [*rows, rows[0]]), names)


def test_same_rows_tells_multiplicities_apart() -> None:
    one, other = [("a",), ("a",), ("b",)], [("a",), ("b",), ("b",)]
    assert not same_rows(release_of(["x"], one), release_of(["x"], other), ["x"])


# ---- verification


def sample_release(*rows: tuple[str, ...]) -> Release:
    return release_of(["job", "age", "transfused", "surgery"], list(rows))


MET = [("Any", "[0,100)", "Y", "Heart"), ("Any", "[0,100)", "N", "Rare")]


@pytest.mark.parametrize(
    ("rows", "threshold"),
    [
        (MET, None),
        (MET + MET, None),
        (MET[:1], "K"),
        ([*MET, ("Blue", "[0,100)", "Y", "Heart")], "K"),
        ([*MET, ("Any", "[0,10)", "Y", "Heart")], "K"),
        ([*MET, MET[1]], "C"),
        ([*MET, *[("Blue", "[0,100)", "Y", "Rare")] * 2, *[MET[0]] * 4], "C"),
    ],
)
def test_a_release_is_verified_by_its_labels(rows: list[tuple[str, ...]], threshold: str | None) -> None:
    bundle = jobs.bundle_of(single_job())
    finding = verify_release(sample_release(*rows), bundle)
    assert (finding.threshold if finding else None) == threshold
    if threshold is None:
        require_verified(sample_release(*rows), bundle)
        return
    with pytest.raises(PartyError) as caught:
        require_verified(sample_release(*rows), bundle)
    assert caught.value.problem.error_id == "verification-failed"


def test_without_a_list_every_value_is_protected() -> None:
    for surgery in ({"role": "sensitive", "domain": ["Heart", "Rare"]}, {"role": "sensitive"}):
        bundle = jobs.bundle_of(single_job(columns=columns(surgery=surgery)))
        finding = verify_release(sample_release(MET[0], MET[0], MET[1]), bundle)
        assert finding is not None
        assert finding.sensitive == "surgery"


# ---- folders


def left_in(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def written(path: Path, files: dict[str, bytes]) -> None:
    with new_folder(path) as folder:
        write_files(folder, files)


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    with new_folder(tmp_path / "deep" / "er" / "out") as folder:
        (folder / "a").write_text("1")
        assert not (tmp_path / "deep" / "er" / "out").exists()
    assert left_in(tmp_path) == ["deep", "deep/er", "deep/er/out", "deep/er/out/a"]
    written(tmp_path / "two", {"x": b"1", "y": b"2"})
    assert {p.name: p.read_bytes() for p in (tmp_path / "two").iterdir()} == {"x": b"1", "y": b"2"}


def fail_in(out: Path, error: BaseException, beside: str = "") -> None:
    """Fail half-way through making a folder, after somebody else put a file ``beside`` it."""
    with new_folder(out) as folder:
        (folder / "a").write_text("1")
        if beside:
            (out.parent / beside).write_text("1")
        raise error


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), OSError()])
def test_a_failure_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)):
        fail_in(tmp_path / "deep" / "er" / "out", error)
    assert left_in(tmp_path) == []


def test_a_failure_leaves_what_others_made(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="x"):
        fail_in(tmp_path / "shared" / "out", ValueError("x"), beside="theirs")
    assert left_in(tmp_path) == ["shared", "shared/theirs"]


@pytest.mark.parametrize("kind", ["folder", "empty folder", "file", "dangling link"])
def test_nothing_is_overwritten(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    if kind == "file":
        out.write_text("mine")
    elif kind == "dangling link":
        out.symlink_to(tmp_path / "nowhere")
    else:
        out.mkdir()
        if kind == "folder":
            (out / "mine").write_text("1")
    before = left_in(tmp_path)
    with pytest.raises(ConfigError) as caught, new_folder(out):
        raise AssertionError("not reached")
    assert caught.value.problem.error_id == "output-exists"
    assert left_in(tmp_path) == before


def test_what_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(ConfigError), new_folder(tmp_path / "out"):
        written(tmp_path / "out", {"b": b"theirs"})
    assert left_in(tmp_path) == ["out", "out/b"]


def test_a_folder_is_readable_as_others_are(tmp_path: Path) -> None:
    written(tmp_path / "out", {"x": b""})
    assert os.stat(tmp_path / "out").st_mode & 0o777 == 0o755


# ---- what a coordinator delivers to a party


def delivered(**changes: Any) -> None:
    bundle, result, release = run_joint_sample()
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(release.columns)
    writer.writerows(changes.get("rows", list(jobs.multiset(release).elements())))
    bundle = changes.get("bundle", bundle)
    fields = {"job_sha256": bundle.digest.hex(), "reveals": reveal_fields(result.ledger)}
    report = changes.get("report", json.dumps(fields | changes.get("fields", {})).encode())
    check_delivery(bundle, result, {TABLE: out.getvalue().encode(), REPORT: report})


def test_the_table_that_was_computed_is_accepted_in_any_order() -> None:
    delivered()
    rows = list(jobs.multiset(run_joint_sample()[2]).elements())
    delivered(rows=rows[::-1])


@pytest.mark.parametrize("harm", ["a row less", "a row more", "a cell changed"])
def test_any_other_table_is_refused(harm: str) -> None:
    rows = list(jobs.multiset(run_joint_sample()[2]).elements())
    changed = {
        "a row less": rows[1:],
        "a row more": [*rows, rows[0]],
        "a cell changed": [(*rows[0][:-2], "N" if rows[0][-2] == "Y" else "Y", rows[0][-1]), *rows[1:]],
    }[harm]
    with pytest.raises(PartyError) as caught:
        delivered(rows=changed)
    assert caught.value.problem.error_id == "result-mismatch"


def test_a_report_of_other_reveals_is_refused() -> None:
    ledger = reveal_fields(run_joint_sample()[1].ledger)
    for reveals in ([], ledger[1:], [*ledger, ledger[-1]], None):
        with pytest.raises(PartyError, match="other reveals than there were"):
            delivered(fields={"reveals": reveals})


def test_a_table_that_violates_the_job_is_refused_though_it_was_computed() -> None:
    """The second lock: all parties and the coordinator have the same mistake, and the verifier has not."""
    bundle, _, release = run_joint_sample()
    stricter = LkcModel(L=1, K=release.n_rows, C=Fraction(1))
    job = bundle.job.model_copy(update={"model": bundle.job.model.model_copy(update={"lkc": stricter})})
    with pytest.raises(PartyError) as caught:
        delivered(bundle=Bundle(job, bundle.files))
    assert caught.value.problem.error_id == "verification-failed"


@pytest.mark.parametrize("report", [b"", b"[]", b"{}", b"\xff", b'{"job_sha256": "00"}'])
def test_a_report_about_something_else_is_refused(report: bytes) -> None:
    with pytest.raises(PartyError) as caught:
        delivered(report=report)
    assert caught.value.problem.error_id == "result-mismatch"
