"""The section "Three machines" of the guide for hospitals, command by command: three daemons and a coordinator."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from tests.support.bare import bare
from tests.support.loopback import free_ports
from tests.support.network import call, command

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "guide" / "hospitals.md").read_text().split("## Three machines")[1]
HOSPITALS = ("hospital-a", "hospital-b", "hospital-c")
ROWS = 700
"""Rows of each hospital: enough for K = 20."""


def shown(start: str) -> list[list[str]]:
    """Return the commands of the page that begin so, as words without their comments."""
    lines = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
    return [line.split("#")[0].split() for line in lines if line.startswith(start)]


def done(words: list[str], folder: Path) -> str:
    """Run a command in a folder. It must succeed."""
    ran = call(*words[1:], program=words[0], cwd=folder)
    assert ran.code == 0, ran.err
    return ran.out


@contextmanager
def serving(words: list[str], folder: Path) -> Iterator[None]:
    """Run a daemon in a folder from its first line until the block ends."""
    started = command(*words[1:], program=words[0])
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(started, cwd=folder, env=bare(), stdout=subprocess.PIPE, stderr=log)
    with daemon:
        assert daemon.stdout is not None
        try:
            assert b"listening" in daemon.stdout.readline(), (folder / "log").read_text()
            yield
        finally:
            daemon.terminate()


def fingerprint(path: Path) -> str:
    """Return the SHA-256 of a certificate, which organizations compare on another channel."""
    return x509.load_pem_x509_certificate(path.read_bytes()).fingerprint(hashes.SHA256()).hex()


@pytest.mark.more
def test_three_machines(tmp_path: Path) -> None:
    """Each hospital says what the page says for hospital-a, with its own names; then the coordinator runs the job."""
    ports = free_ports(HOSPITALS)
    folders = {name: tmp_path / name / "etc jointcut" for name in HOSPITALS}
    examples = ROOT / "examples" / "transfusion"
    (init,) = shown("party init")
    for name in HOSPITALS:
        table = folders[name].parent / "table.csv"
        folders[name].parent.mkdir()
        table.write_text(
            "".join((examples / f"{name}.csv").read_text().splitlines(keepends=True)[: ROWS + 1])
        )
        places = {"hospital-a": name, "/etc/jointcut": str(folders[name]), "/data/table.csv": str(table)}
        places |= {"0.0.0.0:7400": f"127.0.0.1:{ports[name]}"}
        done([places.get(word, word) for word in init], folders[name].parent)
    (init,) = shown("coordinator init")
    done(init, tmp_path)
    agency = tmp_path / init[init.index("--dir") + 1]
    folders["coordinator"] = agency

    def add(words: list[str], name: str, peer: str) -> None:
        """Install the certificate of a peer as a command of the page installs that of another."""
        shutil.copy(folders[peer] / "tls" / "certificate.pem", folders[name] / f"{peer}.pem")
        given = list(words)
        given[3:5] = [peer, f"{peer}.pem"]
        if "--address" in given:
            given[given.index("--address") + 1] = f"127.0.0.1:{ports[peer]}"
        given[given.index("--fingerprint") + 1] = fingerprint(folders[peer] / "tls" / "certificate.pem")
        done(given, folders[name])

    of_b, of_c, of_coordinator = shown("party peers add")
    assert [words[3] for words in (of_b, of_c, of_coordinator)] == ["hospital-b", "hospital-c", "coordinator"]
    (policy,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (pairs,) = [yaml.safe_load(text) for text in re.findall(r"`(pairs: [^`]*)`", PAGE)]
    (check,) = shown("party check")
    for name in HOSPITALS:
        for words, peer in zip((of_b, of_c), [each for each in HOSPITALS if each != name], strict=True):
            add(words, name, peer)
        add(of_coordinator, name, "coordinator")
        path = folders[name] / "party.yaml"
        fields = yaml.safe_load(path.read_text()) | yaml.safe_load(policy)
        fields["policy"]["parties"] = [each for each in HOSPITALS if each != name]
        fields["policy"] |= {} if name != "hospital-c" else pairs
        path.write_text(yaml.safe_dump(fields))
        shutil.copytree(examples / "hierarchies", folders[name] / "hierarchies")
        shutil.copy(examples / "job.yaml", folders[name])
        said = done(check, folders[name])
        assert "policy-refused" not in said

    (add_a,) = shown("coordinator peers add")
    for name in HOSPITALS:
        add(add_a, "coordinator", name)
    shutil.copytree(examples / "hierarchies", agency / "hierarchies")
    shutil.copy(examples / "job.yaml", agency)
    (propose,) = shown("coordinator propose")
    (jobs,), (show,), (approve,) = shown("party jobs"), shown("party show"), shown("party approve")
    run, elsewhere = shown("coordinator run")
    assert elsewhere == [*run, "--config", "agency/coordinator.yaml"]
    (serve,) = shown("party serve")
    with ExitStack() as daemons:
        for name in HOSPITALS:
            daemons.enter_context(serving(serve, folders[name]))
        proposed = done(propose, agency)
        digits = proposed.split()[2][: len(show[2])]
        for name in HOSPITALS:
            assert digits in done(jobs, folders[name])
            asked = done([*show[:2], digits], folders[name])
            assert "surgery: published; the requirement bounds inferences of its protected values" in asked
            done([*approve[:2], digits], folders[name])
        done(run, agency)
    table = (agency / "result" / "anonymized.csv").read_bytes()
    report = json.loads((agency / "result" / "report.json").read_text())
    assert report["rows"] == len(table.splitlines()) - 1 == 3 * ROWS
    for name in HOSPITALS:
        (release,) = folders[name].glob("**/releases/*/anonymized.csv")
        assert release.read_bytes() == table
