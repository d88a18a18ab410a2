"""line_profiler's interface: `from strobe.compat.line_profiler import profile, LineProfiler`.

Under `strobe run --lines ...` (or `-t +lines`) `@profile` adds the function to what is counted, and the lines are in
the trace. LineProfiler records by itself; its `.lprof` files are line_profiler's.
"""

from __future__ import annotations

import functools
import inspect
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from strobe.record.adapters.source_lines.hooks import profile as _choose
from strobe.record.program import session

if TYPE_CHECKING:
    from collections.abc import Callable

    from strobe.sums.source_lines import CountedFunction

    Function = TypeVar("Function", bound=Callable[..., Any])

__all__ = ["LineProfiler", "profile"]


def profile(function: Function) -> Function:
    """Count the lines of a function where lines are recorded; elsewhere it costs nothing. Returns the function."""
    return _choose(function) if session.active() else function


class LineProfiler:
    """Counts the lines of its functions while it is enabled; calls of the functions that it wraps enable it.

    Raises strobe.StrobeError from `enable` in a process that is recorded already: there `strobe run --lines` counts.
    """

    def __init__(self, *functions: Callable[..., Any]) -> None:
        self.functions: list[Callable[..., Any]] = list(functions)
        self.enable_count = 0
        self._recording: Any = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._counted: dict[tuple[str, int | None, str], CountedFunction] = {}

    def add_function(self, function: Callable[..., Any]) -> None:
        """Count the lines of one more function."""
        self.functions.append(function)
        if self._recording is not None:
            _choose(function)

    def add_module(self, module: ModuleType) -> int:
        """Add all functions and methods that a module defines; return how many there are."""
        own = [each for each in vars(module).values() if getattr(each, "__module__", None) == module.__name__]
        found = [each for each in own if inspect.isfunction(each) or inspect.isclass(each)]
        for each in found:
            self.add_function(each)
        return len(found)

    def __call__(self, function: Function) -> Function:
        """Wrap a function: it is counted, and each call enables the profiler."""
        self.add_function(function)
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)
        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return (yield from function(*args, **kwargs))
        else:

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    def wrap_function(self, function: Function) -> Function:
        """Do what calling the profiler with a function does."""
        return self(function)

    def enable(self) -> None:
        """Begin to count."""
        import strobe

        if session.active():
            raise strobe.errors.RecordError(
                "this process is being recorded already", do="Count lines there: `strobe run --lines`."
            )
        self._folder = tempfile.TemporaryDirectory(prefix="strobe-lines-")
        recording = strobe.record(Path(self._folder.name) / "lines.strobe", trace="source_lines", keep="0")
        recording.__enter__()
        self._recording = recording
        for each in self.functions:
            _choose(each)

    def disable(self) -> None:
        """Count no more; what was counted adds up with what was before."""
        if self._recording is None or self._folder is None:
            return
        from strobe.api.trace import open_trace
        from strobe.sums.source_lines import summed_lines

        self._recording.__exit__(None, None, None)
        if self._recording.path is not None:
            for each in summed_lines(open_trace(self._recording.path).side_table("lines")):
                known = self._counted.setdefault((each.file, each.function_line, each.name), each)
                if known is not each:
                    known.add(each)
        self._recording = None
        self._folder.cleanup()

    def enable_by_count(self) -> None:
        """Begin to count unless somebody did so already."""
        if self.enable_count == 0:
            self.enable()
        self.enable_count += 1

    def disable_by_count(self) -> None:
        """Count no more when all who enabled it have disabled it."""
        if self.enable_count > 0:
            self.enable_count -= 1
            if self.enable_count == 0:
                self.disable()

    def __enter__(self) -> LineProfiler:
        self.enable_by_count()
        return self

    def __exit__(self, *_: object) -> None:
        self.disable_by_count()

    def run(self, command: str) -> LineProfiler:
        """Count while a statement runs in `__main__`."""
        main = sys.modules["__main__"].__dict__
        return self.runctx(command, main, main)

    def runctx(self, command: str, globals: dict[str, Any], locals: dict[str, Any]) -> LineProfiler:
        """Count while a statement runs in these namespaces."""
        with self:
            exec(command, globals, locals)
        return self

    def runcall(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Count while a function is called; return what it returns."""
        with self:
            return function(*args, **kwargs)

    def print_stats(self, stream: TextIO | None = None, output_unit: float = 1e-6, stripzeros: bool = False) -> None:
        """Print the lines as line_profiler does; `output_unit` in seconds."""
        from strobe.present.lines_text import lines_text

        (stream or sys.stdout).write(lines_text(list(self._counted.values()), output_unit, stripzeros))

    def dump_stats(self, filename: str) -> None:
        """Write a `.lprof` file."""
        from strobe.formats.profiles.line_profiler import pickled

        Path(filename).write_bytes(pickled(list(self._counted.values())))
