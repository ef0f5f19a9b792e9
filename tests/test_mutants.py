"""Mutants have their place whatever the layout of the sources, the draw repeats, and a few mutants run for real."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from tests.mutants import running
from tests.mutants.caught import in_turn, is_named, recorded
from tests.mutants.drawing import OF_ALL, OF_CHANGED, changed_files, drawn
from tests.mutants.faults import MUTANTS
from tests.mutants.mutant import ROOT, Misplaced, Mutant, Sources
from tests.mutants.running import CAUGHT, survivors
from tests.support.bare import bare

QUICK = ("overdraft",)
SOURCE = """
class Stock:
    def take(self, count):
        if count > self.held:
            raise ValueError
        self.held -= count

    def put(self, count):
        self.held += count

def take(count):
    return Stock().take(
        count,
        )
"""


@pytest.fixture(scope="module")
def library() -> Sources:
    return Sources()


def sources(folder: Path, **files: str) -> Sources:
    """The sources of a small library."""
    for name, text in files.items():
        (folder / "crypto").mkdir(exist_ok=True)
        (folder / "crypto" / f"{name}.py").write_text(text)
    return Sources(folder, ("crypto",))


def overdraft(
    place: str = "Stock.take", old: str = "if count > self.held:", new: str = "if False:"
) -> Mutant:
    return Mutant("overdraft", place, old, new, ())


@pytest.mark.more  # `make check` does the same
def test_every_mutant_has_its_place_and_its_tests(library: Sources) -> None:
    assert library.check(MUTANTS) == []
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_mutants_name_only_what_there_is(library: Sources, tmp_path: Path) -> None:
    """A mutant that fails with a NameError shows nothing of its tests."""
    for number, mutant in enumerate(MUTANTS):
        _, text = library.mutated(mutant)
        (tmp_path / f"{number}.py").write_text(text)
    ruff = Path(sys.executable).with_name("ruff")
    asked = ["check", "--isolated", "--select", "F821", "--output-format", "concise", str(tmp_path)]
    found = subprocess.run([ruff, *asked], capture_output=True, text=True, env=bare(), check=False).stdout
    lines = [line for line in found.splitlines() if "F821" in line]
    assert [(MUTANTS[int(Path(line.split(":")[0]).stem)].name, line) for line in lines] == []


def test_every_kind_of_fault_is_there() -> None:
    """Semantics §8.6 names these kinds."""
    names = " ".join(mutant.name for mutant in MUTANTS)
    for kind in (
        "half-scale",
        "r-at-most-l",
        "dropped-empty",
        "from-the-data",
        "threshold",
        "clamped",
        "coin",
    ):
        assert kind in names


def test_a_fault_changes_the_named_definition_and_nothing_else(tmp_path: Path) -> None:
    path, text = sources(tmp_path, vault=SOURCE).mutated(overdraft())
    assert path == "crypto/vault.py"
    assert text == SOURCE.replace("if count > self.held:", "if False:")


@pytest.mark.parametrize(
    "code",
    ["if count>self.held :", "if count > self.held:\n", "if  count >\n    self . held:"],
    ids=["tight", "line", "broken"],
)
def test_white_space_does_not_count(tmp_path: Path, code: str) -> None:
    assert sources(tmp_path, vault=SOURCE).find(overdraft(old=code)).path == "crypto/vault.py"


def test_a_comma_before_a_bracket_does_not_count(tmp_path: Path) -> None:
    found = sources(tmp_path, vault=SOURCE).find(overdraft("vault.take", "Stock().take(count)"))
    assert SOURCE[found.start : found.end].endswith(",\n        )")


def test_a_definition_may_move_to_another_file(tmp_path: Path) -> None:
    assert sources(tmp_path, empty="", elsewhere=SOURCE).find(overdraft()).path == "crypto/elsewhere.py"


@pytest.mark.parametrize(
    ("place", "code", "times"),
    [
        ("Stock.take", "no such code", "0 times"),
        ("Stock.take", "count > self.hel", "0 times"),  # words are whole
        ("Stock.put", "if count > self.held:", "0 times"),
        ("Shelf.take", "if count > self.held:", "no file"),
        ("ock.take", "if count > self.held:", "0 times"),
        ("Stock", "count", "5 times"),
        ("take", "count", "5 times"),
    ],
)
def test_code_that_is_not_there_once_is_an_error(tmp_path: Path, place: str, code: str, times: str) -> None:
    with pytest.raises(Misplaced, match=times):
        sources(tmp_path, vault=SOURCE).find(overdraft(place, code))


def test_code_in_a_comment_is_no_place(tmp_path: Path) -> None:
    text = SOURCE.replace("if count > self.held:", "# if count > self.held:\n        if self.held < count:")
    (problem,) = sources(tmp_path, vault=text).check([overdraft()])
    assert "is a comment" in problem


def test_a_name_is_given_once(tmp_path: Path) -> None:
    assert "2 mutants" in sources(tmp_path, vault=SOURCE).check([overdraft(), overdraft()])[0]


def test_a_mutant_that_does_not_compile_or_has_no_tests_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_vault.py").write_text("def test_there(): pass\n# def test_gone(): pass\n")
    tests = ("test_vault.py::test_there", "test_vault.py::test_gone", "test_gone.py")
    mutant = Mutant("broken", "Stock.take", "if count > self.held:", "if:", tests)
    problems = sources(tmp_path, vault=SOURCE).check([mutant])
    assert [
        problems[0].startswith("broken: ") and "syntax" in problems[0],
        *(problem.split()[-1] for problem in problems[1:]),
    ] == [True, *tests[1:]]


def test_the_draw_follows_from_the_sources(tmp_path: Path) -> None:
    """All mutants of the library are drawn from by `.ci/run`."""
    library, tests = sources(tmp_path, vault=SOURCE), ("tests/test_vault.py::test_there",)
    many = [Mutant(str(i), "Stock.put", "+=", "-=", tests) for i in range(4 * OF_ALL)]
    first = drawn(many, library, frozenset())
    assert first == drawn(many, sources(tmp_path, vault=SOURCE), frozenset())
    assert len(first) == OF_ALL
    for changed in ("crypto/vault.py", "tests/test_vault.py"):
        more = drawn(many, library, frozenset({changed}))
        assert len(more) == OF_ALL + OF_CHANGED
        assert {*first} < {*more}
    assert drawn(many, library, frozenset({"crypto/lock.py"})) == first
    few = [overdraft(), Mutant("other", "Stock.put", "+=", "-=", ())]
    assert drawn(few, library, frozenset()) == few


def test_another_state_of_library_or_tests_draws_others(tmp_path: Path) -> None:
    many = [Mutant(str(i), "Stock.put", "+=", "-=", ()) for i in range(4 * OF_ALL)]
    before = drawn(many, sources(tmp_path, vault=SOURCE), frozenset())
    assert before == drawn(many, sources(tmp_path, vault=SOURCE), frozenset())
    assert before != drawn(many, sources(tmp_path, vault=SOURCE + "\n"), frozenset())
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_vault.py").write_text("")
    assert before != drawn(many, sources(tmp_path, vault=SOURCE), frozenset())


def test_files_of_the_last_commits_are_named(tmp_path: Path) -> None:
    assert changed_files(tmp_path) == frozenset()
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run([*git, "init", "-q"], check=True, env=bare())
    for name in ("a", "b", "c"):
        (tmp_path / name).touch()
        for words in (["add", "."], ["commit", "-q", "-m", name]):
            subprocess.run([*git, *words], check=True, env=bare())
    assert changed_files(tmp_path, commits=2) == {"b", "c"}
    shallow = tmp_path / "shallow"
    clone = [*git, "clone", "-q", "--depth=2", tmp_path.as_uri(), str(shallow)]
    subprocess.run(clone, check=True, env=bare())
    assert changed_files(shallow) == {"c"}


def test_the_test_that_noticed_a_mutant_is_tried_first() -> None:
    mutant = replace(overdraft(), tests=("tests/test_vault.py", "tests/test_lock.py::test_two"))
    assert list(in_turn(mutant, {})) == [mutant.tests]
    noticed = f"{mutant.tests[0]}::test_one[a-1]"
    assert list(in_turn(mutant, {mutant.name: noticed, "other": "x"})) == [(noticed,), mutant.tests]
    assert list(in_turn(mutant, {mutant.name: "tests/test_else.py::test_one"})) == [mutant.tests]


def test_the_record_is_of_mutants_and_of_their_tests() -> None:
    """A test that is gone costs a second; one that a mutant does not name would never be run."""
    mutants = {mutant.name: mutant for mutant in MUTANTS}
    assert [name for name, test in recorded().items() if not is_named(mutants[name], test)] == []


@pytest.mark.more
def test_mutants_are_caught_and_a_harmless_change_is_not(
    library: Sources, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = [mutant for mutant in MUTANTS if mutant.name in QUICK]
    harmless = Mutant("harmless", quick[-1].place, quick[-1].old, quick[-1].old, quick[-1].tests)
    gone = Mutant("gone", quick[-1].place, quick[-1].old, quick[-1].new, (f"{quick[-1].tests[0]}::gone",))
    caught = {quick[0].name: f"{quick[0].tests[0].partition('::')[0]}::gone"}  # the record is of another time
    alive = survivors([*quick, harmless, gone], library, caught)
    assert alive == ["harmless", "gone"]
    assert caught.keys() == {mutant.name for mutant in quick}
    assert all(is_named(mutant, caught[mutant.name]) for mutant in quick)
    out = capsys.readouterr().out
    assert (out.count("caught "), out.count("ALIVE "), out.count("BROKEN ")) == (len(QUICK), 2, 0)


def test_a_test_that_fails_without_the_fault_catches_nothing(
    library: Sources, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The suite does not run every test each time, so nothing else says that the test is broken."""
    (mutant,) = [mutant for mutant in MUTANTS if mutant.name == QUICK[0]]
    ran: list[tuple[tuple[str, ...], bool]] = []

    def run(
        self: running.Copy, tests: tuple[str, ...], path: str | None = None, text: str = ""
    ) -> running.Done:
        ran.append((tests, path is not None))
        return running.Done(running.CAUGHT, "1 failed", "tests/test_x.py::test_broken")

    monkeypatch.setattr(running.Copy, "run", run)
    assert survivors([mutant], library, {}) == [mutant.name]
    assert ran == [(mutant.tests, True), (("tests/test_x.py::test_broken",), False)]
    assert f"BROKEN  {mutant.name}: tests/test_x.py::test_broken fails" in capsys.readouterr().out


def test_a_fault_of_equal_length_is_seen_and_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a second: compiled code of one text is not taken for that of the other."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "one.py"
    file.write_text("X = 1\n")

    def read() -> int:
        found: dict[str, int] = {}
        code = SourceFileLoader("one", str(file)).get_code("one")
        assert code is not None
        exec(code, found)  # noqa: S102 (own text)
        return found["X"]

    seen = [read()]
    for text in ("X = 2\n", "X = 3\n", "X = 1\n"):
        with running._changed(file, text):
            seen.append(read())
        seen.append(read())
    assert seen == [1, 2, 1, 3, 1, 1, 1]


def test_a_run_that_cannot_begin_catches_nothing(tmp_path: Path) -> None:
    """Each run is a fork; the next one is not disturbed."""
    (tmp_path / "test_one.py").write_text("def test_one():\n    assert 1 == 2\n")
    (tmp_path / "broken.py").write_text("raise ValueError\n")
    files = {"printed": str(tmp_path / "printed"), "failed": str(tmp_path / "failed")}
    asked = [
        {"folder": str(tmp_path), "arguments": arguments, **files}
        for arguments in (["-p", "broken"], ["test_one.py"], ["test_none.py"])
    ]
    lines = [json.dumps(each) for each in [*asked, {"folder": "no arguments"}]]
    command = [sys.executable, "-P", ROOT / "tests" / "mutants" / "forking.py"]
    done = subprocess.run(
        command, input="\n".join(lines) + "\n", capture_output=True, text=True, env=bare(), check=True
    )
    assert done.stdout.split() == ["3", str(CAUGHT), "4", "3"]
    assert (tmp_path / "failed").read_text() == "test_one.py::test_one"
