"""Recording from inside a program: `strobe.record()`, `strobe.region()`, `strobe.step()`.

    with strobe.record("a.strobe"):
        train()

`region` and `step` cost one attribute test where nothing is recorded, so library code may keep them.
"""

from __future__ import annotations

import os
import sys

from strobe.model.terminal import talk
from strobe.record.options.session_settings import disabled, switch

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

USER, RANGE, LOOP = 5, 3, 5  # model/kinds.py: paradigm, roles


class region:  # noqa: N801 - used like a function, in `with` and as a decorator
    """A named piece of the program: `with strobe.region("augment"): ...` or `@strobe.region("augment")`.

    Numbers that are given (`strobe.region("augment", n=32)`) become metrics `augment.n` at its begin. Whole numbers and
    texts split the profile, too: inside of `augment` is a region `augment (n=32)` for each value, up to 100, then
    `augment (other)`. With the option `counters-per-region`, what each execution used becomes metrics at its end.
    """

    __slots__ = ("_entered", "_id", "_part", "_used", "attributes", "name")

    def __init__(self, name: str, **attributes: float | str) -> None:
        self.name = name
        self.attributes = attributes
        self._id = 0
        self._part = 0  # the region of its parameters; -1: it has none
        self._entered = 0
        self._used: list[tuple[int, ...]] = []

    def __enter__(self) -> region:
        core = switch.core
        if core is not None:
            self._id = self._id or _region(core, self.name, RANGE)
            core.enter(self._id)
            self._entered += 1
            if self.attributes:
                for name, value in self.attributes.items():
                    if not isinstance(value, str):
                        counter(f"{self.name}.{name}", value)
                self._part = self._part or _part(core, self.name, self.attributes)
                if self._part > 0:
                    core.enter(self._part)
            if switch.counted and _is_counted(_readable(self.name)):
                self._used.append(core.thread_usage(_hardware()))
        return self

    def __exit__(self, *_: object) -> None:
        if self._entered:
            self._entered -= 1
            core = switch.core
            if core is not None:
                if self._used:
                    _count_region(self.name, self._used.pop(), core.thread_usage(_hardware()))
                if self._part > 0:
                    core.leave(self._part)
                core.leave(self._id)
            elif self._used:
                self._used.pop()

    def __call__(self, function: Function) -> Function:
        """Record every call of the function as this region."""
        import functools

        name, attributes = self.name, self.attributes

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if switch.core is None:
                return function(*args, **kwargs)
            with region(name, **attributes):
                return function(*args, **kwargs)

        return call  # type: ignore[return-value]


# What core.thread_usage gives: name and unit.
_USAGE = (
    *(("cpu time", "ns"), ("minor page faults", "1"), ("major page faults", "1")),
    *(("voluntary switches", "1"), ("involuntary switches", "1"), ("instructions", "1"), ("cycles", "1")),
    *(("cache-misses", "1"), ("branch-misses", "1")),
)
_MOST_PARTS = 100
_parts: dict[str, set[str]] = {}  # values of parameters that have regions, by name
_counted: dict[str, bool] = {}
_counted_for: tuple[str, ...] = ()  # the patterns that `_counted` was made for
_metrics: dict[tuple[str, str], int] = {}
_with_hardware: bool | None = None


def _region(core: Any, name: object, role: int) -> int:
    """Return the number of a region. Any name is accepted: a program must run recorded as it does unrecorded."""
    try:
        return int(core.region(name, USER, role))
    except (TypeError, UnicodeError):
        return int(core.region(_readable(name), USER, role))


def _part(core: Any, name: object, parameters: Mapping[str, object]) -> int:
    """Return the number of the region of these parameters, -1 if none is a whole number or a text."""
    from numbers import Integral  # NumPy's are, too

    values = (f"{each}={value}" for each, value in parameters.items() if isinstance(value, (str, Integral)))
    text = ", ".join(values)
    if not text:
        return -1
    known = _parts.setdefault(_readable(name), set())
    if len(known) < _MOST_PARTS:
        known.add(text)
    return _region(core, f"{name} ({text if text in known else 'other'})", RANGE)


def _readable(name: object) -> str:
    """Return any name as text; lone surrogates become escapes."""
    return str(name).encode("utf-8", "backslashreplace").decode("utf-8")


def _is_counted(name: str) -> bool:
    global _counted_for
    if _counted_for is not switch.counted:  # another recording
        _counted.clear()
        _counted_for = switch.counted
    known = _counted.get(name)
    if known is None:
        from fnmatch import fnmatchcase

        known = _counted[name] = any(fnmatchcase(name, pattern) for pattern in switch.counted)
    return known


def _hardware() -> bool:
    global _with_hardware
    if _with_hardware is None:
        _with_hardware = bool(switch.core.hardware_counter("instructions"))
    return _with_hardware


def _count_region(name: str, before: tuple[int, ...], after: tuple[int, ...]) -> None:
    for number, (what, unit) in enumerate(_USAGE if _hardware() else _USAGE[:5]):
        _sample(f"{name}: {what}", unit, after[number] - before[number])


def _sample(name: str, unit: str, value: float) -> None:
    core = switch.core
    if core is None:
        return
    try:
        number = _metrics.get((name, unit))
        if number is None:
            number = _metrics[name, unit] = core.metric(_readable(name), _readable(unit))
        core.sample(number, float(value))
    except (TypeError, ValueError, OverflowError):  # it passes where nothing is recorded, so it passes here
        core.count("values_not_recorded", 1)


def counter(name: str, value: float, unit: str = "") -> None:
    """Record a number of the program's own: `strobe.counter("loss", 0.31)`. It is a metric over time."""
    if switch.core is not None:
        _sample(name, unit, value)


def mark(name: str, value: float | None = None) -> None:
    """Mark this moment: `strobe.mark("epoch", 3)`. The value, if there is one, becomes a metric of the same name."""
    core = switch.core
    if core is None:
        return
    number = _region(core, name, RANGE)
    core.enter(number)
    core.leave(number)
    if value is not None:
        _sample(name, "", value)


_step_id = 0


def step() -> None:
    """Mark the end of a step. A hint for programs whose loop is hard to find; never needed."""
    global _step_id
    if switch.core is not None:
        _step_id = _step_id or switch.core.region("strobe.step", USER, LOOP)
        switch.core.enter(_step_id)
        switch.core.leave(_step_id)
    if switch.on_step is not None:
        switch.on_step()


class record:  # noqa: N801
    """Record a part of this program into a trace folder: context manager and decorator.

    `path` is the folder (default: the script's name, `-2`, `-3`, ... appended instead of overwriting). `options` are
    those of `strobe run`, by the same names (`keep=10`, `trace="+python,-torch"`, `preset="light"`); the environment
    counts, too. But by default everything is kept in detail (`keep`): the whole block is of interest. After the block
    `record.path` is the path of the trace; open it with `strobe.open`.
    Under `strobe run` the block is a region `strobe.record` of that trace, and `record.path` is its path; path and
    options are ignored, with one message on stderr.
    Raises ValueError for a wrong value, TypeError for an option that does not exist, strobe.StrobeError when the
    folder cannot be made, or when the program is recording itself already.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, **options: object) -> None:
        from strobe.record.options.all_options import combined, given_in_environment, given_in_python, traced_adapters
        from strobe.record.options.recorder_options import Setting

        whole = {"keep": Setting("all", "strobe.record()")}
        environment = {} if disabled() else given_in_environment(os.environ)
        self._settings = combined([given_in_python(options), environment, whole])
        self._adapters = traced_adapters(self._settings)
        self._wanted, self._given = path, options
        self.path: str | None = None
        self._within: region | None = None  # the trace of `strobe run`

    def __enter__(self) -> record:
        if disabled():
            return self
        if _under_strobe_run():
            self.path = _windows().settings.folder
            self._within = region("strobe.record").__enter__()
            _note_ignored()
            return self
        import time

        from strobe.errors import RecordError
        from strobe.record.launch.trace_folder import create, default_name, expand, remove
        from strobe.record.options.all_options import job_settings, levels
        from strobe.record.options.filters import anchored_options
        from strobe.record.options.session_settings import Session
        from strobe.record.program import session, windows

        if session.active():
            raise RecordError(
                "this process is being recorded already", do="Remove one of the two calls of strobe.record()."
            )
        notebook = session.notebook()
        command = notebook or [sys.executable, *sys.argv]
        self.path = create(
            self._wanted or expand(self._settings["output"].text, command) or default_name(command),
            notebook or list(sys.orig_argv),
            {"adapters": list(self._adapters), "options": job_settings(self._settings)},
            self._settings["access"].text,
        )
        try:
            options = anchored_options({name: setting.text for name, setting in self._settings.items()}, os.getcwd())
            asked = levels(self._settings["trace"].text)
            began_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            windows.begin(Session(self.path, self._adapters, options, began_ns=began_ns, levels=asked), main=True)
        except Exception as error:
            remove(self.path)
            self.path = None
            reason = getattr(error, "strerror", None) or error.args[-1] if error.args else type(error).__name__
            raise RecordError(f"recording cannot start: {reason}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.path is None:
            return
        if self._within is not None:
            self._within.__exit__()
            self._within = None
            return
        from strobe.record.launch.trace_folder import finish
        from strobe.record.program import windows

        windows.end()
        finish(self.path, {"exit_code": 0})

    def __call__(self, function: Function) -> Function:
        """Record each outermost call of the function, each into a folder of its own."""

        import functools

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            from strobe.record.program import session

            if session.active():
                return function(*args, **kwargs)
            with record(self._wanted, **self._given):
                return function(*args, **kwargs)

        return call  # type: ignore[return-value]


def _under_strobe_run() -> bool:
    windows = _windows()
    return windows is not None and bool(windows.settings.supervisor)


_noted = False


def _note_ignored() -> None:
    """Print once that path and options are ignored."""
    global _noted
    if not _noted:
        _noted = True
        talk("`strobe run` records this program already; what it records itself is in that trace")


class Recorder:
    """The recording of this process, as `strobe.current()` gives it."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path  # of the trace folder

    @property
    def recording(self) -> bool:
        """Whether a window is open."""
        return switch.core is not None


_started: record | None = None


def start(path: str | os.PathLike[str] | None = None, **options: object) -> Recorder | None:
    """Begin to record, as `with strobe.record(path, **options)` does, until `strobe.stop()`.

    Under `strobe run` it opens the recording window (`--start paused`); path and options are ignored, with one message
    on stderr. Returns what `current` returns: None with STROBE_DISABLE=1. Raises what `strobe.record` raises.
    """
    global _started
    given = path is not None or bool(options)
    if _windows() is not None and (not given or _under_strobe_run()):
        if given:
            record(path, **options)  # wrong options are refused as without `strobe run`
            _note_ignored()
        resume()
    else:
        begun = record(path, **options)
        begun.__enter__()
        if _started is None and begun.path is not None:
            import atexit

            atexit.unregister(_stop_at_exit)
            atexit.register(_stop_at_exit)
        _started = begun
    return current()


def stop() -> None:
    """End what `strobe.start()` began; under `strobe run`: close the recording window."""
    global _started
    if _started is not None:
        _started.__exit__(None, None, None)
        _started = None
    else:
        pause()


def _stop_at_exit() -> None:
    """A program that forgets to stop has its trace all the same."""
    if _started is not None:
        stop()


def pause() -> None:
    """Record nothing until `strobe.resume()`. Without a recording: nothing."""
    windows = _windows()
    if windows is not None:
        windows.close()


def resume() -> None:
    """Record again. Without a recording: nothing."""
    windows = _windows()
    if windows is not None:
        windows.resume()


def current() -> Recorder | None:
    """Return the recording of this process, None if there is none."""
    windows = _windows()
    return None if windows is None else Recorder(windows.settings.folder)


def _windows() -> Any:
    module = sys.modules.get("strobe.record.program.windows")
    return module.current() if module is not None else None
