"""What pyproject.toml cannot say; all else stands there."""

import json
import shutil
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py


class WithData(Distribution):
    """An editable installation, too, brings the files of ``[tool.setuptools.data-files]``:
    setuptools asks for them under a name that no distribution has."""

    def has_data(self) -> bool:
        """Whether there are such files."""
        return bool(self.has_data_files())


class WithCourse(build_py):
    """A wheel holds the student's course, for ``autograder start``; no lesson's solution."""

    def run(self) -> None:
        """Copy the files of course/ that its manifest names, and the manifest."""
        super().run()
        manifest = Path("course", ".release.json")
        if self.editable_mode or not manifest.exists():
            return
        into = Path(self.build_lib, "autograder", "student_course")
        shutil.rmtree(into, ignore_errors=True)  # of an earlier build
        names = json.loads(manifest.read_text(encoding="utf-8"))["files"]
        for name in [*names, manifest.name]:
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(manifest.parent / name, into / name)


setup(distclass=WithData, cmdclass={"build_py": WithCourse})
