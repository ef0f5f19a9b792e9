"""Private vectors of n ≥ 2 parties as additive shares at a compute pair, and their opening.

Leader and deputy are the two parties that evaluate circuits for all. Vectors of :func:`share_vector` and openings
of :func:`open_vector` go through a :class:`ShareSession`, set up once per job. There every party but the deputy
gives the deputy a seed, so the deputy's part of every later sharing costs no traffic.

Shares are unsigned words of 16, 32 or 64 bits. The array's dtype sets the width, so NumPy's arithmetic *is* the
arithmetic modulo 2**width. The caller encodes negative integers in two's complement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from crypto.encoding import expect_length
from crypto.errors import LocalProtocolError
from crypto.pieces import slices
from crypto.rng import SEED_BYTES, Prg, Rng
from crypto.rounds import Round, Rounds, send

Shares: TypeAlias = NDArray[np.unsignedinteger[Any]]
Bits: TypeAlias = NDArray[np.bool_]

WIDTHS = (16, 32, 64)
PIECE_BYTES = 1 << 20
MIN_PARTIES = 2
_WHOLE = slice(None)


@dataclass(frozen=True, slots=True)
class ComputePair:
    """The two parties that hold shares for all and must not collude with each other."""

    leader: str
    deputy: str

    def __contains__(self, name: object) -> bool:
        return name in (self.leader, self.deputy)


class ShareSession:
    """A party's state for all vectors shared and opened in a job.

    ``seeds``: the party's own seed, or at the deputy the seeds of all peers. Each vector has a number, so no
    keystream is used twice.
    """

    def __init__(
        self, me: str, parties: Sequence[str], pair: ComputePair, context: bytes, seeds: Mapping[str, bytes]
    ) -> None:
        self.me = me
        self.parties = tuple(parties)
        self.pair = pair
        self._context = context
        self._seeds = dict(seeds)
        self._shared = 0
        self._opened = 0
        self._has_opened = False

    def __repr__(self) -> str:
        return f"ShareSession(me={self.me!r}, pair={self.pair!r}, <secret>)"

    @property
    def peers(self) -> tuple[str, ...]:
        """Peers in the order of the yielded masks; at the deputy all peers."""
        return tuple(self._seeds)

    @property
    def contributors(self) -> tuple[str, ...]:
        """The parties outside the pair."""
        return tuple(party for party in self.parties if party not in self.pair)

    def next_share(self) -> str:
        """Return the name of the next vector to be shared; the same at every party."""
        self._shared += 1
        return f"share {self._shared}"

    def next_open(self) -> str:
        """Return the name of the next opening; only the pair counts openings."""
        self._opened += 1
        return f"open {self._opened}"

    def opened(self) -> None:
        """Record that something was opened, to us or by us."""
        self._has_opened = True

    def suspects(self, peer: str) -> str:
        """Return the peers to name for a message of a wrong length.

        Lengths follow from earlier openings: a member of the pair may have opened different values to us and to the
        peer.
        """
        named = (
            peer,
            *(p for p in (self.pair.leader, self.pair.deputy) if self._has_opened and p != self.me),
        )
        return " or ".join(dict.fromkeys(named))

    def masks(self, vector: str, count: int, width: int) -> Iterator[Shares]:
        """Yield the party's mask of a vector, or at the deputy the masks of all peers: ``count`` words each."""
        for seed in self._seeds.values():
            yield self._mask(seed, vector, count, width)

    def refresher(self, vector: str, count: int, width: int) -> Shares:
        """Return ``count`` words known only to leader and deputy; the deputy gets the negated words."""
        mask = self._mask(self._seeds[self.pair.leader], vector, count, width)
        return mask if self.me == self.pair.leader else np.zeros_like(mask) - mask

    def _mask(self, seed: bytes, vector: str, count: int, width: int) -> Shares:
        info = self._context + vector.encode()
        key = HKDF(hashes.SHA256(), SEED_BYTES, salt=None, info=info).derive(seed)
        return np.frombuffer(Prg(key).bytes(count * width // 8), dtype=f"<u{width // 8}").astype(dtype(width))


def setup_shares(
    me: str, parties: Sequence[str], pair: ComputePair, job_hash: bytes, rng: Rng
) -> Rounds[ShareSession]:
    """Give the deputy a seed of every peer, for all vectors of a job.

    Functionality:  a secret common to each party and the deputy.
    Input, each:    roster, pair and ``job_hash``: public and equal for all.
    Output, each:   :class:`ShareSession`, good for any number of vectors.
    Leakage:        none beyond the roster.
    Rounds:         1 ("shares/seed").
    Bytes:          16 sent by each party but the deputy.
    Assumes:        semi-honest parties; private authenticated channels; n >= 2; fresh coins for every job.
    Source:         pseudo-random secret sharing with a common seed, folklore; keys of the single vectors by
                    HKDF-SHA256 (info = job hash, roster, pair, kind and number of the vector).

    Raises LocalProtocolError for an impossible roster, RemoteProtocolError if a seed has not 16 bytes.
    """
    _check_roster(me, parties, pair)
    step = "shares/seed"
    context = _context(parties, pair, job_hash)
    if me != pair.deputy:
        seed = rng.bytes(SEED_BYTES)
        yield from send(step, {pair.deputy: seed})
        return ShareSession(me, parties, pair, context, {me: seed})
    peers = [party for party in parties if party != me]
    inbox = yield Round(step, {}, frozenset(peers))
    for peer in peers:
        expect_length(inbox[peer], SEED_BYTES, peer, step)
    return ShareSession(me, parties, pair, context, {peer: inbox[peer] for peer in peers})


def share_vector(
    session: ShareSession, values: Shares, counted: Mapping[str, Bits] | None = None
) -> Rounds[Shares | None]:
    """Give the pair additive shares of the element-wise sum of every party's vector.

    Words that a party has no right to count are ignored.

    The leader's own vector is masked like any other; the deputy adds its vector to its share unmasked. Each share
    alone is uniform, for any n (docs/crypto.md).

    Functionality:  (x_1, ..., x_n) -> (s, sum_i x_i - s) mod 2**width to (leader, deputy), s uniform.
    Input, each:    ``values``, m words, shape (m,); m and dtype (uint16, uint32 or uint64) public and equal
                    for all; so is ``counted``, by party the bits, shape (m,), that are 1 for words to add
                    up (default: all words of all parties).
    Output:         a share of shape (m,) and the same dtype at leader and deputy, None elsewhere.
    Leakage:        m. Leader or deputy, alone or with any contributors, learn nothing else; both together
                    learn every contributor's vector.
    Rounds:         1 ("shares/share"); 0 when n = 2.
    Bytes:          m * width / 8 sent by each contributor, in pieces of at most 1 MiB; 0 by the pair.
    Assumes:        semi-honest parties; private authenticated channels; the pair does not collude; AES-CTR
                    is a pseudo-random generator.
    Source:         additive secret sharing over Z_{2**width} with a share from a seed; folklore.

    Raises LocalProtocolError if ``values`` has a wrong shape or dtype, RemoteProtocolError if a contributor's
    message has a wrong length; after an earlier opening the error also names the second member of the pair.
    """
    width = _check_vector(values)
    count, step, vector = len(values), "shares/share", session.next_share()
    own = _counted(values, session.me, counted)
    if session.me == session.pair.deputy:
        masks = zip(session.peers, session.masks(vector, count, width), strict=True)
        return sum((_counted(mask, peer, counted) for peer, mask in masks), start=own)
    (mask,) = session.masks(vector, count, width)
    masked = own - _counted(mask, session.me, counted)
    if session.me != session.pair.leader:
        for piece in _pieces(count, width):
            yield from send(step, {session.pair.leader: encode_shares(masked[piece])})
        return None
    for piece in _pieces(count, width) if session.contributors else ():
        inbox = yield Round(step, {}, frozenset(session.contributors))
        for peer in session.contributors:
            words = decode_shares(inbox[peer], piece.stop - piece.start, width, session.suspects(peer), step)
            masked[piece] += _counted(words, peer, counted, piece)
    return masked


def _counted(words: Shares, party: str, counted: Mapping[str, Bits] | None, piece: slice = _WHOLE) -> Shares:
    """Return a party's words, with 0 for words that the party has no right to count."""
    return words if counted is None else words * counted[party][piece].astype(words.dtype)


def open_vector(
    session: ShareSession,
    count: int,
    width: int,
    share: Shares | None = None,
    recipients: Collection[str] | None = None,
) -> Rounds[Shares | None]:
    """Open a vector that leader and deputy hold in shares, to all parties or to some.

    The pair first adds a fresh sharing of zero, so recipients learn only the sum, for any origin of the two shares
    (a circuit, a joint histogram, a linear combination, a public constant at one side).

    Functionality:  (s_leader, s_deputy) -> s_leader + s_deputy mod 2**width, to each of ``recipients``.
    Input:          ``share``, ``count`` words of ``width`` bits at leader and deputy, None elsewhere;
                    count, width and recipients (default: all) are public and equal for all participants.
    Output:         the sum, shape (count,), at recipients, None elsewhere.
    Leakage:        the sum to the recipients, count.
    Rounds:         1 ("shares/open") per MiB of words: the pair exchanges piece by piece.
    Bytes:          count * width / 8 from leader and deputy each to every recipient but the sender; 0 sent
                    by parties outside the pair, who take part only as recipients.
    Assumes:        as :func:`share_vector`.
    Source:         folklore; rerandomisation as usual before an opening to outsiders.

    Raises LocalProtocolError for a share at the wrong party, a wrong shape, or an unknown recipient;
    RemoteProtocolError if a message has a wrong length.
    """
    step, me = "shares/open", session.me
    to = frozenset(session.parties if recipients is None else recipients)
    _check_opening(session, count, width, share, to)
    total = np.zeros(count, dtype=dtype(width))
    if share is not None:
        total += share + session.refresher(session.next_open(), count, width)
    senders = frozenset((session.pair.leader, session.pair.deputy)) - {me} if me in to else frozenset()
    own = total.copy()
    for piece in _pieces(count, width):
        payload = encode_shares(own[piece])
        inbox = yield Round(step, {} if share is None else dict.fromkeys(sorted(to - {me}), payload), senders)
        for peer in senders:
            suspects = session.suspects(peer)
            total[piece] += decode_shares(inbox[peer], piece.stop - piece.start, width, suspects, step)
    session.opened()
    return total if me in to else None


def dtype(width: int) -> np.dtype[np.unsignedinteger[Any]]:
    """Return the unsigned dtype of 16, 32 or 64 bits; LocalProtocolError for any other width."""
    if width not in WIDTHS:
        raise LocalProtocolError(f"shares have 16, 32 or 64 bits, not {width}")
    return np.dtype(f"u{width // 8}")


def width_for(bound: int) -> int:
    """Return the least width of shares that holds every integer in [0, ``bound``]."""
    for width in WIDTHS:
        if 0 <= bound < 1 << width:
            return width
    raise LocalProtocolError(f"a sum of up to {bound} does not fit shares of {WIDTHS[-1]} bits")


def encode_shares(words: Shares) -> bytes:
    """Encode unsigned words of any width, little endian."""
    return np.ascontiguousarray(words, dtype=words.dtype.newbyteorder("<")).tobytes()


def decode_shares(payload: bytes, count: int, width: int, peer: str, step: str) -> Shares:
    """Decode exactly ``count`` words of ``width`` bits; shape (count,)."""
    expect_length(payload, count * width // 8, peer, step)
    return np.frombuffer(payload, dtype=f"<u{width // 8}").astype(dtype(width))


def _pieces(count: int, width: int) -> Iterator[slice]:
    """Cut ``count`` words into slices of at most PIECE_BYTES."""
    return slices(count, PIECE_BYTES * 8 // width)


def _context(parties: Sequence[str], pair: ComputePair, job_hash: bytes) -> bytes:
    """Encode the purpose of a session, unambiguously."""
    roster = "\0".join((*sorted(parties), pair.leader, pair.deputy)).encode()
    return len(job_hash).to_bytes(2, "little") + job_hash + len(roster).to_bytes(4, "little") + roster


def _check_roster(me: str, parties: Sequence[str], pair: ComputePair) -> None:
    if len(parties) < MIN_PARTIES or len(set(parties)) != len(parties):
        raise LocalProtocolError(
            f"shares need {MIN_PARTIES} or more different parties: {len(parties)} names, "
            f"{len(set(parties))} different"
        )
    if pair.leader == pair.deputy:
        raise LocalProtocolError(f"leader and deputy must differ, not both {pair.leader}")
    for name in (me, pair.leader, pair.deputy):
        if name not in parties:
            raise LocalProtocolError(f"{name} is not in the roster")


def _check_vector(values: Shares) -> int:
    """Return the width of a vector of shares."""
    if values.ndim != 1 or values.dtype not in (dtype(width) for width in WIDTHS):
        raise LocalProtocolError(
            f"a vector of uint16, uint32 or uint64 is shared, not {values.dtype} of shape {values.shape}"
        )
    return 8 * values.dtype.itemsize


def _check_opening(
    session: ShareSession, count: int, width: int, share: Shares | None, to: frozenset[str]
) -> None:
    expected = dtype(width)
    if to - set(session.parties):
        raise LocalProtocolError(f"{', '.join(sorted(to - set(session.parties)))} not in the roster")
    if (share is not None) != (session.me in session.pair):
        holds = "holds a share" if session.me in session.pair else "holds no share"
        raise LocalProtocolError(f"{session.me} {holds} of what is opened")
    if share is not None and (share.shape != (count,) or share.dtype != expected):
        raise LocalProtocolError(
            f"{count} words of {expected} are opened, not {share.dtype} of shape {share.shape}"
        )
