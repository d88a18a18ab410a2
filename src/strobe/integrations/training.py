"""What the callbacks of all frameworks do: record some steps of a training, and where each step ends."""

from __future__ import annotations

import atexit
import os
import sys
from importlib import import_module
from typing import Any

import strobe


class TrainingRecorder:
    """Records the steps `start_step` to `stop_step`, both included; None: from the beginning, to the end.

    A process that is recorded already (`strobe run`) stays in its trace: other steps are left out of it as with
    `strobe.pause()`, and `path` and `options` do not count. Elsewhere the steps become a trace folder of their own, as
    with `strobe.start(path, **options)`; `trace_path` names it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        start_step: int | None,
        stop_step: int | None,
        options: dict[str, object],
    ) -> None:
        first = 0 if start_step is None else start_step
        if first < 0 or (stop_step is not None and stop_step < first):
            raise ValueError(f"steps {start_step} to {stop_step} do not exist")
        self.start_step, self.stop_step = start_step, stop_step
        self.trace_path: str | None = None
        self._path, self._options = path, options
        self._open = self._own = self._done = False

    def training_begins(self) -> None:
        """Open the window, or close it until its first step."""
        self._done = False
        if self.start_step is None:
            self._begin()
        else:
            strobe.pause()

    def step_begins(self, step: int) -> None:
        """Open the window before its first step."""
        if not self._open and not self._done and step >= (self.start_step or 0):
            self._begin()

    def step_ends(self, step: int) -> None:
        """End a step, and close the window after its last one."""
        strobe.step()
        if self._open and self.stop_step is not None and step >= self.stop_step:
            self._end()

    def training_ends(self) -> None:
        """Close the window."""
        if self._open and (self._own or self.stop_step is not None):
            self._end()
        self._open = False

    def _begin(self) -> None:
        self._open = True
        if strobe.current() is not None:
            strobe.resume()
            return
        recorder = strobe.start(self._path, **self._options)
        if recorder is not None:  # STROBE_DISABLE=1
            self._own, self.trace_path = True, recorder.path
            atexit.register(self.training_ends)  # of a training that an exception ends

    def _end(self) -> None:
        self._open, self._done = False, True
        if self._own:
            self._own = False
            atexit.unregister(self.training_ends)
            strobe.stop()
        else:
            strobe.pause()


class TrainingCallback:
    """What the `StrobeCallback` of every framework is beside its framework's own callback, which comes after it.

    The four methods take whatever the framework passes: a callback gives them its framework's names.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        keep: int | str = 10,
        start_step: int | None = None,
        stop_step: int | None = None,
        **options: object,
    ) -> None:
        super().__init__()
        self._recorder = TrainingRecorder(path, start_step, stop_step, {"keep": keep, **options})
        self._step = 0  # batches or updates since the training began, where the framework does not count itself

    def training_begins(self, *_: Any, **__: Any) -> None:
        """Begin, or wait for the first step."""
        self._step = 0
        self._recorder.training_begins()

    def step_begins(self, *_: Any, **__: Any) -> None:
        """Begin with the first step."""
        self._recorder.step_begins(self._step)

    def step_ends(self, *_: Any, **__: Any) -> None:
        """End a step."""
        self._recorder.step_ends(self._step)
        self._step += 1

    def training_ends(self, *_: Any, **__: Any) -> None:
        """End the recording."""
        self._recorder.training_ends()

    @property
    def trace_path(self) -> str | None:
        """The trace folder that this callback made; None before, and under `strobe run`."""
        return self._recorder.trace_path


class StopAtStepOf:
    """What every `StopAtStep` is beside its framework's `StrobeCallback`, which comes after it."""

    def __init__(
        self, start_step: int, stop_step: int, path: str | os.PathLike[str] | None = None, **options: Any
    ) -> None:
        callback: Any = super()
        callback.__init__(path, start_step=start_step, stop_step=stop_step, **{"keep": "all", **options})


def framework(title: str, package: str, *modules: str) -> Any:
    """Import the first of some modules that is installed; those that the program has imported already come first.

    Raises ImportError with a sentence: which framework is missing, and which package has it.
    """
    for module in sorted(modules, key=lambda each: each not in sys.modules):
        try:
            return import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise  # it is there, and lacks something itself
    raise ImportError(f"this callback needs {title}, which is not installed: pip install {package}")
