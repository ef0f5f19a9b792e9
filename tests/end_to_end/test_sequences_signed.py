"""Signatures of daemons on a run of sequences are compared with table and report, however records are
written.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.run import conduct
from coordinator.verify import verify_folder
from jobs.errors import PartyError
from jobs.release.csv import REPORT, TABLE
from jobs.release.sums import write_sums
from tests.support import jobs
from tests.support.duplex import run
from tests.support.network import network, serving
from tests.support.wards import HEADER, dealt_records, joint_wards_job, movements, sets_job

NAMES = ("north", "south")
Case = tuple[dict[str, Any], list[list[str]], str]


def first_places() -> Case:
    """Rows have the place of every time cell."""
    return joint_wards_job({"places": "first", "max_items": "30"}), movements(60), HEADER


def sets() -> Case:
    """After the first sweep a value has too few records."""
    coins = random.Random(0)  # noqa: S311
    rows = [
        [f"{';'.join(coins.sample('abcd', coins.randint(0, 3)))},{coins.choice(['HIV', 'flu'])}"]
        for _ in range(40)
    ]
    return joint_wards_job({"K": "6", "C": "3/4"}, columns=sets_job()["columns"]), rows, "codes,dx"


@pytest.mark.parametrize("case", [first_places, sets])
def test_a_report_of_other_sweeps_than_were_signed_is_refused(
    tmp_path: Path, case: Callable[[], Case]
) -> None:
    fields, records, header = case()
    net = network(tmp_path / "net", jobs.bundle_of(fields), dealt_records(tmp_path, NAMES, records, header))
    out = tmp_path / "out"

    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, out)

    run(scenario())
    assert "signed by all parties" in verify_folder(net.task, out).text
    report = json.loads((out / REPORT).read_text())
    names = "values" if header == "codes,dx" else "locations and times"
    assert f"by the names of {names}: the names must mean the same at all parties" in report["notes"][0]
    first = report["sweeps"][0]
    first["kept"][-1] += 1  # another pair was kept at first, and lost later: table and reveals agree with it
    assert first["kept"][-1] <= first["tested"][-1]
    (out / REPORT).write_text(json.dumps(report))
    write_sums(out, (TABLE, REPORT))
    with pytest.raises(PartyError) as caught:
        verify_folder(net.task, out)
    assert "signed a different result" in caught.value.problem.message
