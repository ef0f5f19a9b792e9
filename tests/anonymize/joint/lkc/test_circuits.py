"""The circuits of sealed runs, in the clear, at the ends of their ranges: no width is a bit too small."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.criteria.confidence import NotNegative
from anonymize.criteria.size import LargeEnough
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.circuits import Widths, most_impurity, widths_for
from anonymize.score import impurity
from anonymize.table import MAX_RECORDS
from crypto.circuit import Circuit, evaluate
from crypto.circuits.score import f

RECORDS = (1, 2, 3, 63, 64, 1000, 2**20 - 1, 2**30, MAX_RECORDS)


def outputs(circuit: Circuit, **inputs: Sequence[Any]) -> dict[str, list[list[int]]]:
    """Evaluate one instance per entry; ``other_x`` stands for ``x/other``, one word or a list of them each."""
    columns = {}
    for name, values in inputs.items():
        key = f"{name.removeprefix('other_')}/other" if name.startswith("other_") else name
        columns[key] = np.array(values, dtype=np.uint64).reshape(len(values), -1)
    batch = len(next(iter(columns.values())))
    return {name: words.tolist() for name, words in evaluate(circuit, batch, columns).items()}


def flat(words: list[list[int]]) -> list[int]:
    return [word for (word,) in words]


# ---- widths


@pytest.mark.parametrize("n", RECORDS)
def test_counts_scores_and_losses_fit(n: int) -> None:
    widths = widths_for(n, 2, 1)
    assert n < 1 << widths.count
    assert int(impurity(np.array([n - n // 2, n // 2]))) < 1 << widths.loss


@given(
    st.lists(
        st.lists(st.integers(0, 2**20) | st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=5
    )
)
def test_no_impurity_is_above_its_bound(parts: list[list[int]]) -> None:
    """Of a table, and of its parts together; F of semantics §3.4 is rounded, so log2(classes) alone is no bound."""
    table = np.array(parts)
    whole, summed = int(impurity(table.sum(axis=0))), int(impurity(table).sum())
    assert 0 <= min(whole, summed)
    assert max(whole, summed) <= most_impurity(int(table.sum()), table.shape[1])


@pytest.mark.parametrize("n_classes", [2, 4, 16])
@pytest.mark.parametrize("n", [16, 2**20, 2**30])
def test_the_bound_of_impurities_is_close(n: int, n_classes: int) -> None:
    found = int(impurity(np.full(n_classes, n // n_classes)))
    assert found <= most_impurity(n, n_classes) <= found + 8 * n


@pytest.mark.parametrize("points", [1, 2, 3, 4, 1023, 1024])
def test_the_last_grid_point_fits(points: int) -> None:
    assert points <= 1 << widths_for(10, 2, points).index


# ---- keys


def keys_of(widths: Widths, n: int, gains: Sequence[tuple[int, int]]) -> tuple[list[bool], list[int]]:
    """Validity and key for (gain, size): the gain as a parent's impurity without loss, or below 0 as a loss.

    A gain of all ``n`` records gives the same key without a product.
    """
    losses, parents = [max(0, -gain) for gain, _ in gains], [max(0, gain) for gain, _ in gains]
    given = reciprocals(widths, n, [size for _, size in gains])
    found = read_keys(widths, outputs(circuits.key_circuit(widths), loss=losses, parent=parents, **given))
    wholes = [i for i, (_, size) in enumerate(gains) if size == n]
    if wholes:
        some = {"loss": [losses[i] for i in wholes], "parent": [parents[i] for i in wholes]}
        of_wholes = read_keys(widths, outputs(circuits.whole_key_circuit(widths), **some))
        valid, keys = ([part[i] for i in wholes] for part in found)
        assert of_wholes[0] == valid
        assert [k for k, met in zip(of_wholes[1], valid, strict=True) if met] == [
            k for k, met in zip(keys, valid, strict=True) if met
        ]
    return found


def read_keys(widths: Widths, words: dict[str, list[list[int]]]) -> tuple[list[bool], list[int]]:
    keys = [0] * len(words["valid"])
    for i, width in reversed(list(enumerate(widths.key_words))):
        keys = [key << width | word for key, word in zip(keys, flat(words[f"key{i}"]), strict=True)]
    return [bool(bit) for bit in flat(words["valid"])], keys


def reciprocals(widths: Widths, n: int, sizes: Sequence[int]) -> dict[str, list[Any]]:
    return {
        "magic": [circuits.magic(size, n, widths) for size in sizes],
        "size bits": [circuits.size_bits(size) for size in sizes],
    }


def expect_order_of_fractions(n: int, n_classes: int, gains: Sequence[tuple[int, int]]) -> None:
    """Keys compare like the fractions: equal ones are equal, however they are written."""
    valid, keys = keys_of(widths_for(n, n_classes, 1), n, gains)
    assert valid == [gain > 0 for gain, _ in gains]
    ranked = sorted((Fraction(*gain), key) for gain, key, met in zip(gains, keys, valid, strict=True) if met)
    for (one, key), (other, greater) in itertools.pairwise(ranked):
        assert (key == greater) == (one == other)
        assert key <= greater


@pytest.mark.parametrize("n_classes", [1, 2, 5])
@pytest.mark.parametrize("n", RECORDS)
def test_keys_are_quotients_rounded_down(n: int, n_classes: int) -> None:
    """Just above, at and below whole quotients, at the ends of sizes and gains: what is left out tells nowhere."""
    widths = widths_for(n, n_classes, 1)
    sizes = {size for k in range(32) for size in (1 << k, (1 << k) + 1, (1 << k) - 1, n - k) if 0 < size <= n}
    gains = []
    for size in sorted(sizes):
        most, unit = most_impurity(size, n_classes), size // math.gcd(size, n << widths.fraction)
        gains += [
            (min(most, max(1, near + by)), size)
            for near in (1, unit, most // unit // 2 * unit, most // unit * unit, most // 3)
            for by in (-1, 0, 1)
        ]
    valid, keys = keys_of(widths, n, gains)
    assert all(valid)
    assert keys == [(n * gain << widths.fraction) // size for gain, size in gains]


@pytest.mark.some(4)
@pytest.mark.parametrize("n", RECORDS)
def test_keys_compare_like_fractions_with_the_greatest_denominators(n: int) -> None:
    """Neighbours: (s − 1)/s for sizes s in a row differ by 1/(s·(s − 1)); and fractions that can be reduced."""
    sizes = [size for size in range(max(1, n - 6), n + 1) if size]
    gains = [(t * size - d, size) for size in sizes for t in (1, 1 << 19, (1 << 20) - 1) for d in (0, 1)]
    halves = [(size // 2 * (1 << 20), size) for size in sizes if size % 2 == 0]
    thirds = [(size // 3, size) for size in (3, 6, 9, 12, 3 * (n // 3)) if 0 < size <= n]
    expect_order_of_fractions(n, 2, [*gains, *halves, *thirds, (0, 1), (0, n), (1, n), (-1, n)])


@pytest.mark.some(12)
@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 16, 17, 300])
@pytest.mark.parametrize("n", RECORDS)
def test_the_greatest_info_gain_fits(n: int, n_classes: int) -> None:
    """All classes equally frequent and perfectly told apart: log2(classes) bits, the most there is."""
    if n < n_classes:
        return
    gains = []
    for size in (n // n_classes * n_classes, n_classes):
        parent = int(impurity(np.full(n_classes, size // n_classes)))
        gains += [(parent, size), (parent // 2, size), (1, size)]
    expect_order_of_fractions(n, n_classes, gains)


@pytest.mark.parametrize("n", [5, MAX_RECORDS])
def test_a_node_that_cannot_be_split_stays_invalid(n: int) -> None:
    """All records on a side: the loss is the loss of the whole node. A greater loss comes from rounding."""
    widths, whole = widths_for(n, 2, 1), int(impurity(np.array([n - n // 2, n // 2])))
    losses = [whole, whole + 1, (1 << widths.loss) - 1]
    given_sizes = reciprocals(widths, n, [n] * len(losses))
    given: dict[str, Any] = {"loss": losses, "parent": [whole] * len(losses)}
    words = outputs(circuits.key_circuit(widths), **given, **given_sizes)
    assert flat(words["valid"]) == [0] * len(losses)
    assert flat(outputs(circuits.whole_key_circuit(widths), **given)["valid"]) == [0] * len(losses)


# ---- the lesser of two losses


@pytest.mark.parametrize("width", [1, 3])
def test_the_lesser_of_two_shared_losses(width: int) -> None:
    pairs = list(itertools.product(range(1 << width), repeat=2))
    differences = [(other - one) % (2 << width) for one, other in pairs]
    words = outputs(circuits.least_share_circuit(width), loss=pairs, difference=differences)
    assert flat(words["loss"]) == [min(pair) for pair in pairs]
    assert flat(words["index"]) == [int(other < one) for one, other in pairs]


def test_shares_are_selected_at_half_the_cost() -> None:
    circuit = circuits.least_share_circuit(36)
    assert (circuit.and_gates, circuit.table_blocks) == (36 + 2 * 36 + 35, 2 * (36 + 36 + 35) - 1)


# ---- tests of counts


@pytest.mark.parametrize("q", [1, 5, 2**31 - 1])
@pytest.mark.parametrize("n", RECORDS)
def test_signs_of_the_greatest_differences(n: int, q: int) -> None:
    """p·n − q·count lies between −q·N and q·N; below 2^62, or the run is refused."""
    if q * n >= 1 << 62:
        return
    bits = (q * n).bit_length() + 1
    values = [-q * n, -q * n + 1, -1, 0, 1, q * n - 1, q * n]
    words = outputs(
        circuits.criterion_circuit(NotNegative(), bits), difference=[value % (1 << bits) for value in values]
    )
    assert flat(words["met"]) == [int(value >= 0) for value in values]


@pytest.mark.parametrize("least", [1, 2, 3, 64, 2**30, MAX_RECORDS, MAX_RECORDS + 1, 10**30])
@pytest.mark.parametrize("n", RECORDS)
def test_empty_groups_or_large_enough_ones(n: int, least: int) -> None:
    counts = [x for x in (0, 1, least - 1, least, least + 1, n - 1, n) if 0 <= x <= n]
    words = outputs(circuits.criterion_circuit(LargeEnough(least), widths_for(n, 1, 1).count), count=counts)
    assert flat(words["met"]) == [int(count == 0 or count >= least) for count in counts]


def test_the_root_check_is_a_conjunction() -> None:
    circuit = circuits.root_circuit(
        ((LargeEnough(3), (0,)), (NotNegative(), (1,)), (NotNegative(), (2,))), 3, 10
    )
    cases = [
        (n, a, b)
        for n in (0, 2, 3, 9, 10, 2**40, 2**64 - 1)
        for a in (-(1 << 62), -1, 0, 1 << 61)
        for b in (-1, 0)
    ]
    words = outputs(
        circuit, count=[n for n, _, _ in cases], difference=[[a % 2**64, b % 2**64] for _, a, b in cases]
    )
    assert flat(words["met"]) == [int(3 <= n < 10 and a >= 0 and b >= 0) for n, a, b in cases]


def test_the_root_check_without_bounds() -> None:
    counts = [0, 1, MAX_RECORDS, MAX_RECORDS + 1, 2**63]
    assert flat(
        outputs(circuits.root_circuit(((LargeEnough(1), (0,)),), 1, MAX_RECORDS + 1), count=counts)["met"]
    ) == [0, 1, 1, 0, 0]


# ---- choosing


@pytest.mark.parametrize("n", RECORDS)
def test_imbalance(n: int) -> None:
    width = widths_for(n, 1, 5).count
    sides = [
        (left, size - left) for size in {0, 1, n // 2, n} for left in {0, 1, size // 2, size} if left <= size
    ]
    index = [i % 5 for i in range(len(sides))]
    general = outputs(circuits.imbalance_circuit(width, 3), sides=sides, index=index)
    assert flat(general["loss"]) == [abs(left - right) for left, right in sides]
    assert flat(general["valid"]) == [int(left > 0 and right > 0) for left, right in sides]
    assert flat(general["index"]) == index


@pytest.mark.parametrize("n_classes", [1, 2, 5])
@pytest.mark.parametrize("n", RECORDS)
def test_impurities(n: int, n_classes: int) -> None:
    """Σ over the sides, up to a table in which every class is equally frequent."""
    widths, f_width = widths_for(n, n_classes, 1), f((1 << widths_for(n, 1, 1).count) - 1).bit_length()
    tables = [[n // n_classes] * n_classes, [n] + [0] * (n_classes - 1), [0] * n_classes]
    scores = [[f(sum(table)), *map(f, table)] for table in tables]
    losses = flat(outputs(circuits.impurity_circuit(n_classes, f_width, widths.loss), f=scores)["loss"])
    assert losses == [int(impurity(np.array(table))) for table in tables]
    added = outputs(circuits.add_circuit(widths.loss), loss=losses, other_loss=losses[::-1])
    assert flat(added["loss"]) == [
        (a + b) % (1 << widths.loss) for a, b in zip(losses, losses[::-1], strict=True)
    ]


def pairs(values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    both = list(itertools.product(values, values))
    return [one for one, _ in both], [other for _, other in both]


@pytest.mark.parametrize("width", [4, 58])
def test_the_better_split(width: int) -> None:
    """The valid one with the smaller loss, of equal ones the first; losses are compared as signed words."""
    top = (1 << (width - 1)) - 1
    one, other = pairs([(loss, valid) for loss in (-top - 1, -1, 0, 1, top) for valid in (0, 1)])
    words = outputs(
        circuits.better_split_circuit(width, 2),
        loss=[loss % (1 << width) for loss, _ in one],
        other_loss=[loss % (1 << width) for loss, _ in other],
        valid=[valid for _, valid in one],
        other_valid=[valid for _, valid in other],
        index=[1] * len(one),
        other_index=[2] * len(one),
    )
    second = [b[1] > a[1] or (b[1] == a[1] == 1 and b[0] < a[0]) for a, b in zip(one, other, strict=True)]
    assert flat(words["index"]) == [1 + s for s in second]
    chosen = [b if s else a for a, b, s in zip(one, other, second, strict=True)]
    assert flat(words["loss"]) == [loss % (1 << width) for loss, _ in chosen]
    assert flat(words["valid"]) == [valid for _, valid in chosen]


@pytest.mark.parametrize("level", [1, 2, 7])
@pytest.mark.parametrize("width", [1, 4, 36])
def test_the_least_loss(width: int, level: int) -> None:
    """The smaller unsigned loss with its index and its bit, of equal ones the first."""
    top = (1 << width) - 1
    one, other = pairs([(loss, flag) for loss in {0, 1, top // 2, top} for flag in (0, 1)])
    words = outputs(
        circuits.least_loss_circuit(width, level, ("large",)),
        loss=[loss for loss, _ in one],
        other_loss=[loss for loss, _ in other],
        large=[flag for _, flag in one],
        other_large=[flag for _, flag in other],
        index=[1] * len(one),
        other_index=[0] * len(one),
    )
    second = [b[0] < a[0] for a, b in zip(one, other, strict=True)]
    chosen = [b if s else a for a, b, s in zip(one, other, second, strict=True)]
    assert list(zip(flat(words["loss"]), flat(words["large"]), strict=True)) == chosen
    assert flat(words["index"]) == [1 << level if s else 1 for s in second]


@pytest.mark.parametrize("width", [1, 4, 36])
def test_an_admitted_split_has_gain_and_large_children(width: int) -> None:
    top = (1 << width) - 1
    cases = list(itertools.product({0, 1, top - 1, top}, {0, 1, top}, (0, 1)))
    words = outputs(
        circuits.admitted_circuit(width, 3),
        loss=[loss for loss, _, _ in cases],
        parent=[parent for _, parent, _ in cases],
        large=[large for _, _, large in cases],
        index=[5] * len(cases),
    )
    admitted = [int(loss < parent and large == 1) for loss, parent, large in cases]
    assert flat(words["valid"]) == admitted
    assert flat(words["index"]) == [5 * bit for bit in admitted]


@pytest.mark.parametrize("n", [1, MAX_RECORDS])
def test_the_better_candidate(n: int) -> None:
    """The valid one with the greater key, whichever words differ; of equal ones the first."""
    widths = widths_for(n, 2, 3)
    edges = [0, 1, (1 << widths.key) - 1, 1 << (widths.key - 1), (1 << (widths.key - 1)) - 1]
    one, other = pairs([(key, valid) for key in edges for valid in (0, 1)])
    inputs: dict[str, Any] = {}
    for prefix, side, slot in (("", one, 0), ("other_", other, 1)):
        start = 0
        for i, width in enumerate(widths.key_words):
            inputs[f"{prefix}key{i}"] = [key >> start & ((1 << width) - 1) for key, _ in side]
            start += width
        inputs |= {f"{prefix}valid": [valid for _, valid in side]}
        inputs |= {f"{prefix}index": [slot + 1] * len(side), f"{prefix}slot": [slot] * len(side)}
    words = outputs(circuits.better_candidate_circuit(widths, 1), **inputs)
    second = [b[1] > a[1] or (b[1] == a[1] == 1 and b[0] > a[0]) for a, b in zip(one, other, strict=True)]
    assert flat(words["slot"]) == [int(s) for s in second]
    assert flat(words["index"]) == [1 + s for s in second]


def test_nothing_is_opened_with_a_flag_of_0() -> None:
    words = outputs(
        circuits.open_circuit((("index", 4), ("slot", 2))), valid=[0, 1], index=[9, 9], slot=[3, 3]
    )
    assert words == {"valid": [[0], [1]], "index": [[0], [9]], "slot": [[0], [3]]}


# ---- strict: what is chosen at a secret split


@pytest.mark.parametrize("n_lines", [2, 4, 16, 64])
def test_the_line_of_the_index_is_one(n_lines: int) -> None:
    indices = list(range(n_lines))
    lines = outputs(circuits.lines_circuit(7, n_lines), index=indices)["line"]
    assert lines == np.eye(n_lines, dtype=int).tolist()


def test_a_difference_is_zero_or_not() -> None:
    values, own = np.array([0, 1, 2, 63, 64, 127]), np.array([5, 0, 127, 64, 64, 3])
    circuit = circuits.zero_circuit(7)
    words = outputs(circuit, garbler=own.tolist(), evaluator=((own - values) % 128).tolist())
    assert flat(words["met"]) == [1, 0, 0, 0, 0, 0]
    assert circuit.and_gates == 6


def test_both_bits() -> None:
    met = outputs(circuits.both_circuit(), met=[0, 0, 1, 1], other_met=[0, 1, 0, 1])
    assert flat(met["met"]) == [0, 0, 0, 1]


def test_the_first_valid_candidate_is_taken() -> None:
    for valid, other in itertools.product((0, 1), repeat=2):
        words = outputs(
            circuits.first_candidate_circuit(4, 3),
            valid=[valid],
            other_valid=[other],
            index=[5],
            other_index=[9],
            slot=[1],
            other_slot=[6],
        )
        second = not valid and other
        assert flat(words["valid"]) == [valid | other]
        assert (flat(words["index"]), flat(words["slot"])) == (([9], [6]) if second else ([5], [1]))
