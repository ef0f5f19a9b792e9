"""Schemas and coded tables: the input of every algorithm here.

A schema is public. A coded table is a holder's data after pass 1 (semantics §2): leaf numbers instead of values, with
a weighted row per distinct combination.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymize.errors import SchemaError
from anonymize.grid import Grid
from anonymize.taxonomy import Node, Taxonomy

Ints: TypeAlias = NDArray[np.int64]
Codes: TypeAlias = NDArray[np.integer]

OTHER = "other {}"
"""Label of the rest of a node, by the node's label."""

MAX_RECORDS = (1 << 31) - 1
MAX_CELLS = 1 << 20
"""Largest number of cells that are counted separately."""
MOST_TAKEN_OUT = 64
"""Most children that leave a node separately. A node with more children is always replaced by all of them."""
_KEY_SPACE = 1 << 62
MOST_TALLIED = 1 << 22
"""Most keys that are counted without sorting."""


@dataclass(frozen=True)
class SetRule:
    """Form of a cell that holds several values of a taxonomy.

    separator:  text between the values.
    max_items:  public bound: only the first ``max_items`` different values of a cell count; None: no bound.
    """

    separator: str
    max_items: int | None = None


@dataclass(frozen=True)
class LeafSets:
    """Distinct cells of a set-valued column: non-empty sets of leaves.

    leaves:  the sets one after another, without repetitions: int64, shape (n_leaves_in_all,).
    starts:  beginning of each set, and the end of the last set: int64, shape (n_sets + 1,).
    """

    leaves: Ints = field(repr=False)
    starts: Ints = field(repr=False)

    @property
    def n_sets(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True)
class QidColumn:
    """Quasi-identifier column with its taxonomy or grid.

    sets:      form of the cells of a set-valued column.
    by_child:  True if children leave a node of the taxonomy separately (semantics §10.10).
    rest:      printed form of the rest of a node; ``{}`` is the label of the node.
    missing_cell:  True if a numeric column has a further leaf, after the grid's cells, for values that are not
                   numbers. Nodes do not cover this leaf: only models without generalization have it.
    """

    name: str
    values: Taxonomy | Grid
    sets: SetRule | None = None
    by_child: bool = False
    rest: str = OTHER
    missing_cell: bool = False

    @property
    def is_numeric(self) -> bool:
        return isinstance(self.values, Grid)

    @property
    def n_leaves(self) -> int:
        return self.root.last + self.missing_cell

    @property
    def root(self) -> Node:
        """Node of the first cut: a grid's root; in a taxonomy, the end of the root's chain of only children."""
        return self.values.root if isinstance(self.values, Grid) else self.values.narrowed(self.values.root)

    def label(self, node: Node) -> str:
        label = self.values.label(node)
        return self.rest.format(label) if node.without else label

    def children(self, node: Node) -> tuple[Node, ...]:
        """Return the nodes into which the taxonomy separates a node, through only children, without children taken
        out.

        The result is empty for a leaf and for any interval. It never has length 1: a node of a cut has no only child.
        """
        return () if isinstance(self.values, Grid) else self.values.parts(node)

    def parts_by_child(self, node: Node) -> bool:
        """Return True if children leave the node separately, until the last two are separated together."""
        return self.by_child and 2 <= len(self.children(node)) <= MOST_TAKEN_OUT

    def leaves_one_by_one(self, node: Node) -> bool:
        """Return True if a single child leaves the node. Two children are always separated together."""
        return self.parts_by_child(node) and len(self.children(node)) > 2

    @property
    def rest_labels(self) -> frozenset[str]:
        """Labels of the rests of all nodes."""
        if isinstance(self.values, Grid):
            return frozenset()
        parting = (node for node in self.values.nodes if self.leaves_one_by_one(node))
        return frozenset(self.rest.format(self.values.label(node)) for node in parting)

    def rest_of(self, node: Node, child: Node) -> Node:
        """Return the rest of a node of a taxonomy without a child."""
        assert isinstance(self.values, Taxonomy), "an interval has no children to take out"
        return self.values.rest(node, child)


@dataclass(frozen=True)
class Categories:
    """Categories that several published values may share.

    values:  names of the categories. of: place of every published value's category in ``values``.
    """

    values: tuple[str, ...]
    of: tuple[int, ...]


@dataclass(frozen=True)
class SensitiveColumn:
    """Sensitive column: the published values, and the categories in the requirements.

    domain:      published values, in canonical order.
    protected:   indices into :attr:`tested` of the values S whose confidence may be bounded.
    categories:  categories, if they differ from the published values.
    """

    name: str
    domain: tuple[str, ...]
    protected: tuple[int, ...]
    categories: Categories | None = None

    @property
    def tested(self) -> tuple[str, ...]:
        """Categories, in canonical order."""
        return self.domain if self.categories is None else self.categories.values

    def tests(self, codes: Codes) -> Ints:
        """Return the category of every given published value, by code: int64, shape as ``codes``."""
        if self.categories is None:
            return codes.astype(np.int64)
        found: Ints = np.array(self.categories.of, dtype=np.int64)[codes]
        return found


class Combinations:
    """Combinations of class and sensitive values in a holder's table.

    Combinations are equal only if they are the same object. The values are neither compared nor printed.
    """

    def __init__(self, axes: Sequence[Ints]) -> None:
        """``axes``: the codes of each combination by axis, each combination once, in ascending order."""
        self.axes = tuple(axes)

    def __len__(self) -> int:
        return len(self.axes[0])


@dataclass(frozen=True)
class Schema:
    """Public description of a table. ``classes`` is ("",) if there is no class column.

    class_name:  None if there is no class, or the class is not published.
    parties:  parties of the records, if records are separated by party.
    occurring:  combinations numbered by the cells, in the table of a single holder; None: all possible combinations.
    """

    qid: tuple[QidColumn, ...]
    class_name: str | None
    classes: tuple[str, ...]
    sensitive: tuple[SensitiveColumn, ...] = ()
    parties: tuple[str, ...] = ()
    occurring: Combinations | None = field(default=None, repr=False)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def cell_shape(self) -> tuple[int, ...]:
        """Sizes of the class domain and of every sensitive domain: the axes of a partition's counts."""
        return (self.n_classes, *(len(column.domain) for column in self.sensitive))

    @property
    def n_cells(self) -> int:
        return math.prod(self.cell_shape) if self.occurring is None else len(self.occurring)

    def axes(self, cells: Ints) -> tuple[Ints, ...]:
        """Return the class and sensitive codes of the given cells: int64, the shape of ``cells`` for each axis."""
        if self.occurring is not None:
            return tuple(axis[cells] for axis in self.occurring.axes)
        return tuple(axis.astype(np.int64, copy=False) for axis in np.unravel_index(cells, self.cell_shape))

    def classes_of(self, cells: Ints) -> Ints:
        """Return the class of every given cell, by code."""
        if self.occurring is not None:
            return self.occurring.axes[0][cells]
        found: Ints = cells // (self.n_cells // self.n_classes)
        return found

    def beside_class(self) -> tuple[Ints, int]:
        """Number the cells' sensitive values: int64, shape (n_cells,), equal for equal values; and the count."""
        if self.occurring is None:
            n = self.n_cells // self.n_classes
            return np.tile(np.arange(n), self.n_classes), n
        keys = pack(
            self.occurring.axes[1:] or [np.zeros_like(self.occurring.axes[0])], self.cell_shape[1:] or [1]
        )
        found, number = np.unique(keys, return_inverse=True)
        return number, len(found)

    def require_few_cells(self, most: int = MAX_CELLS) -> None:
        """Raise SchemaError for more cells than joint runs can count, in each separately counted block of columns."""
        if self.n_cells > most:
            raise SchemaError(
                "domain-too-large",
                f"class and sensitive values combine to {self.n_cells} cells, more than {most}",
                remedy="publish fewer sensitive columns in one table, coarsen their domains (`level` with "
                "`publish: category`), or link fewer of them (`link`)",
            )

    def require_numbers(self) -> None:
        """Raise SchemaError for more cells than have a number."""
        self.require_few_cells(_KEY_SPACE)


@dataclass(frozen=True)
class CodedTable:
    """Records of a holder as integer codes with weights.

    qid:        integer array per quasi-identifier column: leaf numbers, shape (n,). A set-valued column has numbers
                of its sets.
    cells:      numbers of the combined class and sensitive codes (:meth:`Schema.axes`), in their order: int64, shape
                (n,).
    weights:    records per row: int64, shape (n,), positive.
    sets:       sets of every set-valued column, by the column's number.
    """

    schema: Schema = field(repr=False)
    qid: tuple[Codes, ...] = field(repr=False)
    cells: Ints = field(repr=False)
    weights: Ints = field(repr=False)
    sets: Mapping[int, LeafSets] = field(default_factory=dict, repr=False)

    @property
    def n_records(self) -> int:
        return int(self.weights.sum())

    def axis(self, i: int) -> Ints:
        """Return the codes along an axis of ``cell_shape``: 0 is the class, 1 the first sensitive column, ..."""
        if self.schema.occurring is not None:
            return self.schema.occurring.axes[i][self.cells]
        shape = self.schema.cell_shape
        codes: Ints = self.cells // math.prod(shape[i + 1 :])
        return codes % shape[i] if i else codes

    def sparse(self) -> CodedTable:
        """Return the rows with cells numbered by the occurring combinations, so that arrays stay short."""
        present, cells = np.unique(self.cells, return_inverse=True)
        schema = replace(self.schema, occurring=Combinations(self.schema.axes(present)))
        return replace(self, schema=schema, cells=cells.astype(np.int64))

    def class_histogram(self, column: int) -> Ints:
        """Count the records per leaf and class value: int64, shape (n_leaves, n_classes)."""
        n_leaves, n_classes = self.schema.qid[column].n_leaves, self.schema.n_classes
        keys = self.qid[column].astype(np.int64) * n_classes + self.axis(0)
        return tally(keys, self.weights, n_leaves * n_classes).reshape(n_leaves, n_classes)

    def some(self, rows: Ints) -> CodedTable:
        """Return the rows with the given numbers."""
        qid = tuple(codes[rows] for codes in self.qid)
        return CodedTable(self.schema, qid, self.cells[rows], self.weights[rows], self.sets)

    def recoded(self, schema: Schema) -> CodedTable:
        """Return the rows for a schema whose class and sensitive domains lack only unused values."""
        domains = [(self.schema.classes, schema.classes)]
        domains += [
            (a.domain, b.domain) for a, b in zip(self.schema.sensitive, schema.sensitive, strict=True)
        ]
        axes = []
        for i, (ours, theirs) in enumerate(domains):
            place = {value: number for number, value in enumerate(theirs)}
            places = np.array([place.get(value, len(theirs)) for value in ours], dtype=np.int64)
            axes.append(places[self.axis(i)])
        schema, cells = _numbered(schema, axes, occurring=self.schema.occurring is not None)
        return replace(self, schema=schema, cells=cells)

    def collapsed(self) -> CodedTable:
        """Join equal rows. Row order carries no meaning."""
        return self.collapsed_by(np.broadcast_to(np.int64(0), len(self.cells)))[0]

    def collapsed_by(self, whose: Ints) -> tuple[CodedTable, Ints]:
        """Join equal rows of the same owner. Return the table and the owner of each row.

        whose:  owner's number per row, from 0: int64, shape (n,).
        """
        if len(whose) == 0:
            return self, whose
        radices = [
            self.sets[i].n_sets if i in self.sets else column.n_leaves
            for i, column in enumerate(self.schema.qid)
        ] + [self.schema.n_cells]
        packed = Packed.of([whose, *self.qid, self.cells], [int(whose.max()) + 1, *radices])
        keys, weights = packed.keys, self.weights
        if (weights == 1).all():
            keys.sort()  # much faster than an order of the rows
        else:
            order = np.argsort(keys)
            keys, weights = keys[order], weights[order]
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        if starts.size == keys.size:
            return self, whose
        owner, *qid, cells = packed.columns(keys[starts].astype(np.int64))
        narrow = tuple(codes.astype(own.dtype) for codes, own in zip(qid, self.qid, strict=True))
        sums = np.add.reduceat(weights, starts)
        return replace(self, qid=narrow, cells=cells, weights=sums), owner


def narrowest(size: int) -> np.dtype[np.unsignedinteger]:
    """Return the smallest type for the numbers from 0 to below ``size``."""
    found: np.dtype[np.unsignedinteger] = np.min_scalar_type(max(size - 1, 1))
    return found


def coded_table(
    schema: Schema,
    qid: list[Codes],
    classes: Codes,
    sensitive: list[Codes],
    sets: Mapping[int, LeafSets] | None = None,
    *,
    occurring: bool = False,
) -> CodedTable:
    """Combine per-column codes into a table of unit weights. All arrays have shape (n,).

    occurring:  number only the occurring combinations as cells: for a single holder of all columns.

    Raises SchemaError for more cells than numbers, if all combinations are numbered.
    """
    schema, cells = _numbered(schema, [classes, *sensitive], occurring=occurring)
    sizes = [sets[i].n_sets if sets and i in sets else c.n_leaves for i, c in enumerate(schema.qid)]
    narrow = tuple(codes.astype(narrowest(size), copy=False) for codes, size in zip(qid, sizes, strict=True))
    return CodedTable(schema, narrow, cells, np.broadcast_to(np.int64(1), len(cells)), sets or {})


def _numbered(schema: Schema, axes: Sequence[Codes], *, occurring: bool) -> tuple[Schema, Ints]:
    """Return the schema with numbered cells, and the cells of combinations of codes."""
    if not occurring:
        schema.require_numbers()
        return schema, np.ravel_multi_index(tuple(axes), schema.cell_shape).astype(np.int64)
    packed = Packed.of(axes, schema.cell_shape).numbered()
    combinations = Combinations(packed.columns(np.arange(packed.space)))
    return replace(schema, occurring=combinations), packed.keys.astype(np.int64)


def joined(tables: list[CodedTable]) -> CodedTable:
    """Return the union of tables of the same schema without set-valued columns, with equal rows joined."""
    table = CodedTable(
        tables[0].schema,
        tuple(np.concatenate(columns) for columns in zip(*(t.qid for t in tables), strict=True)),
        np.concatenate([t.cells for t in tables]),
        np.concatenate([t.weights for t in tables]),
    )
    return table.collapsed()


def tally(keys: Codes, weights: Ints | NDArray[np.float64] | None, size: int) -> Ints:
    """Sum weights, or 1 each without weights, by key: int64, shape (size,).

    Exact below 2**53 in total; MAX_RECORDS ensures this bound.
    """
    return np.bincount(keys, weights, minlength=size).astype(np.int64)


def _most_tallied(keys: Codes) -> int:
    """Return the largest space of keys that costs less than sorting the keys."""
    return min(MOST_TALLIED, 4 * len(keys))


def kinds_of_keys(keys: Ints, space: int) -> tuple[Ints, Ints]:
    """Number the different keys, ascending. Return the first row of each, and the number of each row's key.

    space:  above every key.
    """
    if space > _most_tallied(keys):
        _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
        return first, kind
    first = np.full(space, -1, dtype=np.int64)
    first[keys[::-1]] = np.arange(len(keys) - 1, -1, -1)
    is_there = first >= 0
    return first[is_there], (np.cumsum(is_there) - 1)[keys]


def sums_by_key(keys: Ints, weights: Ints | None, space: int) -> tuple[Ints, Ints]:
    """Return the different keys, ascending, and the sum of the weights of each. space: above every key."""
    if space <= MOST_TALLIED:
        counts = tally(keys, weights, space)
        found = np.flatnonzero(counts)
        return found, counts[found]
    found, place = np.unique(keys, return_inverse=True)
    return found, tally(place, weights, len(found))


def pack(columns: Sequence[Codes], radices: Sequence[int]) -> Ints:
    """Combine columns into a key per row. Keys are equal if all columns are equal; int64, shape (n,).

    The key is mixed radix while the product fits 62 bits. Beyond 62 bits, the packed part is first ranked densely.
    """
    keys: Ints = np.zeros(len(columns[0]), dtype=np.int64)
    space = 1
    for codes, radix in zip(columns, radices, strict=True):
        if space * radix > _KEY_SPACE:
            distinct, keys = np.unique(keys, return_inverse=True)
            space = len(distinct)
        keys = keys * radix + codes
        space *= radix
    return keys


@dataclass(frozen=True)
class Packed:
    """Columns as a key per row: equal where all columns are equal, and ascending in the order of the columns.

    keys:     integers, shape (n,), from 0.
    space:    above every key.
    columns:  returns the columns of some keys, int64 as the keys.
    """

    keys: Codes = field(repr=False)
    space: int
    columns: Callable[[Ints], list[Ints]] = field(repr=False)

    @classmethod
    def of(cls, columns: Sequence[Codes], radices: Sequence[int]) -> Packed:
        """Pack columns. Each radix is above the codes of its column.

        Where the keys would not fit, neighbouring columns are numbered together by their combinations that occur.
        """
        groups = cls._groups(columns, radices)
        if math.prod(radices) > _KEY_SPACE:
            groups = map(cls.numbered, groups)
        return reduce(cls.beside, groups)

    @classmethod
    def _groups(cls, columns: Sequence[Codes], radices: Sequence[int]) -> Iterator[Packed]:
        """Yield neighbouring columns together, while they have few possible combinations."""
        most, group = _most_tallied(columns[0]), None
        for codes, radix in zip(columns, radices, strict=True):
            column = cls(codes, radix, lambda keys: [keys])
            if group is None or group.space * radix > most:
                yield from () if group is None else (group,)
                group = column
            else:
                group = group.beside(column)
        if group is not None:
            yield group

    def beside(self, other: Packed) -> Packed:
        """Return the columns of both."""
        if self.space * other.space > _KEY_SPACE:
            return self.numbered().beside(other.numbered())
        space = self.space * other.space
        keys: Codes = self.keys.astype(np.int32 if space <= MAX_RECORDS else np.int64)
        np.multiply(keys, other.space, out=keys)
        np.add(keys, other.keys, out=keys, dtype=keys.dtype, casting="same_kind")
        ours, theirs, size = self.columns, other.columns, other.space
        return Packed(keys, space, lambda keys: [*ours(keys // size), *theirs(keys % size)])

    def numbered(self) -> Packed:
        """Return the same columns with the numbers of the keys that occur, in ascending order."""
        columns = self.columns
        if self.space <= _most_tallied(self.keys):
            is_there = np.zeros(self.space, dtype=bool)
            is_there[self.keys] = True
            numbers: Codes = (np.cumsum(is_there, dtype=np.int32) - 1)[self.keys]
            present: Ints = np.flatnonzero(is_there)
        else:
            found, numbers = np.unique(self.keys, return_inverse=True)
            present = found.astype(np.int64)
        return Packed(numbers, len(present), lambda keys: columns(present[keys]))
