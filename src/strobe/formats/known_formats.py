"""Files that are known and not read: what they are, and the command that makes a file of them that is read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class KnownFormat:
    """A kind of file that strobe can name, and not read.

    `title` has its article: "a memray capture". `sniff(head)` gets the first 64 KiB, unpacked. `do` is one line with
    the command that converts it; the words FILE and FOLDER in it become the path of the file, and of its folder.
    """

    title: str
    sniff: Callable[[bytes], bool]
    do: str

    def advice(self, path: str) -> str:
        """Return what to do with the file of this path."""
        places = {"FILE": path, "FOLDER": path.rpartition("/")[0] or "."}
        return re.sub(r"\b(?:FILE|FOLDER)\b", lambda word: shlex.quote(places[word[0]]), self.do)


def of(head: bytes) -> KnownFormat | None:
    """Return the format of a file that no reader took, by its first bytes; None if nobody knows it."""
    return next((each for each in KNOWN if each.sniff(head)), None)


def _begins(*marks: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(marks)


def _has(*words: bytes) -> Callable[[bytes], bool]:
    return lambda head: all(word in head for word in words)


_REPLAY = "Convert it: python3.15 -m profiling.sampling replay --collapsed -o stacks.txt "
# Of llnl-hatchet 2026.2: its seconds become nanoseconds, because it rounds what it writes to whole numbers.
_HATCHET = (
    "(sys.argv[1]); g.dataframe['time'] = g.dataframe['time'].fillna(0) * 1e9; print(g.to_flamegraph('time'))\" "
    "FOLDER > stacks.txt"
)
_PPROF = "Convert it, with the program that wrote it: pprof -proto -output profile.pb.gz PROGRAM FILE"
_PYTHON = 'Convert it: python -c "import sys, '
KNOWN: tuple[KnownFormat, ...] = (
    # "TACH" as an integer, in either order of bytes: InternalDocs/profiling_binary_format.md of CPython.
    KnownFormat("a binary profile of Python's profiling.sampling", _begins(b"HCAT", b"TACH"), f"{_REPLAY}FILE"),
    KnownFormat(
        "a page of Python's profiling.sampling",
        _has(b"<html", b"Tachyon Profiler"),
        "Record with --binary -o profile.bin. " + _REPLAY + "profile.bin",
    ),
    # Ruby's marshal, version 4.8, of a hash; its first key is a symbol.
    KnownFormat(
        "a stackprof dump",
        lambda head: head.startswith(b"\x04\x08{") and b":\x0cversion" in head[:16],
        "Convert it: stackprof --json FILE > stackprof.json",
    ),
    KnownFormat(
        "an HPCToolkit database",
        _begins(b"HPCTOOLKITmeta"),
        _PYTHON + "hatchet; g = hatchet.GraphFrame.from_hpctoolkit_latest" + _HATCHET,
    ),
    KnownFormat(
        "an HPCToolkit database",
        _has(b"<HPCToolkitExperiment"),
        _PYTHON + "hatchet; g = hatchet.GraphFrame.from_hpctoolkit" + _HATCHET,
    ),
    KnownFormat(
        "a Charm++ Projections trace",
        _begins(b"PROJECTIONS_ID", b"PROJECTIONS-RECORD"),
        _PYTHON + "pipit; pipit.Trace.from_projections(sys.argv[1]).to_chrome('trace.json')\" FOLDER",
    ),
    KnownFormat(
        "a JSON export of Nsight Systems",
        lambda head: (
            re.search(rb'"(CudaEvent|NvtxEvent|TraceProcessEvent|TargetInfoSystemEnv)": ?\{', head) is not None
        ),
        "Export the report instead: nsys export --type sqlite REPORT.nsys-rep",
    ),
    # The file info.json.0 in the folder of a device, or of the host, beside the binary files themselves.
    KnownFormat(
        "a recording of msprof (Ascend)",
        lambda head: head.lstrip().startswith(b'{"jobInfo"') and b'"DeviceInfo"' in head,
        "Export it: cd FOLDER && msprof --export=on --output=..",
    ),
    # Words of 8 or 4 bytes: 0, and how many of the header follow.
    KnownFormat(
        "a profile of gperftools",
        _begins(bytes(8) + b"\3" + bytes(7), bytes(4) + b"\3" + bytes(7)),
        _PPROF,
    ),
    KnownFormat(
        "a profile of gperftools, or of Go with debug=1",
        lambda head: re.match(rb"(?:heap|threadcreate|goroutine) profile: |--- \w{1,20} \d", head) is not None,
        _PPROF,
    ),
    KnownFormat(
        "a recording of Java Flight Recorder, printed as text",
        lambda head: re.match(rb"\s*jdk\.\w{1,60} \{\r?\n  startTime = ", head) is not None,
        "Open the recording (.jfr) itself, or print all of it: jfr print --json --stack-depth 2048 recording.jfr",
    ),
    # The file form.template of the folder, a binary property list.
    KnownFormat(
        "a trace of Xcode's Instruments",
        lambda head: head.startswith(b"bplist00") and b"com.apple.xray." in head,
        "Convert its deep copy of the samples to pprof with instrumentsToPprof, or record with samply.",
    ),
)
