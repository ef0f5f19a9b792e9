"""The levels of :mod:`crypto.forest` as three functions, on rows of blocks: a row holds one node of every tree.

All take (nodes, hashes, …; number of nodes, words of a row). Between these are

hash_nodes:  the XOR of every tree's hashes, the round keys; behind, the first tweak. Hashes and sums are written.
grow:        every tree's correction, the children, which are written.
leaves:      every tree's correction, the leaves, which are written tree by tree.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from crypto.compiled.aes import Hash, lowest_bits, running
from crypto.compiled.code import WORD, WORDS, Code, Value


def write_forest(module: ir.Module, lanes: Sequence[int]) -> None:
    """Write the functions; lanes: on how many words the CPU's AES works at once, most first."""
    _write_hashes(module, lanes)
    for name in ("grow", "leaves"):
        c = Code(module, name, [WORDS] * 4 + [WORD] * 2)
        nodes, hashes, corrections, out, n_nodes, width = c.arguments
        with c.count(0, n_nodes - 1) as row:
            for k, count in c.along(width, lanes if name == "grow" else lanes[-1:]):
                at = row * width + k
                node = c.load(nodes, at, count)
                corrected = c.load(hashes, at, count) ^ (lowest_bits(node) & c.load(corrections, k, count))
                if name == "grow":
                    c.store(corrected, out, at)
                    c.store(corrected ^ node, out, n_nodes * width + at)
                else:
                    c.store(corrected, out, k * n_nodes + row * 2)
        c.end()


def _write_hashes(module: ir.Module, lanes: Sequence[int]) -> None:
    c = Code(module, "hash_nodes", [WORDS] * 4 + [WORD] * 3)
    nodes, hashes, sums, round_keys, n_nodes, width, tweak = c.arguments
    digest = Hash(c, round_keys)
    with c.count(0, n_nodes - 1) as row:
        for k, count in c.along(width, lanes):
            at: Value = row * width + k
            hashed = digest(c.load(nodes, at, count), running(tweak, at, count))
            c.store(hashed, hashes, at)
            c.store(c.load(sums, k, count) ^ hashed, sums, k)
    c.end()
