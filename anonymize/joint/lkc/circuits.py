"""Circuits of sealed horizontal LKC, over additively shared counts of leader and deputy.

The circuits use :mod:`crypto.circuits` and are compiled once per width. All entries of a batch are independent
instances. Words that decide between candidates stay in the session as carried words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from anonymize.criteria.criterion import Rule
from crypto.blocks import WORD_BITS
from crypto.builder import FALSE, TRUE, Builder, Literal, Word, add, subtract
from crypto.circuit import Circuit, Held, To
from crypto.circuits.arithmetic import (
    add_columns,
    add_wide,
    all_of,
    any_of,
    equal,
    extend,
    is_zero,
    less,
    less_constant,
    less_in_blocks,
    less_signed,
    multiply,
    multiply_by_public,
    negate_if,
    product_columns,
    shift_right,
    total,
)
from crypto.circuits.score import FRACTION_BITS, LOG_ERROR, f, f_word
from crypto.circuits.selection import choose, keep_if, one_hot


@dataclass(frozen=True)
class Widths:
    """Bits of the words in a run, from public bounds: records, class values, grid points.

    count:     bits of a count of records.
    loss:      bits of impurities, also summed over the sides of a specialization, and so of a gain above 0.
    fraction:  fractional bits of a key. n is the number of records: quotients gain / |T[v]| that differ, differ by
               2**-fraction / n or more.
    key:       bits of n · gain / |T[v]| with these fractional bits.
    index:     bits of the place of a grid point in its interval, from 0 on.
    """

    count: int
    loss: int
    fraction: int
    key: int
    index: int

    @property
    def magic(self) -> int:
        """Bits of the reciprocal that multiplies gains (Granlund and Montgomery, PLDI 1994)."""
        return self.count + self.loss + self.fraction + 2

    @property
    def left_out(self) -> int:
        """Lowest bits of every multiple of a gain that are left out of the product: see :func:`magic`."""
        return max(0, self.loss - 5)

    @property
    def magic_words(self) -> int:
        return -(-self.magic // WORD_BITS)

    @property
    def key_words(self) -> tuple[int, ...]:
        """Widths of a key's words in a session, lowest first."""
        return tuple(min(WORD_BITS, self.key - start) for start in range(0, self.key, WORD_BITS))


def widths_for(n_records: int, n_classes: int, most_points: int) -> Widths:
    """Return the widths for at most ``n_records`` records and intervals of at most ``most_points`` points."""
    count = max(2, n_records.bit_length())
    loss = most_impurity(n_records, n_classes).bit_length()
    fraction = max(0, n_records - 1).bit_length()
    return Widths(count, loss, fraction, loss + fraction, max(1, (most_points - 1).bit_length()))


def most_impurity(n_records: int, n_classes: int) -> int:
    """Return a bound of F(n) − Σ F(n_c), also summed over parts of the records.

    F(x) = x·L(x), and L(x) is within LOG_ERROR of 2**20·log2 x. So F(n) − Σ F(n_c) is at most
    Σ n_c·(2**20·log2(n / n_c) + 2·LOG_ERROR), and Σ n_c·log2(n / n_c) is at most n·log2(classes). The result is not
    negative, as F(x + y) >= F(x) + F(y).
    """
    log_classes = (n_classes - 1).bit_length()
    return max(1, n_records) * ((log_classes << FRACTION_BITS) + 2 * LOG_ERROR)


def size_bits(size: int) -> int:
    """Return the least number b for which a size is at most 2**b."""
    return (size - 1).bit_length()


def magic(size: int, n_records: int, widths: Widths) -> list[int]:
    """Return the reciprocal m of a public size in 64-bit words: key = gain · m >> (loss + 1 + b) is exact for b =
    size_bits(size).

    m = ceil(n_records · 2**(loss + fraction + 1 + b) / size), so gain · m is n_records · gain · 2**fraction / size,
    in units of 2**-(loss + 1 + b), and an error of 0 … gain < 2**loss. An error below 2**(loss + 1) does not matter,
    as the next whole number is 1/size >= 2**-b away. So 2**loss is added, and as much may be left out: the lowest
    ``left_out`` bits of each multiple of the gain. At most left_out / 2 multiples have any, left_out < 64, and 32 ·
    2**left_out <= 2**loss. As size >= 2**b / 2 + 1 for b > 1, m is below 2**(count + loss + fraction + 2).
    """
    m = -(-(n_records << widths.loss + widths.fraction + 1 + size_bits(size)) // size)
    return [m >> (WORD_BITS * i) & ((1 << WORD_BITS) - 1) for i in range(widths.magic_words)]


@lru_cache(maxsize=64)
def f_circuit(width: int, wide: int | None = None) -> Circuit:
    """Return the circuit of F of a shared count (semantics §3.4).

    wide:  bits of the result, modulo 2**wide; None: all bits.
    """
    b = Builder(f"f/{width}" if wide is None else f"f/{width}/{wide}")
    (x,) = b.input("count", Held.ADDITIVE_SHARED, width)
    b.output("f", To.CARRIED, [f_word(b, x)[:wide]])
    return b.build()


def marked_width(loss_width: int, marks: int) -> int:
    """Return the bits of a loss with ``marks`` bits above it. The bit between shows the sign of a difference."""
    return loss_width + 1 + marks if marks else loss_width


@lru_cache(maxsize=32)
def enter_circuit(width: int, marks: int = 0) -> Circuit:
    """Return the circuit that carries a loss with additive shares.

    marks:  bits above the loss (:func:`marked_width`); then ``large`` is 1 if they are 0.
    """
    b = Builder(f"enter/{width}/{marks}" if marks else f"enter/{width}")
    (word,) = b.input("loss", Held.ADDITIVE_SHARED, marked_width(width, marks))
    _output_marked(b, word, width)
    return b.build()


def _output_marked(b: Builder, word: Word, loss_width: int) -> None:
    """Carry a loss, and ``large`` if there are bits above the loss."""
    b.output("loss", To.CARRIED, [word[:loss_width]])
    if marks := word[loss_width + 1 :]:
        b.output("large", To.CARRIED, [[is_zero(b, marks)]])


@lru_cache(maxsize=32)
def impurity_circuit(n_classes: int, f_width: int, loss_width: int) -> Circuit:
    """Return the circuit of F(n) − Σ_cls F(n_cls), modulo 2**loss_width."""
    b = Builder(f"impurity/{n_classes}/{f_width}/{loss_width}")
    whole, *parts = b.input("f", Held.CARRIED, f_width, 1 + n_classes)
    loss = subtract(b, extend(whole, loss_width), extend(total(b, parts), loss_width))
    b.output("loss", To.CARRIED, [loss])
    return b.build()


@lru_cache(maxsize=32)
def add_circuit(width: int) -> Circuit:
    """Return the circuit of the sum of two losses."""
    b = Builder(f"add/{width}")
    (x,), (y,) = b.input("loss", Held.CARRIED, width), b.input("loss/other", Held.CARRIED, width)
    b.output("loss", To.CARRIED, [add(b, x, y)])
    return b.build()


@lru_cache(maxsize=32)
def imbalance_circuit(count_width: int, index_width: int) -> Circuit:
    """Return the circuit of | left − right | (goal general), least with |c1|² + |c2|².

    The circuit also tells if a grid point has records on both sides, and carries its index.
    """
    b = Builder(f"imbalance/{count_width}/{index_width}")
    left, right = b.input("sides", Held.ADDITIVE_SHARED, count_width, 2)
    (index,) = b.input("index", Held.PUBLIC, index_width)
    width = count_width + 1
    difference = subtract(b, extend(left, width), extend(right, width))
    size = negate_if(b, difference[-1], difference)
    b.output("loss", To.CARRIED, [size])
    b.output("valid", To.CARRIED, [[b.and_(is_zero(b, left) ^ 1, is_zero(b, right) ^ 1)]])
    b.output("index", To.CARRIED, [index])
    return b.build()


@lru_cache(maxsize=32)
def better_split_circuit(loss_width: int, index_width: int) -> Circuit:
    """Return the circuit that picks the valid grid point with the smaller loss; ties and two invalid points: the
    first.
    """
    b = Builder(f"better-split/{loss_width}/{index_width}")
    pairs = _pairs(b, [("loss", loss_width), ("valid", 1), ("index", index_width)])
    one, other = pairs["loss"]
    return _better(b, pairs, less_signed(b, other, one))


@lru_cache(maxsize=64)
def least_loss_circuit(loss_width: int, level: int, bits: tuple[str, ...] = ()) -> Circuit:
    """Return the circuit that picks the grid point with the smaller loss; ties: the first. A loss is not negative.

    A grid point without records on a side has the loss of its whole node, so no gain, and needs no flag.

    level:  rounds of the tournament before. Each made a bit of the index of a point; this round makes the next bit.
    bits:   names of further carried bits of each point.
    """
    b = Builder("/".join(map(str, ("least-loss", loss_width, level, *bits))))
    pairs = _pairs(b, [("loss", loss_width), *((name, 1) for name in bits)])
    one, other = pairs["loss"]
    second = less(b, other, one)
    _output_chosen(b, pairs, second)
    low, other_low = _pairs(b, [("index", level)])["index"] if level else ([], [])
    b.output("index", To.CARRIED, [[*choose(b, second, other_low, low), second]])
    return b.build()


@lru_cache(maxsize=16)
def least_share_circuit(loss_width: int, marks: int = 0) -> Circuit:
    """Return the circuit that carries the smaller of two losses with additive shares; ties: the first.

    Inputs are both losses, and the second minus the first, modulo 2**(loss_width + 1): its sign compares them. Each
    side knows its shares, so a gate that selects a bit of them costs half; only the selected shares are added.
    ``index`` is 1 if the second is selected. marks: as in :func:`enter_circuit`, of the selected loss.
    """
    b = Builder(f"least-share/{loss_width}/{marks}" if marks else f"least-share/{loss_width}")
    one, other = b.shares("loss", marked_width(loss_width, marks), 2)
    ((of_garbler, of_evaluator),) = b.shares("difference", loss_width + 1)
    second = add(b, of_garbler, of_evaluator)[-1]
    of_garbler, of_evaluator = (choose(b, second, q, p) for p, q in zip(one, other, strict=True))
    _output_marked(b, add(b, of_garbler, of_evaluator), loss_width)
    b.output("index", To.CARRIED, [[second]])
    return b.build()


def _pairs(b: Builder, fields: Iterable[tuple[str, int]]) -> Mapping[str, list[Word]]:
    """Return the carried words of two entries, as in a tournament's circuit. fields: names and widths."""
    return {
        name: [*b.input(name, Held.CARRIED, width), *b.input(f"{name}/other", Held.CARRIED, width)]
        for name, width in fields
    }


def _better(b: Builder, pairs: Mapping[str, list[Word]], is_better: Literal) -> Circuit:
    """Pick the second entry if it is valid, and better or the first is invalid."""
    (valid,), (other_valid,) = pairs["valid"]
    _output_chosen(b, pairs, b.and_(other_valid, b.or_(valid ^ 1, is_better)))
    return b.build()


def _output_chosen(b: Builder, pairs: Mapping[str, list[Word]], second: Literal) -> None:
    """Carry the second entry if a bit is 1, else the first."""
    for name, (one, other) in pairs.items():
        b.output(name, To.CARRIED, [choose(b, second, other, one)])


@lru_cache(maxsize=32)
def lift_circuit(index_width: int) -> Circuit:
    """Return the circuit that carries a public flag and a public index."""
    b = Builder(f"lift/{index_width}")
    (flag,) = b.input("present", Held.PUBLIC, 1)
    (index,) = b.input("index", Held.PUBLIC, index_width)
    b.output("valid", To.CARRIED, [flag])
    b.output("index", To.CARRIED, [index])
    return b.build()


@lru_cache(maxsize=32)
def admitted_circuit(loss_width: int, index_width: int) -> Circuit:
    """Return the circuit that opens a bit (a node's split has gain and allowed children) and the index, else 0."""
    b = Builder(f"admitted/{loss_width}/{index_width}")
    (loss,) = b.input("loss", Held.CARRIED, loss_width)
    ((large,),) = b.input("large", Held.CARRIED, 1)
    (index,) = b.input("index", Held.CARRIED, index_width)
    (parent,) = b.input("parent", Held.PUBLIC, loss_width)
    met = b.and_(large, less(b, loss, parent))
    b.output("valid", To.BOTH, [[met]])
    b.output("index", To.BOTH, [[b.and_(met, x) for x in index]])
    return b.build()


def _above_zero(b: Builder, x: Word) -> Literal:
    """Return 1 if a word in two's complement is positive."""
    return b.and_(x[-1] ^ 1, is_zero(b, x) ^ 1)


def f_bits(count_width: int) -> int:
    """Return the bits of F of a count."""
    return max(1, f((1 << count_width) - 1).bit_length())


@lru_cache(maxsize=64)
def most_circuit(count_width: int, penalty_width: int) -> Circuit:
    """Return the circuit of F of a child's records in a context, plus a penalty if the child has records there."""
    b = Builder(f"most/{count_width}/{penalty_width}")
    (count,) = b.input("count", Held.ADDITIVE_SHARED, count_width)
    (penalty,) = b.input("penalty", Held.PUBLIC, penalty_width)
    most = add_wide(b, f_word(b, count), keep_if(b, is_zero(b, count) ^ 1, penalty))
    b.output("most", To.CARRIED, [most])
    return b.build()


@lru_cache(maxsize=64)
def term_circuit(n_classes: int, f_width: int, width: int) -> Circuit:
    """Return the circuit of a child's impurity in a context, with its penalty; not negative.

    f:     F of the class counts.
    most:  as from :func:`most_circuit`.
    """
    b = Builder(f"term/{n_classes}/{f_width}/{width}")
    scores = b.input("f", Held.CARRIED, f_width, n_classes)
    (most,) = b.input("most", Held.CARRIED, width)
    b.output("loss", To.CARRIED, [subtract(b, most, extend(total(b, scores), width))])
    return b.build()


@lru_cache(maxsize=32)
def added_circuit(width: int) -> Circuit:
    """Return the circuit of the rest of a public number, and a bit: 1 if the rest is above 0."""
    b = Builder(f"added/{width}")
    (loss,) = b.input("loss", Held.CARRIED, width)
    (public,) = b.input("public", Held.PUBLIC, width)
    left = subtract(b, public, loss)
    b.output("added", To.CARRIED, [left])
    b.output("valid", To.CARRIED, [[_above_zero(b, left)]])
    return b.build()


@lru_cache(maxsize=32)
def more_added_circuit(width: int, slot_width: int) -> Circuit:
    """Return the circuit that picks the valid candidate with the greater addition; otherwise the first."""
    b = Builder(f"more-added/{width}/{slot_width}")
    pairs = _pairs(b, (("added", width), ("valid", 1), ("slot", slot_width)))
    one, other = pairs["added"]
    return _better(b, pairs, less_signed(b, one, other))


@lru_cache(maxsize=32)
def occupied_circuit(width: int) -> Circuit:
    """Return the circuit of a shared count, or the greatest number for 0."""
    b = Builder(f"occupied/{width}")
    (count,) = b.input("count", Held.ADDITIVE_SHARED, width)
    empty = is_zero(b, count)
    b.output("size", To.CARRIED, [[b.or_(bit, empty) for bit in count]])
    return b.build()


@lru_cache(maxsize=32)
def smaller_circuit(width: int) -> Circuit:
    """Return the circuit of the smaller of two sizes."""
    b = Builder(f"smaller/{width}")
    one, other = _pairs(b, [("size", width)])["size"]
    b.output("size", To.CARRIED, [choose(b, less(b, other, one), other, one)])
    return b.build()


@lru_cache(maxsize=32)
def lost_circuit(width: int, wide: int) -> Circuit:
    """Return the circuit of the difference of a size below a public size, in ``wide`` bits; 0 if not below."""
    b = Builder(f"lost/{width}/{wide}")
    (size,) = b.input("size", Held.CARRIED, width)
    (before,) = b.input("before", Held.PUBLIC, width)
    lost = keep_if(b, less(b, size, before), subtract(b, before, size))
    b.output("loss", To.CARRIED, [extend(lost, wide)])
    return b.build()


@dataclass(frozen=True)
class FractionWidths:
    """Bits of the words of a fraction gain · weight / (size · (lost + weight)).

    size, lost, weight:      of its factors.
    numerator, denominator:  of both together, from public bounds of all.
    """

    size: int
    lost: int
    weight: int
    numerator: int
    denominator: int


@lru_cache(maxsize=32)
def fraction_circuit(loss_width: int, widths: FractionWidths) -> Circuit:
    """Return the circuit of a candidate's score as a fraction, from its least loss, which is below ``parent``."""
    b = Builder(f"fraction/{loss_width}/{widths}")
    (loss,) = b.input("loss", Held.CARRIED, loss_width)
    (lost,) = b.input("lost", Held.CARRIED, widths.lost)
    (parent,) = b.input("parent", Held.PUBLIC, loss_width)
    (size,) = b.input("size", Held.PUBLIC, widths.size)
    (weight,) = b.input("weight", Held.PUBLIC, widths.weight)
    numerator = multiply_by_public(b, subtract(b, parent, loss), weight)
    denominator = multiply_by_public(b, add(b, lost, extend(weight, widths.lost)), size)
    b.output("numerator", To.CARRIED, [extend(numerator, widths.numerator)[: widths.numerator]])
    b.output("denominator", To.CARRIED, [extend(denominator, widths.denominator)[: widths.denominator]])
    return b.build()


@lru_cache(maxsize=32)
def better_fraction_circuit(widths: FractionWidths, slot_width: int) -> Circuit:
    """Return the circuit that picks the valid candidate with the greater fraction; otherwise the first."""
    b = Builder(f"better-fraction/{widths}/{slot_width}")
    fields = (("numerator", widths.numerator), ("denominator", widths.denominator))
    pairs = _pairs(b, (*fields, ("valid", 1), ("slot", slot_width)))
    (n, other_n), (d, other_d) = pairs["numerator"], pairs["denominator"]
    is_better = less_in_blocks(b, multiply(b, n, other_d), multiply(b, other_n, d))
    return _better(b, pairs, is_better)


@lru_cache(maxsize=32)
def key_circuit(widths: Widths) -> Circuit:
    """Return the circuit of a candidate's key: InfoGain, comparable as an integer; invalid without gain."""
    b = Builder(f"key/{widths}")
    gain, valid = _gain(b, widths)
    reciprocal = [
        bit for word in b.input("magic", Held.PUBLIC, WORD_BITS, widths.magic_words) for bit in word
    ]
    (bits,) = b.input("size bits", Held.PUBLIC, widths.count.bit_length())
    product = product_columns(b, gain, reciprocal[: widths.magic])
    product[widths.loss].append(TRUE)
    quotient = add_columns(b, product[widths.left_out :])[widths.loss + 1 - widths.left_out :]
    return _with_key(b, widths, extend(shift_right(b, quotient, bits), widths.key), valid)


@lru_cache(maxsize=32)
def whole_key_circuit(widths: Widths) -> Circuit:
    """Return the circuit of a candidate's key at a node of all records, as :func:`key_circuit`: no product."""
    b = Builder(f"whole-key/{widths}")
    gain, valid = _gain(b, widths)
    return _with_key(b, widths, [*[FALSE] * widths.fraction, *gain], valid)


def _gain(b: Builder, widths: Widths) -> tuple[list[Literal], Literal]:
    """Return the gain of a candidate, and a bit: 1 if the gain is above 0."""
    (loss,) = b.input("loss", Held.CARRIED, widths.loss)
    (parent,) = b.input("parent", Held.PUBLIC, widths.loss)
    return subtract(b, parent, loss), less(b, loss, parent)


def _with_key(b: Builder, widths: Widths, key: Word, valid: Literal) -> Circuit:
    """Carry a key, word by word, and its validity."""
    for name, word in _key_parts(widths, key):
        b.output(name, To.CARRIED, [word])
    b.output("valid", To.CARRIED, [[valid]])
    return b.build()


@lru_cache(maxsize=32)
def better_candidate_circuit(widths: Widths, slot_width: int) -> Circuit:
    """Return the circuit that picks the valid candidate with the greater key; otherwise the first."""
    b = Builder(f"better-candidate/{widths}/{slot_width}")
    fields = [(f"key{i}", w) for i, w in enumerate(widths.key_words)]
    pairs = _pairs(b, [*fields, ("valid", 1), ("index", widths.index), ("slot", slot_width)])
    keys = [[x for name, _ in fields for x in pairs[name][side]] for side in (0, 1)]
    return _better(b, pairs, less_in_blocks(b, *keys))


@lru_cache(maxsize=32)
def greater_key_circuit(widths: Widths, lowest: int) -> Circuit:
    """Return the circuit that opens to both if the second of two keys is greater; 0 if either is not valid.

    lowest:  lowest compared bit; the bits below are equal.
    """
    b = Builder(f"greater-key/{lowest}/{widths}")
    pairs = _pairs(b, [*((f"key{i}", w) for i, w in enumerate(widths.key_words)), ("valid", 1)])
    one, other = (
        [x for i in range(len(widths.key_words)) for x in pairs[f"key{i}"][side]] for side in (0, 1)
    )
    both = b.and_(*(valid for (valid,) in pairs["valid"]))
    b.output("greater", To.BOTH, [[b.and_(both, less(b, one[lowest:], other[lowest:]))]])
    return b.build()


@lru_cache(maxsize=64)
def first_met_circuit(count: int) -> Circuit:
    """Return the circuit that opens to both, for each of ``count`` bits, if the bit or one before it is 1."""
    b = Builder(f"first-met/{count}")
    so_far, opened = FALSE, []
    for (bit,) in b.input("met", Held.CARRIED, 1, count):
        so_far = b.and_(so_far ^ 1, bit ^ 1) ^ 1
        opened.append([so_far])
    b.output("met", To.BOTH, opened)
    return b.build()


@lru_cache(maxsize=32)
def first_candidate_circuit(index_width: int, slot_width: int) -> Circuit:
    """Return the circuit that picks the first valid of two ordered candidates; two invalid candidates: the first."""
    b = Builder(f"first-candidate/{index_width}/{slot_width}")
    pairs = _pairs(b, (("valid", 1), ("index", index_width), ("slot", slot_width)))
    return _better(b, pairs, FALSE)


def _key_parts(widths: Widths, key: Word) -> list[tuple[str, Word]]:
    parts, start = [], 0
    for i, width in enumerate(widths.key_words):
        parts.append((f"key{i}", key[start : start + width]))
        start += width
    return parts


@lru_cache(maxsize=32)
def lines_circuit(index_width: int, n_lines: int) -> Circuit:
    """Return the circuit of one-bit lines: line ``index`` is 1. An index of ``n_lines`` or more is not expected."""
    b = Builder(f"lines/{index_width}/{n_lines}")
    (index,) = b.input("index", Held.CARRIED, index_width)
    lines = one_hot(b, index[: max(1, (n_lines - 1).bit_length())])
    b.output("line", To.CARRIED, [[line] for line in lines[:n_lines]])
    return b.build()


@lru_cache(maxsize=32)
def zero_circuit(width: int, to: To = To.CARRIED) -> Circuit:
    """Return the circuit that tells if a number is 0: the garbler's share equals the evaluator's negated share."""
    b = Builder(f"zero/{width}" if to is To.CARRIED else f"zero/{width}/{to.value}")
    (own,), (other,) = (b.input(held.value, held, width) for held in (Held.GARBLER, Held.EVALUATOR))
    b.output("met", to, [[equal(b, own, other)]])
    return b.build()


@lru_cache(maxsize=16)
def by_zeros_circuit(rule: Rule, n_values: int, *, whole: bool = False) -> Circuit:
    """Return the circuit that tells if a group is allowed, for a rule that only looks for values of 0."""
    kind, *numbers = rule.title
    b = Builder("/".join(map(str, (*_of_whole(whole), "by-zeros", kind, n_values, *numbers))))
    values = [[zero ^ 1] for (zero,) in b.input("zero", Held.CARRIED, 1, n_values)]
    b.output("met", To.CARRIED, [[rule.met(InCircuit(b, whole), values)]])
    return b.build()


@lru_cache(maxsize=8)
def both_circuit() -> Circuit:
    """Return the circuit that tells if two bits are 1."""
    b = Builder("both")
    (one,), (other,) = b.input("met", Held.CARRIED, 1), b.input("met/other", Held.CARRIED, 1)
    b.output("met", To.CARRIED, [[b.and_(one[0], other[0])]])
    return b.build()


@lru_cache(maxsize=32)
def open_circuit(fields: tuple[tuple[str, int], ...], *, unless: bool = False) -> Circuit:
    """Return the circuit that opens carried words to both if their flag ``valid`` is 1; zeros otherwise.

    unless:  also open a bit ``met``, and only zeros if it is 1.
    """
    b = Builder(f"open{'/unless' if unless else ''}/{fields}")
    (flag,) = b.input("valid", Held.CARRIED, 1)[0]
    if unless:
        (met,) = b.input("met", Held.CARRIED, 1)[0]
        b.output("met", To.BOTH, [[met]])
        flag = b.and_(flag, met ^ 1)
    b.output("valid", To.BOTH, [[flag]])
    for name, width in fields:
        (word,) = b.input(name, Held.CARRIED, width)
        b.output(name, To.BOTH, [[b.and_(flag, x) for x in word]])
    return b.build()


@dataclass(frozen=True)
class InCircuit:
    """:class:`anonymize.criteria.criterion.Arithmetic` of gates: a word of literals, and a literal.

    whole:  True if the only group is the whole table.
    """

    builder: Builder
    whole: bool = False

    def at_least(self, word: Word, least: int) -> Literal:
        return less_constant(self.builder, word, least) ^ 1

    def none_or_at_least(self, size: Word, least: int) -> Literal:
        """Below ``least``, the bits of ``least`` − 1 tell if a size is 0: the higher bits are examined once."""
        few = less_constant(self.builder, size, least)
        some = TRUE if self.whole else any_of(self.builder, size[: (least - 1).bit_length()])
        return self.builder.and_(few, some) ^ 1

    def not_negative(self, word: Word) -> Literal:
        return word[-1] ^ 1

    def is_zero(self, word: Word) -> Literal:
        return is_zero(self.builder, word)

    def is_empty(self, size: Word) -> Literal:
        return FALSE if self.whole else self.is_zero(size)

    def negation(self, bit: Literal) -> Literal:
        return bit ^ 1

    def any_of(self, bits: Sequence[Literal]) -> Literal:
        return any_of(self.builder, bits)

    def all_of(self, bits: Sequence[Literal]) -> Literal:
        return all_of(self.builder, bits)

    def count_of(self, bits: Sequence[Literal]) -> Word:
        return total(self.builder, [[bit] for bit in bits])

    def of_parts(self) -> InCircuit:
        return InCircuit(self.builder)


@lru_cache(maxsize=32)
def criterion_circuit(rule: Rule, width: int, n_values: int = 1, *, whole: bool = False) -> Circuit:
    """Return the circuit that tells if a group is allowed, from shares of the rule's values.

    whole:  True if the only group is the whole table.
    """
    kind, *numbers = rule.title
    b = Builder("/".join(map(str, (*_of_whole(whole), kind, width, *numbers))))
    values = b.input(rule.entry, Held.ADDITIVE_SHARED, width, n_values)
    b.output("met", To.CARRIED, [[rule.met(InCircuit(b, whole), values)]])
    return b.build()


def _of_whole(whole: bool) -> tuple[str, ...]:
    """Return the beginning of the title of a circuit for the whole table."""
    return ("root",) if whole else ()


@lru_cache(maxsize=8)
def root_circuit(
    tests: tuple[tuple[Rule, tuple[int, ...]], ...], n_values: int, below: int, to: To = To.BOTH
) -> Circuit:
    """Return the circuit of the root check: fewer than ``below`` records, and all tests met; one bit.

    tests:     rules with the numbers of their values.
    n_values:  number of values; 0 is the records, ``count``, the others are in ``difference``.
    """
    numbers = [number for rule in dict(tests) for number in rule.title[1:]]
    b = Builder("/".join(map(str, ("root", n_values - 1, *numbers, below))))
    values = b.input("count", Held.ADDITIVE_SHARED, WORD_BITS)
    on, met = InCircuit(b, whole=True), [less_constant(b, values[0], below)]
    for rule, taken in tests:
        if len(values) < n_values and max(
            taken
        ):  # not before: digests tell in which order a circuit was written
            values += b.input("difference", Held.ADDITIVE_SHARED, WORD_BITS, n_values - 1)
        met.append(rule.met(on, [values[i] for i in taken]))
    b.output("met", to, [[all_of(b, met)]])
    return b.build()
