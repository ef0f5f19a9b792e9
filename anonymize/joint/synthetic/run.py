"""Common parts of joint runs of a synthetic table: the request, the outcome, the guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from anonymize.dp.accounting import check_rows
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.dp.noise import Plans
from anonymize.joint.synthetic.costs import Cost, Counted, Spread
from anonymize.joint.synthetic.holder import JointHolder, Tables
from anonymize.synthetic.loop import Synthesis, SyntheticOutcome
from anonymize.synthetic.requirement import Synthetic, check_synthetic
from anonymize.table import Schema
from anonymize.tds import Observer, run_single
from crypto.rounds import Rounds

MOST_DISTANCE = Fraction(1, 2**44)
"""Largest distance of all noise of a run from ideal noise. (1 + e^ε) times this value is below 2^−40 for ε up to 2.7.
Beyond, less is allowed (:class:`anonymize.joint.dp.noise.Plans`). Coins have 20 bits less than for 2^−64, and counts
cost a fifth less.
"""

_STEPS = 4


@dataclass(frozen=True)
class SyntheticRequest:
    """Computation agreed by all parties."""

    schema: Schema
    requirement: Synthetic
    job_hash: bytes

    def check(self, n_records: int) -> None:
        """Refuse unsupported requests before anything is sent or spent. n_records: own records.

        Raises SchemaError for an unsupported schema, PrivacyError for more rows than the bound.
        """
        check_synthetic(self.schema, self.requirement)
        check_rows(n_records, self.requirement.max_rows)

    def plans(self) -> Plans:
        """Return the noise plans: for the columns by leaf, the columns by bin, the choice, and the chosen pairs."""
        return Plans(self.requirement.epsilon, _STEPS, MOST_DISTANCE)


@dataclass(frozen=True)
class JointSyntheticOutcome:
    """Release as every party knows it, with charges, reveals, and δ.

    ledger:  the reveals; the charges are in ``outcome.accountant``.
    delta:   the release is (ε, δ)-DP for adding or removing a record.
    """

    outcome: SyntheticOutcome
    ledger: RevealLedger
    delta: Fraction


def run_synthesis(
    request: SyntheticRequest, tables: Tables, reveals: RevealLedger, observer: Observer
) -> Rounds[JointSyntheticOutcome]:
    """Run a party's side up to the last opening."""
    plans = request.plans()
    holder = JointHolder(tables, plans, reveals)
    outcome = yield from Synthesis(request.schema, request.requirement, holder, observer).run()
    return JointSyntheticOutcome(outcome, reveals, plans.delta)


def cost_at_most(request: SyntheticRequest, spread: Spread) -> Cost:
    """Return the largest cost of a run, without data.

    If noise makes totals larger than the bound on records, words may be wider by a bit.
    """
    holder = Counted(spread, request.plans())
    run_single(Synthesis(request.schema, request.requirement, holder, Observer()).run())
    return holder.cost
