"""Items of a path: places at times, places alone, or the values of a set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymize.errors import SchemaError
from anonymize.table import Codes

MAX_ITEMS = (1 << 31) - 1


@dataclass(frozen=True)
class Vocabulary:
    """Public set of possible items, numbered by time cell and then by location; items of a set by value.

    n_locations:  locations, or values of the set.
    n_cells:      time cells; 1 for items without time.
    timed:        True if items have a time.

    Raises SchemaError for no items, or for more items than int32 numbers.
    """

    n_locations: int
    n_cells: int = 1
    timed: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.n_items <= MAX_ITEMS:
            raise SchemaError(
                "domain-too-large",
                f"{self.n_locations} locations at {self.n_cells} times make {self.n_items} items, which is not "
                f"between 1 and {MAX_ITEMS}",
                remedy="take a coarser time, or fewer locations",
            )

    @property
    def n_items(self) -> int:
        """Codes are 0 … n_items − 1."""
        return self.n_locations * self.n_cells

    def codes(self, cells: Codes, locations: Codes) -> NDArray[np.int32]:
        """Return the items of time cells and locations: int32, shape as the arguments."""
        found: NDArray[np.int32] = (cells.astype(np.int64) * self.n_locations + locations).astype(np.int32)
        return found

    def cells_of(self, items: Codes) -> NDArray[np.int32]:
        """Return the time cell of every item: int32, shape as ``items``."""
        return (items // self.n_locations).astype(np.int32)

    def locations_of(self, items: Codes) -> NDArray[np.int32]:
        """Return the location of every item: int32, shape as ``items``."""
        return (items % self.n_locations).astype(np.int32)
