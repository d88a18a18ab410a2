"""Whether metrics that a user names can be measured on a chip: checked before the program runs; likely names."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress

from strobe.errors import StrobeError, UsageError
from strobe.gpu.nvidia import catalogue
from strobe.gpu.nvidia.catalogue import Catalogue
from strobe.model.gpu_metrics import CHIPS, GROUPS, METRICS, formula, has, looks_like_counter

# What ncu adds to NVIDIA's counters: facts about the launch, the device and itself. They are in no catalogue.
_OWN = ("launch__", "device__", "profiler__", "numa__", "nvlink__", "smsp__pcsamp")
_OWN_NAMES = ("sm__maximum_warps_per_active_cycle_pct",)
_LIST = "What there is: strobe metrics --list"


def chip_here() -> str:
    """Return the chip of the first GPU of this machine, empty if nvidia-smi finds none."""
    words = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        output = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    return CHIPS.get(output.strip().partition("\n")[0].strip(), "")


def check(names: Sequence[str], chip: str = "") -> str:
    """Check names of metrics and counters against NVIDIA's catalogue, for a chip, or for any if it is unknown.

    Without NVIDIA's library, names of counters are only looked at. Returns a remark in that case, else an empty text.
    Raises UsageError for the first name that means nothing.
    """
    for name in names:
        if name not in METRICS and not looks_like_counter(name):
            raise UsageError(f"no metric '{name}'", do=meant(name, (*METRICS, *GROUPS)) or _LIST)
        if name in METRICS and not has(chip, name):
            raise UsageError(f"{chip} has no counters for '{name}'", do=f"They would be: {formula(name, chip)}")
        if name not in METRICS and not _own(name) and "." not in name:
            raise UsageError(f"'{name}' is incomplete", do=f"For example {name}.sum or {name}.avg")
    unchecked = [name for name in names if name not in METRICS and not _own(name)]
    try:
        library = catalogue.load()
    except StrobeError as error:
        if not unchecked:
            return ""
        return f"not checked whether this exists: {', '.join(unchecked)} ({error.what}; {error.do})"
    known = catalogue.chips(library)
    if chip and chip not in known:
        return f"nothing was checked: NVIDIA's library does not know the chip {chip}"
    with ExitStack() as open_ones:
        catalogues = []
        for each in [chip] if chip else [each for each in CHIPS.values() if each in known]:
            with suppress(UsageError):  # it names some chips, and has no counters of them
                catalogues.append(open_ones.enter_context(Catalogue(library, each)))
        for name in unchecked:
            if catalogues and not any(each.counter(name) for each in catalogues):
                where = f" on {chip}" if chip else ""
                raise UsageError(f"no metric '{name}'{where}", do=_near(catalogues, name))
    return ""


def _near(catalogues: Sequence[Catalogue], name: str) -> str:
    base = name.partition(".")[0]
    for each in catalogues:
        if kind := each.base_metrics.get(base):
            return f"{base} is a {kind}: {', '.join(f'.{suffix}' for suffix in catalogue.SUFFIXES[kind])}, ..."
    chip = catalogues[0].chip
    return meant(base, [name for each in catalogues for name in each.base_metrics]) or f"{_LIST} --chip {chip}"


def meant(word: str, known: Iterable[str]) -> str:
    """Return a suggestion of similar names, "" if there are none."""
    from difflib import get_close_matches

    close = get_close_matches(word, list(dict.fromkeys(known)), n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(close)}?" if close else ""


def _own(name: str) -> bool:
    return name.startswith(_OWN) or name in _OWN_NAMES
