"""Choosing: multiplexers, one-hot decoding, public tables, maxima, and selection by a random number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crypto.builder import FALSE, TRUE, Builder, Literal, Word
from crypto.circuits.arithmetic import constant, extend, less, less_in_blocks, prefix_sums, total
from crypto.errors import LocalProtocolError


def choose(b: Builder, choice: Literal, one: Word, zero: Word) -> list[Literal]:
    """Return ``one`` if ``choice``, else ``zero``, as wide as the wider word: 1 gate for every differing bit."""
    width = max(len(one), len(zero))
    pairs = zip(extend(one, width), extend(zero, width), strict=True)
    return [b.mux(choice, p, q) for p, q in pairs]


def keep_if(b: Builder, choice: Literal, x: Word) -> list[Literal]:
    """Return x if ``choice``, else 0: 1 gate a bit."""
    return [b.and_(choice, p) for p in x]


def one_hot(b: Builder, index: Word) -> list[Literal]:
    """Decode: line i is 1 iff ``index`` = i. About 2**w gates for w bits, fewer if lines are not used."""
    if not index:
        return [TRUE]
    if len(index) == 1:
        return [index[0] ^ 1, index[0]]
    middle = len(index) // 2
    low, high = one_hot(b, index[:middle]), one_hot(b, index[middle:])
    # The lines of a row add up to its high line, the lines of a column to its low line: the last lines are free.
    rows = [[b.and_(p, h) for p in low[:-1]] for h in high[:-1]]
    rows.append([parity(b, [p, *column]) for p, *column in zip(low, *rows, strict=False)])
    return [line for row, h in zip(rows, high, strict=True) for line in (*row, parity(b, [h, *row]))]


def lookup(b: Builder, lines: Sequence[Literal], table: Sequence[int], width: int) -> list[Literal]:
    """Return the entry of a public table at the single line with value 1 (0 if all lines are 0): free."""
    if len(table) > len(lines):
        raise LocalProtocolError(f"a table of {len(table)} entries for {len(lines)} lines")
    if table and (min(table) < 0 or max(table) >> width):
        raise LocalProtocolError(f"table entries do not fit {width} bits, or are negative")
    return [
        _lookup_bit(
            b, [line for line, entry in zip(lines, table, strict=False)], [entry >> i & 1 for entry in table]
        )
        for i in range(width)
    ]


def entry(b: Builder, index: Word, table: Sequence[int], width: int) -> list[Literal]:
    """Return the entry of a public table at an index of w bits; the table has 2**w entries.

    The high bits are decoded, the l low bits choose among 2**l neighbours: about 2**(w − l) + (2**l − 1)·width
    gates.
    """
    if len(table) != 1 << len(index):
        raise LocalProtocolError(f"a table of {len(table)} entries for an index of {len(index)} bits")
    low = min(range(len(index) + 1), key=lambda bits: _entry_cost(len(index), bits, width))
    lines = one_hot(b, index[low:])
    words = [lookup(b, lines, table[start :: 1 << low], width) for start in range(1 << low)]
    for bit in index[:low]:
        words = [choose(b, bit, one, zero) for zero, one in zip(words[::2], words[1::2], strict=True)]
    return words[0]


def _entry_cost(index_width: int, low: int, width: int) -> int:
    """Return twice the cost in gates; the free gates of every line count as half a gate."""
    return (3 << (index_width - low)) + 2 * ((1 << low) - 1) * width


def _lookup_bit(b: Builder, lines: Sequence[Literal], wanted: Sequence[int]) -> Literal:
    """Add up the wanted lines, four at a time: outputs share the sums of equal fours."""
    parts: list[Literal] = []
    for start in range(0, len(lines), 4):
        part: Literal = FALSE
        for line, want in zip(lines[start : start + 4], wanted[start : start + 4], strict=True):
            part = b.xor(part, line) if want else part
        parts.append(part)
    return parity(b, parts)


def parity(b: Builder, bits: Sequence[Literal]) -> Literal:
    """Return the sum of the bits modulo 2: free."""
    level = [x for x in bits if x != FALSE] or [FALSE]
    while len(level) > 1:
        joined = [b.xor(p, q) for p, q in zip(level[0::2], level[1::2], strict=False)]
        level = joined + level[len(level) // 2 * 2 :]
    return level[0]


def encode(b: Builder, lines: Sequence[Literal]) -> list[Literal]:
    """Return the number of the single line with value 1 (0 if all lines are 0): free."""
    width = max(1, (len(lines) - 1).bit_length())
    return lookup(b, lines, range(len(lines)), width)


@dataclass(frozen=True, slots=True)
class Best:
    """The winner among some entries.

    valid:    1 if an entry was valid; if 0, all else is 0.
    index:    place of the winner among the entries.
    key:      key of the winner.
    payload:  payload of the winner.
    """

    valid: Literal
    index: list[Literal]
    key: list[Literal]
    payload: list[Literal]


def argmax(
    b: Builder,
    keys: Sequence[Word],
    *,
    valid: Sequence[Literal] | None = None,
    payloads: Sequence[Word] | None = None,
    signed: bool = False,
) -> Best:
    """Return the entry with the greatest key among the valid entries; of equal keys, the first.

    keys:      words of equal width w; two's complement if signed.
    valid:     a bit for each entry; by default all entries are valid.
    payloads:  words of equal width that go with the keys.

    A tournament of neighbours: 7/4·w gates to compare and w + payload + index to choose, for each entry but one.
    """
    if not keys or len({len(key) for key in keys}) != 1:
        raise LocalProtocolError(f"{len(keys)} keys of widths {sorted({len(key) for key in keys})}")
    width = max(1, (len(keys) - 1).bit_length())
    flags = list(valid) if valid is not None else [TRUE] * len(keys)
    extras = list(payloads) if payloads is not None else [[]] * len(keys)
    flipped = [[*key[:-1], key[-1] ^ 1] if signed else list(key) for key in keys]
    level = [
        [*key, flag, *constant(i, width), *extra]
        for i, (key, flag, extra) in enumerate(zip(flipped, flags, extras, strict=True))
    ]
    ranked = len(keys[0]) + 1  # the bits that decide: the flag above the key
    while len(level) > 1:
        winners = [
            choose(b, less_in_blocks(b, first[:ranked], second[:ranked]), second, first)
            for first, second in zip(level[0::2], level[1::2], strict=False)
        ]
        level = winners + level[len(level) // 2 * 2 :]
    return _best(b, level[0], len(keys[0]), width, signed)


def _best(b: Builder, winner: Word, key_width: int, index_width: int, signed: bool) -> Best:
    """Cut a winner into parts; an invalid winner shows only zeros."""
    flag = winner[key_width]
    key = list(winner[:key_width])
    if signed:
        key[-1] ^= 1
    kept = keep_if(b, flag, [*key, *winner[key_width + 1 :]])
    return Best(
        valid=flag,
        index=kept[key_width : key_width + index_width],
        key=kept[:key_width],
        payload=kept[key_width + index_width :],
    )


def maximum(b: Builder, words: Sequence[Word]) -> list[Literal]:
    """Return the greatest of words of equal width: 2·w gates for each word but one."""
    if len({len(word) for word in words}) != 1:
        raise LocalProtocolError(f"{len(words)} words of widths {sorted({len(word) for word in words})}")
    level = [list(word) for word in words]
    while len(level) > 1:
        winners = [choose(b, less(b, x, y), y, x) for x, y in zip(level[0::2], level[1::2], strict=False)]
        level = winners + level[len(level) // 2 * 2 :]
    return level[0]


def sum_of_maxima(b: Builder, groups: Sequence[Sequence[Word]]) -> list[Literal]:
    """Return Σ over groups of the greatest word of the group.

    This is the utility Max of [T] 6.1: groups are child partitions and words are class counts.
    """
    return total(b, [maximum(b, words) for words in groups])


def select_below(b: Builder, weights: Sequence[Word], r: Word) -> list[Literal]:
    """Return the least i with r < w_0 + … + w_i: index i with probability w_i / Σ w if r is uniform below Σ w.

    The prefix sums L_i and r have the width of r, which must hold Σ w. r < L_i, not r ≤ L_i: an entry of weight 0
    is never chosen (semantics §8.2; [T] 7 compares R ≤ L). If r ≥ Σ w, against the precondition, the index is 0.
    Raises LocalProtocolError without weights or if a weight is wider than r.
    """
    if not weights or max(len(weight) for weight in weights) > len(r):
        widths = sorted({len(weight) for weight in weights})
        raise LocalProtocolError(f"{len(weights)} weights of widths {widths}, to select by {len(r)} bits")
    sums = prefix_sums(b, weights, len(r))
    # below[i] is monotone in i, so neighbours differ only at the wanted index.
    below = [less(b, r, bound) for bound in sums]
    lines = [b.xor(low, high) for low, high in zip([FALSE, *below], below, strict=False)]
    return encode(b, lines)
