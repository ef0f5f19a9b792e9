"""What a holder counts beside the cells of its table: what each party has of a group, and people."""

from __future__ import annotations

from anonymize.criteria.criterion import Beside
from anonymize.criteria.persons import counted_persons
from anonymize.criteria.remainder import own_counts
from anonymize.lkc.requirement import criteria_of
from anonymize.table import Ints
from jobs.data.tables import Loaded
from jobs.lkc.requirement import requirement
from jobs.task import Task


def beside(task: Task, loaded: Loaded, party: Ints | None) -> Beside:
    """What side counts are made of, by row of the table; nothing where the job asks for none.

    party:  by row whose it is, a place in the schema's parties; None where nobody is told apart.
    """
    criteria = criteria_of(requirement(task).entries(loaded.table.schema))
    of_parties = {} if party is None else own_counts(criteria, loaded.table, party)
    of_people = {} if loaded.person is None else counted_persons(criteria, loaded.person)
    return {**of_parties, **of_people}
