"""Files that strobe knows and does not read: their beginnings as their tools write them, and the way out."""

import shlex
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import strobe
from strobe import registry
from strobe.errors import FormatError
from strobe.formats.known_formats import KNOWN, KnownFormat
from strobe.model.plugins import Format

# The first bytes of a file of each kind, and words of the command that converts it.
BEGINNINGS = [
    (
        b"HCAT\x01\0\0\0\x03\x0f\0\0" + bytes(52),
        "a binary profile of Python's profiling.sampling",
        "replay --collapsed",
    ),
    (
        b"TACH\0\0\0\x01\x03\x0f\0\0" + bytes(52),
        "a binary profile of Python's profiling.sampling",
        "replay --collapsed",
    ),
    (b"<!doctype html>\n<html><title>Tachyon Profiler - Flamegraph</title>", "a page of Python's", "--binary"),
    (
        b"\x04\x08{\x0e:\x0cversionf\x081.2:\tmode:\twall:\rintervali\x02\xe8\x03",
        "a stackprof dump",
        "stackprof --json",
    ),
    (b"HPCTOOLKITmeta\x04\0" + bytes(64), "an HPCToolkit database", "from_hpctoolkit_latest"),
    (
        b'<?xml version="1.0"?>\n<!DOCTYPE HPCToolkitExperiment [\n]>\n<HPCToolkitExperiment version="2.2">',
        "an HPC",
        "hatchet",
    ),
    (b"PROJECTIONS_ID\nVERSION 6.6\nMACHINE net-linux\n", "a Charm++ Projections trace", "projections"),
    (struct.pack("<5Q", 0, 3, 0, 10_000, 0) + bytes(64), "a profile of gperftools", "pprof -proto"),
    (struct.pack("<5I", 0, 3, 0, 10_000, 0) + bytes(64), "a profile of gperftools", "pprof -proto"),
    (b"heap profile:    144:  8498176 [   144:  8498176] @ heapz_v2/524288\n", "a profile of gperftools", "pprof"),
    (b"--- contentionz 1 ---\ncycles/second = 3201000000\n", "a profile of gperftools, or of Go", "pprof -proto"),
    (b"threadcreate profile: total 7\n1 @ 0x44cb3 0x45045\n", "a profile of gperftools, or of Go", "pprof -proto"),
    (
        b'jdk.ExecutionSample {\n  startTime = 00:08:33.807\n  sampledThread = "main" (javaThreadId = 1)\n',
        "a recording of Java Flight Recorder",
        "jfr print --json",
    ),
    (
        b'{"Type":80,"NvtxEvent":{"Type":59,"Timestamp":"43116285","Text":"step"}}\n',
        "a JSON export of Nsight",
        "export --type sqlite",
    ),
    (b"bplist00\xd4\x01\x02_\x10\x1dcom.apple.xray.owner.template", "a trace of Xcode's Instruments", "samply"),
]


@pytest.mark.parametrize(("head", "title", "command"), BEGINNINGS)
def test_a_file_that_is_known_is_named_with_the_way_out(tmp_path: Path, head: bytes, title: str, command: str) -> None:
    folder = tmp_path / "of a run"
    folder.mkdir()
    path = folder / "file"
    path.write_bytes(head)
    (folder / "notes.txt").write_text("nothing\n")
    for given in (path, folder):
        with pytest.raises(FormatError, match="which strobe does not read") as refused:
            strobe.open(given)
        assert f"'{path}' ({len(head)} B) is {title}" in str(refused.value)
        assert command in refused.value.do
        assert not {"FILE", "FOLDER"} & set(shlex.split(refused.value.do))


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.title)
def test_commands_are_whole_words_of_a_shell_for_any_path(known: KnownFormat) -> None:
    path = "/a b/FOLDER $(x)/it's FILE"
    words = shlex.split(known.advice(path))
    assert ("FILE" in known.do) == (path in words)
    assert ("FOLDER" in known.do) == (path.rpartition("/")[0] in words)


def test_no_known_file_is_one_that_a_format_reads() -> None:
    plugins = [registry.load("formats", name) for name in registry.names("formats")]
    for head, *_ in BEGINNINGS:
        assert sum(known.sniff(head) for known in KNOWN) == 1
        assert not [each.name for each in plugins if isinstance(each, Format) and each.read and each.sniff(head)]


def test_the_command_line_gives_the_command_with_the_path_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "my dump"
    path.write_bytes(BEGINNINGS[3][0])
    done = subprocess.run([sys.executable, "-m", "strobe", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == FormatError.exit_code
    assert f"stackprof --json '{path}' > stackprof.json" in done.stderr
    assert "Traceback" not in done.stderr
