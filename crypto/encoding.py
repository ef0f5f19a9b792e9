"""Fixed-width canonical encodings of protocol messages.

All encodings are little endian. A decoder is given the peer, step and count prescribed by the protocol and raises
:class:`RemoteProtocolError` for anything else. So transcripts are comparable byte for byte, and no malformed
message gets beyond this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.rounds import Rounds, receive, send

Words: TypeAlias = NDArray[np.uint64]

WORD = 8
UINT64_MASK = (1 << 64) - 1


def encode_words(words: NDArray[np.uint64]) -> bytes:
    """Encode uint64 words, 8 bytes each."""
    return np.ascontiguousarray(words, dtype="<u8").tobytes()


def decode_words(payload: bytes, count: int, peer: str, step: str) -> NDArray[np.uint64]:
    """Decode exactly ``count`` uint64 words; shape (count,)."""
    expect_length(payload, WORD * count, peer, step)
    return np.frombuffer(payload, dtype="<u8").astype(np.uint64)


def encode_bits(bits: NDArray[np.uint8]) -> bytes:
    """Encode a vector of 0/1 bytes, eight bits to the byte, first bit lowest."""
    return np.packbits(bits, bitorder="little").tobytes()


def decode_bits(payload: bytes, count: int, peer: str, step: str) -> NDArray[np.uint8]:
    """Decode exactly ``count`` bits; uint8, shape (count,), values 0 and 1. Padding bits must be zero."""
    expect_length(payload, (count + 7) // 8, peer, step)
    bits = np.unpackbits(np.frombuffer(payload, dtype=np.uint8), bitorder="little")
    if bits[count:].any():
        raise RemoteProtocolError(peer, step, "padding bits are set")
    return bits[:count]


def encode_integer(value: int, width: int) -> bytes:
    """Encode a non-negative integer in ``width`` bytes."""
    if value < 0 or value.bit_length() > 8 * width:
        raise LocalProtocolError(f"integer does not fit {width} bytes")
    return value.to_bytes(width, "little")


def decode_integer(payload: bytes, width: int, bound: int, peer: str, step: str) -> int:
    """Decode an integer of ``width`` bytes that must be below ``bound``."""
    expect_length(payload, width, peer, step)
    value = int.from_bytes(payload, "little")
    if value >= bound:
        raise RemoteProtocolError(peer, step, "integer out of range")
    return value


def encode_integers(values: Iterable[int], width: int) -> bytes:
    """Encode non-negative integers in ``width`` bytes each."""
    return b"".join(encode_integer(value, width) for value in values)


def decode_integers(payload: bytes, width: int, count: int, bound: int, peer: str, step: str) -> list[int]:
    """Decode exactly ``count`` integers of ``width`` bytes, each below ``bound``."""
    expect_length(payload, width * count, peer, step)
    parts = (payload[i : i + width] for i in range(0, len(payload), width)) if width else iter(())
    return [decode_integer(part, width, bound, peer, step) for part in parts]


def bytes_for(most: int) -> int:
    """Return the number of bytes for numbers up to ``most``, at least 1."""
    return max(most.bit_length() + 7, 8) // 8


def digits_of(numbers: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
    """Return numbers from 0 below 2**(8 width) as big-endian bytes, sorted alike: shape (n, width), width <= 8."""
    octets = np.ascontiguousarray(numbers, dtype=">u8").view(np.uint8).reshape(-1, WORD)
    return octets[:, WORD - width :]


def of_digits(digits: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the numbers encoded by :func:`digits_of` in digits of shape (n, width)."""
    numbers: NDArray[np.int64]
    if digits.shape[1] in (1, 2, 4):
        numbers = np.ascontiguousarray(digits).view(f">u{digits.shape[1]}").reshape(-1).astype(np.int64)
        return numbers
    numbers = np.zeros(len(digits), dtype=np.int64)
    for column in digits.T:
        numbers = numbers << 8 | column
    return numbers


def expect_length(payload: bytes, length: int, peer: str, step: str) -> None:
    """Raise RemoteProtocolError for a message of a different length."""
    if len(payload) != length:
        raise RemoteProtocolError(
            peer, step, f"message of {len(payload)} bytes where {length} are prescribed"
        )


def octets_of(words: Words) -> memoryview:
    """Return the bytes of :func:`encode_words`, without a copy on little-endian machines; ``words`` contiguous."""
    return words.astype("<u8", copy=False).reshape(-1).data.cast("B")


def signed(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Read words modulo 2**64 as two's complement integers."""
    return words.view(np.int64)


def as_words(values: Sequence[int] | NDArray[np.int64] | NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return integers modulo 2**64 as uint64, shape (count,)."""
    if isinstance(values, np.ndarray):
        return values.astype(np.uint64)
    return np.array([value & UINT64_MASK for value in values], dtype=np.uint64)


def tell_parameters(peer: str, step: str, parameters: tuple[int, ...]) -> Rounds[None]:
    """Send our public parameters, 8 bytes each; LocalProtocolError if a parameter does not fit.

    Public parameters are agreed on before a protocol starts. With :func:`check_parameters`, the message catches a
    disagreement (about a number of records or a width) before it can pass for a result.
    """
    yield from send(step, {peer: encode_integers(parameters, WORD)})


def check_parameters(peer: str, step: str, parameters: tuple[int, ...]) -> Rounds[None]:
    """Receive the peer's parameters; RemoteProtocolError if they differ from ours."""
    payload = yield from receive(step, peer)
    theirs = decode_integers(payload, WORD, len(parameters), 1 << 8 * WORD, peer, step)
    if tuple(theirs) != parameters:
        raise RemoteProtocolError(peer, step, f"parameters {theirs} where ours are {list(parameters)}")
