"""Rules of criteria, judged by the compute pair: inside circuits, of shares, many groups at once."""

from __future__ import annotations

from anonymize.criteria.criterion import Rule
from anonymize.joint.engine import Engine, carried, low_bits
from anonymize.joint.lkc import circuits
from crypto.encoding import Words
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords


def judged(engine: Engine, rule: Rule, width: int, values: Words) -> Rounds[CarriedWords]:
    """Test rows of shares by a rule, those of many groups at once: a carried bit for each.

    values:  our shares modulo 2**width or more, shape (n, number of values that the rule takes).
    """
    circuit = circuits.criterion_circuit(rule, width, values.shape[1])
    outputs = yield from engine.run(circuit, len(values), {rule.entry: low_bits(values, width)})
    return carried(outputs, "met")
