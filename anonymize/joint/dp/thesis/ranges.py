"""Ranges of the protocols of [T] chapter 7: weights, shares and plaintexts, from the job alone."""

from __future__ import annotations

from dataclasses import dataclass

from anonymize.errors import SchemaError
from anonymize.joint.dp.run import DpRequest
from anonymize.joint.dp.thesis.choice import check_thesis, most_candidates
from anonymize.joint.dp.thesis.weights import Series, Weights, exponential_weights, series_weights
from crypto.blocks import WORD_BITS
from crypto.paillier import DEFAULT_KEY_BITS, STATISTICAL_BITS
from crypto.polynomial import PolynomialShape
from crypto.scalar_product import ProductShape, packing

_HIDING = 40
"""Hiding bits: shares of all scores together are within 2^−40 of independent of the scores."""


@dataclass(frozen=True)
class KeySize:
    """Paillier key of a run; ``unsafe_short`` is for tests."""

    bits: int = DEFAULT_KEY_BITS
    unsafe_short: bool = False


def weights_for(request: DpRequest, key_bits: int = DEFAULT_KEY_BITS) -> Weights:
    """Return the weights of all possible scores. Raises SchemaError if weights or scalar products do not fit."""
    most = request.requirement.max_rows
    weights = exponential_weights(request.requirement.step_epsilon(request.schema), most)
    weights.check_sum(most_candidates(request.schema, request.requirement))
    packing(ProductShape(1, most), key_bits)
    return weights


@dataclass(frozen=True)
class Ranges:
    """Public sizes of a run, from the job alone.

    series:      weights of all possible scores, as a polynomial.
    count_bits:  bits of a class count of both parties.
    share_bits:  bits of the deputy's random share of a score.
    """

    series: Series
    count_bits: int
    share_bits: int

    @property
    def mask_bits(self) -> int:
        """Bits of the leader's random share of a polynomial's value."""
        return self.series.value_bits + STATISTICAL_BITS

    @property
    def share_words(self) -> int:
        """64-bit words of the reduced shares of a value."""
        return -(-self.series.value_bits // WORD_BITS)

    def polynomials(self, count: int) -> PolynomialShape:
        """Return the shape of ``count`` evaluations: coefficients of Q(α_1 + z) − β in powers of z."""
        bits = max(
            (abs(c) * (1 << i) << self.share_bits * i).bit_length()
            for i, c in enumerate(self.series.coefficients)
        )
        return PolynomialShape(
            count,
            self.series.degree,
            self.share_bits,
            max(bits, self.mask_bits) + self.series.degree.bit_length() + 1,
        )

    def check_key(self, key_bits: int) -> None:
        """Refuse too large plaintexts. Raises SchemaError."""
        needed = self.polynomials(1).value_bits + 2
        if needed > key_bits:
            raise SchemaError(
                "job-invalid",
                f"engine thesis: a Taylor polynomial of degree {self.series.degree} on shares of "
                f"{self.share_bits} bits needs plaintexts of {needed} bits; a key of {key_bits} bits has "
                f"{key_bits - 1}",
                remedy="lower `max_rows`, or say `engine: circuit`: this engine is for small tables",
            )


def ranges_for(request: DpRequest) -> Ranges:
    """Return the sizes for a request. Raises SchemaError for ranges of weights that do not fit."""
    requirement = request.requirement
    most_records = 2 * requirement.max_rows
    series = series_weights(requirement.step_epsilon(request.schema), most_records)
    candidates = most_candidates(request.schema, requirement)
    series.weights.check_sum(candidates)
    # A split takes a score for each grid point, so this number exceeds the shared scores of a run.
    scores = candidates * (2 * requirement.specializations + len(request.schema.qid))
    count_bits = most_records.bit_length()
    share_bits = count_bits + _HIDING + scores.bit_length()
    if share_bits >= WORD_BITS:
        raise SchemaError(
            "job-invalid",
            f"engine thesis: shares of scores need {share_bits} bits; circuits have {WORD_BITS - 1}",
        )
    return Ranges(series, count_bits, share_bits)


def check_weights(request: DpRequest) -> None:
    """Refuse a request on columns with too large weights, for any holders. Raises SchemaError."""
    check_thesis(request)
    weights_for(request)


def check_ranges(request: DpRequest) -> None:
    """Refuse a request on rows with too large weights or plaintexts, for any holders. Raises SchemaError."""
    check_thesis(request)
    ranges_for(request).check_key(DEFAULT_KEY_BITS)
