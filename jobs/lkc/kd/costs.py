"""What a sealed kd job will take, as far as the job alone tells."""

from __future__ import annotations

from anonymize.criteria.criterion import tallies_of
from anonymize.criteria.size import least_size
from anonymize.criteria.views import measures_of, views_of
from anonymize.joint.kd.judging import SideTests
from anonymize.joint.lkc.check_costs import sent_for
from anonymize.lkc.requirement import criteria_of
from jobs.lkc.costs import of_root
from jobs.lkc.requirement import requirement
from jobs.task import Task

_RECORDS, _GROUPS = 10_000, 1_000
"""Of the example."""


def of_cuts(task: Task) -> list[str]:
    """The root check, and a bound for each cut that is tried, of a job that looks at several values together."""
    said = of_root(task)
    if said:
        gates, bits = side_tests(task).of_cut(_RECORDS)
        size = sent_for(gates, bits)
        said.append(
            f"to try a cut of a group of {_RECORDS:,} records takes at most about {gates:,} AND gates "
            f"({size:,} bytes): {size * _GROUPS / 1e6:,.0f} MB for {_GROUPS:,} cuts; fewer the smaller a group is, "
            "and where public counts exclude that a side breaks what is asked"
        )
    return said


def side_tests(task: Task) -> SideTests:
    """What sides of cuts are asked, as the job says it."""
    schema, criteria = task.schema, criteria_of(requirement(task).entries(task.schema))
    measures = measures_of(views_of(schema, tallies_of(criteria)))
    return SideTests(criteria, measures, least_size(criteria))
