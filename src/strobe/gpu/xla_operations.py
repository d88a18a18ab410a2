"""The operations of XLA that kernels belong to, where only the arguments of the kernels name them.

JAX and TensorFlow launch a whole module with a few calls, and no operator is around these. The profile of a GPU names
the operation of each kernel (`hlo_op`), its module (`hlo_module`), and, where the compiler kept it, the place in the
program (`source`, `source_function`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from strobe.gpu.devices import devices
from strobe.sums.attributes import Attributes
from strobe.tables.column_arrays import Ints
from strobe.trace.trace import Trace


class XlaOperations:
    """The operations of the kernels of one location, which are asked for in order of row."""

    def __init__(self, trace: Trace, location: int) -> None:
        self._arguments = Attributes(trace, "arguments", location, ("key", "value"))

    def of(self, rows: Ints) -> pa.ChunkedArray:
        """Return the operation of each kernel as `module/operation`; null where the profile has none."""
        module, operation = self.texts(rows, ("hlo_module", "hlo_op"))
        return pc.coalesce(pc.binary_join_element_wise(module, operation, "/"), operation)

    def texts(self, rows: Ints, keys: Sequence[str]) -> list[pa.ChunkedArray]:
        """Return these arguments of each kernel; null where it has none."""
        found = self._arguments.between(int(rows[0]), int(rows[-1])) if len(rows) else None
        if not found:
            return [pa.chunked_array([pa.nulls(len(rows), pa.string())]) for _ in keys]
        return [_values(found, key, rows) for key in keys]


def named_by_kernels(trace: Trace) -> bool:
    """Return whether kernels may have operations: whether any text of the trace is the name of that argument."""
    return bool(devices(trace)) and any("hlo_op" in reader.texts() for reader in trace.readers)


def _values(arguments: pa.Table, key: str, rows: Ints) -> pa.ChunkedArray:
    """Return the text that each row has as the argument `key`, null if it has none."""
    own = arguments.filter(pc.equal(arguments.column("key").cast(pa.string()), key))
    coded = own.column("value").cast(pa.string()).combine_chunks().dictionary_encode()
    texts = pa.array([_text(each) for each in coded.dictionary.to_pylist()], pa.string())
    at = pc.index_in(pa.array(rows, pa.int64()), value_set=own.column("row").cast(pa.int64()))
    return pa.chunked_array([texts.take(coded.indices.take(at))])


def _text(value: str) -> str | None:
    """Return the text that JSON has, None if it is not one."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, str) and found else None
