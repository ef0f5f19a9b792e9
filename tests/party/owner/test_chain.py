"""Lines that follow each other: what one says, what comes after it, and every way in which one does not."""

from __future__ import annotations

import hashlib
import json

import pytest

from party.owner.chain import START, TORN, BrokenChainError, Chain, Head, digest_of, line_after, line_in

AT = "2026-11-23T12:00:00.000Z"


def chain_of(n: int) -> list[bytes]:
    """Lines about nothing."""
    lines: list[bytes] = []
    head = Head()
    for i in range(n):
        lines.append(line_after(head, AT, "end", {"run": f"{i:032x}"}))
        head = Head(i + 1, digest_of(lines[-1]))
    return lines


def followed(lines: list[bytes]) -> Chain:
    chain = Chain()
    for raw in lines:
        chain.take(raw)
    return chain


def broken(lines: list[bytes]) -> int:
    """The number of the first broken line."""
    with pytest.raises(BrokenChainError) as caught:
        followed(lines)
    return caught.value.n


def test_a_line_is_json_with_the_hash_of_the_one_before() -> None:
    first, second = chain_of(2)
    assert json.loads(first) == {"n": 1, "before": START, "at": AT, "what": "end", "run": "0" * 32}
    assert json.loads(second)["before"] == hashlib.sha256(first[:-1]).hexdigest()
    assert first.isascii()
    assert first.count(b"\n") == 1


def test_a_chain_that_was_written_is_followed_to_its_end() -> None:
    lines = chain_of(5)
    assert followed(lines).head == Head(5, digest_of(lines[-1]))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_an_edited_line_is_named(n: int) -> None:
    """But not the last one: nothing was written after it."""
    lines = chain_of(5)
    lines[n - 1] = lines[n - 1].replace(b'"end"', b'"END"')
    assert broken(lines) == n


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_a_line_that_is_gone_is_named(n: int) -> None:
    lines = chain_of(5)
    del lines[n - 1]
    assert broken(lines) == n


def test_lines_twice_or_in_another_order_are_noticed() -> None:
    a, b, c = chain_of(3)
    assert broken([a, b, b, c]) == 3
    assert broken([a, c, b]) == 2


def test_a_line_with_its_number_of_another_chain_is_noticed() -> None:
    first, second = chain_of(2)
    other = line_after(Head(1, "f" * 64), AT, "end", {})
    assert broken([first, other]) == 1
    assert broken([second]) == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\n",
        b"\0" * 80,
        b"[]\n",
        b"{}\n",
        b'{"n":1,"before":"","at":"","what":""}',
        b'{"n":true,"before":"","at":"","what":""}\n',
        b'{"n":"1","before":"","at":"","what":""}\n',
        b'{"n":1,"before":0,"at":"","what":""}\n',
        b'{"n":1,"n":1,"before":"","at":"","what":""}\n',
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
    ],
)
def test_bytes_that_are_no_line(raw: bytes) -> None:
    assert line_in(raw) is None


@pytest.mark.parametrize("torn", [b"", b'{"n":3,"bef', b"\0" * 40, b"junk\n", b"junk\nmore"])
def test_torn_bytes_belong_to_the_chain_with_the_line_that_closes_them(torn: bytes) -> None:
    lines = chain_of(2)
    chain = followed(lines)
    torn = torn or chain_of(3)[2][:-1]
    for raw in torn.splitlines(keepends=True):
        chain.take(raw)
    assert chain.torn == torn
    assert chain.head.n == 2
    closing = b"".join(chain.closing(AT))
    after = followed([*lines, *(torn + closing).splitlines(keepends=True)])
    assert (after.head.n, after.torn) == (3, b"")
    last = line_in(chain.closing(AT)[1])
    assert last is not None
    assert last.what == TORN
    for changed in (b"!" + torn[1:], torn[1:], b""):
        assert broken([*lines, *(changed + closing).splitlines(keepends=True)]) == 3


def test_bytes_that_are_no_line_are_closed_by_the_next_one_or_break_the_chain() -> None:
    first, second, third = chain_of(3)
    assert broken([first, b"junk\n", second, third]) == 2


def test_a_line_that_closes_nothing_breaks_the_chain() -> None:
    (first,) = chain_of(1)
    closing = line_after(Head(1, digest_of(first)), AT, TORN, {"bytes": 3, "sha256": "0" * 64})
    assert broken([first, closing]) == 2
