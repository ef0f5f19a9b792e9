"""The result of a joint run in canonical bytes: it comes back the same, and nothing malformed gets through."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.partition import GeneralizedTable
from anonymize.release import release_of_counts
from jobs.errors import PartyError
from jobs.lkc.result import decode_result
from tests.support import jobs
from tests.support.examples import examples
from tests.support.joint import run_joint_sample

TASK, RESULT, _ = run_joint_sample()
ENCODED = RESULT.encoded
_SIZE = int.from_bytes(ENCODED[:8], "little")
HEADER, BODY = json.loads(ENCODED[8 : 8 + _SIZE]), ENCODED[8 + _SIZE :]
N_COLUMNS, N_PARTITIONS = HEADER["shapes"][0]
N_ENTRIES = HEADER["shapes"][1][0]
PARTITION, CELL, COUNT = (N_COLUMNS * N_PARTITIONS + i * N_ENTRIES for i in range(3))


def written(header: Any, body: bytes = BODY) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    return len(text).to_bytes(8, "little") + text + body


def with_header(change: Callable[[Any], object]) -> bytes:
    header = json.loads(json.dumps(HEADER))
    change(header)
    return written(header)


def with_values(*changes: tuple[int, int]) -> bytes:
    values = np.frombuffer(BODY, "<i8").copy()
    for at, value in changes:
        values[at] = value
    return written(HEADER, values.tobytes())


def value(at: int) -> int:
    return int(np.frombuffer(BODY, "<i8")[at])


@pytest.mark.parametrize("goal", ["general", "classification"])
def test_a_result_round_trips(goal: str) -> None:
    task, result, release = run_joint_sample(goal)
    read = decode_result(result.encoded, task.schema, "p")
    outcome, table = read.outcome, read.generalized
    assert outcome == result.outcome
    assert read.encoded == result.encoded
    assert jobs.multiset(release_of_counts(outcome.schema, outcome.cut, table)) == jobs.multiset(release)


def test_the_form_that_is_bent_below_is_accepted() -> None:
    assert written(HEADER) == with_values() == with_header(lambda header: None) == ENCODED
    decode_result(written(HEADER), TASK.schema, "p")


DISCARDED = next(i for i, encoded in enumerate(HEADER["steps"]) if not encoded[3])


def step(i: int, at: int, new: Any) -> bytes:
    return with_header(lambda header: header["steps"][i].__setitem__(at, new))


def shape(i: int, new: Any) -> bytes:
    return with_header(lambda header: header["shapes"].__setitem__(i, new))


@pytest.mark.parametrize(
    "encoded",
    [
        b"",
        b"\0" * 7,
        b"\xff" * 8 + ENCODED[8:],
        ENCODED[:-1],
        ENCODED[:-8],
        ENCODED + b"\0" * 8,
        written(b"not json"),
        written(b"\xff\xfe"),
        written(b"[" * 100_000),
        written([]),
        written({}),
        written({"steps": HEADER["steps"]}),
        written(json.dumps(HEADER).encode()),
        written({**HEADER, "more": 1}),
        written({**HEADER, "steps": None}),
        written({**HEADER, "steps": [[]]}),
        written({**HEADER, "steps": HEADER["steps"][::-1]}),
        written({**HEADER, "steps": [HEADER["steps"][0], *HEADER["steps"]]}),
        written({**HEADER, "steps": [s for s in HEADER["steps"] if not s[3]]}),
        step(0, 0, -1),
        step(0, 0, 99),
        step(DISCARDED, 0, HEADER["steps"][DISCARDED][0] - N_COLUMNS),
        step(0, 0, True),
        step(0, 0, float(HEADER["steps"][0][0])),
        step(0, 1, float(HEADER["steps"][0][1])),
        step(0, 1, 10**30),
        step(0, 2, HEADER["steps"][0][2] + 1),
        step(0, 2, float(HEADER["steps"][0][2])),
        step(0, 2, -1),
        step(0, 3, "yes"),
        step(0, 3, 1),
        step(0, 4, "12"),
        step(0, 4, 1.5),
        step(0, 4, None),
        step(0, 4, float("inf")),
        shape(1, [-1]),
        shape(1, [10**30]),
        shape(1, [float(N_ENTRIES)]),
        shape(1, "ab"),
        shape(1, [N_ENTRIES, 1]),
        shape(0, [N_PARTITIONS, N_COLUMNS]),
        shape(0, [N_COLUMNS * N_PARTITIONS]),
        with_header(lambda header: header["shapes"].pop()),
        with_values((0, 77)),
        with_values((0, -1)),
        with_values((PARTITION, N_PARTITIONS)),
        with_values((PARTITION, -1)),
        with_values((CELL, 6)),
        with_values((CELL, -1)),
        with_values((COUNT, 0)),
        with_values((COUNT, -5)),
        with_values((COUNT, 2**31)),
        with_values((COUNT, 2**62), (COUNT + 1, 2**62)),
        with_values((PARTITION + 1, value(PARTITION)), (CELL + 1, value(CELL))),
        with_values(*((c * N_PARTITIONS + 1, value(c * N_PARTITIONS)) for c in range(N_COLUMNS))),
    ],
)
def test_anything_malformed_is_the_senders_fault(encoded: bytes) -> None:
    with pytest.raises(PartyError) as caught:
        decode_result(encoded, TASK.schema, "hospital-b")
    problem = caught.value.problem
    assert (problem.error_id, problem.party) == ("peer-protocol", "hospital-b")
    assert problem.message == "the result is malformed"


@settings(max_examples=examples(300), deadline=None)
@given(at=st.integers(0, len(ENCODED) - 1), flip=st.integers(1, 255))
def test_one_byte_changed_is_another_result_or_none(at: int, flip: int) -> None:
    bent = bytearray(ENCODED)
    bent[at] ^= flip
    try:
        read = decode_result(bytes(bent), TASK.schema, "p")
        outcome, table = read.outcome, read.generalized
    except PartyError as error:
        problem = error.problem
        assert problem.error_id == "peer-protocol"
    else:
        assert (outcome, arrays(table)) != (RESULT.outcome, arrays(RESULT.generalized))


def arrays(table: GeneralizedTable) -> list[list[int]]:
    return [a.tolist() for a in (table.nodes, table.partition, table.cell, table.count)]


def test_reveals_are_listed_without_values() -> None:
    fields = list(RESULT.reveals)
    assert len(fields) == len(RESULT.own_reveals) > 10
    assert all(set(field) == {"name", "shape", "to", "iteration"} for field in fields)
    assert json.loads(json.dumps(fields)) == fields
