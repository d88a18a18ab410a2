"""The interface of mindspore.Profiler: `from strobe.compat.mindspore import Profiler`. MindSpore need not be there.

Of a MindSpore program, strobe records the Python functions and the steps, but not the operators that MindSpore runs. Of
programs for PyTorch, it records the operators as well.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import strobe
from strobe.errors import UsageError
from strobe.model.terminal import talk
from strobe.record.launch.trace_folder import default_name

if TYPE_CHECKING:
    from strobe.api.trace import Trace

__all__ = ["Profiler"]


class Profiler:
    """Records from `start` to `stop`, any number of times, until `analyse`: all of it is one trace, `profiler.trace`.

    It begins at once unless `start_profile` is False. The trace is a folder in `output_path`, named after the script.
    Other keywords of MindSpore's Profiler are ignored, which is reported once on stderr. In a process that is recorded
    already (`strobe run`) `start` and `stop` are its windows, and answers raise strobe.StrobeError.
    Files of MindSpore's own profiler that are in `output_path` before it begins are what `op_analyse` is about, unless
    `analyse` was called: `Profiler(start_profile=False, output_path=FOLDER).op_analyse("MatMulV2")` records nothing.
    Raises strobe.StrobeError for `schedule` and `on_trace_ready`: strobe.integrations.mindspore.StopAtStep chooses
    steps.
    """

    def __init__(self, *, start_profile: bool = True, output_path: str = "./data", **options: Any) -> None:
        if options.get("schedule") is not None or options.get("on_trace_ready") is not None:
            raise UsageError(
                "strobe.compat.mindspore.Profiler has no schedule",
                do="Use strobe.integrations.mindspore.StopAtStep(start_step, stop_step).",
            )
        if options:
            talk(f"Profiler ignores {', '.join(sorted(options))}")
        self.path: str | None = None
        self._output_path = output_path
        self._had_files = os.path.isdir(output_path) and bool(os.listdir(output_path))
        self._own = self._started = False
        self._trace: Trace | None = None
        if start_profile:
            self.start()
        else:
            strobe.pause()

    @property
    def trace(self) -> Trace:
        """The trace, after `analyse`. Raises strobe.StrobeError before, and in a process that is recorded already."""
        if self._trace is None:
            raise UsageError(
                "this profiler has no trace",
                do="It has one after start(), stop() and analyse(). Under `strobe run`, open the trace of that run.",
            )
        return self._trace

    def start(self) -> None:
        """Begin to record. Raises RuntimeError if it does so already, as MindSpore does."""
        if self._started:
            raise RuntimeError("The profiler has already started. Do not turn on again in the open state.")
        self._started = True
        if strobe.current() is not None:
            strobe.resume()
            return
        os.makedirs(self._output_path, exist_ok=True)
        folder = os.path.join(self._output_path, default_name([sys.executable, *sys.argv]))
        recorder = strobe.start(folder, keep="all")
        if recorder is not None:  # STROBE_DISABLE=1
            self._own, self.path, self._trace = True, recorder.path, None
            atexit.register(self._finish)

    def stop(self) -> None:
        """Stop recording. Raises RuntimeError if nothing is recorded, as MindSpore does."""
        if not self._started:
            raise RuntimeError("The profiler has not started, so can not stop. Please call the start() method before.")
        self._started = False
        strobe.pause()

    def step(self) -> None:
        """Mark the end of a step."""
        strobe.step()

    def analyse(
        self,
        offline_path: str | None = None,
        pretty: bool = False,
        step_list: Sequence[int] | None = None,
        mode: str = "sync",
    ) -> None:
        """End the recording and open the trace, or that of `offline_path`. The other arguments have no meaning here."""
        if offline_path is not None:
            self._trace = strobe.open(offline_path)
            return
        if self._started:
            self.stop()
        self._finish()
        if self.path is not None:
            self._trace = strobe.open(self.path)

    def op_analyse(self, op_name: str | Sequence[str], device_id: int | None = None) -> str:
        """Return JSON: what operators cost by the shapes of their inputs; see strobe.Trace.op_analyse."""
        if self._trace is None and self._had_files:
            from strobe.api.imports import knows  # no business of a program that is measured

            if knows(Path(self._output_path)):
                self._finish()
                self._trace = strobe.open(self._output_path)
        return self.trace.op_analyse(op_name, device_id)

    op_analyze = op_analyse

    def _finish(self) -> None:
        if self._own:
            self._own = False
            atexit.unregister(self._finish)
            strobe.stop()

    def __enter__(self) -> Profiler:
        if not self._started:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._started:
            self.stop()
