"""Half-gates written from the paper, one gate at a time (Zahur, Rosulek, Evans, EUROCRYPT 2015, figure 2).

Blocks are 128-bit integers. R is the offset, j and j' the indices of the two halves, the hash TMMO.
"""

from __future__ import annotations

from tests.support.slow_hash import tmmo


def gb_and(key: bytes, r: int, w0_a: int, w0_b: int, j: int, j_prime: int) -> tuple[int, int, int]:
    """GbAnd: return (W_0 of the output, T_G, T_E)."""
    p_a, p_b = w0_a & 1, w0_b & 1
    w1_a, w1_b = w0_a ^ r, w0_b ^ r
    # first half gate
    t_g = tmmo(key, w0_a, j) ^ tmmo(key, w1_a, j) ^ (r if p_b else 0)
    w0_g = tmmo(key, w0_a, j) ^ (t_g if p_a else 0)
    # second half gate
    t_e = tmmo(key, w0_b, j_prime) ^ tmmo(key, w1_b, j_prime) ^ w0_a
    w0_e = tmmo(key, w0_b, j_prime) ^ (t_e ^ w0_a if p_b else 0)
    return w0_g ^ w0_e, t_g, t_e


def ev_and(key: bytes, w_a: int, w_b: int, t_g: int, t_e: int, j: int, j_prime: int) -> int:
    """Ev, the case of an AND gate."""
    s_a, s_b = w_a & 1, w_b & 1
    w_g = tmmo(key, w_a, j) ^ (t_g if s_a else 0)
    w_e = tmmo(key, w_b, j_prime) ^ (t_e ^ w_a if s_b else 0)
    return w_g ^ w_e


def gb_garbler(key: bytes, r: int, w0_a: int, w0_b: int, j: int) -> tuple[int, int]:
    """The generator's half gate (section 3.1), for its bit v_b: return (W_0 of the output, T_G).

    A ciphertext for each label of a; that of the label with lowest bit 0 is zero, as its output label is the hash.
    """
    v_b, p_a = w0_b & 1, w0_a & 1
    labels = [w0_a ^ (r if p_a else 0), w0_a ^ (0 if p_a else r)]
    values = [p_a, 1 - p_a]
    zero = tmmo(key, labels[0], j) ^ (r if values[0] & v_b else 0)
    wanted = [zero ^ (r if value & v_b else 0) for value in values]
    sent = [tmmo(key, label, j) ^ label_out for label, label_out in zip(labels, wanted, strict=True)]
    assert sent[0] == 0
    return zero, sent[1]


def ev_garbler(key: bytes, w_a: int, _: int, t_g: int, j: int) -> int:
    """Evaluate :func:`gb_garbler`'s gate."""
    return tmmo(key, w_a, j) ^ (t_g if w_a & 1 else 0)


def gb_evaluator(key: bytes, r: int, w0_a: int, w0_b: int, j: int) -> tuple[int, int]:
    """The evaluator's half gate (section 3.2), for the bit v_b that it knows: return (W_0 of the output, T_E).

    With v_b = 0 the evaluator takes the hash of its label, with v_b = 1 it also adds T_E and its label of a.
    """
    w1_b = w0_b ^ r
    return tmmo(key, w0_b, j), tmmo(key, w0_b, j) ^ tmmo(key, w1_b, j) ^ w0_a


def ev_evaluator(key: bytes, w_a: int, w_b: int, t_e: int, j: int) -> int:
    """Evaluate :func:`gb_evaluator`'s gate; the lowest bit of ``w_b`` is the evaluator's bit."""
    return tmmo(key, w_b, j) ^ (t_e ^ w_a if w_b & 1 else 0)
