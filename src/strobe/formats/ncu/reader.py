"""Reads reports and tables of Nsight Compute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from strobe.formats.ncu.first_bytes import MAGIC
from strobe.formats.ncu.printed import as_csv, is_printed
from strobe.formats.reading.conversion import INPUT, converted
from strobe.formats.reading.import_process import NO_PATH, ImportProcess, finish_all
from strobe.formats.reading.profile_import import read_whole
from strobe.formats.reading.sqlite_input import NONE
from strobe.gpu import measured_metrics
from strobe.gpu.nvidia import ncu
from strobe.model.losses import RECORDS_LEFT_OUT, RECORDS_TAKEN
from strobe.model.plugins import Imported, ImportSource, ImportTarget

_PRINT = ("ncu", "--import", INPUT, "--csv", "--page", "raw", "--print-units", "base")
_DURATION = "gpu__time_duration.sum"
_LARGEST = 1 << 62
_NOT_KEPT = ("Host Name", "Kernel Time", "Block Size", "Grid Size", "CC", "Rule Description")


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file. Raises ValueError if it has no kernel, or is a report that ncu does not print."""
    return _imported(source, target, text_of(source))


def text_of(source: ImportSource) -> str:
    """Return the text of a table, or of what ncu prints of a report; the same errors."""
    if next(iter(source.chunks()), b"").startswith(MAGIC):
        with converted(source, _PRINT, ".csv") as printed:
            return read_whole(printed).decode("utf-8", "replace")
    whole = read_whole(source)
    text = whole.decode("utf-8", "replace")
    return as_csv(text) if is_printed(whole) else text


def _imported(source: ImportSource, target: ImportTarget, text: str) -> Imported:
    counters = Counter[str]()
    launches, summed = ncu.launches(text, counters), ncu.kernel_metrics(text)
    if not launches and not summed:
        raise ValueError("it has no kernel")
    counters[RECORDS_TAKEN], counters[RECORDS_LEFT_OUT] = len(launches) or len(summed), counters["unreadable_rows"]
    counters["columns_not_kept"] = sum(f'"{column}"' in text for column in _NOT_KEPT)
    processes: dict[int, ImportProcess] = {}
    durations: dict[tuple[int, int | None, int | None, int | None], dict[str, list[float | None]]] = {}
    for each in launches:
        stream = durations.setdefault((each.process, each.device, each.stream, each.context), {})
        stream.setdefault(each.kernel, []).append(each.values.get(_DURATION))
    for (number, *place), kernels in durations.items():
        process = processes[number] = processes.get(number) or ImportProcess(target, number)
        device, stream_number, context = (NONE if cell is None else cell for cell in place)
        location = process.stream(device, stream_number, context)
        for kernel, values in kernels.items():
            known = [round(value) for value in values if value is not None]
            counters["kernels_without_time"] += len(values) - len(known)
            _add(process, location, kernel, (len(values), sum(known), min(known, default=0), max(known, default=0)))
    if launches:
        measured_metrics.keep(target.folder, launches, measured_metrics.present(launches))
    else:
        process = processes[0] = ImportProcess(target, 0)
        _add_summary(process, summed)
        measured_metrics.keep_by_kernel(target.folder, summed)
    programs = {each.process: each.program for each in launches}
    return finish_all(
        processes,
        source,
        lambda number: programs.get(number) or f"process {number}",
        counters=counters,
        properties={"messages": ncu.complaints(text)},
    )


def _add(process: ImportProcess, location: int, kernel: str, sums: tuple[int, int, int, int]) -> None:
    """Add a kernel: how many launches, and the sum, shortest and longest of their durations in ns."""
    count, total, least, most = sums
    if max(map(abs, sums)) >= _LARGEST:
        process.count("weights_out_of_range")
        total = least = most = 0
    path = process.out.path(NO_PATH, process.region(kernel, "cuda", "kernel"))
    process.out.totals(location, path, count, total, total, least, most)


def _add_summary(process: ImportProcess, metrics: Iterable[ncu.KernelMetric]) -> None:
    location = process.location("kernels", "GPU", 0, "stream")
    launches: dict[str, int] = {}
    timed: dict[str, ncu.KernelMetric] = {}
    for each in metrics:
        launches[each.kernel] = max(launches.get(each.kernel, 0), each.launches)
        if each.metric == _DURATION and each.mean is not None:
            timed[each.kernel] = each
    for kernel, count in launches.items():
        known = timed.get(kernel)
        if known is None or known.mean is None:
            process.count("kernels_without_time", count)
            _add(process, location, kernel, (count, 0, 0, 0))
        else:
            sums = known.mean * known.launches, known.low or known.mean, known.high or known.mean
            total, least, most = map(round, sums)
            _add(process, location, kernel, (count, total, least, most))
