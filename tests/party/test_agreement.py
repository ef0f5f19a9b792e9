"""Commit without a coordinator: every order of messages, time-outs, a broken link, a death; then over links."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from crypto.errors import RemoteProtocolError
from jobs.errors import JobFailed, Problem, TransportError
from party.agreement import CHECKED, KEPT, WITHDRAWN, Agreement, Ballot
from party.net.link import Link
from party.owner.audit import HEAD_BYTES
from tests.support.duplex import KEY, pair, run

OURS, OTHER = b"d" * 32, b"e" * 32
GONE = Problem("peer-lost", "gone")
HEAD = b"h" * HEAD_BYTES
"""Head of the audit of each party."""

# ---- every order of events

Message = tuple[str, bytes]
LOST: Message = ("lost", b"")
ABORTED: Message = ("aborted", b"")
REASON = GONE.for_others().encode()


@dataclass
class Side:
    """One party of a world. stage: voting, withdrawn, kept, ended or dead."""

    name: str
    ballot: Ballot
    stage: str = "voting"

    def copy(self) -> Side:
        ballot = copy(self.ballot)
        for key in ("_votes", "_withdrawn", "_gone"):
            setattr(ballot, key, set(getattr(ballot, key)))
        return Side(self.name, ballot, self.stage)

    @property
    def over(self) -> bool:
        return self.stage not in ("voting", "withdrawn")

    @property
    def known(self) -> Any:
        b = self.ballot
        sets = (frozenset(b._votes), frozenset(b._withdrawn), frozenset(b._gone))
        return self.stage, *sets, b._kept, b.trouble is None

    def take(self, peer: str, message: Message) -> list[Message]:
        """As an Agreement does it; return what is said to all."""
        if self.over:
            return []
        if message == LOST:
            self.ballot.lost(peer, GONE)
        elif message == ABORTED:
            self.ballot.withdrew(peer, GONE)
            self.ballot.lost(peer, GONE)
        else:
            self.ballot.hear(peer, *message)
        return self.follow()

    def follow(self) -> list[Message]:
        said: list[Message] = []
        if self.stage == "voting" and self.ballot.trouble is not None and not self.ballot.keeps:
            self.stage = "withdrawn"
            said.append((WITHDRAWN, REASON))
        if self.ballot.keeps:
            self.stage = "kept"
            return [*said, (KEPT, self.ballot.release), LOST]
        if self.ballot.keeps is False:
            self.stage = "ended"
            return [*said, ABORTED]
        return said


@dataclass
class World:
    """Parties with what is on its way between every two of them. breaks: what may still go wrong."""

    sides: dict[str, Side]
    ways: dict[tuple[str, str], list[Message]]
    breaks: tuple[str, ...]
    cut: frozenset[tuple[str, str]] = frozenset()
    carriers: Mapping[frozenset[str], str] = field(default_factory=dict)

    def copy(self) -> World:
        sides = {name: side.copy() for name, side in self.sides.items()}
        ways = {way: list(said) for way, said in self.ways.items()}
        return World(sides, ways, self.breaks, self.cut, self.carriers)

    @property
    def known(self) -> Any:
        sides = tuple(side.known for side in self.sides.values())
        return sides, tuple(map(tuple, self.ways.values())), self.breaks, self.cut

    def say(self, me: str, messages: list[Message]) -> None:
        for way in self.ways:
            if way[0] == me and way not in self.cut:
                self.ways[way] += messages
            if self.sides[way[1]].over:  # who listens no more
                self.ways[way] = []

    def cut_between(self, one: str, other: str) -> None:
        for way in ((one, other), (other, one)):
            if way not in self.cut:
                self.ways[way] = [LOST]
                self.cut |= {way}
        for carried, carrier in self.carriers.items():
            if carrier in (one, other) and carried & {one, other}:
                self._cut_carried(*carried)

    def _cut_carried(self, one: str, other: str) -> None:
        for way in ((one, other), (other, one)):
            if way not in self.cut:
                self.ways[way] = [LOST]
                self.cut |= {way}

    def moves(self) -> list[Callable[[World], None]]:
        """Everything that can happen now; a party's time for last words is over when nothing else can."""
        heard = [partial(World._hear, way=way) for way, said in self.ways.items() if said]
        late = [
            partial(World._late, name=name) for name, side in self.sides.items() if side.stage == "voting"
        ]
        broken = [partial(World._break, what=what) for what in self.breaks]
        closed = [
            partial(World._close, name=name)
            for name, side in self.sides.items()
            if side.stage == "withdrawn" and not heard
        ]
        return [*heard, *late, *broken, *closed]

    def after(self, move: Callable[[World], None]) -> World:
        """Return the world that a move makes of this one."""
        world = self.copy()
        move(world)
        return world

    def _hear(self, way: tuple[str, str]) -> None:
        message = self.ways[way].pop(0)
        self.say(way[1], self.sides[way[1]].take(way[0], message))

    def _late(self, name: str) -> None:
        self.sides[name].ballot.late(1)
        self.say(name, self.sides[name].follow())

    def _close(self, name: str) -> None:
        self.sides[name].ballot.close()
        self.say(name, self.sides[name].follow())

    def _break(self, what: str) -> None:
        """Break the link between the first two, or let the first die: all parties are alike."""
        one, *others = self.sides
        self.breaks = tuple(each for each in self.breaks if each != what)
        if what == "link":
            self.cut_between(one, others[0])
        else:
            self.sides[one].stage = f"dead, {self.sides[one].stage}"
            for other in others:
                self.cut_between(one, other)
            self.say(one, [])


def world(votes: Mapping[str, bytes | None], breaks: tuple[str, ...]) -> World:
    """Parties that have voted; who checked nothing has failed and told the others so."""
    ways: dict[tuple[str, str], list[Message]] = {
        (one, other): [ABORTED if vote is None else (CHECKED, vote + HEAD)]
        for one, vote in votes.items()
        for other in votes
        if one != other
    }
    sides = {
        name: Side(name, Ballot(votes.keys() - {name}, vote or OURS), "voting" if vote else "ended")
        for name, vote in votes.items()
    }
    return World(sides, ways, breaks)


def ends(begin: World) -> list[dict[str, str]]:
    """The last stage of every party in every world that can come about."""
    seen, found, todo = {begin.known}, [], [begin]
    while todo:
        current = todo.pop()
        if all(side.over for side in current.sides.values()):
            found.append({name: side.stage for name, side in current.sides.items()})
        for each in map(current.after, current.moves()):
            known = each.known
            if known not in seen:
                seen.add(known)
                todo.append(each)
    return found


def kept(end: Mapping[str, str]) -> set[str]:
    return {name for name, stage in end.items() if stage.endswith("kept")}


@pytest.mark.parametrize("roster", ["ab", "abc"])
def test_while_links_hold_all_or_none_keep_it(roster: str) -> None:
    """Whoever's patience ends when."""
    found = ends(world(dict.fromkeys(roster, OURS), ()))
    assert {len(kept(end)) for end in found} == {0, len(roster)}
    assert {stage for end in found for stage in end.values()} == {"kept", "ended"}


@pytest.mark.parametrize("vote", [None, OTHER], ids=["failed", "other files"])
@pytest.mark.parametrize("roster", ["ab", "abc"])
def test_nobody_keeps_what_one_has_not_checked(roster: str, vote: bytes | None) -> None:
    for who in roster:
        found = ends(world({**dict.fromkeys(roster, OURS), who: vote}, ()))
        assert found
        assert not any(kept(end) for end in found)


def test_one_broken_link_of_three_makes_no_difference() -> None:
    found = ends(world(dict.fromkeys("abc", OURS), ("link",)))
    assert {len(kept(end)) for end in found} == {0, 3}


def test_those_who_are_left_agree() -> None:
    found = ends(world(dict.fromkeys("abc", OURS), ("death",)))
    left = [{name: stage for name, stage in end.items() if not stage.startswith("dead")} for end in found]
    assert {(len(kept(end)), len(end)) for end in left} >= {(0, 2), (2, 2), (0, 3), (3, 3)}
    assert all(len(kept(end)) in (0, len(end)) for end in left)


def walks(begin: World, seed: int, n_walks: int) -> list[dict[str, str]]:
    """The last stages of worlds that come about by chance: four parties have too many worlds to visit each."""
    coins, found = random.Random(seed), []  # noqa: S311
    for _ in range(n_walks):
        current = begin
        while not all(side.over for side in current.sides.values()):
            current = current.after(coins.choice(current.moves()))
        found.append({name: side.stage for name, side in current.sides.items()})
    return found


@pytest.mark.parametrize("what", ["link", "death"])
@pytest.mark.parametrize("roster", ["abcd", "cabd"], ids=["of the carrier", "of a carried party"])
def test_those_who_are_left_agree_though_a_party_of_the_pair_carries_messages(roster: str, what: str) -> None:
    """a and b are the pair, and a carries what c and d say to each other."""
    begin = world(dict.fromkeys(roster, OURS), (what,))
    begin.carriers = {frozenset("cd"): "a"}
    found = walks(begin, 7, 200)
    left = [{name: stage for name, stage in end.items() if not stage.startswith("dead")} for end in found]
    assert {len(kept(end)) for end in left} >= {0, 4 if what == "link" else 3}
    assert all(len(kept(end)) in (0, len(end)) for end in left)


def test_a_missing_vote_of_a_carried_party_names_the_carrier_too() -> None:
    ballot = Ballot({"b", "c"}, OURS, suspects={"c": "c or b"})
    ballot.late(1)
    assert ballot.trouble is not None
    assert ballot.trouble.party == "b, c or b"


def test_the_window_that_remains() -> None:
    """Two of two: one keeps it and dies, or is cut off, before the other has its vote."""
    for what in ("link", "death"):
        found = ends(world(dict.fromkeys("ab", OURS), (what,)))
        assert any(len(kept(end)) == 1 for end in found)


# ---- over links


def meshes(*names: str) -> dict[str, dict[str, Link]]:
    links: dict[str, dict[str, Link]] = {name: {} for name in names}
    for one, other in itertools.combinations(names, 2):
        ours, theirs = pair()
        links[one][other] = Link(one, other, KEY, ours, greeted=False)
        links[other][one] = Link(other, one, KEY, theirs, greeted=False)
    return links


async def outcome(
    links: Mapping[str, Link], release: bytes, patience_s: float, last_words_s: float
) -> Problem | None:
    """Return the error that an agreement ends with; None: the release is kept."""
    async with Agreement(links, release, HEAD, patience_s=patience_s, last_words_s=last_words_s) as agreement:
        try:
            await agreement.reached()
        except JobFailed as error:
            return error.problem
        assert {link.head for link in links.values()} <= {HEAD, None}
        agreement.kept()
        await agreement.ended()
        return None


async def outcomes(
    links: Mapping[str, Mapping[str, Link]],
    votes: Mapping[str, bytes],
    patience_s: float = 20,
    last_words_s: float = 20,
) -> list[Problem | None]:
    pumps = [asyncio.create_task(link.run()) for of in links.values() for link in of.values()]
    try:
        return await asyncio.gather(
            *(outcome(links[name], vote, patience_s, last_words_s) for name, vote in votes.items())
        )
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


def test_equal_votes_are_kept_by_all_and_every_link_ends() -> None:
    async def scenario() -> list[Problem | None]:
        links = meshes("a", "b", "c")
        found = await outcomes(links, dict.fromkeys("abc", OURS))
        traffic = [link.traffic for of in links.values() for link in of.values()]
        assert {(t.bytes_sent, t.messages_sent) for t in traffic} == {(96, 2)}
        return found

    assert run(scenario()) == [None, None, None]


def test_another_digest_ends_the_job_everywhere_at_once() -> None:
    found = run(outcomes(meshes("a", "b", "c"), {"a": OURS, "b": OURS, "c": OTHER}))
    assert all(problem is not None and problem.error_id == "result-mismatch" for problem in found)
    assert "c was delivered different files than we were" in str(found[0])


def test_a_vote_that_does_not_come_is_named() -> None:
    found = run(outcomes(meshes("a", "b", "c"), {"a": OURS, "b": OURS}, 0.05, 0.05))
    assert [(p.error_id, p.named) for p in found if p] == [("peer-timeout", "c")] * 2


def test_whoever_ran_out_of_patience_keeps_what_another_has_kept() -> None:
    ballot = Ballot({"b", "c"}, OURS)
    ballot.hear("b", CHECKED, OURS + HEAD)
    ballot.late(1)
    assert ballot.keeps is None
    ballot.hear("b", KEPT, OURS)
    assert ballot.keeps


@pytest.mark.parametrize(
    ("step", "payload"),
    [("x", OURS), (CHECKED, OURS), (CHECKED, (OURS + HEAD)[:-1]), (KEPT, OURS + b"0"), (CHECKED, b"")],
)
def test_what_has_no_place_here_is_the_peers_fault(step: str, payload: bytes) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        Ballot({"b"}, OURS).hear("b", step, payload)
    assert caught.value.culprit == "b"


@pytest.mark.parametrize("words", [[("x", b"")], [(CHECKED, b"short")], [(CHECKED, OTHER + HEAD)] * 5])
def test_a_peer_that_says_something_else_ends_it(words: list[Message]) -> None:
    async def scenario() -> Problem | None:
        links = meshes("a", "b")
        pumps = [asyncio.create_task(link.run()) for of in links.values() for link in of.values()]
        for word in words:
            await links["b"]["a"].send(*word)
        found = await outcome(links["a"], OURS, 20, 20)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        return found

    problem = run(scenario())
    assert problem is not None
    assert problem.error_id in {"peer-protocol", "result-mismatch"}


def test_what_arrived_before_a_link_broke_counts() -> None:
    async def scenario() -> Problem | None:
        ours, theirs = pair()
        link, other = Link("a", "b", KEY, ours, greeted=False), Link("b", "a", KEY, theirs, greeted=False)
        pumps = [asyncio.create_task(each.run()) for each in (link, other)]
        await other.send(CHECKED, OURS + HEAD)
        await asyncio.sleep(0.01)
        await theirs.close()  # no farewell
        await asyncio.sleep(0.01)
        found = await outcome({"b": link}, OURS, 20, 20)
        for pump in pumps:
            pump.cancel()
        gathered = await asyncio.gather(*pumps, return_exceptions=True)
        assert isinstance(gathered[0], TransportError)
        return found

    assert run(scenario()) is None
