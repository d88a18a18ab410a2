"""What was used last, up to a bound: answers, open traces, decoded spans. Threads of the server share it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """Values by key; their sizes add up to at most `most`."""

    def __init__(self, most: int) -> None:
        self.most, self.size = most, 0
        self._kept: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        """Return a value, None where it is not kept."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: Hashable, value: Value, size: int = 1) -> None:
        """Keep a value unless it alone is too large, and drop those that were not used for longest."""
        if size > self.most:
            return
        with self._lock:
            self.size += size - self._kept.pop(key, (value, 0))[1]
            self._kept[key] = value, size
            while self.size > self.most:
                self.size -= self._kept.popitem(last=False)[1][1]

    def drop(self, old: Callable[[Any], bool]) -> None:
        """Keep no value whose key is `old` any longer."""
        with self._lock:
            for key in [each for each in self._kept if old(each)]:
                self.size -= self._kept.pop(key)[1]
