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
    """A wheel holds the student's course, for ``autograder start``, and the example, for
    ``autograder new-course``; no lesson's solution but the example's."""

    def run(self) -> None:
        """Copy the files of course/ that its manifest names, the manifest, and the example."""
        super().run()
        if self.editable_mode:
            return
        manifest = Path("course", ".release.json")
        if manifest.exists():
            names = json.loads(manifest.read_text(encoding="utf-8"))["files"]
            self._copy(manifest.parent, [*names, manifest.name], "student_course")
        example = Path("examples", "statistics")
        sources = [*example.glob("lessons/*.toml"), *example.glob("lessons/*/*.py")]
        self._copy(
            example, [path.relative_to(example).as_posix() for path in sources], "example_course"
        )

    def _copy(self, folder: Path, names: list[str], called: str) -> None:
        """Copy files of a folder into the package, in place of those of an earlier build."""
        into = Path(self.build_lib, "autograder", called)
        shutil.rmtree(into, ignore_errors=True)
        for name in names:
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / name, into / name)


setup(distclass=WithData, cmdclass={"build_py": WithCourse})
