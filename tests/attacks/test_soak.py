"""The soak itself: what it calls flat, and that it looks at the books. Two hundred jobs of it: `make soak`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.attacks.soak import KINDS, Held, Soak, slope, soaked, soaking, wrong_books
from tests.support.samples import PARTIES


def seen(rss_kb: Sequence[int], threads: Sequence[int], files: Sequence[int]) -> Soak:
    """What was seen if all daemons held the same."""
    samples = [Held(*each) for each in zip(rss_kb, threads, files, strict=True)]
    return Soak({party: list(samples) for party in PARTIES})


def test_one_step_is_no_slope() -> None:
    assert slope([5, 5, 5, 90, 90, 90, 90]) == 0


def test_a_thing_that_one_job_in_four_keeps_is_a_slope() -> None:
    assert slope([n // 4 for n in range(150)]) == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize(
    ("rss_kb", "threads", "files", "grown"),
    [(0, 0, 0, []), (90, 0, 0, ["rss_kb"]), (0, 1, 0, ["threads"]), (0, 0, 1, ["files"])],
)
def test_what_grows_with_every_job_is_named(rss_kb: int, threads: int, files: int, grown: list[str]) -> None:
    jobs = range(200)
    soak = seen(*([100 + more * job for job in jobs] for more in (rss_kb, threads, files)))
    assert [line.split()[1] for line in soak.grown()] == grown * len(PARTIES)


def test_what_grows_during_the_warm_up_is_not_judged() -> None:
    level = [min(job, 49) for job in range(200)]
    assert seen(level, level, level).grown() == []


def test_books_of_a_job_of_each_kind(tmp_path: Path) -> None:
    with soaking(tmp_path / "net") as daemons:
        for _, _, found in soaked(daemons, tmp_path, len(KINDS)):
            assert all(held.files and held.threads and held.rss_kb for held, *_ in found.samples.values())
        net = daemons.net
    assert wrong_books(net, len(KINDS)) == []
    party = PARTIES[1]
    net.releases(party)[0].rename(net.root / "elsewhere")
    assert [line.split(":")[0] for line in wrong_books(net, len(KINDS))] == [party]
