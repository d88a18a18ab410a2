"""Every analysis as a method. Type checkers and editors read `analyses.pyi` instead, which `./dev gen` writes."""

from __future__ import annotations

from strobe import registry
from strobe.api.methods import AnalysisMethod


class Analyses:
    """The analyses as methods of Trace: `trace.kernels(by="stream")` is `trace.ask("kernels", by="stream")`."""


for name in registry.names("analyses"):
    setattr(Analyses, name, AnalysisMethod(name))
