"""Encodings: exact round trips, and nothing else accepted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto import encoding
from crypto.encoding import check_parameters, tell_parameters
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, run_local


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_words(values: list[int]) -> None:
    payload = encoding.encode_words(np.array(values, dtype=np.uint64))
    assert len(payload) == 8 * len(values)
    assert encoding.decode_words(payload, len(values), "p", "s").tolist() == values


@given(st.lists(st.integers(0, 1), max_size=40))
def test_bits(values: list[int]) -> None:
    payload = encoding.encode_bits(np.array(values, dtype=np.uint8))
    assert encoding.decode_bits(payload, len(values), "p", "s").tolist() == values


@given(st.lists(st.integers(0, 2**100 - 1), max_size=5))
def test_integers(values: list[int]) -> None:
    payload = encoding.encode_integers(values, 13)
    assert encoding.decode_integers(payload, 13, len(values), 2**100, "p", "s") == values


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=10))
def test_signed_words(values: list[int]) -> None:
    assert encoding.signed(encoding.as_words(values)).tolist() == values


@pytest.mark.parametrize(
    "decode",
    [
        lambda: encoding.decode_words(b"1234567", 1, "p", "s"),
        lambda: encoding.decode_bits(b"", 1, "p", "s"),
        lambda: encoding.decode_bits(b"\x80", 7, "p", "s"),
        lambda: encoding.decode_integer(b"\x05", 1, 5, "p", "s"),
        lambda: encoding.decode_integers(b"\x00\x00\x00", 2, 2, 9, "p", "s"),
    ],
)
def test_anything_else_is_the_peers_fault(decode: object) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        decode()  # type: ignore[operator]
    assert (caught.value.culprit, caught.value.step) == ("p", "s")


@pytest.mark.parametrize("value", [-1, 256])
def test_what_does_not_fit_is_our_fault(value: int) -> None:
    with pytest.raises(LocalProtocolError):
        encoding.encode_integer(value, 1)


def test_octets_are_the_encoding_without_a_copy() -> None:
    words = np.arange(12, dtype=np.uint64).reshape(3, 4)
    octets = encoding.octets_of(words)
    assert bytes(octets) == encoding.encode_words(words)
    words[0, 0] = 7
    assert bytes(octets) == encoding.encode_words(words) or not np.little_endian


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
