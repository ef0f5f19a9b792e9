"""Random value protocol: shares of R uniform in [0, Q), where Q is shared and unknown to both parties.

After Bunn and Ostrovsky, CCS 2007 ([T] 7.2.2), with three departures. *One ring*: Q and R are additive shares
modulo 2**bits, always reduced, so circuits take both as they are (the thesis keeps shares modulo a Paillier modulus
N and never reduces them). R is below Q, never equal to Q: compare R with a running sum L by R < L. *Exact*: R is
found by rejection, so R is uniform, not nearly. *Rejections without information*: a circuit gives candidates the
bit length of Q, not of the bound, without opening the length, so each candidate is accepted with probability at
least 1/2. A batch of candidates is tried inside a circuit that opens only whether a candidate was accepted (each
party tells the peer, so both go on alike). A rejected batch would say something about Q (a Q slightly above a power
of two makes rejection likelier); its probability is at most 2**-tries.

Comparing shared numbers takes a circuit anyway ("a Paillier comparison is not needed"). With the candidates drawn
inside the circuit, nothing is left for encryption.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from crypto.builder import Builder, Literal, Word
from crypto.circuit import Circuit, Held, To
from crypto.circuits.arithmetic import less
from crypto.circuits.selection import choose
from crypto.encoding import Words, decode_bits, encode_bits
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.rounds import Rounds, exchange
from crypto.two_party import Computation

TRIES = 64
CANDIDATES = 128
"""Maximum number of candidates, then a bound is taken as 0; a nonzero bound gets here with probability 2**-128."""

MAX_BITS = 64
_FOUND = "random_value/found"


def random_value(computation: Computation, bounds: Words, bits: int, tries: int = TRIES) -> Rounds[Words]:
    """Get shares of a uniform value below each shared bound; the peer calls the same.

    Functionality:  shares of (Q_1, ..., Q_m) -> shares of (R_1, ..., R_m), modulo 2**bits, R_i independent
                    and uniform in [0, Q_i), the shares uniform.
    Input, each:    ``bounds``, additive shares modulo 2**bits of 1 <= Q_i < 2**bits: uint64, shape (m,);
                    ``bits`` (1 to 64), ``tries`` and m are public and equal for both.
    Output, each:   additive shares modulo 2**bits: uint64, shape (m,).
    Leakage:        for each Q_i, whether a batch of ``tries`` candidates was rejected: probability p**tries
                    with p = 1 - Q_i / 2**(bit length of Q_i) <= 1/2.
    Rounds:         none if m = 0, else the rounds of a run of :func:`random_value_circuit` with m instances
                    (3) and 1 ("random_value/found"); with probability at most m * 2**-tries as many again,
                    with the missing instances.
    Bytes:          the bytes of each run, and ceil(m / 8) of either party after the run.
    Assumes:        as the computation.
    Source:         [T] 7.2.2, Bunn and Ostrovsky, CCS 2007; the departures are in the module docstring.

    Raises LocalProtocolError if shares or widths are out of range, before anything is sent, and if CANDIDATES
    candidates were rejected (then a bound is 0 modulo 2**bits); RemoteProtocolError if the peer has a different
    outcome. Exceptions of the computation pass through.
    """
    _check(bounds, bits, tries)
    values = np.zeros_like(bounds)
    missing = np.arange(len(bounds))
    tried = 0
    while len(missing):
        if tried >= CANDIDATES:
            raise LocalProtocolError(f"{tried} candidates rejected: a bound is not in [1, 2**{bits})")
        circuit = random_value_circuit(bits, tries)
        inputs = {"bounds": bounds[missing].reshape(-1, 1)}
        outputs = yield from computation.run(circuit, len(missing), inputs)
        found, drawn = outputs["found"], outputs["values"]
        assert isinstance(found, np.ndarray)
        assert isinstance(drawn, np.ndarray)
        yield from _agree(computation.peer, found[:, 0].astype(np.uint8))
        values[missing] = drawn[:, 0]
        missing = missing[found[:, 0] == 0]
        tried += tries
    return values


def _agree(peer: str, found: NDArray[np.uint8]) -> Rounds[None]:
    """Check that both sides go on with the same instances: each side reads these bits separately from the circuit."""
    payload = yield from exchange(_FOUND, peer, encode_bits(found))
    theirs = decode_bits(payload, len(found), peer, _FOUND)
    if not np.array_equal(theirs, found):
        raise RemoteProtocolError(peer, _FOUND, "other accepted candidates than ours")


@lru_cache(maxsize=64)
def random_value_circuit(bits: int, tries: int) -> Circuit:
    """Return the first of ``tries`` candidates below the bound, and a bit that tells if there is a candidate.

    A candidate has as many random bits as the bound. About 3 * bits * tries AND gates.
    """
    b = Builder(f"random value below {bits} bits, {tries} tries")
    (bound,) = b.input("bounds", Held.ADDITIVE_SHARED, bits)
    cover = _cover(b, bound)
    candidates = [
        [b.and_(c, coin) for c, coin in zip(cover, coins, strict=True)]
        for coins in b.input("coins", Held.COINS, bits, tries)
    ]
    level = [(less(b, candidate, bound), candidate) for candidate in candidates]
    while len(level) > 1:
        joined = [
            (b.or_(first[0], second[0]), choose(b, first[0], first[1], second[1]))
            for first, second in zip(level[0::2], level[1::2], strict=False)
        ]
        level = joined + level[len(level) // 2 * 2 :]
    found, value = level[0]
    b.output("values", To.ADDITIVE_SHARED, [value])
    b.output("found", To.BOTH, [[found]])
    return b.build()


def _cover(b: Builder, x: Word) -> list[Literal]:
    """Return 2**(bit length of x) - 1: every bit at or below the highest set bit."""
    cover = [x[-1]]
    for bit in reversed(x[:-1]):
        cover.append(b.or_(cover[-1], bit))
    return cover[::-1]


def _check(bounds: Words, bits: int, tries: int) -> None:
    if not 1 <= bits <= MAX_BITS or tries < 1:
        raise LocalProtocolError(f"values of {bits} bits by {tries} tries; 1 to {MAX_BITS} and 1 or more")
    if bounds.ndim != 1 or bounds.dtype != np.uint64 or (bounds.size and int(bounds.max()) >> bits):
        raise LocalProtocolError(
            f"bounds are a vector of shares modulo 2**{bits}, not {bounds.dtype} of shape {bounds.shape}"
        )
