"""Tables of an LMS in other languages than English: read, filled, and what is not read is named."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from autograder.classroom.folder import ClassFolder
from autograder.classroom.roster import Member, import_roster
from autograder.cli.main import main
from autograder.lms.canvas import canvas
from autograder.lms.export import ExportError
from autograder.lms.moodle import moodle
from autograder.lms.student_standings import standings
from autograder.tables import read_table

from ..classes import LESSON, give_by_hand, grade_here, hand_in, new, solved

ROSTER = """id,first_name,last_name,email,status,lms_id
ada,Ada,Lovelace,ada@example.org,,1001
bob,Jürgen,Groß,jg@example.org,,1002
"""
JG, ADA = (
    Member("1001", "Jürgen", "Groß", "jg@example.org"),
    Member("1002", "Ada", "Lovelace", "ada@example.org"),
)


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> ClassFolder:
    """Ada has 9.5 points of 11, Jürgen 8."""
    folder = new(tmp_path_factory.mktemp("languages"))
    (folder.root / "roster.csv").write_text(ROSTER)
    folder = ClassFolder.open(folder.root)
    hand_in(folder, "ada", solved(folder, why="Because."))
    hand_in(folder, "bob", solved(folder))
    grade_here(folder)
    give_by_hand(folder, "ada", 1.5)
    return folder


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "Vorname,Nachname,Matrikelnummer,E-Mail-Adresse,Gruppen\n"
            "Jürgen,Groß,1001,jg@example.org,Team Rot\nAda,Lovelace,1002,ada@example.org,\n",
            "not read: Gruppen",
        ),
        (
            "Prénom;Nom de famille;Matrikelnummer;Adresse de courriel;Dernier accès\n"
            "Jürgen;Groß;1001;jg@example.org;-\nAda;Lovelace;1002;ada@example.org;-\n",
            "not read: Dernier accès",
        ),
        (
            "Nombre,Apellido(s),Matrikelnummer,Dirección de correo\n"
            "Jürgen,Groß,1001,jg@example.org\nAda,Lovelace,1002,ada@example.org\n",
            "",
        ),
        (
            "Vollständiger Name\tMatrikelnummer\tE-Mail\n"
            "Jürgen Groß\t1001\tjg@example.org\nAda Lovelace\t1002\tada@example.org\n",
            "",
        ),
        (
            "Förnamn,Efternamn,Matrikelnummer,E-postadress\n"
            "Jürgen,Groß,1001,jg@example.org\nAda,Lovelace,1002,ada@example.org\n",
            "not read: Förnamn, Efternamn, E-postadress",
        ),
    ],
)
def test_a_class_list_in_another_language(tmp_path: Path, text: str, says: str) -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        (tmp_path / "list.csv").write_text(text, encoding=encoding)
        roster, told = import_roster(tmp_path / "list.csv", {"id": "Matrikelnummer"})
        unread = [line for line in told if line.startswith("not read")]
        assert unread == ([says] if says else [])
        if "Förnamn" not in text:
            assert roster.members == (JG, ADA)


def test_moodles_worksheet_in_german_is_a_class_list(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(
        "ID,Vollständiger Name,E-Mail-Adresse\nTeilnehmer/in77,Ada Lovelace,ada@example.org\n"
    )
    (member,) = import_roster(tmp_path / "list.csv")[0].members
    assert (member.id, member.lms_id) == ("ada@example.org", "77")


#: Headings of a worksheet, a word before the number, and the maximum.
WORKSHEETS = {
    "German": (
        'ID,"Vollständiger Name",E-Mail-Adresse,Status,Bewertung,Bestwertung,"Bewertung kann '
        'geändert werden","Zuletzt geändert (Abgabe)","Zuletzt geändert (Bewertung)",'
        '"Feedback als Kommentar"',
        "Teilnehmer/in",
        "11,00",
    ),
    "French": (
        "Identifiant,Nom complet,Adresse de courriel,Statut,Note,Note maximale,La note peut être "
        "modifiée,Dernière modification (travail remis),Dernière modification (note),"
        "Feedback par commentaires",
        "Participant",
        "11,00",
    ),
    "Spanish": (
        'Identificador,"Nombre completo","Dirección de correo",Estado,Calificación,'
        '"Calificación máxima","La calificación puede ser cambiada",'
        '"Última modificación (entrega)",'
        '"Última modificación (calificación)","Comentarios de retroalimentación"',
        "Participante ",
        "11,00",
    ),
    "Portuguese": (
        "Identificador,Nome completo,Endereço de email,Status,Nota,Nota máxima,Nota pode ser "
        "alterada,Última modificação (envio),Última modificação (nota),Comentários de feedback",
        "Participante ",
        "11,00",
    ),
    "Finnish, of which no heading is known": (
        "Tunniste,Koko nimi,Sähköpostiosoite,Tila,Arvosana,Korkein arvosana,Arvosanaa voi muuttaa,"
        "Muokattu (palautus),Muokattu (arvosana),Palautekommentit",
        "Osallistuja ",
        "11,00",
    ),
    "English": (
        "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
        "Last modified (submission),Last modified (grade),Feedback comments",
        "Participant ",
        "11.00",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("language", WORKSHEETS)
def test_moodles_worksheet(graded: ClassFolder, tmp_path: Path, language: str) -> None:
    heading, word, most = WORKSHEETS[language]
    lines = [
        f'"{word}{number}","{name}",{mail},x,,"{most}",x,-,-,'
        for number, name, mail in (
            (1001, "Ada Lovelace", ""),
            (1002, "Jürgen Groß", "jg@example.org"),
        )
    ]
    for separator in (",", ";"):
        text = "\n".join([heading, *lines])
        table = list(csv.reader(io.StringIO(text)))
        made = io.StringIO()
        csv.writer(made, delimiter=separator).writerows(table)
        (tmp_path / "w.csv").write_text(made.getvalue(), encoding="utf-8-sig")
        export = moodle(graded, standings(graded), tmp_path / "w.csv")
        (tmp_path / "out.csv").write_text(export.text)
        out = read_table(tmp_path / "out.csv")
        assert (out.columns, out.delimiter) == (tuple(table[0]), separator)
        comma = "," in most
        assert [row[4] for row in out.rows] == ["9,5" if comma else "9.5", "8"]
        if "no heading" in language:
            assert any("no column for comments was found" in note for note in export.notes)
        else:
            assert out.rows[0][9] == "9.5 of 11 points"
            assert export.notes == []


def test_the_column_that_class_toml_names_is_filled(graded: ClassFolder, tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text("ID,Vollständiger Name,Punkte,Note\nTeilnehmer/in1001,A,,\n")
    settings = graded.root / "class.toml"
    before = settings.read_text()
    settings.write_text(before.replace("[export]", f'[export]\n"{LESSON}" = "Punkte"'))
    again = ClassFolder.open(graded.root)
    assert "Teilnehmer/in1001,A,9.5," in moodle(again, standings(again), tmp_path / "w.csv").text
    settings.write_text(before.replace("[export]", f'[export]\n"{LESSON}" = "Zensur"'))
    again = ClassFolder.open(graded.root)
    with pytest.raises(ExportError, match=r"It has ID, Vollständiger Name, Punkte, Note"):
        moodle(again, standings(again), tmp_path / "w.csv")
    settings.write_text(before)


@pytest.mark.parametrize("ours", ["grade", LESSON])
def test_columns_that_an_option_names_are_read_and_filled(
    graded: ClassFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str], ours: str
) -> None:
    """A Finnish worksheet without maxima, and a gradebook of Canvas whose titles say nothing."""
    sheet, book, out = tmp_path / "w.csv", tmp_path / "g.csv", tmp_path / "out.csv"
    sheet.write_text("Sposti;Tunniste;Huomiot;Pisteet\njg@example.org;77;;\n;Osallistuja 1001;;\n")
    columns = {"lms_id": "Tunniste", "email": "Sposti", "comments": "Huomiot", ours: "Pisteet"}
    filled = moodle(graded, standings(graded), sheet, columns).text.splitlines()
    assert filled[1:] == [
        "jg@example.org;77;8 of 11 points;8",
        ";Osallistuja 1001;9.5 of 11 points;9.5",
    ]
    book.write_text('Opiskelija,Numero,Osa,T1 (7)\n"Lovelace, Ada",1001,A,\n')
    named = {"full_name": "Opiskelija", "lms_id": "Numero", LESSON: "T1 (7)"}
    asked = [word for pair in named.items() for word in ("--column", "=".join(pair))]
    command = ["export", str(graded.root), "--to", "canvas", "--output", str(out)]
    assert main([*command, "--template", str(book), *asked]) == 1  # Jürgen is not in it
    assert '"Lovelace, Ada",1001,9.5' in out.read_text()
    out.unlink()
    for wrong, says in (
        (["--column", "grade=Pisteet"], "--column is about --template LMS.csv"),
        (
            ["--template", str(book), "--column", "mark=T1"],
            "--column mark=... is unknown; there",
        ),
        (["--template", str(book), "--column", "email=T2"], "has no column T2; it has Opiskelija"),
        (["--template", str(book), "--column", "email"], "should be OURS=THEIRS"),
    ):
        capsys.readouterr()
        assert main([*command, *wrong]) == 2
        assert says in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("heading", "maxima", "points"),
    [
        ("Studierende/r;ID;SIS User ID;SIS Login ID;Abschnitt;Tiny (7)", "Mögliche Punkte", "11,0"),
        ("Étudiant;ID;SIS User ID;SIS Login ID;Section;Tiny (7)", "Points possibles", "11,0"),
        ("Student;ID;SIS User ID;SIS Login ID;Section;Tiny (7)", "Points Possible", "11.0"),
    ],
)
def test_canvas_gradebook(
    graded: ClassFolder, tmp_path: Path, heading: str, maxima: str, points: str
) -> None:
    rows = [f"    {maxima};;;;;{points}", '"Lovelace, Ada";1001;;ada;A;', '"Groß, J.";1002;;;A;']
    (tmp_path / "g.csv").write_text("\n".join([heading, *rows]))
    made = canvas(graded, standings(graded), tmp_path / "g.csv")
    lines = made.text.splitlines()
    assert lines[0] == heading and made.notes == []
    assert lines[2] == f"Lovelace, Ada;1001;;ada;A;{'9,5' if ',' in points else '9.5'}"
    assert lines[3] == "Groß, J.;1002;;;A;8"
