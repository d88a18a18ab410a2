"""Samples: what every Python thread is doing, some number of times per second, instead of each of its calls."""

from __future__ import annotations

from strobe.model.option import Option
from strobe.record.adapter import Adapter
from strobe.record.options.recorder_options import Setting, per_second

_USUAL = "1000"


class _PythonSamples(Adapter):
    def wanted(self, settings: dict[str, Setting], chosen: bool) -> bool:
        """Return whether a rate or `--trace` requests samples: each implies the other; a rate of 0 refuses them."""
        if settings["sample"].text:
            return per_second(settings["sample"].text) > 0
        if chosen:
            settings["sample"] = Setting(_USUAL, f"samples in --trace ({settings['trace'].origin})")
        return chosen


ADAPTER = _PythonSamples(
    "python_samples",
    short="samples",
    presets=("sampling",),
    preset_options={"sampling": {"sample": _USUAL}},
    options=(
        Option(
            "sample",
            "Sample every Python thread HZ times per second (0 disables sampling).",
            group="what",
            parse=per_second,
            metavar="HZ",
        ),
    ),
    hooks="strobe.record.adapters.python_samples.hooks",
)
