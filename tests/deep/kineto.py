"""Small PyTorch profiles written by hand, so that answers can be computed on paper. Times are whole microseconds.

trace = profile(tmp_path, operator("aten::mm", 0, 20), call(5, 2, correlation=1), kernel("gemm", 30, 10, correlation=1))
"""

from __future__ import annotations

import json
from pathlib import Path

import strobe
from strobe.api.imports import opened

US = 1000

Event = dict[str, object]


def event(category: str, name: str, start_us: float, duration_us: float, pid: int, tid: int, **args: object) -> Event:
    """One complete event; `args` as Kineto calls them, with underscores for spaces."""
    named = {key.replace("_", " "): value for key, value in args.items()}
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start_us, "dur": duration_us,
            "args": named}  # fmt: skip


def kernel(
    name: str, start_us: float, duration_us: float, *, stream: int = 7, device: int = 0, **args: object
) -> Event:
    """A kernel on a stream of a GPU."""
    return event("kernel", name, start_us, duration_us, device, stream, device=device, stream=stream, **args)


def copy(name: str, start_us: float, duration_us: float, *, stream: int = 7, device: int = 0, **args: object) -> Event:
    """A copy (`Memcpy HtoD (Pageable -> Device)`, ...); a name that begins with Memset sets memory."""
    category = "gpu_memset" if name.startswith("Memset") else "gpu_memcpy"
    return event(category, name, start_us, duration_us, device, stream, device=device, stream=stream, **args)


def call(
    start_us: float, duration_us: float, name: str = "cudaLaunchKernel", *, thread: int = 1, **args: object
) -> Event:
    """A call of CUDA's runtime on a thread of the host."""
    return event("cuda_runtime", name, start_us, duration_us, 100, thread, **args)


def operator(name: str, start_us: float, duration_us: float, *, thread: int = 1, **args: object) -> Event:
    """An operator of PyTorch on a thread of the host."""
    return event("cpu_op", name, start_us, duration_us, 100, thread, **args)


def step(number: int, start_us: float, duration_us: float, *, thread: int = 1) -> Event:
    """A step as PyTorch's profiler marks it."""
    return event("user_annotation", f"ProfilerStep#{number}", start_us, duration_us, 100, thread)


def profile(folder: Path, *events: Event, rank: int | None = None, **top: object) -> strobe.Trace:
    """Write the events into a file of `folder`, and open it."""
    path = folder / f"profile{len(list(folder.iterdir()))}.json"
    write(path, *events, rank=rank, **top)
    return strobe.open(opened(path, talk=False))


def write(path: Path, *events: Event, rank: int | None = None, **top: object) -> None:
    """Write the events into a file: several in a folder are the ranks of a run.

    As in Kineto's files, the host's events come before those of GPUs.
    """
    in_order = sorted(events, key=lambda each: each["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"))
    whole = {"schemaVersion": 1, **top, "traceEvents": in_order}
    if rank is not None:
        whole["distributedInfo"] = {"rank": rank, "world_size": rank + 1}
    path.write_text(json.dumps(whole))
