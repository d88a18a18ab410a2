"""A folded trace of two processes, to damage."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

_PROGRAM = """
import math, os
import strobe

def load(k): return sum(map(math.sin, range(100)))
def forward(k): return math.sqrt(k)
def backward(k):
    for i in range(3): forward(i)
def check(k): return backward(k)

child = os.fork()
for k in range(1500):
    load(k); forward(k); backward(k)
    if k % 10 == 9: check(k)
    strobe.step()
if child: os.waitpid(child, 0)
"""


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace; not to be changed."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "loop.py").write_text(_PROGRAM)
    strobe = Path(sys.executable).with_name("strobe")
    words = (strobe, "run", "--quiet", "--keep", "5", "--throttle", "off", "-o", "loop.strobe", "loop.py")
    subprocess.run(words, cwd=folder, check=True)
    return folder / "loop.strobe"


@pytest.fixture
def copied(recorded: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Makes copies of it by name, without what is made of the block files."""

    def copy(name: str) -> Path:
        ignored = shutil.ignore_patterns("*.tiles", "*.index", "summary.json")
        return Path(shutil.copytree(recorded, tmp_path / f"{name}.strobe", ignore=ignored))

    return copy
