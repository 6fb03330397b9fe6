"""A class reads another language: lesson 02 and all boxes in German, others in English."""

from __future__ import annotations

import html
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from autograder.authors.translating import engine_templates, not_translated, remarks, unfit
from autograder.build.build import generate_release, nbgrader_config, write_source
from autograder.classroom.folder import ClassFolder
from autograder.classroom.grades_file import GradedSubmission
from autograder.classroom.new_class import new_class
from autograder.cli.main import main
from autograder.course.bundle import Bundle
from autograder.course.implementations import misconceptions
from autograder.course.languages import languages
from autograder.course.translation import (
    course_in,
    engine_catalogues,
    sealed_words,
    words_of,
)
from autograder.errors import WrongUse
from autograder.marking.feedback import feedback_page
from autograder.notebooks import SETUP, grade_id, tags
from autograder.report.class_report import write_report
from lesson_kit.attention_view import page_of
from lesson_kit.chat_window import chat_window
from lesson_kit.own_frame import as_markdown
from lesson_kit.words import packed, said, speaking, tr_n, words_in

from ..conftest import COURSE, shown
from ..hand_outs import TINY, cell_named, handed_out, read
from ..pages_in_german import left_in_english
from ..played import Notebook, run
from ..report_class import CLASS, a_class
from ..submissions import graded, notebook_with
from ..tiny import tiny_course

#: What the tiny course.toml says, translated.
TINY_PO = """
msgid "A tiny course"
msgstr "Ein winziger Kurs"

msgid "What doubles."
msgstr "Was verdoppelt."
"""

GERMAN = course_in(COURSE, "de")[0].lesson("02")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with source/ and release/ of the German lesson."""
    root = tmp_path_factory.mktemp("german")
    write_source(GERMAN, root / "source" / GERMAN.folder)
    config = nbgrader_config(root, "")
    config.GenerateAssignment.no_database = True
    config.SaveCells.enabled = False
    generate_release(config, GERMAN.folder)
    return root


@pytest.fixture(scope="module")
def bundle(root: Path) -> Bundle:
    return Bundle.load(root / "source" / GERMAN.folder)


@pytest.fixture(scope="module")
def released(root: Path) -> NotebookNode:
    path = root / "release" / GERMAN.folder / f"{GERMAN.notebook_name}.ipynb"
    return nbformat.read(path, as_version=4)


def test_every_message_is_translated_with_its_fields_and_code() -> None:
    assert languages() == ["en", "de"]
    for engine, template in zip(engine_catalogues("de"), engine_templates()):
        assert [*not_translated(engine, template), *unfit(engine)] == []
    assert [*remarks(GERMAN), *remarks(COURSE)] == []


@pytest.mark.slow
def test_solved_it_has_all_points_and_untouched_none(
    bundle: Bundle, released: NotebookNode
) -> None:
    whole = graded(bundle, notebook_with(bundle))
    assert whole.score == whole.max_score > 30
    nothing = graded(bundle, released)
    assert nothing.score == 0 and not nothing.flags
    assert {test.outcome for test in nothing.tests} == {"not_attempted"}


def a_mistake() -> tuple[str, str]:
    """Source and German sentence of a known mistake."""
    known = next(one for one in misconceptions(GERMAN) if one.name == "cosine")
    sentence = sealed_words(GERMAN, known.sentence)
    assert sentence.startswith("Deine Scores sind Kosinusse: ")
    return known.source, sentence


@pytest.mark.slow
def test_a_known_mistake_has_its_sentence_in_the_notebook(
    root: Path, released: NotebookNode
) -> None:
    source, sentence = a_mistake()
    folder = root / "release" / GERMAN.folder
    setup = next(cell for cell in released.cells if SETUP in tags(cell))
    check = next(one for one in released.cells if grade_id(one) == "test_similarity_scores")
    cells = [
        nbformat.v4.new_code_cell("import sys; sys.modules['autograder'] = None"),
        nbformat.v4.new_code_cell(setup.source),
        nbformat.v4.new_code_cell(source),
        nbformat.v4.new_code_cell(check.source),
    ]
    place = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        nbformat.v4.new_notebook(cells=cells), timeout=120, allow_errors=True, resources=place
    )
    client.execute()
    box = shown(cells[-1])
    assert "similarity_scores: Diese Prüfung ist noch nicht bestanden." in box
    assert f"Das sieht nach einem bekannten Fehler aus: {sentence}" in box
    assert "✗ von Hand (1 Punkt): 2*3 + 0.5*0 - 1*1 = 5 und" in box
    assert "weichen um mehr ab, als die Prüfung für Rundung erlaubt; der erste bei [0]:" in box


@pytest.mark.slow
def test_a_known_mistake_has_its_sentence_on_the_page(bundle: Bundle) -> None:
    source, sentence = a_mistake()
    result = graded(bundle, notebook_with(bundle, {"similarity_scores": source}))
    submission = GradedSubmission("ada", result, notes=("withdrawn",))
    page = feedback_page(submission, bundle, {})
    assert "<li>abgemeldet</li>" in page
    assert '<html lang="de">' in page and "<h1>2. Query, Key, Value</h1>" in page
    assert f"<strong>Das sieht nach einem bekannten Fehler aus:</strong> {sentence}" in page
    assert "Verborgene Prüfungen von similarity_scores: andere Größen; Batch-Achsen" in page
    assert "Besteht mit der Lösung des Kurses für similarity_scores; mit deiner nicht." in page


@pytest.mark.slow
def test_the_start_page_and_the_package_are_german(tmp_path: Path) -> None:
    english = handed_out(tmp_path / "english")
    (tmp_path / "german" / "lessons").mkdir(parents=True)
    (tmp_path / "german" / "lessons" / "de.po").write_text(TINY_PO)
    course = handed_out(tmp_path / "german", language="de")
    pages = [
        "".join(f">{cell.source}<" for cell in cells) + cells[1].outputs[0].data["text/markdown"]
        for cells in (read(folder / "start.ipynb").cells for folder in (english, course))
    ]
    assert left_in_english(*pages) == set()
    assert "# Ein winziger Kurs\n\nÖffne eine Lektion" in pages[1] and "Aktualisieren" in pages[1]

    book = read(course / TINY)
    cells = [("setup", next(one.source for one in book.cells if SETUP in tags(one)))]
    cells += [("double", "def double(x):\n    return 2 * x\n")]
    cells += [("check", cell_named(book, "test_double").source)]
    (said_there,) = run(Notebook(course / "01-tiny", cells))
    kept = "Übernommen: `double` steht jetzt in my_transformer/lesson_01_tiny.py (2 Zeilen)."
    assert kept in said_there["check"]
    package = course / "my_transformer"
    readme = (package / "README.md").read_text(encoding="utf-8")
    assert "Was verdoppelt. Geschrieben habe ich sie in den Lektionen eines Kurses" in readme
    assert "| Teil | was er ist | wo | Zeilen |" in readme
    assert '"""Was verdoppelt.\n' in (package / "__init__.py").read_text(encoding="utf-8")
    tests = (package / "tests" / "test_lesson_01_tiny.py").read_text(encoding="utf-8")
    assert "Shift+Enter" not in tests
    with speaking(words_in(course / "01-tiny")):
        assert "### Dein Paket `my_transformer`" in as_markdown(course)


def test_the_windows_are_german(capsys: pytest.CaptureFixture[str]) -> None:
    words, weights = ["die", "Katze"], np.full((1, 1, 2, 2), 0.5)
    english = page_of(words, weights, words, (0, 0))
    with speaking(words_of(GERMAN)):
        german = page_of(words, weights, words, (0, 0))
        chat_window(lambda messages, say: None)
    assert left_in_english(english, german) == set()
    assert "In L{layer}H{head} schaut {word} auf {list}." in html.unescape(german)
    assert capsys.readouterr().out.startswith("Führe diese Zelle in JupyterLab aus")


def test_the_class_report_is_german(tmp_path: Path) -> None:
    folder = a_class(tmp_path, CLASS)
    settings = (folder.root / "class.toml").read_text()
    pages = []
    for language in ("en", "de"):
        (folder.root / "class.toml").write_text(f'{settings}language = "{language}"\n')
        write_report(ClassFolder.open(folder.root), names=True)
        pages.append((folder.root / "report.html").read_text(encoding="utf-8"))
    assert left_in_english(*pages, same=r"lookup|softmax|sentence|ipynb|^02-") == set()
    assert '<html lang="de">' in pages[1]


@pytest.mark.slow
def test_a_class_has_its_language_and_untranslated_lessons_their_english(tmp_path: Path) -> None:
    told: list[str] = []
    course = tiny_course(tmp_path / "course")
    there = new_class(course, tmp_path / "class", say=told.append, language="de")
    assert told[0] == "in English, with boxes in 'de': 01-tiny"
    assert ClassFolder.open(there.root).language == "de"
    release = (there.root / "release" / "01-tiny" / "tiny.ipynb").read_text(encoding="utf-8")
    assert "# Prüfung von double: Shift+Enter" in release and "Alle Lektionen" in release
    text = (there.root / "class.toml").read_text(encoding="utf-8")
    (there.root / "class.toml").write_text(text.replace('"de"', '"deutsch"'), encoding="utf-8")
    with pytest.raises(
        WrongUse, match="language: there is no language 'deutsch'; there are en, de"
    ):
        ClassFolder.open(there.root).check_settings()


def test_lint_names_what_is_not_translated_and_what_does_not_fit(tmp_path: Path) -> None:
    lesson = replace(tiny_course(tmp_path).lesson("01"), language="de")
    (lesson.path / "de.po").write_text(
        'msgid "Is it twice x?"\nmsgstr "Ist es das Doppelte von `x`?"\n\n'
        '#, fuzzy\nmsgid "It is larger."\nmsgstr "Es ist."\n'
    )
    missing, wrong = remarks(lesson)
    assert "de.po: 8 of 9 messages are not translated, such as 'Tiny'" in missing
    assert "autograder translate 01 --language de" in missing
    assert wrong == "de.po: 'Is it twice x?' has [], its translation not"


def test_translate_keeps_what_is_there_and_says_what_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lesson = tiny_course(tmp_path).lesson("01")
    path = lesson.path / "de.po"
    command = ["translate", "01", "--course", str(tmp_path), "--language"]
    assert main([*command, "de"]) == 1
    assert capsys.readouterr().out == f"{path}: 9 of 9 messages to translate\n"
    text = path.read_text().replace('msgid "Tiny"\nmsgstr ""', 'msgid "Tiny"\nmsgstr "Winzig"')
    path.write_text(text)
    lesson.source_path.write_text(lesson.source_path.read_text().replace("twice x?", "two x?"))
    assert main([*command, "de"]) == 1
    assert "8 of 9" in capsys.readouterr().out
    assert 'msgstr "Winzig"' in path.read_text() and '"Is it two x?"' in path.read_text()
    assert main([*command, "german"]) == 2
    assert "'german' is no language; say it as in de or pt_BR" in capsys.readouterr().err
    assert main([*command, "de", "--engine"]) == 2
    assert "the name of a lesson, or --engine" in capsys.readouterr().err
    assert main(["translate", "--course", str(tmp_path), "--language", "de"]) == 1
    assert "lessons/de.po: 2 of 2 messages to translate" in capsys.readouterr().out
    assert main(["build", "--course", str(tmp_path), "--language", "de"]) == 2
    assert "say with --into where" in capsys.readouterr().err


def test_what_an_f_string_made_is_found_by_its_form() -> None:
    from io import BytesIO

    from babel.messages import Catalog
    from babel.messages.mofile import write_mo

    catalogue, file = Catalog("de"), BytesIO()
    catalogue.add("{what}: is a number rounded?", "{what}: Wird gerundet?")
    catalogue.add("A float64 query", "Eine Query in float64")
    catalogue.add(("{n} point", "{n} points"), ("{n} Punkt", "{n} Punkte"))
    write_mo(file, catalogue)
    with speaking(packed(file.getvalue(), ["{what}: is a number rounded?"])):
        assert (
            said("A float64 query: is a number rounded?") == "Eine Query in float64: Wird gerundet?"
        )
        assert said("in a batch: A float64 query") == "in a batch: Eine Query in float64"
        assert said("Of another lesson: yes.") == "Of another lesson: yes."
        counted = [tr_n("{n} point", "{n} points", number) for number in (1, 0.5, 3.0)]
        assert counted == ["1 Punkt", "0.5 Punkte", "3 Punkte"]
        with speaking(""):
            assert said("A float64 query") == "A float64 query"
    with speaking("damaged"):
        assert said("A float64 query") == "A float64 query"
