"""What all tests share: `--complete`, with which what is missing is a failure and not a skip; the public traces.

With `--nightly`, tests of random input take more of it.

Also how several processes share the work: file by file, but the long ones test by test.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests import public

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

# Where tests run in the background or under nohup, signals are ignored, and every program that a test starts would
# inherit that.
for _number, _usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)

# Other programs may have the processors: how long an example takes is no matter of a test.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

_MISSING = ("could not import", "is not installed", "needs schemathesis", public.MISSING)

# Each of their tests has what it needs by its parameter, so that the last minutes can be divided among all processes.
_TEST_BY_TEST = ("tests/corpus/test_corpus.py", "tests/corpus/test_online.py", "tests/golden/")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--complete", action="store_true", help="a package or a trace that a test lacks is a failure, not a skip"
    )
    parser.addoption("--nightly", action="store_true", help="also run what is marked nightly")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("nightly"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("nightly")])
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]


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


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """What is imported, and by default cached, goes with the session."""
    with pytest.MonkeyPatch.context() as patch:
        if "STROBE_CACHE" not in os.environ:
            patch.setenv("STROBE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def public_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this session imports the public traces, each once."""
    if not public.are_here():
        pytest.skip(public.MISSING)
    return tmp_path_factory.mktemp("public")


@pytest.fixture
def public_folder(public_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the public traces; what a test imports of it goes to this session's cache."""
    monkeypatch.setenv("STROBE_CACHE", str(public_cache))
    return public.FOLDER


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """With `--dist loadfile` a file is one piece of work, and in _TEST_BY_TEST each parameter of a file is one."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class FileByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, _, name = nodeid.partition("::")
            return file + name[name.find("[") :] if file.startswith(_TEST_BY_TEST) and "[" in name else file

    return FileByFile(config, log)
