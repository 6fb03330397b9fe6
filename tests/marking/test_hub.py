"""The exchange on a JupyterHub of its own: a student's server fetches and submits, we grade."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from ..browser.window import free_port
from ..classes import LESSON, entries
from .exchange import RIGHT, Term

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
PROXY = shutil.which("configurable-http-proxy", path=f"{BIN}:{os.environ['PATH']}")
needs_a_hub = pytest.mark.skipif(
    find_spec("jupyterhub") is None or PROXY is None,
    reason="There is no JupyterHub here: pip install jupyterhub configurable-http-proxy.",
)

TOKEN = "of-this-test-alone"
#: How long a server may take to start; a busy machine takes its time.
SECONDS = 600

CONFIG = """
c = get_config()
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_port = {hub_port}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.ConfigurableHTTPProxy.command = {proxy!r}
c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = {homes!r} + "/{{username}}"
c.Spawner.args = ["--allow-root"]
c.Spawner.http_timeout = c.Spawner.start_timeout = {seconds}
c.Spawner.environment = {{"JUPYTER_CONFIG_PATH": {config!r}}}
c.JupyterHub.services = [{{"name": "test", "api_token": {token!r}}}]
c.JupyterHub.load_roles = [{{
    "name": "test",
    "services": ["test"],
    "scopes": ["admin:users", "admin:servers", "access:servers"],
}}]
"""


class Hub:
    """What a browser asks of a hub."""

    def __init__(self, address: str) -> None:
        self._address = address

    def ask(self, method: str, path: str, form: Any = None, tree: Any = None) -> Any:
        data = json.dumps(tree).encode() if tree is not None else None
        if form is not None:
            data = urlencode(form).encode()
        headers = {"Authorization": f"token {TOKEN}"}
        request = Request(self._address + path, data, headers, method=method)
        with urlopen(request, timeout=SECONDS) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def start_server_of(self, who: str) -> None:
        self.ask("POST", f"/hub/api/users/{who}")
        self.ask("POST", f"/hub/api/users/{who}/server")
        until = time.monotonic() + SECONDS
        while not self.ask("GET", f"/hub/api/users/{who}")["server"]:
            assert time.monotonic() < until, f"the server of {who} did not start"
            time.sleep(0.5)

    def press(self, who: str, button: str, course: str) -> None:
        """A button of nbgrader's list of assignments."""
        form = {"course_id": course, "assignment_id": LESSON}
        answer = self.ask("POST", f"/user/{who}/assignments/{button}", form)
        assert answer["success"], answer


@contextmanager
def hub(root: Path, config_path: Path) -> Iterator[Hub]:
    """A hub with a proxy, on loopback, where each name is let in; its homes are below ``root``."""
    port, hub_port, proxy_port = free_port(), free_port(), free_port()
    place = root / "hub"
    place.mkdir()
    settings = place / "jupyterhub_config.py"
    settings.write_text(
        CONFIG.format(
            port=port, hub_port=hub_port, proxy_port=proxy_port, proxy=[PROXY], homes=str(root),
            seconds=SECONDS, config=str(config_path), token=TOKEN,
        )
    )  # fmt: skip
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(place)}
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", str(settings)],
            cwd=place, env=environment, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    made = Hub(f"http://127.0.0.1:{port}")
    try:
        until = time.monotonic() + SECONDS
        while True:
            try:
                made.ask("GET", "/hub/api/")
                break
            except (URLError, ConnectionError):
                said = (place / "log").read_text()[-3000:]
                assert process.poll() is None and time.monotonic() < until, said
                time.sleep(0.5)
        yield made
    finally:
        process.terminate()  # it ends the servers and the proxy
        try:
            process.wait(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@needs_a_hub
def test_a_student_of_a_hub_fetches_works_submits_and_reads_the_feedback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    term = Term(tmp_path, monkeypatch)
    course = term.folder.root.name
    term.nbgrader("instructor", "release_assignment", LESSON)
    with hub(tmp_path, tmp_path / "etc") as running:
        running.start_server_of("ada")
        running.press("ada", "fetch", course)
        notebook = f"/user/ada/api/contents/{LESSON}/tiny.ipynb"
        model = running.ask("GET", notebook)
        for name, source in RIGHT.items():
            next(
                cell
                for cell in model["content"]["cells"]
                if cell["metadata"].get("nbgrader", {}).get("grade_id") == name
            )["source"] = source
        kept = {"type": "notebook", "content": model["content"]}
        running.ask("PUT", notebook, tree=kept)
        running.press("ada", "submit", course)

        term.nbgrader("instructor", "collect", LESSON)
        term.grade()
        assert entries(term.folder)["ada"]["score"] == 8.0
        term.nbgrader("instructor", "release_feedback", LESSON)
        running.press("ada", "fetch_feedback", course)
    (page,) = (tmp_path / "ada" / LESSON / "feedback").rglob("tiny.html")
    mine = term.folder.root / "feedback" / "ada" / LESSON / "tiny.html"
    assert page.read_bytes() == mine.read_bytes()
