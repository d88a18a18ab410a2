"""The bytes that a recorded kernel takes before compression: always the same, so that no change makes them grow."""

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """benchmarks/gpu_decode.py."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("gpu_decode", BENCHMARKS / "gpu_decode.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("measure", None)


def test_a_kernel_takes_at_most_24_bytes_before_compression(benchmark: ModuleType, tmp_path: Path) -> None:
    """170 names of 150 to 280 characters, 510 configurations, 18 500 kernels a second."""
    done = subprocess.run(
        [benchmark.built(tmp_path), "bytes", "20000"], check=True, capture_output=True, text=True, timeout=60
    )
    sizes = json.loads(done.stdout)
    assert sizes["kernels"] == 20_000
    # A start, a duration and a path take at least 5 bytes; a configuration is a number, not its 19 values.
    assert 5 < sizes["span_bytes"] < 8
    assert 3 < sizes["row_bytes"] < 8
    assert sizes["span_bytes"] + sizes["row_bytes"] <= 24
