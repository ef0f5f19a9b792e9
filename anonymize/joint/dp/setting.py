"""What the parts of a joint DP run at one party have in common, and the session of two parties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.roster import Roster
from anonymize.joint.sessions import CircuitSession, CircuitSessions, open_sessions
from anonymize.table import Schema
from anonymize.tds import Observer
from crypto.ot.extension import OtReceiver, OtSender
from crypto.rng import Rng
from crypto.rounds import Rounds

PairSession: TypeAlias = CircuitSession[OtSender] | CircuitSession[OtReceiver]
"""The one session of two parties; the leader garbles."""


class Request(Protocol):
    """What parties have agreed to compute, as far as finding their common records goes."""

    @property
    def schema(self) -> Schema: ...

    @property
    def job_hash(self) -> bytes: ...

    def check(self, n_records: int) -> None:
        """Refuse what cannot be done, before anything is sent or spent. n_records: of ours."""
        ...


Asked = TypeVar("Asked", bound=Request)


@dataclass(frozen=True)
class DpSetting(Generic[Asked]):
    """What the parts of a run at one party have in common."""

    roster: Roster
    request: Asked
    reveals: RevealLedger
    observer: Observer
    rng: Rng

    @property
    def peer(self) -> str:
        return self.roster.others[0]


def setting_of(
    roster: Roster, request: Asked, mode: str, observer: Observer | None, rng: Rng
) -> DpSetting[Asked]:
    """Of a run that begins: nothing is revealed yet. mode: whose list the reveals are held to."""
    observer = observer or Observer()
    return DpSetting(roster, request, RevealLedger(mode, observer=observer), observer, rng)


def open_session(setting: DpSetting[Asked]) -> Rounds[PairSession]:
    """Base transfers of the two parties; the leader garbles."""
    setting.observer.phase("setup")
    roster = setting.roster
    pairs = [(roster.leader, roster.deputy)]
    sessions = yield from open_sessions(roster.me, pairs, setting.rng, setting.observer)
    return session_of(roster, sessions)


def session_of(roster: Roster, sessions: CircuitSessions) -> PairSession:
    """Our end of the session that leader and deputy opened."""
    return sessions.garbling[roster.deputy] if roster.leads else sessions.evaluating[roster.leader]
