"""Tournament for the best entry, which keeps decided pairs from turn to turn.

The entries of a group play first, then groups by halves of their numbers. A turn plays the pairs above entries that
are new, have changed, or have left. Which these are is public.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeAlias

from anonymize.joint.engine import Engine, Fields, carried
from crypto.circuit import Circuit
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords, expect_outcome

SLOT = "slot"
"""Field with the slot of an entry."""

_Key: TypeAlias = tuple[int, ...]
"""Numbers of the entries that play for a place in the tree, in order."""


@dataclass(frozen=True)
class Entry:
    """Entry of a tournament.

    slot:    public number that no other entry has.
    group:   public number, at least 0. Groups ascend in the order of the entries.
    fields:  a word of each field; the same object as long as nothing changes.
    """

    slot: int
    group: int
    fields: Fields = field(repr=False)


class Standings:
    """Entries and winners of earlier turns, at one of the pair."""

    def __init__(self, better: Callable[[int], Circuit]) -> None:
        """``better``: circuit that picks the better of two entries, from the bits of a slot; otherwise the first."""
        self._better = better
        self._present: dict[int, tuple[int, Fields]] = {}
        self._slots: CarriedWords | None = None
        self._winners: dict[_Key, Fields] = {}
        self._n_entered = 0

    def __repr__(self) -> str:
        return f"Standings({len(self._present)} entries, <secret>)"

    def best(self, engine: Engine, entries: Sequence[Entry], slots: CarriedWords) -> Rounds[Fields]:
        """Return the fields of the best of one or more entries, and its ``slot``.

        slots:  a word of each slot. Other words than in the turn before begin all anew.
        """
        if slots is not self._slots:
            self._slots, self._present, self._winners = slots, {}, {}
        numbers = [self._number(entry, slots) for entry in entries]
        tree = _Tree(self._winners)
        groups = groupby(zip(entries, numbers, strict=True), lambda each: each[0].group)
        top = tree.of_groups([(group, tuple(number for _, number in same)) for group, same in groups])
        for level in tree.levels:
            yield from self._play(engine, level, slots.width)
        self._winners = {key: self._winners[key] for key in tree.keys}
        return self._winners[top]

    def _number(self, entry: Entry, slots: CarriedWords) -> int:
        """Return the number of an entry, a fresh one if the entry is new or has changed."""
        number, fields = self._present.get(entry.slot, (0, None))
        if fields is entry.fields and (number,) in self._winners:
            return number
        number, self._n_entered = self._n_entered, self._n_entered + 1
        self._present[entry.slot] = number, entry.fields
        self._winners[number,] = {**entry.fields, SLOT: slots.take([entry.slot])}
        return number

    def _play(self, engine: Engine, pairs: Sequence[tuple[_Key, _Key]], slot_bits: int) -> Rounds[None]:
        """Play pairs side by side."""
        ones, others = ([self._winners[pair[side]] for pair in pairs] for side in (0, 1))
        inputs = {name: CarriedWords.concatenate([each[name] for each in ones]) for name in ones[0]}
        inputs |= {
            f"{name}/other": CarriedWords.concatenate([each[name] for each in others]) for name in ones[0]
        }
        outputs = yield from engine.run(self._better(slot_bits), len(pairs), inputs)
        for place, (one, other) in enumerate(pairs):
            self._winners[one + other] = {name: carried(outputs, name).take([place]) for name in ones[0]}


def place_of(slot: int, slots: Sequence[int], peer: str) -> int:
    """Return the place of an opened slot. Raises RemoteProtocolError for a slot of no entry."""
    return expect_outcome(slots.index(slot) if slot in slots else len(slots), len(slots), peer)


class _Tree:
    """Pairs to play, of a tree whose shape follows from groups and numbers.

    keys:    of all places in the tree.
    levels:  undecided pairs, each level after the levels that it needs.
    """

    def __init__(self, decided: dict[_Key, Fields]) -> None:
        self._decided = decided
        self._heights: dict[_Key, int] = {}
        self.keys: list[_Key] = []
        self.levels: list[list[tuple[_Key, _Key]]] = []

    def of_groups(self, groups: Sequence[tuple[int, _Key]]) -> _Key:
        """Return the key of some groups, ascending: halves of the numbers play each other."""
        first, last = groups[0][0], groups[-1][0]
        if first == last:
            return self._of_group(groups[0][1])
        half = 1 << (first ^ last).bit_length() - 1
        above = [each for each in groups if each[0] & half]
        return self._pair(self.of_groups(groups[: -len(above)]), self.of_groups(above))

    def _of_group(self, numbers: _Key) -> _Key:
        if len(numbers) == 1:
            self.keys.append(numbers)
            return numbers
        half = len(numbers) // 2
        return self._pair(self._of_group(numbers[:half]), self._of_group(numbers[half:]))

    def _pair(self, one: _Key, other: _Key) -> _Key:
        key = one + other
        self.keys.append(key)
        if key not in self._decided:
            height = max(self._heights.get(one, 0), self._heights.get(other, 0))
            self._heights[key] = height + 1
            if height == len(self.levels):
                self.levels.append([])
            self.levels[height].append((one, other))
        return key
