"""Numeric columns: a public domain cut into a public grid of cells (semantics §3.2).

The leaves of a numeric column are the cells of its grid. If the job keeps rows without a number, a leaf `?` follows.
A node is an interval of leaves, split in two at a grid point. Values are IEEE doubles, each in the cell with the
greatest lower edge that does not exceed the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from anonymize.errors import SchemaError
from anonymize.taxonomy import MISSING, Node

_MOST_CELLS = 1 << 20
_OR_MISSING = f" or {MISSING}"


@dataclass(frozen=True)
class Grid:
    """Edges of the cells: ``edges[0]`` = min, ``edges[-1]`` = max, the rest the cut points.

    missing_leaf:  True if rows without a number have a leaf `?`, the last one.
    """

    edges: tuple[Decimal, ...]
    missing_leaf: bool = field(default=False, kw_only=True)

    @property
    def n_cells(self) -> int:
        return len(self.edges) - 1

    @property
    def root(self) -> Node:
        return Node(0, self.n_cells + self.missing_leaf)

    def label(self, node: Node) -> str:
        """Print an interval as ``[lo,hi)``, the leaf after the cells as `?`, both together as ``[lo,hi) or ?``."""
        if node.first == self.n_cells:
            return MISSING
        last = min(node.last, self.n_cells)
        numbers = f"[{self.edge_label(node.first)},{self.edge_label(last)})"
        return numbers if node.last == last else numbers + _OR_MISSING

    def middle(self, node: Node) -> float:
        """Return the middle of the numbers of an interval; of the leaf `?`, the middle of the domain."""
        first, last = (0, self.n_cells) if node.first == self.n_cells else (node.first, node.last)
        return (float(self.edges[first]) + float(self.edges[min(last, self.n_cells)])) / 2

    def edge_label(self, i: int) -> str:
        """Print an edge."""
        return plain(self.edges[i])

    def text(self, units: int) -> str:
        """Print a number of so many units of 10**-decimals."""
        return plain(Decimal(units).scaleb(-self.decimals))

    @cached_property
    def decimals(self) -> int:
        """Largest number of decimal digits of an edge, without trailing zeros."""
        return max(len(self.edge_label(i).partition(".")[2]) for i in range(len(self.edges)))

    @cached_property
    def units(self) -> tuple[int, ...]:
        """Exact edges, in units of 10**-decimals."""
        return tuple(int(Fraction(edge) * 10**self.decimals) for edge in self.edges)

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {self.edge_label(i): i for i in range(len(self.edges))}

    def interval(self, label: str) -> Node | None:
        """Return the interval with the label ``label``, or None."""
        if self.missing_leaf and label == MISSING:
            return Node(self.n_cells, self.root.last)
        numbers = label.removesuffix(_OR_MISSING)
        low, _, high = numbers.removeprefix("[").removesuffix(")").partition(",")
        first, last = self._places.get(low, -1), self._places.get(high, -1)
        node = Node(first, last if numbers == label else self.root.last)
        return node if 0 <= first < last <= node.last and self.label(node) == label else None

    def cells(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the cell of each value, -1 for NaN and for values outside the domain; shape (n,)."""
        edges = np.array([float(edge) for edge in self.edges])
        cells = np.searchsorted(edges, values, side="right") - 1
        inside = (values >= edges[0]) & (values < edges[-1])
        return np.where(inside, cells, -1)


def from_step(minimum: Decimal, maximum: Decimal, step: Decimal, column: str) -> Grid:
    """Build a grid with cut points at min + step, min + 2·step, ... below max. Raises SchemaError as
    :func:`from_cuts`.
    """
    if not step > 0:
        raise SchemaError("grid-invalid", f"the step of column {column} must be above 0", column=column)
    _check_domain(minimum, maximum, column)
    width = maximum - minimum
    if width / step > _MOST_CELLS:  # before //, which cannot hold more than 28 digits
        raise SchemaError(
            "grid-invalid",
            f"the grid of column {column} has more than {_MOST_CELLS} cells",
            column=column,
            remedy="take a larger step",
        )
    n_cells = int(width // step) + (width % step > 0)
    return from_cuts(minimum, maximum, tuple(minimum + step * i for i in range(1, n_cells)), column)


def from_cuts(minimum: Decimal, maximum: Decimal, cuts: tuple[Decimal, ...], column: str) -> Grid:
    """Build a grid from explicit cut points inside (min, max), ascending.

    Raises SchemaError if the domain is empty or a cut point is out of order or outside, also as doubles.
    """
    _check_domain(minimum, maximum, column)
    edges = (minimum, *cuts, maximum)
    if any(a >= b for a, b in pairwise(edges)):
        raise SchemaError(
            "grid-invalid",
            f"the cut points of column {column} must ascend strictly between min and max",
            column=column,
        )
    for a, b in pairwise(edges):
        if float(a) >= float(b):
            raise _too_fine(column, a, b)
    return Grid(edges)


def _too_fine(column: str, low: Decimal, high: Decimal) -> SchemaError:
    return SchemaError(
        "grid-invalid",
        f"the grid of column {column} is too fine: numbers are read with 15 to 17 significant digits (double "
        f"precision), in which {plain(low)} and {plain(high)} are one number",
        column=column,
        remedy="take a larger step, or subtract a constant from the column and its domain",
    )


def _check_domain(minimum: Decimal, maximum: Decimal, column: str) -> None:
    if not (minimum.is_finite() and maximum.is_finite() and minimum < maximum):
        raise SchemaError("grid-invalid", f"the domain of column {column} needs min < max", column=column)


def plain(number: Decimal) -> str:
    """Print a finite number without exponent, plus sign or trailing zeros."""
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in {"-0", ""} else text
