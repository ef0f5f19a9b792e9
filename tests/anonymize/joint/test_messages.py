"""Messages between parties come back as they were sent; malformed ones are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.joint import messages
from anonymize.joint.messages import checked_counts, receive_codes, send_codes
from anonymize.table import MAX_RECORDS
from crypto.errors import RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from crypto.rounds import Rounds
from tests.support.examples import examples


def passed(codes: list[int], bound: int, **how: Any) -> tuple[list[int], Transcript]:
    def sender() -> Rounds[None]:
        yield from send_codes("step", ["b", "c"], np.array(codes, dtype=np.int32), bound)

    parties: dict[str, Rounds[Any]] = {
        "a": sender(),
        "b": receive_codes("step", "a", len(codes), bound),
        "c": receive_codes("step", "a", len(codes), bound),
    }
    outputs, transcript = run_local(parties, **how)
    assert outputs["b"].tolist() == outputs["c"].tolist()
    return outputs["b"].tolist(), transcript


@settings(max_examples=examples(80), deadline=None)
@given(data=st.data(), bound=st.integers(1, 300), piece=st.sampled_from([1, 5, 1 << 20]))
def test_codes_come_back(data: st.DataObject, bound: int, piece: int) -> None:
    codes = data.draw(st.lists(st.integers(0, bound - 1), max_size=20))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "CODES_PIECE", piece)
        received, transcript = passed(codes, bound)
    assert received == codes
    bits = (bound - 1).bit_length()
    sizes = [min(piece, len(codes) - start) for start in range(0, len(codes), piece)]
    assert transcript.bytes_sent("a") == 2 * sum(-(-bits * size // 8) for size in sizes)


@pytest.mark.parametrize(
    ("bound", "harm", "reason"),
    [
        (3, lambda p: b"\x0f" + p[1:], "a code out of range"),
        (3, lambda p: p + b"\0", "bytes where"),
        (3, lambda p: p[:-1] + b"\xff", "padding"),
        (2, lambda p: b"", "bytes where"),
    ],
)
def test_other_codes_name_the_peer(bound: int, harm: Any, reason: str) -> None:
    def tamper(message: Message) -> bytes:
        return harm(message.payload)  # type: ignore[no-any-return]

    with pytest.raises(RemoteProtocolError, match=reason) as caught:
        passed([0, 1, 0], bound, tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("a", "step")


TOTALS = np.array([9, 4])
OWN = np.array([[1, 0, 2], [0, 3, 0]])


def test_opened_counts_are_completed_by_their_totals() -> None:
    """Every count may be as low as our own part, and the first ones may leave no more than that."""
    for opened in ([[1, 0], [0, 3]], [[7, 0], [1, 3]], [[2, 3], [0, 4]]):
        counts = checked_counts(np.array(opened), OWN, TOTALS, "b or c", "step")
        assert counts[:, :-1].tolist() == opened
        assert counts.sum(axis=1).tolist() == TOTALS.tolist()
    whole = np.array([1, 0, MAX_RECORDS])
    assert checked_counts(whole, np.array([1, 0, 5]), None, "b", "step") is whole


@pytest.mark.parametrize(
    ("opened", "own", "totals", "reason"),
    [
        ([[0, 0], [0, 3]], OWN, TOTALS, "contradict"),  # the first child, below ours
        ([[1, 0], [0, 2]], OWN, TOTALS, "contradict"),  # the second
        ([[6, 2], [0, 3]], OWN, TOTALS, "contradict"),  # the others leave the last child less than ours
        ([[1, 0], [2, 3]], OWN, TOTALS, "contradict"),  # more than there are
        ([0, 1], np.array([1, 1]), None, "contradict"),
        ([-1, 1], np.array([0, 0]), None, "contradict"),
        ([0, MAX_RECORDS + 1], np.array([0, 0]), None, "more records"),
        ([[1 << 62] * 4] * 2, np.zeros((2, 5), np.int64), TOTALS, "more records"),  # whose sum wraps to 0
    ],
)
def test_counts_that_no_table_has_are_refused(opened: Any, own: Any, totals: Any, reason: str) -> None:
    with pytest.raises(RemoteProtocolError, match=reason) as caught:
        checked_counts(np.array(opened), own, totals, "b or c", "step")
    assert (caught.value.culprit, caught.value.step) == ("b or c", "step")
