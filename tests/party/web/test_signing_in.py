"""Tokens work once and for minutes, sessions for hours; the file holds neither."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobs.errors import PartyError
from party.web.signing_in import SESSION_LASTS, TOKEN_LASTS, WEB, Session, SignIns
from tests.support.rng import SeededRng

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)


@pytest.fixture
def sign_ins(tmp_path: Path) -> SignIns:
    return SignIns(tmp_path, SeededRng("sign-ins"))


def signed_in(sign_ins: SignIns) -> str:
    cookie = sign_ins.sign_in(sign_ins.token(NOW), NOW)
    assert cookie is not None
    return cookie


def test_a_token_works_once(sign_ins: SignIns) -> None:
    token = sign_ins.token(NOW)
    assert len(bytes.fromhex(token)) == 32
    assert sign_ins.sign_in(token, NOW) is not None
    assert sign_ins.sign_in(token, NOW) is None


def test_of_many_at_once_one_uses_a_token(sign_ins: SignIns) -> None:
    token = sign_ins.token(NOW)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: sign_ins.sign_in(token, NOW), range(8)))
    assert sum(cookie is not None for cookie in found) == 1


def test_a_token_ends(sign_ins: SignIns) -> None:
    early, late = sign_ins.token(NOW), sign_ins.token(NOW)
    assert sign_ins.sign_in(early, NOW + TOKEN_LASTS - MOMENT) is not None
    assert sign_ins.sign_in(late, NOW + TOKEN_LASTS) is None


@pytest.mark.parametrize("token", ["", "0" * 64, "' OR 1=1 --", "ü" * 64])
def test_no_other_text_signs_in(sign_ins: SignIns, token: str) -> None:
    sign_ins.token(NOW)
    assert sign_ins.sign_in(token, NOW) is None
    assert sign_ins.session(token, NOW) is None


def test_a_session_ends(sign_ins: SignIns) -> None:
    cookie = signed_in(sign_ins)
    assert sign_ins.session(cookie, NOW + SESSION_LASTS - MOMENT) is not None
    assert sign_ins.session(cookie, NOW + SESSION_LASTS) is None
    assert sign_ins.session(cookie, NOW) is None  # gone for good


def test_signing_out_ends_one_session(sign_ins: SignIns) -> None:
    mine, other = signed_in(sign_ins), signed_in(sign_ins)
    session = sign_ins.session(mine, NOW)
    assert session is not None
    sign_ins.sign_out(session, NOW)
    assert sign_ins.session(mine, NOW) is None
    assert sign_ins.session(other, NOW) is not None


def test_the_file_signs_nobody_in(sign_ins: SignIns, tmp_path: Path) -> None:
    token, cookie = sign_ins.token(NOW), signed_in(sign_ins)
    file = tmp_path / WEB
    assert file.stat().st_mode & 0o777 == 0o600
    content = file.read_bytes()
    for secret in (token, cookie):
        assert secret.encode() not in content
        assert bytes.fromhex(secret) not in content
    session = sign_ins.session(cookie, NOW)
    assert session is not None
    assert sign_ins.session(session.name, NOW) is None
    assert repr(session.secret) not in repr(session)


def test_tokens_of_forms_are_of_a_session_and_a_path() -> None:
    one, other = Session("a", b"1" * 32), Session("b", b"2" * 32)
    token = one.token("/jobs/x/approve")
    assert one.has_sent(token, "/jobs/x/approve")
    assert not one.has_sent(token, "/jobs/x/deny")
    assert not other.has_sent(token, "/jobs/x/approve")
    assert not one.has_sent("", "/jobs/x/approve")
    assert not one.has_sent("ü", "/jobs/x/approve")


def test_a_broken_file_is_an_error_with_its_path_for_the_owner(sign_ins: SignIns, tmp_path: Path) -> None:
    (tmp_path / WEB).write_bytes(b"no database" * 100)
    with pytest.raises(PartyError) as caught:
        sign_ins.token(NOW)
    assert caught.value.problem.error_id == "io-failed"
    assert WEB in caught.value.problem.cause
    assert WEB not in caught.value.problem.message
