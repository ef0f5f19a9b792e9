"""The result of a DP run in bytes, its files, and what is accepted as one from others."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anonymize.joint.dp.noise import DELTA
from jobs.dp.result import decode_result, delta_text
from jobs.errors import PartyError
from tests.support.dp_jobs import PARTITIONS, Site, made
from tests.support.samples import PARTIES


def parts(encoded: bytes) -> tuple[dict[str, Any], bytes]:
    size = int.from_bytes(encoded[:8], "little")
    return json.loads(encoded[8 : 8 + size]), encoded[8 + size :]


def encoded(header: dict[str, Any], body: bytes) -> bytes:
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    return len(text).to_bytes(8, "little") + text + body


@pytest.mark.some(2)
@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("model", [(), (("engine", "thesis"), ("max_rows", "30")), (("noise", "each"),)])
def test_what_is_encoded_is_what_is_read(partition: str, model: tuple[tuple[str, str], ...]) -> None:
    """Account and reveals are read anew from job, specializations and counts: so it was in the protocol."""
    site, result = made(partition, model)
    again = decode_result(result.encoded, site.task, "leader")
    assert again.encoded == result.encoded
    assert again.outcome == result.outcome
    assert again.table.counts.tolist() == result.table.counts.tolist()
    assert again.spent.charges == result.spent.charges
    assert sum(charge.epsilon for charge in again.spent.charges) == 1
    assert (0 < Fraction(again.delta) <= DELTA) == ("thesis" not in str(model))
    assert (again.delta, again.noise, again.reveals) == (result.delta, result.noise, result.reveals)
    assert encoded(*parts(result.encoded)) == result.encoded


def test_numbers_of_common_records_are_not_in_it() -> None:
    """Only the parties know them: the shape of that reveal is left out."""
    _, result = made("vertical")
    shapes = {reveal["name"]: reveal.get("shape") for reveal in result.reveals}
    assert shapes["common_records"] is None
    assert shapes["candidate"] == []
    assert "61" not in result.encoded[: -8 * len(result.table.counts)].decode()


def charges(change: Callable[[list[Any]], object]) -> Callable[[dict[str, Any]], object]:
    return lambda header: change(header["charges"])


BAD: dict[str, Callable[[dict[str, Any]], object]] = {
    "no steps": lambda h: h.pop("steps"),
    "a step of no column": lambda h: h["steps"][0].__setitem__(0, 9),
    "a step of no node": lambda h: h["steps"][0].__setitem__(1, 77),
    "a step discarded": lambda h: h["steps"][0].__setitem__(3, False),
    "a step too many": lambda h: h["steps"].append(h["steps"][0]),
    "a step too few": lambda h: h["steps"].pop(),
    "delta too large": lambda h: h.update(delta="1E-9"),
    "a small delta that is not this run's": lambda h: h.update(delta="1E-30"),
    "a delta of nothing": lambda h: h.update(delta="0"),
    "delta below zero": lambda h: h.update(delta="-1E-30"),
    "delta is no number": lambda h: h.update(delta="small"),
    "an endless delta": lambda h: h.update(delta="1e99999999"),
    "an endless small delta": lambda h: h.update(delta="1e-99999999"),
    "an endless charge": charges(lambda c: c[0].__setitem__(1, "1e99999999")),
    "delta is a number": lambda h: h.update(delta=0),
    "a charge too few": charges(lambda c: c.pop()),
    "a charge too many": charges(lambda c: c.append(["more", "1/100", 1])),
    "a charge less": charges(lambda c: c[0].__setitem__(1, "1/1000000")),
    "a negative charge": charges(lambda c: (c[0].__setitem__(1, "-1"), c.append(["x", "2", 0]))),
    "no reveals": lambda h: h.pop("reveals"),
    "reveals are text": lambda h: h.update(reveals="all"),
    "a reveal too few": lambda h: h["reveals"].pop(),
    "a reveal too many": lambda h: h["reveals"].append(h["reveals"][-1]),
    "a reveal of another shape": lambda h: h["reveals"][-1].update(shape=[1]),
    "a reveal of something else": lambda h: h["reveals"][0].update(name="counts of hospital-b"),
    "a reveal in another turn": lambda h: h["reveals"][0].update(iteration=2),
    "a turn that is no integer": lambda h: h["reveals"][0].update(iteration=1.0),
    "a charge for something else": charges(lambda c: c[0].__setitem__(0, "7 of 61 rows")),
    "charges in another order": charges(lambda c: c.insert(0, c.pop(1))),
    "a charge moved to the counts": charges(
        lambda c: (c[-1].__setitem__(1, "9/10"), c[0].__setitem__(1, "1/100"))
    ),
    "a score": lambda h: h["steps"][0].__setitem__(4, 61),
    "the other kind of noise": lambda h: h.update(noise="each"),
    "noise of another kind": lambda h: h.update(noise="none"),
    "something more": lambda h: h.update(rows=61),
}


@pytest.mark.parametrize("what", list(BAD))
def test_what_does_not_fit_the_job_is_refused(what: str) -> None:
    site, result = made("horizontal")
    header, body = parts(result.encoded)
    BAD[what](header)
    refused(site, encoded(header, body))


def refused(site: Site, content: bytes) -> None:
    with pytest.raises(PartyError) as caught:
        decode_result(content, site.task, "hospital-c")
    assert (caught.value.problem.error_id, caught.value.problem.party) == ("peer-protocol", "hospital-c")


def test_bytes_that_are_no_result_are_refused() -> None:
    site, result = made("horizontal")
    header, body = parts(result.encoded)
    spaced = json.dumps(header).encode()
    for content in (
        b"",
        b"\xff" * 64,
        result.encoded[:-1],
        result.encoded[:-8],
        result.encoded + bytes(8),
        len(spaced).to_bytes(8, "little") + spaced + body,
        encoded(header, body[:-8] + body[-8:] * 2),
    ):
        refused(site, content)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(content: bytes) -> None:
    refused(made("horizontal")[0], content)


@example(Fraction(1, 2**40))
@example(Fraction(1, 10))
@example(Fraction(999, 1000))
@example(Fraction(1, 10**80))
@given(st.fractions(min_value=0, max_value=1))
def test_delta_is_never_rounded_down(delta: Fraction) -> None:
    text = delta_text(delta)
    assert delta <= Fraction(text) <= delta * Fraction(12, 10)
    assert (text == "0") == (delta == 0)
    assert len(text.split("E")[0].replace(".", "").strip("0")) <= 3


@pytest.mark.parametrize(
    "said", [(True, False), (False, True), (True, None), (None, None), (1, True), ("yes", "yes")]
)
def test_all_parties_give_an_earlier_release_again_or_none(said: tuple[Any, ...]) -> None:
    """All give the same word, true or false, or the run is no run."""
    result = made("horizontal")[1]
    told: list[dict[str, Any]] = [{} if word is None else {"repeated": word} for word in said]
    with pytest.raises(PartyError) as caught:
        result.completed(told)
    assert caught.value.problem.error_id == "result-mismatch"
    for word in (True, False):
        assert result.completed([{"repeated": word}] * len(PARTIES)).repeated is word
