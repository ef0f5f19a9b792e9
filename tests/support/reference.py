"""A slow reference of LKC top-down specialization that follows semantics §3 literally.

It works on rows of text, recomputes everything from the rows in every turn, tests every subset of
min(L, |QID|) columns, and shares no code with the product.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import chain, combinations
from typing import Any

from tests.support.closeness import Close
from tests.support.ruled_out import Sensitive, is_diverse, tells_at_most

Row = dict[str, str]
LOG = [round(2**20 * math.log2(1 + j / 512)) for j in range(513)]


def f(x: int) -> int:
    if x < 2:
        return 0
    k = x.bit_length() - 1
    fr = (x << (30 - k)) - 2**30
    i, t = fr >> 21, (fr >> 9) & 4095
    return x * (k * 2**20 + LOG[i] + (((LOG[i + 1] - LOG[i]) * t) >> 12))


@dataclass(eq=False)
class Tree:
    """A node of a taxonomy: label, children, the leaf values below it."""

    label: str
    children: list[Tree]

    @property
    def values(self) -> list[str]:
        return [v for c in self.children for v in c.values] if self.children else [self.label]

    def everything(self) -> list[Tree]:
        return [self] + [n for c in self.children for n in c.everything()]


@dataclass(eq=False)
class Rest(Tree):
    """Rest of a node when children were taken out of it."""

    of: Tree


def tree_from_paths(paths: list[list[str]]) -> Tree:
    """Paths from root to leaf, in file order."""
    root = Tree(paths[0][0], [])
    for path in paths:
        node = root
        for label in path[1:]:
            known = [c for c in node.children if c.label == label]
            if not known:
                known = [Tree(label, [])]
                node.children.append(known[0])
            node = known[0]
    return root


def collapse(node: Tree) -> Tree:
    children = [collapse(c) for c in node.children]
    if len(children) == 1 and children[0].label == node.label:
        return children[0]
    return Tree(node.label, children)


def lowest(node: Tree) -> Tree:
    """The node with the same values that is farthest down."""
    while len(node.children) == 1:
        (node,) = node.children
    return node


def nested_paths(tree: Any, above: list[str]) -> list[list[str]]:
    if isinstance(tree, list):
        return [[*above, leaf] for leaf in tree]
    return [p for label, below in tree.items() for p in nested_paths(below, [*above, label])]


class Categorical:
    def __init__(
        self,
        paths: list[list[str]],
        missing_leaf: bool = True,
        *,
        by_child: bool = False,
        rest: str = "other {}",
    ) -> None:
        self.by_child, self.rest_label = by_child, rest
        self.rests: dict[Any, Rest] = {}
        self.root = collapse(tree_from_paths(paths))
        if missing_leaf and "?" not in self.root.values:
            if not self.root.children:
                self.root = Tree(self.root.label, [self.root])
            self.root.children.append(Tree("?", []))
        self.order = {id(n): i for i, n in enumerate(self.root.everything())}
        self.times = Counter(n.label for n in self.root.everything())
        for node in self.root.everything():
            node.children = [lowest(child) for child in node.children]
        self.root = lowest(self.root)

    def holds(self, node: Tree, value: str) -> bool:
        return (value or "?") in node.values

    def label(self, node: Tree) -> str:
        if isinstance(node, Rest):
            return self.rest_label.format(self.label(node.of))
        return node.label + ("*" if node.children and self.times[node.label] > 1 else "")

    def rank(self, node: Tree) -> Any:
        return self.order[id(node.of if isinstance(node, Rest) else node)]

    def specializations(self, node: Tree) -> list[list[Tree]]:
        if self.by_child and 2 < len(node.children) <= 64:
            return [[child, self.rest(node, child)] for child in node.children]
        return [node.children] if len(node.children) >= 2 else []

    def rest(self, node: Tree, child: Tree) -> Rest:
        """The same object for the same children of the same node."""
        of = node.of if isinstance(node, Rest) else node
        left = [other for other in node.children if other is not child]
        return self.rests.setdefault((id(of), *map(id, left)), Rest(of.label, left, of))


class Numeric:
    def __init__(self, edges: list[Decimal]) -> None:
        self.edges = edges
        self.root = (edges[0], edges[-1])

    def holds(self, node: tuple[Decimal, Decimal], value: str) -> bool:
        return node[0] <= Decimal(value) < node[1]

    def label(self, node: tuple[Decimal, Decimal]) -> str:
        return f"[{plain(node[0])},{plain(node[1])})"

    def rank(self, node: tuple[Decimal, Decimal]) -> Any:
        return node[0]

    def specializations(self, node: tuple[Decimal, Decimal]) -> list[list[Any]]:
        inside = [e for e in self.edges if node[0] < e < node[1]]
        return [[(node[0], e), (e, node[1])] for e in inside]


def plain(number: Decimal) -> str:
    text = f"{number:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text


@dataclass
class Problem:
    """A whole requirement: columns by name, class column, sensitive columns as (values, C).

    colluders:  how many parties at most take their rows out of every group; a row's party is in column ``party``.
    person:     the column that says whose record a row is, where K counts people.
    tdr:        goal classification by gain for each step of anonymity that is lost.
    power:      goal general: to which sizes of leaf partitions are raised.
    weights:    by column, factor of the score of its specializations; 1 for others.
    """

    qid: dict[str, Any]
    class_name: str | None
    sensitive: dict[str, tuple[set[str], Fraction]]
    L: int
    K: int
    goal: str
    insider: bool = False
    entries: tuple[Known, ...] = ()
    added: Added | None = None
    party: str = ""
    colluders: int = 0
    person: str = ""
    tdr: bool = False
    power: int = 2
    weights: Mapping[str, Fraction] = field(default_factory=dict)

    def asked(self) -> tuple[Known, ...]:
        """The entries of a requirement of several, or the one of LKC."""
        return self.entries or (Known(tuple(self.qid), self.L, self.K, self.sensitive),)


@dataclass(frozen=True)
class Added:
    """Goal classification by what a specialization adds, with as many records for each class value but one as a
    context must have at least.

    classes:  in the domain.
    by:       the sensitive columns that contexts tell apart.
    """

    per_class: int
    classes: int
    by: tuple[str, ...]


@dataclass(frozen=True)
class Known:
    """One entry: at most L of these columns are known; groups of K; sensitive columns as (values, C); by sensitive
    column the fewest different values; what holds once values are ruled out; by sensitive column the values of which
    none may be that of all records; how far sensitive columns may be from the table's.
    """

    columns: tuple[str, ...]
    L: int
    K: int
    sensitive: dict[str, tuple[set[str], Fraction]]
    distinct: dict[str, int] = field(default_factory=dict)
    ruled: Ruled | None = None
    mixed: dict[str, set[str]] = field(default_factory=dict)
    close: Close | None = None


@dataclass(frozen=True)
class Ruled:
    """Bound on somebody who rules out at most ``most`` values; diversity ``least``. columns: by name."""

    columns: dict[str, Sensitive]
    most: int
    least: int

    def holds(self, rows: list[Row]) -> bool:
        values = [tuple(row[name] for name in self.columns) for row in rows]
        columns = list(self.columns.values())
        return tells_at_most(values, columns, self.most) and is_diverse(values, columns, self.least)


def remainders(rows: list[Row], problem: Problem) -> list[list[Row]]:
    """Return the remainders of a group after coalitions of every size, where they leave anything."""
    parties = sorted({row.get(problem.party, "") for row in rows})
    gone = chain.from_iterable(combinations(parties, size) for size in range(problem.colluders + 1))
    left = [[row for row in rows if row.get(problem.party, "") not in coalition] for coalition in gone]
    return [part for part in left if part]


def group_ok(rows: list[Row], entry: Known, problem: Problem) -> bool:
    counted = {row[problem.person] for row in rows} if problem.person else rows
    return len(counted) >= entry.K and inference_ok(rows, entry)


def inference_ok(rows: list[Row], entry: Known) -> bool:
    """Test the bounds on inferences: C, the number of values, and what is left once some are ruled out."""
    if entry.ruled is not None and not entry.ruled.holds(rows):
        return False
    if entry.close is not None and not entry.close.holds(rows):
        return False
    for column, values in entry.mixed.items():
        if len(found := {r[column] for r in rows}) == 1 and found <= values:
            return False
    if any(len({r[column] for r in rows}) < least for column, least in entry.distinct.items()):
        return False
    for column, (values, c) in entry.sensitive.items():
        for value in values:
            if Fraction(sum(r[column] == value for r in rows), len(rows)) > c:
                return False
    return True


def generalize(row: Row, cut: dict[str, list[Any]], problem: Problem) -> tuple[str, ...]:
    out = []
    for name, column in problem.qid.items():
        (node,) = [n for n in cut[name] if column.holds(n, row[name])]
        out.append((column.label(node), column.rank(node)))
    return tuple(out)  # type: ignore[arg-type]


def cells_ok(rows: list[Row], coded: list[Any], problem: Problem, entry: Known) -> bool:
    """Inferences from the records that agree on all columns of an entry and the class: what an insider knows."""
    cells: dict[Any, list[Row]] = {}
    places = [i for i, name in enumerate(problem.qid) if name in entry.columns]
    for row, code in zip(rows, coded, strict=True):
        key = tuple(code[i] for i in places), row.get(problem.class_name or "")
        cells.setdefault(key, []).append(row)
    return all(inference_ok(cell, entry) for cell in cells.values())


def is_private(rows: list[Row], cut: dict[str, list[Any]], problem: Problem, must_hold: str | None) -> bool:
    """Test all subsets of min(L, |QID|) columns of every entry, or only those with a given column."""
    coded = [generalize(row, cut, problem) for row in rows]
    return all(entry_ok(rows, coded, problem, entry, must_hold) for entry in problem.asked())


def entry_ok(
    rows: list[Row], coded: list[Any], problem: Problem, entry: Known, must_hold: str | None
) -> bool:
    names = list(problem.qid)
    if problem.insider and not cells_ok(rows, coded, problem, entry):
        return False
    places = [names.index(name) for name in entry.columns]
    for subset in combinations(places, min(entry.L, len(places))):
        if must_hold is not None and names.index(must_hold) not in subset:
            continue
        groups: dict[Any, list[Row]] = {}
        for row, code in zip(rows, coded, strict=True):
            groups.setdefault(tuple(code[i] for i in subset), []).append(row)
        parts = (part for group in groups.values() for part in remainders(group, problem))
        if not all(group_ok(part, entry, problem) for part in parts):
            return False
    return True


def class_counts(rows: list[Row], problem: Problem) -> list[int]:
    if problem.class_name is None:
        return [len(rows)]
    return list(Counter(r[problem.class_name] for r in rows).values())


def gain_of(rows: list[Row], parts: list[list[Row]], problem: Problem) -> int:
    def impurity(part: list[Row]) -> int:
        return f(len(part)) - sum(f(n) for n in class_counts(part, problem))

    return impurity(rows) - sum(impurity(part) for part in parts)


@dataclass(frozen=True)
class Way:
    """A candidate: the children a node would get, the gain, its rank among those of the node, its part in discards.

    key:   under which it is discarded. dead_with: under any of which it is.
    """

    children: list[Any]
    gain: int
    rank: int
    key: Any
    dead_with: tuple[Any, ...]


def ways_of(name: str, node: Any, rows: list[Row], problem: Problem) -> list[Way]:
    """The candidates of a node; intervals have one, and nodes that children leave one by one for general use."""
    column = problem.qid[name]
    inside = [r for r in rows if column.holds(node, r[name])]
    found = []
    for rank, children in enumerate(column.specializations(node) if inside else []):
        parts = [[r for r in inside if column.holds(c, r[name])] for c in children]
        is_chosen = isinstance(column, Numeric) or isinstance(children[-1], Rest)
        if is_chosen and not all(parts):
            continue
        squares = sum(len(p) ** 2 for p in parts)
        found.append((squares, is_chosen, _way(name, node, rank, children, gain_of(inside, parts, problem))))
    if not found or not found[0][1]:
        return [way for _, _, way in found]
    if problem.goal == "general":
        return [min(found, key=lambda each: each[0])[2]]
    if isinstance(column, Numeric):
        return [max(found, key=lambda each: each[2].gain)[2]]
    return [way for _, _, way in found]


def _way(name: str, node: Any, rank: int, children: list[Any], gain: int) -> Way:
    if isinstance(node, tuple):
        return Way(children, gain, 0, (name, node), ((name, node),))
    of = node.of if isinstance(node, Rest) else node
    if isinstance(children[-1], Rest):
        key = (name, id(of), id(children[0]))
        return Way(children, gain, rank, key, (key,))
    key = (name, id(node))
    return Way(children, gain, 0, key, (key, *((name, id(of), id(child)) for child in children)))


def contexts_of(
    node_rows: list[Row], cut: dict[str, list[Any]], least: int, problem: Problem
) -> list[list[Row]]:
    """Large cells; of the rest, what is left of each leaf partition if it is large; all that is left then."""
    assert problem.added is not None
    partitions: dict[Any, dict[Any, list[Row]]] = {}
    for row in node_rows:
        cells = partitions.setdefault(generalize(row, cut, problem), {})
        cells.setdefault(tuple(row[s] for s in problem.added.by), []).append(row)
    found, left = [], []
    for cells in partitions.values():
        found += [cell for cell in cells.values() if len(cell) >= least]
        rest = [row for cell in cells.values() if len(cell) < least for row in cell]
        if len(rest) >= least:
            found.append(rest)
        else:
            left += rest
    return found + ([left] if left else [])


def children_allowed(name: str, children: list[Any], inside: list[Row], problem: Problem) -> bool:
    """Return True if each child is empty or has as many records as the greatest K of the column."""
    sizes = [sum(problem.qid[name].holds(c, r[name]) for r in inside) for c in children]
    most = max((entry.K for entry in problem.asked() if name in entry.columns), default=1)
    return not any(0 < size < most for size in sizes)


def anonymity(rows: list[Row], cut: dict[str, list[Any]], problem: Problem, entry: Known) -> int:
    """The smallest group on min(L, |QID|) columns of an entry."""
    names = list(problem.qid)
    places = [names.index(name) for name in entry.columns]
    coded = [generalize(row, cut, problem) for row in rows]
    return min(
        min(Counter(tuple(code[i] for i in subset) for code in coded).values())
        for subset in combinations(places, min(entry.L, len(places)))
    )


def tdr_score(
    name: str, node: Any, children: list[Any], gain: int, rows: list[Row], cut: Any, problem: Problem
) -> Fraction | None:
    """gain / |T[v]| / (mean loss of anonymity + 1); None for a node with a child below the greatest K."""
    inside = [r for r in rows if problem.qid[name].holds(node, r[name])]
    if not children_allowed(name, children, inside, problem):
        return None
    refined = {**cut, name: [n for n in cut[name] if n is not node and n != node] + list(children)}
    entries = [entry for entry in problem.asked() if name in entry.columns]
    lost = [anonymity(rows, cut, problem, e) - anonymity(rows, refined, problem, e) for e in entries]
    mean = Fraction(sum(lost), len(lost)) if lost else Fraction(0)
    return Fraction(gain, len(inside)) / (mean + 1)


def added_by(
    name: str, node: Any, children: list[Any], rows: list[Row], cut: Any, problem: Problem
) -> Fraction | None:
    """A(v) in units of F; None for a node with a child below the greatest K."""
    assert problem.added is not None
    column = problem.qid[name]
    inside = [r for r in rows if column.holds(node, r[name])]
    if not children_allowed(name, children, inside, problem):
        return None
    least = max(problem.added.per_class * (problem.added.classes - 1), math.ceil(len(rows) / 512))
    total = 0
    for context in contexts_of(inside, cut, least, problem):
        parts = [part for c in children if (part := [r for r in context if column.holds(c, r[name])])]
        parameters = (len(parts) - 1) * (len(class_counts(context, problem)) - 1)
        total += gain_of(context, parts, problem) - round(2**20 / math.log(2)) * parameters
    return Fraction(total)


def named_ways(
    cut: dict[str, list[Any]], rows: list[Row], problem: Problem
) -> list[tuple[str, Any, list[Any]]]:
    """Nodes all of whose records are below one child, where children leave one by one, with what replaces them."""
    found = []
    for name, column in problem.qid.items():
        for node in sorted(cut[name], key=column.rank):
            children = node.children if isinstance(node, Tree) and column.by_child else []
            inside = [r for r in rows if column.holds(node, r[name])]
            for child in children if inside and 2 <= len(children) <= 64 else []:
                if all(column.holds(child, r[name]) for r in inside):
                    both = children if len(children) == 2 else [child, column.rest(node, child)]
                    found.append((name, node, both))
    return found


def score_of(name: str, node: Any, way: Way, rows: list[Row], cut: Any, problem: Problem) -> Fraction | None:
    """None for no candidate."""
    column = problem.qid[name]
    if problem.goal == "general":
        sizes = Counter(generalize(r, cut, problem) for r in rows if column.holds(node, r[name]))
        return Fraction(sum(n**problem.power for n in sizes.values()))
    if way.gain <= 0:
        return None
    if problem.tdr:
        return tdr_score(name, node, way.children, way.gain, rows, cut, problem)
    if problem.added is None:
        return Fraction(way.gain, sum(column.holds(node, r[name]) for r in rows))
    added = added_by(name, node, way.children, rows, cut, problem)
    return added if added is not None and added > 0 else None


def anonymize(
    rows: list[Row], problem: Problem
) -> tuple[list[tuple[str, str, list[str], bool]], list[Any]] | None:
    """Return the turns (column, value, children, applied) and the generalized rows; None if the root fails."""
    cut = {name: [column.root] for name, column in problem.qid.items()}
    if not all(group_ok(rows, entry, problem) for entry in problem.asked()) or not is_private(
        rows, cut, problem, None
    ):
        return None
    dead: set[Any] = set()
    turns = []
    while True:
        best: Any = None
        for position, (name, column) in enumerate(problem.qid.items()):
            for node in cut[name]:
                for way in ways_of(name, node, rows, problem):
                    if dead.isdisjoint(way.dead_with):
                        score = score_of(name, node, way, rows, cut, problem)
                        if score is not None:
                            score *= problem.weights.get(name, 1)
                        order = (-score, position, column.rank(node), way.rank) if score is not None else None
                        if order is not None and (best is None or order < best[0]):
                            best = (order, name, node, way.children, way.key)
        if best is None:
            made = named_ways(cut, rows, problem)
            for name, node, children in made:
                cut = {**cut, name: [n for n in cut[name] if n is not node] + list(children)}
                label = problem.qid[name].label
                turns.append((name, label(node), [label(c) for c in children], True))
            if made:
                continue
            break
        _, name, node, children, key = best
        refined = {**cut, name: [n for n in cut[name] if n is not node and n != node] + list(children)}
        valid = is_private(rows, refined, problem, name)
        column = problem.qid[name]
        turns.append((name, column.label(node), [column.label(c) for c in children], valid))
        if valid:
            cut = refined
        else:
            dead.add(key)
    assert is_private(rows, cut, problem, None)
    kept = ([problem.class_name] if problem.class_name else []) + list(problem.sensitive)
    released = [(*(label for label, _ in generalize(r, cut, problem)), *(r[c] for c in kept)) for r in rows]
    return turns, released
