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
from crypto.builder import FALSE, Builder, Literal, Word, add, subtract
from crypto.circuit import Circuit, Held, To
from crypto.circuits.arithmetic import (
    add_wide,
    all_of,
    any_of,
    equal,
    extend,
    is_zero,
    less,
    less_constant,
    less_signed,
    multiply,
    multiply_by_public,
    negate_if,
    total,
)
from crypto.circuits.score import FRACTION_BITS, LOG_ERROR, f, f_word
from crypto.circuits.selection import choose, keep_if, one_hot, parity


@dataclass(frozen=True)
class Widths:
    """Bits of the words in a run, from public bounds: records, class values, grid points.

    count:    bits of a count of records.
    loss:     bits of impurities, also summed over the sides of a specialization, and so of a gain above 0.
    key:      bits of gain / |T[v]| with enough fractional bits to separate different fractions.
    index:    bits of a grid point within its interval.
    """

    count: int
    loss: int
    key: int
    index: int

    @property
    def fraction(self) -> int:
        """Fractional bits of a key: two fractions with denominators below 2**count differ by 2**-fraction."""
        return 2 * self.count

    @property
    def shift(self) -> int:
        """Bits of the reciprocal that multiplies gains (Granlund and Montgomery, PLDI 1994)."""
        return self.count + self.loss + self.fraction

    @property
    def magic_words(self) -> int:
        return -(-(self.shift + 1) // WORD_BITS)

    @property
    def key_words(self) -> tuple[int, ...]:
        """Widths of a key's words in a session, lowest first."""
        return tuple(min(WORD_BITS, self.key - start) for start in range(0, self.key, WORD_BITS))


def widths_for(n_records: int, n_classes: int, most_points: int) -> Widths:
    """Return the widths for at most ``n_records`` records and intervals of at most ``most_points`` points."""
    count = max(2, n_records.bit_length())
    # InfoGain is at most log2(classes) bits, in units of 2**-20, give or take the rounding of F.
    most_bits = max(1, (n_classes - 1).bit_length()) + 1
    key = 2 * count + 20 + most_bits.bit_length() + 1
    loss = most_impurity(n_records, n_classes).bit_length()
    return Widths(count, loss, key, max(1, most_points.bit_length()))


def most_impurity(n_records: int, n_classes: int) -> int:
    """Return a bound of F(n) − Σ F(n_c), also summed over parts of the records.

    F(x) = x·L(x), and L(x) is within LOG_ERROR of 2**20·log2 x. So F(n) − Σ F(n_c) is at most
    Σ n_c·(2**20·log2(n / n_c) + 2·LOG_ERROR), and Σ n_c·log2(n / n_c) is at most n·log2(classes). The result is not
    negative, as F(x + y) >= F(x) + F(y).
    """
    log_classes = (n_classes - 1).bit_length()
    return max(1, n_records) * ((log_classes << FRACTION_BITS) + 2 * LOG_ERROR)


def magic(size: int, widths: Widths) -> list[int]:
    """Return the reciprocal of a public size in 64-bit words: key = gain · magic >> (shift − fraction) is exact.

    For m = ceil(2**shift / size) and any gain n < 2**loss, floor(n · 2**fraction / size) equals floor(n · m /
    2**(shift − fraction)): the error n·2**fraction·(m − 2**shift/size)/2**shift is below 2**(loss + fraction − shift)
    = 2**-count <= 1/size.
    """
    m = -(-(1 << widths.shift) // size)
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


@lru_cache(maxsize=32)
def enter_circuit(width: int) -> Circuit:
    """Return the circuit that carries a loss with additive shares."""
    b = Builder(f"enter/{width}")
    (loss,) = b.input("loss", Held.ADDITIVE_SHARED, width)
    b.output("loss", To.CARRIED, [loss])
    return b.build()


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
    return _better(b, pairs, less_signed(b, other, one, log_depth=True))


@lru_cache(maxsize=32)
def least_loss_circuit(
    loss_width: int, index_width: int, bits: tuple[str, ...] = (), *, log_depth: bool
) -> Circuit:
    """Return the circuit that picks the grid point with the smaller loss; ties: the first. A loss is not negative.

    A grid point without records on a side has the loss of its whole node, so no gain, and needs no flag.

    bits:  names of further carried bits of each point.
    """
    title = ("least-loss", loss_width, index_width, *bits, "tree" if log_depth else "ripple")
    b = Builder("/".join(map(str, title)))
    pairs = _pairs(b, [("loss", loss_width), ("index", index_width), *((name, 1) for name in bits)])
    one, other = pairs["loss"]
    _output_chosen(b, pairs, less(b, other, one, log_depth=log_depth))
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
    return _better(b, pairs, less_signed(b, one, other, log_depth=True))


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
    is_better = less(b, multiply(b, n, other_d), multiply(b, other_n, d), log_depth=True)
    return _better(b, pairs, is_better)


@lru_cache(maxsize=32)
def key_circuit(widths: Widths) -> Circuit:
    """Return the circuit of a candidate's key: InfoGain, comparable as an integer; invalid without gain."""
    b = Builder(f"key/{widths}")
    (loss,) = b.input("loss", Held.CARRIED, widths.loss)
    (parent,) = b.input("parent", Held.PUBLIC, widths.loss)
    reciprocal = [
        bit for word in b.input("magic", Held.PUBLIC, WORD_BITS, widths.magic_words) for bit in word
    ]
    gain = subtract(b, parent, loss)
    product = multiply_by_public(b, gain, reciprocal[: widths.shift + 1])
    key = extend(product[widths.shift - widths.fraction :], widths.key)[: widths.key]
    for name, word in _key_parts(widths, key):
        b.output(name, To.CARRIED, [word])
    b.output("valid", To.CARRIED, [[less(b, loss, parent)]])
    return b.build()


@lru_cache(maxsize=32)
def better_candidate_circuit(widths: Widths, slot_width: int) -> Circuit:
    """Return the circuit that picks the valid candidate with the greater key; otherwise the first."""
    b = Builder(f"better-candidate/{widths}/{slot_width}")
    fields = [(f"key{i}", w) for i, w in enumerate(widths.key_words)]
    pairs = _pairs(b, [*fields, ("valid", 1), ("index", widths.index), ("slot", slot_width)])
    keys = [[x for name, _ in fields for x in pairs[name][side]] for side in (0, 1)]
    return _better(b, pairs, less(b, keys[0], keys[1], log_depth=True))


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


LINES = 16
"""Options of an instance of :func:`selection_circuit`."""


@lru_cache(maxsize=32)
def lines_circuit(index_width: int, n_lines: int) -> Circuit:
    """Return the circuit of one-bit lines: line ``index`` is 1. An index of ``n_lines`` or more is not expected."""
    b = Builder(f"lines/{index_width}/{n_lines}")
    (index,) = b.input("index", Held.CARRIED, index_width)
    lines = one_hot(b, index[: max(1, (n_lines - 1).bit_length())])
    b.output("line", To.CARRIED, [[line] for line in lines[:n_lines]])
    return b.build()


@lru_cache(maxsize=32)
def selection_circuit(width: int) -> Circuit:
    """Return the circuit of the shared count whose line is 1; 0 without such a line."""
    b = Builder(f"selection/{width}")
    lines = b.input("line", Held.CARRIED, 1, LINES)
    counts = b.input("count", Held.ADDITIVE_SHARED, width, LINES)
    kept = [keep_if(b, line, count) for (line,), count in zip(lines, counts, strict=True)]
    b.output("count", To.XOR_SHARED, [[parity(b, bits) for bits in zip(*kept, strict=True)]])
    return b.build()


@lru_cache(maxsize=32)
def additive_circuit(width: int, wide: int) -> Circuit:
    """Return the circuit that turns a count in XOR shares into additive shares of ``wide`` bits."""
    b = Builder(f"additive/{width}/{wide}")
    (count,) = b.input("count", Held.XOR_SHARED, width)
    b.output("count", To.ADDITIVE_SHARED, [extend(count, wide)])
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
