"""Released tables in parts: the rows of the CSV, in an order that tells nothing, and no byte beside the table."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointcut
from anonymize.release import LabelledColumn, Release
from crypto.rng import SystemRng
from jobs.errors import PartyError
from jobs.release import parts
from jobs.release.csv import PARTS_OF_TABLE, REPORT, TABLE, read_csv
from jobs.release.parts import PARTS
from jobs.release.report import BY_MAKER
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.examples import FEW
from tests.support.jobs import write_csv
from tests.support.joint import sample_rows
from tests.support.network import write_job
from tests.support.samples import joint_job, single_job

LABELS = {"q": ("b", "a", "never"), "r": ("[1,2)", 'a "b", c', "", "ä"), "s": ("x", "y")}


def table(seed: int, n: int = 40, order: int = 0) -> Release:
    """Return a table of counts; order: seed of the order of rows and labels, which the table does not have."""
    rng = np.random.default_rng(seed)
    rows = {name: rng.integers(0, len(labels) - (name == "q"), n) for name, labels in LABELS.items()}
    counts, again = rng.integers(1, 9, n), np.random.default_rng(order)
    place = again.permutation(n)
    columns = {}
    for name, labels in LABELS.items():
        shown = again.permutation(len(labels))
        codes = np.argsort(shown)[rows[name]][place]
        columns[name] = LabelledColumn(tuple(labels[i] for i in shown), codes)
    return Release(columns, counts[place])


def written(folder: Path, release: Release) -> tuple[str, ...]:
    return tuple(PARTS.write(release.merged(), folder, PARTS_OF_TABLE, SystemRng()))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts and groups of rows are small."""
    monkeypatch.setattr(parts, "PART_ROWS", 50)
    monkeypatch.setattr(parts, "_GROUP_ROWS", 7)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(3))
def test_a_reader_has_the_rows_that_were_written(tmp_path: Path, seed: int) -> None:
    release = table(seed)
    names = written(tmp_path, release)
    assert len(names) == -(-release.n_records // 50) > 2
    assert PARTS.files(tmp_path, PARTS_OF_TABLE) == names
    found = PARTS.read(tmp_path / PARTS_OF_TABLE, list(LABELS))
    assert jobs.multiset(found) == jobs.multiset(release)
    assert found.counts is not None
    assert found.n_rows == len(jobs.multiset(release))
    assert PARTS.require_written(tmp_path / PARTS_OF_TABLE, found) is True
    plain = pa.concat_tables([pq.read_table(tmp_path / name) for name in names])
    rows = list(zip(*(column.to_pylist() for column in plain.columns), strict=True))
    assert rows == sorted(jobs.multiset(release).elements())
    assert [pq.read_metadata(tmp_path / name).num_rows for name in names[:-1]] == [50] * (len(names) - 1)


@pytest.mark.usefixtures("small")
def test_the_bytes_follow_from_the_rows_alone(tmp_path: Path) -> None:
    """Neither the order of a source nor the numbers of labels, nor an unused label, is left in a file."""
    found = []
    for order in range(3):
        folder = tmp_path / str(order)
        folder.mkdir()
        found.append([(folder / name).read_bytes() for name in written(folder, table(0, order=order))])
    assert found[0] == found[1] == found[2]
    assert all(b"never" not in part for part in found[0])


@settings(max_examples=FEW, deadline=None)
@given(counts=st.lists(st.integers(1, 20), min_size=1, max_size=12), group=st.integers(1, 9))
def test_rows_of_any_number_are_cut_anywhere(counts: list[int], group: int) -> None:
    labels = tuple(f"{i:02}" for i in range(len(counts)))
    release = Release({"a": LabelledColumn(labels, np.arange(len(counts)))}, np.array(counts))
    ends, cells = np.cumsum(counts), []
    for start in range(0, int(ends[-1]), group):
        rows, times = parts._rows_between(release.counts, ends, start, min(start + group, int(ends[-1])))
        cells += np.repeat(rows, times).tolist()
    assert cells == [i for i, count in enumerate(counts) for _ in range(count)]


def changed_by(change: Callable[[Path], Any]) -> Callable[[Path], None]:
    return lambda folder: change(folder / "part-00001.parquet")


def rewrite(part: Path, change: Callable[[pa.Table], pa.Table] = lambda found: found, **how: Any) -> None:
    pq.write_table(change(pq.read_table(part)), part, **how)


def with_metadata(found: pa.Table) -> pa.Table:
    return found.replace_schema_metadata({"who": "patient 7"})


def with_null(found: pa.Table) -> pa.Table:
    column = pa.array([None, *found.column("q").to_pylist()[1:]], pa.string())
    return found.set_column(0, "q", column)


def backwards(found: pa.Table) -> pa.Table:
    return found.take(pa.array(range(found.num_rows - 1, -1, -1)))


def linked(part: Path) -> None:
    part.rename(part.parent.parent / "elsewhere.parquet")
    part.symlink_to(part.parent.parent / "elsewhere.parquet")


HOSTILE: dict[str, Callable[[Path], None]] = {
    "a file of another name": lambda folder: (folder / "notes.txt").write_text("patient 7") and None,
    "a folder": lambda folder: (folder / "part-00009.parquet").mkdir(),
    "a gap": lambda folder: (folder / "part-00001.parquet").rename(folder / "part-00900.parquet") and None,
    "one part less": changed_by(Path.unlink),
    "no Parquet": changed_by(lambda part: part.write_bytes(b"patient 7")),
    "a part cut off": changed_by(lambda part: part.write_bytes(part.read_bytes()[:-9])),
    "an end of another part": changed_by(lambda part: part.write_bytes(part.read_bytes()[:4] + b"\0" * 9)),
    "one column more": changed_by(lambda p: rewrite(p, lambda t: t.append_column("id", t.column("q")))),
    "one column less": changed_by(lambda p: rewrite(p, lambda t: t.drop_columns(["q"]))),
    "other names": changed_by(lambda p: rewrite(p, lambda t: t.rename_columns(["r", "q", "s"]))),
    "a text beside the table": changed_by(lambda p: rewrite(p, with_metadata)),
    "a missing cell": changed_by(lambda p: rewrite(p, with_null)),
    "another order": changed_by(lambda p: rewrite(p, backwards, store_schema=False, compression="zstd")),
    "another form": changed_by(lambda p: rewrite(p, store_schema=False, compression="gzip")),
    "a text between the columns": changed_by(
        lambda p: p.write_bytes(p.read_bytes()[:4] + b"?" + p.read_bytes()[4:])
    ),
    "a maker with a name of its own": changed_by(
        lambda p: p.write_bytes(p.read_bytes().replace(b"parquet-cpp-arrow", b"parquet-cpp-Bob 7"))
    ),
    "a link": lambda folder: linked(folder / "part-00001.parquet"),
    "a byte in a page": changed_by(
        lambda p: p.write_bytes(p.read_bytes()[:9] + b"\xff" + p.read_bytes()[10:])
    ),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_other_files_are_refused(tmp_path: Path, change: Callable[[Path], None]) -> None:
    written(tmp_path, table(0))
    path = tmp_path / PARTS_OF_TABLE
    change(path)
    with pytest.raises(PartyError) as caught:
        PARTS.require_written(path, PARTS.read(path, list(LABELS)))
    assert caught.value.problem.error_id == "verification-failed"
    assert "patient 7" not in str(caught.value)


@pytest.mark.usefixtures("small")
def test_a_text_in_a_gap_is_found_whatever_version_wrote_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, table(0))
    path = tmp_path / PARTS_OF_TABLE
    found, part = PARTS.read(path, list(LABELS)), path / "part-00001.parquet"
    monkeypatch.setattr(parts, "_created_by", lambda: "parquet-cpp-arrow version 1.0.0")
    assert PARTS.require_written(path, found) is False
    content = part.read_bytes()
    end = content.rindex(b"PAR1") - 4
    start = end - int.from_bytes(content[end : end + 4], "little")
    part.write_bytes(content[:start] + b"patient 7" + content[start:])
    with pytest.raises(PartyError, match="is no part of a released table"):
        PARTS.require_written(path, found)


def test_the_files_counted_are_those_of_the_folder(tmp_path: Path) -> None:
    """The name of a folder is no pattern of another folder."""
    for name, seed in (("res1", 1), ("res[1]", 2)):
        (tmp_path / name).mkdir()
        written(tmp_path / name, table(seed))
    found = PARTS.read(tmp_path / "res[1]" / PARTS_OF_TABLE, list(LABELS))
    assert jobs.multiset(found) == jobs.multiset(table(2))


# ---- jobs


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Path]:
    """Return what writes a single holder's job, with files in Parquet; said: its other keys."""
    write_csv(tmp_path / "table.csv", sample_rows(90))

    def made(name: str = "job.yaml", files: str | None = "parquet", **said: Any) -> Path:
        lkc = {"L": "2", "K": "3", "C": "0.6", **said.pop("lkc", {})}
        keys = {} if files is None else {"files": files}
        return write_job(tmp_path, single_job(model={"lkc": {**lkc, **keys}}, **said), name)

    return made


def run(job: Path, out: Path) -> dict[str, Any]:
    ran = invoke("coordinator", "run", job, "--out", out)
    assert ran.code == 0, ran.err
    told: dict[str, Any] = json.loads((out / REPORT).read_text())
    return told


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "kd": {"lkc": {"method": "kd"}, "goal": "general"},
    "some rows left out": {"lkc": {"withhold": "0.1", "L": "3", "K": "4"}},
    "blocks": {"lkc": {"link": "none"}},
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("said", [CASES["plain"], CASES["kd"], CASES["some rows left out"]], ids=str)
def test_a_release_in_parts_is_that_in_csv(
    tmp_path: Path, job: Callable[..., Path], said: dict[str, Any]
) -> None:
    in_csv, in_parts = tmp_path / "in csv", tmp_path / "in parts"
    one, other = run(job("csv.yaml", None, **said), in_csv), run(job(**said), in_parts)
    names = list(one["files"]), list(other["files"])
    assert names == ([TABLE], [f"{PARTS_OF_TABLE}/part-0000{i}.parquet" for i in (1, 2)])
    maker = {*BY_MAKER, "files", "job_sha256", "model"}
    assert {k: v for k, v in one.items() if k not in maker} == {
        k: v for k, v in other.items() if k not in maker
    }
    columns = pq.read_schema(in_parts / names[1][0]).names
    csv, found = read_csv(in_csv / TABLE, columns), PARTS.read(in_parts / PARTS_OF_TABLE, columns)
    assert jobs.multiset(csv) == jobs.multiset(found)
    checked = invoke("coordinator", "verify", tmp_path / "job.yaml", in_parts)
    assert checked.code == 0, checked.err
    assert "report.html: as job, report and table say" in checked.out
    summed = subprocess.run(
        [str(shutil.which("sha256sum")), "-c", "SHA256SUMS"], cwd=in_parts, capture_output=True, text=True
    )
    assert summed.returncode == 0, summed.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda out: (out / PARTS_OF_TABLE / "part-00002.parquet").write_bytes(b"x"), "part-00002.parquet"),
        (lambda out: shutil.rmtree(out / PARTS_OF_TABLE), "there is no table at"),
        (lambda out: (out / PARTS_OF_TABLE / "more.parquet").write_bytes(b"x"), "more.parquet"),
        (lambda out: (out / TABLE).write_text("id\n7\n"), f"{TABLE} is not listed in SHA256SUMS"),
        (
            lambda out: rewrite(out / PARTS_OF_TABLE / "part-00001.parquet", compression="zstd"),
            "part-00001.parquet has other columns than the job publishes, or texts beside them",
        ),
    ],
)
def test_a_changed_release_in_parts_is_refused(
    tmp_path: Path, job: Callable[..., Path], change: Callable[[Path], Any], said: str
) -> None:
    run(job(), tmp_path / "out")
    change(tmp_path / "out")
    checked = invoke("coordinator", "verify", tmp_path / "job.yaml", tmp_path / "out")
    assert checked.code != 0
    assert said in checked.err


def test_files_of_another_arrow_are_not_called_verified(
    tmp_path: Path, job: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(job(), tmp_path / "out")
    monkeypatch.setattr(parts, "_created_by", lambda: "parquet-cpp-arrow version 1.0.0")
    checked = invoke("coordinator", "verify", tmp_path / "job.yaml", tmp_path / "out")
    assert checked.code == 0, checked.err
    assert "WARNING, not verified: whether the files hold a text beside the table" in checked.out


def test_python_reads_the_parts(tmp_path: Path, job: Callable[..., Path]) -> None:
    result = jointcut.anonymize(None, job(), out=tmp_path / "out")
    assert result.tables == (PARTS_OF_TABLE,)
    assert len(result.to_pandas()) == len(result.to_arrow()) == result.report["rows"] == 90
    found, other = result.to_arrow(), jointcut.anonymize(None, job("csv.yaml", None)).to_arrow()
    assert found.schema == other.schema
    assert sorted(found.to_pylist(), key=str) == sorted(other.to_pylist(), key=str)
    assert jointcut.verify(tmp_path / "out", job(), release=result.digest).fields["agreed"]


def test_parts_are_for_rows_of_a_single_holder(tmp_path: Path, job: Callable[..., Path]) -> None:
    anatomy = job("anatomy.yaml", lkc={"release": "anatomy"})
    joint = write_job(
        tmp_path, joint_job(model={"lkc": {"L": "2", "K": "3", "C": "1", "files": "parquet"}}), "j.yaml"
    )
    for path, said in (
        (anatomy, "`files: parquet` is for `release: rows`"),
        (joint, "is for the table of a single"),
    ):
        checked = invoke("coordinator", "validate", path)
        assert checked.code != 0
        assert said in checked.err
