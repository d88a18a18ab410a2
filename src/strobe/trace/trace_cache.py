"""Results that several questions share: a function marked `@cached_on_trace` computes each once per open trace."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

_Arguments = ParamSpec("_Arguments")
_Value = TypeVar("_Value")


@dataclass
class _Result:
    """No value yet, or one; threads that wait for one result do not keep others from theirs."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    value: list[Any] = field(default_factory=list)


Results = dict[Hashable, _Result]


class _HasResults(Protocol):
    results: Results


_Trace = TypeVar("_Trace", bound=_HasResults)


def cached_on_trace(
    make: Callable[Concatenate[_Trace, _Arguments], _Value],
) -> Callable[Concatenate[_Trace, _Arguments], _Value]:
    """Let a function compute its result only once for a trace and the other arguments, which must be hashable."""

    @wraps(make)
    def cached(trace: _Trace, /, *arguments: _Arguments.args, **options: _Arguments.kwargs) -> _Value:
        key = (cached, arguments, *options.items())
        result: _Value = _once(trace, key, lambda: make(trace, *arguments, **options))
        return result

    return cached


@dataclass(frozen=True)
class KnownResult:
    """What a trace need not compute: the value of a cached function for some arguments."""

    function: Callable[..., Any]
    value: Any
    arguments: tuple[Hashable, ...] = ()

    def give_to(self, trace: _HasResults) -> None:
        """Let the function return the value, unless it has returned another one before."""
        _once(trace, (self.function, self.arguments), lambda: self.value)


def _once(trace: _HasResults, key: Hashable, make: Callable[[], Any]) -> Any:
    result = trace.results.setdefault(key, _Result())
    with result.lock:
        if not result.value:
            result.value.append(make())
        return result.value[0]
