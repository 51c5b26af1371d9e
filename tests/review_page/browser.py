"""A headless Chromium driven through the DevTools protocol, and the page's server in a thread."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--remote-debugging-port=0",
)  # fmt: skip
_NAMED_KEYS = {"Enter": "\r"}
TOKEN = "a-token-of-the-test"


class Tab:
    """One tab: run scripts, press keys, take pictures, remember errors."""

    def __init__(self, socket: Any) -> None:
        self._socket, self._numbers = socket, itertools.count(1)
        self.errors: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            answer = json.loads(self._socket.recv(timeout=60))
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            if answer.get("method") == "Runtime.exceptionThrown":
                self.errors.append(json.dumps(answer["params"]))
            if answer.get("method") == "Log.entryAdded" and answer["params"]["entry"]["source"] != "network":
                self.errors.append(json.dumps(answer["params"]))  # refusals of the server are shown on the page
            if answer.get("method") == "Network.requestWillBeSent":
                self.errors += [u for u in [answer["params"]["request"]["url"]] if not _local(u)]

    def open(self, address: str) -> None:
        self.send("Page.navigate", url=address)
        self.wait("document.querySelector('.row, [role=treeitem], #detail p')")

    def run(self, script: str) -> Any:
        """The value of an expression; promises are awaited."""
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, script: str, seconds: float = 30) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(AssertionError):
                if self.run(f"Boolean({script})"):
                    return
            time.sleep(0.02)
        raise AssertionError(f"never true: {script}\n{self.run('document.body.innerText')}\n{self.errors}")

    def press(self, *keys: str, modifiers: int = 0) -> None:
        """Press keys, by name or character; ``modifiers`` 2 is Ctrl, 8 Shift."""
        for key in keys:
            text = key if len(key) == 1 else _NAMED_KEYS.get(key)
            given = {"key": key, "modifiers": modifiers or (8 if key.isupper() and len(key) == 1 else 0)}
            if key == "Enter":
                given |= {"windowsVirtualKeyCode": 13}
            down = given | ({"text": text} if text and not modifiers else {})
            self.send("Input.dispatchKeyEvent", type="keyDown", **down)
            self.send("Input.dispatchKeyEvent", type="keyUp", **given)

    def type(self, text: str) -> None:
        """Put text where the focus is, as an input method does."""
        self.send("Input.insertText", text=text)

    def text(self, selector: str) -> str:
        return self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def look(self, *, dark: bool = False, width: int = 1280, height: int = 800) -> None:
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)


def _local(address: str) -> bool:
    return address.startswith(("http://127.0.0.1:", "data:"))


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Tab]:
    """A tab of a new Chromium with an empty profile; the process ends with the block."""
    from websockets.sync.client import connect

    assert CHROMIUM is not None
    process = subprocess.Popen(
        [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port_file = profile / "DevToolsActivePort"
        end = time.monotonic() + 60
        while not (port_file.exists() and port_file.read_text().count("\n")):
            assert process.poll() is None and time.monotonic() < end, "chromium does not start"
            time.sleep(0.05)
        port = port_file.read_text().split("\n")[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
            target = next(t for t in json.load(answer) if t["type"] == "page")
        with connect(target["webSocketDebuggerUrl"], max_size=None, proxy=None) as socket:
            tab = Tab(socket)
            yield tab
            tab.send("Browser.close")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
    finally:
        process.kill()
        process.wait(20)


@contextlib.contextmanager
def served(root: Path, by: str | None = None) -> Iterator[tuple[str, Any]]:
    """The page of a workspace, reviewed by somebody: its address with the token, and its desk."""
    import uvicorn

    from curation.review_page.desk import Desk
    from curation.review_page.server import _listen, make_app

    with contextlib.closing(Desk(root, by)) as desk, _listen(0) as listener:
        port = listener.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(make_app(desk, TOKEN, port), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/?token={TOKEN}", desk
        finally:
            server.should_exit = True
            thread.join(20)
