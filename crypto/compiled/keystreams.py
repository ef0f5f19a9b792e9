"""The keystreams of :mod:`crypto.keystreams` as a function (round keys, out; streams, width, block).

round keys:  the key schedules of all streams.
out:         a row a stream, of ``width`` words, an even number: the stream from a block on.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from crypto.compiled.aes import KEY_WORDS, Cipher, tweaks_from
from crypto.compiled.code import WORD, WORDS, Code, Value


def write_keystreams(module: ir.Module, name: str, lanes: Sequence[int]) -> None:
    """Write the function."""
    c = Code(module, name, [WORDS] * 2 + [WORD] * 3)
    round_keys, out, streams, width, block = c.arguments
    with c.count(0, streams - 1) as stream:
        encrypted, row = Cipher(c, round_keys, stream * KEY_WORDS), stream * width
        k: Value | int = 0
        for count in lanes:
            with c.count(k, width - count, count) as k:
                c.store(encrypted(_counters(block + (k >> 1), count)), out, row + k)
    c.end()


def _counters(first: Value, lanes: int) -> Value:
    """Return the numbers of adjacent blocks, big endian."""
    turned = first.code.call(f"llvm.bswap.v{lanes}i64", tweaks_from(first, lanes))
    return turned.pick(*[lane ^ 1 for lane in range(lanes)])
