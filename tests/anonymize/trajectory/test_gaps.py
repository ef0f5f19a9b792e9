"""What readers guess of removed items: by hand, and against the definition."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.trajectory.gaps import Gaps, Guessed, gaps
from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.paths import Paths
from tests.support.examples import examples
from tests.support.movements import TIMED, as_left, path, some_lost, walked, walkers
from tests.support.paths import Record
from tests.support.rng import SeededRng

SAMPLE = 40
Counts = tuple[int, tuple[int, int], tuple[int, int]]


class Counting:
    """Words 0, 1, 2, …: a sample as large as there are removed items takes each once."""

    def bytes(self, n: int) -> bytes:
        return b"".join(i.to_bytes(8, "little") for i in range(n // 8))


def counts(found: Gaps) -> Counts:
    return (
        found.sampled,
        (found.neighbours.likely, found.neighbours.sure),
        (found.timed.likely, found.timed.sure),
    )


def guessed(others: list[Record]) -> Counts:
    """What is guessed of b2, the only item removed, in a table with a1 → c3 and others."""
    raw, _ = walked([(path("a1", "b2", "c3"), 0)])
    left = as_left([path("a1", "c3")], raw)
    table, _ = walked([(path("a1", "c3"), 0), *others])
    return counts(gaps(raw, left, table, TIMED, SeededRng(1), SAMPLE))


def test_of_whom_others_are_like() -> None:
    """The record itself shows nothing in between; who knows that something was read there does not count it."""
    b2, c2 = (path("a1", "b2", "c3"), 0), (path("a1", "c2", "c3"), 1)
    assert guessed([b2]) == (SAMPLE, (0, 0), (SAMPLE, SAMPLE))
    assert guessed([b2, b2]) == (SAMPLE, (SAMPLE, 0), (SAMPLE, SAMPLE))
    assert guessed([b2, b2, c2]) == (SAMPLE, (0, 0), (SAMPLE, 0))
    assert guessed([b2, b2, c2, c2]) == (SAMPLE, (0, 0), (0, 0))
    assert guessed([b2] * 9) == (SAMPLE, (SAMPLE, 0), (SAMPLE, SAMPLE))
    assert guessed([b2] * 10) == (SAMPLE, (SAMPLE, SAMPLE), (SAMPLE, SAMPLE))


def test_who_has_one_neighbour_only_does_not_count() -> None:
    assert guessed([(path("a1", "b2"), 0), (path("b2", "c3"), 0)] * 20) == (SAMPLE, (0, 0), (0, 0))


def test_a_sample_with_replacement_says_how_many_are_different() -> None:
    raw, _ = walked([(path("a1", "b2", "c3"), 0)] * 3)
    left = as_left([path("a1")] * raw.n_paths, raw)
    table, _ = walked([(path("a1"), 0)] * 3)
    found = [gaps(raw, left, table, TIMED, Counting(), n).different for n in (1, 6, 40)]
    assert found == [1, 6, 6]
    assert gaps(raw, raw, raw, TIMED, Counting()).different == 0


def test_nothing_removed_is_nothing_to_guess() -> None:
    raw, _ = walked([(path("a1"), 0)])
    assert counts(gaps(raw, raw, raw, TIMED, SeededRng(3))) == (0, (0, 0), (0, 0))


def by_definition(raw: Paths, left: Paths, table: Paths, vocabulary: Vocabulary) -> Counts:
    """Of all removed items."""
    seen = [(set(table.path(r)), int(table.weights[r])) for r in range(table.n_paths)]
    size = vocabulary.n_locations
    probabilities = []
    for r in range(raw.n_paths):
        rest = left.path(r)
        for x in set(raw.path(r)) - set(rest):
            near = {*[y for y in rest if y < x][-1:], *[y for y in rest if y > x][:1]}
            cases = [(shown, w) for shown, w in seen if near <= shown]
            timed = [case for case in cases if any(y // size == x // size for y in case[0])]
            hits = sum(w for shown, w in cases if x in shown)
            both = [
                hits / max(sum(w for _, w in found), 1)
                for found in (cases, timed if vocabulary.timed else cases)
            ]
            probabilities += [both] * int(raw.weights[r])
    neighbours, by_time = (
        (sum(p[i] > 0.5 for p in probabilities), sum(p[i] > 0.9 for p in probabilities)) for i in (0, 1)
    )
    return len(probabilities), neighbours, by_time


@settings(max_examples=examples(60))
@given(walkers(), walkers(12), st.booleans(), st.data())
def test_a_guess_is_its_definition(
    records: list[Record], others: list[Record], timed: bool, data: st.DataObject
) -> None:
    vocabulary = TIMED if timed else Vocabulary(TIMED.n_items)
    raw, _ = walked(records)
    left = data.draw(some_lost(raw))
    table, _ = walked(others)
    expected = by_definition(raw, left, table, vocabulary)
    assert counts(gaps(raw, left, table, vocabulary, Counting(), expected[0])) == expected


def test_what_is_guessed_is_not_printed() -> None:
    assert repr(Gaps(3, 3, Guessed(2, 1), Guessed(2, 2))) == "Gaps()"
