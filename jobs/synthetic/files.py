"""Files of a synthetic release: all files follow from the result."""

from __future__ import annotations

from jobs.dp.settings import MARGINALS, SYNTHETIC_TABLE
from jobs.synthetic.marginals import marginals_csv
from jobs.synthetic.report import report_fields
from jobs.synthetic.result import SyntheticResult
from jobs.synthetic.table import synthetic_csv
from jobs.synthetic.verify import require_verified
from jobs.task import Collected, Rendered, Task


def render(task: Task, result: SyntheticResult) -> Rendered:
    """Return table, marginals and report of a release."""
    table, marginals = synthetic_csv(task, result.outcome), marginals_csv(result.outcome)
    return Rendered({SYNTHETIC_TABLE: table, MARGINALS: marginals}, report_fields(task, result))


def made_of(task: Task, collected: Collected) -> Rendered:
    """Make the release of a joint run. Raises PartyError unless the release passes the verification of readers."""
    rendered = render(task, collected.result)
    require_verified(task, rendered.tables[MARGINALS], rendered.tables[SYNTHETIC_TABLE], rendered.report)
    return rendered
