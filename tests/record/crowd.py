"""A crowd: threads in processes that fork, each of which counts its own calls where a kill does not reach them.

And what the trace of a killed crowd must hold.

As a program, `crowd.py COUNTS PROCESSES THREADS PAUSE_S`, it calls until it is killed; after 20 calls a thread sleeps.
Imported, it compares.
"""

import mmap
import os
import struct
import sys
import threading
import time
from collections import Counter
from pathlib import Path

# What each thread counts: its pid, its number in the system, then calls of outer and of inner, begun and ended.
_FIELDS = 6
_ROW = struct.Struct(f"<{_FIELDS}q")
counts: "memoryview[int]"
pause_s = 0.0


def inner(at: int, n: int) -> None:
    counts[at + 4] = n
    counts[at + 5] = n


def outer(at: int, n: int) -> None:
    counts[at + 2] = n
    inner(at, 2 * n - 1)
    inner(at, 2 * n)
    counts[at + 3] = n


def member(place: int) -> None:
    at, n = place * _FIELDS, 0
    counts[at + 1] = threading.get_native_id()
    counts[at] = os.getpid()
    while True:
        n += 1
        outer(at, n)
        if n % 20 == 0:
            time.sleep(pause_s)


def process(number: int, processes: int, threads: int) -> None:
    """One process of the crowd: its threads call already while it forks two others."""
    places = range(number * threads, (number + 1) * threads)
    for place in places[1:]:
        threading.Thread(target=member, args=(place,), daemon=True).start()
    for child in (2 * number + 1, 2 * number + 2):
        if child < processes and os.fork() == 0:
            return process(child, processes, threads)
    return member(places[0])


def main() -> None:
    global counts, pause_s
    pause_s = float(sys.argv[4])
    path, processes, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    os.setpgrp()  # who kills the crowd does not kill strobe
    with open(path, "w+b") as file:
        file.truncate(processes * threads * _ROW.size)
        counts = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")
    print("ready", os.getpid(), flush=True)
    process(0, processes, threads)


def pids(counts_file: Path) -> list[int]:
    """The process of each thread that has begun."""
    return [row[0] for row in _ROW.iter_unpack(counts_file.read_bytes()) if row[0]]


def faults(trace_folder: Path, counts_file: Path) -> tuple[list[str], dict[str, int]]:
    """Compare the trace of a killed crowd with what its threads have counted.

    Returns what is wrong, in sentences, and figures: threads, calls counted, spans recorded, records that the trace
    says were lost.
    """
    import numpy

    import strobe

    rows = [row for row in _ROW.iter_unpack(counts_file.read_bytes()) if row[0]]
    wrong: list[str] = []
    with strobe.open(trace_folder) as trace:
        processes = trace.processes.to_pylist()
        number_of = {row["pid"]: row["process"] for row in processes}
        names = {row["region"]: str(row["name"]) for row in trace.regions.to_pylist()}
        lost: Counter[object] = Counter()
        for row in trace.sql("select process, value from quality where what = 'records_lost'").to_pylist():
            lost[row["process"]] += int(row["value"])
        missing: Counter[object] = Counter()
        members: Counter[object] = Counter()
        spans_recorded = 0
        found = {(at["process"], at["thread_id"]): at["location"] for at in trace.locations.to_pylist()}
        if len(found) != len(trace.locations):
            wrong.append("a thread has several locations")
        for pid, thread, *counted in rows:
            who = (number_of.get(pid), thread)
            if who not in found:
                if max(counted) > 1:  # its first call was not recorded yet
                    wrong.append(f"thread {thread} of process {pid} is missing")
                continue
            spans = trace.span_arrays(int(str(found[who])))
            spans_recorded += len(spans["region"])
            wrong += [f"thread {thread}: {sentence}" for sentence in unsound(spans, names)]
            name = numpy.array([names[int(region)].rpartition(".")[2] for region in spans["region"]])
            whole = spans["complete"].astype(bool)
            begun = [int((name == which).sum()) for which in ("outer", "inner")]
            ended = [int(((name == which) & whole).sum()) for which in ("outer", "inner")]
            members[who[0]] += 1
            missing[who[0]] += counted[0] + counted[2] - sum(begun)
            # A call is recorded before it can count itself, and its end after it has.
            exact = all(
                recorded - 1 <= count <= recorded
                for count, recorded in ((counted[0], begun[0]), (counted[2], begun[1]))
            ) and all(
                recorded <= count <= recorded + 1
                for count, recorded in ((counted[1], ended[0]), (counted[3], ended[1]))
            )
            if not exact and not lost[who[0]]:
                wrong.append(f"thread {thread} of process {pid}: counted {counted}, recorded {begun} and {ended}")
        for number, count in missing.items():
            # A lost span is two records, of which the kill may have cut off one.
            if abs(count - lost[number] / 2) > 2 * members[number]:
                wrong.append(f"process {number}: {count} calls missing, {lost[number]} records stated as lost")
        wrong += [f"process {row['pid']} is {row['end_state']}" for row in processes if row["end_state"] != "lost"]
    figures = {"threads": len(rows), "calls": sum(row[2] + row[4] for row in rows), "spans": spans_recorded}
    return wrong, {**figures, "processes": len(processes), "stated as lost": sum(lost.values())}


def unsound(spans: "dict[str, object]", names: "dict[object, str]") -> list[str]:
    """What is wrong with the nesting of a location's spans: each lies inside its parent and behind its sibling."""
    import numpy

    start = numpy.asarray(spans["start_ns"]).astype(numpy.int64)
    end = start + numpy.asarray(spans["duration_ns"]).astype(numpy.int64)
    parent = numpy.asarray(spans["parent"]).astype(numpy.int64)
    wrong = []
    if (numpy.diff(start) < 0).any():
        wrong.append("spans are not in order of start")
    child = parent >= 0
    if (parent >= numpy.arange(len(parent))).any():
        wrong.append("a parent comes after its child")
    elif (start[child] < start[parent[child]]).any() or (end[child] > end[parent[child]]).any():
        wrong.append("a span reaches out of its parent")
    order = numpy.lexsort((start, parent))
    siblings = parent[order][1:] == parent[order][:-1]
    if (start[order][1:][siblings] < end[order][:-1][siblings]).any():
        wrong.append("siblings overlap")
    name = numpy.array([names[int(region)].rpartition(".")[2] for region in numpy.asarray(spans["region"])])
    of_inner = name == "inner"
    if of_inner.any() and not (child[of_inner].all() and (name[parent[of_inner]] == "outer").all()):
        wrong.append("a call of inner is not inside outer")
    return wrong


if __name__ == "__main__":
    main()
