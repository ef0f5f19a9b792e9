"""Two-party vertical DiffGen with the protocols of [T] 7.4: Algorithm 7.2 to choose, scalar products to count.

Each party turns the scores of its candidates into integer weights. The sums of both are the shares of the bound of a
random value R. A circuit finds the first candidate with R < L. Each leaf count is a secure scalar product of two
binary vectors, and each party adds Laplace noise to its share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod

import numpy as np

from anonymize.dp.noise import exact_noise
from anonymize.joint.columns import Columns, Holding
from anonymize.joint.dp.columns import AlignedPair, OwnColumns, align_pair, open_aligned
from anonymize.joint.dp.run import DpRequest, JointDpOutcome, run_diffgen
from anonymize.joint.dp.thesis.choice import check_thesis, choose_by_weight
from anonymize.joint.dp.thesis.ranges import KeySize, weights_for
from anonymize.joint.dp.thesis.weights import draw_by_weight
from anonymize.joint.dp.vertical import VerticalHolder
from anonymize.joint.engine import Engine
from anonymize.joint.roster import Roster
from anonymize.table import Ints
from anonymize.tds import Observer
from crypto.encoding import Words, as_words, decode_words, encode_words, signed
from crypto.paillier import (
    PrivateKey,
    PublicKey,
    generate_key,
    receive_key,
    send_key,
)
from crypto.rng import Rng
from crypto.rounds import Rounds, exchange
from crypto.scalar_product import (
    ProductShape,
    scalar_product_holder,
    scalar_product_masker,
)

_COUNTS = "dp/counts"


def release_vertically_as_published(
    roster: Roster,
    columns: Columns,
    holding: Holding,
    request: DpRequest,
    rng: Rng,
    *,
    mode: str,
    observer: Observer | None = None,
) -> Rounds[JointDpOutcome]:
    """Release the join of two parties' tables by [T] Algorithms 7.1 to 7.3.

    Functionality, Input, Output:  as :func:`anonymize.joint.dp.vertical.release_vertically`; after the alignment as
                                   :func:`release_aligned_as_published`.
    Leakage, Rounds, Bytes, Assumes:  of the alignment and of :func:`release_aligned_as_published`.
    Source:         [T] 7.4, 5.6; corrections in :mod:`anonymize.joint.dp.thesis.choice`.

    Raises as both.
    """
    check_thesis(request)
    weights_for(request)
    pair = yield from align_pair(roster, columns, holding, request, rng, mode=mode, observer=observer)
    return (yield from _released(pair, KeySize()))


def release_aligned_as_published(
    roster: Roster,
    own: OwnColumns,
    request: DpRequest,
    rng: Rng,
    *,
    mode: str,
    observer: Observer | None = None,
    key_size: KeySize = KeySize(),  # noqa: B008  frozen
) -> Rounds[JointDpOutcome]:
    """Release records that both parties already have in a common order, by the same algorithms.

    Functionality:  DiffGen on the joined table with the exponential mechanism over integer weights, and the sum of
                    two discrete Laplace variables on every count; to both.
    Input, Output:  as :func:`anonymize.joint.dp.vertical.release_aligned`; utility max only.
    Leakage:        as there.
    Rounds:         at most 4 + 8·h; 4 more of a choice with probability 2^−64.
    Bytes:          32 for every AND gate; for every cell, as :func:`scalar_product_holder` on the number of records.
    Assumes:        as there, and DCR.
    Source:         [T] 7.4; corrections in :mod:`anonymize.joint.dp.thesis.choice`.

    Raises as there, and SchemaError if weights or plaintexts do not fit.
    """
    check_thesis(request)
    weights_for(request, key_size.bits)
    pair = yield from open_aligned(roster, own, request, rng, mode=mode, observer=observer)
    return (yield from _released(pair, key_size))


def _released(pair: AlignedPair[DpRequest], key_size: KeySize) -> Rounds[JointDpOutcome]:
    weights = weights_for(pair.request, key_size.bits)
    roster = pair.roster
    key: PrivateKey | PublicKey
    if roster.leads:
        key = generate_key(roster.me, pair.rng, key_size.bits, unsafe_short=key_size.unsafe_short)
        yield from send_key(roster.deputy, key.public)
    else:
        key = yield from receive_key(roster.leader, key_size.bits, unsafe_short=key_size.unsafe_short)
    protocol = PublishedProtocol(pair.session.engine, key, weights.values, pair.own.n_records, pair.rng)
    holder, plans = VerticalHolder(pair, protocol), pair.request.plans()
    return (yield from run_diffgen(pair.request, holder, pair.reveals, plans, pair.observer))


class PublishedProtocol:
    """RVP, comparison, scalar products: an :class:`anonymize.joint.dp.vertical.VerticalProtocol`.

    Rates are those of noisy maxima and play no part in choices: the weights carry ε′.
    """

    def __init__(
        self, engine: Engine, key: PrivateKey | PublicKey, weights: Sequence[int], n_records: int, rng: Rng
    ) -> None:
        self._engine = engine
        self._key = key
        self._weights = weights
        self._n_records = n_records
        self._rng = rng
        self._noise = exact_noise(rng)

    def split(self, scores: Sequence[int], rate: Fraction) -> int:
        return draw_by_weight([self._weights[score] for score in scores], self._noise.coins)

    def pick(self, scores: Mapping[int, int], count: int, rate: Fraction) -> Rounds[int]:
        own = [self._weights[scores[i]] if i in scores else 0 for i in range(count)]
        return (yield from choose_by_weight(self._engine, as_words(own), as_words([sum(own)])))

    def counts(self, labels: Ints, shape: tuple[int, int], rate: Fraction) -> Rounds[Ints]:
        products = ProductShape(prod(shape), self._n_records)
        peer, key = self._engine.peer, self._key
        if isinstance(key, PrivateKey):
            vectors = np.repeat(_binary(labels, shape[0]), shape[1], axis=0)
            share = yield from scalar_product_holder(peer, key, vectors, products, self._rng)
        else:
            vectors = np.tile(_binary(labels, shape[1]), (shape[0], 1))
            share = yield from scalar_product_masker(peer, key, vectors, products, self._rng)
        own = share + as_words(self._noise.laplace(rate, len(share)))
        payload = yield from exchange(_COUNTS, peer, encode_words(own))
        return signed(own + decode_words(payload, len(own), peer, _COUNTS)).reshape(shape)


def _binary(labels: Ints, n_labels: int) -> Words:
    """Return a row for each label, with 1 for its records: uint64, shape (n_labels, n_records)."""
    rows: Words = (labels == np.arange(n_labels)[:, np.newaxis]).astype(np.uint64)
    return rows
