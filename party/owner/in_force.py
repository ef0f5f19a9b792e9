"""Configuration in force of a daemon: the last loaded configuration, compared with the files before every job.

Changes of policy, peers, identity, table and timeouts take effect with the next job, if the files are valid. With
invalid files, or with a change that needs a restart (``FIXED``), jobs are refused. A running job goes on under its
configuration at admission. Connections are accepted by the last loaded configuration.

A daemon writes its configuration in force into its `state_dir`, in a file locked while the daemon runs. From the
file `party check` tells if a daemon runs, and under which configuration.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobs.errors import ConfigError, PartyError, json_object
from party.owner.config import PartyConfig, credentials_of, load_config, trusted_peers
from party.owner.identity import Credentials, Peer, check_validity, in_words

log = logging.getLogger("party")

Refresh = Callable[[], Coroutine[Any, Any, PartyConfig]]
"""Source of the configuration in force. Raises PartyError if the files differ from the configuration in force."""

STATUS = "in-force.json"
_STATUS_BYTES = 4096


@dataclass(frozen=True)
class Settings:
    """Configuration with everything named there, as loaded at a moment.

    peers:   peers with readable certificates; TLS and the admission of jobs check validity.
    digest:  SHA-256 of the files, as hex; for comparing alone, since the private key is among the files.
    """

    config: PartyConfig
    credentials: Credentials
    peers: Mapping[str, Peer]
    digest: str = field(repr=False)
    since: datetime


class InForce:
    """Configuration in force at a daemon."""

    def __init__(self, config: PartyConfig, path: Path | None = None) -> None:
        """``path``: the file of the configuration; without a file the configuration never changes."""
        self._path = path
        self._lock = threading.Lock()
        self._settings = _loaded(config, _digest_of_loaded(config, path))
        self.status = Status(config.state_dir)

    @property
    def settings(self) -> Settings:
        """Last loaded settings."""
        return self._settings

    def refresh(self) -> Settings:
        """Take over changes in the files; return the settings in force from now on.

        Raises ConfigError for invalid files and for a state folder that is gone, and IdentityError if our own
        certificate has expired.
        """
        with self._lock:
            before = self._settings
            try:
                self._settings = self._taken_over(before)
            except PartyError as error:
                raise _not_in_force(before.config.name, error) from error
        if self._settings is not before:
            log.info("policy of %s in force", in_words(self._settings.since))
        self.status.require_held(before.config.name)
        own = self._settings.credentials.certificate
        check_validity(
            own,
            before.config.name,
            f"at {before.config.name}: correct the clock if the clock is wrong; otherwise party renew",
        )
        return self._settings

    def latest(self) -> Settings:
        """Return :meth:`refresh`; an invalid change changes nothing, and the next job will report the error."""
        try:
            return self.refresh()
        except PartyError:
            return self._settings

    def _taken_over(self, before: Settings) -> Settings:
        if self._path is None or _digest(before.config, self._path) == before.digest:
            return before
        config = load_config(PartyConfig, self._path)
        changed = [name for name, value in fixed(config).items() if value != fixed(before.config)[name]]
        if changed:
            raise ConfigError("config-changed", f"restart the daemon: {', '.join(changed)} changed")
        return _loaded(config, _digest_of_loaded(config, self._path))


def _loaded(config: PartyConfig, digest: str) -> Settings:
    return Settings(config, credentials_of(config), trusted_peers(config), digest, datetime.now(UTC))


def _not_in_force(name: str, error: PartyError) -> ConfigError:
    """Return the coordinator's error; the owner reads the details."""
    return ConfigError(
        "config-changed",
        f"the configuration of {name} changed and is not in force: until then the daemon takes no job",
        party=name,
        private=error.problem.message + (f" [{error.problem.private}]" if error.problem.private else ""),
    )


def fixed(config: PartyConfig) -> dict[str, Any]:
    """Return the settings fixed until a restart: the daemon's sockets and state depend on them."""
    return {
        "name": config.name,
        "listen": config.listen,
        "state_dir": str(config.state_dir),
        "web": None if config.web is None else config.web.listen,
        "relay": None if config.relay is None else f"{config.relay.name} at {config.relay.address}",
        "monitor": config.monitor,
        "timeouts.keepalive_s": config.timeouts.keepalive_s,
        "timeouts.hello_s": config.timeouts.hello_s,
    }


def _digest_of_loaded(config: PartyConfig, path: Path | None) -> str:
    """Return the digest of the loaded files of a configuration, and of the files named there, to be loaded next.

    Later changes are taken over later. The digest is empty, unlike any digest, if the file already has a different
    content.
    """
    if path is None:
        return ""
    digest = _digest(config, path)
    return digest if load_config(PartyConfig, path) == config else ""


def _digest(config: PartyConfig, path: Path) -> str:
    """Return SHA-256 over a configuration file, our certificate and key, and the certificates of peers and relay.

    Nobody finds a key from the digest: the digest is as hard to guess as the key itself.
    """
    whole = hashlib.sha256()
    others = [entry.certificate for entry in config.peers.values()]
    if config.relay is not None:
        others.append(config.relay.certificate)
    for file in (path, config.tls.certificate, config.tls.key, *others):
        whole.update(hashlib.sha256(_content(file)).digest())
    return whole.hexdigest()


def _content(file: Path) -> bytes:
    """Return the bytes of a file; empty for an unreadable file, since the file's user reports the error."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


# ---- a daemon's statements to `party check`


class Status:
    """File of a running daemon with its configuration in force. One daemon per `state_dir`."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / STATUS
        self._file: int | None = None

    def hold(self, settings: Settings) -> None:
        """Take the file and write the settings. Raises ConfigError if another daemon has it, or writing fails."""
        folder = self._path.parent
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.release()
            raise ConfigError(
                "config-invalid",
                f"a second daemon runs with `state_dir` {folder}",
                remedy="stop that daemon, or choose a different `state_dir`",
            ) from error
        except OSError as error:
            raise ConfigError(
                "config-invalid",
                f"`state_dir` {folder} cannot be written: {error.strerror}",
                remedy="choose a folder in which the daemon's user can write",
            ) from error
        self.write(settings)

    def write(self, settings: Settings) -> None:
        """Write the settings in force now."""
        if self._file is not None:
            said = {
                "pid": os.getpid(),
                "since": settings.since.isoformat(),
                "digest": settings.digest,
                "fixed": fixed(settings.config),
            }
            text = json.dumps(said).encode().ljust(_STATUS_BYTES)  # of fixed length: readers never see a part
            os.pwrite(self._file, text, 0)
            os.ftruncate(self._file, len(text))

    def require_held(self, name: str) -> None:
        """Raise ConfigError if the folder of the file was moved or replaced: a new ledger would begin there."""
        if self._file is not None and not self._is_ours(self._file):
            cause = f"`state_dir` {self._path.parent} is not the folder of this daemon any more: stop the daemon, "
            raise _not_in_force(
                name, ConfigError("config-changed", f"{cause}put the folder back, start again")
            )

    def _is_ours(self, file: int) -> bool:
        """Return True if the file that we hold is still at its place."""
        try:
            return os.path.samestat(os.fstat(file), os.stat(self._path))
        except OSError:
            return False

    def release(self) -> None:
        """Leave the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def remove(self) -> None:
        """Release and remove the file."""
        if self._file is not None:
            if self._is_ours(self._file):
                self._path.unlink(missing_ok=True)
            self.release()


@dataclass(frozen=True)
class Running:
    """Running daemon, according to its file: its configuration in force, compared with the present files."""

    pid: int
    since: str
    in_force: bool
    restart_for: tuple[str, ...]

    def __str__(self) -> str:
        runs = f"runs (process {self.pid})"
        if self.in_force:
            return f"{runs}; this configuration is in force since {self.since}"
        if self.restart_for:
            changed = ", ".join(self.restart_for)
            return (
                f"{runs} under the configuration of {self.since} and takes no job: restart the daemon, {changed} "
                "changed"
            )
        return (
            f"{runs} under the configuration of {self.since}; the new configuration will be in force from the next "
            "job"
        )


def running(config: PartyConfig, path: Path) -> Running | None:
    """Return the running daemon on the `state_dir` of a configuration, or None.

    Raises ConfigError if the file cannot be read.
    """
    status = config.state_dir / STATUS
    try:
        with status.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None
            except BlockingIOError:
                said = json_object(file.read()) or {}
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError("file-missing", f"cannot read {status}: {error.strerror}") from error
    if "fixed" not in said:
        raise ConfigError(
            "file-missing", f"{status} is not complete", remedy="the daemon is starting: try again"
        )
    theirs = said["fixed"]
    changed = tuple(name for name, value in fixed(config).items() if value != theirs.get(name))
    since = in_words(datetime.fromisoformat(said["since"]))
    return Running(int(said["pid"]), since, said["digest"] == _digest(config, path), changed)
