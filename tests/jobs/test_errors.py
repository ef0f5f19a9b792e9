"""The catalogue, problems on their way between parties, and what of an unforeseen error leaves the process."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.errors import DataError
from crypto.errors import LocalProtocolError, RemoteProtocolError
from jobs.errors import (
    ANSWERS,
    CATALOGUE,
    MAX_HOPS,
    MAX_SHARED_CHARS,
    ConfigError,
    Exit,
    JobFailed,
    Problem,
    TransportError,
    problem_of,
)

ROOT = Path(__file__).resolve().parents[2]
RAISING = re.compile(r"\w*(Error|Problem|Failed)$")
MAY_RAISE = re.compile(r"(Error|Problem|Failed)\(\s*(#.*\s*)*[\"'][a-z-]+[\"']")
"""A file without such a call has nothing to read closely."""


def raised_ids() -> Iterator[tuple[str, str]]:
    """Every text that is the first argument where an error or a problem is made, with its place."""
    for top in ("anonymize", "jobs", "party", "coordinator", "evaluation"):
        for path in sorted((ROOT / top).rglob("*.py")):
            text = path.read_text()
            for node in ast.walk(ast.parse(text)) if MAY_RAISE.search(text) else ():
                if not isinstance(node, ast.Call) or not node.args:
                    continue
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                first = node.args[0]
                said = first.value if isinstance(first, ast.Constant) else None
                if RAISING.match(name) and isinstance(said, str) and re.fullmatch(r"[a-z-]+", said):
                    yield said, f"{path.relative_to(ROOT)}:{node.lineno}"


def test_every_error_id_in_the_sources_is_in_the_catalogue() -> None:
    found = list(raised_ids())
    assert len({error_id for error_id, _ in found}) > 25  # the search finds them at all
    assert [place for error_id, place in found if error_id not in CATALOGUE] == []


def test_the_documentation_lists_the_catalogue() -> None:
    text = (ROOT / "docs" / "errors.md").read_text()
    rows = [line.strip("| \n").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    listed = {cells[0].strip("`"): tuple(cells[1:]) for cells in rows}
    assert listed == {
        error_id: (str(int(kind.exit_code)), kind.meaning, kind.remedy)
        for error_id, kind in CATALOGUE.items()
    }


def test_a_busy_party_is_waited_for_and_nothing_else() -> None:
    """Advice names only what exists: jobs of others cannot be cancelled."""
    assert CATALOGUE["busy"].remedy == "let the job wait for its turn with `--wait 30m`"


def test_the_advice_on_a_repeated_id_is_for_jobs_that_can_follow_it() -> None:
    """Vertical jobs refuse `unit: person`."""
    assert "in a single or horizontal LKC job" in CATALOGUE["data-duplicate-id"].remedy


def test_the_documentation_lists_what_owners_are_told() -> None:
    text = (ROOT / "docs" / "errors.md").read_text()
    found = re.findall(r"^\| for the owner: `([a-z-]+)` \| (.*) \|$", text, re.MULTILINE)
    assert dict(found) == {error_id: kind.at_owner for error_id, kind in CATALOGUE.items() if kind.at_owner}
    assert len(found) >= 5


def test_the_documentation_lists_which_errors_are_answers() -> None:
    text = (ROOT / "docs" / "errors.md").read_text()
    assert dict(re.findall(r"^\| an answer: `([a-z-]+)` \| (.*) \|$", text, re.MULTILINE)) == ANSWERS


def test_every_error_about_a_table_is_an_answer_or_depends_on_no_job() -> None:
    """Every DataError comes from a table."""
    found = set()
    for top in ("anonymize", "jobs"):
        for path in sorted((ROOT / top).rglob("*.py")):
            found |= set(re.findall(r'DataError\(\s*"([a-z-]+)"', path.read_text()))
    assert len(found) > 8
    of_one_holder = {"data-two-spellings", "data-published-as-is"}
    assert found - {"file-missing", "too-many-rows", "extra-missing"} - of_one_holder == set(ANSWERS) - {
        "requirement-unmet"
    }


def test_advice_fits_who_reads_it() -> None:
    """Nobody is told to ask himself, or to look where nothing is to be seen."""
    refused = Problem("policy-refused", "no", "p")
    assert "ask the party's owner" in refused.advice(to_owner=False)
    assert "ask" not in refused.advice(to_owner=True)
    assert refused.shared()["remedy"] == refused.advice(to_owner=False)
    assert Problem("busy", "no", remedy="wait").advice(to_owner=True) == "wait"
    for error_id, kind in CATALOGUE.items():
        for advice in (kind.remedy, kind.at_owner):
            assert "see the message" not in advice
            assert "console" not in advice
        if "party problems" in kind.remedy:  # the owner stands in front of it
            assert kind.at_owner, error_id
            assert "party problems" not in kind.at_owner


def test_every_entry_of_the_catalogue_is_used() -> None:
    text = "\n".join(
        path.read_text()
        for top in ("anonymize", "jobs", "party", "coordinator", "evaluation")
        for path in (ROOT / top).rglob("*.py")
        if path.name != "errors.py" or top == "anonymize"
    )
    used_in_errors = {"bug", "peer-protocol", "io-failed"}
    assert [e for e in CATALOGUE if f'"{e}"' not in text and e not in used_in_errors] == []


def test_exit_codes_are_those_of_the_semantics() -> None:
    assert {e.name: int(e) for e in Exit} == {
        "OK": 0,
        "FAILED": 1,
        "USAGE": 2,
        "UNREACHABLE": 3,
        "REFUSED": 4,
        "BUDGET": 5,
        "IDENTITY": 6,
        "DATA": 7,
        "UNSAID": 8,
        "BUG": 70,
    }
    assert {CATALOGUE[e].exit_code for e in CATALOGUE} >= set(Exit) - {Exit.OK, Exit.BUDGET}
    assert all(kind.meaning and kind.remedy for kind in CATALOGUE.values())


def test_what_is_shared_leaves_out_what_is_private() -> None:
    problem = Problem("data-unknown-value", "column x has a value", "p", "load", "x", private="row 3: 'Bob'")
    shared = problem.shared()
    assert "Bob" not in json.dumps(shared)
    assert shared == {
        "error": "data-unknown-value",
        "message": "column x has a value",
        "party": "p",
        "phase": "load",
        "column": "x",
        "remedy": CATALOGUE["data-unknown-value"].remedy,
    }
    assert "row 3: 'Bob'" in str(problem)  # for the owner's own console


def test_a_problem_survives_its_way() -> None:
    """But for the advice, which is our own."""
    problem = Problem("policy-refused", "no", "p", "admit", "c", "ask")
    assert Problem.received(problem.shared()) == replace(problem, remedy="")


def test_what_a_party_says_of_another_is_hearsay() -> None:
    lie = Problem("policy-refused", "C must be 1/10", "a", "admit", remedy="at a: set policy.max_c to 1")
    told = Problem.told(json.dumps(lie.shared()), "liar")
    assert (told.party, told.about, told.hops) == ("liar", "a", 1)
    assert told.message == "liar says of a: C must be 1/10"
    assert "max_c" not in str(told)
    told_on = Problem.told(json.dumps(told.shared()), "b")
    assert (told_on.party, told_on.about, told_on.hops) == (None, None, 2)
    assert told_on.message == "passed on by b: liar says of a: C must be 1/10"
    assert told_on.at("c", "compute").party is None
    own = Problem.told(json.dumps(Problem("busy", "later", "a").shared()), "a")
    assert (own.party, own.about, own.message) == ("a", None, "later")


@pytest.mark.parametrize("hops", [-1, 10**9, "3", None, 1.5])
def test_how_far_a_problem_came_is_bounded(hops: object) -> None:
    assert 0 <= Problem.received({"error": "busy", "hops": hops}).hops <= MAX_HOPS


@given(
    st.dictionaries(
        st.sampled_from(["error", "message", "party", "phase", "column", "remedy", "private", "other"]),
        st.one_of(
            st.none(), st.integers(), st.text(), st.lists(st.text()), st.dictionaries(st.text(), st.text())
        ),
    )
)
def test_whatever_a_peer_sends_as_a_problem_is_bounded_and_printable(fields: dict[str, object]) -> None:
    problem = Problem.received(fields)
    assert problem.error_id in CATALOGUE
    assert problem.private == ""
    for text in (
        problem.message,
        problem.party or "",
        problem.phase or "",
        problem.column or "",
        problem.remedy,
    ):
        assert len(text) <= MAX_SHARED_CHARS
        assert not text or text.isprintable()
    str(problem)


def test_long_and_hostile_texts_are_clipped() -> None:
    hostile = "\x1b[2J" + "x" * 10_000 + "\n"
    problem = Problem.received({"error": "made-up\n", "message": hostile, "party": hostile})
    assert problem.error_id == "peer-protocol"
    assert problem.message == " [2J" + "x" * (MAX_SHARED_CHARS - 4)
    assert problem.party == problem.message


def test_where_it_happened_is_filled_in_once() -> None:
    problem = Problem("busy", "no").at("p", "admit")
    assert (problem.party, problem.phase) == ("p", "admit")
    assert problem.at("q", "run") == problem
    unmet = Problem("requirement-unmet", "no").at("p", "root")
    assert (unmet.party, unmet.phase) == (None, "root")  # all rows together are no party's fault


def test_an_unforeseen_error_shares_its_type_only() -> None:
    problem = problem_of(KeyError("Transgender, row 17"))
    assert (problem.error_id, problem.exit_code) == ("bug", Exit.BUG)
    assert problem.message == "unexpected KeyError"
    assert "Transgender" not in json.dumps(problem.shared())
    assert problem_of(TimeoutError("x")).error_id == "bug"


def test_a_refusal_of_the_operating_system_shares_no_path() -> None:
    problem = problem_of(OSError(28, "No space left on device", "/home/bob/patients.csv"))
    assert (problem.error_id, problem.exit_code) == ("io-failed", Exit.FAILED)
    assert problem.message == "No space left on device"
    assert problem.cause == "/home/bob/patients.csv: No space left on device"
    assert "bob" not in json.dumps(problem.shared())


def test_a_librarys_words_about_a_file_are_the_owners() -> None:
    problem = problem_of(OSError("cannot parse 'Transgender'"))
    assert (problem.error_id, problem.message, problem.cause) == ("io-failed", "OSError", "")
    assert "Transgender" in problem.private


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConfigError("job-invalid", "x"), Problem("job-invalid", "x")),
        (TransportError("peer-lost", "x", party="p"), Problem("peer-lost", "x", "p")),
        (JobFailed(Problem("busy", "x", "p", "admit")), Problem("busy", "x", "p", "admit")),
        (
            DataError("data-empty", "x", column="c", remedy="r", private="12 rows"),
            Problem("data-empty", "x", column="c", remedy="r", private="12 rows"),
        ),
        (
            RemoteProtocolError("p", "secure_sum/keys", "too short"),
            Problem("peer-protocol", "at step secure_sum/keys: too short", "p"),
        ),
        (LocalProtocolError("x"), Problem("bug", "a protocol was called wrongly: x")),
    ],
)
def test_every_error_of_ours_has_its_problem(error: Exception, expected: Problem) -> None:
    assert problem_of(error) == expected
