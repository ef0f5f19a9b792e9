"""The circuit of sealed runs over sequences, over counts that leader and deputy hold as additive shares."""

from __future__ import annotations

from functools import lru_cache

from anonymize.joint.lkc.circuits import InCircuit
from crypto.builder import Builder
from crypto.circuit import Circuit, Held, To
from crypto.circuits.arithmetic import all_of


@lru_cache(maxsize=16)
def kept_circuit(excess_width: int, difference_width: int, n_differences: int) -> Circuit:
    """Open to both whether none of a sequence's numbers is below 0: a sign bit of each, and their conjunction.

    excess:      n − K. difference: p·n − q·n_s, one for each bound. Both in two's complement, shared.

    AND gates: one less than the bits that go in. Adding up two shares takes one less than they have bits, and so does
    joining the signs.
    """
    b = Builder(f"kept/{excess_width}/{difference_width}/{n_differences}")
    words = b.input("excess", Held.ADDITIVE_SHARED, excess_width)
    if n_differences:
        words += b.input("difference", Held.ADDITIVE_SHARED, difference_width, n_differences)
    on = InCircuit(b)
    b.output("kept", To.BOTH, [[all_of(b, [on.not_negative(word) for word in words])]])
    return b.build()
