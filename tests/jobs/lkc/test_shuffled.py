"""Plain columns of joint runs: the table of one holder, and nobody learns whose a row is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymize.errors import DataError
from anonymize.tds import Observer
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, Tamper, run_local
from crypto.mixing import OpeningKey
from jobs.data.sources import FileSource
from jobs.errors import PartyError
from jobs.lkc import shuffled
from jobs.lkc.parts import ROWS
from jobs.lkc.release import release_of_result, table_of_rows
from jobs.options import NO_OPTIONS
from jobs.release.csv import TABLE, read_csv
from jobs.release.shuffled_rows import ShuffledRows
from jobs.stopwatch import Stopwatch
from jobs.task import RunInputs, Task
from tests.support import jobs
from tests.support.joint import run_joint_sample, sample_rows
from tests.support.lkc_runs import LkcRun, generators, run_lkc
from tests.support.rng import SeededRng
from tests.support.samples import AS_IT_IS, COLUMNS, PARTIES, columns, joint_job, single_job
from tests.support.scores import PUBLISHED_NAMES

A, B, C = PARTIES
PLAIN = columns(patient=AS_IT_IS, note={"role": "plain"})
LEVELS = ("sealed", "leader", "strict")


def noted(n_rows: int = 60) -> list[dict[str, str]]:
    """The sample rows with a text that a table in text has to quote, or that is empty, or with itself twice."""
    texts = ["", ' "a", b\nc ', "é\r", "=1+1", "same", "same"]
    return [{**row, "note": texts[i % len(texts)]} for i, row in enumerate(sample_rows(n_rows))]


def plain_job(level: str = "sealed", n: int = 3, **fields: Any) -> dict[str, Any]:
    parties = {name: {"address": f"127.0.0.1:{7401 + i}"} for i, name in enumerate(PARTIES[:n])}
    return joint_job(
        **{"columns": PLAIN, "disclosure": level, "parties": parties, "goal": "general", **fields}
    )


def run_plain(folder: Path, level: str = "sealed", n: int = 3, **fields: Any) -> LkcRun:
    folder.mkdir(exist_ok=True)
    return run_lkc(jobs.task_of(plain_job(level, n, **fields)), folder, rows=noted())


def alone(folder: Path, **fields: Any) -> Counter[tuple[str, ...]]:
    """The table of one holder of all rows."""
    task = jobs.task_of(single_job(**{"columns": PLAIN, "goal": "general", **fields}))
    path = jobs.write_csv(folder / "table.csv", [{n: row[n] for n in task.held_by(None)} for row in noted()])
    source = type(run_plain(folder / "sources").sources[A])(path)
    task.model.run_single(task, source, folder / "out", NO_OPTIONS, Stopwatch(lambda _: None), Observer())
    return jobs.multiset(read_csv(folder / "out" / TABLE, task.job.published))


@pytest.mark.some(1)
@pytest.mark.parametrize("deliver", ["all", "coordinator"])
@pytest.mark.parametrize(("level", "n"), [("sealed", 3), ("sealed", 2), ("leader", 3), ("strict", 3)])
def test_a_joint_table_is_that_of_one_holder(tmp_path: Path, level: str, n: int, deliver: str) -> None:
    run = run_plain(tmp_path / "joint", level, n, deliver=deliver)
    release = release_of_result(run.task, run.result, run.parts(ROWS), run.key)
    assert jobs.multiset(release) == alone(tmp_path)


@pytest.mark.some(1)
@pytest.mark.parametrize("deliver", ["all", "coordinator"])
def test_groups_with_values_of_their_own_are_mixed_too(tmp_path: Path, deliver: str) -> None:
    """Rows are written by the labels of all boxes."""
    kd = {"method": "kd", "model": {"lkc": {"L": "all", "K": "3", "C": "0.5"}}}
    run = run_plain(tmp_path / "joint", deliver=deliver, **kd)
    release = release_of_result(run.task, run.result, run.parts(ROWS), run.key)
    assert jobs.multiset(release) == alone(tmp_path, **kd)


@pytest.mark.some(1)
@pytest.mark.parametrize("level", LEVELS)
def test_what_the_coordinator_gets_does_not_depend_on_who_has_which_row(tmp_path: Path, level: str) -> None:
    """Byte by byte: the rows change hands, and the result is the same."""
    one = run_plain(tmp_path / "one", level)
    dealt = noted()
    swapped = [dealt[i + 1] if i % 3 == 0 else dealt[i - 1] if i % 3 == 1 else dealt[i] for i in range(60)]
    other = run_lkc(one.task, tmp_path, rows=swapped)
    assert one.sources[A].path.read_text() != other.sources[A].path.read_text()
    assert one.result.encoded == other.result.encoded
    assert {run.encoded for run in one.results.values()} == {one.result.encoded}
    assert all(one.task.mode.parts(one.task, party) == frozenset() for party in PARTIES)


def test_the_coordinator_alone_gets_boxes_in_an_order_that_tells_nothing(tmp_path: Path) -> None:
    run = run_plain(tmp_path, deliver="coordinator")
    boxes = run.part(ROWS, B)
    assert all(result.mixed is not None and result.mixed.rows is None for result in run.results.values())
    assert [party for party, r in run.results.items() if r.mixed and r.mixed.boxes is not None] == [B]
    width = len(boxes) // 60
    each = [boxes[i * width : (i + 1) * width] for i in range(60)]
    assert each == sorted(each)
    assert b"same" not in boxes + run.result.encoded


def test_a_result_with_rows_comes_back(tmp_path: Path) -> None:
    for deliver in ("all", "coordinator"):
        run = run_plain(tmp_path / deliver, deliver=deliver)
        read = run.task.model.decode(run.task, run.result.encoded, A)
        assert read.encoded == run.result.encoded
        assert read.mixed is not None
        assert run.result.mixed is not None
        assert (read.mixed.width, read.mixed.slips) == (run.result.mixed.width, run.result.mixed.slips)
        known = ShuffledRows(read.mixed.width, slips=read.mixed.slips)
        assert repr(run.result.mixed) == repr(known)


def framed(told: Any, rows: bytes) -> bytes:
    """The counts of the sample run with no column to be mixed, and such rows."""
    header = told if isinstance(told, bytes) else json.dumps(told, separators=(",", ":")).encode()
    counts = run_joint_sample()[1].encoded
    parts = [part for content in (counts, header) for part in (len(content).to_bytes(8, "little"), content)]
    return b"".join([*parts, rows])


ROWS_OF_3, SLIPS = {"width": 3, "slips": ""}, {"width": 3, "slips": "a" * 64}
RAW = joint_job(
    goal="general",
    score=PUBLISHED_NAMES["general"],
    columns=columns(patient=AS_IT_IS, job={**COLUMNS["job"], "refine": "children"}),
)


@pytest.mark.parametrize("encoded", [framed(ROWS_OF_3, bytes(180)), framed(SLIPS, b"")])
def test_the_form_that_is_bent_below_is_accepted(encoded: bytes) -> None:
    task = jobs.task_of(RAW)
    read = task.model.decode(task, encoded, "p")
    assert read.encoded == encoded


@pytest.mark.parametrize(
    "encoded",
    [
        b"",
        run_joint_sample()[1].encoded,
        framed(ROWS_OF_3, b""),
        framed(ROWS_OF_3, bytes(179)),
        framed(ROWS_OF_3, bytes(183)),
        framed(SLIPS, bytes(180)),
        framed(b"not json", bytes(180)),
        framed(b"[" * 100_000, bytes(180)),
        framed({"width": 3}, bytes(180)),
        framed({**ROWS_OF_3, "more": 1}, bytes(180)),
        framed({**ROWS_OF_3, "width": 0}, bytes(180)),
        framed({**ROWS_OF_3, "width": -3}, bytes(180)),
        framed({**ROWS_OF_3, "width": True}, bytes(60)),
        framed({**ROWS_OF_3, "width": 3.0}, bytes(180)),
        framed({**SLIPS, "width": 1 << 21}, b""),
        framed({**SLIPS, "slips": "A" * 64}, b""),
        framed({**SLIPS, "slips": "a" * 63}, b""),
        framed({**SLIPS, "slips": None}, b""),
        framed([], b""),
        framed(None, b""),
    ],
)
def test_malformed_rows_are_the_senders(encoded: bytes) -> None:
    task = jobs.task_of(RAW)
    with pytest.raises(PartyError) as caught:
        task.model.decode(task, encoded, "hospital-b")
    assert (caught.value.problem.error_id, caught.value.problem.party) == ("peer-protocol", "hospital-b")


def test_rows_of_the_result_are_sorted(tmp_path: Path) -> None:
    """No order of a file, nor of parties, is left; the released table is shuffled besides."""
    run = run_plain(tmp_path)
    assert run.result.mixed is not None
    rows = [row.tobytes() for row in run.result.mixed.rows]  # type: ignore[union-attr]
    assert rows == sorted(rows)
    assert jobs.multiset(table_of_rows(run.task, run.result, run.result.mixed.rows)) == jobs.multiset(  # type: ignore[arg-type]
        release_of_result(run.task, run.result, {})
    )


@pytest.mark.parametrize(
    ("level", "deliver"), [("sealed", "all"), ("leader", "coordinator"), ("strict", "all")]
)
def test_what_becomes_known_is_in_the_ledger(tmp_path: Path, level: str, deliver: str) -> None:
    run = run_plain(tmp_path, level, deliver=deliver)
    assert run.result.mixed is not None
    told = [(r["name"], r["to"], r["shape"]) for r in run.result.reveals[-3:]]
    width = run.result.mixed.width
    assert told == [("row_width", "all", []), ("row_counts", "leader", [3]), ("rows", deliver, [60, width])]
    assert {(r["name"], r["to"]) for r in run.result.reveals} <= {(a.name, a.to) for a in run.task.reveals}
    without = jobs.task_of(joint_job(disclosure=level, goal="general"))
    assert not {"row_width", "row_counts", "rows"} & {a.name for a in without.reveals}


def test_nothing_is_mixed_without_plain_columns(tmp_path: Path) -> None:
    run = run_lkc(jobs.task_of(joint_job()), tmp_path)
    assert run.result.mixed is None
    assert run.result.encoded == run.result.encoded_counts


# ---- what is refused


def started(folder: Path, run_inputs: Callable[[str, Any], RunInputs], **fields: Any) -> None:
    """Run with what each party has besides made by name and source."""
    run = run_plain(folder, **fields)
    run_local(generators(run.task, run.tables, {me: run_inputs(me, run.sources[me]) for me in PARTIES}))


@pytest.mark.by_lot(1)
@pytest.mark.parametrize("is_dated", [True, False])
def test_a_table_that_changed_since_it_was_counted_is_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_dated: bool
) -> None:
    """Rows are compared, too: size and time of a file may stay the same."""
    if not is_dated:
        monkeypatch.setattr(FileSource, "version", lambda _: "always")

    def changed(me: str, source: Any) -> RunInputs:
        if me == C:
            text = source.path.read_text()
            source.path.write_text(text.replace("Janitor", "Lawyer", 1))
            assert source.path.read_text() != text
        return RunInputs(source)

    words = "while it was read" if is_dated else "during the job"
    with pytest.raises(DataError, match=f"the table changed {words}"):
        started(tmp_path, changed)


def test_a_row_less_than_was_counted_is_noticed(tmp_path: Path) -> None:
    def shorter(me: str, source: Any) -> RunInputs:
        if me == B:
            source.path.write_text(source.path.read_text().rpartition("\n")[0].rpartition("\n")[0])
        return RunInputs(source)

    with pytest.raises((DataError, LocalProtocolError)):
        started(tmp_path, shorter)


def test_without_source_or_key_nothing_is_sent(tmp_path: Path) -> None:
    with pytest.raises(LocalProtocolError, match="there is nothing to read"):
        started(tmp_path, lambda me, source: RunInputs())
    with pytest.raises(LocalProtocolError, match="has no key"):
        started(tmp_path, lambda me, source: RunInputs(source), deliver="coordinator")


def test_a_coordinator_that_gives_each_party_another_key_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(RemoteProtocolError, match="another key"):
        started(
            tmp_path,
            lambda me, source: RunInputs(source, OpeningKey(SeededRng(me)).public),
            deliver="coordinator",
        )


def with_note(text: str) -> Sequence[Mapping[str, str]]:
    first, *rest = noted()
    return [{**first, "note": text}, *rest]


def test_a_row_that_is_too_long_is_refused_at_its_owner(tmp_path: Path) -> None:
    task = jobs.task_of(plain_job())
    longest = 16_384 - 2 * 4 - len("0")
    assert run_lkc(task, tmp_path, rows=with_note("x" * longest)).result.mixed is not None
    with pytest.raises(DataError, match=r"columns\.patient: a row has more than 16,384 bytes"):
        run_lkc(task, tmp_path, rows=with_note("x" * (longest + 1)))


def test_more_rows_than_the_pair_may_hold_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shuffled, "MAX_BYTES", 60 * 100)
    with pytest.raises(DataError, match="each with 32 bytes for plain columns, are more than"):
        run_plain(tmp_path)


def telling(replacement: Callable[[bytes], bytes]) -> Tamper:
    """The deputy tells the parties another table, and has the digest of the result that it had."""

    def tamper(message: Message) -> bytes:
        return replacement(message.payload) if message.step == "mix/told" else message.payload

    return tamper


def test_rows_that_do_not_add_up_to_the_counts_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A party that sends other rows than it counted, and looks for them: no other party can know whose they are."""
    encoded = shuffled.RowCoding.encoded

    def lying(self: Any, release: Any, width: int) -> Any:
        rows = encoded(self, release, width)
        if not lies.pop():
            return rows
        kinds = {row.tobytes()[: self.coded_bytes]: row for row in rows}
        return np.concatenate([list(kinds.values())[-1:], rows[1:]])

    lies = [True, False, False]
    monkeypatch.setattr(shuffled.RowCoding, "encoded", lying)
    with pytest.raises(PartyError, match="do not add up to the computed counts"):
        run_plain(tmp_path)


def test_rows_that_are_told_otherwise_are_missed_by_their_owner(tmp_path: Path) -> None:
    task: Task = jobs.task_of(plain_job())

    def without_a_row_of_c(table: bytes) -> bytes:
        """Patient 59 is patient 99 now; job, age, class and surgery take a byte each, a length four."""
        width = len(table) // 60
        rows = [table[i * width : (i + 1) * width] for i in range(60)]
        changed = [row[:8] + b"99" + row[10:] if row[8:10] == b"59" else row for row in rows]
        assert changed != rows
        return b"".join(sorted(changed))

    with pytest.raises(RemoteProtocolError, match="rows are missing"):
        run_lkc(task, tmp_path, rows=noted(), tamper=telling(without_a_row_of_c))


def test_one_of_equal_rows_of_several_parties_is_missed(tmp_path: Path) -> None:
    """The rest are as many as any one party has: no owner may take another's for its own."""
    task = jobs.task_of(plain_job(columns=columns(note={"role": "plain"})))

    def with_another_note(table: bytes) -> bytes:
        width, coin = len(table) // 60, 16
        rows = [table[i * width : (i + 1) * width] for i in range(60)]
        ((most, copies),) = Counter(row[:-coin] for row in rows).most_common(1)
        assert copies >= 3
        at = next(i for i, row in enumerate(rows) if row.startswith(most))
        return b"".join(sorted([*rows[:at], rows[at].replace(b"yes", b"no!"), *rows[at + 1 :]]))

    of_three = [row for row in sample_rows(20) for _ in PARTIES]
    rows = [{**row, "patient": str(i), "note": "yes"} for i, row in enumerate(of_three)]
    with pytest.raises(RemoteProtocolError, match="rows are missing"):
        run_lkc(task, tmp_path, rows=rows, tamper=telling(with_another_note))
