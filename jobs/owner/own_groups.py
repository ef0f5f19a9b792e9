"""`own_k`: in every group that a horizontal run opens, a party has no record of its own, or at least so many.

With `unit: person` it is so many people. K counts everybody's. What the others are left with who subtract theirs from
the result is ours alone; with `own_k` it is never a group of a few. The party looks for itself, before its part of
the counts goes to be opened, and ends the run where they are too few: that a group has some of our records, and not
so many, is what stopping tells.
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
    """Ends a run before groups are opened that have fewer of our records than the policy says, but some.

    one, many:  what is counted.
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
