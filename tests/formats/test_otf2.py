"""OTF2 archives against the official reader: what it gives must be in the trace, to the nanosecond."""

import json
import shutil
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import strobe

pytest.importorskip("otf2", reason="the official otf2 package is not installed (there is no wheel after Python 3.11)")
from otf2.enums import LocationType, MappingType, MetricMode, MetricOccurrence, Paradigm, RegionRole, Type

from tests.formats import otf2_archives as archives
from tests.formats.otf2_archives import Archive, Told, oracle

TRACES = Path(__file__).parents[2].parent / "shared" / "traces" / "otf2"


def numbers(trace: strobe.Trace, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in trace.sql(query).rows()]


def found(trace: strobe.Trace) -> Told:
    """The same as `oracle`, from the trace."""
    zero = trace.zero_ns
    told = Told()
    told.spans = numbers(
        trace,
        f"select thread_id, name, start_ns + {zero}, duration_ns from raw_spans "
        "join regions using (region) join locations l using (location)"
        if False
        else f"select l.thread_id, s.name, s.start_ns + {zero}, s.duration_ns from spans s "
        "join locations l using (location) where s.role <> 'copy'",
    )
    told.metrics = numbers(trace, f"select regexp_extract(metric, '^[^@(]*[^@( ]'), time_ns + {zero}, value from metrics")
    message = (
        f"select l.thread_id, time_ns + {zero}, communicator_rank, tag, communicator, size_bytes, request "
        "from messages join locations l using (location) where direction = "
    )
    told.sends, told.receives = numbers(trace, message + "'send'"), numbers(trace, message + "'receive'")
    told.collectives = numbers(
        trace, "select collective, communicator, root, sent_bytes, received_bytes from collective_spans"
    )
    return told


def assert_equal(trace: strobe.Trace, expected: Told) -> None:
    actual = found(trace)
    for what in ("spans", "metrics", "sends", "receives", "collectives"):
        assert Counter(getattr(actual, what)) == Counter(getattr(expected, what)), what
    assert expected.spans


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))


@pytest.mark.skipif(not TRACES.exists(), reason="the folder of public traces is not here")
@pytest.mark.parametrize("name", ["ping-pong-otf2", "ping-pong-otf2-papi"])
@pytest.mark.parametrize("given", ["folder", "anchor"])
def test_real_archives_are_what_the_official_reader_says(name: str, given: str) -> None:
    folder = TRACES / name
    trace = strobe.open(folder if given == "folder" else folder / "traces.otf2")
    assert_equal(trace, oracle(folder / "traces.otf2"))
    assert numbers(trace, "select rank, host, pid is not null from processes order by rank") == [
        (0, "quartz10", True),
        (1, "quartz10", True),
    ]
    assert numbers(trace, "select name, role, paradigm from regions where name in ('MPI_Send', 'MPI_Init')") == [
        ("MPI_Init", "function", "mpi"),
        ("MPI_Send", "p2p", "mpi"),
    ]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("resolution", [10**3, 10**6, 10**9, 2_095_197_216, 3_699_958_577, 2**63 - 25])
def test_random_archives_are_what_the_official_reader_says(tmp_path: Path, seed: int, resolution: int) -> None:
    anchor = archives.write(tmp_path / "a", archives.random_job(seed), ranks=3, resolution=resolution)
    assert_equal(strobe.open(anchor), oracle(anchor))


def test_small_chunks(tmp_path: Path) -> None:
    anchor = archives.write(tmp_path / "a", archives.random_job(7), chunk_bytes=256 * 1024)
    assert_equal(strobe.open(anchor), oracle(anchor))
