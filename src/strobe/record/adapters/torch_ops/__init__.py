"""PyTorch operators, autograd nodes, optimizer and DataLoader ranges, through PyTorch's own ITT observer."""

from __future__ import annotations

from strobe.record.adapter import Adapter

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from strobe.record.doctor.finding import Finding


class _TorchOps(Adapter):
    def findings(self, environment: Mapping[str, str]) -> Iterable[Finding]:
        """Return whether PyTorch is installed, and has ITT, through which operators are recorded."""
        import os
        from importlib.util import find_spec

        from strobe.record.doctor.finding import MISSING, NOTE, OK, Finding, installed
        from strobe.record.launch.parallel_jobs import contains

        version = installed("torch")
        spec = find_spec("torch") if version else None
        library = os.path.join(os.path.dirname(spec.origin or ""), "lib", "libtorch_cpu.so") if spec else ""
        if not version:
            yield Finding("frameworks", "torch", NOTE, "not installed: no operators to record", "pip install torch")
        elif contains(library, b"__itt_"):
            yield Finding("frameworks", "torch", OK, f"{version}, with ITT: operators are recorded")
        else:
            mend = "pip install --force-reinstall torch"
            yield Finding("frameworks", "torch", MISSING, f"{version} is built without ITT: no operators", mend)


ADAPTER = _TorchOps(
    "torch_ops",
    short="torch",
    order=20,
    presets=("auto", "light", "sampling"),
    injection="INTEL_LIBITTNOTIFY64",
    events="torch operators",
    hooks="strobe.record.adapters.torch_ops.hooks",
)
