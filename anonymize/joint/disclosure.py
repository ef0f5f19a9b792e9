"""Values that leave a protocol's protection: the reveal ledger, and the list of each mode (semantics §4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from anonymize.tds import Observer
from crypto.errors import LocalProtocolError

T = TypeVar("T")

Audience = Literal["all", "leader", "owner", "holder", "coordinator"]
"""``owner`` of a candidate, ``holder`` of a sensitive column: a single party, whose ledger alone has the entry."""


PRIVATE: tuple[Audience, ...] = ("owner", "holder")


@dataclass(frozen=True, slots=True)
class Reveal:
    """Revealed value: name, shape, audience and iteration, without the value."""

    name: str
    shape: tuple[int, ...]
    to: Audience
    iteration: int


@dataclass(frozen=True, slots=True)
class Allowed:
    """Row of a mode's list (semantics §4).

    finer:  True for a value finer than the published table.
    """

    name: str
    to: Audience
    meaning: str
    finer: bool = False


_EARLIER = (
    Allowed(
        "earlier_run",
        "all",
        "before the run: each party's kept result of the same job for the present table, or that the party has no "
        "such result; so, whether the table has changed since",
        finer=True,
    ),
)
"""Reveals of LKC runs before their start, if runs are charged."""

_ROOT_COUNTS = Allowed(
    "root_counts",
    "all",
    "class and sensitive counts of the whole table, and so the number of rows; with `link`, counts of each block "
    "of columns",
)
_PARTITION_COUNTS = Allowed(
    "partition_counts",
    "all",
    "class and sensitive counts of the leaf partitions just refined; with `link`, counts of each block of columns",
)

_ONLY_CHILD = Allowed(
    "only_child",
    "all",
    "`refine: child`, when no candidate is left: for each remaining node with records, the only child with "
    "records, or that two or more children have some; the final label shows the answer",
)

_ROW_COUNTS = Allowed("row_counts", "leader", "how many rows every party has", finer=True)

_HORIZONTAL = (
    *_EARLIER,
    _ROOT_COUNTS,
    Allowed(
        "candidate",
        "all",
        "the candidate taken, with its split point, or that no candidate is left. Finer than the table are "
        "discarded candidates, and the facts at the end about nodes never taken: for classification, that no "
        "specialization of the node has gain (`score: added`: adds anything); for general, that all records of the "
        "node lie in the same cell of the grid",
        finer=True,
    ),
    Allowed("valid", "all", "whether the candidate is valid: one bit"),
    _PARTITION_COUNTS,
    _ONLY_CHILD,
)

_ALIGNMENT = (
    Allowed("set_sizes", "all", "how many ids every party has", finer=True),
    Allowed(
        "common_records",
        "all",
        "each party's own ids that all parties have, and so the number; not further ids of peers",
        finer=True,
    ),
    Allowed("class_agreement", "all", "whether all parties have the same class for every common id: one bit"),
    Allowed("class_agreement", "leader", "whether a party's class values are the leader's: one bit each"),
)
"""Reveals of vertical runs of any kind before their start."""

_VERTICAL = (
    *_EARLIER,
    *_ALIGNMENT,
    Allowed(
        "class_values",
        "all",
        "`class: shared_by`: the class of every common id, told by the holder",
        finer=True,
    ),
    Allowed(
        "root_check", "all", "whether the whole table meets C: one bit of every holder of a sensitive column"
    ),
    Allowed("candidate", "all", "the specialization made, with its split point"),
    Allowed(
        "children",
        "all",
        "for every common id with the specialized value, the child of its record: the published generalization of "
        "people that all parties know",
        finer=True,
    ),
    _ONLY_CHILD,
    Allowed(
        "valid",
        "owner",
        "whether the owner's candidate meets C of sensitive columns of the remaining parties: one bit",
        finer=True,
    ),
    Allowed(
        "confidence_check",
        "holder",
        "the value of a peer that is tested against the holder's sensitive columns, and when; a second test for "
        "the same party in an iteration tells that the first test failed. Size of a test: records, cells, groups, "
        "children",
        finer=True,
    ),
    Allowed(
        "cell_columns",
        "coordinator",
        "sensitive and plain columns by leaf partition and class, in random order inside each",
    ),
)

_DP = (
    Allowed("candidate", "all", "the specialization chosen, with its split point; covered by ε"),
    Allowed("noisy_counts", "all", "the count of every cell of the release, with noise; covered by ε"),
)

_SYNTHETIC = (
    Allowed(
        "noisy_marginal",
        "all",
        "a table of counts, each with noise: of a column by leaf, of a column by bin, or of a chosen pair by bin; "
        "the latter two by class if the job has a class; covered by ε",
    ),
    Allowed("edge", "all", "the chosen pairs of columns, in order; covered by ε"),
)

ALLOWED: Mapping[str, tuple[Allowed, ...]] = {
    "horizontal/sealed": (
        Allowed(
            "root_check",
            "all",
            "whether the fully generalized table meets K and C and is small enough for exact arithmetic: one bit",
        ),
        *_HORIZONTAL,
    ),
    "horizontal/leader": (
        Allowed("root_check", "all", "whether the fully generalized table meets K and C: one bit"),
        *_HORIZONTAL,
        Allowed("root_totals", "leader", "counts of the whole table before the root check"),
        Allowed(
            "candidate_counts", "leader", "class counts of a candidate's children or grid cells", finer=True
        ),
        Allowed(
            "asked",
            "all",
            "candidates with their split points, about which the leader asks before their turn, in no order",
            finer=True,
        ),
        Allowed(
            "group_counts",
            "leader",
            "sizes (with `unit: person` people, too) and sensitive counts of every qid group of a candidate",
            finer=True,
        ),
    ),
    "horizontal/strict": (
        Allowed(
            "root_check",
            "all",
            "whether the fully generalized table meets K and C and is small enough for exact arithmetic: one bit",
        ),
        *_EARLIER,
        _ROOT_COUNTS,
        Allowed(
            "candidate",
            "all",
            "the specialization made, with its split point, or that no valid specialization is left",
        ),
        Allowed(
            "same_counts",
            "all",
            "whether the counts to be opened equal the judged counts: one bit; if not, the run ends",
        ),
        _PARTITION_COUNTS,
        _ONLY_CHILD,
    ),
    "horizontal/sealed/kd": (
        Allowed(
            "root_check",
            "all",
            "whether the whole table meets the requirement and is small enough for exact arithmetic: one bit",
        ),
        *_EARLIER,
        Allowed(
            "root_counts",
            "all",
            "class and sensitive counts of the whole table, and so the number of rows; with `link`, counts of each "
            "block of columns",
        ),
        Allowed(
            "cut_taken",
            "all",
            "the candidate that cuts each open group, or that no candidate is valid",
        ),
        Allowed(
            "group_counts",
            "all",
            "records, and records with protected values, left of the cuts taken",
        ),
        Allowed(
            "same_counts",
            "all",
            "whether the cells to be opened equal the judged cells: one bit; if not, the run ends",
        ),
        Allowed(
            "group_cells",
            "all",
            "class and sensitive counts of the final groups, with `link` of each block: the released table",
        ),
    ),
    "sequences/horizontal/sealed": (
        Allowed(
            "root_check",
            "all",
            "whether all records together meet the requirement and are few enough for exact arithmetic: one bit",
        ),
        *_EARLIER,
        Allowed("root_counts", "all", "sensitive counts of the whole table, and so the number of records"),
        Allowed(
            "kept",
            "all",
            "for every sequence asked for in a sweep, whether K records or more of the table at the time have the "
            "sequence, within C; if not, absent and violating sequences look alike",
            finer=True,
        ),
        _ROW_COUNTS,
        Allowed("rows", "all", "the records of the table, sorted, without their party"),
    ),
    "dp/horizontal/circuit": _DP,
    "dp/vertical/circuit": (*_ALIGNMENT, *_DP),
    "dp/horizontal/synthetic": _SYNTHETIC,
    "dp/vertical/synthetic": (*_ALIGNMENT, *_SYNTHETIC),
    "dp/horizontal/thesis": (
        *_DP,
        Allowed("split", "all", "the split point drawn for an interval, chosen later or not; covered by ε"),
        Allowed(
            "own_noisy_counts",
            "all",
            "each party's counts with the party's noise: ε-DP for the party's records, and so the sum",
        ),
    ),
    "dp/vertical/thesis": (*_ALIGNMENT, *_DP),
    "vertical/sealed": _VERTICAL,
    "vertical/leader": (
        *_VERTICAL,
        Allowed(
            "scores",
            "all",
            "every party's best score in every iteration, and the candidate with the score",
            finer=True,
        ),
    ),
}
"""Possible reveals by mode."""


MIX = "mix"
"""Phase that puts rows together. Only the leader knows the rows of each party, and so the costs."""


def mixed_reveals(deliver: Literal["all", "coordinator"]) -> tuple[Allowed, ...]:
    """Return the reveals of shuffled rows. deliver: receiver of the rows."""
    return (
        Allowed(
            "row_width",
            "all",
            "the length of the longest row in `plain` columns, up to the next power of two; each party also learns "
            "the same of all peers",
            finer=True,
        ),
        _ROW_COUNTS,
        Allowed(
            "rows", deliver, "the rows of the table with their `plain` columns, sorted, without their party"
        ),
    )


class RevealLedger:
    """Reveals of a run, in order, as every party sees them."""

    def __init__(self, mode: str, besides: Sequence[Allowed] = (), observer: Observer | None = None) -> None:
        """Take the mode's list. ``besides``: further reveals, of a score. ``observer``: hears of each reveal."""
        self._allowed = {(a.name, a.to) for a in (*ALLOWED[mode], *besides)}
        self._observer = observer or Observer()
        self.iteration = 0
        self.reveals: list[Reveal] = []

    def reveal(self, name: str, value: T, to: Audience, shape: tuple[int, ...] | None = None) -> T:
        """Record that ``value`` becomes known to ``to``, and return the value.

        ``shape`` is public; without it the value's own shape is recorded, () for a bit or a candidate. Raises
        LocalProtocolError, for an internal error, if the mode does not list the reveal.
        """
        if (name, to) not in self._allowed:
            raise LocalProtocolError(f"{name} to {to} is not on the mode's list")
        known: tuple[int, ...] = getattr(value, "shape", ()) if shape is None else shape
        self.reveals.append(Reveal(name, known, to, self.iteration))
        self._observer.revealed(name, known, to)
        return value
