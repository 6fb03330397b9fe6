"""The page of `autograder mark`: one question across all students, on this machine alone.

Tornado serves it, which JupyterLab brings. Every request needs the key that the page's address
holds; the page loads nothing from elsewhere.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import jinja2
from sqlalchemy.exc import OperationalError
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler

from autograder.course.translation import engine_words
from autograder.marking.by_question import Marking
from autograder.marking.formulas import with_formulas
from autograder.marking.questions import Answer, Conflict, MarkingError
from lesson_kit.words import N_, speaking, tr

_HERE = "127.0.0.1"
#: More than any question has.
MAX_POINTS = 1e6
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; "
    "img-src data:"
)

#: What the page's script says, by the names that it has for it.
_SAID = {
    "nothing": N_("There is nothing to mark."),
    "picture": N_("A picture in the answer"),
    "unsaved": N_("This comment is not saved yet: give points, or press Save."),
    "place": N_("answer {number} of {all}{whose}, {done} marked"),
    "first": N_("Give points first."),
    "yours": N_("{says} Yours was {points}."),
    "lost": N_(" Your comment was: {comment}"),
    "saved": N_("Saved: {points} of {most}."),
    "silent": N_("Not saved: the server does not answer. Is `autograder mark` still running?"),
    "all": N_("All answers to this question are marked."),
}

_environment = jinja2.Environment(
    loader=jinja2.PackageLoader("autograder", "templates"),
    autoescape=True,
    trim_blocks=True,
    undefined=jinja2.StrictUndefined,
)
_environment.globals["_"] = tr


class _Handler(RequestHandler):
    """What all requests have in common: the key, and errors that say what to do."""

    marking: Marking
    key: str
    names: bool

    def initialize(self, marking: Marking, key: str, names: bool) -> None:
        """Be given what the server was started with."""
        self.marking, self.key, self.names = marking, key, names

    def prepare(self) -> None:
        """Refuse who does not know the key, and pages of other addresses."""
        given = self.request.headers.get("X-Key") or self.get_query_argument("key", "")
        host = self.request.host.partition(":")[0]
        if host not in (_HERE, "localhost") or not hmac.compare_digest(
            given.encode(), self.key.encode()
        ):
            raise HTTPError(403, reason="Open the address that `autograder mark` printed")

    def set_default_headers(self) -> None:
        """Nothing is kept by the browser, and nothing comes from elsewhere."""
        self.set_header("Content-Security-Policy", _POLICY)
        self.set_header("Cache-Control", "no-store")
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("X-Content-Type-Options", "nosniff")

    def write_error(self, status_code: int, **details: Any) -> None:
        """An error as the page shows it."""
        error = (details.get("exc_info") or (None, None))[1]
        if isinstance(error, MarkingError):
            self.set_status(400)
            self.finish({"says": str(error)})
        elif isinstance(error, OperationalError):
            self.set_status(503)
            self.finish({"says": tr("The gradebook is busy. Nothing was saved; save again.")})
        else:
            self.finish({"says": self._reason})

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """What the page is told need not stand on the terminal too."""
        if not isinstance(value, (MarkingError, OperationalError)):
            super().log_exception(typ, value, tb)

    def shown(self, answer: Answer, question: str) -> dict[str, Any]:
        """An answer as the page needs it."""
        member = self.marking.folder.roster.by_id.get(answer.student)
        name = (member.full_name if member else "") or answer.student
        return {
            "token": answer.token,
            "name": name if self.names else "",
            "text": answer.text,
            "html": str(with_formulas(answer.text)),
            "pictures": list(answer.pictures),
            "score": answer.score,
            "comment": answer.comment,
            "digest": answer.digest,
            "comments": self.marking.comments(question),
        }


class _Page(_Handler):
    def get(self) -> None:
        """The page itself."""
        questions = [
            {
                "name": question.name,
                "points": question.points,
                "asked": with_formulas(question.asked),
                "scheme": with_formulas(question.scheme),
            }
            for question in self.marking.questions.values()
        ]
        page = _environment.get_template("mark.html.j2").render(
            assignment=self.marking.bundle.title,
            questions=questions,
            key=self.key,
            said={name: tr(text) for name, text in _SAID.items()},
            second=self.marking.second,
            marker=self.marking.marker,
        )
        self.finish(page)


class _Script(RequestHandler):
    def get(self) -> None:
        """The page's script: it holds nothing that is secret."""
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.finish((files("autograder") / "templates" / "mark.js").read_text(encoding="utf-8"))


class _Answers(_Handler):
    def get(self) -> None:
        """The answers to a question, and which are done."""
        tokens = self.marking.tokens(self.get_query_argument("question"))
        self.finish({"answers": [{"token": token, "done": done} for token, done in tokens.items()]})


class _One(_Handler):
    def get(self) -> None:
        """One answer."""
        question, token = (self.get_query_argument(name) for name in ("question", "token"))
        self.finish(self.shown(self.marking.answer(question, token), question))

    def post(self) -> None:
        """Give points. The page says what it showed; where that is not so any more, 409."""
        said = _tree(self.request.body)
        question, token = str(said.get("question", "")), str(said.get("token", ""))
        now = self.marking.answer(question, token)
        text = now.text if said.get("digest") == now.digest else ""
        saw = Answer(token, now.student, text, _score(said), str(said.get("saw_comment", "")))
        try:
            comment = str(said.get("comment", ""))
            answer = self.marking.give(question, token, said.get("points"), comment, seen=saw)
        except Conflict as conflict:
            self.set_status(409)
            self.finish({"says": str(conflict), "now": self.shown(conflict.now, question)})
            return
        self.finish(self.shown(answer, question))


def _score(said: dict[str, Any]) -> float | None:
    """The points that the page showed."""
    score = said.get("saw")
    if score is None:
        return None
    if isinstance(score, (int, float)) and abs(score) <= MAX_POINTS:
        return float(score)
    raise HTTPError(400, reason="What was seen is no number of points")


def _tree(body: bytes) -> dict[str, Any]:
    try:
        tree = json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPError(400, reason="That is no JSON") from None
    if not isinstance(tree, dict):
        raise HTTPError(400, reason="That is no JSON object")
    return tree


def application(marking: Marking, key: str, *, names: bool) -> Application:
    """The web application, without a server."""
    about = {"marking": marking, "key": key, "names": names}
    return Application(
        [
            ("/", _Page, about),
            ("/mark.js", _Script),
            ("/answers", _Answers, about),
            ("/answer", _One, about),
        ]
    )


def serve(
    marking: Marking, *, names: bool, port: int = 0, say: Callable[[str], None] = print
) -> None:
    """Serve the page until interrupted, in the language of the class.

    Args:
        marking: what is marked.
        names: whether the page says whose an answer is.
        port: of this machine; any free one if 0.
        say: is told the address.
    """

    async def run() -> None:
        key = secrets.token_urlsafe(24)
        server = HTTPServer(application(marking, key, names=names), max_body_size=2**20)
        sockets = bind_sockets(port, _HERE)
        server.add_sockets(sockets)
        say(f"http://{_HERE}:{sockets[0].getsockname()[1]}/?key={key}")
        await asyncio.Event().wait()

    with speaking(engine_words(marking.folder.language)):
        asyncio.run(run())
