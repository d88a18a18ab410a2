"""What strobe says of PyTorch's profiles, beside a few lines that read the same files their own way.

./dev bench kineto_truth FOLDER    every .json and .json.gz in it; a line for each file, and the differences

Compared: the number of records; of every kernel its name, time and operator; busy and idle time of every stream; and
whether the critical path of the whole run is as long as the run, and no shorter than what its busiest stream ran.
"""

import argparse
import bisect
import os
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import strobe
from strobe.api.imports import opened
from strobe.errors import StrobeError
from tests.formats.test_conservation import events_of

Event = dict[str, Any]
Interval = tuple[int, int]

KERNELS = ("kernel", "mtia_ccp_events")
COPIES = ("gpu_memcpy", "gpu_memset", "memcpy", "memset")
CALLS = ("cuda_runtime", "cuda_driver", "runtime", "mtia_runtime", "xpu_runtime", "xpu_driver", "privateuse1_runtime")
OPERATORS = ("cpu_op", "operator")
COLLECTIVES = ("c10d::", "gloo:", "nccl:", "hccl:", "xccl:")
# Spans of more than that are too many for one critical path: it is of the middle of the run.
WHOLE = 1 << 19


class File:
    """One file as the standard library reads it. Times are whole nanoseconds."""

    def __init__(self, path: Path) -> None:
        self.events = events_of(path)
        spans = [each for each in self.events if each.get("ph") == "X" and "ts" in each]
        self.spans = [
            each | {"cat": str(each.get("cat", "")).lower(), "args": each.get("args") or {}} for each in spans
        ]
        for each in self.spans:
            each["start"] = int((Decimal(each["ts"]) * 1000).to_integral_value())
            each["end"] = each["start"] + int((Decimal(each.get("dur", 0)) * 1000).to_integral_value())
        self.work = [each for each in self.spans if kind(each)]
        self.kernels = [each for each in self.work if kind(each) == "kernel"]

    def operators(self) -> Iterator[str | None]:
        """The operator of each kernel: the innermost around the call with its correlation, else by its external id."""
        calls: dict[int, Event] = {}
        threads, external = defaultdict(list), dict[int, Event]()
        for each in sorted(self.spans, key=lambda each: (each["start"], -each["end"])):
            if each["cat"] in CALLS and "correlation" in each["args"] and not waits(each["name"]):
                calls.setdefault(int(each["args"]["correlation"]), each)
            if is_operator(each):
                threads[each["pid"], each["tid"]].append(each)
                external.setdefault(number(each, "external id"), each)
        starts = {thread: [each["start"] for each in rows] for thread, rows in threads.items()}
        around = {thread: enclosing(rows) for thread, rows in threads.items()}
        for kernel in self.kernels:
            call = calls.get(number(kernel, "correlation")) if number(kernel, "correlation") > 0 else None
            if call is None:
                named = number(kernel, "external id")
                found = external.get(named) if named > 0 and named != number(kernel, "correlation") else None
                yield found["name"] if found else None
                continue
            thread = call["pid"], call["tid"]
            at = bisect.bisect_right(starts.get(thread, []), call["start"]) - 1
            while at >= 0 and threads[thread][at]["end"] < min(call["start"] + 1, call["end"]):
                at = around[thread][at]
            yield threads[thread][at]["name"] if at >= 0 else None

    def streams(self) -> dict[tuple[str, str], list[Interval]]:
        """When work ran, by device and stream."""
        found = defaultdict(list)
        for each in self.work:
            device, stream = str(each["pid"]), str(each["tid"]).removeprefix("stream ")
            found[device, stream].append((each["start"], each["end"]))
        return found


def kind(event: Event) -> str:
    """`kernel`, `copy`, or nothing."""
    if event["cat"] == "mtia_ccp_events":
        return {"dma_request": "copy", "event_wait": "", "event_record": ""}.get(event["name"], "kernel")
    return "kernel" if event["cat"] in KERNELS else "copy" if event["cat"] in COPIES else ""


def number(event: Event, key: str) -> int:
    """A whole number among the arguments, -1 without one."""
    return next((int(value) for name, value in event["args"].items() if name.lower() == key and value is not None), -1)


def waits(name: str) -> bool:
    """Whether a call of CUDA or HIP waits: it launches nothing."""
    return "Synchronize" in name or "EventQuery" in name


def is_operator(event: Event) -> bool:
    """Whether an event is an operator, or a collective, which launches kernels as these do.

    Not ranges of the program, which older versions report as operators.
    """
    name = str(event["name"])
    collective = name == "record_param_comms" or name.startswith(COLLECTIVES)
    if event["cat"] in OPERATORS:
        return collective or "::" in name or name.startswith("triton_")
    return collective and event["cat"] == "user_annotation"


def enclosing(rows: list[Event]) -> list[int]:
    """Of spans in order of start, the innermost that is still open when each begins; -1: none."""
    out, open_now = [], list[int]()
    for at, each in enumerate(rows):
        while open_now and rows[open_now[-1]]["end"] < each["end"]:
            open_now.pop()
        out.append(open_now[-1] if open_now else -1)
        open_now.append(at)
    return out


def union(intervals: Iterable[Interval]) -> int:
    """Length of all of them together."""
    total, until = 0, -(2**62)
    for start, end in sorted(intervals):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total


def window(intervals: list[Interval]) -> int:
    """From the first start to the last end."""
    return max(end for _, end in intervals) - min(start for start, _ in intervals)


def differences(file: File, trace: strobe.Trace) -> Iterator[str]:
    """One sentence for each difference."""
    records = Counter[str]()
    for row in trace.quality.to_pylist():
        if str(row["what"]).startswith("records_"):
            records[str(row["what"])] += int(row["value"])
    if records.total() != len(file.events):
        yield f"{len(file.events)} records in the file, {dict(records)}"
    yield from of_kernels(file, trace)
    yield from of_streams(file, trace)
    yield from of_path(file, trace)


def of_kernels(file: File, trace: strobe.Trace) -> Iterator[str]:
    for by in ("name", "operator"):
        truth, ours = Counter[Any](), Counter[Any]()
        names: Iterable[Any] = file.operators() if by == "operator" else (None for _ in file.kernels)
        for kernel, operator in zip(file.kernels, names, strict=True):
            truth[operator, kernel["name"], "n"] += 1
            truth[operator, kernel["name"], "ns"] += kernel["end"] - kernel["start"]
        for row in trace.kernels(by=by).to_pylist():
            ours[row.get("operator"), row["name"], "n"] += row["calls"]
            ours[row.get("operator"), row["name"], "ns"] += row["total_ns"]
        wrong = [key for key in truth | ours if truth[key] != ours[key] and key[2] == "n"]
        if truth != ours:
            some = "; ".join(f"{key[0]} {key[1][:40]}: {truth[key]} are {ours[key]}" for key in wrong[:4])
            moved = sum(max(0, truth[key] - ours[key]) for key in wrong)
            yield f"kernels by {by}: {moved} of {len(file.kernels)} differ: {some}"


def of_streams(file: File, trace: strobe.Trace) -> Iterator[str]:
    streams = file.streams()
    truth = sorted((union(each), window(each) - union(each), len(each)) for each in streams.values())
    idle = Counter[Any]()
    for row in trace.idle(by="stream").to_pylist():
        idle[row["process"], row["device"], row["stream"]] += row["idle_ns"]
    ours = sorted(
        (row["busy_ns"], idle[row["process"], row["device"], row["stream"]], row["kernels"] + row["copies"])
        for row in trace.streams().to_pylist()
    )
    if truth != ours:
        yield f"streams (busy, idle, works): {truth[:6]} are {ours[:6]}"
    devices = defaultdict(list)
    for (device, _), each in streams.items():
        devices[device] += each
    truths = sorted(window(each) - union(each) for each in devices.values())
    found = sorted(row["idle_ns"] for row in trace.overlap().to_pylist())
    if truths != found:
        yield f"idle of devices: {truths} are {found}"


def of_path(file: File, trace: strobe.Trace) -> Iterator[str]:
    if trace.span_count > WHOLE:
        return
    # The path is that of all ranks; without ranks, of one process, which its first line names.
    table = trace.critical_path(step="all")
    ranks = {row["rank"]: row["process"] for row in reversed(trace.processes.to_pylist()) if row["rank"] is not None}
    processes = set(ranks.values())
    if named := re.match(r"process (\d+) ", table.about):
        processes = {int(named[1])}
    ran = [
        (int(str(start)), int(str(end)))
        for start, end, process, kind in trace.sql(
            "select start_ns, start_ns + duration_ns, spans.process, kind from spans join locations using (location)"
        ).rows()
        if kind != "task" and (process in processes or not processes)
    ]
    length = sum(row["time_ns"] for row in table.to_pylist())
    busiest = max((row["busy_ns"] for row in trace.streams().to_pylist()), default=0)
    if ran and (length != window(ran) or length < busiest):
        yield f"critical path of {length} ns in a run of {window(ran)}, the busiest stream {busiest}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    paths = sorted(each for each in options.folder.iterdir() if each.name.endswith((".json", ".json.gz")))
    different = 0
    with tempfile.TemporaryDirectory() as cache:
        os.environ["STROBE_CACHE"] = cache
        for path in paths:
            begun = time.process_time()
            try:
                file = File(path)
            except (KeyError, ValueError):
                print(f"{path.name[:60]:60} is not a trace")
                continue
            try:
                with strobe.open(opened(path, talk=False)) as trace:
                    found = list(differences(file, trace))
            except StrobeError as error:
                found = [str(error)]
            different += bool(found)
            size = f"{len(file.events):8} events {len(file.kernels):6} kernels {time.process_time() - begun:5.1f} s"
            print(f"{path.name[:60]:60} {size}  {'DIFFERENT' if found else 'same'}")
            for each in found:
                print(f"    {each}")
            sys.stdout.flush()
    print(f"{len(paths)} files, {different} with differences")


if __name__ == "__main__":
    main()
