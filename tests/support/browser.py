"""A real headless Chromium, driven over a pipe by its own DevTools protocol: no driver, no port, no package."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PATIENCE_S = 30.0
KEYS = {"Tab": 9, "Enter": 13, " ": 32}


def chromium() -> str | None:
    """Where it is; None if it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One tab, in which no script of a page runs."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests = requests
        self._answers = answers
        self._n = 0
        self._read = b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.tell("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.tell("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Accessibility"):
            self.tell(f"{domain}.enable")
        self.tell("Emulation.setScriptExecutionDisabled", value=True)

    def tell(self, method: str, **params: Any) -> Any:
        """Send a command; return what came of it."""
        self._n += 1
        message = {"id": self._n, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._requests, json.dumps(message).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == self._n:
                assert "error" not in said, (method, said["error"])
                return said["result"]
            self.events.append(said)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            piece = os.read(self._answers, 1 << 16)
            assert piece, "the browser ended"
            self._read += piece
        first, _, self._read = self._read.partition(b"\0")
        found = json.loads(first)
        assert isinstance(found, dict)
        return found

    def _loaded(self) -> None:
        """Wait until the next page is here."""
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def open(self, url: str) -> None:
        """Go to a page, and wait for it."""
        self.events.clear()
        self.tell("Page.navigate", url=url)
        self._loaded()

    def says(self, expression: str) -> Any:
        """What an expression is on the page."""
        found = self.tell("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    @property
    def text(self) -> str:
        """What can be read."""
        return str(self.says("document.body.innerText"))

    @property
    def at(self) -> str:
        """Where we are."""
        return str(self.says("location.pathname + location.search"))

    def press(self, key: str, *, leads: bool = False) -> None:
        """Press a key; leads: to another page, which is waited for."""
        self.events.clear()
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        fields = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS.get(key, ord(key[0])), "text": text}
        self.tell("Input.dispatchKeyEvent", type="keyDown", **fields)
        self.tell("Input.dispatchKeyEvent", type="keyUp", **{**fields, "text": ""})
        if leads:
            self._loaded()

    def write(self, text: str) -> None:
        """Write into what has the focus."""
        self.tell("Input.insertText", text=text)

    def tab_to(self, selector: str, most: int = 60) -> None:
        """Go there as people without a mouse do."""
        for _ in range(most):
            if self.says(f"document.activeElement.matches({json.dumps(selector)})"):
                return
            self.press("Tab")
        raise AssertionError(f"no key leads to {selector}")

    def looks(self, width: int, *, dark: bool = False, height: int = 800) -> None:
        """How wide it is, and what colours are asked for."""
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path: Path) -> None:
        """Keep what is seen, all of the page."""
        found = self.tell("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    @property
    def complaints(self) -> list[str]:
        """What the browser says is wrong with the page it opened last, such as what its policy forbids."""
        entries = [
            event["params"]["entry"] for event in self.events if event.get("method") == "Log.entryAdded"
        ]
        return [str(entry["text"]) for entry in entries]

    def nodes(self) -> list[tuple[str, str]]:
        """What a screen reader is told of the page: roles with names."""
        found = self.tell("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in found
            if not node["ignored"]
        ]


@contextmanager
def browsing(profile: Path) -> Iterator[Browser]:
    """A browser with a profile of its own, while the block runs; a test that waits for it for ever is ended."""
    binary = chromium()
    assert binary is not None
    theirs, requests = os.pipe()
    answers, theirs_too = os.pipe()
    command = [
        "bash",
        "-c",
        f'exec 3<&{theirs} 4>&{theirs_too} "$@"',
        "chromium",
        binary,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--remote-debugging-pipe",
        f"--user-data-dir={profile}",
    ]
    process = subprocess.Popen(
        command,
        pass_fds=(theirs, theirs_too),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(theirs)
    os.close(theirs_too)
    try:
        yield Browser(requests, answers)
    finally:
        os.close(requests)
        os.close(answers)
        _ended(process)


def _ended(process: subprocess.Popen[bytes]) -> None:
    """End it with all its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)
    deadline = time.monotonic() + 5
    with suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.05)
    process.wait()
