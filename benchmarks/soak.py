"""Soak: many jobs over the same three daemons. `python -m benchmarks.soak N`, 200 jobs without a number.

Prints memory, threads and open files of each daemon at tenths of the way, seconds of a job, and what ledgers,
releases, audits and logs say in the end. Policies allow the jobs; most jobs are new to the ledgers.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from tests.support.network import processes, sample_network
from tests.support.soak import allow_many, complaints, wait_for_ends, work


def main(n_jobs: int) -> int:
    """Run the jobs and print figures; return the number of complaints."""
    with tempfile.TemporaryDirectory(prefix="jointcut-soak-") as folder:
        root = Path(folder)
        (root / "outs").mkdir()
        net = sample_network(root / "net", disclosure="sealed")
        allow_many(net)
        with processes(net) as daemons:
            seconds: list[float] = []
            print("jobs  s/job   " + "  ".join(f"{party}: MiB threads files" for party in net.roster))
            for took, held in work(net, daemons, root / "outs", n_jobs):
                seconds.append(took)
                if len(seconds) % max(1, n_jobs // 10) == 0:
                    figures = (f"{h.memory:.1f} {h.threads} {h.files}" for h in held.values())
                    lately = statistics.median(seconds[-max(1, n_jobs // 10) :])
                    print(f"{len(seconds):4}  {lately:5.2f}   " + "  ".join(figures), flush=True)
            wait_for_ends(net)
            found = complaints(net, daemons, n_jobs)
    print("\n".join(found) or "ledgers, releases, audits and logs agree")
    return len(found)


if __name__ == "__main__":
    sys.exit(min(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200), 1))
