"""Inputs made of others: bytes and words put in, taken out, doubled, exchanged."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"
BETWEEN = b"\x00--8<--\x00"
"""Between two files of one input."""
WORDS = [
    *(bytes([character]) for character in b"\"'\n\r\0,;[]{}:?#"),
    *(
        b"- ",
        b"null",
        b"true",
        b"-1",
        b"0",
        b"-0",
        b"-0.0",
        b"1e999",
        b"NaN",
        b"Infinity",
        b"1/0",
        b"0x10",
        b"1_000",
    ),
    *(b"9" * 25, b"9" * 400, b"18446744073709551616", b"[]", b"{}", b'""', b"*a", b"&a ", b"!!int ", b"<<: "),
    *(b"[" * 300, b'{"a":' * 300, b"\xff\xfe", b"\xed\xa0\x80", b"\\ud800", b"\xe2\x80\xae", b"\xc2\xa0"),
    b"\xf0\x9f\x98\x80",
]


def corpus_of(parser: str) -> list[bytes]:
    """The committed inputs of a parser."""
    return [path.read_bytes() for path in sorted((CORPUS / parser).iterdir())]


def mutated(corpus: Sequence[bytes], rng: random.Random) -> bytes:
    """One of the corpus with some changes."""
    data = bytearray(rng.choice(corpus))
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        _change(data, rng)
    return bytes(data)


def _change(data: bytearray, rng: random.Random) -> None:
    at, word = rng.randrange(len(data) + 1), rng.choice(WORDS)
    match rng.randrange(7):
        case 0 if data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        case 1:
            data[at:at] = rng.randbytes(rng.randrange(1, 9))
        case 2:
            del data[at : at + rng.randrange(1, 40)]
        case 3:
            data[at:at] = data[at : at + rng.randrange(1, 60)] * rng.randrange(1, 4)
        case 4:
            data[at:at] = word
        case 5:
            other = rng.randrange(len(data) + 1)
            data[at : at + 12] = data[other : other + 12]
        case _:
            data[at : at + len(word)] = word
