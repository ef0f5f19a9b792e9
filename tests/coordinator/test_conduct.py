"""Conducting: parties that lie, disagree or fall silent, and which of many errors is shown."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import coordinator.conduct
import party.cli.console
from coordinator.conduct import Conductor, _told, _told_to_all
from coordinator.run import conduct
from crypto.mixing import OpeningKey
from jobs.errors import Exit, PartyError, Problem
from jobs.release.commitment import OPENINGS
from jobs.release.folder import OWN_ACCOUNT
from jobs.release.signatures import Statement, attest
from party.admission import addresses_after_us
from party.computation import compute
from party.daemon import Daemon
from party.net import control, server
from party.net.control import Delivered, Event, Failed, Finished, Piece, Progress, ResultPart, Start
from party.net.conversions import to_request
from party.net.link import ABORT, HELLO, Link
from party.owner.audit import AUDIT
from party.owner.config import LEDGER
from party.session import TABLE
from party.states import Admitted, Computed, Session
from tests.support.by_hand import problem_of_run
from tests.support.calls import impatient
from tests.support.commands import listing
from tests.support.dp_jobs import made
from tests.support.duplex import run
from tests.support.network import Network, report_of, sample_network, serving
from tests.support.rng import SeededRng
from tests.support.samples import AS_IT_IS, PARTIES, columns
from tests.support.saying import Change, saying, when

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def without_ledgers(folder: Path) -> list[str]:
    """List a folder. A privacy ledger stays: what was once computed was once told; so do openings and audits."""
    kept = ("/state", f"/{LEDGER}", f"/{LEDGER}.count", f"/{OPENINGS}", f"/{AUDIT}")
    return [path for path in listing(folder) if not path.endswith(kept) and f"/{OPENINGS}/" not in path]


def conducted(
    net: Network, out: Path, liars: Mapping[str, Change], *, works_after: bool = False, **timeouts: float
) -> Problem:
    """Run the job with these liars; return what the coordinator says.

    works_after:  run the job without the liars then: it must work again.
    """

    async def once(daemons: Mapping[str, Any], folder: Path) -> None:
        config = net.coordinator
        config = config.model_copy(update={"timeouts": config.timeouts.model_copy(update=timeouts)})
        async with serving(net, daemons):
            await conduct(net.task, config, folder)

    here = without_ledgers(net.root), without_ledgers(out.parent)
    with pytest.raises(PartyError) as caught:
        run(once({name: saying(change) for name, change in liars.items()}, out / "failed"))
    assert (without_ledgers(net.root), without_ledgers(out.parent)) == here  # no table anywhere
    if works_after:
        run(once({}, out))
        assert report_of(out)["rows"] == 60
    return caught.value.problem


def test_a_bundle_does_not_wait_for_the_versions(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each party says its version once it has the bundle, and allows the job."""
    allowed = {name: asyncio.Event() for name in PARTIES}
    original = server._Control.Describe

    async def late(self: Any, request: Any, context: Any) -> Any:
        if self._identify(context) == "coordinator":
            await allowed[self._daemon.name].wait()
        return await original(self, request, context)

    def noting(name: str) -> Change:
        return when(control.Allowed, lambda event: allowed[name].set() or [event])

    monkeypatch.setattr(server._Control, "Describe", late)

    async def scenario() -> None:
        async with serving(net, {name: saying(noting(name)) for name in PARTIES}):
            await conduct(net.task, net.coordinator, tmp_path / "out")

    run(scenario())
    assert report_of(tmp_path / "out")["rows"] == 60


def test_no_party_has_the_bundle_before_all_are_connected(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Any] = []
    monkeypatch.setattr(server, "to_request", lambda request: heard.append(request) or to_request(request))

    async def scenario() -> Problem:
        async with serving(net, only=[A, B]):
            with pytest.raises(PartyError) as caught:
                await conduct(net.task, impatient(net.coordinator), tmp_path / "out")
            return caught.value.problem

    problem = run(scenario())
    assert (problem.error_id, problem.party, problem.phase) == ("peer-unreachable", C, "connect")
    assert heard == []


def test_a_party_of_a_far_version_ends_the_job_when_all_are_connected(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that the parties say of the job counts before."""
    progress: list[str] = []
    monkeypatch.setattr(server, "__version__", "99.0.1")
    monkeypatch.setattr(Conductor, "_read", lambda self, member: progress.append(member.name))

    problem = problem_of_run(net, tmp_path / "out")
    assert (problem.error_id, problem.party, problem.phase) == ("version", A, "connect")
    assert progress == []


def test_a_party_with_other_protocols_is_named_before_the_run(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same version: as two revisions before a release. Nothing is asked of a table by then."""
    original = server._Control.Describe

    async def described(self: Any, request: Any, context: Any) -> Any:
        said = await original(self, request, context)
        if said.name == B:
            said.protocols = ""  # none, as an earlier revision
        return said

    monkeypatch.setattr(server._Control, "Describe", described)
    problem = problem_of_run(net, tmp_path / "out")
    assert (problem.error_id, problem.party, problem.phase) == ("version", B, "connect")
    assert problem.message == f"{B} has other protocols of joint runs than {A}"


def test_a_party_refuses_a_peer_with_other_protocols(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All parties say the same name, and it is not theirs: the coordinator finds nothing."""
    monkeypatch.setattr(server, "PROTOCOLS", "other")
    problem = problem_of_run(net, tmp_path / "out")
    assert (problem.error_id, problem.phase) == ("version", "connect")
    assert problem.party in (A, B, C)
    assert "has other protocols of joint runs than" in problem.message


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("liars", "error_id", "party"),
    [
        ({B: when(Finished, lambda e: [replace(e, result=b"0" * 32)])}, "result-mismatch", None),
        ({A: when(Finished, lambda e: [replace(e, result=b"0" * 32)])}, "result-mismatch", None),
        (
            dict.fromkeys(PARTIES, when(Finished, lambda e: [replace(e, result=b"0" * 32)])),
            "result-mismatch",
            A,
        ),
        ({B: when(control.Allowed, lambda e: [control.Allowed(b"0" * 32)])}, "job-hash-mismatch", B),
        ({B: when(control.Admitted, lambda e: [control.Admitted(b"0" * 32)])}, "job-hash-mismatch", B),
        ({B: when(control.Admitted, lambda e: [Delivered(b""), e])}, "peer-protocol", B),
        ({B: when(Finished, lambda e: [replace(e, summary="no json")])}, "peer-protocol", B),
        ({B: when(Finished, lambda e: [replace(e, summary="[]")])}, "peer-protocol", B),
        ({B: when(Finished, lambda e: [replace(e, summary="{}")])}, "result-mismatch", None),
        ({A: when(ResultPart, lambda e: [ResultPart(Piece("result", b"junk", True))])}, "result-mismatch", A),
    ],
)
def test_parties_that_lie(
    net: Network, tmp_path: Path, liars: dict[str, Change], error_id: str, party: str | None
) -> None:
    problem = conducted(net, tmp_path / "out", liars, works_after=True)
    assert (problem.error_id, problem.party) == (error_id, party)


@pytest.mark.more
def test_ledgers_that_differ(net: Network, tmp_path: Path) -> None:
    def forget(event: Any) -> list[Event]:
        summary = json.loads(event.summary)
        summary["reveals"] = summary["reveals"][:-1]
        return [replace(event, summary=json.dumps(summary))]

    problem = conducted(net, tmp_path / "out", {C: when(Finished, forget)})
    assert problem.message == "the parties ended with different reveal ledgers"


def test_a_malformed_result_that_all_agree_on(net: Network, tmp_path: Path) -> None:
    digest = hashlib.sha256(b"junk").digest()
    liars = dict.fromkeys(PARTIES, when(Finished, lambda e: [replace(e, result=digest)]))

    def lead(event: Event) -> list[Event]:
        if isinstance(event, ResultPart):
            return [ResultPart(Piece("result", b"junk", True))]
        return liars[A](event)

    problem = conducted(net, tmp_path / "out", {**liars, A: lead})
    assert (problem.error_id, problem.party, problem.message) == (
        "peer-protocol",
        A,
        "the result is malformed",
    )


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", [control.Allowed, control.Admitted, Finished])
def test_a_party_that_falls_silent(net: Network, tmp_path: Path, kind: type[Event]) -> None:
    problem = conducted(net, tmp_path / "out", {B: when(kind, lambda e: [])}, round_s=2)
    assert (problem.error_id, problem.party, problem.exit_code) == ("peer-timeout", B, Exit.UNREACHABLE)


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", [control.Admitted, Finished])
def test_a_party_that_fails_in_any_phase(net: Network, tmp_path: Path, kind: type[Event]) -> None:
    failure = Failed(Problem("data-empty", "no rows", B, "somewhere"))
    problem = conducted(net, tmp_path / "out", {B: when(kind, lambda e: [failure])})
    assert problem == failure.problem or problem == replace(
        failure.problem, remedy=problem.remedy if problem else ""
    )


def test_a_party_that_is_silent_to_its_peers_is_named_alone(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection lives, so only patience ends the run: that of the peers, and ours, are equally long."""
    original = Link._put

    async def silent(self: Link, step: str, part: bytes, *, last: bool) -> None:
        if self._me == B and step not in (HELLO, ABORT):
            await asyncio.Event().wait()
        await original(self, step, part, last=last)

    monkeypatch.setattr(Link, "_put", silent)
    for name in PARTIES:
        net.change(name, lambda fields: fields.update(timeouts={"round_s": 3}))
    problem = conducted(net, tmp_path / "out", {}, round_s=3)
    assert (problem.error_id, problem.named) == ("peer-timeout", B)


def test_an_interrupted_coordinator_is_no_bug_to_the_parties(
    net: Network, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        asked = asyncio.Event()
        silent = saying(when(control.Admitted, lambda _: asked.set() or []))
        async with serving(net, {A: silent}):
            work = asyncio.create_task(conduct(net.task, net.coordinator, tmp_path / "out"))
            await asked.wait()
            work.cancel()
            await asyncio.wait({work})

    run(scenario())
    told = [record.message for record in caplog.records if "cancelled" in record.message]
    assert told == ["cancelled: the coordinator cancelled the job"] * 3


def test_a_party_that_waits_no_longer_for_a_late_one_is_not_all_that_is_named(
    net: Network, tmp_path: Path
) -> None:
    """The late party has a large table. The patience of another party begins when its own table is read."""
    net.change(A, lambda fields: fields.update(timeouts={"coordinator_s": 2}))
    problem = conducted(net, tmp_path / "out", {B: when(control.Admitted, lambda _: [])})
    assert (problem.error_id, problem.party) == ("peer-timeout", A)
    said = "no request from coordinator within 2 s; the coordinator still waited for"
    assert problem.message == f"{said} {B}"
    assert problem.remedy.startswith(f"look at the log of {B}; ")


def test_a_party_that_cannot_store_the_release_ends_the_job_for_all(net: Network, tmp_path: Path) -> None:
    """All or nothing: the others have checked and set aside theirs by then."""
    blocked = net.root / C / "state" / "releases"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("a file where a folder should be")

    problem = problem_of_run(net, tmp_path / "out")
    assert (problem.error_id, problem.party, problem.phase) == ("io-failed", C, "deliver")
    assert not (tmp_path / "out").exists()
    assert [net.releases(party) for party in (A, B)] == [[], []]


def test_a_coordinator_that_cannot_store_the_release_ends_the_job_for_all(
    net: Network, tmp_path: Path
) -> None:
    def occupied(event: Any) -> list[Event]:
        (tmp_path / "out").mkdir(exist_ok=True)
        return [event]

    async def scenario() -> Problem:
        async with serving(net, {B: saying(when(Finished, occupied))}):
            with pytest.raises(PartyError) as caught:
                await conduct(net.task, net.coordinator, tmp_path / "out")
            return caught.value.problem

    assert run(scenario()).error_id == "output-exists"
    assert listing(tmp_path / "out") == []
    assert not any(net.releases(party) for party in PARTIES)


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "answer",
    [[], [Failed(Problem("io-failed", "the disk is full", B, "commit"))], [Delivered(b"0" * 32)]],
    ids=["silent", "failed", "of other files"],
)
def test_a_party_that_does_not_confirm_takes_the_table_from_nobody(
    net: Network,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    answer: list[Event],
) -> None:
    """A party that keeps it knows that all have checked it: the job has succeeded."""
    monkeypatch.setattr(coordinator.conduct, "_COMMIT_S", 0.5)

    async def scenario() -> None:
        async with serving(net, {B: saying(when(Delivered, lambda e: answer))}):
            await conduct(net.task, net.coordinator, tmp_path / "out")

    run(scenario())
    assert report_of(tmp_path / "out")["rows"] == 60
    assert [len(net.releases(party)) for party in PARTIES] == [1, 1, 1]
    warnings = [r.getMessage() for r in caplog.records if r.name == "coordinator"]
    assert warnings == [f"{B} did not confirm keeping the release"]


@pytest.mark.parametrize(("ends", "error_id"), [(True, "peer-lost"), (False, "peer-timeout")])
def test_parties_that_say_nothing_in_the_end(net: Network, tmp_path: Path, ends: bool, error_id: str) -> None:
    """The coordinator does not know if they keep the release: so nothing is called a release."""
    config = net.coordinator
    config = config.model_copy(update={"timeouts": config.timeouts.model_copy(update={"round_s": 5})})
    mute: Any = saying(when(Delivered, lambda e: []))

    class Silent(mute):  # type: ignore[misc]  # the class is made by a call
        async def conduct(self, *given: Any) -> None:
            await super().conduct(*given)
            await asyncio.Event().wait()

    silent = mute if ends else Silent

    async def scenario() -> Problem:
        async with serving(net, dict.fromkeys(PARTIES, silent)):
            with pytest.raises(PartyError) as caught:
                await conduct(net.task, config, tmp_path / "out")
            return caught.value.problem

    problem = run(scenario())
    assert (problem.error_id, problem.phase) == (error_id, "commit")
    assert listing(tmp_path) == [path for path in listing(tmp_path) if path.startswith("net")]


def test_the_root_cause_is_shown_before_what_follows_from_it(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C tells late why it stopped; meanwhile the others only see that it went away."""

    class Slow(Daemon):
        async def conduct(self, caller: str, requests: Any, emit: Any) -> None:
            async def delayed(event: Event) -> None:
                if isinstance(event, Failed):
                    await asyncio.sleep(0.7)
                await emit(event)

            await super().conduct(caller, requests, delayed)

    async def broken(session: Session, admitted: Admitted, start: Start) -> Computed:
        if session.me != C:
            return await compute(session, admitted, start)
        await session.mesh.connect(
            addresses_after_us(session.config, session.task), session.config.timeouts.connect_s
        )
        await session.mesh.close()
        raise PartyError("data-unreadable", "the disk is gone", party=session.me)

    row = TABLE[Admitted, Start]
    monkeypatch.setitem(TABLE, (Admitted, Start), replace(row, action=broken))

    async def scenario() -> Problem:
        async with serving(net, {C: Slow}):
            with pytest.raises(PartyError) as caught:
                await conduct(net.task, net.coordinator, tmp_path / "out")
            return caught.value.problem

    problem = run(scenario())
    assert (problem.error_id, problem.party, problem.phase) == ("data-unreadable", C, "connect")


def mixed_network(folder: Path) -> Network:
    """Rows with a plain column, mixed for the coordinator; the deputy, B, passes them on."""
    return sample_network(folder, columns=columns(patient=AS_IT_IS), deliver="coordinator")


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("harm", "error_id"),
    [
        (lambda content: content[:-1], "peer-protocol"),
        (lambda content: content[:-1] + bytes([content[-1] ^ 1]), "result-mismatch"),
    ],
    ids=["too few bytes", "another byte"],
)
def test_boxes_that_the_deputy_changes(tmp_path: Path, harm: Callable[[bytes], bytes], error_id: str) -> None:
    def changed(event: Any) -> list[Event]:
        if event.piece.name != "rows":
            return [event]
        return [ResultPart(replace(event.piece, content=harm(event.piece.content)))]

    problem = conducted(mixed_network(tmp_path / "net"), tmp_path / "out", {B: when(ResultPart, changed)})
    assert (problem.error_id, problem.party) == (error_id, B)


def test_no_part_leaves_a_party_before_all_have_signed_the_result(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts follow the end of the protocol unasked. C signs another result, which A, with the result, finds out."""
    parts: list[Event] = []
    noting = when(ResultPart, lambda event: parts.append(event) or [event])

    def other(ours: Statement, peers: Any, sign: Any, check: Any) -> Any:
        return attest(replace(ours, result="0" * 64) if ours.party == C else ours, peers, sign, check)

    async def scenario() -> Problem:
        async with serving(net, {A: saying(noting)}):
            with monkeypatch.context() as patch:
                patch.setattr("party.computation.attest", other)
                with pytest.raises(PartyError) as caught:
                    await conduct(net.task, net.coordinator, tmp_path / "failed")
            assert not parts
            await conduct(net.task, net.coordinator, tmp_path / "out")
            return caught.value.problem

    problem = run(scenario())
    assert problem.error_id == "result-mismatch"
    assert len(parts) == 1


def test_a_coordinator_that_gives_each_party_another_key_gets_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could tell rows apart by the key that opens them."""
    net = mixed_network(tmp_path / "net")
    parts: list[Event] = []
    noting = when(ResultPart, lambda event: parts.append(event) or [event])

    async def own_key_each(self: Conductor, request: Any) -> None:
        for member in self._members.values():
            mine = Start(OpeningKey(SeededRng(member.name)).public) if request == started else request
            await member.stream.write(mine)

    started = Start(OpeningKey(SeededRng("all")).public)
    monkeypatch.setattr(Conductor, "_tell_all", own_key_each)
    monkeypatch.setattr("coordinator.conduct.OpeningKey", lambda _: OpeningKey(SeededRng("all")))

    async def scenario() -> Problem:
        async with serving(net, {name: saying(noting) for name in PARTIES}):
            with pytest.raises(PartyError) as caught:
                await conduct(net.task, net.coordinator, tmp_path / "out")
            return caught.value.problem

    problem = run(scenario())
    assert problem.error_id == "peer-protocol"
    assert "mix/agreed" in problem.message
    assert not parts


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("deliver", "key", "said"),
    [
        ("coordinator", b"", "gave no key"),
        ("coordinator", bytes(32), "gave no key"),
        ("all", b"k" * 32, "a key for a release that every party receives"),
    ],
)
def test_a_key_where_none_belongs_or_none_where_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deliver: str, key: bytes, said: str
) -> None:
    net = sample_network(tmp_path / "net", deliver=deliver)
    honest = Conductor._tell_all

    async def lying(self: Conductor, request: Any) -> None:
        await honest(self, Start(key) if isinstance(request, Start) else request)

    monkeypatch.setattr(Conductor, "_tell_all", lying)

    problem = problem_of_run(net, tmp_path / "out")
    assert problem.error_id == "peer-protocol"
    assert said in problem.message


def test_hostile_progress_is_no_problem(
    net: Network, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words of a party about its turns are shown, not trusted."""
    monkeypatch.setattr(party.cli.console._settings, "format", "json")

    async def scenario() -> None:
        hostile = when(Progress, lambda e: [replace(e, column="\x1b[2J" * 100, iteration=2**31)])
        async with serving(net, {A: saying(hostile)}):
            await conduct(net.task, net.coordinator, tmp_path / "out")

    run(scenario())
    turns = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {line["event"] for line in turns} == {"phase"}


def test_deliver_to_the_coordinator_only(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net", deliver="coordinator")

    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, tmp_path / "out")

    run(scenario())
    assert report_of(tmp_path / "out")["rows"] == 60
    for name in PARTIES:
        assert listing(net.account(name).parent) == [OWN_ACCOUNT]  # its owner's numbers; no table


def test_the_address_of_the_configuration_overrides_the_jobs(net: Network, tmp_path: Path) -> None:
    """The sample job says 127.0.0.1:740x; the parties listen elsewhere."""
    jobs_addresses = {name: entry.address for name, entry in (net.bundle.job.parties or {}).items()}
    assert all(jobs_addresses[name] != net.addresses[name] for name in PARTIES)

    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, tmp_path / "out")

    run(scenario())


def test_what_parties_tell_of_the_result_is_no_cost() -> None:
    summaries: dict[str, dict[str, Any]] = {
        name: {"repeated": True, "reveals": [], "phases": {}} for name in PARTIES
    }
    assert _told(summaries, made("horizontal")[1]) == [{"repeated": True, "reveals": []}] * len(PARTIES)
    assert summaries == {name: {"phases": {}} for name in PARTIES}


def test_no_party_hears_of_another_partys_table() -> None:
    """The coordinator says why it cancels, but not what depends on rows."""
    of_rows = Problem("data-unknown-value", "column job has a value", B, "load", "job")
    assert _told_to_all(of_rows) == Problem("cancelled", "a different party ended the job", B)
    lost = Problem("peer-lost", "it went away", B)
    assert _told_to_all(lost) == lost
