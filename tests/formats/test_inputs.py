"""What every format is spared: texts in other encodings, and to be loaded for files of others."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

import strobe
from strobe.api.unfinished_imports import work_folder
from strobe.formats.reading.inputs import inputs_of
from tests.formats.test_profiles import by_path

STACKS = "main;größe;😀 42\nmain 8\n"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_text_in_utf_16_is_read_as_any_other(tmp_path: Path, encoding: str, packed: bool) -> None:
    content = ("\ufeff" + STACKS).encode(encoding)
    path = tmp_path / "x.txt"
    path.write_bytes(gzip.compress(content) if packed else content)
    assert by_path(strobe.open(path)) == {"main": 8, "main;größe": 0, "main;größe;😀": 42}
    source = inputs_of(path)[0]
    assert source.local_path().read_text(encoding="utf-8") == STACKS
    source.close()


def test_utf_16_is_read_whole_across_its_pieces(tmp_path: Path) -> None:
    path = tmp_path / "x"
    text = "é😀" * 300_001
    path.write_bytes(b"\xff\xfea\0" + text.encode("utf-16-le") + b"\x3d")  # half a letter at the end
    assert b"".join(inputs_of(path)[0].chunks()).decode() == "a" + text + "\ufffd"


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"\xff\xfe", b"\xff\xfe\0\0", b"\xfe\xffab", b"\xff\xfeabc", b"a\0b\0"]
)
def test_other_bytes_stay_as_they_are(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert b"".join(inputs_of(path)[0].chunks()) == content
    assert inputs_of(path)[0].local_path() == path


def test_neither_pyarrow_nor_a_reader_of_another_format_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"traceEvents": [{"ph": "X", "name": "f", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}')
    code = f"import strobe, sys; print(strobe.open({str(path)!r}).span_count, *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    count, *loaded = done.stdout.split()
    assert count == "1"
    assert "strobe.formats.ascend" in loaded  # it is asked first
    heavy = ("ascend.reader", "profiles.callgrind.reader", "ncu.reader", "nvprof", "rocm", "html.page", "otf2")
    assert not [name for name in loaded if name.startswith(tuple(f"strobe.formats.{each}" for each in heavy))]
    assert not [name for name in loaded if name.partition(".")[0] in ("pyarrow", "duckdb", "pandas")]


def test_what_a_killed_import_has_left_is_removed_by_the_next_one_in_that_folder(tmp_path: Path) -> None:
    (tmp_path / "large.folded").write_text("".join(f"main;f{n} {n + 1}\n" for n in range(300_000)))
    (tmp_path / "other.folded").write_text(STACKS)
    command = [sys.executable, "-m", "strobe", "import", "large.folded"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as killed:
        while not (left := list(tmp_path.glob(".*importing-*"))) and killed.poll() is None:
            pass
        killed.kill()
    assert left
    assert left[0].is_dir()
    # One that is under way, one of another host, and one whose number another process has now.
    alive = work_folder(tmp_path / "alive.strobe")
    elsewhere = alive.with_name(f"{alive.name.partition('-')[0]}-elsewhere-7-1")
    again = alive.with_name(f"{alive.name}1")
    for folder in (alive, elsewhere, again):
        (folder / "process-1.blocks").parent.mkdir()
    strobe.open(tmp_path / "other.folded")  # into the cache
    assert left[0].is_dir()
    done = subprocess.run([*command[:-1], "other.folded"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sorted(tmp_path.glob(".*importing-*")) == sorted([alive, elsewhere])
