"""The trees of :mod:`crypto.trees` as two functions: one goes to the next level, one reads the leaves.

Strands of the same number of trees lie one behind the other, each with room for its last level: node i of tree t
of strand s is block (s * room + i) * trees + t.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from crypto.compiled.aes import Hash, lowest_bits, tweaks_from
from crypto.compiled.code import WORD, WORDS, Code, Value

LEAF_LANES = (8, 2)
"""Words of a row of leaves worked on at once: those of a line of the cache, then those of a block."""


def write_grow(module: ir.Module, name: str, lanes: Sequence[int]) -> None:
    """Write the function (nodes, hashes, corrections, sums, round keys; strands, trees, room, n nodes, tweak).

    In one pass it corrects the hashes of a level of n nodes, writes the nodes of the next level and hashes them.

    nodes, hashes:  of the strands; those of the next level take the place of the level's.
    corrections:    a block for every tree.
    sums:           a block for every tree, to which the hashes of its nodes are added.
    tweak:          the first one of the level.
    """
    c = Code(module, name, [WORDS] * 5 + [WORD] * 5)
    nodes, hashes, corrections, sums, round_keys, strands, trees, room, n_nodes, tweak = c.arguments
    hashed, width = Hash(c, round_keys), trees * 2
    with c.count(0, strands - 1) as strand, c.count(0, n_nodes - 1) as node:
        own, first = strand * width, tweak + strand * n_nodes * width
        rows = [node, node + n_nodes]
        at = [(strand * room + row) * width for row in rows]
        numbers = [first + row * trees for row in rows]
        k: Value | int = 0
        for count in lanes:
            with c.count(k, width - count, count) as k:
                parent = c.load(nodes, at[0] + k, count)
                added = lowest_bits(parent) & c.load(corrections, own + k, count)
                left = c.load(hashes, at[0] + k, count) ^ added
                total = c.load(sums, own + k, count)
                for child, place, number in zip((left, left ^ parent), at, numbers, strict=True):
                    of_child = hashed(child, tweaks_from(number + (k >> 1), count))
                    c.store(child, nodes, place + k)
                    c.store(of_child, hashes, place + k)
                    total ^= of_child
                c.store(total, sums, own + k)
    c.end()


def write_leaves(module: ir.Module, name: str) -> None:
    """Write the function (nodes, hashes, corrections, out; strands, trees, n leaves).

    nodes, hashes, corrections:  as above, the room being the number of leaves.
    out:                         the corrected hashes, leaf after leaf, tree after tree.
    """
    c = Code(module, name, [WORDS] * 4 + [WORD] * 3)
    nodes, hashes, corrections, out, strands, trees, n_leaves = c.arguments
    width = trees * 2
    with c.count(0, strands - 1) as strand:
        own = strand * width
        k: Value | int = 0
        for count in LEAF_LANES:
            with c.count(k, width - count, count) as k:
                correction = c.load(corrections, own + k, count)
                with c.count(0, n_leaves - 1) as leaf:
                    at = (strand * n_leaves + leaf) * width + k
                    added = lowest_bits(c.load(nodes, at, count)) & correction
                    corrected = c.load(hashes, at, count) ^ added
                    for lane in range(0, count, 2):
                        place = (own + k + lane) * n_leaves + leaf * 2
                        c.store(corrected.pick(lane, lane + 1), out, place)
    c.end()
