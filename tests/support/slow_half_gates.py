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
