"""An LMS that another distribution brings."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from autograder.lms.systems import GROUP

BLACKBOARD = """
import re
from autograder.lms.export import Export
from autograder.lms.systems import System

def fill(folder, standings, template, columns):
    rows = [f"{one.member.id};{one.total:g}" for one in standings]
    return Export("\\n".join(["user;points", *rows]) + "\\n", len(rows))

PATHS = r"(?P<assignment>[^/_]+)_(?P<student_id>[^_]+)_attempt_(?P<file_id>.+)"
SYSTEM = System("blackboard", re.compile(PATHS), fill)
"""


def install(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution with one module, which names its SYSTEM as an LMS."""
    about = folder / "blackboard_lms-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: blackboard-lms\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{GROUP}]\nblackboard = blackboard_lms:SYSTEM\n")
    (folder / "blackboard_lms.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "blackboard_lms", raising=False)
