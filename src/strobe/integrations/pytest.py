"""The fixture `strobe_check` of pytest: a test fails if a function does more per call than in its baseline.

In conftest.py: pytest_plugins = ["strobe.integrations.pytest"]. It is not an entry point: with one, pytest would look
at all modules of strobe, and warn under `strobe run -m pytest` that they are imported already.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--strobe-save`."""
    parser.addoption("--strobe-save", action="store_true", help="save what strobe_check counts as the new baselines")


@pytest.fixture
def strobe_check(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., None]:
    """Return `check(work, steps=10, **options)`: it calls `work` so often and compares what it does with the baseline.

    What is compared are exact counts per call (kernels, syncs, calls, ...), not times. The baseline is a file of
    `strobe check` in the folder `strobe-baselines` beside the test, named after it. `options` are those of
    `strobe.record()`. The test is skipped if counts are inconclusive. Once per test.
    """

    def check(work: Callable[[], object], steps: int = 10, **options: object) -> None:
        import strobe
        from strobe.gate.baseline import Point, add_point, read_points
        from strobe.gate.report import sentence
        from strobe.gate.runs import run_of
        from strobe.gate.verdict import INCONCLUSIVE, REGRESSED, compare

        with strobe.record(tmp_path / "check.strobe", **options) as recorded:
            for _ in range(steps):
                work()
                strobe.step()
        if recorded.path is None:
            pytest.skip("STROBE_DISABLE is set: nothing was recorded")
        run = run_of(strobe.open(recorded.path), request.node.nodeid)
        name = "".join(each if each.isalnum() or each in "-_." else "-" for each in request.node.name)
        file = request.node.path.parent / "strobe-baselines" / f"{name}.json"
        if request.config.getoption("strobe_save"):
            file.parent.mkdir(exist_ok=True)
            add_point(str(file), Point(name, [run]))
            return
        if not file.exists():
            pytest.fail(f"no baseline '{file}': save it with pytest --strobe-save", pytrace=False)
        found = compare(read_points(str(file))[-1].runs, [run], metrics=("median",), threshold=0.0, other_machine=True)
        if found.verdict == REGRESSED:
            pytest.fail(sentence(found), pytrace=False)
        if found.verdict == INCONCLUSIVE:
            pytest.skip(sentence(found))

    return check
