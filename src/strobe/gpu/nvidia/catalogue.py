"""Which counters each chip of NVIDIA's has: CUPTI's Profiler Host API, which needs neither a GPU nor a driver.

The library comes in a package from PyPI (pip installs it with PyTorch for CUDA). Declarations are our own; NVIDIA's
documentation of them: https://docs.nvidia.com/cupti, module "CUPTI Profiler Host API". Each call takes one structure,
which begins with its own size.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property

from strobe.errors import StrobeError, UsageError

INSTALL = "pip install nvidia-cuda-cupti==13.0.85"
# Packages that hold the library, and the versions that are fit: from 12.6 on there is this interface, and 13.2 crashes
# in its first call without a driver (later versions fail there).
_PACKAGE = re.compile(r"nvidia[-_]cuda[-_]cupti(?:[-_]cu\d+)?", re.IGNORECASE)
_FIRST, _BEFORE = (12, 6), (13, 2)
_RANGE_PROFILER = 0
# Kinds of metrics, in the order of their numbers, with suffixes that make values of them; the first always does.
SUFFIXES = {
    "counter": ("sum", "avg", "max", "min", "sum.per_second", "avg.pct_of_peak_sustained_elapsed"),
    "ratio": ("ratio", "pct", "max_rate"),
    "throughput": ("avg.pct_of_peak_sustained_elapsed", "max.pct_of_peak_sustained_elapsed"),
}
_TYPES = tuple(SUFFIXES)

_Names = ctypes.POINTER(ctypes.c_char_p)
_SIZE, _POINTER, _TEXT, _NUMBER = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int


def _argument(**fields: type) -> type[ctypes.Structure]:
    """Return the structure that a call takes: its own size, a private pointer, and these fields."""
    return type(
        "_Argument", (ctypes.Structure,), {"_fields_": [*{"size": _SIZE, "private": _POINTER, **fields}.items()]}
    )


_Chips = _argument(count=_SIZE, names=_Names)
_Initialize = _argument(profiler=_NUMBER, chip=_TEXT, availability=_POINTER, host=_POINTER)
_Deinitialize = _argument(host=_POINTER)
_BaseMetrics = _argument(host=_POINTER, type=_NUMBER, names=_Names, count=_SIZE)
_Properties = _argument(host=_POINTER, name=_TEXT, description=_TEXT, hardware=_TEXT, unit=_TEXT, type=_NUMBER)
_AddMetrics = _argument(host=_POINTER, names=_Names, count=_SIZE)
_ImageSize = _argument(host=_POINTER, image_size=_SIZE)
_Image = _argument(host=_POINTER, image_size=_SIZE, image=_POINTER)
_Passes = _argument(image_size=_SIZE, image=_POINTER, passes=_SIZE)


@dataclass(frozen=True)
class Library:
    """An installed libcupti: its path, and its version, known without loading it."""

    path: str
    version: str

    @property
    def fit(self) -> bool:
        """Whether it has the interface, and may be loaded without a driver."""
        numbers = tuple(int(each) for each in re.findall(r"\d+", self.version)[:2])
        return _FIRST <= numbers < _BEFORE


@dataclass(frozen=True)
class Counter:
    """A counter in a chip's catalogue. `type`: counter, ratio or throughput."""

    name: str
    about: str
    unit: str
    type: str


class Catalogue(AbstractContextManager["Catalogue"]):
    """The counters of one chip. Close it, or use it in a `with` block."""

    def __init__(self, library: ctypes.CDLL, chip: str) -> None:
        self.chip = chip
        self._library = library
        self._host: int | None = _host(library, chip)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the library's data about the chip."""
        if self._host is not None:
            self._fails("Deinitialize", _Deinitialize(host=self._host))
            self._host = None

    @cached_property
    def base_metrics(self) -> Mapping[str, str]:
        """Names of all metrics before their suffix (`sm__warps_active`), with their type."""
        found = {}
        for number, kind in enumerate(_TYPES):
            request = _BaseMetrics(host=self._host, type=number)
            if not self._fails("GetBaseMetrics", request):
                found.update(dict.fromkeys(_texts(request.names, request.count), kind))
        return dict(sorted(found.items()))

    def counter(self, name: str) -> Counter | None:
        """Return a counter by its full name (`sm__warps_active.avg`), None for an unknown one."""
        request = _Properties(host=self._host, name=name.encode())
        if self._fails("GetMetricProperties", request):
            return None
        kind = _TYPES[request.type] if request.type < len(_TYPES) else ""
        return Counter(name, _text(request.description), _text(request.unit), kind)

    def passes(self, names: Iterable[str]) -> int | None:
        """Return how often a kernel must run for all these counters; None if they cannot be combined."""
        wanted = [name.encode() for name in names]
        host = _host(self._library, self.chip)  # metrics that were added to one cannot be removed
        try:
            array = (ctypes.c_char_p * len(wanted))(*wanted)
            added = _AddMetrics(host=host, names=ctypes.cast(array, _Names), count=len(wanted))
            size = _ImageSize(host=host)
            if self._fails("ConfigAddMetrics", added) or self._fails("GetConfigImageSize", size):
                return None
            buffer = ctypes.create_string_buffer(size.image_size)
            image = ctypes.cast(buffer, ctypes.c_void_p)
            filled = _Image(host=host, image_size=size.image_size, image=image)
            counted = _Passes(image_size=size.image_size, image=image)
            if self._fails("GetConfigImage", filled) or self._fails("GetNumOfPasses", counted):
                return None
            return int(counted.passes)
        finally:
            self._fails("Deinitialize", _Deinitialize(host=host))

    def _fails(self, function: str, argument: ctypes.Structure) -> bool:
        return _call(self._library, function, argument) != 0


def installed() -> list[Library]:
    """Return the libraries of the packages that are installed, the newest fit one first."""
    from importlib.metadata import distributions

    found = {}
    for package in distributions():
        if _PACKAGE.fullmatch(package.metadata["Name"] or ""):
            for file in package.files or ():
                if re.fullmatch(r"libcupti\.so(?:\.\d+)*", file.name):
                    path = os.path.realpath(str(package.locate_file(file)))
                    found[path] = Library(path, package.version)
    return sorted(found.values(), key=lambda each: (not each.fit, [-int(n) for n in re.findall(r"\d+", each.version)]))


def load(library: Library | None = None) -> ctypes.CDLL:
    """Load an installed library, the best one unless one is given.

    Raises StrobeError if none is installed, or none that can be used.
    """
    candidates = [library] if library else installed()
    if not candidates:
        raise StrobeError("the catalogue of GPU metrics needs NVIDIA's libcupti, which is not installed", do=INSTALL)
    best = candidates[0]
    if not best.fit:
        what = f"CUPTI {best.version} cannot list the metrics: versions 12.6 to 13.1 can"
        raise StrobeError(what, where=best.path, do=INSTALL)
    folder = os.path.dirname(best.path)
    try:
        # libcupti looks for this one by name, and it is on no path.
        ctypes.CDLL(os.path.join(folder, "libnvperf_host.so"))
        return ctypes.CDLL(best.path)
    except OSError as error:
        raise StrobeError(f"NVIDIA's libcupti cannot be loaded: {error}", do=INSTALL) from error


def chips(library: ctypes.CDLL) -> list[str]:
    """Return the names of all chips that a library knows: GV100, GH100, ..."""
    request = _Chips()
    if _call(library, "GetSupportedChips", request):
        return []
    return _texts(request.names, request.count)


def open_catalogue(chip: str) -> Catalogue:
    """Return the catalogue of a chip.

    Raises UsageError if the library does not know the chip, StrobeError without a library.
    """
    library = load()
    known = chips(library)
    if chip not in known:
        raise UsageError(f"no chip '{chip}'", do=f"Chips: {' '.join(known)}")
    return Catalogue(library, chip)


def _host(library: ctypes.CDLL, chip: str) -> int:
    request = _Initialize(profiler=_RANGE_PROFILER, chip=chip.encode())
    if result := _call(library, "Initialize", request):
        raise UsageError(f"NVIDIA's library has no counters of {chip} (code {result})")
    return int(request.host)


def _call(library: ctypes.CDLL, name: str, argument: ctypes.Structure) -> int:
    """Call a function of the interface with its structure. Returns NVIDIA's code, 0 for success."""
    last = getattr(type(argument), argument._fields_[-1][0])
    argument.size = last.offset + last.size  # without padding
    return int(library[f"cuptiProfilerHost{name}"](ctypes.byref(argument)))


def _texts(names: ctypes._Pointer[ctypes.c_char_p], count: int) -> list[str]:
    return [_text(names[at]) for at in range(count)]


def _text(value: bytes | ctypes.c_char_p | None) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
