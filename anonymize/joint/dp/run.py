"""Commons of the joint runs of DiffGen: the request, the outcome, the guarantee."""

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
"""Above so many cells the counts get each party's own noise also where the job says `noise: joint`."""


@dataclass(frozen=True)
class DpRequest:
    """The computation that all parties have agreed to.

    noise:  of the counts: drawn inside circuits, unknown to both; or each of the pair adds its own ([T] 7.4).
    """

    schema: Schema
    requirement: Dp
    job_hash: bytes
    noise: NoiseKind = "joint"

    def noise_for(self, n_cells: int) -> NoiseKind:
        """Return the kind of noise for that many cells."""
        return "each" if n_cells > JOINT_NOISE_CELLS else self.noise

    def check(self, n_records: int) -> None:
        """Refuse what cannot be done jointly, before anything is sent or spent. n_records: of ours.

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
        """One plan before the first turn, two a turn, one for the counts."""
        return Plans(self.requirement.epsilon, 2 * self.requirement.specializations + 2)


@dataclass(frozen=True)
class JointDpOutcome:
    """The release as every party knows it, with what was charged, what was revealed, and δ.

    ledger:  what was revealed; what was charged is ``released.accountant``.
    delta:   the release is (ε, δ)-DP for adding or removing one record; 0 where all noise is exact.
    noise:   how the counts got theirs.
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
    """Run one party's side of DiffGen to the release."""
    diffgen = DiffGen(request.schema, request.requirement, holder, observer, bounded=True)
    released = yield from diffgen.run()
    return JointDpOutcome(released, reveals, plans.delta, request.noise_for(released.table.n_cells))
