"""Rows as bytes of one width: one encoding each, in an order that follows from what they are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.release import LabelledColumn, Release
from jobs.errors import PartyError
from jobs.lkc.rows import TEXT_WIDTHS, RowCoding, row_coding
from tests.support import jobs
from tests.support.joint import run_joint_sample
from tests.support.samples import AS_IT_IS, columns, joint_job

MANY = [f"v{i}" for i in range(300)]
CODING = RowCoding(["note", "age", "ward", "city"], {"age": ["old", "young"], "city": MANY})
"""One byte for age, two for city; note and ward are plain."""

texts = st.text(alphabet=st.characters(codec="utf-8"), max_size=6)
rows = st.tuples(texts, st.sampled_from(["old", "young"]), texts, st.sampled_from(MANY))


def release(cells: Sequence[Sequence[str]], names: Sequence[str] = CODING.names) -> Release:
    """A table of these rows; labels in the order in which they come."""
    found = {}
    for name, column in zip(names, zip(*cells, strict=True), strict=True):
        labels = tuple(dict.fromkeys(column))
        found[name] = LabelledColumn(labels, np.array([labels.index(cell) for cell in column]))
    return Release(found)


def cells_of(table: Release) -> list[tuple[str, ...]]:
    return list(zip(*([c.labels[code] for code in c.codes] for c in table.columns.values()), strict=True))


@given(table=st.lists(rows, min_size=1, max_size=8))
def test_rows_come_back_in_their_order(table: list[tuple[str, ...]]) -> None:
    needed = CODING.text_bytes(release(table))
    for width in (needed, needed + 5):
        encoded = CODING.encoded(release(table), width)
        assert encoded.shape == (len(table), CODING.coded_bytes + width)
        decoded = CODING.decoded(encoded)
        assert list(decoded.columns) == list(CODING.names)
        assert cells_of(decoded) == [tuple(row) for row in table]


def test_the_form() -> None:
    row = CODING.encoded(release([("é", "young", "", "v258")]), 12)
    assert row.tobytes() == b"\1" + b"\1\2" + b"\0\0\0\2" + "é".encode() + b"\0\0\0\0" + b"\0\0"
    assert CODING.coded_bytes == 3
    assert CODING.text_bytes(release([("é", "young", "", "v258"), ("", "old", "", "v0")])) == 10


def test_rows_sorted_by_bytes_are_sorted_by_public_labels() -> None:
    """In the order of the domain, not of the alphabet."""
    table = [("", age, "", city) for age in ("young", "old") for city in ("v299", "v30", "v256", "v0")]
    encoded = sorted(row.tobytes() for row in CODING.encoded(release(table), 8))
    decoded = cells_of(CODING.decoded(np.frombuffer(b"".join(encoded), np.uint8).reshape(8, -1)))
    assert decoded == sorted(table, key=lambda row: (["old", "young"].index(row[1]), MANY.index(row[3])))


BAD = {
    "a number of no label": b"\2\0\0" + bytes(12),
    "a number of no label of two bytes": b"\0\1\x2c" + bytes(12),
    "a text longer than the row": bytes(3) + b"\0\0\0\x09" + bytes(8),
    "a length beyond all": bytes(3) + b"\xff" * 4 + bytes(8),
    "a second length cut off": bytes(3) + b"\0\0\0\6" + b"abcdef" + b"\0\0",
    "something behind the texts": bytes(3) + bytes(11) + b"x",
    "a text that is not UTF-8": bytes(3) + b"\0\0\0\1\xff" + bytes(7),
}


@pytest.mark.parametrize("row", BAD.values(), ids=BAD)
def test_rows_that_no_table_has_are_refused(row: bytes) -> None:
    assert len(row) == 15
    with pytest.raises(PartyError) as caught:
        CODING.decoded(np.frombuffer(row, np.uint8).reshape(1, 15))
    assert (caught.value.problem.error_id, caught.value.problem.party) == ("result-mismatch", None)


def test_labels_are_those_of_the_cut_and_the_domains() -> None:
    task = jobs.task_of(joint_job(goal="general", columns=columns(patient=AS_IT_IS)))
    result = run_joint_sample()[1]
    outcome = result.outcome
    coding = row_coding(task, result)
    assert coding.names == task.job.published
    assert coding.plain == ["patient"]
    assert coding.labels["age"] == tuple(outcome.schema.qid[1].label(node) for node in outcome.cut.nodes[1])
    assert coding.labels["surgery"] == outcome.schema.sensitive[0].domain
    assert coding.labels["transfused"] == outcome.schema.classes


def test_widths_are_powers_of_two() -> None:
    assert (TEXT_WIDTHS[0], TEXT_WIDTHS[-1]) == (16, 16_384)
    assert all(wide == 2 * narrow for narrow, wide in pairwise(TEXT_WIDTHS))
