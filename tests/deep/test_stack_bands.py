"""Bands of the iteration stack: the backward thread and the kernels of GPUs, counted in the files of PyTorch itself."""

from __future__ import annotations

import gzip
import json
import re
import struct
from collections import Counter

import numpy as np
import pytest

from strobe.gpu.stack_bands import BACKWARD_BAND, bands_of
from strobe.server.pictures.iteration_cells import MOST_COLUMNS, iterations
from strobe.server.trace_context import TraceContext
from strobe.steps.iteration_stack.stack import MAIN_BAND, build_stack
from tests.public import FOLDER

GPU_WORK = ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset")


def launched_in_steps(name: str) -> list[int]:
    """How many activities of the GPU each ProfilerStep of a file launched."""
    events = json.loads(gzip.decompress((FOLDER / "kineto" / f"{name}.json.gz").read_bytes()))["traceEvents"]
    spans = [event for event in events if event.get("ph") == "X"]
    marks = sorted(
        {
            (e["ts"], e["ts"] + e["dur"])
            for e in spans
            if re.match(r"ProfilerStep#\d+$", e["name"]) and "cat" in e and not e["cat"].startswith("gpu")
        }
    )
    calls = {e["args"]["correlation"]: e["ts"] for e in spans if e.get("cat") in ("cuda_runtime", "Runtime")}
    work = [calls.get(e["args"]["correlation"], -1) for e in spans if e.get("cat") in GPU_WORK]
    return [sum(begin <= ts < end for ts in work) for begin, end in marks]


@pytest.mark.parametrize("name", ["resnet50_loader_workers0", "ns_resolution", "nccl_data"])
def test_each_step_has_the_kernels_that_it_launched(public, name: str) -> None:
    stack = build_stack(public(f"kineto/{name}.json.gz"), bands=bands_of)
    (gpu,) = {band for band in stack.bands if band.startswith("GPU")}
    columns = np.array([band == gpu for band in stack.bands])
    found = (~np.isnan(stack.durations_ns[:, columns])).sum(axis=1).tolist()
    assert found == launched_in_steps(name)


def test_the_backward_pass_of_another_thread_is_a_band(public) -> None:
    stack = build_stack(public("kineto/resnet50_loader_workers0.json.gz"), bands=bands_of)
    counts = Counter(stack.bands)
    assert counts[BACKWARD_BAND] > 100
    assert counts[MAIN_BAND] == build_stack(public("kineto/resnet50_loader_workers0.json.gz")).shape[1]
    parts = {int(part) for part, band in zip(stack.parts, stack.bands, strict=True) if band == BACKWARD_BAND}
    assert parts == {2}, "backward"
    filled = ~np.isnan(stack.durations_ns[:, :-1])
    assert filled.mean() > 0.999, "marks with numbers make no paths differ"


def test_a_folded_group_is_a_column_alone_among_more_positions_than_columns(public) -> None:
    trace = public("kineto/resnet50_loader_workers0.json.gz")
    data = iterations(TraceContext(trace, trace.path), "duration", "time", 100, "0_100", "").data
    (size,) = struct.unpack_from("<I", data, 4)
    columns = json.loads(data[8 : 8 + size])["positions"]
    assert len(columns) <= MOST_COLUMNS + 3
    assert [(each["position"], each["count"]) for each in columns if each["folded"]] == [(0, 100)]
    ends = [each["position"] + each["count"] for each in columns]
    assert [each["position"] for each in columns] == [0, *ends[:-1]], "each position is in one column"
