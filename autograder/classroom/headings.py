"""What an LMS calls the columns of its tables, in the languages that it speaks.

Moodle translates the headings of its worksheet and lists, Canvas those of its gradebook.
"""

from __future__ import annotations

#: Names of what a column holds; the first that a table has counts.
HEADINGS: dict[str, tuple[str, ...]] = {
    "login": (
        *("SIS Login ID", "Username", "SIS User ID", "SID", "Student ID", "ID number", "login_id"),
        *("Anmeldename", "ID-Nummer", "Nom d'utilisateur", "Numéro d'identification"),
        *("Nombre de usuario", "Número de ID", "Nome de usuário", "Nome utente"),
        *("Gebruikersnaam", "Nazwa użytkownika", "Numero ID", "Número de identificação"),
    ),
    "first name": (
        *("first_name", "First name", "Given name", "Vorname", "Prénom", "Nombre", "Nome"),
        *("Voornaam", "Imię", "Nombre(s)", "名"),
    ),
    "last name": (
        *("last_name", "Last name", "Surname", "Family name", "Nachname", "Nom", "Nom de famille"),
        *("Apellido(s)", "Apellidos", "Apellido", "Cognome", "Sobrenome", "Apelido", "Achternaam"),
        *("Nazwisko", "姓"),
    ),
    "full name": (
        *("Full name", "Student", "Student name", "Name", "First name / Last name"),
        *("Vollständiger Name", "Vorname / Nachname", "Nom complet", "Prénom / Nom"),
        *("Nombre completo", "Nombre / Apellido(s)", "Nome completo", "Cognome Nome"),
        *("Volledige naam", "Imię i nazwisko", "Studierende/r", "Étudiant", "Estudiante"),
        *("Aluno", "Studente", "姓名"),
    ),
    "email": (
        *("email", "Email address", "E-mail", "E-Mail-Adresse", "E-Mail"),
        *("Adresse de courriel", "Courriel", "Adresse électronique"),
        *("Dirección de correo", "Dirección Email", "Correo electrónico"),
        *("Endereço de email", "Indirizzo email", "E-mailadres", "Adres e-mail"),
    ),
    "group": (
        *("group", "group_name", "Groups", "Group name", "team", "Gruppe", "Gruppen"),
        *("Groupe", "Groupes", "Grupo", "Grupos", "Gruppo", "Gruppi", "Groep", "Groepen"),
        *("Grupa", "Grupy"),
    ),
    "number": (
        *("lms_id", "Identifier", "Canvas ID", "User ID", "canvas_user_id"),
        *("Identifiant", "Identificador", "Identificatore", "Identificatie", "Identyfikator"),
    ),
    "grade": (
        *("Grade", "Bewertung", "Note", "Calificación", "Nota", "Valutazione", "Voto"),
        *("Cijfer", "Beoordeling", "Ocena", "Qualificació"),
    ),
    "maximum": (
        *("Maximum Grade", "Bestwertung", "Beste Bewertung", "Maximale Bewertung"),
        *("Note maximale", "Calificación máxima", "Calif. máxima", "Nota máxima", "Voto massimo"),
        *("Valutazione massima", "Maximumcijfer", "Maksymalna ocena", "Qualificació màxima"),
    ),
    "comments": (
        *("Feedback comments", "Feedback als Kommentar", "Feedback par commentaires"),
        *("Comentarios de retroalimentación", "Comentarios de feedback"),
        *("Commenti di feedback", "Comentários de feedback", "Feedback commentaar"),
    ),
}

#: What stands for a name in the row of maxima of Canvas's gradebook.
POINTS_POSSIBLE = (
    *("Points Possible", "Mögliche Punkte", "Erreichbare Punkte", "Points possibles"),
    *("Puntos posibles", "Pontos possíveis", "Punti possibili", "Mogelijke punten"),
)
