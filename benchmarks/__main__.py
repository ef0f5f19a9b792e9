"""Runner of the benchmarks of an area: `python -m benchmarks AREA`, or `make bench AREA=NAME`.

Each module of an area runs in a separate process with its defaults, prints its figures and writes them as JSON
below out/. For a module with arguments of its own: `python -m benchmarks.bench_dp NAME`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence

AREAS: Mapping[str, Sequence[str]] = {
    "lkc": (
        "bench_lkc",
        "bench_utility",
        "bench_scores",
        "bench_clusters",
        "bench_withhold",
        "bench_explore",
    ),
    "kd": (
        "bench_kd",
        "bench_kd_jobs",
        "bench_kd_learners",
        "bench_kd_queries",
        "bench_kd_orders",
        "bench_kd_anchors",
    ),
    "vertical": ("bench_vertical", "bench_vertical_checks"),
    "sequences": ("bench_sequences", "bench_sequences_jobs"),
    "dp": ("bench_dp",),
    "synthetic": ("bench_synthetic_jobs", "bench_synthetic_joint", "bench_synthetic"),
    "crypto": ("bench_crypto", "bench_protection"),
    "scale": ("bench_scale", "bench_postgres", "bench_beyond"),
    "route": ("route",),
}


def main(areas: Sequence[str]) -> None:
    """Run areas, `all` included; without areas, list them. Ends the program for an unknown area or a failure."""
    chosen = list(AREAS) if "all" in areas else areas
    if unknown := set(chosen) - set(AREAS):
        raise SystemExit(f"no such area: {', '.join(sorted(unknown))}; there are {', '.join(AREAS)}")
    if not chosen:
        print("\n".join(f"{area:10} {' '.join(modules)}" for area, modules in AREAS.items()))
    for module in (module for area in chosen for module in AREAS[area]):
        subprocess.run([sys.executable, "-m", f"benchmarks.{module}"], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
