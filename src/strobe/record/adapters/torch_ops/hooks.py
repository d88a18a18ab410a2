"""PyTorch operators, autograd nodes, optimizer and DataLoader ranges, through PyTorch's own ITT observer.

`torch.autograd.profiler.emit_itt` is per thread and excludes torch.profiler on the same thread, hence:
- it is switched on in the thread that imports torch and in every Python thread that starts later (autograd's own
threads inherit it);
- when the program starts a profiler of its own, ours steps aside on that thread and comes back when that one ends.
A range costs 0.4 to 0.5 us, of which 0.3 to 0.4 are PyTorch's RecordFunction.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys

from strobe.native import core, library
from strobe.record import control_groups
from strobe.record.adapter import Hooks, Replacements
from strobe.record.adapters.torch_ops.compilations import Compilations
from strobe.record.adapters.torch_ops.generated_code import GeneratedCode
from strobe.record.options.session_settings import Session
from strobe.record.program import threads
from strobe.record.program.import_hooks import after_import

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

# model/kinds.py
_OPERATOR_THREADS, _CORES = "threads of an operator", "cores of the process"
_OPTIMIZED_PARAMETERS = "parameters of optimizers"


class _TorchOps(Hooks):
    def __init__(self) -> None:
        self._on = False
        self._enable_profiler: Any = None
        self._disable_profiler: Any = None
        self._config: Any = None
        self._state: Any = None  # threading.local: our observer in this thread, whether it stepped aside
        self._parameters = 0  # that optimizers have
        self._replacements = Replacements()
        self._compilations = Compilations()
        self._generated_code = GeneratedCode()

    def available(self) -> str:
        """The operators come through ITT, so its variable must be ours to set."""
        variable = os.environ.get("INTEL_LIBITTNOTIFY64", library())
        return "" if variable == library() else f"INTEL_LIBITTNOTIFY64 names another collector: {variable}"

    def start(self, settings: Session) -> None:
        """Switch on as soon as torch is imported."""
        # torch makes its ITT domain, and so loads the collector, during its import. If it found none, it gets ours now.
        late = "torch" in sys.modules and os.environ.get("INTEL_LIBITTNOTIFY64") != library()
        folder = os.path.dirname(getattr(sys.modules.get("torch"), "__file__", None) or "")
        if late and not core.attach_torch(os.path.join(folder, "lib", "libtorch_cpu.so")):
            raise RuntimeError(
                "torch was imported before the recording; use `strobe run`, or import torch inside strobe.record()"
            )
        os.environ["INTEL_LIBITTNOTIFY64"] = library()
        self._on = True
        after_import("torch", self._torch_imported)
        self._compilations.start()
        self._generated_code.start()

    def stop(self) -> None:
        """Give PyTorch its own functions back; switch the observer off in this thread."""
        self._on = False
        if self._state is not None:
            self._observer().close()
        self._replacements.undo()
        self._compilations.stop()
        self._generated_code.stop()

    def _torch_imported(self, torch: ModuleType) -> None:
        if not self._on or not hasattr(torch, "_C"):
            return  # or a module of the program that happens to have this name
        import threading

        import torch.autograd.profiler as profiler  # type: ignore[import-not-found, unused-ignore]  # part of torch

        if not hasattr(profiler.ProfilerState, "ITT"):
            core.count("not_recorded_torch_ops", 1)
            return
        experimental = profiler._ExperimentalConfig()
        self._config = profiler.ProfilerConfig(
            profiler.ProfilerState.ITT, False, False, False, False, False, experimental
        )
        self._enable_profiler, self._disable_profiler = profiler._enable_profiler, profiler._disable_profiler
        self._state = threading.local()
        self._switch_on()
        atexit.register(self._observer().close)
        atexit.register(self._read_threads, torch)
        if threading.active_count() > 1:
            core.count("threads_without_torch_operators", threading.active_count() - 1)
        threads.at_begin(lambda: self._switch_on() if self._on else None)
        self._patch_profiler(profiler)
        if (optim := sys.modules.get("torch.optim")) is not None:
            self._count_parameters(optim.Optimizer)

    def _count_parameters(self, optimizer: Any) -> None:
        """Count the parameters of each group that an optimizer gets."""
        original = optimizer.add_param_group

        @functools.wraps(original)
        def add_param_group(this: Any, *args: Any, **kwargs: Any) -> Any:
            done = original(this, *args, **kwargs)
            if self._on and this.param_groups:
                self._parameters += len(this.param_groups[-1]["params"])
            return done

        self._replacements.put(optimizer, "add_param_group", add_param_group)

    def _read_threads(self, torch: Any) -> None:
        if self._on:
            core.sample(core.metric(_OPERATOR_THREADS, "threads"), float(torch.get_num_threads()))
            cores = float(len(os.sched_getaffinity(0)))
            core.sample(core.metric(_CORES, "cores"), min(cores, control_groups.cpu_limit() or cores))
            if self._parameters:
                core.sample(core.metric(_OPTIMIZED_PARAMETERS, "parameters"), float(self._parameters))

    def _observer(self) -> Any:
        """Return this thread's switch, which also switches off when the thread ends: PyTorch warns of one left on."""
        observer = getattr(self._state, "observer", None)
        if observer is None:
            observer = self._state.observer = core.AtEnd()
        return observer

    def _switch_on(self) -> None:
        try:
            self._enable_profiler(self._config, set())
        except RuntimeError:  # another observer is on in this thread
            return
        self._observer().arm(self._disable_profiler)

    def _patch_profiler(self, profiler: ModuleType) -> None:
        """Step aside for a profiler that the program starts on this thread, and come back after it."""
        state = self._state

        def stepping_aside(original: Any) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                if self._observer().armed:
                    self._observer().close()
                    state.aside = True
                    core.count("stepped_aside_for_torch_profiler", 1)
                return original(*args, **kwargs)

            return call

        def coming_back(original: Any) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                try:
                    return original(*args, **kwargs)
                finally:
                    if getattr(state, "aside", False) and self._on:
                        state.aside = False
                        self._switch_on()

            return call

        wrappers = {
            "_prepare_profiler": stepping_aside,
            "_enable_profiler": stepping_aside,
            "_disable_profiler": coming_back,
        }
        for name, wrap in wrappers.items():
            if hasattr(profiler, name):
                self._replacements.put(profiler, name, wrap(getattr(profiler, name)))


HOOKS = _TorchOps()
