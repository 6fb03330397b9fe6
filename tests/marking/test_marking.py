"""Marking written answers by question: whose they are, several people at once, nothing lost."""

from __future__ import annotations

import asyncio
import html
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook
from sqlalchemy.exc import OperationalError
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from autograder.classroom.folder import ClassFolder
from autograder.classroom.grades_file import read_grades
from autograder.classroom.marking_log import MARKING_LOG, Given, agreements, given_so_far, note
from autograder.course.translation import engine_words
from autograder.marking.by_question import Marking
from autograder.marking.mark_server import application
from autograder.marking.questions import Conflict, MarkingError, Share
from autograder.report.class_report import write_report
from lesson_kit.words import speaking

from ..browser.window import needs_chromium, window
from ..classes import LESSON, grade_here, hand_in, new, scores_in_gradebook, solved
from ..pages_in_german import left_in_english

QUESTION = "written_why"
STUDENTS = ("ada", "bob", "cleo", "dan")
ROSTER = "id,first_name,last_name,email,status\nzoe,Zoe,Gone,,withdrawn\n"
KEY = "a-key"


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> ClassFolder:
    """Four answers to read, an empty one, and one of somebody who withdrew."""
    folder = new(tmp_path_factory.mktemp("marking"))
    names = "".join(f"{who},{who.title()},Lovelace,,\n" for who in (*STUDENTS, "eve"))
    (folder.root / "roster.csv").write_text(ROSTER + names)
    folder = ClassFolder.open(folder.root)
    for who in (*STUDENTS, "zoe"):
        hand_in(folder, who, solved(folder, why=f"Because $x^2$ <b>says</b> number {len(who)}."))
    hand_in(folder, "eve", solved(folder))
    grade_here(folder)
    return folder


@pytest.fixture
def folder(graded: ClassFolder) -> Iterator[ClassFolder]:
    """The same class with nothing marked."""
    yield graded
    (graded.root / MARKING_LOG).unlink(missing_ok=True)
    with Gradebook(graded.db_url) as gradebook:
        for who in STUDENTS:
            grade = gradebook.find_grade(QUESTION, "tiny", LESSON, who)
            grade.manual_score, grade.needs_manual_grade = None, True
            gradebook.find_comment(QUESTION, "tiny", LESSON, who).manual_comment = None
        gradebook.db.commit()


@contextmanager
def marking(folder: ClassFolder, marker: str = "anna", **more: Any) -> Iterator[Marking]:
    with Gradebook(folder.db_url) as gradebook:
        yield Marking(folder, gradebook, LESSON, marker=marker, **more)


@pytest.mark.slow
def test_every_answer_to_a_question_and_nobody_is_named(folder: ClassFolder) -> None:
    with marking(folder) as one:
        tokens = one.tokens(QUESTION)
        assert len(tokens) == len(STUDENTS) and not any(tokens.values())
        # Tokens are hexadecimal, and so is "ada": that may stand in one by chance.
        assert not any(who in token for token in tokens for who in set(STUDENTS) - {"ada"})
        assert "Marking scheme" in one.questions[QUESTION].scheme
        assert {one.answer(QUESTION, token).student for token in tokens} == set(STUDENTS)


def test_points_are_in_the_gradebook_at_once(folder: ClassFolder) -> None:
    with marking(folder) as one:
        token = next(iter(one.tokens(QUESTION)))
        given = one.give(QUESTION, token, 2.5, "Why though?")
        assert (given.score, given.comment) == (2.5, "Why though?")
        assert one.tokens(QUESTION)[token] is True
        assert one.comments(QUESTION) == ["Why though?"]
        assert scores_in_gradebook(folder)[given.student] == 10.5
        for points in (-1, 3.5, float("nan"), "2", None, True):
            with pytest.raises(MarkingError, match="0 to 3"):
                one.give(QUESTION, token, points, "")
        with pytest.raises(MarkingError, match="not there any more"):
            one.give(QUESTION, "0" * 16, 1, "")
    assert scores_in_gradebook(folder)[given.student] == 10.5


def test_points_stay_saved_where_the_gradebook_is_busy_afterwards(
    folder: ClassFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: Any) -> None:
        raise OperationalError("UPDATE", {}, Exception("database is locked"))

    monkeypatch.setattr("autograder.marking.by_question.settle", busy)
    with marking(folder) as one:
        token = next(iter(one.tokens(QUESTION)))
        student = one.give(QUESTION, token, 2, "Saved.").student
    assert scores_in_gradebook(folder)[student] == 10.0


def test_shares_hold_each_answer_once(folder: ClassFolder) -> None:
    shares = [Share(number, 3) for number in (1, 2, 3)]
    found = []
    for share in shares:
        with marking(folder, share=share) as one:
            found += one.tokens(QUESTION)
    assert len(found) == len(set(found)) == len(STUDENTS)
    assert Share.parse("2/10", []) == Share(2, 10)
    assert Share.parse("ben", ["anna", "ben"]) == Share(2, 2)
    for wrong in ("0/3", "4/3", "ben", "1/0", "-1/3"):
        with pytest.raises(MarkingError, match="--share"):
            Share.parse(wrong, [])


def test_who_saw_other_points_overwrites_nothing(folder: ClassFolder) -> None:
    with marking(folder) as anna, marking(folder, "ben") as ben:
        token = next(iter(anna.tokens(QUESTION)))
        seen = ben.answer(QUESTION, token)
        anna.give(QUESTION, token, 3, "Good.", seen=seen)
        with pytest.raises(Conflict, match="Somebody else") as refused:
            ben.give(QUESTION, token, 1, "No.", seen=seen)
        assert (refused.value.now.score, refused.value.now.comment) == (3, "Good.")
        # The same points and another comment are a conflict too.
        seen = ben.answer(QUESTION, token)
        anna.give(QUESTION, token, 3, "Very good.", seen=seen)
        with pytest.raises(Conflict):
            ben.give(QUESTION, token, 3, "No.", seen=seen)
        assert anna.answer(QUESTION, token).comment == "Very good."
        assert ben.give(QUESTION, token, 1, "No.").score == 1


def test_no_grade_is_lost_when_two_save_at_once(folder: ClassFolder) -> None:
    """Two people press a key at the same moment, on every answer: one of them is told."""
    with marking(folder) as one:
        tokens = list(one.tokens(QUESTION))
    told: dict[str, list[float]] = {token: [] for token in tokens}
    refused: list[str] = []
    both = threading.Barrier(2)

    def mark(marker: str, points: float) -> None:
        with marking(folder, marker) as me:
            for token in tokens:
                seen = me.answer(QUESTION, token)
                both.wait(timeout=300)
                try:
                    told[token].append(me.give(QUESTION, token, points, "", seen=seen).score or 0)
                except Conflict:
                    refused.append(token)
                both.wait(timeout=300)

    threads = [threading.Thread(target=mark, args=pair) for pair in (("anna", 1), ("ben", 2))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=600)
    assert sorted(refused) == sorted(tokens)
    with marking(folder) as one:
        for token in tokens:
            assert [one.answer(QUESTION, token).score] == told[token]
    assert len(given_so_far(folder)) == len(tokens)


def test_a_second_marker_is_compared_and_counts_nowhere(folder: ClassFolder) -> None:
    with marking(folder) as anna:
        for token, points in zip(anna.tokens(QUESTION), (3, 2, 1)):
            anna.give(QUESTION, token, points, "Seen.")
    before = scores_in_gradebook(folder)
    with marking(folder, "ben", second=2) as ben:
        tokens = ben.tokens(QUESTION)
        assert len(tokens) == 2 and not any(tokens.values())
        first = ben.answer(QUESTION, next(iter(tokens)))
        assert (first.score, first.comment) == (None, "")
        for token, points in zip(tokens, (3, 1)):
            assert ben.give(QUESTION, token, points, "").score == points
        assert all(ben.tokens(QUESTION).values())
    assert scores_in_gradebook(folder) == before
    (found,) = agreements(given_so_far(folder))
    assert (found.answers, found.equal, found.mean_difference) == (2, 1, 0.5)
    assert write_report(folder).agreements == (found,)
    assert "Two markers" in (folder.root / "report.html").read_text()
    assert read_grades(folder)


def test_a_comment_with_line_ends_of_unicode_is_kept(tmp_path: Path) -> None:
    """A student can plant them in an answer for whoever copies a piece of it."""
    given = Given(
        "2026", "anna", LESSON, QUESTION, "ada", 2.0, "You say \u2018a\u2028b\u2029\u2019."
    )
    note(ClassFolder(tmp_path), given)
    note(ClassFolder(tmp_path), given)
    assert given_so_far(ClassFolder(tmp_path)) == [given, given]


class Server:
    """The page of one marker, served by a thread."""

    def __init__(self, folder: ClassFolder, marker: str, **more: Any) -> None:
        self.ready = threading.Event()
        self.ended = asyncio.Event()
        self._given = folder, marker, more
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    async def _run(self) -> None:
        folder, marker, more = self._given
        with marking(folder, marker, **more) as one:
            server = HTTPServer(application(one, KEY, names=False))
            sockets = bind_sockets(0, "127.0.0.1")
            server.add_sockets(sockets)
            self.url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/"
            self.loop = asyncio.get_running_loop()
            self.ready.set()
            await self.ended.wait()
            server.stop()

    def __enter__(self) -> Server:
        self._thread.start()
        assert self.ready.wait(300)
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self.ended.set)
        self._thread.join(300)

    def ask(self, path: str, body: Any = None, key: str = KEY) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"X-Key": key})
        try:
            with urllib.request.urlopen(request, timeout=300) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())


def test_the_page_is_in_the_language_of_the_class(folder: ClassFolder) -> None:
    pages = []
    for language in ("en", "de"):
        with speaking(engine_words(language)), Server(folder, "anna") as server:
            with urllib.request.urlopen(f"{server.url}?key={KEY}", timeout=300) as reply:
                pages.append(reply.read().decode())
            status, tree = server.ask(f"answer?question={QUESTION}&token=none")
            assert status == 400
    assert left_in_english(*pages, same="anna|Tiny|Because|Ctrl|Enter|written") == set()
    assert '"nothing": "Es gibt nichts zu bewerten."' in html.unescape(pages[1])
    assert tree["says"] == "diese Antwort gibt es nicht mehr: neu abgegeben oder leer"


def test_the_server_serves_who_knows_the_key(folder: ClassFolder) -> None:
    with Server(folder, "anna") as server:
        asked = f"answers?question={QUESTION}"
        assert server.ask(asked, key="wrong")[0] == 403
        status, tree = server.ask(asked)
        token = tree["answers"][0]["token"]
        assert status == 200 and len(tree["answers"]) == len(STUDENTS)
        status, seen = server.ask(f"answer?question={QUESTION}&token={token}")
        assert "&lt; b&gt;says" in seen["html"] and "<b" not in seen["html"]
        assert "<math" in seen["html"]
        assert seen["name"] == ""
        sent = {"question": QUESTION, "token": token, "points": 2, "comment": "So."}
        sent |= {"saw": None, "saw_comment": "", "digest": seen["digest"]}
        assert server.ask("answer", sent)[1]["score"] == 2
        status, tree = server.ask("answer", {**sent, "points": 1})
        assert status == 409 and tree["now"]["score"] == 2
        status, tree = server.ask("answer", {**sent, "saw": 2, "saw_comment": "So.", "points": 9})
        assert status == 400 and "0 to 3" in tree["says"]
        status, tree = server.ask("answer", {**sent, "saw": 2, "digest": "another"})
        assert status == 409 and "handed in again" in tree["says"]
        assert server.ask("answers?question=other")[0] == 400
        fresh = {**sent, "saw": 2, "saw_comment": "So."}
        for odd in ({"points": 10**400}, {"points": float("nan")}, {"saw": {}}, {"saw": 10**400}):
            assert server.ask("answer", {**fresh, **odd})[0] == 400, odd
        deep = "[" * 100_000 + "]" * 100_000
        request = urllib.request.Request(server.url + "answer", deep.encode(), {"X-Key": KEY})
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(request, timeout=300)


@pytest.mark.slow
@needs_chromium
def test_two_markers_at_once_in_a_browser(folder: ClassFolder, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    with Server(folder, "anna") as here, Server(folder, "ben") as there, window() as browser:
        anna = browser.open(f"{here.url}?key={KEY}")
        ben = browser.open(f"{there.url}?key={KEY}")
        for page in (anna, ben):
            expect(page.locator("#place")).to_contain_text("answer 1 of 4, 0 marked")
            expect(page.locator("#answer math")).to_have_count(1)
            expect(page.get_by_text("Marking scheme").first).to_be_visible()
        anna.keyboard.press("c")
        anna.keyboard.type("Say why.")
        anna.keyboard.press("Escape")
        anna.keyboard.press("3")
        expect(anna.locator("#place")).to_contain_text("answer 2 of 4, 1 marked")
        # Ben still sees the first answer without points: his do not overwrite hers.
        ben.keyboard.press("1")
        expect(ben.locator("#says")).to_contain_text("Somebody else has marked this meanwhile")
        expect(ben.locator("#says")).to_contain_text("Yours was 1.")
        expect(ben.locator("#points button[aria-pressed=true]")).to_have_text("3")
        ben.keyboard.press("u")
        expect(ben.locator("#place")).to_contain_text("answer 2 of 4")
        ben.get_by_role("button", name="Say why.").click()
        ben.keyboard.press("Escape")
        ben.keyboard.press("2")
        expect(ben.locator("#place")).to_contain_text("answer 3 of 4")
        # A comment that he has not saved is there when he comes back.
        ben.keyboard.press("c")
        ben.keyboard.type("Half of it.")
        ben.keyboard.press("Escape")
        ben.keyboard.press("n")
        expect(ben.locator("#place")).to_contain_text("answer 4 of 4")
        expect(ben.locator("#comment")).to_have_value("")
        ben.keyboard.press("p")
        expect(ben.locator("#comment")).to_have_value("Half of it.")
        expect(ben.locator("#says")).to_contain_text("not saved yet")
        assert not browser.asked_outside
    given = [(one.marker, one.points, one.comment) for one in given_so_far(folder)]
    assert given == [("anna", 3.0, "Say why."), ("ben", 2.0, "Say why.")]
    assert sorted(scores_in_gradebook(folder).values()) == [8.0, 8.0, 8.0, 8.0, 10.0, 11.0]
