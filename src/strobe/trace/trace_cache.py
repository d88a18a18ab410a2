"""Results that several questions share: each is made once, by whoever asks first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar, cast

_Value = TypeVar("_Value")


class Results:
    """Results by key. Threads may share it: who waits for a result does not keep others from theirs."""

    def __init__(self) -> None:
        self._values: dict[object, object] = {}
        self._making: dict[object, threading.RLock] = {}
        self._lock = threading.Lock()

    def once(self, key: object, make: Callable[[], _Value]) -> _Value:
        """Return what `make` returned the first time this key was asked for."""
        with self._lock:
            if key in self._values:
                return cast(_Value, self._values[key])
            making = self._making.setdefault(key, threading.RLock())
        with making:
            with self._lock:
                if key in self._values:
                    return cast(_Value, self._values[key])
            value = make()
            with self._lock:
                self._values[key] = value
                self._making.pop(key, None)
            return value

    def clear(self) -> None:
        """Forget all results."""
        self._values.clear()
