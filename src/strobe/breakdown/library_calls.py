"""What functions of the program call in libraries, by samples; and of which such calls a loop can do without."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from strobe.breakdown.host_time import host_times, own_and_called
from strobe.steps.thread_spans import main_location
from strobe.sums.samples import frame_of, sample_sums
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace


@dataclass(frozen=True)
class Sparable:
    """Calls that a loop can mostly do without.

    of: regular expression of their file, from the library's folder on, and their name. do: what helps. least: the part
    of their time that this saves at least, 0 to 1; all of it at most.
    """

    of: re.Pattern[str]
    do: str
    least: float


def _sparable(of: str, do: str, least: float) -> Sparable:
    return Sparable(re.compile(of), do, least)


_FILES = r"(glob|fnmatch|shutil|tempfile|pathlib|pathlib/.*)\.py:|<frozen os>:(walk|listdir|scandir)"
_TABLES = r"(csv|numpy/lib/_?npyio(_impl)?|pandas/io/.*)\.py:"
_SPARABLE = (
    _sparable(r"logging/__init__\.py:", "log less often, or below the level that is shown; flush no single line", 0.7),
    _sparable(
        r"torch/_tensor(_str)?\.py:(Tensor\.__(repr|format|str)__|_.*str.*)",
        "make text of tensors only where it is shown: logger.debug('%s', tensor)",
        0.7,
    ),
    _sparable(r"copy\.py:(deep)?copy", "copy only what changes, or share what does not", 0.5),
    _sparable(r"json/__init__\.py:dumps?", "write JSON only where it is read, less often, or in another thread", 0.6),
    _sparable(r"json/__init__\.py:loads?", "parse it once, and keep the result", 0.6),
    _sparable(r"torch/serialization\.py:save", "save less often, or from another thread or process", 0.5),
    _sparable(r"torch/serialization\.py:load", "load it once, before the loop", 0.6),
    _sparable(r"(pickle|shelve)\.py:", "pickle less often, or send arrays as they are", 0.5),
    _sparable(_TABLES, "parse the file once, and keep it in binary form", 0.6),
    _sparable(
        r"(gzip|bz2|lzma|zipfile|zipfile/.*|tarfile)\.py:",
        "decompress it once and keep the result, or let a worker do it ahead",
        0.5,
    ),
    _sparable(r"re/(__init__|_compiler|_parser)\.py:(_?compile|template)", "compile the pattern before the loop", 0.7),
    _sparable(r"concurrent/futures/.*\.py:|multiprocessing/pool\.py:", "hand over fewer and larger tasks", 0.4),
    _sparable(r"subprocess\.py:", "start one process for many inputs, or call a library instead", 0.5),
    _sparable(_FILES, "look at the file system once, before the loop", 0.5),
    _sparable(r"(traceback|inspect|warnings|linecache)\.py:", "look at the program's code only where it fails", 0.7),
    _sparable(r"_strptime\.py:", "parse dates once, or from numbers", 0.5),
    _sparable(r"(tqdm|rich|progressbar)/.*\.py:", "show progress less often", 0.7),
    _sparable(r"(matplotlib|plotly|seaborn)/.*\.py:", "draw less often, or in another process", 0.6),
)


@dataclass(frozen=True)
class LibraryCall:
    """What a function of the program calls most. name: of the function. share: of the function's own time, 0 to 1.

    samples: so many of them. sparable: what is known of it, None if nothing is.
    """

    name: str
    share: float
    samples: int
    sparable: Sparable | None


@cached_on_trace
def library_calls(trace: Trace, process: int) -> dict[str, LibraryCall]:
    """Return, by function of the program (as a line of a call stack has it), what its main thread calls there most.

    By samples in the steady steps, or of the run without steps. Own time is that in the function, or in libraries that
    it calls. Functions of libraries that are C code are not seen: the time in them is the caller's.
    """
    window = next((each.window_ns for each in host_times(trace) if each.process == process), None)
    location = main_location(trace, process)
    times, samples = dict[str, Counter[str]](), dict[str, Counter[str]]()
    for each in sample_sums(trace, location, window) if location is not None else ():
        own, called = own_and_called(each.stack)
        times.setdefault(own, Counter())[called] += each.ran_ns + each.other_ns
        samples.setdefault(own, Counter())[called] += each.samples
    found = {}
    for own, of_called in times.items():
        called = max((each for each in of_called if each), key=of_called.__getitem__, default="")
        if called:
            name, *_ = frame_of(called)
            share = of_called[called] / max(1, of_called.total())
            found[own] = LibraryCall(name, share, samples[own][called], _known(called))
    return found


def _known(frame: str) -> Sparable | None:
    name, file, _ = frame_of(frame)
    text = f"{_in_library(file)}:{name}"
    return next((each for each in _SPARABLE if each.of.match(text)), None)


def _in_library(file: str) -> str:
    """Return a file without what is before its library: `torch/_tensor.py`, `logging/__init__.py`."""
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in file:
            return file.rpartition(folder)[2]
    return re.sub(r".*/lib/python3[^/]*/", "", file)
