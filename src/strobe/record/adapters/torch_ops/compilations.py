"""What torch.compile compiles, and why: a span of each phase, and rows of compilations, recompiles and graph breaks.

PyTorch reports all of it to two functions of its own, whether anybody listens or not: `ChromiumEventLogger` has the
phases, `torch._logging.trace_structured` the rest. They are wrapped, and no log is switched on: what a log would
format is not formatted, and the program's own logs are as before.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from _thread import _local

from strobe.native import core
from strobe.record.adapter import Replacements
from strobe.record.program.import_hooks import after_import

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_PYTHON, _FUNCTION = 1, 1  # paradigm, role
_COMPILATION = 13  # kind of row, strobe.h
# What follows a graph break is a function of its own (torch/_dynamo/resume_execution.py).
_RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_\d+$")
_BREAK = re.compile(r"^Graph break .*?in user code at (.*):(\d+)$", re.M)
_REASON = re.compile(r"^Graph Break Reason: (.*)$", re.M)
# Why a compilation made no graph, where PyTorch has no reason.
_NOTHING = "it has no operation on tensors"
_EXPLANATION = re.compile(r"^\s*Explanation: (.*)$", re.M)
_PLACE = re.compile(r'^ *File "(.*)", line (\d+), in ', re.M)


class Compilations:
    """Records what is compiled between `start` and `stop`."""

    def __init__(self) -> None:
        self._on = False
        self._replacements = Replacements()
        self._thread: Any = _local()  # compilations around it, open phases, and when the outermost phase began
        self._functions: dict[str, tuple[str, str, int]] = {}  # by number of the frame: its recompiles, its backward

    def start(self) -> None:
        """Wrap PyTorch's functions as soon as they are there."""
        self._on = True
        after_import("torch._logging", self._logging_imported)
        after_import("torch._dynamo.utils", self._phases_imported)
        after_import("torch._dynamo.callback", self._callback_imported)

    def stop(self) -> None:
        """Give PyTorch its own functions back; copies of ours that modules hold do nothing more."""
        self._on = False
        self._replacements.undo()

    def _callback_imported(self, callback: ModuleType) -> None:
        handler: Any = getattr(callback, "CompilationCallbackHandler", None)
        if not self._on or not hasattr(handler, "install_callbacks"):
            return
        original, region = handler.install_callbacks, core.region("torch.compile", _PYTHON, _FUNCTION)
        thread = self._thread

        @functools.wraps(original)
        @contextlib.contextmanager
        def install_callbacks(this: Any, *args: Any, **kwargs: Any) -> Any:
            thread.inside = getattr(thread, "inside", 0) + 1
            core.enter(region)
            try:
                with original(this, *args, **kwargs) as entered:
                    yield entered
            finally:
                core.leave(region)
                thread.inside -= 1

        self._replacements.put(handler, "install_callbacks", install_callbacks)

    def _phases_imported(self, utils: ModuleType) -> None:
        logger: Any = getattr(utils, "ChromiumEventLogger", None)
        if not self._on or not (hasattr(logger, "log_event_start") and hasattr(logger, "log_event_end")):
            return
        begin, end, thread = logger.log_event_start, logger.log_event_end, self._thread

        @functools.wraps(begin)
        def log_event_start(this: Any, event_name: str, *args: Any, **kwargs: Any) -> Any:
            open_phases = thread.__dict__.setdefault("open", [])
            if not open_phases:
                thread.began = core.ticks()
            region = 0
            if getattr(thread, "inside", 0):  # a step that compiles is known by `torch.compile`: no phase is around it
                region = core.region(f"torch.compile: {event_name}", _PYTHON, _FUNCTION, "", 0, "torch._dynamo")
                core.enter(region)
            open_phases.append((event_name, region))
            return begin(this, event_name, *args, **kwargs)

        @functools.wraps(end)
        def log_event_end(this: Any, event_name: str, *args: Any, **kwargs: Any) -> Any:
            try:
                return end(this, event_name, *args, **kwargs)
            finally:
                open_phases = thread.__dict__.get("open", [])
                if any(name == event_name for name, _ in open_phases):
                    while True:  # phases inside of it that an exception has left open end with it
                        name, region = open_phases.pop()
                        if region:
                            core.leave(region)
                        if name == event_name:
                            break

        self._replacements.put(logger, "log_event_start", log_event_start)
        self._replacements.put(logger, "log_event_end", log_event_end)

    def _logging_imported(self, logging: ModuleType) -> None:
        original: Any = getattr(logging, "trace_structured", None)
        if not self._on or original is None:
            return

        @functools.wraps(original)
        def trace_structured(name: str, metadata_fn: Any = dict, *args: Any, **kwargs: Any) -> Any:
            if self._on and (name == "artifact" or "compilation_metrics" in name):
                try:
                    self._note(name, metadata_fn(), kwargs.get("payload_fn"))
                except Exception:  # of another version than we know; never into the program
                    core.count("compilations_unreadable", 1)
            return original(name, metadata_fn, *args, **kwargs)

        self._replacements.put(logging, "trace_structured", trace_structured)

    def _note(self, name: str, facts: dict[str, Any], payload: Any) -> None:
        if name != "artifact":
            self._compiled(facts)
        elif facts.get("name") == "recompile_reasons":
            reasons = payload()
            reason = reasons if isinstance(reasons, str) else reasons[0]
            self._row("recompile", _compile_id(), reason=" ".join(reason.partition("\n")[0].split()))
        elif facts.get("name") == "dynamo_graph_break_reason":
            file, line, reason = graph_break(payload())
            self._row("graph_break", _compile_id(), file=file, line=line, reason=reason)

    def _compiled(self, metrics: dict[str, Any]) -> None:
        number = str(metrics.get("compile_id"))
        if function := metrics.get("co_name"):
            resumed = _RESUMED.match(function)
            place = (str(metrics.get("co_filename") or ""), int(metrics.get("co_firstlineno") or 0))
            self._functions[_frame(number)] = (resumed[1] if resumed else function, *place)
        _, file, line = self._functions.get(_frame(number), ("", "", 0))
        reason = str(metrics.get("fail_reason") or "").partition("\n")[0]
        if not reason and metrics.get("is_forward") is not False and not metrics.get("graph_op_count"):
            reason = _NOTHING
        ns = int(metrics.get("duration_us") or 0) * 1000
        self._row("compile", number, file, line, reason, ns, getattr(self._thread, "began", 0))

    def _row(
        self,
        event: str,
        number: str,
        file: str = "",
        line: int = core.NOTHING_32,
        reason: str = "",
        duration_ns: int = core.NOTHING,
        ticks: int = 0,
    ) -> None:
        function = self._functions.get(_frame(number), ("",))[0]
        names = core.text(event) | core.text(number) << 21 | core.text(function) << 42
        texts = core.text(file) | core.text(reason) << 32
        core.row(_COMPILATION, names, texts, line & 0xFFFFFFFF, duration_ns, core.NOTHING, core.NOTHING, ticks)


def graph_break(text: str) -> tuple[str, int, str]:
    """Return file, line and cause of a graph break, as PyTorch describes it; "" and 0 for what is not in the text."""
    place = _BREAK.search(text)
    found = [place] if place else list(_PLACE.finditer(text))
    file, line = (found[-1][1], int(found[-1][2])) if found else ("", 0)
    cause = _REASON.search(text)
    reason = cause[1] if cause else ""
    if cause and reason.endswith(":"):  # what was tried; the cause comes behind it
        behind = [each.strip() for each in text[cause.end() :].splitlines() if each.strip()]
        reason = behind[0] if behind else reason
    if cause and (more := _EXPLANATION.search(text, cause.start())):
        reason = f"{reason}: {more[1]}"
    return file, line, reason or text.partition("\n")[0]


def _frame(number: str) -> str:
    """Return the number of the frame of a compilation: 0 of 0/3."""
    return number.rpartition("/")[0]


def _compile_id() -> str:
    context: Any = getattr(sys.modules.get("torch._guards"), "CompileContext", None)
    return str(context.current_compile_id()) if context is not None else ""
