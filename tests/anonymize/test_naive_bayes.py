"""Naive Bayes against the definition: every record is predicted by exact fractions, from a list of other records."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from anonymize.naive_bayes import Labelled, counted_of

Record = tuple[int, ...]


def records(seed: int, n: int, sizes: Sequence[int], n_classes: int) -> list[Record]:
    """Draw records with their class last; the first column depends on the class."""
    rng = random.Random(seed)  # noqa: S311
    found = []
    for _ in range(n):
        label = rng.randrange(n_classes)
        first = label % sizes[0] if rng.random() < 0.7 else rng.randrange(sizes[0])
        found.append((first, *(rng.randrange(size) for size in sizes[1:]), label))
    return found


def predicted(record: Record, others: Sequence[Record], sizes: Sequence[int], n_classes: int) -> int:
    """Return the class of the greatest probability, by the definition; of equal classes the first."""

    def probability(label: int) -> Fraction:
        own = [other for other in others if other[-1] == label]
        found = Fraction(len(own) + 1)
        for place, size in enumerate(sizes):
            found *= Fraction(sum(other[place] == record[place] for other in own) + 1, len(own) + size)
        return found

    return max(range(n_classes), key=lambda label: (probability(label), -label))


def labelled(found: Sequence[Record], weights: Sequence[int]) -> Labelled:
    columns = np.array(found, dtype=np.int64).T
    return Labelled(list(columns[:-1]), columns[-1], np.array(weights, dtype=np.int64))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("sizes", "n_classes"), [((3,), 2), ((2, 5, 4), 3), ((30, 2), 2)])
def test_every_record_is_predicted_from_all_others(seed: int, sizes: Sequence[int], n_classes: int) -> None:
    drawn = records(seed, 30, sizes, n_classes)
    kinds = sorted(set(drawn))
    weights = [drawn.count(kind) for kind in kinds]
    right = 0
    for place, record in enumerate(drawn):
        others = drawn[:place] + drawn[place + 1 :]
        right += predicted(record, others, sizes, n_classes) == record[-1]
    of_kinds = labelled(kinds, weights)
    assert counted_of(of_kinds, sizes, n_classes).accuracy_of_own(of_kinds) == pytest.approx(
        right / len(drawn)
    )


@pytest.mark.parametrize("seed", range(6))
def test_other_records_are_predicted_from_all_counted(seed: int) -> None:
    sizes, n_classes = (4, 3), 3
    learned, asked = records(seed, 40, sizes, n_classes), records(seed + 100, 25, sizes, n_classes)
    right = sum(predicted(record, learned, sizes, n_classes) == record[-1] for record in asked)
    made = counted_of(labelled(learned, [1] * len(learned)), sizes, n_classes)
    assert made.accuracy(labelled(asked, [1] * len(asked))) == pytest.approx(right / len(asked))


def test_many_rows_are_predicted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = labelled(records(1, 50, (3, 3), 2), [1] * 50)
    whole = counted_of(found, (3, 3), 2).accuracy_of_own(found)
    monkeypatch.setattr("anonymize.naive_bayes._AT_ONCE", 7)
    assert counted_of(found, (3, 3), 2).accuracy_of_own(found) == whole
    assert 0 < whole < 1


def test_a_class_of_one_record_is_not_predicted_by_itself() -> None:
    found = labelled([(0, 0), (0, 0), (1, 1)], [1, 1, 1])
    assert counted_of(found, (2,), 2).accuracy_of_own(found) == pytest.approx(2 / 3)
