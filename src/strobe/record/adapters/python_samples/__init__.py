"""Samples: what every Python thread is doing, some number of times per second, instead of each of its calls."""

from __future__ import annotations

from strobe.model.option import Option
from strobe.record.adapter import Adapter
from strobe.record.options.recorder_options import Setting, per_second

# Beside recorded calls, a few samples show what the time between them is; alone, they are all there is.
_BESIDE_CALLS, _ALONE = "100", "1000"


class _PythonSamples(Adapter):
    def wanted(self, settings: dict[str, Setting], chosen: bool) -> bool:
        """Return whether a rate or `--trace` requests samples: each implies the other; a rate of 0 refuses them."""
        rate = settings["sample"]
        if rate.text and not rate.origin.startswith("preset"):
            return per_second(rate.text) > 0
        asked = {word.strip().lstrip("+") for word in settings["trace"].text.split(",")}
        if chosen and asked & {"samples", "python_samples"}:
            settings["sample"] = Setting(_ALONE, f"samples in --trace ({settings['trace'].origin})")
        elif rate.text and not chosen:
            settings["sample"] = Setting("0", f"no samples in --trace ({settings['trace'].origin})")
        return chosen


ADAPTER = _PythonSamples(
    "python_samples",
    short="samples",
    presets=("auto", "sampling"),
    preset_options={"auto": {"sample": _BESIDE_CALLS}, "sampling": {"sample": _ALONE}},
    options=(
        Option(
            "sample",
            "Sample every thread HZ times per second, native programs per second of CPU time (0 disables sampling).",
            group="what",
            parse=per_second,
            metavar="HZ",
        ),
    ),
    hooks="strobe.record.adapters.python_samples.hooks",
)
