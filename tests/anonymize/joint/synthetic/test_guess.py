"""Guessing a secret bit from what a party of a joint run sees: counts less its own, choices with its own scores."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.dp.columns import session_of
from anonymize.joint.dp.noise import Plans
from anonymize.joint.pair import open_pair
from anonymize.joint.roster import Roster
from anonymize.joint.sessions import open_sessions
from anonymize.joint.synthetic.choice import Contest
from anonymize.joint.synthetic.holder import JointHolder
from anonymize.joint.synthetic.horizontal import SharedRows
from anonymize.joint.synthetic.run import MOST_DISTANCE
from anonymize.joint.synthetic.vertical import JoinedColumns
from anonymize.synthetic.marginals import leaf_marginals
from anonymize.table import CodedTable
from anonymize.tds import Observer
from crypto.circuits.constants import geometric_plan, laplace_plan
from crypto.local import run_local
from crypto.rounds import Rounds
from tests.support.dp_runs import names_of, split_columns
from tests.support.dp_tables import categorical, schema_of, table_of
from tests.support.guessing import LIMITS, OwnCoins, bits_of, correct, noise_of_coins
from tests.support.rng import SeededRng
from tests.support.synthetic_joint import forest_at_the_pair, pairs_between


def measured_by_rows(parts: Sequence[CodedTable], rate: Fraction) -> Any:
    """One column by leaf, as all parties open it."""
    names = names_of(len(parts))

    def protocol(me: str, table: CodedTable) -> Rounds[Any]:
        pair = yield from open_pair(Roster(me, names, "p0", "p1"), bytes(32), SeededRng(me), Observer())
        shared = SharedRows(pair, table, 10_000)
        return (yield from measured(JointHolder(shared, plans_of(rate), RevealLedger(ROWS)), table, rate))

    results, _ = run_local({me: protocol(me, part) for me, part in zip(names, parts, strict=True)})
    return results["p0"]


def measured_by_columns(whole: CodedTable, rate: Fraction) -> Any:
    """The same, the column being the deputy's."""

    def protocol(me: str, own: Any) -> Rounds[Any]:
        roster, rng = Roster(me, ("p0", "p1"), "p0", "p1"), SeededRng(me)
        session = session_of(roster, (yield from open_sessions(me, [("p0", "p1")], rng, Observer())))
        joined = JoinedColumns(roster, own, session, rng)
        return (yield from measured(JointHolder(joined, plans_of(rate), RevealLedger(COLUMNS)), whole, rate))

    parts = zip(("p0", "p1"), split_columns(whole, []), strict=True)
    return run_local({me: protocol(me, own) for me, own in parts})[0]["p0"]


ROWS, COLUMNS = "dp/horizontal/synthetic", "dp/vertical/synthetic"


def plans_of(rate: Fraction) -> Plans:
    return Plans(rate, 1, MOST_DISTANCE)


def measured(holder: JointHolder, table: CodedTable, rate: Fraction) -> Rounds[Any]:
    (counts,) = yield from holder.measure(leaf_marginals(table.schema), rate)
    return counts[:, 0]


@pytest.mark.some(1)
@pytest.mark.parametrize("spread", ["rows", "columns"])
@pytest.mark.parametrize(("epsilon", "n", "limit"), LIMITS[:3])
def test_counts_in_each_partys_view(
    spread: str, epsilon: Fraction, n: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value for each trial: one record of it, at p0, or a second one, at the last party, and so on. What is opened,
    less what a party knows of the records, and less the noise that its own coins alone would make.
    """
    coins = OwnCoins(monkeypatch)
    secrets = bits_of(n, ("synthetic", spread, epsilon))
    schema = schema_of(categorical("q", {"*": [f"v{i}" for i in range(n)]}))
    known, secret = [(i, 0) for i in range(n)], [(i, 0) for i in range(n) if secrets[i]]
    if spread == "rows":
        parts = [table_of(schema, rows) for rows in (known, [], secret)]
        opened = measured_by_rows(parts, epsilon)
    else:
        opened = measured_by_columns(table_of(schema, [*known, *secret]), epsilon)
    plan = laplace_plan(epsilon, 1 << (n - 1).bit_length(), MOST_DISTANCE)
    views = [opened - 1]
    for name in "ge":
        own = noise_of_coins(np.concatenate(coins.drawn[name], axis=1), plan)
        assert len(own) == n
        views.append(opened - 1 - own)
    for view in views:
        assert correct(view >= 1, secrets) < limit
    assert correct(views[0] >= 1, secrets) > n / 2 + 30, "the rule should guess better than a coin"


@pytest.mark.more
def test_choices_in_each_partys_view() -> None:
    """One of two pairs is chosen; one record moves both scores, in opposite directions: the worst there is."""
    epsilon, n, limit = LIMITS[0]
    pairs = pairs_between((2, 1, 1), 1)
    expected = [np.zeros(pairs[0].shape), np.full(pairs[1].shape, 5), np.zeros(pairs[2].shape)]
    contest = Contest(pairs, [e.astype(np.int64) for e in expected], (0, 9, 99), 2)
    secrets = bits_of(n, "synthetic choice")
    plan = geometric_plan(epsilon / 2, 4, MOST_DISTANCE)
    guesses = []
    for trial, secret in enumerate(secrets.tolist()):
        counts = [np.zeros(pair.shape, dtype=np.int64) for pair in pairs]
        for table in counts:
            table.flat[0] = secret
        found, _ = forest_at_the_pair(contest, counts, plan, 1, seed=trial, record=False)
        guesses.append(found["e"] == (0,))
    assert n / 2 + 30 < correct(np.array(guesses), secrets) < limit
