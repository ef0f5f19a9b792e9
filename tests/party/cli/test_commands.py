"""The party's command line: init, check, peers, serve."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jobs.description import description_fields, description_lines
from jobs.errors import Exit
from jobs.loading import load_task
from jobs.release.csv import TABLE
from party.owner.accounts import RELEASES
from party.owner.config import PartyConfig, load_config
from party.owner.identity import fingerprint
from tests.support import jobs
from tests.support.bare import bare
from tests.support.commands import invoke, listing
from tests.support.house import House
from tests.support.joint import sample_rows
from tests.support.network import GUARD_S, call, command, processes, sample_network, write_job
from tests.support.samples import COLUMNS, PARTIES, columns, joint_job

A, B, _ = PARTIES
SECRET = "Zebra-4711"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert invoke("party", "init", "--name", A, "--dir", tmp_path / "a").code == 0
    return tmp_path / "a"


def refused(*arguments: str | Path) -> dict[str, Any]:
    ran = invoke("party", *arguments, "--format", "json")
    assert ran.out == ""
    assert ran.code == ran.problem["exit_code"]
    return ran.problem


def test_init_makes_an_identity_and_a_configuration_that_allows_nothing(folder: Path) -> None:
    assert set(listing(folder)) == {"party.yaml", "peers", "tls", "tls/certificate.pem", "tls/key.pem"}
    config = load_config(PartyConfig, folder / "party.yaml")
    assert (config.name, config.listen) == (A, "127.0.0.1:7400")
    assert config.source.path == folder / "table.csv"
    assert config.policy.coordinators == config.policy.parties == config.policy.disclosure == ()
    assert config.policy.min_k is None


def test_init_shows_how_methods_and_releases_are_accepted(folder: Path) -> None:
    path = folder / "party.yaml"
    text = path.read_text()
    for key in ("methods", "releases"):
        assert f"  # {key}: [" in text
        text = text.replace(f"  # {key}: [", f"  {key}: [")
    path.write_text(text)
    policy = load_config(PartyConfig, path).policy
    assert (policy.methods, policy.releases) == (("top-down", "kd"), ("rows", "anatomy"))


def test_init_tells_the_fingerprint(tmp_path: Path) -> None:
    made = json.loads(invoke("party", "init", "--name", A, "--dir", tmp_path, "--format", "json").out)
    assert made["fingerprint"] == fingerprint((tmp_path / "tls" / "certificate.pem").read_bytes())
    assert made["certificate"] == str(tmp_path / "tls" / "certificate.pem")


def test_init_takes_any_file_name(tmp_path: Path) -> None:
    name = 'a: "table", {of} patients #1.csv'
    assert invoke("party", "init", "--name", A, "--dir", tmp_path, "--data", name).code == 0
    assert load_config(PartyConfig, tmp_path / "party.yaml").source.path == tmp_path / name


def test_init_says_that_the_table_is_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path of `data` begins at the folder of the configuration, not where the command runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.csv").write_text("age\n5\n")
    ran = invoke("party", "init", "--name", A, "--dir", "aa", "--data", "own.csv")
    assert ran.code == 0
    assert ran.err == (
        "aa/own.csv is not there yet: `data` in aa/party.yaml says own.csv, and a path there begins at aa; the file "
        "own.csv of this folder is ../own.csv there\n"
    )
    nowhere = invoke("party", "init", "--name", A, "--dir", "bb", "--data", "none.csv")
    assert nowhere.err.endswith("says none.csv, and a path there begins at bb\n")
    found = invoke("party", "init", "--name", A, "--dir", "cc", "--data", "../own.csv")
    unsaid = invoke("party", "init", "--name", A, "--dir", "dd")
    assert (found.err, unsaid.err) == ("", "")
    assert 'csv: {path: "table.csv"}' in Path("dd/party.yaml").read_text()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--name", "a b"], "`name`"),
        (["--name", ""], "`name`"),
        (["--name", A, "--listen", "7401"], "`listen`: write host:port"),
        (["--name", A, "--listen", "h:1\nname: x"], "`listen`: write host:port"),
        (["--name", A, "--data", ""], "`data.csv.path`: the path is empty: write the path of a file"),
        (["--name", A, "--data", " "], "`data.csv.path`: the path is empty: write the path of a file"),
    ],
)
def test_init_refuses_what_would_not_load(tmp_path: Path, options: list[str], says: str) -> None:
    problem = refused("init", *options, "--dir", tmp_path / "x")
    assert problem["error"] == "config-invalid"
    assert says in problem["message"]
    assert problem["message"].startswith("the options: ")  # no line of a file that was not written
    assert listing(tmp_path) == []


def test_an_empty_path_is_not_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    problem = refused("init", "--name", A, "--dir", "")
    assert problem["error"] == "usage"
    assert "the path is empty: name a file or folder" in problem["message"]
    assert listing(tmp_path) == []


def test_init_overwrites_nothing(folder: Path) -> None:
    before = {path: (folder / path).read_bytes() for path in listing(folder) if (folder / path).is_file()}
    assert refused("init", "--name", A, "--dir", folder)["error"] == "output-exists"
    (folder / "party.yaml").unlink()
    assert refused("init", "--name", A, "--dir", folder)["error"] == "output-exists"
    before.pop("party.yaml")
    assert {p: (folder / p).read_bytes() for p in listing(folder) if (folder / p).is_file()} == before


def test_peers(folder: Path, tmp_path: Path) -> None:
    assert invoke("party", "init", "--name", B, "--dir", tmp_path / "b").code == 0
    certificate = tmp_path / "b" / "tls" / "certificate.pem"
    config = ["--config", folder / "party.yaml"]
    assert invoke("party", "peers", "list", *config).out == "nobody\n"
    added = invoke("party", "peers", "add", B, certificate, "--address", "127.0.0.1:7402", *config)
    assert added.code == 0
    assert "compare the fingerprint" in added.out
    listed = invoke("party", "peers", "list", *config).out
    assert listed == f"{B}  {fingerprint(certificate.read_bytes())}  127.0.0.1:7402\n"
    again = refused("peers", "add", B, certificate, *config)
    assert again["error"] == "config-invalid"
    assert refused("peers", "add", "c", certificate, *config)["error"] == "identity-mismatch"


# ---- check


@pytest.fixture
def ready(tmp_path: Path) -> tuple[Path, Path]:
    """A configured party and the job it is ready for."""
    net = sample_network(tmp_path / "net")
    return net.config_path(A), write_job(tmp_path / "job", joint_job())


def test_check_without_a_job(ready: tuple[Path, Path]) -> None:
    ran = invoke("party", "check", "--config", ready[0])
    assert (ran.code, ran.err) == (0, "")
    for part in ("configuration and identity are in order", "fingerprint", "peer", B, "columns", "surgery"):
        assert part in ran.out


def test_check_with_a_job(ready: tuple[Path, Path]) -> None:
    ran = invoke("party", "check", "--config", ready[0], "--job", ready[1])
    assert (ran.code, ran.err) == (0, "")
    assert "20 rows read, 0 left out, 20 used" in ran.out
    assert "allows the job from coordinator" in ran.out


def test_check_tells_the_owner_of_a_domain_wider_than_the_records(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net")
    wide = columns(age={"role": "qid", "numeric": {"min": "0", "max": "1000", "cuts": ["250", "500", "750"]}})
    model = {"lkc": {"L": "all", "K": "2", "C": "0.5"}}
    kd = joint_job(method="kd", goal="general", disclosure="sealed", model=model, columns=wide)
    ran = invoke("party", "check", "--config", net.config_path(A), "--job", write_job(tmp_path / "job", kd))
    assert "table        column age: 0.0% of our records are in the middle half" in ran.out
    assert "our records" not in ran.err


def test_check_tells_the_owner_what_the_job_asks_as_its_author_was_told(ready: tuple[Path, Path]) -> None:
    """The owner reads who gets what, before anybody says yes."""
    ran = invoke("party", "check", "--config", ready[0], "--job", ready[1], "--format", "json")
    told = json.loads(ran.out)
    validated = invoke("coordinator", "validate", ready[1], "--format", "json")
    task = load_task(ready[1])
    assert told["asked"] == description_fields(task)
    assert told["asked"].items() <= json.loads(validated.out).items()
    for line in description_lines(task):
        assert line in told["lines"]
    assert "hospital-a" in "".join(line for line in told["lines"] if "leader" in line)


def test_check_shows_the_owner_what_is_wrong(ready: tuple[Path, Path]) -> None:
    config = load_config(PartyConfig, ready[0])
    rows = sample_rows(20)
    rows[2]["job"] = SECRET
    jobs.write_csv(config.source.path, rows, COLUMNS)
    ran = invoke("party", "check", "--config", ready[0], "--job", ready[1], "--coordinator", "stranger")
    assert ran.code == Exit.DATA
    assert f"line 4: '{SECRET}'" in ran.out
    assert "stranger may not start jobs here" in ran.out  # both problems at once
    assert "data-unknown-value" in ran.err


def test_check_asks_the_policy(ready: tuple[Path, Path]) -> None:
    ran = invoke("party", "check", "--config", ready[0], "--job", ready[1], "--coordinator", "stranger")
    assert ran.code == Exit.REFUSED
    assert "policy-refused" in ran.err


@pytest.mark.parametrize(
    ("name", "content", "error_id"),
    [
        ("tls/key.pem", "nonsense", "tls-failed"),
        ("tls/certificate.pem", "nonsense", "tls-failed"),
        ("party.yaml", "name: [", "yaml-invalid"),
        ("party.yaml", "colour: red", "unknown-key"),
    ],
)
def test_check_of_a_broken_folder(folder: Path, name: str, content: str, error_id: str) -> None:
    (folder / name).write_text(content)
    assert refused("check", "--config", folder / "party.yaml")["error"] == error_id


def test_check_without_a_table(folder: Path) -> None:
    assert refused("check", "--config", folder / "party.yaml")["error"] == "file-missing"


# ---- serve


@pytest.mark.some(1)
@pytest.mark.parametrize("form", [[], ["--format", "json"]], ids=["text", "json"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_says_where_it_listens_and_stops_when_told(
    tmp_path: Path, number: signal.Signals, form: list[str]
) -> None:
    """To a pipe, and at once: whoever starts a daemon waits for this line. No terminal: all of it is JSON."""
    net = sample_network(tmp_path / "net")
    process = subprocess.Popen(
        command("serve", "--config", net.config_path(A), *form, program="party"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=bare(),
    )
    assert process.stdout is not None
    said = json.loads(process.stdout.readline())
    assert said == {"event": "listening", "name": A, "address": net.addresses[A]}
    process.send_signal(number)
    out, err = process.communicate(timeout=GUARD_S)
    assert (process.returncode, out, err) == (0, "", "")


def test_a_second_signal_ends_a_daemon_that_is_stopping_at_once() -> None:
    endless = """
import asyncio
from party.cli.signals import stop_signals
async def main():
    stop = stop_signals()
    print("serving", flush=True)
    await stop
    print("stopping", flush=True)
    await asyncio.to_thread(input)
asyncio.run(main())
"""
    process = subprocess.Popen(
        [sys.executable, "-c", endless], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for said in ("serving", "stopping"):
        assert process.stdout.readline() == f"{said}\n"
        process.send_signal(signal.SIGTERM)
    process.communicate(timeout=GUARD_S)
    assert process.returncode == -signal.SIGTERM


def test_two_signals_at_once_end_a_daemon() -> None:
    """The loop takes both when it comes to them: the second one finds the first already taken."""
    busy = """
import asyncio, signal
from party.cli.signals import stop_signals
async def main():
    stop = stop_signals()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.raise_signal(number)
    await stop
    await asyncio.sleep(60)
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", busy], capture_output=True, text=True, timeout=GUARD_S, check=False
    )
    assert done.returncode == -signal.SIGINT, done.stderr


def test_a_signal_takes_over_the_configuration(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net")
    with processes(net, only=[A]) as running:

        def signalled(words: str) -> None:
            before = len(running.log_of_this_life(A))
            running.signal(A, signal.SIGHUP)
            deadline = time.monotonic() + GUARD_S
            while not any(words in line["message"] for line in running.log_of_this_life(A)[before:]):
                assert time.monotonic() < deadline, running.log(A)
                time.sleep(0.02)

        signalled("reloaded: nothing has changed")
        net.change(A, lambda fields: fields["policy"].update(min_k=7))
        signalled("reloaded: policy changed")
        net.change(A, lambda fields: fields["policy"].update(min_k="seven"))
        signalled("config-changed")
        net.change(A, lambda fields: (fields["policy"].update(min_k=8), fields["peers"].pop(B)))
        signalled(f"reloaded: peers, policy changed; peers: {B}")
        net.change(A, lambda fields: fields.update(log_level="error"))
        running.signal(A, signal.SIGHUP)
        deadline = time.monotonic() + GUARD_S
        while [line["event"] for line in House(net).audit(A)].count("configuration") < 3:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        said = len(running.log_of_this_life(A))
        running.signal(A, signal.SIGHUP)
        net.change(A, lambda fields: fields["policy"].update(min_k="eight"))
        signalled("config-changed")
        assert {line["level"] for line in running.log_of_this_life(A)[said:]} == {"error"}


def test_what_a_killed_run_left_unfinished_is_removed_at_start(tmp_path: Path) -> None:
    """A table that was set aside and never kept, in a folder that nobody locks any more; what was kept stays."""
    net = sample_network(tmp_path / "net")
    releases = net.config(A).state_dir / RELEASES
    for name in (".sample-14bf-67st1k5l", "sample-14bf"):
        (releases / name).mkdir(parents=True)
        (releases / name / TABLE).write_text("age\n[20,30)\n")
    (releases / ".sample-14bf-67st1k5l" / ".jointcut-lock").touch()
    with processes(net, only=[A]) as running:
        assert listing(releases) == ["sample-14bf", f"sample-14bf/{TABLE}"]
    assert "removed 1 releases" in running.log(A)


def test_serve_without_peers(folder: Path) -> None:
    ran = call("serve", "--config", folder / "party.yaml", program="party")
    assert ran.code == Exit.USAGE
    assert ran.out == ""
    assert "nobody could connect" in ran.problem["message"]


def test_serve_with_a_damaged_state_folder_says_only_that(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net")
    approvals = net.config(A).state_dir / "approvals.sqlite"
    approvals.parent.mkdir(exist_ok=True)
    approvals.write_bytes(b"no database" * 100)
    ran = call("serve", "--config", net.config_path(A), program="party")
    assert ran.out == ""
    assert len(ran.err.splitlines()) == 1
    assert str(approvals) in ran.problem["cause"]
