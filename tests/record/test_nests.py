"""Steps of nests of loops, found while they are recorded and folded, and after a recording of everything.

The nests are invented (nests/recorder.py), 250 of them and a thousand with `--nightly`, and so is their time: a run of
a minute is recorded in milliseconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import strobe
from tests.record.workshop import environment

NESTS = Path(__file__).parent / "nests"
BATCHES, BATCH = 8, 125
SLACK_NS = 1_000_000_000
PARTS = ("data_wait_ns", "forward_ns", "backward_ns", "optimizer_ns", "validation_ns", "rest_ns")


KINDS = ("communication_ns", "gpu_wait_ns", "gpu_call_ns", "operators_ns", "data_wait_ns", "host_ns")


def cells(trace: strobe.Trace, steps: list[dict]) -> dict[tuple[str, str], int]:
    """The time of all steps by part and kind. Kinds add up to their part, parts to their step, steps to the run."""
    rows = trace.breakdown(by="step").to_arrow()
    part = np.array(rows.column("part").to_pylist())
    kinds = np.stack([rows.column(kind).to_numpy() for kind in KINDS])
    assert kinds.min() >= 0
    assert (kinds.sum(axis=0) == rows.column("duration_ns").to_numpy()).all()
    whole = part == "step"
    assert rows.column("duration_ns").to_numpy()[whole].tolist() == [row["duration_ns"] for row in steps]
    assert (kinds[:, whole].sum(axis=1) == kinds[:, ~whole].sum(axis=1)).all()
    parts = [part_ns.removesuffix("_ns") for part_ns in PARTS]
    return {
        (name, kind): int(ns)
        for name in (*parts, "step")
        for kind, ns in zip(KINDS, kinds[:, part == name].sum(axis=1), strict=True)
    }


@pytest.fixture(scope="session")
def passing_time(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clock that is put forward, as a library to preload."""
    library = tmp_path_factory.mktemp("clock") / "passing_time.so"
    source = NESTS / "passing_time.c"
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
    return library


def recorded(passing_time: Path, folder: Path, keep: str, seeds: range) -> list[dict]:
    folder.mkdir()
    words = [sys.executable, NESTS / "recorder.py", folder, keep, *map(str, seeds)]
    preloaded = environment({"LD_PRELOAD": str(passing_time)})
    done = subprocess.run(words, env=preloaded, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "batch", [*range(2), *(pytest.param(batch, marks=pytest.mark.nightly) for batch in range(2, BATCHES))]
)
def test_steps_are_the_same_while_the_program_runs(batch: int, passing_time: Path, tmp_path: Path) -> None:
    seeds = range(batch * BATCH, (batch + 1) * BATCH)
    truth = recorded(passing_time, tmp_path / "all", "all", seeds)
    recorded(passing_time, tmp_path / "ten", "10", seeds)
    folded, kinds = 0, Counter[str]()
    for each in truth:
        seed = each["seed"]
        traces = [strobe.open(tmp_path / keep / f"{seed}.strobe") for keep in ("all", "ten")]
        whole, some = (trace.steps().to_pylist() for trace in traces)
        assert len(whole) == each["count"], each
        assert len(some) == len(whole)
        differing = [n for n, row in enumerate(some) if row["class"] != whole[n]["class"]]
        if differing:
            # What comes in front of a step at times stays with the step before where the loop is believed just then.
            believed = next(n for n, row in enumerate(some) if row["events"] is not None)
            assert differing == [believed - 1, believed], each
            assert {"rebuild" in whole[n]["class"] for n in differing} == {False, True}, each
        # Both runs take some real time as well, each its own.
        length_ns = whole[-1]["start_ns"] + whole[-1]["duration_ns"] - whole[0]["start_ns"]
        for row, same in zip(some, whole, strict=True):
            apart_ns = row["start_ns"] - some[0]["start_ns"] - (same["start_ns"] - whole[0]["start_ns"])
            assert abs(apart_ns) < 0.01 * length_ns + SLACK_NS, (each, row["step"])
        for part in PARTS:
            ns, same_ns = (sum(row[part] for row in rows) for rows in (some, whole))
            assert abs(ns - same_ns) < 0.01 * length_ns + SLACK_NS, (each, part)
        whole_cells, some_cells = (cells(*each) for each in zip(traces, (whole, some), strict=True))
        for cell in whole_cells:
            assert abs(some_cells[cell] - whole_cells[cell]) < 0.01 * length_ns + SLACK_NS, (each, cell)
        assert all(whole_cells["step", kind] == 0 or each["kind"] == "training" for kind in KINDS[:-1])
        assert whole_cells["step", "operators_ns"] > 0.1 * length_ns or each["kind"] != "training"
        folded += sum(row["detail"] == "none" for row in some)
        kinds[each["kind"]] += len(some)
    assert folded > 0.2 * kinds.total()
    assert kinds.keys() == {"calls", "requests", "iterations", "training", "unusual"}
