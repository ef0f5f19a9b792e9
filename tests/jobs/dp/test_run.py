"""One party's side of a joint DP run: every mode runs the protocol of its row, under the list of its row."""

from __future__ import annotations

from pathlib import Path

import pytest

from anonymize.joint.disclosure import ALLOWED
from tests.support import jobs
from tests.support.dp_jobs import dp_joint, dp_site

MODES = {
    "dp/horizontal/circuit": ("horizontal", {}),
    "dp/vertical/circuit": ("vertical", {}),
    "dp/horizontal/thesis": ("horizontal", {"engine": "thesis", "max_rows": "24"}),
    "dp/vertical/thesis": ("vertical", {"engine": "thesis", "max_rows": "24"}),
}


def test_these_are_all() -> None:
    assert set(MODES) == {n for n in ALLOWED if n.startswith("dp/") and not n.endswith("/synthetic")}


@pytest.mark.parametrize("name", [name for name in MODES if name.endswith("circuit")])
def test_all_parties_have_one_result_which_names_its_engine(name: str, tmp_path: Path) -> None:
    partition, model = MODES[name]
    site = dp_site(tmp_path, partition, **model)
    results, _ = site.run()
    assert len({result.encoded for result in results.values()}) == 1
    for result in results.values():
        reveals = {(r["name"], r["to"]) for r in result.told["reveals"]}
        assert reveals <= {(a.name, a.to) for a in ALLOWED[name]}
        assert ("noisy_counts", "all") in reveals


@pytest.mark.parametrize("name", list(MODES))
def test_a_job_is_computed_in_the_mode_it_asks_for(name: str) -> None:
    partition, model = MODES[name]
    assert jobs.task_of(dp_joint(partition, model)).mode.name == name
