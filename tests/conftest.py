"""What all tests share: `--complete`, with which a missing package is a failure and no skip."""

from collections.abc import Generator

import pytest

_MISSING = ("could not import", "is not installed", "needs schemathesis")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--complete", action="store_true", help="a package that a test lacks is a failure, not a skip")


def _insist(config: pytest.Config, report: pytest.TestReport | pytest.CollectReport) -> None:
    if config.getoption("complete") and report.skipped and any(each in str(report.longrepr) for each in _MISSING):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{reason} (--complete: nothing may be missing)"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _insist(item.config, report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _insist(collector.config, report)
    return report
