"""A page that nobody inspects: memory of a page under Playwright holds up to 200 MB of the answers that it has fetched.

Playwright enables the network domain of Chromium's protocol, for which the page's process keeps the bodies of answers.
Here the protocol is spoken through a pipe, and only for what is asked.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from browser import FLAGS

_END = b"\0"  # of a message


class BarePage:
    """One page of a browser. Raises EOFError once that has ended."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive, self._number, self._left = send, receive, 0, b""
        self._session = ""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def go(self, address: str) -> None:
        """Show an address; where only the part behind # differs, the page stays."""
        self._ask("Page.navigate", url=address)

    def evaluate(self, expression: str) -> Any:
        """Return what an expression of JavaScript is."""
        return self._ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def js_mib(self) -> float:
        """Memory of JavaScript's objects that are in use."""
        return float(self._ask("Runtime.getHeapUsage")["usedSize"]) / 2**20

    def _ask(self, method: str, **parameters: object) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + _END)
        while True:
            while _END not in self._left:
                data = os.read(self._receive, 1 << 16)
                if not data:
                    raise EOFError("the browser has ended")
                self._left += data
            text, _, self._left = self._left.partition(_END)
            answer = json.loads(text)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])


@contextmanager
def bare_page(profile: Path, width: int = 2000, height: int = 1000) -> Iterator[BarePage]:
    """A page in a Chromium with a profile folder of its own, by which its processes are known."""
    shutil.rmtree(profile, ignore_errors=True)
    (to_read, send), (receive, to_write) = os.pipe(), os.pipe()
    # Chromium reads from 3 and writes to 4.
    words = ["chromium", "--headless=new", *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe"]
    script = f'exec "$@" 3<&{to_read} 4>&{to_write}'
    browser = subprocess.Popen(
        ["bash", "-c", script, "bash", *words, f"--window-size={width},{height}", "about:blank"],
        pass_fds=(to_read, to_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read), os.close(to_write)
    try:
        yield BarePage(send, receive)
    finally:
        browser.terminate()
        browser.wait()
        os.close(send), os.close(receive)
