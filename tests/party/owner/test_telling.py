"""Word to the owner that a job waits: a command, or a mail through a relay of the test."""

from __future__ import annotations

import logging
import socketserver
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import ConfigError
from party.owner import telling
from party.owner.config import PartyConfig, parse_config
from party.owner.telling import Teller, TellingByCommand, TellingByMail, TellingNobody
from tests.support.house import House
from tests.support.network import sample_network, served, write_job, yaml_of
from tests.support.samples import PARTIES, joint_job

A = PARTIES[0]
DIGEST = "0123456789abcdef" * 4


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def soon(path: Path) -> str:
    """Return the text of a file that another thread writes."""
    deadline = time.monotonic() + 30
    while not path.exists() or not path.read_text().endswith("\n"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return path.read_text()


def test_a_command_gets_the_hash_and_no_text_of_the_job(tmp_path: Path) -> None:
    """No shell: blanks and signs of a shell stay within their argument."""
    told = tmp_path / "told"
    program = script(
        tmp_path / "with blank; $(touch x)", f'printf "%s|" "$#" "$1" > "{told}"; cat >> "{told}"'
    )
    TellingByCommand((str(program), "$(touch y) `touch z`")).tell(DIGEST)
    assert told.read_text() == f"1|$(touch y) `touch z`|{DIGEST}\n"


def test_a_command_that_fails_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    TellingByCommand((str(tmp_path / "nothing"),)).tell(DIGEST)
    TellingByCommand((str(script(tmp_path / "three", "exit 3")),)).tell(DIGEST)
    assert [record.getMessage() for record in caplog.records] == [
        "the command of `on_proposal` failed: FileNotFoundError",
        "the command of `on_proposal` ended with code 3",
    ]


def test_a_command_that_never_ends_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(telling, "_PATIENCE_S", 0.2)
    TellingByCommand(("/bin/sleep", "600")).tell(DIGEST)
    assert "TimeoutExpired" in caplog.text


class Relay(socketserver.StreamRequestHandler):
    """The least of SMTP."""

    def handle(self) -> None:
        received: list[str] = self.server.received  # type: ignore[attr-defined]
        self.wfile.write(b"220 relay\r\n")
        data = False
        for raw in self.rfile:
            line = raw.decode().rstrip("\r\n")
            received.append(line)
            if data:
                data = line != "."
                if data:
                    continue
            elif line.upper() == "DATA":
                data = True
                self.wfile.write(b"354 go on\r\n")
                continue
            elif line.upper() == "QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            self.wfile.write(b"250 fine\r\n")


@contextmanager
def relay() -> Iterator[tuple[tuple[str, int], list[str]]]:
    with socketserver.TCPServer(("127.0.0.1", 0), Relay) as server:
        received: list[str] = []
        server.received = received  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address, received  # type: ignore[misc]
        finally:
            server.shutdown()
            thread.join()


def test_a_mail_names_the_hash_and_no_job() -> None:
    with relay() as (address, received):
        TellingByMail("hospital-a", "jointcut@hospital-a", "officer@hospital-a", address).tell(DIGEST)
    text = "\n".join(received)
    assert "Subject: Jointcut: a job waits at hospital-a" in text
    assert "To: officer@hospital-a" in text
    assert DIGEST in received
    assert f"party show {DIGEST[:12]}" in text


def test_a_relay_that_is_not_there_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with relay() as (address, _):
        pass
    TellingByMail("a", "s@a", "o@a", address).tell(DIGEST)
    assert "the mail of `on_proposal` could not be sent: ConnectionRefusedError" in caplog.text


def test_one_is_told_after_the_other() -> None:
    at_once, most = 0, 0
    done = threading.Semaphore(0)

    class Slow:
        def tell(self, job_sha256: str) -> bool:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            time.sleep(0.01)
            at_once -= 1
            done.release()
            return True

    teller = Teller()
    for _ in range(10):
        teller.tell(Slow(), DIGEST)
    for _ in range(10):
        assert done.acquire(timeout=30)
    assert most == 1


@pytest.mark.parametrize(("failures", "tries"), [(0, 1), (2, 3), (3, 4), (9, 4)])
def test_an_owner_who_was_not_told_is_told_again(
    failures: int, tries: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After pauses, three times at most; other owners are told meanwhile."""
    pauses: list[float] = []
    n_tried = 0

    class Failing:
        def tell(self, job_sha256: str) -> bool:
            nonlocal n_tried
            n_tried += 1
            return n_tried > failures

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        assert not teller._turn.locked()

    monkeypatch.setattr(telling, "sleep", pause)
    teller = Teller()
    teller._tell(Failing(), DIGEST)
    assert n_tried == tries
    assert pauses == [0, 60, 600, 3600][:tries]
    assert ("`on_proposal` is not tried again" in caplog.text) == (failures == 9)


@pytest.mark.parametrize(
    ("said", "made"),
    [
        ({}, TellingNobody()),
        (
            {"on_proposal": ["/usr/bin/logger", "-t", "x y"]},
            TellingByCommand(("/usr/bin/logger", "-t", "x y")),
        ),
        (
            {"on_proposal": {"to": "officer@example.org"}},
            TellingByMail(A, "jointcut@localhost", "officer@example.org", ("127.0.0.1", 25)),
        ),
        (
            {"on_proposal": {"to": "o@x", "sender": "s@x", "relay": "[::1]:2525"}},
            TellingByMail(A, "s@x", "o@x", ("::1", 2525)),
        ),
    ],
)
def test_the_configuration_says_how(said: dict[str, Any], made: object) -> None:
    assert configured(said).telling == made


@pytest.mark.parametrize(
    "said", [[], "logger", {"to": "nobody"}, {"to": "a@b\nBcc: c@d"}, {"to": "a@b", "x": 1}]
)
def test_other_words_are_refused(said: object) -> None:
    with pytest.raises(ConfigError):
        configured({"on_proposal": said})


def configured(said: dict[str, Any]) -> PartyConfig:
    fields = {
        "version": "1",
        "name": A,
        "tls": {"certificate": "c.pem", "key": "k.pem"},
        "data": {"csv": {"path": "t.csv"}},
        **said,
    }
    return parse_config(PartyConfig, yaml_of(fields), Path("party.yaml"))


def test_an_owner_is_told_of_each_proposal_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    net = sample_network(tmp_path / "net")
    told = tmp_path / "told"
    program = script(tmp_path / "notify", f'cat >> "{told}"')
    for name in PARTIES:
        net.change(name, lambda fields: fields["policy"].pop("approval"))
    net.change(A, lambda fields: fields.update(on_proposal=[str(program)]))
    write_job(tmp_path, joint_job())
    house = House(net)
    with served(net):
        for _ in range(2):
            assert house.coordinator("propose").code == 0
        assert house.run("out").code == 4
    assert soon(told) == f"{house.digest}\n"


def test_an_owner_is_told_of_a_job_that_needed_no_decision_before(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net")
    told = tmp_path / "told"
    program = script(tmp_path / "notify", f'cat >> "{told}"')
    net.change(A, lambda fields: fields.update(on_proposal=[str(program)]))
    write_job(tmp_path, joint_job())
    house = House(net)
    with served(net):
        assert house.coordinator("propose").code == 0
        net.change(A, lambda fields: fields["policy"].pop("approval"))
        for _ in range(2):
            assert house.states()[A] == "waiting"
            assert house.coordinator("propose").code == 0
    assert soon(told) == f"{house.digest}\n"
