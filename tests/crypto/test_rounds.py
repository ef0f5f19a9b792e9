"""Public parameters: agreement passes, any difference names the peer."""

from __future__ import annotations

import pytest

from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, run_local
from crypto.rounds import check_parameters, tell_parameters


@pytest.mark.parametrize("parameters", [(), (0,), (1, True, 2**64 - 1)])
def test_equal_parameters_pass(parameters: tuple[int, ...]) -> None:
    _, transcript = run_local(
        {"a": tell_parameters("b", "s", parameters), "b": check_parameters("a", "s", parameters)}
    )
    assert transcript.bytes_sent("a") == 8 * len(parameters)
    assert transcript.rounds == 1


@pytest.mark.parametrize("theirs", [(), (1,), (1, 3), (2, 1), (1, 2, 0)])
def test_different_parameters_name_the_peer(theirs: tuple[int, ...]) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        run_local({"a": tell_parameters("b", "s", theirs), "b": check_parameters("a", "s", (1, 2))})
    assert (caught.value.culprit, caught.value.step) == ("a", "s")


def test_a_flipped_bit_is_noticed() -> None:
    def tamper(message: Message) -> bytes:
        return bytes([message.payload[0] ^ 1]) + message.payload[1:]

    with pytest.raises(RemoteProtocolError, match=r"parameters \[2, 7\] where ours are \[3, 7\]"):
        run_local(
            {"a": tell_parameters("b", "s", (3, 7)), "b": check_parameters("a", "s", (3, 7))}, tamper=tamper
        )


@pytest.mark.parametrize("value", [-1, 2**64])
def test_what_fits_no_word_is_our_fault(value: int) -> None:
    with pytest.raises(LocalProtocolError):
        next(tell_parameters("b", "s", (value,)))
