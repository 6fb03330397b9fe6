"""``--no-skips``: a test that is skipped fails, as it has to where everything is installed.

It stands here and not in ``tests/`` since nbval's run over ``solutions/`` takes it too.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar

import pytest

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

# While tests are collected, libraries are imported: nothing of them is garbage, then or later. To
# look takes a fifth of the time.
gc.disable()


def pytest_collection_finish() -> None:
    """From now on look for garbage, among what the tests make."""
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption(
        "--no-skips", action="store_true", help="a test that is skipped fails (.ci/run)"
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that was skipped."""
    report = yield
    return _held(report, item.config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A file that was skipped."""
    report = yield
    return _held(report, collector.config)


def _held(report: Report, config: pytest.Config) -> Report:
    """The report, as a failure if it says that something was skipped and nothing may be."""
    expected = hasattr(report, "wasxfail")
    if config.getoption("--no-skips") and report.skipped and not expected:
        says = report.longrepr
        reason = says[2] if isinstance(says, tuple) else str(says)
        where = Path(report.nodeid.split("::")[0]).name
        report.outcome = "failed"
        report.longrepr = f"{where}: with --no-skips nothing may be skipped, and this was: {reason}"
    return report
