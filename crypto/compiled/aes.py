"""AES-128 and the hash of :mod:`crypto.hashing` by the CPU's own instructions, several blocks at once.

Source: FIPS 197; the key schedule: Gueron, *Intel Advanced Encryption Standard (AES) New Instructions Set* (2012).
"""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from crypto.compiled.code import WORD, WORDS, Carried, Code, Value

ROUNDS = 10
KEY_WORDS = 2 * (ROUNDS + 1)
_ONES, _POLYNOMIAL = 1 << 32 | 1, 0x11B
"""The number 1 in both halves of a word, and AES's polynomial: for the double of a constant."""
_WIDTHS = {2: "", 4: ".256", 8: ".512"}
"""Suffixes, by number of lanes, that LLVM adds to the name of an instruction."""


def lanes_of(features: Mapping[str, bool]) -> tuple[int, ...]:
    """Return the numbers of words on which a CPU does AES at once, most first; empty without AES."""
    if not features.get("aes"):
        return ()
    if features.get("vaes") and features.get("avx512f"):
        return (8, 2)
    return (4, 2) if features.get("vaes") and features.get("avx2") else (2,)


def write_key_schedule(module: ir.Module, name: str) -> None:
    """Write the function (keys, round keys; count): of 2 words the KEY_WORDS, key after key."""
    c = Code(module, name, [WORDS] * 2 + [WORD])
    given, keys, count = c.arguments
    zero = c.constant(0, 0)
    with c.count(0, count - 1) as number:
        at = number * KEY_WORDS
        key, constant = Carried(c.load(given, number * 2, 2)), Carried(c.word(_ONES))
        c.store(key.value, keys, at)
        with c.count(1, ROUNDS, 1, key, constant) as i:
            k, last = key.value, key.value.pick(1, 1) >> 32
            # Of four equal columns, AES's last round substitutes the octets and adds the constant.
            turned = (last ^ (last << 32)).rotate(8)
            added = c.call("llvm.x86.aesni.aesenclast", turned, constant.value.spread(2))
            k = k ^ (k << 32) ^ zero.pick(0, 2, other=k >> 32)
            key.value = k ^ zero.pick(0, 2, other=k) ^ added
            c.store(key.value, keys, at + i * 2)
            constant.value = (constant.value << 1) ^ (constant.value >> 7 & _ONES) * _POLYNOMIAL
    c.end()


def lowest_bits(blocks: Value) -> Value:
    """Return the lowest bit of every block, as a mask over the block."""
    lows = [lane - lane % 2 for lane in range(blocks.raw.type.count)]
    return (blocks.pick(*lows) & 1).mask()


def tweaks_from(first: Value, lanes: int) -> Value:
    """Return the tweaks of adjacent blocks: running numbers."""
    numbers = [0 if lane % 2 else lane // 2 for lane in range(lanes)]
    low = first.code.constant(*[0 if lane % 2 else -1 for lane in range(lanes)])
    return (first.spread(lanes) + first.code.constant(*numbers)) & low


class Cipher:
    """AES under a key, in a function under construction."""

    def __init__(self, code: Code, round_keys: Value, at: Value | int = 0) -> None:
        """Load the key schedule that stands ``at`` words into an array."""
        self._code = code
        self._keys = [code.load(round_keys, at + 2 * i, 2) for i in range(ROUNDS + 1)]

    def __call__(self, x: Value) -> Value:
        """Emit the encryption of blocks side by side."""
        width = x.raw.type.count
        first, *inner, last = (key.pick(*[0, 1] * (width // 2)) for key in self._keys)
        x = x ^ first
        for key in inner:
            x = self._code.call(f"llvm.x86.aesni.aesenc{_WIDTHS[width]}", x, key)
        return self._code.call(f"llvm.x86.aesni.aesenclast{_WIDTHS[width]}", x, last)


class Hash:
    """H(x, i) = π(π(x) ⊕ i) ⊕ π(x), in a function under construction."""

    def __init__(self, code: Code, round_keys: Value) -> None:
        self._permute = Cipher(code, round_keys)

    def __call__(self, x: Value, tweak: Value) -> Value:
        """Emit the hash of blocks.

        x: blocks side by side; tweak: the same lanes.
        """
        permuted = self._permute(x)
        return self._permute(permuted ^ tweak) ^ permuted
