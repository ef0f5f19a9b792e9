"""A few jobs in a row over the same daemons: what they hold stays as it is, and their records agree.

200 jobs: attacks/test_faults.py. Figures: `python -m benchmarks.soak`.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.network import processes, sample_network
from tests.support.soak import allow_many, complaints, wait_for_ends, work

N_JOBS = 5


def test_jobs_in_a_row(tmp_path: Path) -> None:
    """Threads and files are as after the second job; memory has few figures to be flat in."""
    net = sample_network(tmp_path / "net", disclosure="sealed")
    allow_many(net)
    with processes(net) as daemons:
        after = [held for _, held in work(net, daemons, tmp_path, N_JOBS)]
        wait_for_ends(net)
        assert complaints(net, daemons, N_JOBS) == []
    for party in net.roster:
        assert after[-1][party].threads <= after[1][party].threads + 2
        assert after[-1][party].files <= after[1][party].files + 8
