"""The audit read again, and attacked: what the chain shows by itself, and what only ends that others hold do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import Exit, PartyError
from party.owner.audit import FOLDER, Audit, audit_files
from party.owner.audit_check import Held, check, compare, heads_of, lines_of, read_held
from party.owner.chain import Head
from tests.support.commands import Ran, invoke

RUNS = [f"{i:032x}" for i in range(4)]


def history(state: Path, salt: str = "s") -> list[Head]:
    """Four runs, a file for every two lines or so; the ends that others were told."""
    audit = Audit(state, most_bytes=400)
    ends = []
    for i, run in enumerate(RUNS):
        audit.write("start", job=f"job-{i}", run=run)
        audit.write("reveal", run=run, name="valid", shape=[], to="all")
        ends.append(audit.write("end", run=run, came_to="released", salt=salt))
        held = {"hospital-b": ends[-2].digest} if i else {}
        audit.write("heads", run=run, heads={"hospital-b": f"{i}" * 64}, held=held)
    return ends


def broken(state: Path) -> str:
    with pytest.raises(PartyError) as caught:
        check(state / FOLDER)
    assert caught.value.problem.error_id == "audit-broken"
    return caught.value.problem.message


def rewrite(path: Path, change: Callable[[list[bytes]], Any]) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    change(lines)
    path.write_bytes(b"".join(lines))


def test_a_chain_that_holds(tmp_path: Path) -> None:
    ends = history(tmp_path)
    found = check(tmp_path / FOLDER)
    assert found.head.n == 16
    assert found.ends == dict(zip(RUNS, ends, strict=True))
    assert found.held == [Held("hospital-b", "", end.digest) for end in ends[:3]]
    assert found.notes == []
    assert compare(found, found.held) == 3
    assert compare(found, [Held("hospital-c", run, end.digest) for run, end in found_ends(ends)]) == 4


def found_ends(ends: list[Head]) -> list[tuple[str, Head]]:
    return list(zip(RUNS, ends, strict=True))


def test_nothing_is_a_chain_too(tmp_path: Path) -> None:
    assert check(tmp_path / FOLDER).head == Head()


def test_every_edit_but_that_of_the_last_line_is_named(tmp_path: Path) -> None:
    history(tmp_path / "whole")
    n_files = len(audit_files(tmp_path / "whole" / FOLDER))
    assert n_files > 4
    named = []
    for i in range(n_files):
        for j in range(4):
            state = tmp_path / f"{i}-{j}"
            shutil.copytree(tmp_path / "whole", state)
            path = audit_files(state / FOLDER)[i]
            lines = path.read_bytes().splitlines(keepends=True)
            if j >= len(lines) or (i == n_files - 1 and j == len(lines) - 1):
                continue
            n = json.loads(lines[j])["n"]
            rewrite(path, lambda lines, j=j: lines.__setitem__(j, lines[j].replace(b'Z"', b'z"', 1)))
            assert f"broken at line {n}:" in broken(state)
            named.append(n)
    assert named == list(range(1, 16))


def test_a_file_that_is_gone_is_named_with_its_lines(tmp_path: Path) -> None:
    history(tmp_path)
    first, second, third, *_ = audit_files(tmp_path / FOLDER)
    n, after = int(second.stem), int(third.stem)
    second.unlink()
    gone = f"lines {n} to {after - 1} are missing" if after > n + 1 else f"line {n} is missing"
    assert f"broken at line {n}: {gone}" in broken(tmp_path)
    first.unlink()
    assert "broken at line 1: lines 1 to" in broken(tmp_path)


def test_a_file_of_another_name_or_of_another_chain_is_named(tmp_path: Path) -> None:
    history(tmp_path / "a")
    history(tmp_path / "b", salt="other")
    files = audit_files(tmp_path / "a" / FOLDER)
    n = int(files[3].stem)
    kept = files[3].read_bytes()
    shutil.copy(tmp_path / "b" / FOLDER / files[3].name, files[3])
    assert f"broken at line {n - 1}" in broken(tmp_path / "a")
    files[3].write_bytes(kept)
    files[-1].rename(files[-1].with_name("999999999999.jsonl"))
    assert "begins a file of another name" in broken(tmp_path / "a")


@pytest.mark.parametrize("cut", ["lines", "files", "all"])
def test_a_chain_whose_end_is_cut_off_holds_and_ends_that_others_hold_tell(tmp_path: Path, cut: str) -> None:
    """The chain alone cannot: a prefix of a chain is one."""
    ends = history(tmp_path)
    files = audit_files(tmp_path / FOLDER)
    if cut == "all":
        shutil.rmtree(tmp_path / FOLDER)
    elif cut == "files":
        for path in files[-2:]:
            path.unlink()
    else:
        for path in files:
            kept = [line for line in path.read_bytes().splitlines(True) if json.loads(line)["n"] < ends[3].n]
            path.write_bytes(b"".join(kept))
    found = check(tmp_path / FOLDER)
    assert found.head.n < 16
    with pytest.raises(PartyError, match=f"hospital-c holds an end of our chain of run {RUNS[3]}"):
        compare(found, [Held("hospital-c", RUNS[3], ends[3].digest)])


def test_a_chain_that_was_written_anew_holds_and_ends_that_others_hold_tell(tmp_path: Path) -> None:
    """Also from our own lines: what the next run's `heads` says that others hold is not in it."""
    ends = history(tmp_path)
    shutil.rmtree(tmp_path / FOLDER)
    history(tmp_path, salt="another")
    found = check(tmp_path / FOLDER)
    with pytest.raises(PartyError, match="line 3 of this chain is another"):
        compare(found, [Held("hospital-c", RUNS[0], ends[0].digest)])
    audit = Audit(tmp_path)
    audit.write("heads", run="f" * 32, heads={}, held={"hospital-c": ends[3].digest})
    found = check(tmp_path / FOLDER)
    with pytest.raises(PartyError, match="hospital-c holds an end of our chain that is not in it"):
        compare(found, found.held)


def test_an_end_of_another_run_is_not_the_one_that_was_told(tmp_path: Path) -> None:
    ends = history(tmp_path)
    with pytest.raises(PartyError):
        compare(check(tmp_path / FOLDER), [Held("hospital-b", RUNS[0], ends[1].digest)])


def test_lines_without_a_time_are_said(tmp_path: Path) -> None:
    audit = Audit(tmp_path, lambda: datetime(2026, 11, 23, tzinfo=UTC))
    audit.write("start")
    audit._clock = lambda: _Odd()  # type: ignore[assignment,return-value]
    audit.write("end")
    assert broken(tmp_path) == "the audit is broken at line 2: it has no time"


class _Odd:
    def isoformat(self, timespec: str) -> str:
        return "2026-11 some day"


# ---- commands


@pytest.fixture
def home(tmp_path: Path) -> Path:
    assert invoke("party", "init", "--name", "hospital-a", "--dir", tmp_path / "a").code == 0
    return tmp_path / "a"


def audit(home: Path, *arguments: str | Path) -> Ran:
    return invoke("party", "audit", *arguments, "--config", home / "party.yaml")


def test_verify_says_how_many_lines_hold(home: Path) -> None:
    ends = history(home / "state")
    ran = audit(home, "verify", "--format", "json")
    assert ran.code == 0, ran.err
    fields = json.loads(ran.out)
    assert (fields["lines"], fields["told"], fields["given"], fields["notes"]) == (16, 3, 0, [])
    (other,) = {path.name for path in (home / "state" / FOLDER).iterdir()} - {
        path.name for path in audit_files(home / "state" / FOLDER)
    }
    assert other == ".lock"
    held = {"of": "hospital-a", "by": "hospital-b", "heads": [{"run": RUNS[0], "sha256": ends[0].digest}]}
    (home / "held.json").write_text(json.dumps(held))
    ran = audit(home, "verify", "--heads", home / "held.json")
    assert "lines: 16, each follows the one before it" in ran.out
    assert "3 ends that others told us they hold, 1 of those that files name" in ran.out
    held["heads"] = [{"run": RUNS[0], "sha256": ends[1].digest}]
    (home / "held.json").write_text(json.dumps(held))
    ran = audit(home, "verify", "--heads", home / "held.json")
    assert (ran.code, ran.out) == (Exit.FAILED, "")
    assert "audit-broken: hospital-b holds an end of our chain" in ran.err


def test_verify_names_the_first_broken_line_and_its_file(home: Path) -> None:
    history(home / "state")
    path = audit_files(home / "state" / FOLDER)[2]
    n = int(path.stem)
    rewrite(path, lambda lines: lines.__setitem__(0, lines[0].replace(b'"at"', b'"AT"')))
    ran = audit(home, "verify")
    assert (ran.code, ran.out) == (Exit.FAILED, "")
    assert f"the audit is broken at line {n}:" in ran.err
    assert "file" in ran.err
    assert audit(home, "export").code == Exit.FAILED


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"of": "hospital-b", "by": "c", "heads": []}', '{"of": "hospital-a", "heads": []}',
     '{"of": "hospital-a", "by": "c", "heads": {}}', '{"of": "hospital-a", "by": "c", "heads": [{}]}',
     '{"of": "hospital-a", "by": "c", "heads": [7]}'],
)  # fmt: skip
def test_a_file_that_says_nothing_about_us_is_refused(home: Path, content: str) -> None:
    (home / "held.json").write_text(content)
    ran = audit(home, "verify", "--heads", home / "held.json", "--format", "json")
    assert ran.problem["error"] == "config-invalid"


def test_what_we_hold_of_others_is_a_file_for_them(home: Path, tmp_path: Path) -> None:
    history(home / "state")
    ran = audit(home, "heads", "hospital-b")
    (tmp_path / "held.json").write_text(ran.out)
    held = read_held(tmp_path / "held.json", "hospital-b")
    assert held == [Held("hospital-a", run, f"{i}" * 64) for i, run in enumerate(RUNS)]
    assert heads_of(home / "state" / FOLDER, "nobody") == []


def test_export_gives_the_lines_of_some_days(home: Path) -> None:
    now = [datetime(2026, 11, 23, 23, 59, 59, 999000, UTC)]
    writer = Audit(home / "state", lambda: now[0])
    writer.write("start", job="sample", run=RUNS[1])
    now[0] = datetime(2026, 11, 24, tzinfo=UTC)
    writer.write("reveal", run=RUNS[1], name='a "b", c', shape=[2, 3])
    now[0] = datetime(2026, 12, 1, tzinfo=UTC)
    writer.write("stop")

    def exported(*arguments: str) -> list[int]:
        ran = audit(home, "export", *arguments, "--format", "json")
        assert ran.code == 0, ran.err
        return [line["n"] for line in json.loads(ran.out)["lines"]]

    assert exported() == [1, 2, 3]
    assert exported("--from", "2026-11-24") == [2, 3]
    assert exported("--to", "2026-11-23") == [1]
    assert exported("--from", "2026-11-24", "--to", "2026-11-30") == [2]
    assert exported("--to", "2026-12-01") == [1, 2, 3]
    assert exported("--from", "2026-11-23T12:00:00Z", "--to", "2026-11-24T00:00:01Z") == [1, 2]
    lines = audit(home, "export", "--from", "2026-11-24", "--to", "2026-11-24").out.splitlines()
    assert lines[0] == "n,at,what,job,run,fields"
    assert lines[1].startswith(f"2,2026-11-24T00:00:00.000Z,reveal,,{RUNS[1]},")
    assert [line.n for line in lines_of(home / "state" / FOLDER)] == [1, 2, 3]
    assert audit(home, "export", "--from", "yesterday").code == Exit.USAGE
