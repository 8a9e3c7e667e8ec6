"""A headless Chromium, driven over a pipe by the DevTools protocol: needs no further package."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
NO_CHROMIUM = "needs chromium or google-chrome on the PATH"
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--hide-scrollbars", "--disable-background-networking", "--remote-debugging-pipe",
)  # fmt: skip


class Browser:
    """One tab; ``requests`` are the addresses it asked for, ``problems`` what its console said."""

    def __init__(self, to: int, back: int, timeout: float) -> None:
        self._to, self._back, self._timeout = to, back, timeout
        self._held = b""
        self._number = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.problems: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            self._note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, page: Path, fragment: str = "") -> None:
        """Load a file."""
        self.call("Page.navigate", url=f"{page.absolute().as_uri()}{fragment}")

    def run(self, expression: str) -> Any:
        """Evaluate an expression in the page, a promise to its end; return its value."""
        result = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, condition: str) -> Any:
        """Wait until an expression is true; return its value."""
        end = time.monotonic() + self._timeout
        while not (value := self.run(condition)):
            if time.monotonic() > end:
                raise TimeoutError(f"{condition} is {value!r}; console: {self.problems}")
            time.sleep(0.02)
        return value

    def size(self, width: int, height: int, mobile: bool = False) -> None:
        """Set the size of the window."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=mobile,
        )  # fmt: skip

    def media(self, scheme: str = "light", kind: str = "") -> None:
        """Emulate a colour scheme, and a medium such as ``print``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=kind, features=features)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._held:
            if not select.select([self._back], [], [], self._timeout)[0]:
                raise TimeoutError("chromium does not answer")
            if not (part := os.read(self._back, 1 << 20)):
                raise RuntimeError("chromium has ended")
            self._held += part
        message, self._held = self._held.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        said = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(said["request"]["url"])
            case "Log.entryAdded":
                self.problems.append(said["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.problems.append(json.dumps(said["exceptionDetails"]))


@contextmanager
def browser(profile: Path, timeout: float = 30.0) -> Iterator[Browser]:
    """Start a browser with a profile of its own, and end it afterwards."""
    pipes = [os.pipe() for _ in range(2)]
    # The browser reads from its descriptor 3 and writes to 4; the others must be none of these.
    reads, writes = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (pipes[0][0], pipes[1][1]))
    command = [
        "bash", "-c", f'exec "$@" 3<&{reads} 4>&{writes}', "bash",
        str(CHROMIUM), *_FLAGS, f"--user-data-dir={profile}",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, pass_fds=(reads, writes), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for end in (reads, writes, pipes[0][0], pipes[1][1]):
        os.close(end)
    try:
        yield Browser(pipes[0][1], pipes[1][0], timeout)
    finally:
        os.close(pipes[0][1])  # Then it ends by itself.
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(pipes[1][0])
