"""Commit without a coordinator: every order of messages, time-outs, a broken link, a death; then over links."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest

from crypto.errors import RemoteProtocolError
from jobs.errors import JobFailed, Problem, TransportError
from party.agreement import CHECKED, HEAD, KEPT, WITHDRAWN, Agreement, Ballot
from party.net.link import Link
from party.owner.chain import Head
from party.owner.heads import telling
from tests.support.duplex import KEY, pair, run

OURS, OTHER = b"d" * 32, b"e" * 32
GONE = Problem("peer-lost", "gone")

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
        sets = {key: set(getattr(self.ballot, key)) for key in ("_votes", "_withdrawn", "_gone")}
        ballot = copy(self.ballot)
        for key, value in sets.items():
            setattr(ballot, key, value)
        return Side(self.name, ballot, self.stage)

    @property
    def over(self) -> bool:
        return self.stage not in ("voting", "withdrawn")

    @cached_property
    def known(self) -> Any:
        """To be asked when nothing about it changes any more."""
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
    """Parties with what is on its way between every two of them. breaks: what may still go wrong.

    patient:  whose patience does not end.
    """

    sides: dict[str, Side]
    ways: dict[tuple[str, str], tuple[Message, ...]]
    breaks: tuple[str, ...]
    patient: str = ""
    cut: frozenset[tuple[str, str]] = frozenset()

    def copy(self) -> World:
        return World(dict(self.sides), dict(self.ways), self.breaks, self.patient, self.cut)

    def side(self, name: str) -> Side:
        """A party about to change, which other worlds do not share."""
        self.sides[name] = self.sides[name].copy()
        return self.sides[name]

    @property
    def known(self) -> Any:
        sides = tuple(side.known for side in self.sides.values())
        return sides, tuple(self.ways.values()), self.breaks, self.cut

    def say(self, me: str, messages: list[Message]) -> None:
        for way in self.ways:
            if way[0] == me and way not in self.cut:
                self.ways[way] += tuple(messages)
            if self.sides[way[1]].over:  # who listens no more
                self.ways[way] = ()

    def cut_between(self, one: str, other: str) -> None:
        for way in ((one, other), (other, one)):
            if way not in self.cut:
                self.ways[way] = (LOST,)
                self.cut |= {way}

    def nexts(self) -> Iterator[World]:
        """Everything that can happen now; a party's time for last words is over when nothing else can."""
        moved = False
        for way, said in self.ways.items():
            if said:
                moved = True
                world = self.copy()
                world.ways[way] = said[1:]
                world.say(way[1], world.side(way[1]).take(way[0], said[0]))
                yield world
        for name, side in self.sides.items():
            if side.stage == "voting" and name not in self.patient:
                world = self.copy()
                side = world.side(name)
                side.ballot.late(1)
                world.say(name, side.follow())
                yield world
        for what in self.breaks:
            yield from self._broken(what)
        if not moved:
            for name, side in self.sides.items():
                if side.stage == "withdrawn":
                    world = self.copy()
                    side = world.side(name)
                    side.ballot.close()
                    world.say(name, side.follow())
                    yield world

    def _broken(self, what: str) -> Iterator[World]:
        """A link breaks, of two letters, or a party dies."""
        world = self.copy()
        world.breaks = tuple(each for each in self.breaks if each != what)
        if len(what) == 2:
            world.cut_between(*what)
        else:
            world.side(what).stage = f"dead, {self.sides[what].stage}"
            for one, other in self.ways:
                if one == what:
                    world.cut_between(one, other)
            world.say(what, [])
        yield world


def world(
    votes: Mapping[str, bytes | None],
    breaks: tuple[str, ...],
    links: Mapping[str, str] | None = None,
    patient: str = "",
) -> World:
    """Parties that have voted; who checked nothing has failed and told the others so.

    links:  with whom each has one; default: all with all.
    """
    linked = {one: set((links or {}).get(one, votes)) - {one} for one in votes}
    ways: dict[tuple[str, str], tuple[Message, ...]] = {
        (one, other): (ABORTED if vote is None else (CHECKED, vote),)
        for one, vote in votes.items()
        for other in votes
        if other in linked[one]
    }
    sides = {
        name: Side(
            name,
            Ballot(linked[name], vote or OURS, counts=len(linked[name]) == len(votes) - 1),
            "voting" if vote else "ended",
        )
        for name, vote in votes.items()
    }
    return World(sides, ways, breaks, patient)


PAIRED = {"a": "abcd", "b": "abcd", "c": "ab", "d": "ab"}
"""Leader a, deputy b, and two others without a link."""


def ends(begin: World) -> list[dict[str, str]]:
    """The last stage of every party in every world that can come about."""
    seen, found, todo = {begin.known}, [], [begin]
    while todo:
        current = todo.pop()
        following = list(current.nexts())
        if all(side.over for side in current.sides.values()):
            found.append({name: side.stage for name, side in current.sides.items()})
        for each in following:
            if each.known not in seen:
                seen.add(each.known)
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
    found = ends(world(dict.fromkeys("abc", OURS), ("ab",)))
    assert {len(kept(end)) for end in found} == {0, 3}


def test_those_who_are_left_agree() -> None:
    found = ends(world(dict.fromkeys("abc", OURS), ("a",)))
    left = [{name: stage for name, stage in end.items() if not stage.startswith("dead")} for end in found]
    assert {(len(kept(end)), len(end)) for end in left} >= {(0, 2), (2, 2), (0, 3), (3, 3)}
    assert all(len(kept(end)) in (0, len(end)) for end in left)


@pytest.mark.parametrize("patient", ["abd", "bcd"])
def test_with_links_of_the_pair_alone_all_or_none_keep_it(patient: str) -> None:
    """One of four is impatient; that all are takes a minute, and comes to the same."""
    found = ends(world(dict.fromkeys("abcd", OURS), (), PAIRED, patient))
    assert {len(kept(end)) for end in found} == {0, 4}
    assert {stage for end in found for stage in end.values()} == {"kept", "ended"}


@pytest.mark.parametrize(("who", "vote"), [("a", None), ("c", None), ("c", OTHER)])
def test_with_links_of_the_pair_alone_nobody_keeps_what_one_has_not_checked(
    who: str, vote: bytes | None
) -> None:
    found = ends(world({**dict.fromkeys("abcd", OURS), who: vote}, (), PAIRED, "abcd"))
    assert found
    assert not any(kept(end) for end in found)


@pytest.mark.parametrize("link", ["ab", "ac"])
def test_one_broken_link_with_the_pair_makes_no_difference(link: str) -> None:
    found = ends(world(dict.fromkeys("abcd", OURS), (link,), PAIRED, "abcd"))
    assert {len(kept(end)) for end in found} <= {0, 4}
    assert any(kept(end) for end in found)


@pytest.mark.parametrize("who", ["a", "c"])
def test_those_who_are_left_of_the_pairs_run_agree(who: str) -> None:
    found = ends(world(dict.fromkeys("abcd", OURS), (who,), PAIRED, "abcd"))
    left = [{name: stage for name, stage in end.items() if not stage.startswith("dead")} for end in found]
    assert {(len(kept(end)), len(end)) for end in left} == {(0, 3), (3, 3), (4, 4)}


def test_votes_of_the_pair_alone_are_not_all_votes() -> None:
    ballot = Ballot({"a", "b"}, OURS, counts=False)
    ballot.hear("a", CHECKED, OURS)
    ballot.hear("b", CHECKED, OURS)
    assert ballot.keeps is None
    ballot.hear("b", KEPT, OURS)
    assert ballot.keeps


def test_a_pair_that_voted_and_is_gone_keeps_nobody_waiting() -> None:
    ballot = Ballot({"a", "b"}, OURS, counts=False)
    for peer in "ab":
        ballot.hear(peer, CHECKED, OURS)
    ballot.lost("a", GONE)
    assert (ballot.keeps, ballot.trouble) == (None, None)
    ballot.lost("b", GONE)
    assert (ballot.keeps, ballot.trouble) == (False, GONE)


def test_of_a_pair_that_voted_and_says_no_more_both_are_named() -> None:
    ballot = Ballot({"a", "b"}, OURS, counts=False)
    for peer in "ab":
        ballot.hear(peer, CHECKED, OURS)
    ballot.late(3)
    assert ballot.trouble is not None
    assert "a, b keeps the release" in ballot.trouble.message


def test_the_window_that_remains() -> None:
    """Two of two: one keeps it and dies, or is cut off, before the other has its vote."""
    for what in ("ab", "a"):
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
    """What an agreement ends with; None: the release is kept."""
    async with Agreement(links, release, patience_s=patience_s, last_words_s=last_words_s) as agreement:
        try:
            await agreement.reached()
        except JobFailed as error:
            return error.problem
        agreement.kept()
        agreement.part({peer: telling(Head(1, "ab" * 32), bytes(32)) for peer in links})
        await agreement.ended()
        assert set(agreement.heads.values()) <= {(b"\xab" * 32, bytes(32))}
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
        assert {(t.bytes_sent, t.messages_sent) for t in traffic} == {(128, 3)}
        return found

    assert run(scenario()) == [None, None, None]


def test_another_digest_ends_the_job_everywhere_at_once() -> None:
    found = run(outcomes(meshes("a", "b", "c"), {"a": OURS, "b": OURS, "c": OTHER}))
    assert all(problem is not None and problem.error_id == "result-mismatch" for problem in found)
    assert "c was delivered other files than we were" in str(found[0])


def test_a_vote_that_does_not_come_is_named() -> None:
    found = run(outcomes(meshes("a", "b", "c"), {"a": OURS, "b": OURS}, 0.05, 0.05))
    assert [(p.error_id, p.named) for p in found if p] == [("peer-timeout", "c")] * 2


def test_whoever_ran_out_of_patience_keeps_what_another_has_kept() -> None:
    ballot = Ballot({"b", "c"}, OURS)
    ballot.hear("b", CHECKED, OURS)
    ballot.late(1)
    assert ballot.keeps is None
    ballot.hear("b", KEPT, OURS)
    assert ballot.keeps


@pytest.mark.parametrize(
    ("step", "payload"), [("x", OURS), (CHECKED, OURS[:-1]), (KEPT, OURS + b"0"), (CHECKED, b"")]
)
def test_what_has_no_place_here_is_the_peers_fault(step: str, payload: bytes) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        Ballot({"b"}, OURS).hear("b", step, payload)
    assert caught.value.culprit == "b"


@pytest.mark.parametrize("words", [[("x", b"")], [(CHECKED, b"short")], [(CHECKED, OTHER)] * 5])
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


@pytest.mark.parametrize("payload", [b"", bytes(63), bytes(65)])
def test_the_end_of_an_audit_that_is_none_is_not_taken_and_changes_nothing(payload: bytes) -> None:
    async def scenario() -> dict[str, tuple[bytes, bytes]]:
        links = meshes("a", "b")
        pumps = [asyncio.create_task(link.run()) for of in links.values() for link in of.values()]
        for word in ((CHECKED, OURS), (KEPT, OURS), (HEAD, payload)):
            await links["b"]["a"].send(*word)
        async with Agreement(links["a"], OURS, patience_s=20, last_words_s=0.1) as agreement:
            await agreement.reached()
            agreement.kept()
            agreement.part({"b": bytes(64)})
            await agreement.ended()
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        return agreement.heads

    assert run(scenario()) == {}


def test_the_end_of_an_audit_is_taken_once() -> None:
    agreement = Agreement({}, OURS, patience_s=1, last_words_s=1)
    agreement._take_head("b", b"1" * 64)
    with pytest.raises(RemoteProtocolError, match="twice"):
        agreement._take_head("b", b"2" * 64)
    assert agreement.heads == {"b": (b"1" * 32, b"1" * 32)}


def test_what_arrived_before_a_link_broke_counts() -> None:
    async def scenario() -> Problem | None:
        ours, theirs = pair()
        link, other = Link("a", "b", KEY, ours, greeted=False), Link("b", "a", KEY, theirs, greeted=False)
        pumps = [asyncio.create_task(each.run()) for each in (link, other)]
        await other.send(CHECKED, OURS)
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
