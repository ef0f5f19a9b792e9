"""Links of a run: 2 (n - 2) + 1 for n parties, and every pair of parties has a way."""

from __future__ import annotations

import itertools

import pytest

from party.net.wiring import Wiring


def wirings(
    n: int, pair: tuple[int, int] = (0, 1), apart: frozenset[frozenset[str]] = frozenset()
) -> list[Wiring]:
    parties = tuple(f"p{i}" for i in range(n))
    return [Wiring(me, parties, (parties[pair[0]], parties[pair[1]]), apart) for me in parties]


@pytest.mark.parametrize("n", [2, 3, 4, 5, 20, 100])
@pytest.mark.parametrize("pair", [(0, 1), (1, 0)])
def test_links_follow_the_compute_pair(n: int, pair: tuple[int, int]) -> None:
    found = wirings(n, pair)
    links = {frozenset((w.me, peer)) for w in found for peer in w.direct}
    assert len(links) == 2 * (n - 2) + 1
    for w in found:
        assert {*w.direct, *w.carried} == set(w.parties) - {w.me}
        assert not set(w.direct) & w.carried.keys()
        assert set(w.direct) == (set(w.parties) - {w.me} if w.me in w.pair else set(w.pair))


@pytest.mark.parametrize("pair", [(0, 1), (4, 2)])
def test_both_ends_and_the_carrier_agree(pair: tuple[int, int]) -> None:
    found = {w.me: w for w in wirings(6, pair)}
    carriers = set()
    for one, other in itertools.combinations(found, 2):
        carrier = found[one].carrier(one, other)
        assert {w.carrier(one, other) for w in found.values()} == {carrier}
        if carrier is None:
            continue
        carriers.add(carrier)
        assert found[one].carried[other] == found[other].carried[one] == carrier
        assert other in found[carrier].served(one)
        assert one in found[carrier].served(other)
    assert carriers == set(found["p0"].pair)
    for one, other in itertools.permutations(found, 2):
        assert (other in found[one].carriages) == (one in found[other].carriages)


@pytest.mark.parametrize("pair", [(0, 1), (4, 2)])
def test_one_party_of_each_link_calls(pair: tuple[int, int]) -> None:
    found = wirings(6, pair)
    links = {frozenset((w.me, peer)) for w in found for peer in w.direct}
    calls = [frozenset((w.me, peer)) for w in found for peer in w.called]
    assert len(calls) == len(links)
    assert set(calls) == links


def test_two_parties_that_the_mode_keeps_apart_have_their_own_link() -> None:
    found = wirings(5, apart=frozenset({frozenset(("p2", "p4"))}))
    assert set(found[2].direct) == {"p0", "p1", "p4"}
    assert set(found[2].carried) == {"p3"}
    assert sum(len(w.direct) for w in found) == 2 * (7 + 1)


def test_the_pair_carries_for_nobody_among_three() -> None:
    assert [w.carriages for w in wirings(3)] == [(), (), ()]
