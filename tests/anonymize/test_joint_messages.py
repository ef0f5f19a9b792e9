"""Codes on the wire: what is sent comes back, in pieces; anything else names the peer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.joint import messages
from anonymize.joint.messages import receive_codes, send_codes
from crypto.errors import RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from crypto.rounds import Rounds


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


@settings(max_examples=80, deadline=None)
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
        (3, lambda p: b"\x0f" + p[1:], "a code that there is none of"),
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
