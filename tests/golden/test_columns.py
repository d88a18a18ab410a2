"""Answers about real traces have exactly the columns that analyses declare, with these types and units."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import strobe
from strobe import registry
from strobe.errors import UsageError
from strobe.model.plugins import Analysis
from tests.golden.answers import TRACES
from tests.unit.declared import is_declared, variants

# Kernels of several profilers, collectives, folded steps, a training, samples, source lines.
NAMES = ("gpu", "gpu-folded", "kineto-ranks", "mpi", "nccl", "nsys", "sampled", "source-lines", "training")


@pytest.mark.parametrize("name", NAMES)
def test_columns_are_as_declared(name: str, tmp_path: Path) -> None:
    with tarfile.open(TRACES / f"{name}.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    filled = set()
    with strobe.open(tmp_path / f"{name}.strobe") as trace:
        for each in registry.names("analyses"):
            analysis = registry.load("analyses", each)
            assert isinstance(analysis, Analysis)
            for chosen in variants(analysis):
                try:
                    answer = trace.ask(each, **chosen)
                except UsageError:  # a process without any loop, say
                    continue
                is_declared(answer, analysis.columns_with(**chosen))
                if len(answer):
                    filled.add(each)
    assert len(filled) > 2, "answers without rows would show little"
