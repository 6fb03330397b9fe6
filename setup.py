"""What pyproject.toml cannot say; all else stands there."""

from setuptools import Distribution, setup


class WithData(Distribution):
    """An editable installation, too, brings the files of ``[tool.setuptools.data-files]``:
    setuptools asks for them under a name that no distribution has."""

    def has_data(self) -> bool:
        """Whether there are such files."""
        return bool(self.has_data_files())


setup(distclass=WithData)
