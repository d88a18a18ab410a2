"""Captures of memray, through what `memray transform csv` writes, against memray's own reader."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import strobe
from strobe.errors import FormatError
from tests.formats.test_chrome import quality
from tests.formats.test_profiles import by_path

TABLE = """\
allocator,num_allocations,size,tid,thread_name,stack_trace
MALLOC,5,10000020,1,0x1,"hold;/a, b.py;2|spike;/a, b.py;4|<module>;/a, b.py;5"
CALLOC,1,300,1,0x1,"hold;/a, b.py;2|<module>;/a, b.py;6"
MMAP,2,4096,7,0x7 (worker),"hold;/a, b.py;2"
MALLOC,1,8,1,0x1,
MALLOC,one,8,1,0x1,x;y;1
MALLOC,1,9,1,0x1,"no frame|hold;/a, b.py;3"
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))


def test_a_table_is_bytes_and_allocations_by_call_stack(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    trace = strobe.open(tmp_path / "t.csv")
    joins = (
        "join locations l using (location) join call_paths c using (call_path) join regions r on r.region = c.region"
    )
    rows = trace.sql(f"select l.name, r.name, r.line, count, total_ns, self_ns from statistics s {joins}").rows()
    assert sorted(rows) == [
        ("0x7 (worker)", "hold", 2, 2, 4096, 4096),
        ("thread 1", "<module>", 5, 5, 10_000_020, 0),
        ("thread 1", "<module>", 6, 1, 300, 0),
        ("thread 1", "<no Python function>", 0, 1, 8, 8),
        ("thread 1", "hold", 2, 1, 300, 300),
        ("thread 1", "hold", 2, 5, 10_000_020, 10_000_020),
        ("thread 1", "hold", 3, 1, 9, 9),
        ("thread 1", "spike", 4, 5, 10_000_020, 0),
    ]
    assert quality(trace)["samples_not_understood"] == 1
    assert quality(trace)["frames_not_understood"] == 1
    assert trace.sql("select distinct file from regions where name = 'hold'").rows() == [("/a, b.py",)]


CAPTURE = b"\x04\x22\x4d\x18\x40\x40\xc0\x95\x39\x00\x00\xfa\x04memray\0" + b"\r\0\0\0" * 20


def test_a_capture_is_read_through_memray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tmp_path / "t.csv").write_text(TABLE)
    tool = tools / "memray"  # writes the table if it is asked as memray is
    tool.write_text(f'#!{sys.executable}\nimport shutil, sys\nassert sys.argv[1:4] == ["transform", "csv", "-o"]\n'
                    f'assert open(sys.argv[5], "rb").read(4) == b"\\x04\\x22\\x4d\\x18"\n'
                    f'shutil.copy("{tmp_path / "t.csv"}", sys.argv[4])\n')  # fmt: skip
    tool.chmod(0o755)
    (tmp_path / "t.bin").write_bytes(CAPTURE)
    monkeypatch.setenv("PATH", str(tools))
    assert by_path(strobe.open(tmp_path / "t.bin"))["<module>;spike;hold"] == 10_000_020


def test_without_memray_the_command_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.bin").write_bytes(CAPTURE)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FormatError, match=r"needs memray.* memray transform csv -o \S+t\.bin\.csv \S+t\.bin"):
        strobe.open(tmp_path / "t.bin")


def test_the_peak_of_a_real_capture_is_that_of_memray(tmp_path: Path) -> None:
    memray = pytest.importorskip("memray")
    if shutil.which("memray") is None:
        pytest.skip("needs the command memray")
    program = tmp_path / "spike.py"
    program.write_text("def hold(n): return bytearray(n)\nkept = [hold(1000003) for _ in range(7)]\n"
                       "spike = [hold(2000003) for _ in range(5)]\ndel spike\n")  # fmt: skip
    capture = tmp_path / "t.bin"
    subprocess.run(["memray", "run", "-q", "-o", str(capture), str(program)], check=True, capture_output=True)
    reader = memray.FileReader(str(capture))
    records = list(reader.get_high_watermark_allocation_records(merge_threads=False))
    trace = strobe.open(capture)
    assert trace.sql("select sum(self_ns)::bigint from statistics").rows() == [(reader.metadata.peak_memory,)]
    held = sum(record.n_allocations for record in records)
    assert trace.sql("select sum(self_value) from path_metrics where metric = 'allocations'").rows() == [(float(held),)]
