"""Rules of criteria, judged by the compute pair: inside circuits, of shares, many groups at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from anonymize.criteria.criterion import Bools, Criterion, Measure, Rule, alike
from anonymize.joint.engine import Engine, carried, low_bits
from anonymize.joint.lkc import circuits
from anonymize.joint.zeros import ZeroForms
from anonymize.table import Ints
from crypto.circuit import Held, To
from crypto.encoding import Words
from crypto.rounds import Rounds
from crypto.two_party import Asked, CarriedWords, Outputs


@dataclass(frozen=True)
class RuleTests:
    """Tests by a rule, with own shares of the tested numbers.

    width:  bits of the numbers.
    words:  own shares modulo 2**width or more: uint64, shape (n_words,).
    taken:  numbers of the words in each test, in the order of the rule: int64, shape (n_tests, n_values).
    """

    rule: Rule
    width: int
    words: Words = field(repr=False)
    taken: Ints = field(repr=False)

    @staticmethod
    def of_rows(rule: Rule, width: int, values: Words) -> RuleTests:
        """Return tests with separate numbers: shape (n_tests, n_values)."""
        return RuleTests(rule, width, values.reshape(-1), np.arange(values.size).reshape(values.shape))

    @property
    def kind(self) -> tuple[Rule, int, int]:
        """Kind of the tests. Tests of the same kind can be judged together."""
        return self.rule, self.width, self.taken.shape[1]

    @staticmethod
    def together(parts: Sequence[RuleTests]) -> RuleTests:
        """Return tests of the same kind, part after part."""
        starts = np.cumsum([0, *(len(part.words) for part in parts)])[:-1]
        taken = [part.taken + start for part, start in zip(parts, starts.tolist(), strict=True)]
        words = np.concatenate([part.words for part in parts])
        return RuleTests(parts[0].rule, parts[0].width, words, np.concatenate(taken))


def judged(engine: Engine, tests: Sequence[RuleTests], *, whole: bool = False) -> Rounds[list[CarriedWords]]:
    """Test many groups at once. Return carried bits of each kind of tests; see :func:`judged_beside`."""
    return (yield from judged_beside(engine, tests, (), whole=whole))[0]


def judged_beside(
    engine: Engine, tests: Sequence[RuleTests], others: Sequence[Asked], *, whole: bool = False
) -> Rounds[tuple[list[CarriedWords], list[Outputs]]]:
    """Test many groups at once, side by side with other batches. Return a carried bit for each test, and the other
    outputs.

    For a rule of zeros every number is examined once. The rest follows from carried bits without a further round.

    whole:  True if the only group is the whole table.
    """
    asked = [_first_look(engine, each, whole=whole) for each in tests]
    outputs = yield from engine.run_all([*asked, *others])
    met = []
    for each, first in zip(tests, outputs[: len(asked)], strict=True):
        bits = carried(first, "met")
        met.append((yield from _by_zeros(engine, each, bits, whole=whole)) if each.rule.of_zeros else bits)
    return met, outputs[len(asked) :]


def judged_each(engine: Engine, tests: Sequence[Sequence[RuleTests]]) -> Rounds[tuple[CarriedWords, Ints]]:
    """Test the groups of several owners, tests of the same kind together. Return a carried bit for each test, and the
    number of its owner: shape (n_tests,). There is a test.
    """
    by_kind: dict[tuple[Rule, int, int], list[tuple[int, RuleTests]]] = {}
    for owner, of_owner in enumerate(tests):
        for part in of_owner:
            by_kind.setdefault(part.kind, []).append((owner, part))
    together = [RuleTests.together([part for _, part in parts]) for parts in by_kind.values()]
    met = yield from judged(engine, together)
    owners = [np.full(len(part.taken), owner) for parts in by_kind.values() for owner, part in parts]
    return CarriedWords.concatenate(met), np.concatenate(owners)


def _first_look(engine: Engine, tests: RuleTests, *, whole: bool) -> Asked:
    """Return the question if the tests are met; for a rule of zeros, the question if each number is 0."""
    rule, width, n_values = tests.kind
    if rule.of_zeros:
        return _zeros_asked(engine, width, tests.words, To.CARRIED)
    circuit = circuits.criterion_circuit(rule, width, n_values, whole=whole)
    return circuit, len(tests.taken), {rule.entry: low_bits(tests.words[tests.taken], width)}


def _by_zeros(engine: Engine, tests: RuleTests, zero: CarriedWords, *, whole: bool) -> Rounds[CarriedWords]:
    """Judge tests that only look for numbers of 0; zero: a bit for each number."""
    rule, _, n_values = tests.kind
    inputs = {"zero": zero.take(tests.taken.reshape(-1))}
    circuit = circuits.by_zeros_circuit(rule, n_values, whole=whole)
    return carried((yield from engine.run(circuit, len(tests.taken), inputs)), "met")


def are_zero(engine: Engine, width: int, shares: Words, to: To) -> Rounds[Outputs]:
    """Compute if own shared numbers are 0 modulo 2**width, as the output ``met``."""
    return (yield from engine.run(*_zeros_asked(engine, width, shares, to)))


def _zeros_asked(engine: Engine, width: int, shares: Words, to: To) -> Asked:
    """Return the question of :func:`are_zero`."""
    own = shares if engine.role is Held.GARBLER else np.uint64(0) - shares
    inputs = {engine.role.value: low_bits(own.reshape(-1, 1), width)}
    return circuits.zero_circuit(width, to), len(shares), inputs


WIDTH_STEP = 4
"""Bits by which the numbers of smaller groups are narrower. Each width takes a circuit of its own."""


def tests_of(
    criteria: Sequence[Criterion],
    stakes: Mapping[Criterion, Bools],
    counts: Mapping[Measure, Words],
    sizes: Ints,
    n_records: int,
) -> Iterator[RuleTests]:
    """Yield all tests of criteria, equal rules and widths together; arguments as in :func:`tests_of_zeros`.

    sizes:  records of each group, public: shape (n_groups,). The numbers of a smaller group have fewer bits.
    """
    valued = [criterion for criterion in criteria if not criterion.rule.of_zeros]
    for (rule, _), same in alike(valued).items():
        most = max(form.bits(n_records) for each in same for case in each.cases for form in case)
        parts = [_values(criterion, stakes[criterion], counts, sizes) for criterion in same]
        values, bits = (np.concatenate(part) for part in zip(*parts, strict=True))
        widths = most - np.maximum(0, most - bits) // WIDTH_STEP * WIDTH_STEP
        for width in np.unique(widths).tolist():
            yield RuleTests.of_rows(rule, width, values[widths == width])
    yield from tests_of_zeros(criteria, stakes, counts, n_records)


def _values(
    criterion: Criterion, stake: Bools, counts: Mapping[Measure, Words], sizes: Ints
) -> tuple[Words, Ints]:
    """Return own shares of the rule's values, a row for every (case, group, child) at stake, and the bits of each."""
    rows, bits = [], []
    for forms, groups in zip(criterion.cases, stake.T, strict=True):
        taken = {measure: counts[measure][groups] for form in forms for measure, _ in form.terms}
        rows.append(np.stack([form.of(taken).reshape(-1) for form in forms], axis=1))
        of_groups = np.max([form.bits_of(sizes[groups]) for form in forms], axis=0)
        bits.append(of_groups.repeat(len(rows[-1]) // max(1, len(of_groups))))
    return np.concatenate(rows), np.concatenate(bits)


def tests_of_zeros(
    criteria: Sequence[Criterion],
    stakes: Mapping[Criterion, Bools],
    counts: Mapping[Measure, Words],
    n_records: int,
) -> Iterator[RuleTests]:
    """Yield the tests of criteria whose rules look at zeros alone, in groups of a table of ``n_records`` records.

    stakes:  tested cases, shape (n_groups, n_cases) each.
    counts:  own shares of every (group, child): shape (n_groups, n_children) each.
    """
    measures = tuple(counts)
    forms = ZeroForms(criteria, measures)
    if not forms.criteria:
        return
    words = np.stack([counts[measure] for measure in measures])
    own, everywhere = [stakes[c] for c in forms.criteria], np.ones(words.shape[1:], dtype=bool)
    wanted = forms.wanted(own, everywhere)
    numbers = forms.numbers(wanted, words)
    for tests in forms.tests(own, everywhere, wanted):
        there, taken = np.unique(tests.taken, return_inverse=True)
        yield RuleTests(tests.rule, forms.bits(n_records), numbers[there], taken.reshape(tests.taken.shape))
