"""Contest of candidates at the pair: nobody learns more than the best one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from anonymize.joint.engine import Engine, Fields, opened
from anonymize.joint.lkc import circuits
from anonymize.joint.standings import SLOT, Entry, Standings, place_of
from crypto.circuit import Circuit
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords


@dataclass(frozen=True)
class Entrant:
    """Candidate in a contest.

    name:    public; no other candidate has it.
    group:   public; see :class:`anonymize.joint.standings.Entry`.
    fields:  of the contest, and ``valid``; the same object as long as nothing changes.
    """

    name: object
    group: int
    fields: Fields = field(repr=False)


class Contest:
    """Contest that goes on from turn to turn, at one of the pair."""

    def __init__(self, better: Callable[[int], Circuit]) -> None:
        """``better``: as in :class:`anonymize.joint.standings.Standings`."""
        self._slots, self._standings = _Slots(), Standings(better)

    def best(
        self,
        engine: Engine,
        entrants: Sequence[Entrant],
        shown: Sequence[tuple[str, int]] = (),
        unless: CarriedWords | None = None,
    ) -> Rounds[tuple[bool, tuple[int, Mapping[str, int]] | None]]:
        """Open the place and the ``shown`` fields of the best entrant; None without a valid entrant.

        entrants:  in candidate order.
        shown:     names and widths of fields.
        unless:    further opened bit; if it is 1, nothing else is opened.

        Returns this bit (0 if missing), and place and opened fields. Raises RemoteProtocolError for a slot of no
        entrant.
        """
        if not entrants:
            return unless is not None and (yield from engine.all_met([unless])), None
        slots = self._slots.of([each.name for each in entrants])
        words = yield from self._slots.words(engine)
        entries = [Entry(slot, each.group, each.fields) for slot, each in zip(slots, entrants, strict=True)]
        best = yield from self._standings.best(engine, entries, words)
        met, told = yield from open_unless(engine, best, [*shown, (SLOT, words.width)], unless)
        if told is None:
            return met, None
        return met, (place_of(told[SLOT], slots, engine.peer), told)


class _Slots:
    """Slots of named candidates. A candidate keeps its slot as long as it is present."""

    def __init__(self) -> None:
        self._taken: dict[object, int] = {}
        self._words: CarriedWords | None = None

    def of(self, names: Sequence[object]) -> list[int]:
        """Return the slot of each present name. A new name takes the least free slot, in order."""
        self._taken = {name: self._taken[name] for name in names if name in self._taken}
        free = iter(sorted(set(range(len(names))) - set(self._taken.values())))
        for name in names:
            if name not in self._taken:
                self._taken[name] = next(free)
        return [self._taken[name] for name in names]

    def words(self, engine: Engine) -> Rounds[CarriedWords]:
        """Return words of the slots from 0 on, with at least all that are taken. More slots need wider words."""
        greatest = max(self._taken.values())
        if self._words is None or len(self._words) <= greatest:
            bits = max(1, greatest.bit_length())
            self._words = yield from engine.carry(range(1 << bits), bits)
        return self._words


def open_unless(
    engine: Engine, best: Fields, shown: Sequence[tuple[str, int]], unless: CarriedWords | None
) -> Rounds[tuple[bool, Mapping[str, int] | None]]:
    """Open fields of an entry with ``valid``; as :meth:`Contest.best`."""
    chosen = {name: best[name] for name in ("valid", *(name for name, _ in shown))}
    if unless is not None:
        chosen["met"] = unless
    outputs = yield from engine.run(circuits.open_circuit(tuple(shown), unless=unless is not None), 1, chosen)
    values = {name: opened(outputs, name) for name in outputs}
    met = unless is not None and values["met"] == 1
    return met, ({name: values[name] for name, _ in shown} if values["valid"] else None)
