"""`own_k`: in every group opened by a horizontal run, a party has no own record or at least the given number.

With `unit: person` the number counts people. K counts the records of all parties. If the peers subtract their
records from the result, our records remain, and with `own_k` never a small group. The party checks before its part
of the counts is opened, and ends the run if a group has too few of our records. Stopping tells the peers that such
a group exists.
"""

from __future__ import annotations

from anonymize.criteria.clear import met_by_group
from anonymize.criteria.criterion import RECORDS
from anonymize.criteria.size import Size
from anonymize.table import Ints
from anonymize.tds import Observer
from jobs.data.counted import counted
from jobs.errors import PolicyError
from jobs.owner.observing import PassedOn


class OwnGroups(PassedOn):
    """Observer that ends a run before it opens a group with some of our records, but fewer than the policy asks.

    one, many:  the counted unit, singular and plural.
    """

    def __init__(self, shown: Observer, least: int, one: str = "record", many: str = "records") -> None:
        super().__init__(shown)
        self._least = Size(least)
        self._one, self._many = one, many

    def opening_groups(self, own: Ints) -> None:
        met = met_by_group(self._least, {RECORDS: own})
        if not met.all():
            least = int(own[~met].min())
            raise PolicyError(
                "policy-refused",
                f"what would be published next holds groups with fewer of our {self._many} than our policy asks "
                "for (`policy.own_k`)",
                private=f"the smallest has {counted(least, self._one, self._many)}, and `policy.own_k` is "
                f"{self._least.least}",
                remedy="ask for coarser columns or a greater K, or ask the party's owner about `own_k`",
            )
        super().opening_groups(own)
