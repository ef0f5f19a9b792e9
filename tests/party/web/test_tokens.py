"""One-time sign-in tokens: good once, for a while, for whom they were made."""

from __future__ import annotations

import stat
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from crypto.rng import SystemRng
from party.web.tokens import FOLDER, LIVES_S, MOST, TOKEN_BYTES, Tokens
from tests.support.pages import Clock


@dataclass
class Made:
    tokens: Tokens
    clock: Clock
    folder: Path

    def issue(self, who: str = "anna") -> str:
        return self.tokens.issue(who, SystemRng())


@pytest.fixture
def made(tmp_path: Path) -> Made:
    clock = Clock()
    return Made(Tokens(tmp_path / "state", clock), clock, tmp_path / "state" / FOLDER)


def test_a_token_is_good_once_and_says_whose_it_is(made: Made) -> None:
    anna, berta = made.issue("anna"), made.issue("berta")
    assert made.tokens.take(berta) == "berta"
    assert made.tokens.take(anna) == "anna"
    assert made.tokens.take(anna) is None
    assert made.tokens.take(berta) is None


def test_what_is_no_token_is_none(made: Made) -> None:
    assert made.tokens.take("") is None
    token = made.issue()
    for guess in ("", token[:-1], f"{token} ", token.swapcase(), "../in-force.json", "ü"):
        assert made.tokens.take(guess) is None
    assert made.tokens.take(token) == "anna"


def test_a_token_has_more_than_128_bits_and_only_its_hash_is_on_disk(made: Made) -> None:
    tokens = {made.issue() for _ in range(MOST)}
    assert len(tokens) == MOST
    assert TOKEN_BYTES * 8 >= 128
    assert {len(token) for token in tokens} == {43}
    for path in made.folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert not any(token in path.name or token in path.read_text() for token in tokens)
    assert stat.S_IMODE(made.folder.stat().st_mode) == 0o700


@pytest.mark.parametrize(("later_s", "good"), [(LIVES_S - 1, True), (LIVES_S, False), (-3600, False)])
def test_a_token_is_good_for_a_while(made: Made, later_s: float, good: bool) -> None:
    """Nor when the clock was set back."""
    token = made.issue()
    made.clock.now += later_s
    assert made.tokens.take(token) == ("anna" if good else None)


def test_two_who_have_the_same_token_do_not_both_sign_in(made: Made) -> None:
    for _ in range(20):
        token = made.issue()
        with ThreadPoolExecutor(4) as threads:
            took = list(threads.map(made.tokens.take, [token] * 4))
        assert Counter(took) == {"anna": 1, None: 3}


def test_tokens_that_nobody_uses_do_not_pile_up(made: Made) -> None:
    first = made.issue()
    for _ in range(MOST):
        last = made.issue()
    assert len(list(made.folder.iterdir())) == MOST
    assert made.tokens.take(first) is None
    made.clock.now += LIVES_S
    made.issue()
    assert len(list(made.folder.iterdir())) == 1
    assert made.tokens.take(last) is None
