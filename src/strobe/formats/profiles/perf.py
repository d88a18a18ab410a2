"""Linux perf: the text of `perf script`, and perf.data through `perf script` where perf is installed.

Each thread is a location. The time of a call path is the sum of the periods of the clock events (cpu-clock,
task-clock); without those, samples are counted. The periods of all other events are metrics of the path. The moments of
samples, their CPUs, source lines and the data of tracepoints are not kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from strobe.formats.reading.conversion import INPUT, converted
from strobe.formats.reading.profile_import import ROOT, SAMPLES, CallTree, ProfileProcess, Weight
from strobe.formats.reading.python_names import function_of_symbol
from strobe.formats.reading.text_input import lines_of
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

_MAGIC = (b"PERFILE2", b"2ELIFREP")
# Inlined frames are left out: perf asks addr2line for each address, which takes hours for large programs.
_SCRIPT = ("perf", "script", "-i", INPUT, "--no-inline", "-F", "+pid")
# comm, pid/tid, [cpu], time, period, event, and the only frame or the data of a tracepoint. A comm has 15 letters, and
# may have spaces and numbers. Runs of blanks are bounded: else a line of 1 MiB takes many seconds.
_EVENT = re.compile(
    r"\s{0,16}(?P<comm>\S.{0,39}?)\s{1,99}(?:(?P<pid>-?\d{1,10})/)?(?P<tid>-?\d{1,10})\s{1,99}"
    r"(?:\[\d{1,6}\]\s{1,99})?(?:\d{1,12}\.\d{1,9}:\s{1,99})?(?:(?P<period>\d{1,19})\s{1,99})?"
    r"(?P<event>[A-Za-z]\S*?):(?:\s+(?P<rest>\S.*)|\s*)"
)
_FRAME = re.compile(r"\s*[0-9a-f]{1,16}[ \t]+(?P<symbol>\S.*)")  # of simpleperf: with a tab
_NAMELESS = re.compile(r"\([^()]*\)")  # perf before 3.10 leaves out the name that it does not know
_OFFSET = re.compile(r"\+0x[0-9a-f]+$")
_CLOCKS = ("cpu-clock", "task-clock")
_HEADER = re.compile(r"# (hostname|os release|perf version|arch|cmdline)\s*: (.*)")
_SNIFFED_LINES = 400
_MOST_FRAMES = 1 << 16  # of a sample
_MOST_KNOWN = 1 << 20
_MOST_THREADS = 1 << 14
_MOST_NAMES = 1 << 7  # of events, and of a thread, which gets another with exec
_OTHERS = (-1, -1)


def sniff(head: bytes) -> bool:
    """Return whether it is perf.data, or text with an event and its frame behind it or in the line below."""
    if head.startswith(_MAGIC):
        return True
    if b"\0" in head:
        return False
    before = None
    for line in head.decode("utf-8", "replace").splitlines()[:_SNIFFED_LINES]:
        # Frames begin with a tab; of simpleperf, and where tabs became spaces, with spaces.
        framed = line.startswith("\t") or (line.startswith("  ") and line.endswith(")"))
        if before is not None and framed and _FRAME.fullmatch(line):
            return True
        before = None if line.startswith(("\t", "#")) else _EVENT.fullmatch(line)
        if before is not None and _FRAME.fullmatch(before["rest"] or "") and before["rest"].endswith(")"):
            return True
    return False


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file. Raises ValueError if it is perf.data and perf does not read it."""
    process = ProfileProcess(source, target)
    if next(iter(source.chunks()), b"").startswith(_MAGIC):
        with converted(source, _SCRIPT, ".txt") as text:
            return _Script(process).read(text)
    return _Script(process).read(source)


@dataclass
class _Thread:
    """The samples of one thread: how many, and the sum of their periods, by call path and event."""

    names: Counter[str] = field(default_factory=Counter)
    sums: dict[tuple[int, str], list[int]] = field(default_factory=dict)


class _Script:
    """One text, read line by line: memory grows with the different call paths."""

    def __init__(self, process: ProfileProcess) -> None:
        self._process = process
        self._threads: dict[tuple[int, int], _Thread] = {}
        self._regions: dict[str, int] = {}
        self._timed: dict[str, bool] = {}  # the events, and whether each sample of them has a period

    def read(self, source: ImportSource) -> Imported:
        properties: dict[str, object] = {}
        event: re.Match[str] | None = None
        frames: list[str] = []
        for line in self._lines(source):
            begun = None if line.startswith(("\t", "#")) else _EVENT.fullmatch(line)
            frame = None if begun is not None else _FRAME.fullmatch(line)
            if frame is not None and event is not None:
                if len(frames) < _MOST_FRAMES:
                    frames.append(frame["symbol"])
                else:
                    self._process.core.count("frames_too_deep")
            elif begun is not None or not line:
                self._add(event, frames)
                event, frames = begun, []
            elif (header := _HEADER.fullmatch(line)) is not None:
                properties[header[1]] = header[2]
            elif line.startswith("  ") and event is not None:
                self._process.core.count("labels_not_kept")  # the source line of the frame above
            elif not line.startswith("#"):
                self._process.core.count("lines_not_understood")
        self._process.core.count("truncated", int(bool(frames)))  # an empty line follows every stack
        self._add(event, frames)
        self._save()
        return self._process.finish(properties)

    def _lines(self, source: ImportSource) -> Iterator[str]:
        for raw in lines_of(source, lambda: self._process.core.count("lines_not_understood")):
            line = raw.decode("utf-8", "replace").rstrip()
            if "PERF_RECORD_" not in line:  # maps and threads, with --show-mmap-events
                yield line

    def _add(self, event: re.Match[str] | None, frames: list[str]) -> None:
        """Add a sample; its innermost frame is the first."""
        if event is None:
            return
        rest = event["rest"]
        if rest and (only := _FRAME.fullmatch(rest)) is not None and not frames:
            frames = [only["symbol"]]
        elif rest:
            self._process.core.count("labels_not_kept")
        if not frames:
            self._process.core.left_out("samples_without_stack")
            return
        path = ROOT
        for symbol in reversed(frames):
            path = self._process.path(path, self._region(symbol))
        key = (int(event["pid"] or event["tid"]), int(event["tid"]))
        if key not in self._threads and len(self._threads) >= _MOST_THREADS:
            self._process.core.count("threads_folded")
            key = _OTHERS
        thread = self._threads.setdefault(key, _Thread())
        if len(thread.names) < _MOST_NAMES or event["comm"] in thread.names:
            thread.names[event["comm"]] += 1
        name, period = event["event"], event["period"]
        if name not in self._timed and len(self._timed) >= _MOST_NAMES:
            name = "other events"
        self._timed[name] = self._timed.get(name, True) and period is not None
        sums = thread.sums.setdefault((path, name), [0, 0])
        sums[0] += 1
        sums[1] += int(period or 0)

    def _region(self, symbol: str) -> int:
        known = self._regions.get(symbol)
        if known is None:
            name, module = symbol, ""
            bare = symbol.replace(" (deleted))", ")")
            bare = f"[unknown] {bare}" if _NAMELESS.fullmatch(bare) else bare
            before, opens, inside = bare.rpartition(" (")
            if opens and inside.endswith(")") and "(" not in inside and ")" not in inside[:-1]:
                name, module = before, "" if inside == "inlined)" else inside[:-1]
            name = _OFFSET.sub("", name)
            if name == "[unknown]":
                self._process.core.count("frames_without_function")
                name = f"[{module.rpartition('/')[2].strip('[]') or 'unknown'}]"
            known = self._process.region(function_of_symbol(name, module=module))
            if len(self._regions) < _MOST_KNOWN:
                self._regions[symbol] = known
        return known

    def _save(self) -> None:
        clocks = [name for name, timed in self._timed.items() if timed and name.partition(":")[0] in _CLOCKS]
        # Without clocks, all samples are counted together: an event without periods would be there twice.
        others = [name for name, timed in self._timed.items() if name not in clocks and (timed or clocks)]
        weights = [Weight(name, "events" if self._timed[name] else "samples") for name in others]
        weights += [SAMPLES] + [Weight(name, "ns") for name in clocks]
        for (pid, tid), thread in self._threads.items():
            comm = thread.names.most_common(1)[0][0]
            name = "other threads" if (pid, tid) == _OTHERS else f"{comm} {tid if pid == tid else f'{pid}/{tid}'}"
            sums = CallTree(self._process, self._process.core.location((pid, tid), name, tid), weights)
            for (path, event), (count, period) in thread.sums.items():
                values = [(period if self._timed[each] else count) * (event == each) for each in others]
                values.append(count if event in clocks or not clocks else 0)
                values += [period * (event == each) for each in clocks]
                sums.add(path, values, count, records=count)
            sums.save()


FORMAT = Format(
    "perf", "Linux perf (perf script, perf.data)", suffixes=(".perf", ".data", ".txt"), sniff=sniff, read=read
)
