"""torch.profiler's interface: `from strobe.compat.torch import profile, schedule, record_function, ...`.

A `profile` is PyTorch's own class (steps, schedules and callbacks are its code), with strobe recording where PyTorch
would have Kineto record. Each cycle becomes a trace folder; `profile.trace` is that of the last one. Names that strobe
has no part in are PyTorch's: schedule, record_function, tensorboard_trace_handler, ProfilerActivity, ProfilerAction.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import strobe
from strobe.errors import UsageError
from strobe.model.terminal import talk

try:
    import torch.profiler as _original
    from torch.autograd.profiler_util import EventList, FunctionEvent
    from torch.profiler import (
        ProfilerAction,
        ProfilerActivity,
        record_function,
        schedule,
        supported_activities,
        tensorboard_trace_handler,
    )
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError("strobe.compat.torch needs PyTorch, which is not installed: https://pytorch.org") from None

if TYPE_CHECKING:
    from strobe.api.trace import Trace

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

# What PyTorch's profiler records when it is asked to, and this one does not.
_NOT_RECORDED = {
    "record_shapes": "shapes of inputs",
    "profile_memory": "memory of single operators",
    "with_flops": "FLOPs",
    "acc_events": "all cycles as one",
}


class profile(_original.profile):  # noqa: N801 - as PyTorch calls it
    """torch.profiler.profile with strobe behind it. Takes what that takes, and `path`, the trace folder.

    Python functions are recorded with `with_stack` or `with_modules`. What is asked for but not recorded (shapes,
    memory of operators, FLOPs, kernels of GPUs) is named once on stderr. In a process that is recorded already
    (`strobe run`) the steps are in that trace: the profile has none of its own, `on_trace_ready` is not called, and
    answers raise strobe.StrobeError.
    """

    def __init__(self, *, path: str | os.PathLike[str] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.path: str | None = None
        self._wanted_path = path
        self._recording = False
        self._trace: Trace | None = None
        self._metadata: dict[str, Any] = {}
        missing = [text for name, text in _NOT_RECORDED.items() if options.get(name)]
        if options.get("activities") is not None and self.activities != {ProfilerActivity.CPU}:
            missing.append("kernels of GPUs")
        if missing:
            talk(f"strobe.compat.torch does not record {', '.join(missing)}")

    @property
    def trace(self) -> Trace:
        """The trace of the last cycle that has ended. Raises strobe.StrobeError before that."""
        if self._trace is None:
            raise UsageError(
                "this profile has no trace",
                do="It has one when a cycle has ended. Under `strobe run`, open the trace of that run.",
            )
        return self._trace

    # What PyTorch's state machine calls

    def prepare_trace(self) -> None:
        """Do nothing: strobe needs no warm-up."""

    def start_trace(self) -> None:
        """Begin to record."""
        if strobe.current() is not None:
            talk("this process is recorded already; its trace contains what is profiled")
            return
        python = "+" if self.with_stack or self.with_modules else "-"
        recorder = strobe.start(self._wanted_path, trace=f"{python}python", keep="all")
        if recorder is not None:  # STROBE_DISABLE=1
            self._recording, self.path, self._trace = True, recorder.path, None

    def stop_trace(self) -> None:
        """End the recording of a cycle."""
        if self._recording and self.path is not None:
            strobe.stop()
            self._recording = False
            self._trace = strobe.open(self.path)

    def _trace_ready(self) -> None:
        if self._trace is not None:
            super()._trace_ready()

    def step(self) -> None:
        """Mark the begin of the next step."""
        if not self.record_steps:  # with a schedule, PyTorch's own ranges mark it
            strobe.step()
        super().step()

    # Answers

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> Any:
        """Return PyTorch's EventList with one row per operator: calls, and times in us.

        Raises strobe.StrobeError for groups by what is not recorded.
        """
        if group_by_input_shape or group_by_stack_n or group_by_overload_name:
            raise UsageError(
                "strobe.compat.torch groups by the name of the operator alone",
                do='For where operators are called: profile.trace.operators(by="module") or by="line".',
            )
        return self.events().key_averages()

    def events(self) -> Any:
        """Return PyTorch's EventList of all executions of operators, in order of their begin; times in us."""
        executions: Any = self.trace.sql(
            "select name, location, start_ns, start_ns + duration_ns as end_ns from spans"
            " where paradigm = 'torch' order by start_ns, duration_ns desc"
        )
        found = []
        for number, row in enumerate(executions.to_pylist()):
            step = "ProfilerStep*" if row["name"].startswith("ProfilerStep#") else row["name"]
            begin, end = row["start_ns"] / 1000, row["end_ns"] / 1000
            thread = row["location"]
            found.append(FunctionEvent(number, step, thread, begin, end, stack=[], trace_name=row["name"]))
        events = EventList(found, use_device=None)
        events._build_tree()
        return events

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write the trace as Chrome JSON, packed if the name ends with `.gz`; metadata are beside the events."""
        with tempfile.TemporaryDirectory(prefix="strobe-") as folder:
            plain = Path(folder) / "trace.json"
            self.trace.export(plain, to="chrome")
            if self._metadata:
                content = json.loads(plain.read_text(encoding="utf-8"))
                plain.write_text(json.dumps({**content, **self._metadata}), encoding="utf-8")
            if os.fspath(path).endswith(".gz"):
                with plain.open("rb") as source, gzip.open(path, "wb") as target:
                    shutil.copyfileobj(source, target)
            else:
                shutil.copyfile(plain, path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write call stacks with their own time in us, one a line, as flame graphs take them."""
        if metric != "self_cpu_time_total":
            raise UsageError(f"strobe.compat.torch does not record {metric}", do="Use self_cpu_time_total.")
        self.trace.export(path, to="collapsed")

    def add_metadata(self, key: str, value: str) -> None:
        """Keep a text that `export_chrome_trace` writes."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Keep a value, as JSON, that `export_chrome_trace` writes. Raises ValueError for text that is not JSON."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Raise strobe.StrobeError: memory of single operators is not recorded."""
        raise UsageError("strobe.compat.torch does not record memory of single operators")

    def toggle_collection_dynamic(self, enable: bool, activities: Any) -> None:
        """Pause the recording, or resume it."""
        if self._recording:
            (strobe.resume if enable else strobe.pause)()
