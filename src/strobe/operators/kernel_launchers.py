"""What profiles have of the calls that launch kernels of Triton: the file of the kernel, and the tensors it gets.

An operator with the kernel's name launches it, once per call.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from math import prod

import numpy as np
import pyarrow.compute as pc

from strobe.sums.attributes import Attributes
from strobe.trace.definition_rows import location_rows, region_rows
from strobe.trace.trace import Trace

_KERNEL_FILE = "kernel_file"
_INPUTS = ("shapes", "types", "strides")
# Bytes of an element, by the name of its type in C++.
_ITEM_BYTES = {
    **dict.fromkeys(("double", "long int", "c10::complex<float>"), 8),
    **dict.fromkeys(("float", "int"), 4),
    **dict.fromkeys(("c10::Half", "c10::BFloat16", "short int"), 2),
    **dict.fromkeys(("c10::Float8_e4m3fn", "c10::Float8_e5m2", "signed char", "unsigned char", "bool"), 1),
}


class Launchers:
    """The files of kernels by name; by call path of the launching operators, their calls and bytes.

    `size_bytes`: size of all tensors that these calls get, each once per call; without paths of which one is unknown.
    """

    def __init__(self, trace: Trace) -> None:
        self.files: dict[str, str] = {}
        self.calls: Counter[int] = Counter()
        self.size_bytes: dict[int, int] = {}
        unknown: set[int] = set()
        sizes: dict[tuple[str | None, ...], int | None] = {}
        regions = region_rows(trace)
        for location in location_rows(trace):
            inputs = Attributes(trace, "operator_spans", location.location, _INPUTS)
            for batch in trace.side_batches("arguments", location.location):
                found = batch.filter(pc.equal(batch.column("key"), _KERNEL_FILE))
                if not len(found):
                    continue
                spans = trace.span_arrays(location.location)
                rows = found.column("row").to_numpy().astype(np.int64)
                given = inputs.of(rows).select(_INPUTS)
                for row, file, *texts in zip(
                    rows.tolist(),
                    found.column("value").to_pylist(),
                    *(column.to_pylist() for column in given.columns),
                    strict=True,
                ):
                    path = int(spans["call_path"][row])
                    self.files.setdefault(regions[int(spans["region"][row])].name, str(json.loads(file)))
                    key = tuple(texts)
                    if key not in sizes:
                        sizes[key] = tensor_bytes(*texts)
                    size = sizes[key]
                    self.calls[path] += 1
                    if size is None:
                        unknown.add(path)
                    else:
                        self.size_bytes[path] = self.size_bytes.get(path, 0) + size
        for path in unknown:
            self.size_bytes.pop(path, None)


def tensor_bytes(shapes: str | None, types: str | None, strides: str | None) -> int | None:
    """Return the bytes of all inputs that are tensors, from JSON as PyTorch's profiler has it; None if unknown.

    A dimension with stride 0 is the same memory again.
    """
    dims, names, steps = (json.loads(text) if text else [] for text in (shapes, types, strides))
    if not dims or len(dims) != len(names):
        return None
    total = 0
    for at, (shape, name) in enumerate(zip(dims, names, strict=True)):
        if name in ("Scalar", "ScalarList", ""):
            continue
        if name not in _ITEM_BYTES:
            return None
        total += _ITEM_BYTES[name] * _elements(shape, steps[at] if at < len(steps) else [])
    return total


def _elements(shape: Sequence[int], strides: Sequence[int]) -> int:
    known = strides if len(strides) == len(shape) else [1] * len(shape)
    return prod(size for size, stride in zip(shape, known, strict=True) if stride)
