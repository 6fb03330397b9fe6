"""What people see: a headless Chromium, and a JupyterLab of its own for each test.

Both talk to this machine only. With ``SCREENSHOTS=DIR`` in the environment the tests leave
the pictures of the documentation there (``make screenshots``).
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from PIL import Image
from playwright.sync_api import BrowserContext, FrameLocator, Locator, Page, sync_playwright

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="There is no Chromium on this machine: apt-get install chromium."
)

#: How long a page may take to show something; a busy machine takes its time.
SECONDS = 300

_START_SECONDS = 600
_QUIET = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]
#: Nothing but this machine has an address; what is asked of others is recorded all the same.
_ONLY_HERE = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"
_HERE = {"127.0.0.1", "localhost", None}


class Window:
    """A browser window that remembers what its pages asked of other machines.

    Attributes:
        asked_outside: the addresses, in order.
    """

    def __init__(self, context: BrowserContext) -> None:
        self.asked_outside: list[str] = []
        self._context = context
        context.set_default_timeout(SECONDS * 1000)
        context.on("request", lambda request: self._note(request.url))
        context.on("page", lambda page: page.on("websocket", lambda one: self._note(one.url)))

    def open(self, address: str) -> Page:
        """A new page at an address."""
        page = self._context.new_page()
        page.goto(address)
        return page

    def _note(self, address: str) -> None:
        if urlsplit(address).hostname not in _HERE:
            self.asked_outside.append(address)


@contextmanager
def window(width: int = 1200, height: int = 800) -> Iterator[Window]:
    """A new browser, ended afterwards."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*_QUIET, _ONLY_HERE], timeout=SECONDS * 1000
        )
        try:
            yield Window(browser.new_context(viewport={"width": width, "height": height}))
        finally:
            browser.close()


class JupyterLab:
    """A server that was started; ``token`` opens its pages."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token

    def address(self, path: str) -> str:
        """The address of a page, such as ``lab/tree/some.ipynb``."""
        return f"{self._url}{path}?token={self._token}"


@contextmanager
def jupyter_lab(folder: Path, scratch: Path, settings: Path | None = None) -> Iterator[JupyterLab]:
    """JupyterLab in ``folder``, with settings, kernels' files and log in ``scratch``.

    Args:
        folder: that it shows.
        scratch: an empty one.
        settings: the folder with settings that came with a course; else nothing asks about news.
    """
    more = []
    if settings is None:
        own = scratch / "config" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
        own.mkdir(parents=True)
        (own / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    else:
        more = [f"--LabApp.app_settings_dir={settings}"]
    runtime = scratch / "runtime"
    environment = os.environ | {
        "HOME": str(scratch),
        "IPYTHONDIR": str(scratch / "ipython"),
        "JUPYTER_CONFIG_DIR": str(scratch / "config"),
        "JUPYTER_DATA_DIR": str(scratch / "data"),
        "JUPYTER_RUNTIME_DIR": str(runtime),
        "MPLCONFIGDIR": str(scratch / "matplotlib"),
    }
    with (scratch / "jupyter.log").open("wb") as log:
        server = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1"),
                *(f"--port={free_port()}", "--allow-root", f"--ServerApp.root_dir={folder}"),
                *more,
            ],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield _started(server, runtime / f"jpserver-{server.pid}.json", scratch / "jupyter.log")
    finally:
        server.terminate()  # it ends its kernels
        try:
            server.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _started(server: subprocess.Popen[bytes], says: Path, log: Path) -> JupyterLab:
    """Wait until the server has written down where it listens, and listens there."""
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        assert server.poll() is None, f"JupyterLab ended:\n{log.read_text(errors='replace')}"
        try:
            found = json.loads(says.read_text())
            socket.create_connection(("127.0.0.1", found["port"]), timeout=5).close()
        except (OSError, ValueError):
            time.sleep(0.1)
        else:
            return JupyterLab(f"http://127.0.0.1:{found['port']}/", found["token"])
    raise AssertionError(f"JupyterLab did not start:\n{log.read_text(errors='replace')}")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def take_picture(shown: Page | Locator, name: str) -> None:
    """Leave a picture of the page, or a part of it, for the documentation, if it is wanted."""
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        path = Path(folder) / f"{name}.webp"
        path.parent.mkdir(parents=True, exist_ok=True)
        taken = shown.screenshot(animations="disabled", caret="hide")
        with Image.open(io.BytesIO(taken)) as picture:  # 256 colours are enough
            few = picture.convert("RGB").quantize(256).convert("RGB")
            few.save(path, lossless=True, quality=100, method=6)


def open_formgrader(page: Page) -> FrameLocator:
    """From JupyterLab's menu."""
    page.get_by_role("menuitem", name="Nbgrader").click()
    page.get_by_role("menuitem", name="Formgrader", exact=True).click()
    return page.frame_locator("iframe")
