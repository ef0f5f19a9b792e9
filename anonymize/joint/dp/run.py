"""Common parts of the joint runs of DiffGen: the request, the outcome, the guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from anonymize.dp.accounting import Dp, check_rows
from anonymize.dp.diffgen import DiffGen, DpOutcome, Holder
from anonymize.dp.noisy_table import check_cells
from anonymize.errors import SchemaError
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.dp.noise import Plans
from anonymize.table import Schema
from anonymize.tds import Observer, Outcome
from crypto.rounds import Rounds

NoiseKind: TypeAlias = Literal["joint", "each"]

JOINT_NOISE_CELLS = 1 << 15
"""Largest number of cells with joint noise. Beyond, the counts get each party's own noise, even with `noise: joint`.
"""


@dataclass(frozen=True)
class DpRequest:
    """Computation agreed by all parties.

    noise:  noise of the counts: drawn inside circuits and unknown to both, or separate noise of each of the pair ([T]
            7.4).
    """

    schema: Schema
    requirement: Dp
    job_hash: bytes
    noise: NoiseKind = "joint"

    def noise_for(self, n_cells: int) -> NoiseKind:
        """Return the kind of noise for ``n_cells`` cells."""
        return "each" if n_cells > JOINT_NOISE_CELLS else self.noise

    def check(self, n_records: int) -> None:
        """Refuse unsupported joint requests before anything is sent or spent. n_records: own records.

        Raises SchemaError for a set-valued column, PrivacyError for a table or a number of cells beyond the limits.
        """
        for column in self.schema.qid:
            if column.sets is not None:
                raise SchemaError(
                    "job-invalid",
                    f"column {column.name} is set-valued, which only single-holder DP jobs can publish",
                    column=column.name,
                    remedy="make it a categorical column, or publish it in a job of its holder",
                )
        check_rows(n_records, self.requirement.max_rows)
        check_cells(self.schema, self.requirement.specializations, self.requirement.max_cells)

    def plans(self) -> Plans:
        """Return the noise plans: a plan before the first turn, two a turn, and a plan for the counts."""
        return Plans(self.requirement.epsilon, 2 * self.requirement.specializations + 2)


@dataclass(frozen=True)
class JointDpOutcome:
    """Release as every party knows it, with charges, reveals, and δ.

    ledger:  the reveals; the charges are in ``released.accountant``.
    delta:   the release is (ε, δ)-DP for adding or removing a record; 0 if all noise is exact.
    noise:   kind of noise of the counts.
    """

    released: DpOutcome
    ledger: RevealLedger
    delta: Fraction
    noise: NoiseKind

    @property
    def outcome(self) -> Outcome:
        return self.released.outcome


def run_diffgen(
    request: DpRequest, holder: Holder, reveals: RevealLedger, plans: Plans, observer: Observer
) -> Rounds[JointDpOutcome]:
    """Run a party's side of DiffGen up to the release."""
    diffgen = DiffGen(request.schema, request.requirement, holder, observer, bounded=True)
    released = yield from diffgen.run()
    return JointDpOutcome(released, reveals, plans.delta, request.noise_for(released.table.n_cells))
