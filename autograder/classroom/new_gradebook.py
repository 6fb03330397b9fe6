"""A gradebook that nbgrader need not ask its migration tool about, which takes seconds."""

from __future__ import annotations

from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from nbgrader.dbutil import ALEMBIC_DIR
from sqlalchemy import create_engine, inspect


def begin_gradebook(db_url: str) -> None:
    """Note in an empty database which form of gradebook it gets: that of this nbgrader.

    nbgrader does so where nothing is noted, and starts the program alembic to know its own form:
    three seconds of a processor.

    Args:
        db_url: of a gradebook; one that holds something stays as it is.
    """
    config = Config()
    config.set_main_option("script_location", ALEMBIC_DIR)
    engine = create_engine(db_url)
    try:
        with engine.begin() as connection:
            if not inspect(connection).get_table_names():
                scripts = ScriptDirectory.from_config(config)
                MigrationContext.configure(connection).stamp(scripts, "head")
    finally:
        engine.dispose()
