"""Toys: what their GPUs do."""

from __future__ import annotations

import os

from strobe.model.option import Option
from strobe.record.adapter import Adapter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from strobe.record.doctor.finding import Finding
    from strobe.record.options.session_settings import Session


class Toy(Adapter):
    """The adapter."""

    def environment(self, settings: Session, environment: Mapping[str, str]) -> dict[str, str]:
        """Name the tool to the runtime."""
        return {"TOY_TOOL": os.path.join(os.path.dirname(__file__), "libstrobe_toy.so")}

    def findings(self, environment: Mapping[str, str]) -> Iterable[Finding]:
        """Return whether there are toys."""
        from strobe.record.doctor.finding import OK, Finding

        yield Finding("gpu", "toys", OK, "one toy")


ADAPTER = Toy(
    "toy",
    presets=("auto",),
    levels=("deep",),
    options=(Option("toy-colour", "Colour of the toys.", default="red", group="what"),),
    variables=("STROBE_TOY_BOX",),
)
