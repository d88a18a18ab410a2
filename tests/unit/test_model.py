"""Words and units: the same enumerations everywhere, numbers that people can read, one public face."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import strobe
from strobe import errors, registry
from strobe.model.kinds import GROUPS, PARADIGMS, ROLES, group_of
from strobe.model.losses import LOSSES, NOT_RECORDED, REMARKS
from strobe.model.schema import TABLES
from strobe.model.units import format_bytes, format_count, format_interval_ns, format_ns, format_share

pytestmark = pytest.mark.every_python

ROOT = Path(__file__).parents[2]


def enumerators(name: str, prefix: str) -> list[str]:
    header = (ROOT / "native/include/strobe.h").read_text()
    body = re.search(rf"enum {name} \{{(.*?)\}};", header, re.DOTALL)
    assert body
    without_comments = re.sub(r"//.*", "", body[1])
    words = [word.split("=")[0].strip() for word in without_comments.split(",") if word.strip()]
    return [word.removeprefix(prefix).lower() for word in words]


def test_the_recorder_and_the_reader_number_kinds_alike():
    names = ["strobe" if name == "self" else name for name in enumerators("strobe_paradigm", "STROBE_")]
    assert tuple(names) == PARADIGMS
    assert tuple(enumerators("strobe_role", "STROBE_ROLE_")) == ROLES


@pytest.mark.parametrize(
    ("name", "paradigm", "role", "group"),
    [
        ("aten::mm", "torch", "operator", "compute"),
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "torch", "wait", "data"),
        ("DataLoader.fetch", "torch", "data", "data"),
        ("Optimizer.step#SGD.step", "torch", "range", "compute"),
        ("main", "python", "function", "host"),
        ("MPI_Allreduce", "mpi", "collective", "communication"),
        ("MPI_Init", "mpi", "function", "communication"),
        ("MPI_Waitall", "mpi", "wait", "communication"),
        ("MPI_Barrier", "mpi", "sync", "communication"),
        ("shmem_wait_until", "shmem", "wait", "communication"),
        ("cudaStreamSynchronize", "cuda", "sync", "sync"),
        ("Memcpy HtoD", "cuda", "copy", "copy"),
        ("epoch", "nvtx", "range", "other"),
    ],
)
def test_the_group_of_a_region(name, paradigm, role, group):
    assert group_of(name, paradigm, role) == group
    assert group in GROUPS


def test_every_column_of_time_says_its_unit_in_name_and_metadata():
    for table, columns in TABLES.items():
        for column in columns:
            assert column.name.endswith("_ns") == (column.unit == "ns"), (table, column.name)
            assert column.meaning, (table, column.name)


@pytest.mark.parametrize(
    ("value_ns", "text"),
    [
        (0, "0 ns"),
        (812, "812 ns"),
        (999.99, "1.00 us"),
        (14_520, "14.52 us"),
        (214_600_000, "214.6 ms"),
        (12_300_000_000, "12.30 s"),
        (372_000_000_000, "6 min 12 s"),
        (7_260_000_000_000, "2 h 1 min"),
        (-1500, "-1.50 us"),
    ],
)
def test_times_for_people(value_ns, text):
    assert format_ns(value_ns) == text


def test_other_numbers_for_people():
    assert format_interval_ns(48e6, 66e6) == "48.0..66.0 ms"
    assert format_interval_ns(0, 66e6) == "up to 66.00 ms"
    assert [format_bytes(n) for n in (512, 38_200, 1.9e9)] == ["512 B", "38.2 kB", "1.90 GB"]
    assert format_count(1180) == "1 180"
    assert [format_share(s) for s in (0, 0.0003, 0.042, 0.0999, 0.31)] == ["0 %", "<0.1 %", "4.2 %", "10 %", "31 %"]


def test_importing_strobe_imports_nothing_else_of_it_and_no_package():
    code = "import sys; before = set(sys.modules); import strobe; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "pyarrow", "duckdb", "polars", "pandas", "rich", "argparse", "json", "dataclasses"}
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert not heavy & loaded
    assert [name for name in done.stdout.split() if name.startswith("strobe")] == ["strobe"]


def test_every_public_name_can_be_fetched_and_nothing_else():
    for name in strobe.__all__:
        assert getattr(strobe, name) is not None
    assert set(strobe.__all__) <= set(dir(strobe))
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        strobe.nosuch  # noqa: B018


def test_strobe_record_is_callable_even_after_its_package_was_imported():
    code = "import strobe.record.options.session_settings, strobe; assert callable(strobe.record); strobe.region('a')"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_listing_plug_ins_imports_none_of_them():
    code = """
import sys
from strobe import registry
for kind in registry.KINDS:
    registry.names(kind)
print(*(name for name in sys.modules if name.startswith("strobe.") and name.count(".") > 1))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [name for name in done.stdout.split() if name not in ("strobe.record.adapters", "strobe.cli.verbs")] == []


def test_every_plug_in_is_described_by_what_its_kind_says():
    for kind in ("advice", "cli.verbs"):
        for name in registry.names(kind):
            plugin = registry.load(kind, name)
            assert getattr(plugin, "run", None), (kind, name)


def test_every_error_says_its_exit_code_and_what_to_do():
    assert str(errors.TraceError("cannot read", where="a", do="try b")) == "cannot read (a)\n  try b"
    tree = errors.__doc__ or ""
    for error in vars(errors).values():
        if isinstance(error, type) and issubclass(error, errors.StrobeError):
            assert error.__name__ in tree, "the tree in the docstring is complete"


def test_every_counter_has_words_and_fits_where_it_is_counted():
    room = re.search(
        r"struct Counter \{.*?char name\[(\d+)\]", (ROOT / "native/core/rings/ring.h").read_text(), re.DOTALL
    )
    assert room
    sources = [
        path
        for folder, kinds in (("native", (".c", ".cpp", ".h")), ("src/strobe", (".py",)))
        for path in (ROOT / folder).rglob("*")
        if path.suffix in kinds and not {"vendor", "tests"} & {*path.relative_to(ROOT).parts}
    ]
    # count("what", ...), or left_out; what the end of a session adds: add("what", ...). It may be one of two.
    calls = re.compile(r"\b(?:strobe_)?(?:count|left_out|lost|unknown)\((?!nullptr)([^;()]*?\"[^;()]*)[,)]")
    ends = re.compile(r"\badd\((\"[^;()]*)[,)]")
    found = {
        name
        for path in sources
        for pattern in ((calls, ends) if path.parent == ROOT / "native/core/session" else (calls,))
        for call in pattern.findall(path.read_text(encoding="utf-8"))
        for name in re.findall(r'"([a-z]+(?:_[a-z]+)+)"', call)
    }
    assert {"rows_lost", "samples_not_read", "functions_throttled", "lines_not_understood"} <= found
    unknown = {name for name in found if not name.startswith(NOT_RECORDED)} - {*LOSSES} - {*REMARKS}
    assert unknown == set()
    assert {name for name in {*LOSSES, *REMARKS} & found if len(name) >= int(room[1])} == set()
