"""Which counters each chip of NVIDIA's has: CUPTI's Profiler Host API, which needs neither a GPU nor a driver.

The library comes in a package from PyPI (pip installs it with PyTorch for CUDA). Declarations are our own; NVIDIA's
documentation of them: https://docs.nvidia.com/cupti, module "CUPTI Profiler Host API". Each call takes one structure,
which begins with its own size.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from strobe.errors import StrobeError, UsageError

INSTALL = "pip install nvidia-cuda-cupti==13.0.85"
# Packages that hold the library, and the versions that are fit: from 12.6 on there is this interface, and 13.2 crashes
# in its first call where there is no driver (the versions behind it fail there).
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


class _Chips(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("private", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
        ("names", _Names),
    )


class _Initialize(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("private", ctypes.c_void_p),
        ("profiler", ctypes.c_int),
        ("chip", ctypes.c_char_p),
        ("availability", ctypes.c_void_p),
        ("host", ctypes.c_void_p),
    )


class _Deinitialize(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t), ("private", ctypes.c_void_p), ("host", ctypes.c_void_p))


class _BaseMetrics(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("private", ctypes.c_void_p),
        ("host", ctypes.c_void_p),
        ("type", ctypes.c_int),
        ("names", _Names),
        ("count", ctypes.c_size_t),
    )


class _Properties(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("private", ctypes.c_void_p),
        ("host", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("description", ctypes.c_char_p),
        ("hardware", ctypes.c_char_p),
        ("unit", ctypes.c_char_p),
        ("type", ctypes.c_int),
    )


class _AddMetrics(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("private", ctypes.c_void_p),
        ("host", ctypes.c_void_p),
        ("names", _Names),
        ("count", ctypes.c_size_t),
    )


class _ImageSize(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("private", ctypes.c_void_p),
        ("host", ctypes.c_void_p),
        ("image_size", ctypes.c_size_t),
    )


class _Image(ctypes.Structure):
    _fields_ = (*_ImageSize._fields_, ("image", ctypes.c_void_p))


class _Passes(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("private", ctypes.c_void_p),
        ("image_size", ctypes.c_size_t),
        ("image", ctypes.c_void_p),
        ("passes", ctypes.c_size_t),
    )


@dataclass(frozen=True)
class Library:
    """An installed libcupti: its path, and its version, known without loading it."""

    path: str
    version: str

    @property
    def fit(self) -> bool:
        """Whether it has the interface, and may be loaded where there is no driver."""
        numbers = tuple(int(each) for each in re.findall(r"\d+", self.version)[:2])
        return _FIRST <= numbers < _BEFORE


@dataclass(frozen=True)
class Counter:
    """A counter in a chip's catalogue. `type`: counter, ratio or throughput."""

    name: str
    about: str
    unit: str
    type: str


class Catalogue:
    """The counters of one chip. Close it, or use it in a `with` block."""

    def __init__(self, library: ctypes.CDLL, chip: str) -> None:
        self.chip = chip
        self._library = library
        self._host: int | None = _host(library, chip)

    def __enter__(self) -> Catalogue:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back what the library holds for the chip."""
        if self._host is not None:
            _call(self._library, "cuptiProfilerHostDeinitialize", _Deinitialize(host=self._host))
            self._host = None

    @cached_property
    def base_metrics(self) -> Mapping[str, str]:
        """Names of all metrics before their suffix (`sm__warps_active`), with their type."""
        found = {}
        for number, kind in enumerate(_TYPES):
            asked = _BaseMetrics(host=self._host, type=number)
            if not _call(self._library, "cuptiProfilerHostGetBaseMetrics", asked):
                found.update(dict.fromkeys(_texts(asked.names, asked.count), kind))
        return dict(sorted(found.items()))

    def counter(self, name: str) -> Counter | None:
        """Return what is known of a counter by its full name (`sm__warps_active.avg`); None where there is none."""
        asked = _Properties(host=self._host, name=name.encode())
        if _call(self._library, "cuptiProfilerHostGetMetricProperties", asked):
            return None
        kind = _TYPES[asked.type] if asked.type < len(_TYPES) else ""
        return Counter(name, _text(asked.description), _text(asked.unit), kind)

    def passes(self, names: Iterable[str]) -> int | None:
        """Return how often a kernel must run again for all these counters; None where they do not go together."""
        wanted = [name.encode() for name in names]
        host = _host(self._library, self.chip)  # what was added to one cannot be taken out again
        try:
            array = (ctypes.c_char_p * len(wanted))(*wanted)
            added = _AddMetrics(host=host, names=ctypes.cast(array, _Names), count=len(wanted))
            size = _ImageSize(host=host)
            if _call(self._library, "cuptiProfilerHostConfigAddMetrics", added):
                return None
            if _call(self._library, "cuptiProfilerHostGetConfigImageSize", size):
                return None
            buffer = ctypes.create_string_buffer(size.image_size)
            image = ctypes.cast(buffer, ctypes.c_void_p)
            filled = _Image(host=host, image_size=size.image_size, image=image)
            counted = _Passes(image_size=size.image_size, image=image)
            if _call(self._library, "cuptiProfilerHostGetConfigImage", filled):
                return None
            if _call(self._library, "cuptiProfilerHostGetNumOfPasses", counted):
                return None
            return int(counted.passes)
        finally:
            _call(self._library, "cuptiProfilerHostDeinitialize", _Deinitialize(host=host))


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

    Raises StrobeError where none is installed, or none that can be used.
    """
    there = [library] if library else installed()
    if not there:
        raise StrobeError("the catalogue of GPU metrics needs NVIDIA's libcupti, which is not installed", do=INSTALL)
    best = there[0]
    if not best.fit:
        what = f"CUPTI {best.version} cannot say which metrics there are: versions 12.6 to 13.1 can"
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
    asked = _Chips()
    if _call(library, "cuptiProfilerHostGetSupportedChips", asked):
        return []
    return _texts(asked.names, asked.count)


def open_catalogue(chip: str) -> Catalogue:
    """Return the catalogue of a chip.

    Raises UsageError where the library does not know the chip, StrobeError where there is no library.
    """
    library = load()
    known = chips(library)
    if chip not in known:
        raise UsageError(f"no chip '{chip}'", do=f"Chips: {' '.join(known)}")
    return Catalogue(library, chip)


def _host(library: ctypes.CDLL, chip: str) -> int:
    asked = _Initialize(profiler=_RANGE_PROFILER, chip=chip.encode())
    if result := _call(library, "cuptiProfilerHostInitialize", asked):
        raise UsageError(f"NVIDIA's library has no counters of {chip} (code {result})")
    return int(asked.host)


def _call(library: ctypes.CDLL, name: str, asked: ctypes.Structure) -> int:
    """Call a function of the library with its structure. Returns NVIDIA's code, 0 where it went well."""
    last = asked._fields_[-1][0]
    asked.size = getattr(type(asked), last).offset + getattr(type(asked), last).size  # without what pads it
    return int(getattr(library, name)(ctypes.byref(asked)))


def _texts(names: ctypes._Pointer[ctypes.c_char_p], count: int) -> list[str]:
    return list(_each(names, count))


def _each(names: ctypes._Pointer[ctypes.c_char_p], count: int) -> Iterator[str]:
    for at in range(count):
        yield _text(names[at])


def _text(value: bytes | ctypes.c_char_p | None) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
