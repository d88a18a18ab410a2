"""Questions to many ranks: one loop, a pool of processes, and Dask answer the same, to the last bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import strobe
from strobe.cli.main import main
from strobe.errors import StrobeError, UsageError
from strobe.trace.processes.process_reader import NO_REGION
from strobe.workers.map_combine import (
    Join,
    Listed,
    MapCombine,
    Numbering,
    Partial,
    Tables,
    balanced,
    combined,
    over_processes,
)
from tests.deep.ranks import OPERATORS, events_of, write_ranks

ROOT = Path(__file__).parents[2]
RANKS = 5
QUESTIONS: tuple[tuple[str, dict[str, object]], ...] = (
    ("steps", {}),
    ("profile", {}),
    ("profile", {"form": "tree", "step": "all"}),
    ("profile", {"form": "inverted", "step": "2..3"}),
    ("operators", {}),
    ("operators", {"by": "type", "per": "rank"}),
    ("operators", {"by": "shape", "per": "step", "step": "all"}),
    ("kernels", {"by": "operator"}),
    ("kernels", {"by": "stream"}),
    ("copies", {}),
    ("copies", {"by": "time", "points": 20}),
    ("calls", {"by": "thread"}),
    ("overlap", {}),
    ("overlap", {"by": "step"}),
    ("idle", {"by": "stream"}),
    ("launches", {}),
    ("collectives", {}),
    ("step_time", {"by": "step"}),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_ranks(tmp_path_factory.mktemp("ranks") / "run", RANKS)


def answers(trace: strobe.Trace) -> dict[str, object]:
    """Every answer as bytes: values, types, order, what is said about it."""
    found = {}
    for name, options in QUESTIONS:
        table = trace.ask(name, **options)
        text = (table.name, table.about, table.note)
        found[f"{name} {options}"] = (text, table.to_arrow().schema.to_string(), table.rows())
    return found


def same(one: dict[str, object], other: dict[str, object]) -> None:
    for question, answer in one.items():
        assert answer == other[question], question


@pytest.fixture(scope="module")
def in_one_loop(folder: Path) -> dict[str, object]:
    return answers(strobe.open(folder, jobs=1))


def test_a_profile_of_all_ranks_is_the_sum_of_what_each_rank_ran(folder: Path) -> None:
    expected = Counter(
        str(event["name"]) for rank in range(RANKS) for event in events_of(rank) if event["name"] in OPERATORS
    )
    profile = strobe.open(folder, jobs=1).ask("profile", step="all").to_pylist()
    assert {row["name"]: row["calls"] for row in profile if row["name"] in OPERATORS} == expected


def test_medians_over_ranks_are_those_of_all_executions(folder: Path) -> None:
    trace = strobe.open(folder, jobs=1)
    rows = trace.ask("operators", step="all").to_pylist()
    for row in rows:
        lasting = [
            1000 * event["dur"]  # type: ignore[operator]
            for rank in range(RANKS)
            for event in events_of(rank)
            if event["name"] == row["name"]
        ]
        if row["name"] in OPERATORS:
            assert row["calls"] == len(lasting)
            assert row["median_ns"] == np.median(lasting)


def test_a_pool_answers_what_one_loop_does(folder: Path, in_one_loop: dict[str, object]) -> None:
    # Three questions are enough of the pool: each starts its processes. What they run is tested by Dask, too.
    trace = strobe.open(folder, jobs=2)
    for name, options in (QUESTIONS[2], QUESTIONS[5], QUESTIONS[12]):
        table = trace.ask(name, **options)
        assert table.rows() == in_one_loop[f"{name} {options}"][2], name  # type: ignore[index]


def test_the_command_line_takes_a_number_of_processes(
    folder: Path, capsys: pytest.CaptureFixture[str], in_one_loop: dict[str, object]
) -> None:
    printed = []
    for jobs in ("1", "2"):
        assert main(["overlap", str(folder), "--jobs", jobs, "--json"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert len(printed[0]) > 100


# What joins answers


def path_of(numbering: Numbering, path: int) -> tuple[object, ...]:
    chain: list[object] = []
    while path != NO_REGION:
        chain.append(numbering.regions[numbering.path_region[path]])
        path = int(numbering.path_parent[path])
    return tuple(chain)


@st.composite
def partials(draw: st.DrawFn) -> Partial:
    """The answer of one process: its own numbers for regions and call paths."""
    names = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True))
    parents, regions = [], []
    for path in range(draw(st.integers(0, 6))):
        parents.append(draw(st.sampled_from([NO_REGION, *range(path)])))
        regions.append(draw(st.integers(0, len(names) - 1)))
    # A call path has one number.
    taken, kept = set(), list[int]()
    for path, key in enumerate(zip(parents, regions, strict=True)):
        if key not in taken and (key[0] == NO_REGION or key[0] in kept):
            taken.add(key)
            kept.append(path)
    new = {path: at for at, path in enumerate(kept)}
    parents = [parents[path] if parents[path] == NO_REGION else new[parents[path]] for path in kept]
    regions = [regions[path] for path in kept]
    locations = draw(st.integers(0, 3))
    numbering = Numbering(
        [(name,) for name in names], np.array(parents, np.uint32), np.array(regions, np.uint32), 1, locations
    )
    at = np.arange(len(kept), dtype=np.int64)
    values = np.array(draw(st.lists(st.integers(-9, 9), min_size=len(kept), max_size=len(kept))), dtype=np.int64)
    by_path = pa.table({"call_path": at, "total": values, "low": values, "high": values})
    rows = pa.table({"process": np.zeros(locations, np.uint32), "location": np.arange(locations, dtype=np.uint32)})
    rule = Tables({"paths": Join(("call_path",), least=("low",), most=("high",)), "rows": Join()})
    return Partial(rule, {"paths": by_path, "rows": rows}, numbering)


@settings(deadline=None, max_examples=100)
@given(st.lists(partials(), min_size=1, max_size=6), st.randoms())
def test_answers_are_the_same_whichever_meet_first(parts: list[Partial], chance: object) -> None:
    left = list(parts)
    while len(left) > 1:
        at = chance.randrange(len(left) - 1)  # type: ignore[attr-defined]
        some = chance.randrange(2, len(left) - at + 1)  # type: ignore[attr-defined]
        left[at : at + some] = [combined(left[at : at + some])]
    whole = combined(parts)
    for table in ("paths", "rows"):
        assert left[0].value[table].equals(whole.value[table])
    assert left[0].numbering.regions == whole.numbering.regions
    # By names, with dictionaries.
    expected: dict[tuple[object, ...], list[int]] = {}
    for part in parts:
        for row in part.value["paths"].to_pylist():
            expected.setdefault(path_of(part.numbering, row["call_path"]), []).append(row["total"])
    found = {path_of(whole.numbering, row["call_path"]): row for row in whole.value["paths"].to_pylist()}
    assert {key: (row["total"], row["low"], row["high"]) for key, row in found.items()} == {
        key: (sum(values), min(values), max(values)) for key, values in expected.items()
    }
    assert whole.value["rows"].column("location").to_pylist() == list(range(sum(p.numbering.locations for p in parts)))


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60), st.integers(1, 9), st.integers(1, 40))
def test_parts_hold_each_process_once_and_in_order(spans: list[int], parts: int, most: int) -> None:
    found = balanced(spans, parts, most)
    assert [process for part in found for process in part] == list(range(len(spans)))
    assert max(map(len, found)) <= most


# What goes wrong


def die(part: strobe.Trace) -> pa.Table:
    os.kill(os.getpid(), signal.SIGKILL)
    return pa.table({})


def test_a_process_of_the_pool_that_dies_is_one_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'tests'}")
    with pytest.raises(StrobeError, match="a process that worked for this question was ended by signal 9"):
        over_processes(strobe.open(folder, jobs=2), MapCombine(die, Listed()))


def hold(part: strobe.Trace, where: str) -> pa.Table:
    (Path(where) / str(os.getpid())).touch()
    time.sleep(600)
    return pa.table({})


INTERRUPTED = """
import sys, strobe
from strobe.workers.map_combine import Listed, MapCombine, over_processes
from tests.deep.test_map_combine import hold
over_processes(strobe.open(sys.argv[1], jobs=2), MapCombine(hold, Listed()), where=sys.argv[2])
"""


def test_ctrl_c_ends_the_pool_and_leaves_no_process(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(folder), str(tmp_path)]
    asking = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stderr=subprocess.PIPE, text=True)
    while len(list(tmp_path.iterdir())) < 2:
        assert asking.poll() is None
        time.sleep(0.02)
    os.killpg(asking.pid, signal.SIGINT)  # as a terminal does: all of them get it
    _, told = asking.communicate(timeout=60)
    assert "KeyboardInterrupt" in told
    assert "pool_worker" not in told
    for worker in tmp_path.iterdir():
        with pytest.raises(ProcessLookupError):
            os.kill(int(worker.name), 0)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"scheduler": "tcp://127.0.0.1:9", "cluster": "slurm"}, "not from both"),
        ({"jobs": 0}, "0 jobs"),
        ({"cluster": "vms"}, "no kind of cluster 'vms'"),
        ({"scheduler": "tcp://127.0.0.1:9", "jobs": 2}, "not chosen here"),
        ({"cluster_options": {"queue": "short"}}, "but no cluster"),
    ],
)
def test_what_makes_no_sense_is_said(folder: Path, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        strobe.open(folder, **options)  # type: ignore[arg-type]


def test_a_missing_package_is_named_with_what_installs_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match="distributed") as error:
        strobe.open(folder, scheduler="tcp://127.0.0.1:9")
    assert "strobe[cluster]" in str(error.value)
