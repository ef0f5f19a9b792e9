"""The coordinator's command line: every kind of bad input has its own clear error, exit code, and no leftovers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import CATALOGUE, Exit
from jobs.page.page import PAGE
from jobs.release.csv import REPORT, TABLE
from jobs.release.folder import OWN_PAGE
from jobs.release.sums import SUMS, release_digest
from tests.support import jobs
from tests.support.bare import bare
from tests.support.commands import invoke, listing, simulated
from tests.support.dp_jobs import dp_single
from tests.support.joint import sample_rows
from tests.support.network import GUARD_S, call, command, write_job
from tests.support.samples import COLUMNS, PARTIES, columns, joint_job, single_job
from tests.support.synthetic_jobs import synthetic_single

SECRET = "Zebra-4711"
Rows = Sequence[Mapping[str, str]]


def single(folder: Path, rows: Rows | str | bytes | None = None, **changes: Any) -> Path:
    """A single-holder job with its table."""
    path = write_job(folder, single_job(**changes))
    if isinstance(rows, str | bytes):
        (folder / "table.csv").write_bytes(rows.encode() if isinstance(rows, str) else rows)
    else:
        jobs.write_csv(folder / "table.csv", rows or sample_rows(60), COLUMNS)
    return path


def joint(folder: Path, bad: Mapping[str, Rows] | None = None, **changes: Any) -> tuple[Path, list[str]]:
    """A joint job and the --data options of its parties."""
    path, rows, options = write_job(folder, joint_job(**changes)), sample_rows(60), []
    for i, name in enumerate(PARTIES):
        jobs.write_csv(folder / f"{name}.csv", (bad or {}).get(name, rows[i::3]), COLUMNS)
        options += ["--data", f"{name}={folder / f'{name}.csv'}"]
    return path, options


def refused(folder: Path, *arguments: str | Path) -> dict[str, Any]:
    """Run a command that must fail, in both formats; nothing may be left behind. Return the error's fields."""
    before = listing(folder)
    ran = invoke("coordinator", *arguments, "--format", "json")
    text = invoke("coordinator", *arguments)
    problem = ran.problem
    kind = CATALOGUE[problem["error"]]
    assert ran.code == text.code == kind.exit_code == problem["exit_code"]
    assert ran.out == text.out == ""
    said = [line for line in text.err.splitlines() if line.startswith("error: ")]
    assert len(said) == 1
    assert problem["error"] in said[0]
    assert "What to do: " in said[0]
    assert problem["remedy"]
    assert listing(folder) == before
    return problem


# ---- what works


def test_a_single_holders_job(tmp_path: Path) -> None:
    job = single(tmp_path / "job")
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0
    assert sorted(listing(tmp_path / "out")) == [SUMS, TABLE, OWN_PAGE, PAGE, REPORT]
    for part in ("sample: 60 rows", "verified", "cut:", "age", f"table:  {tmp_path / 'out' / TABLE}"):
        assert part in ran.out
    ran = invoke("coordinator", "verify", job, tmp_path / "out")
    assert (ran.code, ran.err) == (0, "")
    assert "60 rows meet the requirement of sample" in ran.out


@pytest.mark.parametrize("classes", [[], ["?", "maybe"], ["Y"]], ids=["empty", "all dropped", "one"])
def test_a_dp_release_with_sets_of_hardly_any_rows(tmp_path: Path, classes: list[str]) -> None:
    """With `max_outside: 1` it succeeds like any other: whether a run works does not depend on the records."""
    codes = {"role": "qid", "set": {"taxonomy": {"Any": {"1": ["11", "12"], "2": ["21", "22"]}}}}
    job = write_job(tmp_path / "job", dp_single({"max_outside": "1"}, columns=columns(codes=codes)))
    row = {"patient": "1", "job": "Lawyer", "age": "30", "surgery": "Knee", "codes": "11;21"}
    jobs.write_csv(
        tmp_path / "job" / "table.csv", [{**row, "transfused": c} for c in classes], [*COLUMNS, "codes"]
    )
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0
    assert invoke("coordinator", "verify", job, tmp_path / "out").code == 0


def test_results_as_json(tmp_path: Path) -> None:
    job = single(tmp_path / "job")
    valid = invoke("coordinator", "validate", job, "--format", "json")
    fields = json.loads(valid.out)
    assert fields["qid"] == ["job", "age"]
    assert fields["requirement"] == "L=2 K=2 C=1/2"
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out", "--format", "json")
    release = release_digest((tmp_path / "out" / SUMS).read_bytes()).hex()
    assert json.loads(ran.out) == {
        "out": str(tmp_path / "out"),
        "rows": 60,
        "job_sha256": fields["job_sha256"],
        "release": release,
        "verified": [
            "no reader who knows all 2 quasi-identifiers of a person in the table finds fewer than 2 matching "
            "records, or infers surgery = Rare with confidence above 50 %"
        ],
    }
    checked = invoke("coordinator", "verify", job, tmp_path / "out", "--format", "json")
    told = json.loads(checked.out)
    assert {"report.finished", "report.cost"} < set(told.pop("not_verified"))
    assert told == {
        "rows": 60,
        "verified": True,
        "requirements": json.loads((tmp_path / "out" / REPORT).read_text())["requirements"],
        "job_sha256": fields["job_sha256"],
        "release": release,
        "agreed": None,
        "page": True,
        "unlisted": [OWN_PAGE],
    }


def test_progress_is_json_lines_where_they_are_asked_for(tmp_path: Path) -> None:
    job = single(tmp_path / "job")
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out", "--format", "json")
    phases = [line["phase"] for line in ran.lines if line["event"] == "phase"]
    assert phases == ["read", "anonymize", "release", "verify", "write", "report"]
    report = json.loads((tmp_path / "out" / REPORT).read_text())
    turns = [line for line in ran.lines if line["event"] == "turn"]
    assert [turn["iteration"] for turn in turns] == list(range(1, len(turns) + 1))
    assert len([t for t in turns if t["applied"]]) == len(report["specializations"])
    assert len([t for t in turns if not t["applied"]]) == len(report["discarded"])
    for line in ran.lines:
        assert (line["job"], line["parties"]) == ("sample", 1)
        assert line["elapsed_s"] >= 0


def test_progress_is_plain_lines_where_nobody_watches(tmp_path: Path) -> None:
    """As in `make demo 2>&1 | tee log`: people read it."""
    ran = invoke("coordinator", "run", single(tmp_path / "job"), "--out", tmp_path / "out")
    lines = ran.err.splitlines()
    assert all(re.fullmatch(r"sample · one holder · .+ · \d+\.\d s", line) for line in lines)
    report = json.loads((tmp_path / "out" / REPORT).read_text())
    turns = [line for line in lines if " · anonymize · iteration " in line]
    assert len([t for t in turns if " specialized · " in t]) == len(report["specializations"])
    assert len([t for t in turns if " step refused · " in t]) == len(report["discarded"])


def test_a_joint_job_in_process(tmp_path: Path) -> None:
    job, options = joint(tmp_path / "job")
    as_json = ["--format", "json"]
    ran = invoke(
        "coordinator", "simulate", job, *options, "--in-process", "--out", tmp_path / "out", *as_json
    )
    assert ran.code == 0
    assert listing(tmp_path / "out") == simulated(PARTIES)
    assert {line["parties"] for line in ran.lines} == {3}
    assert invoke("coordinator", "verify", job, tmp_path / "out").code == 0


@pytest.mark.parametrize(
    "group",
    [["coordinator"], ["party"], ["coordinator", "peers"], ["party", "peers"], ["coordinator", "clusters"]],
)
def test_the_list_of_commands_shows_whole_sentences(
    group: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal of 80 columns."""
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: os.terminal_size((80, 24)))
    listed = invoke(*group, "--help").out.partition("Commands:\n")[2].splitlines()
    assert listed
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)


def test_the_programs_explain_themselves() -> None:
    for program in ("coordinator", "party"):
        top = invoke(program, "--help")
        assert (top.code, top.err) == (0, "")
        bare = invoke(program)
        assert bare.code == Exit.USAGE
        assert "Usage:" in bare.out
        assert bare.err == ""
    commands = (
        "init",
        "validate",
        "run",
        "budget",
        "simulate",
        "demo",
        "verify",
        "peers",
        "evaluate",
        "explore",
        "clusters",
    )
    for name in commands:
        assert name in invoke("coordinator", "--help").out
        assert invoke("coordinator", name, "-h").code == 0
    assert invoke("coordinator", "--version").out.startswith("coordinator, version ")


# ---- bad command lines


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["run", "job.yaml"], "Missing option '--out'"),
        (["run", "--out", "x"], "Missing argument 'JOB'"),
        (["run", "job.yaml", "--out", "x", "--nope"], "No such option '--nope'"),
        (["validate", "a", "b"], "unexpected extra argument"),
    ],
)
def test_bad_command_lines(tmp_path: Path, arguments: list[str], says: str) -> None:
    problem = refused(tmp_path, *arguments)
    assert problem["error"] == "usage"
    assert says in problem["message"]


def test_an_unknown_format_is_an_error_in_text() -> None:
    ran = invoke("coordinator", "validate", "x", "--format", "xml")
    assert ran.code == Exit.USAGE
    assert "Invalid value for '--format'" in ran.err


# ---- bad jobs: the table of the issue


@pytest.mark.parametrize(
    ("changes", "error_id", "says"),
    [
        ({"colour": "red"}, "unknown-key", "unknown key `colour`"),
        ({"columns": columns(age={**COLUMNS["age"], "unit": "y"})}, "unknown-key", "`columns.age.unit`"),
        (
            {"model": {"lkc": {"L": "2", "K": "2", "C": "0"}}},
            "job-invalid",
            "`model.lkc.C` is 0: write a number above 0",
        ),
        ({"model": {"lkc": {"L": "2", "K": "2", "C": "1.5"}}}, "job-invalid", "`model.lkc.C`"),
        (
            {"columns": columns(job={"role": "qid", "taxonomy": {"Any": {"A": ["x"], "B": ["x"]}}})},
            "taxonomy-two-parents",
            "column job gives the value 'x' two parents",
        ),
        (
            {"columns": columns(job={"role": "qid", "taxonomy": "nowhere.csv"})},
            "file-missing",
            "nowhere.csv: No such file",
        ),
        (
            {"columns": columns(age={"role": "qid", "numeric": {"min": "5", "max": "5", "step": "1"}})},
            "grid-invalid",
            "column age needs min < max",
        ),
        ({"goal": "general", "columns": columns(job=None, age=None)}, "job-invalid", "needs `role: qid`"),
    ],
)
@pytest.mark.parametrize("how", ["validate", "run", "simulate"])
def test_bad_jobs(tmp_path: Path, how: str, changes: dict[str, Any], error_id: str, says: str) -> None:
    out = ["--out", tmp_path / "out"]
    if how == "simulate":
        job, options = joint(tmp_path / "job", **changes)
        problem = refused(tmp_path, "simulate", job, *options, *out, "--in-process")
    else:
        job = single(tmp_path / "job", **changes)
        problem = refused(tmp_path, how, job, *(out if how == "run" else []))
    assert problem["error"] == error_id
    assert says in problem["message"]


@pytest.mark.parametrize("fields", [single_job(), synthetic_single()])
def test_counts_as_rows_are_for_jobs_that_release_counts(tmp_path: Path, fields: dict[str, Any]) -> None:
    path = single(tmp_path, **fields)
    problem = refused(tmp_path, "run", path, "--out", tmp_path / "out", "--as-records")
    assert problem["error"] == "usage"
    assert "--as-records is for `method: diffgen`" in problem["message"]


def test_counts_as_rows_of_several_holders_are_for_jobs_that_release_counts(tmp_path: Path) -> None:
    path, options = joint(tmp_path)
    more = ["--in-process", "--out", tmp_path / "out", "--as-records"]
    assert "--as-records is for" in refused(tmp_path, "simulate", path, *options, *more)["message"]


@pytest.mark.parametrize(
    ("changes", "error_id", "says"),
    [
        (
            {"parties": {p: {"address": "h:1"} for p in PARTIES[:2]}},
            "job-too-few-parties",
            "the sum minus one's own counts is the other's",
        ),
        ({"partition": "vertical", "disclosure": None}, "job-invalid", "write the party's `columns`"),
        ({"disclosure": "open"}, "job-invalid", "`disclosure`"),
        ({"columns": columns(transfused={"role": "class"})}, "job-invalid", "needs its `domain`"),
    ],
)
def test_bad_joint_jobs(tmp_path: Path, changes: dict[str, Any], error_id: str, says: str) -> None:
    job = write_job(tmp_path, joint_job(**changes))
    problem = refused(tmp_path, "validate", job)
    assert problem["error"] == error_id
    assert says in problem["message"]


@pytest.mark.parametrize(
    ("content", "error_id"),
    [("a: [", "yaml-invalid"), ("a: 1\na: 2", "yaml-invalid"), ("- a", "job-invalid"), ("", "job-invalid")],
)
def test_a_job_that_is_no_job(tmp_path: Path, content: str, error_id: str) -> None:
    (tmp_path / "job.yaml").write_text(content)
    assert refused(tmp_path, "validate", tmp_path / "job.yaml")["error"] == error_id
    assert refused(tmp_path, "validate", tmp_path / "absent.yaml")["error"] == "file-missing"


# ---- bad tables: the owner reads the value, on this console only


def changed(**cells: str) -> Rows:
    rows = sample_rows(60)
    return [*rows[:6], {**rows[6], **cells}, *rows[7:]]


BAD_ROWS = [
    ({"job": SECRET}, "data-unknown-value", "job"),
    ({"age": "100"}, "data-outside-domain", "age"),
    ({"age": SECRET}, "data-outside-domain", "age"),
    ({"surgery": SECRET}, "data-unknown-value", "surgery"),
    ({"transfused": ""}, "data-missing-value", "transfused"),
    ({"patient": "1"}, "data-duplicate-id", "patient"),
]


@pytest.mark.parametrize(("cells", "error_id", "column"), BAD_ROWS)
def test_bad_rows(tmp_path: Path, cells: dict[str, str], error_id: str, column: str) -> None:
    job = single(tmp_path / "job", changed(**cells))
    problem = refused(tmp_path, "run", job, "--out", tmp_path / "out")
    assert (problem["error"], problem["column"]) == (error_id, column)
    assert SECRET not in problem["message"]
    assert problem["private"]


@pytest.mark.parametrize(
    ("content", "error_id"),
    [
        ("", "data-empty"),
        (",".join(COLUMNS) + "\n", "data-empty"),
        ("patient,job,age,transfused\n1,Mover,5,Y\n", "data-missing-column"),
        (",".join(COLUMNS) + "\n1,Mover,5\n", "data-unreadable"),
        (b"\xff\xfe\x00", "data-unreadable"),
    ],
)
def test_bad_tables(tmp_path: Path, content: str | bytes, error_id: str) -> None:
    job = single(tmp_path / "job", content)
    assert refused(tmp_path, "run", job, "--out", tmp_path / "out")["error"] == error_id


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    job = single(tmp_path / "job")
    (tmp_path / "job" / "table.csv").unlink()
    problem = refused(tmp_path, "run", job, "--out", tmp_path / "out")
    assert problem["error"] == "file-missing"


@pytest.mark.parametrize(
    ("lkc", "threshold"),
    [
        ({"L": "2", "K": "61", "C": "1"}, "violates K"),
        ({"L": "2", "K": "2", "C": "0.05"}, "violates C for column surgery"),
    ],
)
def test_requirements_that_cannot_be_met(tmp_path: Path, lkc: dict[str, str], threshold: str) -> None:
    problem = refused(
        tmp_path, "run", single(tmp_path / "one", model={"lkc": lkc}), "--out", tmp_path / "out"
    )
    assert problem["error"] == "requirement-unmet"
    assert threshold in problem["message"]
    job, options = joint(tmp_path / "three", model={"lkc": lkc})
    problem = refused(tmp_path, "simulate", job, *options, "--in-process", "--out", tmp_path / "out")
    assert problem["error"] == "requirement-unmet"
    assert "violates K or C" in problem["message"]  # which of them is not revealed


@pytest.mark.parametrize("k", range(8, 19, 2))
def test_c_with_too_many_digits(tmp_path: Path, k: int) -> None:
    """Exact arithmetic or none: no number of digits gives an overflow, whatever the table's size."""
    lkc = {"L": "1", "K": "1", "C": "0." + "3" * k}
    one = single(tmp_path / "one", model={"lkc": lkc})
    three, options = joint(tmp_path / "three", model={"lkc": lkc})
    runs = [
        invoke("coordinator", "run", one, "--out", tmp_path / "o1", "--format", "json"),
        invoke(
            "coordinator",
            "simulate",
            three,
            *options,
            "--in-process",
            "--out",
            tmp_path / "o3",
            "--format",
            "json",
        ),
    ]
    if 10**k * 60 < 2**62:
        assert [ran.code for ran in runs] == [0, 0]
        return
    for ran in runs:
        assert ran.problem["error"] == "confidence-too-fine"
        assert ran.code == Exit.USAGE
    assert not (tmp_path / "o1").exists()
    assert not (tmp_path / "o3").exists()


@pytest.mark.parametrize(("cells", "error_id", "column"), BAD_ROWS)
def test_bad_rows_at_a_party(tmp_path: Path, cells: dict[str, str], error_id: str, column: str) -> None:
    rows = changed(**cells)[1::3] if "patient" in cells else changed(**cells)[6:26]
    if "patient" in cells:
        rows = [*sample_rows(20), sample_rows(20)[0]]
    job, options = joint(tmp_path / "job", {PARTIES[1]: rows})
    problem = refused(tmp_path, "simulate", job, *options, "--in-process", "--out", tmp_path / "out")
    assert (problem["error"], problem["column"]) == (error_id, column)
    assert (problem["party"], problem["phase"]) == (PARTIES[1], "load")


# ---- the output folder


def test_an_output_folder_that_exists(tmp_path: Path) -> None:
    job = single(tmp_path / "job")
    three, options = joint(tmp_path / "three")
    (tmp_path / "out").mkdir()
    for arguments in (
        ["run", job],
        ["simulate", three, *options, "--in-process"],
        ["simulate", three, *options],
    ):
        problem = refused(tmp_path, *arguments, "--out", tmp_path / "out")
        assert problem["error"] == "output-exists"


def test_an_output_folder_that_cannot_be_made(tmp_path: Path) -> None:
    job = single(tmp_path / "job")
    (tmp_path / "file").write_text("")
    problem = refused(tmp_path, "run", job, "--out", tmp_path / "file" / "out")
    assert problem["error"] == "io-failed"
    assert str(tmp_path) not in problem["message"]


# ---- simulate


def test_arguments_of_simulate(tmp_path: Path) -> None:
    job, options = joint(tmp_path / "job")
    out = ["--out", tmp_path / "out"]
    table = options[1].partition("=")[2]
    for given, says in (
        (options[:4], "no table for hospital-c"),
        ([], "no table for hospital-a, hospital-b, hospital-c"),
        ([*options, "--data", f"hospital-z={table}"], "the job has no party"),
        ([*options, "--data", f"={table}"], "the job has no party"),
        ([*options, *options[:2]], "hospital-a is given twice"),
        ([*options, "--data", "hospital-a"], "write NAME=FILE"),
        ([*options, "--data", "hospital-a="], "write NAME=FILE"),
    ):
        problem = refused(tmp_path, "simulate", job, *given, *out)
        assert problem["error"] == "usage"
        assert says in problem["message"]
    problem = refused(tmp_path, "simulate", job, *options[:4], "--data", "hospital-c=nowhere.csv", *out)
    assert problem["error"] == "file-missing"
    problem = refused(tmp_path, "simulate", single(tmp_path / "one"), *out)
    assert (problem["error"], problem["remedy"]) == ("usage", "run the job: coordinator run JOB --out DIR")


def test_a_party_called_coordinator_cannot_be_simulated(tmp_path: Path) -> None:
    names = ["coordinator", "b", "c"]
    job = write_job(tmp_path, joint_job(parties={n: {"address": "h:1"} for n in names}, leader="b"))
    jobs.write_csv(tmp_path / "t.csv", sample_rows(9), COLUMNS)
    options = [f"--data={n}={tmp_path / 't.csv'}" for n in names]
    assert refused(tmp_path, "simulate", job, *options, "--out", tmp_path / "out")["error"] == "usage"


def test_a_joint_job_needs_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    job, _ = joint(tmp_path / "job")
    problem = refused(tmp_path, "run", job, "--out", tmp_path / "out")
    assert problem["error"] == "file-missing"
    assert "coordinator.yaml" in problem["message"]
    assert (
        "run the command in the folder of coordinator.yaml, or name the file with --config"
        in problem["remedy"]
    )
    (tmp_path / "bad.yaml").write_text("version: 1\nname: c\ncolour: red\n")
    problem = refused(tmp_path, "run", job, "--out", tmp_path / "out", "--config", tmp_path / "bad.yaml")
    assert problem["error"] == "unknown-key"


# ---- init and peers


def test_setting_up_a_coordinator(tmp_path: Path) -> None:
    folder, other = tmp_path / "c", tmp_path / "a"
    nameless = refused(tmp_path, "init", "--dir", folder)
    assert (nameless["error"], "--name" in nameless["message"]) == ("usage", True)
    assert invoke("coordinator", "init", "--name", "agency", "--dir", folder).code == 0
    made = invoke("party", "init", "--name", "a", "--dir", other, "--format", "json")
    fields = json.loads(made.out)
    config = ["--config", folder / "coordinator.yaml"]
    assert invoke("coordinator", "peers", "list", *config).out.strip() == "nobody"
    add = ["peers", "add", "a", fields["certificate"], *config]
    wrong = refused(tmp_path, *add, "--fingerprint", "00" * 32)
    assert wrong["error"] == "identity-mismatch"
    added = invoke("coordinator", *add, "--address", "127.0.0.1:1", "--fingerprint", fields["fingerprint"])
    assert added.code == 0
    listed = json.loads(invoke("coordinator", "peers", "list", *config, "--format", "json").out)
    assert listed == {"peers": {"a": fields["fingerprint"]}, "warnings": {}}
    assert refused(tmp_path, *add)["error"] == "config-invalid"
    assert refused(tmp_path, "init", "--name", "agency", "--dir", folder)["error"] == "output-exists"


# ---- as a process


@pytest.fixture
def broken_pipe() -> Iterator[int]:
    """The end of a pipe into which one writes, and nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@pytest.fixture
def full() -> Iterator[int]:
    """A device that takes nothing."""
    if not Path("/dev/full").exists():
        pytest.skip("this machine has no /dev/full")
    device = os.open("/dev/full", os.O_WRONLY)
    yield device
    os.close(device)


@pytest.mark.some(1)
@pytest.mark.parametrize(("stream", "form"), [("broken_pipe", "text"), ("full", "json")])
def test_a_result_that_cannot_be_printed_is_there(
    tmp_path: Path, request: pytest.FixtureRequest, stream: str, form: str
) -> None:
    job, out = single(tmp_path, sample_rows(60)), tmp_path / "out"
    run = [*command("run", job, "--out", out), "--format", form]
    unread = request.getfixturevalue(stream)
    done = subprocess.run(run, stdout=unread, stderr=subprocess.PIPE, text=True, env=bare(), check=False)
    assert done.returncode == Exit.UNSAID
    said = done.stderr.splitlines()[-1]
    assert f"{out} is complete, with table and report, but standard output did not take the rest: " in said
    assert "start the command again only if it writes none" in said
    assert "output-lost" in said
    assert invoke("coordinator", "verify", job, out).code == 0


@pytest.mark.some(1)
@pytest.mark.parametrize("stream", ["broken_pipe", "full"])
def test_errors_that_nobody_can_read_change_nothing(
    tmp_path: Path, request: pytest.FixtureRequest, stream: str
) -> None:
    """Progress, notes and problems; with both streams lost there is the exit code."""
    job, unread = single(tmp_path, sample_rows(60)), request.getfixturevalue(stream)
    codes = {
        name: subprocess.run(
            command("run", job, "--out", tmp_path / name),
            stdout=subprocess.DEVNULL if name == "heard" else unread,
            stderr=unread,
            env=bare(),
            check=False,
        ).returncode
        for name in ("heard", "lost")
    }
    assert codes == {"heard": Exit.OK, "lost": Exit.UNSAID}
    assert [invoke("coordinator", "verify", job, tmp_path / name).code for name in codes] == [0, 0]


def test_help_that_nobody_reads_to_its_end(broken_pipe: int) -> None:
    done = subprocess.run(
        command("--help"), stdout=broken_pipe, stderr=subprocess.PIPE, env=bare(), check=False
    )
    assert (done.returncode, done.stderr) == (Exit.FAILED, b"")


def test_exit_codes_and_streams_of_a_real_process(tmp_path: Path) -> None:
    job = single(tmp_path / "job")
    good = call("run", job, "--out", tmp_path / "out", "--format", "json")
    assert good.code == 0
    assert json.loads(good.out)["rows"] == 60
    assert all(line["event"] in {"phase", "turn"} for line in good.lines)
    bad = call("run", single(tmp_path / "bad", changed(job=SECRET)), "--out", tmp_path / "two")
    assert bad.code == Exit.DATA
    assert bad.out == ""
    assert bad.err.splitlines()[-1].startswith("error: data-unknown-value: column job has a value")
    assert not (tmp_path / "two").exists()


@pytest.mark.some(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_simulation_that_is_stopped_cleans_up(tmp_path: Path, number: signal.Signals) -> None:
    """Neither daemons nor folders stay behind, whichever signal it is."""
    job, options = joint(tmp_path / "job")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        command("simulate", job, *options, "--out", tmp_path / "out"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"TMPDIR": str(temporary), "PATH": ""},
    )
    deadline = time.monotonic() + GUARD_S
    while not children_of(process.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    children = children_of(process.pid)
    assert children
    process.send_signal(number)
    _, err = process.communicate(timeout=GUARD_S)
    assert process.returncode == Exit.FAILED
    assert err.splitlines()[-1].startswith("error: cancelled: interrupted")
    assert listing(temporary) == []
    assert not (tmp_path / "out").exists()
    for child in children:
        assert not Path(f"/proc/{child}").exists()


@pytest.mark.more
def test_a_simulation_in_the_background_ends_when_told(tmp_path: Path) -> None:
    """Shells start what they run in the background with SIGINT ignored."""
    job, options = joint(tmp_path / "job")
    process = subprocess.Popen(
        [
            "/bin/sh",
            "-c",
            'trap "" INT; exec "$@"',
            "sh",
            *command("simulate", job, *options, "--out", tmp_path / "out"),
        ],
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    deadline = time.monotonic() + GUARD_S
    while not children_of(process.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=GUARD_S)
    assert process.returncode == Exit.FAILED
    assert err.splitlines()[-1].startswith("error: cancelled: interrupted")
    assert not (tmp_path / "out").exists()


def children_of(pid: int) -> list[int]:
    """Processes whose parent this is (Linux)."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found
