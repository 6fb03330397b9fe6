"""No attack of the corpus earns a point, harms a neighbour or learns a secret; right is right."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
import torch
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from nbgrader.api import Gradebook

from autograder.box.boxes import Boxes
from autograder.box.sandbox import NONE
from autograder.build.build import write_source
from autograder.classroom.folder import ClassFolder
from autograder.classroom.gradebook import open_gradebook, record
from autograder.classroom.grades_file import GradedSubmission, table
from autograder.cli.main import main
from autograder.course.bundle import Bundle, TestCell
from autograder.grade.course_code import CourseCode
from autograder.grade.grading import grade
from autograder.grade.result import Result
from autograder.marking.feedback import feedback_page
from autograder.marking.grade_class import grade_class
from autograder.notebooks import grade_id
from autograder.text import plain_line
from lesson_kit.exceptions import REFUSED

from ..classes import AtOnce, grade_here, new
from ..conftest import ROOT, sampled
from ..submissions import as_bytes, boxes, graded, notebook_with, points, why_not_confined
from ..tiny import tiny_course
from .attacks import CORPUS, FULL, HONEST, MARK, SECRET, WRONG, Attack

KNOWN_OUTCOMES = {"passed", "failed", "not_attempted", "timeout", "crashed", "missing"}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("tiny")
    lesson = tiny_course(folder).lesson("01")
    write_source(lesson, folder / "source" / lesson.folder)
    return Bundle.load(folder / "source" / lesson.folder)


@pytest.mark.parametrize(
    "odd", ["9" * 400, "1e200 ** 99", " + ".join(["1"] * 400), "-" * 3000 + "1", "x" + ".T" * 900]
)
def test_an_odd_literal_costs_the_sentence_at_most(bundle: Bundle, odd: str) -> None:
    answer = f"def double(x):\n    x = np.asarray(x)\n    y = lambda: {odd}\n    return 3 * x\n"
    verdict = graded(bundle, notebook_with(bundle, {"double": answer}))
    assert points(verdict) == {**FULL, "double": 0.0}
    assert all(flag.kind == "not_named" for flag in verdict.flags)


def test_whatever_naming_raises_costs_no_point_and_is_counted(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def falls_over(*_: object) -> None:
        raise OverflowError

    monkeypatch.setattr("autograder.grade.failed_exercises.remaining", falls_over)
    monkeypatch.setattr("autograder.grade.failed_exercises.repaired", falls_over)
    verdict = graded(bundle, notebook_with(bundle, {"double": WRONG["double"]}))
    assert points(verdict) == {**FULL, "double": 0.0}
    assert [(flag.kind, flag.cell) for flag in verdict.flags] == [
        ("not_named", "double"),
        ("not_named", "quadruple"),
    ]
    assert "(OverflowError)" in str(verdict.flags[0])


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A class that attacks know the path of; every file in it holds the secret."""
    folder = tmp_path_factory.mktemp("class")
    for name in ("gradebook.db", "source/tiny.ipynb", "submitted/zoe/tiny.ipynb"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SECRET)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777)  # so that nothing but the sandbox keeps an attack away
    for path in folder.parents:
        if path.stat().st_uid == os.getuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o111)
    os.environ["GRADER_SECRET"] = SECRET
    yield folder
    del os.environ["GRADER_SECRET"]


def fingerprint(*folders: Path) -> str:
    whole = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix != ".pyc" and path.name != "__pycache__":
                whole.update(str(path).encode())
                whole.update(path.read_bytes() if path.is_file() else b"")
    return whole.hexdigest()


def left_behind(outside: Path) -> list[Path]:
    places = [Path(place) for place in ("/tmp", "/var/tmp", "/dev/shm", "/dev", "/run", "/")]
    places += [Path.home(), Path.cwd(), ROOT / "autograder", outside]
    return [place / MARK for place in places if (place / MARK).exists()]


def explained(verdict: Result) -> str:
    """All that says why the points are what they are."""
    parts = [verdict.reason, *map(str, verdict.flags), *(test.says for test in verdict.tests)]
    parts += [part for run in verdict.runs for part in (run.output, run.error)]
    return "\n".join(parts)


def name(attack: Attack) -> str:
    return attack.name


def test_the_corpus_is_a_corpus() -> None:
    assert len(CORPUS) >= 60 and len(HONEST) >= 15
    names = [attack.name for attack in (*CORPUS, *HONEST)]
    assert len(names) == len(set(names))
    assert all(attack.tries.endswith(".") for attack in (*CORPUS, *HONEST))


def test_an_honest_student_before(bundle: Bundle) -> None:
    assert points(graded(bundle, notebook_with(bundle))) == FULL


@pytest.mark.parametrize("attack", sampled(CORPUS), ids=name)
def test_an_attack_earns_its_due_and_touches_nobody(
    attack: Attack, bundle: Bundle, outside: Path
) -> None:
    if attack.confined and (why := why_not_confined()):
        pytest.skip(f"Only a sandbox stops it. {why}")
    before = fingerprint(outside, ROOT / "autograder")
    verdict = graded(bundle, attack.make(bundle, outside), limits=attack.limits)

    assert verdict.status == attack.status
    assert points(verdict) == attack.points
    for test in verdict.tests:
        assert test.outcome in KNOWN_OUTCOMES
        assert test.message or test.outcome == "passed", f"{test.grade_id} has no reason"
        if test.grade_id in attack.outcomes:
            assert test.outcome == attack.outcomes[test.grade_id]
    # A busy machine takes its time; without a limit at all the worst take hours.
    assert verdict.seconds < attack.limits.notebook + attack.limits.test + 60
    reasons = explained(verdict)
    assert attack.says in reasons
    assert "GOT" not in reasons and SECRET not in reasons
    if attack.tried:
        assert "TRIED" in reasons

    page = feedback_page(GradedSubmission("mallory", verdict), bundle, {})
    page.encode()
    assert "LEAK" not in page
    assert all(len(part) < 25_000 for part in reasons.split("\n"))
    for test in verdict.tests:
        assert not set(test.says) & set("\x00\x07\x1b\x9b\u202e\ud800")

    assert fingerprint(outside, ROOT / "autograder") == before
    assert not left_behind(outside)
    assert points(graded(bundle, notebook_with(bundle))) == FULL, "the next student suffers"


@pytest.mark.slow
def test_a_leak_in_the_box_would_be_seen(bundle: Bundle, outside: Path) -> None:
    """Without a sandbox the attack that reads what is outside gets it, and says so."""
    (attack,) = [one for one in CORPUS if one.name == "read the class"]
    with contextlib.closing(Boxes(NONE)) as open_boxes:
        data = attack.make(bundle, outside)
        verdict = grade(data, bundle, make_box=open_boxes.start, seed=1, limits=attack.limits)
    assert "GOT" in explained(verdict) and SECRET in explained(verdict)


@pytest.mark.parametrize("attack", sampled(HONEST), ids=name)
def test_right_answers_in_strange_clothes_get_everything(
    attack: Attack, bundle: Bundle, outside: Path
) -> None:
    verdict = graded(bundle, attack.make(bundle, outside), limits=attack.limits)
    assert points(verdict) == FULL, explained(verdict)


# A class whose folder is full of tricks ---------------------------------------------------------

STUDENTS = {
    "formula": "=HYPERLINK('http:evil')",
    "plus": "+1+1",
    "at": "@SUM(1)",
    "minus": "-1",
    "sql": "a'); DROP TABLE grade;--",
    "html": "&lt;script&gt;alert('1')",
    "dots": "...",
    "spaces": "  two words ",
}


def hand_in(folder: ClassFolder, student: str, data: bytes, called: str = "tiny.ipynb") -> Path:
    path = folder.root / "submitted" / student / "01-tiny" / called
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def instead_of_a_file(folder: ClassFolder, student: str) -> Path:
    path = hand_in(folder, student, b"")
    path.unlink()
    return path


def markdown_attacks(notebook: NotebookNode) -> None:
    """Everything that could run in the browser of whoever grades."""
    tricks = [
        "<script>LIVE</script><img src=x onerror=LIVE><svg/onload=LIVE>",
        r"[x](javascript\:LIVE) [y](&#106;avascript:LIVE) [z](javascript&colon;LIVE)",
        "[x][y]\n\n[y]: javascript\\:LIVE",
        "![x](attachment:none.png) ![y](http://localhost/track.png)",
        "<iframe srcdoc='<script>LIVE</script>'>",
        r"$\href{javascript:LIVE}{x}$",
        "`` <script>LIVE</script> ``",
    ]
    for one in notebook.cells:
        if grade_id(one) == "written_why":
            one.source = "\n\n".join(tricks)
    notebook.cells += [nbformat.v4.new_markdown_cell(trick) for trick in tricks]
    html = {"text/html": "<script>LIVE</script>", "application/javascript": "LIVE"}
    picture = {"image/svg+xml": "<svg onload=LIVE>", "image/png": "<script>LIVE</script>"}
    outputs = [
        nbformat.v4.new_output("display_data", data=html),
        nbformat.v4.new_output("display_data", data=picture),
        nbformat.v4.new_output("execute_result", data={"text/latex": r"\href{javascript:LIVE}{x}"}),
        nbformat.v4.new_output("stream", text="<script>LIVE</script>\x1b]8;;javascript:LIVE\x07x"),
        nbformat.v4.new_output("error", ename="<img onerror=LIVE>", evalue="", traceback=["LIVE"]),
    ]
    notebook.cells.append(nbformat.v4.new_code_cell("'<script>LIVE</script>'", outputs=outputs))
    for one in notebook.cells:
        if grade_id(one) == "double":
            one.source = "def double(x):\n    raise TypeError('<script>LIVE</script>')\n"


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory) -> ClassFolder:
    """A class with honest students first and last, graded once."""
    place = tmp_path_factory.mktemp("school")
    folder = new(place)
    settings = folder.root / "class.toml"  # one of them goes on for ever
    settings.write_text(re.sub(r"^test = .*$", "test = 1", settings.read_text(), flags=re.M))
    folder = ClassFolder.open(folder.root)
    bundle = folder.bundle("01-tiny")
    right = as_bytes(notebook_with(bundle))
    wrong = as_bytes(notebook_with(bundle, WRONG))
    for student in ("aaron", "zoe", *STUDENTS.values()):
        hand_in(folder, student, right)

    source = folder.root / "source" / "01-tiny" / "tiny.ipynb"
    instead_of_a_file(folder, "link to the source").symlink_to(source)
    neighbour = folder.root / "submitted" / "zoe" / "01-tiny" / "tiny.ipynb"
    instead_of_a_file(folder, "link to a neighbour").symlink_to(neighbour)
    instead_of_a_file(folder, "link to nothing").symlink_to("nothing")
    instead_of_a_file(folder, "link to a device").symlink_to("/dev/zero")
    os.mkfifo(instead_of_a_file(folder, "pipe"))
    instead_of_a_file(folder, "folder").mkdir()
    with instead_of_a_file(folder, "huge").open("wb") as file:
        file.truncate(2**40)
    (folder.root / "submitted" / "linked folder").mkdir()
    (folder.root / "submitted" / "linked folder" / "01-tiny").symlink_to(source.parent)

    for shadow in (
        "torch",
        "numpy",
        "lesson_kit",
        "lesson_kit/checks",
        "lesson",
        "lesson/checks",
        "sitecustomize",
        "autograder",
    ):
        hand_in(
            folder,
            "shadows",
            b"def __getattr__(name): return lambda *a, **k: None\n",
            f"{shadow}.py",
        )
    hand_in(folder, "shadows", b"c.CourseDirectory.root = '/'\n", "nbgrader_config.py")
    hand_in(
        folder,
        "shadows",
        b'{"answers": {"answer_size": {"choices": ["a"], "replies": {}}}}',
        "lesson_data.json",
    )
    hand_in(folder, "shadows", wrong)
    hand_in(folder, "escapes", wrong, "\x1b[2J\u202e=1.ipynb")
    os.rename(
        hand_in(folder, "bytes", wrong, "a.ipynb"),
        os.fsencode(folder.root / "submitted" / "bytes" / "01-tiny") + b"/\xff\xfe.ipynb",
    )
    for number in range(300):
        hand_in(folder, "many", wrong, f"{number}.ipynb")
    notebook = notebook_with(bundle, WRONG)
    markdown_attacks(notebook)
    hand_in(folder, "browser", as_bytes(notebook))
    for attack in CORPUS:
        if attack.name in ("half characters", "a deep output", "escapes in a message"):
            hand_in(folder, attack.name, attack.make(bundle, place))
    with open_gradebook(folder.db_url) as gradebook:  # full points from an earlier hand-in
        record(gradebook, "again", graded(bundle, right), set)
    hand_in(folder, "again", attacking(bundle, "import os\nwhile True: os.kill(os.getpid(), 9)"))
    grade_class(folder, workers=1, sandbox=boxes().backend, quiet=True)
    return folder


def attacking(bundle: Bundle, source: str) -> bytes:
    notebook = notebook_with(
        bundle, {"double": f"def double(x):\n    {source.replace(chr(10), chr(10) + '    ')}\n"}
    )
    return as_bytes(notebook)


def entries(folder: ClassFolder) -> dict[str, dict[str, Any]]:
    tree = json.loads((folder.root / "grades.json").read_text(encoding="utf-8"))
    return {entry["student"]: entry for entry in tree["submissions"]}


@pytest.mark.slow
def test_everyone_in_the_school_gets_their_due(school: ClassFolder) -> None:
    found = {who: (one["status"], one["score"]) for who, one in entries(school).items()}
    due: dict[str, tuple[str, float]] = dict.fromkeys(
        ("aaron", "zoe", *STUDENTS.values()), ("graded", 8.0)
    )
    due |= dict.fromkeys(
        (
            "link to the source",
            "link to a neighbour",
            "link to nothing",
            "link to a device",
            "pipe",
            "folder",
            "huge",
            "linked folder",
        ),
        ("unreadable", 0.0),
    )
    due |= dict.fromkeys(
        (
            "shadows",
            "escapes",
            "bytes",
            "browser",
            "half characters",
            "a deep output",
            "escapes in a message",
        ),
        ("graded", 0.0),
    )
    due |= {"many": ("missing", 0.0), "again": ("graded", 5.0)}
    assert found == due
    for entry in entries(school).values():
        assert entry["status"] == "graded" or entry["reason"]
        assert len(entry["reason"]) < 1000
    with Gradebook(school.db_url) as gradebook:
        scores = {s.student.id: s.score for s in gradebook.assignment_submissions("01-tiny")}
    assert scores == {who: score for who, (_, score) in due.items()}


@pytest.mark.slow
def test_a_spreadsheet_finds_no_formula(school: ClassFolder) -> None:
    """An apostrophe before what begins like a formula; grades.json has the exact name."""
    with (school.root / "grades.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == len(entries(school)) + 1
    assert not any(
        value.startswith(("=", "+", "-", "@", "\t", "\r")) for row in rows for value in row
    )
    assert "'=HYPERLINK('http:evil')" in [row[0] for row in rows]
    assert {"=HYPERLINK('http:evil')", "-1"} <= set(entries(school))


@pytest.mark.parametrize(
    "name", ["<script>alert(1)<", '" autofocus onfocus="x', 'q";alert(1);"', "back\\slash"]
)
def test_a_folder_that_would_be_a_script_in_the_formgrader_is_no_students(
    name: str, tmp_path: Path
) -> None:
    folder = new(tmp_path)
    for student in (name, "ada"):
        (folder.root / "submitted" / student / "01-tiny").mkdir(parents=True)
    handins, strangers = folder.handins()
    assert [one.student for one in handins] == ["ada"]
    assert strangers == [name]


@pytest.mark.slow
def test_no_script_reaches_a_browser(school: ClassFolder) -> None:
    for student in ("browser", STUDENTS["html"], "escapes", "half characters"):
        page = (school.root / "feedback" / student / "01-tiny" / "tiny.html").read_text()
        assert "<script" not in page and "<img" not in page and "<svg" not in page
        notebook = nbformat.read(
            school.root / "autograded" / student / "01-tiny" / "tiny.ipynb", as_version=4
        )
        nbformat.validate(notebook)
        whole, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)
        tags = Tags()
        tags.feed(whole)
        assert not tags.live


class Tags(HTMLParser):
    """Collects what a browser would run or fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.live: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "iframe", "svg", "img", "object", "embed", "link", "meta", "form"):
            self.live.append(tag)
        for key, value in attrs:
            scheme = "".join((value or "").split()).lower()
            if key.startswith("on") or (
                key in ("href", "src") and not scheme.startswith(("http", "#"))
            ):
                self.live.append(f"{key}={value}")


@pytest.mark.slow
def test_what_goes_back_to_an_lms_stays_in_its_folders(
    school: ClassFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(
        ["export", str(school.root), "--to", "feedback", "--output", str(tmp_path / "pages.zip")]
    ) in (
        0,
        1,
    )
    with zipfile.ZipFile(tmp_path / "pages.zip") as packed:
        names = packed.namelist()
        assert not any("<script" in packed.read(name).decode() for name in names)
    assert len(names) > 10 and len(set(names)) == len(names)
    for name in names:
        assert not name.startswith("/") and ".." not in Path(name).parts and "\\" not in name
        assert plain_line(name) == name and name.endswith(".html")
    said = capsys.readouterr()
    assert not set(said.out + said.err) & set("\x1b\u202e")


@pytest.mark.slow
def test_a_request_is_text_and_nobody_elses(
    school: ClassFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["=1+1", "\x1b[2Jroot", "../aaron", "browser\u202e", "aaron"]
    rows = "".join(f'"{who}",01-tiny,double,"=HYPERLINK(1)\x1b[2J"\n' for who in asked)
    (school.root / "requests.csv").write_text(f"id,assignment,exercise,text\n{rows}")
    assert main(["report", str(school.root), "--about", "requests"]) == 1
    said = capsys.readouterr()
    assert not set(said.out + said.err) & set("\x1b\u202e")
    assert "1 request," in said.out and len(said.err.splitlines()) == 4
    (school.root / "requests.csv").unlink()


@pytest.mark.slow
def test_a_notebook_that_is_replaced_while_it_is_graded_has_the_verdict_of_what_was_read(
    tmp_path: Path,
) -> None:
    folder = new(tmp_path)
    bundle = folder.bundle("01-tiny")
    right, wrong = (as_bytes(notebook_with(bundle, one)) for one in ({}, WRONG))
    hand_in(folder, "ada", wrong)
    hand_in(folder, "bob", right)

    grade_here(
        folder, AtOnce(lambda: (hand_in(folder, "ada", right), hand_in(folder, "bob", wrong)))
    )
    first = {who: one["score"] for who, one in entries(folder).items()}
    grade_here(folder)
    assert first in ({"ada": 0.0, "bob": 8.0}, {"ada": 0.0, "bob": 0.0})  # bob's is read later
    assert {who: one["score"] for who, one in entries(folder).items()} == {"ada": 8.0, "bob": 0.0}


@pytest.mark.slow
def test_no_escape_reaches_a_terminal(school: ClassFolder) -> None:
    lines = table(
        [GradedSubmission("\x1b[2J\nroot  8/8\u202e", Result("01-tiny", "tiny", "graded"))]
    )
    assert len(lines.splitlines()) == 3
    assert not set(lines) & set("\x1b\u202e")
    assert not set(entries(school)["escapes"]["flags"][0]) & set("\x1b\u202e")
    assert "�" in entries(school)["bytes"]["flags"][0]


def test_a_hidden_test_names_no_class_of_the_students(bundle: Bundle) -> None:
    """Without a check around the call, the exception itself reaches the tester."""
    hidden = "### BEGIN HIDDEN TESTS\ndouble(np.array([-3.0]))\n### END HIDDEN TESTS\n"
    bare = replace(bundle, tests=(TestCell("test_double_errors", "double", 1.0, hidden),))
    said = set()
    for raised in ("type(f'told {x}', (TypeError,), {})()", "KeyError(f'told {x}')", "OSError"):
        answer = f"def double(x):\n    raise {raised}\n"
        (test,) = graded(bare, notebook_with(bundle, {"double": answer})).tests
        assert test.outcome == "failed"
        said.add(test.message)
    assert said == {
        f"Your code raised an error. {REFUSED}"
    }  # nor does it choose among built-in ones


@pytest.mark.skipif(bool(why_not_confined()), reason=why_not_confined())
def test_a_box_has_no_terminal_and_no_numbers_of_processes(bundle: Bundle) -> None:
    """One box could take all terminals; pidfds are numbered across all boxes."""
    tried = (
        "import os\nfor call in (os.openpty, lambda: os.pidfd_open(os.getpid())):\n"
        "    try:\n        call()\n        print('had it')\n"
        "    except OSError:\n        print('refused')\n"
    )
    notebook = notebook_with(bundle)
    notebook.cells.append(nbformat.v4.new_code_cell(tried))
    outputs = "".join(run.output for run in graded(bundle, notebook).runs)
    assert outputs.count("refused") == 2 and "had it" not in outputs


def test_what_a_box_lets_the_courses_own_code_compute_is_bounded() -> None:
    names = {"np": np, "torch": torch, "nn": torch.nn}
    code = CourseCode(names, {"squared": "def squared(x):\n    return x @ x.T\n"})
    asked = {"op": "call", "name": "squared", "kwargs": {}}
    said = code.answer(frozenset(["squared"]), {**asked, "args": (np.ones((3, 2)),)})
    assert said["value"].shape == (3, 3)
    said = code.answer(frozenset(["squared"]), {**asked, "args": ([np.ones((1000, 600))],)})
    assert "more than 524288 numbers" in said["error"]["text"]
