"""Options of the command line about a run, and notes for the holder of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from jobs.data.rows_read import RowsRead
from jobs.data.sources import Source
from jobs.errors import BudgetError
from jobs.owner.ledger import PrivacyLedger

UNLIMITED = Fraction(10**9)
"""Limit of a single holder without a stated budget: every release is charged, no release is refused."""

_REMEDY = "lower epsilon, or allow more with `--budget`; what is spent: `coordinator budget JOB`"


@dataclass(frozen=True)
class Options:
    """Options of the command line about a release, and about the ledger of any.

    as_records:  DiffGen: write `anonymized.csv`, too: rows repeated as often as the counts say, after Norm-Sub.
    budget:      DP, single holder: the most that all releases of the table may spend together.
    ledger:      single holder: the privacy ledger; default beside the table. LKC releases are listed there, too.
    """

    as_records: bool = False
    budget: Fraction = UNLIMITED
    ledger: Path | None = None

    def own_ledger(self, source: Source) -> PrivacyLedger:
        """Return a single holder's privacy ledger: beside the table itself, not beside a link to the table.

        Raises BudgetError for a named ledger that is a folder, or in a folder that does not exist.
        """
        path = self.ledger or source.ledger
        if self.ledger is not None and not path.parent.is_dir():
            raise BudgetError(
                "budget-ledger",
                f"there is no folder {path.parent} for a privacy ledger, so no ledger of earlier releases is there",
                remedy="correct the path of the ledger; for the first ledger make the folder",
            )
        if path.is_dir():
            raise BudgetError(
                "budget-ledger",
                f"{path} is a folder, not a privacy ledger",
                remedy="name the file of the ledger, as patients.privacy.sqlite in the folder",
            )
        return PrivacyLedger(path, source.identity, remedy=_REMEDY, place=source.held_at)


NO_OPTIONS = Options()


@dataclass(frozen=True)
class Noted:
    """Notes for the holder of the table besides the release, on the own console only.

    again:  the files come from an earlier run of the job, at no further cost.
    rows:   counts of the table's rows by outcome.
    strays: DP: the first value outside the domain, by column, in sentences.
    refused_for_sensitive: method kd: number of cuts that K allowed and the requirement on sensitive columns
                refused.
    of_table: effects of the job on the table, in sentences.
    reasons: LKC: by column the reasons that the column was not specialized further, in a line.
    advice: LKC: settings that free detail, in sentences.
    charged: DP: the ε of each run that the ledger of the table charges, oldest first.
    """

    again: bool = False
    rows: RowsRead | None = None
    strays: tuple[str, ...] = field(default=(), repr=False)
    refused_for_sensitive: int | None = field(default=None, repr=False)
    of_table: tuple[str, ...] = field(default=(), repr=False)
    reasons: Mapping[str, str] = field(default_factory=dict, repr=False)
    advice: tuple[str, ...] = field(default=(), repr=False)
    charged: tuple[Fraction, ...] = ()


NOTHING_NOTED = Noted()
