"""Accountant of a differentially private run: it charges every use of the budget and refuses overdrafts.

Pure differential privacy adds up over steps, even if a step depends on earlier releases, as long as the sum stays
within a total fixed beforehand (sequential composition, [T] Lemma 6.1; Rogers, Roth, Ullman, Vadhan, NeurIPS 2016,
for charges that depend on earlier outcomes). Steps on disjoint records count once (parallel composition, [T] Lemma
6.2). All amounts are exact fractions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from anonymize.dp.utility import UtilityName
from anonymize.errors import PrivacyError, SchemaError
from anonymize.table import MAX_RECORDS, Schema

MAX_FANOUT = 64


@dataclass(frozen=True)
class Budget:
    """Privacy budget ε of a requirement.

    epsilon:     the whole budget.
    max_rows:    public bound on the records of a holder; more records are refused before anything is sent.
    per_person:  m: a person may have m records, and ε is per person; 1: ε is per record.
    """

    epsilon: Fraction
    max_rows: int = field(default=1_000_000, kw_only=True)
    per_person: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise SchemaError("job-invalid", f"epsilon must be above 0, not {self.epsilon}")
        if not 1 <= self.max_rows <= MAX_RECORDS:
            raise SchemaError("job-invalid", f"max_rows must be 1 to {MAX_RECORDS}")
        if self.per_person < 1:
            raise SchemaError("job-invalid", "max_records_per_person must be at least 1")

    def of_a_record(self, epsilon: Fraction) -> Fraction:
        """Return the ε of a record in a step that costs a person ``epsilon``. The noise has this ε."""
        return epsilon / self.per_person


@dataclass(frozen=True)
class Dp(Budget):
    """Requirement: ε, and the public settings of DiffGen.

    specializations:  h, fixed before any data is touched.
    utility:          objective of the choices.
    max_cells:        public limit on the cells of the release.
    max_fanout:       most children of a candidate node of a set-valued column.
    """

    specializations: int
    utility: UtilityName = "max"
    max_cells: int = 100_000
    max_fanout: int = MAX_FANOUT

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.specializations < 1:
            raise SchemaError(
                "job-invalid",
                "specializations (h) must be at least 1: h = 0 publishes how often each class occurs, and no more",
            )
        if self.max_cells < 1:
            raise SchemaError("job-invalid", "max_cells must be at least 1")
        if not 2 <= self.max_fanout <= MAX_FANOUT:
            raise SchemaError("job-invalid", f"max_fanout must be 2 to {MAX_FANOUT}")

    def step_epsilon(self, schema: Schema) -> Fraction:
        """Return ε′ = ε / (2·(|A_n| + 2h)), A_n the numeric columns ([T] Algorithm 6.1, line 3)."""
        n_numeric = sum(column.is_numeric for column in schema.qid)
        return self.epsilon / (2 * (n_numeric + 2 * self.specializations))


@dataclass(frozen=True, slots=True)
class Charge:
    """Cost of a step.

    purpose:    purpose in words; public.
    epsilon:    share of the budget.
    iteration:  turn of the loop, 0 before the first; the counts come after the last.
    distance:   total variation distance of the noise from ideal noise, 0 for exact noise.
    """

    purpose: str
    epsilon: Fraction
    iteration: int
    distance: Fraction = Fraction(0)


class Accountant:
    """Charges of a run, in order; the sum never exceeds ``epsilon``."""

    def __init__(self, epsilon: Fraction) -> None:
        self.epsilon = epsilon
        self.charges: list[Charge] = []

    @property
    def spent(self) -> Fraction:
        return sum((charge.epsilon for charge in self.charges), Fraction(0))

    @property
    def rest(self) -> Fraction:
        return self.epsilon - self.spent

    @property
    def distance(self) -> Fraction:
        """Bound on the total variation distance of the whole run from a run with ideal noise."""
        return sum((charge.distance for charge in self.charges), Fraction(0))

    def charge(
        self, purpose: str, epsilon: Fraction, iteration: int = 0, distance: Fraction = Fraction(0)
    ) -> Fraction:
        """Charge a step in advance and return its ε. Raises PrivacyError on overdraft."""
        if epsilon <= 0 or epsilon > self.rest:
            raise PrivacyError(
                "budget-overdrawn",
                f"{purpose} needs ε = {epsilon}, and {self.rest} of {self.epsilon} is left",
                remedy="report the error: the run was stopped before it could reveal too much",
            )
        self.charges.append(Charge(purpose, epsilon, iteration, distance))
        return epsilon


def check_rows(n_records: int, max_rows: int) -> None:
    """Refuse a table with more rows than the public bound; the public text hides the excess."""
    if n_records > max_rows:
        raise PrivacyError(
            "too-many-rows",
            f"the table has more than max_rows = {max_rows} rows",
            remedy="raise max_rows in the job: a public bound on the effect of a record",
            private=f"{n_records} rows",
        )
