"""Word to the owner that a job waits: a command of the owner's, or an e-mail through a local relay.

Both get the job hash and nothing else: no text of the job becomes an argument, a subject or a line.
"""

from __future__ import annotations

import logging
import smtplib
import subprocess
import threading
from dataclasses import dataclass
from email.message import EmailMessage
from time import sleep
from typing import Protocol

log = logging.getLogger("party")

_PATIENCE_S = 30.0
"""Longest time that a command or a relay may take."""

_PAUSES_S = 60.0, 600.0, 3600.0
"""Pauses before further tries, after a failure."""


class Telling(Protocol):
    """Way of telling the owner that a job waits."""

    def tell(self, job_sha256: str) -> bool:
        """Tell the owner; return False after a failure, which is logged. Waits for the command or the relay."""
        ...


@dataclass(frozen=True)
class TellingNobody:
    """Owner who looks for waiting jobs with `party jobs`."""

    def tell(self, job_sha256: str) -> bool:
        return True


@dataclass(frozen=True)
class TellingByCommand:
    """Command that reads the job hash from its standard input.

    words:  program and arguments; no shell reads them.
    """

    words: tuple[str, ...]

    def tell(self, job_sha256: str) -> bool:
        try:
            ran = subprocess.run(
                self.words,
                input=f"{job_sha256}\n",
                text=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_PATIENCE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            log.error("the command of `on_proposal` failed: %s", type(error).__name__)
            return False
        if ran.returncode:
            log.error("the command of `on_proposal` ended with code %d", ran.returncode)
        return ran.returncode == 0


@dataclass(frozen=True)
class TellingByMail:
    """E-mail through a relay that asks for no password.

    relay:  host and port.
    """

    party: str
    sender: str
    recipient: str
    relay: tuple[str, int]

    def tell(self, job_sha256: str) -> bool:
        try:
            with smtplib.SMTP(*self.relay, timeout=_PATIENCE_S) as relay:
                relay.send_message(self._message(job_sha256))
        except (OSError, smtplib.SMTPException) as error:
            log.error("the mail of `on_proposal` could not be sent: %s", type(error).__name__)
            return False
        return True

    def _message(self, job_sha256: str) -> EmailMessage:
        message = EmailMessage()
        message["Subject"] = f"Jointcut: a job waits at {self.party}"
        message["From"], message["To"] = self.sender, self.recipient
        short = job_sha256[:12]
        message.set_content(
            f"A job waits for a decision at {self.party}. Its hash:\n\n{job_sha256}\n\n"
            f"Read it:  party show {short}\n"
            f"Decide:   party approve {short}, or party deny {short} --reason TEXT\n"
        )
        return message


class Teller:
    """Tells owners one thing after the other, in threads that nobody waits for, and that end with the process."""

    def __init__(self) -> None:
        self._turn = threading.Lock()

    def tell(self, telling: Telling, job_sha256: str) -> None:
        """Let an owner be told, if need be in several tries. Returns at once."""
        threading.Thread(target=self._tell, args=(telling, job_sha256), daemon=True).start()

    def _tell(self, telling: Telling, job_sha256: str) -> None:
        for pause in (0.0, *_PAUSES_S):
            sleep(pause)
            with self._turn:
                if telling.tell(job_sha256):
                    return
        log.error("`on_proposal` is not tried again: `party jobs` lists the jobs that wait")
