"""What GPUs do, through CUPTI: libstrobe is the injection library that the CUDA driver loads when a program starts it.

A process that does not use CUDA never loads anything of it (native/adapters/cupti/). CUPTI has one user at a time, and
torch.profiler is one: --with-torch-profiler decides who records GPUs while it runs.
"""

from __future__ import annotations

import os
import sys

from strobe.native import core, library
from strobe.record.adapter import Hooks, Replacements
from strobe.record.adapters.cuda.injection import CANDIDATES, VARIABLE, of_packages
from strobe.record.options.session_settings import SESSION_VARIABLE, Session
from strobe.record.program.import_hooks import after_import

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

# Read by native/core/session/from_environment.cpp if the environment has no session: strobe.record().
LEVELS = "STROBE_LEVELS"


class _Cuda(Hooks):
    """The driver reads its variable once, inside of cuInit."""

    def __init__(self) -> None:
        self._on = False
        self._policy = "yield"
        self._profiling: Any = None  # the clocks when a profiler of the program's got the GPUs
        self._replacements = Replacements()

    def available(self) -> str:
        """Another tool's injection (Nsight Systems, Nsight Compute, compute-sanitizer) stays."""
        if os.environ.get(VARIABLE, library()) != library():
            missing = f"{VARIABLE} names another tool, or none: {os.environ[VARIABLE]}"
            core.gpu_say("failed", f"GPUs are not recorded: {missing}")
            return missing
        return ""

    def start(self, settings: Session) -> None:
        """Name the injection library, and the CUPTI of this interpreter's packages."""
        self._policy = settings.options["with-torch-profiler"]
        self._on = True
        if self._policy == "only":
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = library()
            if SESSION_VARIABLE not in os.environ:
                os.environ[LEVELS] = ",".join(settings.levels)
            if found := of_packages(sys.path):
                os.environ[CANDIDATES] = os.pathsep.join(found)
            if settings.attached:
                core.gpu_begin_late()
        after_import("torch", self._torch_imported)

    def stop(self) -> None:
        """Give PyTorch its own functions back. Without a session the core ignores records."""
        self._on = False
        self._replacements.undo()

    def _torch_imported(self, torch: ModuleType) -> None:
        if not self._on or not hasattr(torch, "_C"):
            return  # or a module of the program that happens to have this name
        import torch.autograd.profiler as profiler  # type: ignore[import-not-found, unused-ignore]  # part of torch

        if self._profiling is not None and not _kineto_runs(torch):  # it ended between two recording windows
            self._profiling = None
            core.gpu_take_back()
        for name in ("_prepare_profiler", "_enable_profiler"):
            if hasattr(profiler, name):
                self._replacements.put(
                    profiler, name, self._beginning(getattr(profiler, name), profiler.ProfilerActivity)
                )
        ending = self._ending(profiler._disable_profiler, profiler.DeviceType)
        self._replacements.put(profiler, "_disable_profiler", ending)

    def _beginning(self, original: Any, activity: Any) -> Any:
        def call(config: Any, activities: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                activities = self._profiler_begins(activities, activity)
            except Exception:  # never into the program
                core.count("gpu_events_of_profiler_not_read", 1)
            try:
                return original(config, activities, *args, **kwargs)
            except BaseException:
                if self._profiling is not None:
                    self._profiling = None
                    self._take_back()
                raise

        return call

    def _ending(self, original: Any, device_type: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._profiling is None:
                return original(*args, **kwargs)
            result = None
            try:
                result = original(*args, **kwargs)
                return result
            finally:
                try:
                    self._profiler_ended(result, device_type)
                except Exception:  # never into the program
                    core.count("gpu_events_of_profiler_not_read", 1)

        return call

    def _profiler_begins(self, activities: Any, activity: Any) -> Any:
        """Make way for a profiler that wants GPUs, or keep them; return the activities that it gets."""
        if activity.CUDA not in activities or not self._on:
            return activities
        if self._policy == "keep":
            if not core.gpu_recorded():
                return activities
            core.gpu_say("torch_profiler", "torch.profiler got no GPUs: --with-torch-profiler keep")
            return {each for each in activities if each != activity.CUDA} or {activity.CPU}
        if self._profiling is None:
            begun = core.wall_clock()
            if self._policy == "only":
                core.streams_told(begun[0])  # it reports at the end what GPUs do from now on
            else:
                core.gpu_yield("torch.profiler")
            self._profiling = begun
        return activities

    def _profiler_ended(self, result: Any, device_type: Any) -> None:
        begun, self._profiling = self._profiling, None
        try:
            if result is not None and hasattr(result, "events") and (self._policy == "only" or core.gpu_yielded()):
                events = core.gpu_ingest(result.events(), device_type.CUDA, begun, core.wall_clock())
                if self._policy == "only":
                    core.gpu_say(
                        "recorded_with",
                        "torch.profiler while it ran: --with-torch-profiler only "
                        f"({events} kernels, copies and sets in its last run)",
                    )
        finally:
            self._take_back()

    def _take_back(self) -> None:
        if self._policy == "only":
            core.streams_told(2**63 - 1)
        else:
            core.gpu_take_back()


def _kineto_runs(torch: Any) -> bool:
    """Whether a profiler of the program's runs in this thread."""
    kind = torch._C._autograd._profiler_type()
    return bool(kind == torch._C._autograd.ActiveProfilerType.KINETO)


HOOKS = _Cuda()
