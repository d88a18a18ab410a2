"""A client of CUPTI for programs of the tests, with layouts of its own: numbers as NVIDIA's headers have them, so that
a mistake in strobe's declarations is none here."""

import ctypes
import os
import struct
import threading
import time
from typing import Any

_REQUESTED = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)
)
_COMPLETED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_TIMESTAMP = ctypes.CFUNCTYPE(ctypes.c_uint64)
_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)

# Kind: name and (offset, format) of the fields that the tests look at.
_FIELDS: dict[int, dict[str, tuple[int, str]]] = {
    1: {
        "copy_kind": (4, "B"),
        "bytes": (8, "Q"),
        "start": (16, "Q"),
        "end": (24, "Q"),
        "stream": (40, "I"),
        "correlation": (44, "I"),
    },
    2: {
        "value": (4, "I"),
        "bytes": (8, "Q"),
        "start": (16, "Q"),
        "end": (24, "Q"),
        "stream": (40, "I"),
        "correlation": (44, "I"),
    },
    4: {"cbid": (4, "I"), "start": (8, "Q"), "end": (16, "Q"), "thread": (28, "I"), "correlation": (32, "I")},
    5: {"cbid": (4, "I"), "start": (8, "Q"), "end": (16, "Q"), "thread": (28, "I"), "correlation": (32, "I")},
    8: {"multiprocessors": (44, "I"), "id": (112, "I")},
    9: {"context": (4, "I"), "device": (8, "I")},
    10: {
        "start": (16, "Q"),
        "end": (24, "Q"),
        "stream": (48, "I"),
        "grid_x": (52, "i"),
        "block_x": (64, "i"),
        "correlation": (92, "I"),
        "name_address": (104, "Q"),
        "node": (144, "Q"),
        "graph": (156, "I"),
        "cluster_x": (176, "I"),
    },
    37: {"context": (4, "I"), "stream": (8, "I")},
    38: {"type": (4, "I"), "start": (8, "Q"), "end": (16, "Q"), "correlation": (24, "I")},
    39: {"external": (8, "Q"), "correlation": (16, "I")},
    51: {"correlation": (4, "I"), "start": (8, "Q"), "end": (16, "Q"), "graph": (28, "I")},
}


class Client:
    """One client, with buffers of `size` bytes; `give` says whether it gives any."""

    def __init__(self, size: int = 1 << 16, *, give: bool = True) -> None:
        self.cupti = ctypes.CDLL(os.environ["STROBE_CUPTI"])
        self.size, self.give = size, give
        self.records: list[dict[str, Any]] = []
        self.callbacks: list[tuple[int, int, int]] = []  # domain, cbid, site
        self.threads: set[int] = set()  # that buffers came back on
        self.delivered: list[int] = []  # bytes of each
        self.subscriber = ctypes.c_void_p()
        self._buffers: dict[int, Any] = {}
        self._requested = _REQUESTED(self._request)
        self._completed = _COMPLETED(self._complete)
        self._now = _TIMESTAMP(time.monotonic_ns)
        self._callback = _CALLBACK(self._called)

    def _request(self, buffer: Any, size: Any, most: Any) -> None:
        most[0] = 0
        if not self.give:
            buffer[0], size[0] = None, 0
            return
        memory = (ctypes.c_uint64 * (self.size // 8))()
        address = ctypes.addressof(memory)
        self._buffers[address] = memory
        buffer[0], size[0] = address, self.size

    def _complete(self, context: Any, stream: int, buffer: int, size: int, valid: int) -> None:
        self.threads.add(threading.get_native_id())
        self.delivered.append(valid)
        record = ctypes.c_void_p()
        while (
            self.cupti.cuptiActivityGetNextRecord(ctypes.c_void_p(buffer), ctypes.c_size_t(valid), ctypes.byref(record))
            == 0
        ):
            raw = ctypes.string_at(record.value, 24)
            kind = struct.unpack_from("I", raw)[0]
            fields = _FIELDS.get(kind, {})
            length = max((offset + 8 for offset, _ in fields.values()), default=8)
            raw = ctypes.string_at(record.value, length)
            row = {name: struct.unpack_from(form, raw, offset)[0] for name, (offset, form) in fields.items()}
            if row.get("name_address"):
                row["name"] = ctypes.string_at(row["name_address"]).decode()
            self.records.append({"kind": kind, **row})

    def _called(self, user: Any, domain: int, cbid: int, data: int) -> None:
        site = struct.unpack("I", ctypes.string_at(data, 4))[0] if domain in (1, 2) else 0
        self.callbacks.append((domain, cbid, site))

    def start(self, *kinds: int, clock: bool = True) -> list[int]:
        """Register everything and enable kinds; what each enabling returned."""
        assert self.cupti.cuptiSetThreadIdType(1) == 0
        if clock:
            assert self.cupti.cuptiActivityRegisterTimestampCallback(self._now) == 0
        assert self.cupti.cuptiActivityRegisterCallbacks(self._requested, self._completed) == 0
        return [self.cupti.cuptiActivityEnable(kind) for kind in kinds]

    def subscribe(self) -> int:
        """CUPTI's result."""
        result: int = self.cupti.cuptiSubscribe(ctypes.byref(self.subscriber), self._callback, None)
        return result

    def flush(self, flag: int = 0) -> int:
        """CUPTI's result."""
        result: int = self.cupti.cuptiActivityFlushAll(flag)
        return result

    def of(self, kind: int) -> list[dict[str, Any]]:
        """The records of one kind so far."""
        return [record for record in self.records if record["kind"] == kind]
