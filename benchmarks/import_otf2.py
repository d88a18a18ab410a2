"""How fast an OTF2 archive is imported, next to the official Python reader; CPU time and peak memory, in the same run.

    ./dev bench import_otf2 [--events 1000000] [--repeat 3]

Each of the shapes has so many events in four locations of two ranks: `calls` (nested regions), `gpu` (kernels with
parameters and copies), `mpi` (calls with metrics and messages). Every measurement is a process of its own, and
begins when its modules are imported. It must be: at least 50 times less CPU time than the official reader's,
finalising (sorting, nesting, compressing what was read) at most 0.1 us a span.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_RATIO = 50
_FINISH_US = 0.1


def write(folder: Path, shape: str, events: int) -> None:
    """Write an archive with the library's own functions: its comfortable ones take minutes."""
    import otf2
    from otf2.enums import (
        GroupType,
        LocationGroupType,
        LocationType,
        MetricOccurrence,
        Paradigm,
        ParameterType,
        RegionRole,
        Type,
    )

    with otf2.writer.open(str(folder), timer_resolution=2_095_197_216) as out:
        of = out.definitions
        node = of.system_tree_node("node", class_name="node")
        regions = [of.region(f"function {i}", paradigm=Paradigm.USER) for i in range(300)]
        kernels = [of.region(f"kernel {i}", region_role=RegionRole.KERNEL, paradigm=Paradigm.CUDA) for i in range(30)]
        send = of.region("MPI_Send", region_role=RegionRole.POINT2POINT, paradigm=Paradigm.MPI)
        member = of.metric_member("PAPI_TOT_CYC", value_type=Type.UINT64, unit="#")
        metric = of.metric_class([member], occurrence=MetricOccurrence.SYNCHRONOUS_STRICT)
        names = ("blocks per grid", "threads per block", "threads per kernel", "static shared memory",
                 "dynamic shared memory", "total local memory", "registers per thread")  # fmt: skip
        parameters = [of.parameter(name, parameter_type=ParameterType.UINT64) for name in names]
        locations, hosts = [], []
        for rank in range(2):
            group = of.location_group(
                f"MPI Rank {rank}", location_group_type=LocationGroupType.PROCESS, system_tree_parent=node
            )
            kind = LocationType.ACCELERATOR_STREAM if shape == "gpu" else LocationType.CPU_THREAD
            hosts.append(of.location("Master thread", type=LocationType.CPU_THREAD, group=group))
            locations += [of.location(f"location[{rank}:{i}]", type=kind, group=group) for i in range(2)]
        paradigm = Paradigm.CUDA if shape == "gpu" else Paradigm.MPI
        of.group("", group_type=GroupType.COMM_LOCATIONS, paradigm=paradigm, members=hosts + locations)
        group = of.group("", group_type=GroupType.COMM_GROUP, paradigm=paradigm, members=hosts + locations)
        comm = of.comm("MPI_COMM_WORLD", group=group, parent=None)
        window = of.rma_win("CUDA_WINDOW", comm=comm)
        for number, location in enumerate(locations):
            done, now = 0, 10**12
            writer = out.event_writer_from_location(location)
            while done < events // len(locations):
                now += 700
                if shape == "calls":
                    nest = [regions[(done * 7 + depth * 31) % 300] for depth in range(10)]
                    for region in nest:
                        now += 91
                        writer.enter(now, region)
                    for region in reversed(nest):
                        now += 57
                        writer.leave(now, region)
                    done += 20
                elif shape == "gpu":
                    kernel = kernels[done % 30]
                    writer.enter(now, kernel)
                    for parameter in parameters:
                        writer.parameter_unsigned_int(now, parameter, done % 1024)
                    writer.leave(now + 500, kernel)
                    writer.rma_get(now + 510, window, number // 2, 4096, 42)
                    writer.rma_op_complete_blocking(now + 600, window, 42)
                    done += 11
                else:
                    writer.metric(now, metric, [done * 100])
                    writer.enter(now, send)
                    writer.mpi_send(now + 10, done % 6, comm, 5, 8192)
                    now += 400
                    writer.metric(now, metric, [done * 100 + 50])
                    writer.leave(now, send)
                    done += 5


def official(anchor: Path) -> dict[str, Any]:
    import otf2

    begun, seen = _cpu_s(), 0
    with otf2.reader.open(str(anchor)) as trace:
        for _location, _event in trace.events:
            seen += 1
    return {"cpu_s": _cpu_s() - begun, "events": seen}


def ours(anchor: Path) -> dict[str, Any]:
    """Import it as `strobe.open` does; the time inside of end_process is that of finalising."""
    import strobe
    from strobe import native, registry
    from strobe.api import imports

    for name in registry.names("formats"):  # those that look at the file's first bytes import much
        registry.load("formats", name)
    finishing = 0.0

    class Timed(native.Otf2Reader):  # type: ignore[misc]
        def end_process(self, source: str, /) -> None:
            nonlocal finishing
            begun = time.process_time()
            super().end_process(source)
            finishing += time.process_time() - begun

    native.Otf2Reader = Timed  # type: ignore[misc]
    with tempfile.TemporaryDirectory(dir=anchor.parent.parent) as folder:
        begun = _cpu_s()
        made = imports.imported([anchor], Path(folder) / "cache.strobe", talk=False)
        spent = _cpu_s() - begun
        spans = strobe.open(made).span_count
    return {"cpu_s": spent, "finish_s": finishing, "spans": spans}


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _measured(how: str, anchor: Path) -> dict[str, Any]:
    # Idle threads of a linear algebra library belong to neither reader.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--measure", how, str(anchor)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--events", type=int, default=1_000_000)
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument("--shapes", nargs="+", default=["calls", "gpu", "mpi"])
    arguments.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.measure:
        how, anchor = given.measure
        result = {"official": official, "ours": ours}[how](Path(anchor))
        result["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(result))
        return 0
    missed = 0
    folder = Path(tempfile.mkdtemp(prefix="otf2-"))
    print("shape   events     spans   official              strobe                ratio   finishing")
    try:
        for shape in given.shapes:
            write(folder / shape, shape, given.events)
            anchor = folder / shape / "traces.otf2"
            runs = [(_measured("official", anchor), _measured("ours", anchor)) for _ in range(given.repeat)]
            theirs = min((each for each, _ in runs), key=lambda run: run["cpu_s"])
            own = min((each for _, each in runs), key=lambda run: run["cpu_s"])
            finish_us = min(each["finish_s"] for _, each in runs) / own["spans"] * 1e6
            ratio = theirs["cpu_s"] / own["cpu_s"]
            missed += (ratio < _RATIO) + (finish_us > _FINISH_US)
            print(
                f"{shape:6} {theirs['events']:8} {own['spans']:8}   "
                f"{theirs['cpu_s']:7.2f} s {theirs['peak_mib']:5.0f} MiB   "
                f"{own['cpu_s']:7.3f} s {own['peak_mib']:5.0f} MiB   {ratio:5.0f}x   {finish_us:.3f} us a span"
            )
    finally:
        shutil.rmtree(folder)
    print(f"limits missed: {missed}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
