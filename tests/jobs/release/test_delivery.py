"""A delivery is compared file by file, whatever the report says of the files."""

from __future__ import annotations

import pytest

from jobs.dp.settings import MARGINALS, SYNTHETIC_TABLE
from jobs.errors import PartyError
from jobs.release.delivery import checked_release
from jobs.release.sums import SUMS, sums_of
from jobs.synthetic.files import render
from tests.support.delivered import made_files
from tests.support.synthetic_jobs import made


@pytest.mark.parametrize("name", [SYNTHETIC_TABLE, MARGINALS])
def test_a_table_that_its_report_does_not_list_is_refused(name: str) -> None:
    site, result = made("horizontal")
    files = made_files(render(site.task, result))
    checked_release(site.task, result, {**files, SUMS: sums_of(files)}, {})
    other = {**files, name: files[name] + b"\n"}
    with pytest.raises(
        PartyError, match=f"the {name} of the delivered {SUMS} is not the one that was computed"
    ) as caught:
        checked_release(site.task, result, {**other, SUMS: sums_of(other)}, {})
    assert caught.value.problem.error_id == "result-mismatch"
