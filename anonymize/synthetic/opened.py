"""Noisy marginals opened by a run. Later steps and readers have only these and the job."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from anonymize.synthetic.marginals import Axis, Marginal
from anonymize.table import Ints


def rows_above_noise(marginal: Marginal, rate: Fraction) -> int:
    """Return the fewest rows at which the mean count of a marginal reaches the scale of its noise."""
    return ceil(marginal.size / rate)


@dataclass(frozen=True)
class Measured:
    """Opened marginal.

    counts:  noisy, signed, unbiased: int64, of the marginal's shape.
    rate:    rate of the discrete Laplace noise of every count; its scale is 1 / rate.
    """

    marginal: Marginal
    counts: Ints = field(repr=False)
    rate: Fraction

    @property
    def variance(self) -> float:
        """Variance of the noise of a count, slightly too large for rates above 1."""
        return float(2 / self.rate**2)


@dataclass(frozen=True)
class Opened:
    """Opened values of a run, which alone determine its table.

    leaves:  by column.
    bins:    by column.
    pairs:   in the order chosen.
    """

    leaves: tuple[Measured, ...]
    bins: tuple[Measured, ...]
    pairs: tuple[Measured, ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Bins of every column."""
        return tuple(measured.marginal.axes[0] for measured in self.bins)
