"""Which libcupti a program could use, and of which version: by names of files and packages, without loading any.

Loading one is for the process that is recorded, or for a child of the launcher: some versions crash where the driver
is missing. Sources: layouts of NVIDIA's packages on PyPI (nvidia-cuda-cupti, nvidia-cuda-cupti-cu12, -cu11) and of the
CUDA toolkit (extras/CUPTI/lib64, version.json).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "STROBE_CUPTI"  # the library that the user has chosen
# Overflows the stack in cuptiGetVersion() where the driver is missing or unusable.
_CRASHING = "13.2."
# Of the driver, the first number of the first version that runs programs of this CUDA (CUDA compatibility tables).
_FIRST_DRIVERS = ((13, 580), (12, 525), (11, 450))
_TOOLKITS = Path("/usr/local")


@dataclass(frozen=True)
class Candidate:
    """A libcupti: where it is, and its version (`12.8.90`, or only `12`; None if unknown)."""

    path: Path
    version: str | None

    @property
    def major(self) -> int | None:
        """The version of CUDA that it belongs to: 11, 12, 13."""
        return int(self.version.partition(".")[0]) if self.version else None

    @property
    def may_crash(self) -> bool:
        """Whether this version is known to crash the process that asks for its version."""
        return (self.version or "").startswith(_CRASHING)


def candidates(
    site_packages: Iterable[Path], environment: Mapping[str, str], toolkits: Path = _TOOLKITS
) -> list[Candidate]:
    """Return every libcupti there is for an interpreter with these site-packages, the one to try first in front.

    STROBE_CUPTI, then packages of the interpreter, then the toolkit of CUDA_HOME or CUDA_PATH, then those in `toolkits`
    (/usr/local/cuda*, the newest first). Versions that may crash come last, unless a person has chosen one.
    """
    chosen = [_of_file(Path(environment[VARIABLE]))] if environment.get(VARIABLE) else []
    found = [each for folder in site_packages for each in _of_packages(Path(folder))]
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if environment.get(variable):
            found += _of_toolkit(Path(environment[variable]))
    for folder in sorted(toolkits.glob("cuda*"), key=_newest_first):
        found += _of_toolkit(folder)
    ordered = [*chosen, *sorted(found, key=lambda each: each.may_crash)]
    different = {os.path.realpath(each.path): each for each in reversed(ordered)}
    return [each for each in ordered if each.path.is_file() and different[os.path.realpath(each.path)] is each]


def cuda_of_driver(driver: str) -> int | None:
    """Return the newest CUDA (11, 12, 13) that a driver runs, by the driver's version `580.65.06`; None: unknown."""
    number = re.match(r"\d+", driver)
    return next((cuda for cuda, first in _FIRST_DRIVERS if number and int(number[0]) >= first), None)


def _of_packages(site_packages: Path) -> Iterator[Candidate]:
    for folder in sorted(site_packages.glob("nvidia/cu[0-9]*/lib"), reverse=True):
        for library in _libraries(folder):
            yield _in_package(library, site_packages, "nvidia_cuda_cupti")
    for library in _libraries(site_packages / "nvidia/cuda_cupti/lib"):
        yield _in_package(library, site_packages, f"nvidia_cuda_cupti_cu{_major(library)}")


def _in_package(library: Path, site_packages: Path, package: str) -> Candidate:
    """Return a library with the version of the package it came with, if that is for the same CUDA."""
    major = _major(library)
    for info in sorted(site_packages.glob(f"{package}-*.dist-info")):
        version = info.name.removeprefix(f"{package}-").removesuffix(".dist-info")
        if not major or version.partition(".")[0] == major:
            return Candidate(library, version)
    return Candidate(library, major or None)


def _of_toolkit(folder: Path) -> Iterator[Candidate]:
    for library in _libraries(folder / "extras/CUPTI/lib64"):
        yield Candidate(library, _version_of_toolkit(folder) or _major(library) or None)


def _of_file(path: Path) -> Candidate:
    """Return a library that the user names, with the version of the package or toolkit that it is in."""
    for place in path.absolute().parents:
        for known in (*_of_packages(place), *_of_toolkit(place)):
            if os.path.realpath(known.path) == os.path.realpath(path):
                return Candidate(path, known.version)
    return Candidate(path, _major(path) or None)


def _libraries(folder: Path) -> list[Path]:
    """Return the libraries of a folder, one for each CUDA (libcupti.so.12, libcupti.so.11.8), the newest first."""
    named = [path for path in folder.glob("libcupti.so.*") if _major(path)]
    return sorted(named, key=_newest_first) or sorted(folder.glob("libcupti.so"))


def _major(library: Path) -> str:
    """Return `12` for libcupti.so.12; empty for libcupti.so and for libcupti.so.2025.1.0, a version of another kind."""
    found = re.fullmatch(r"libcupti\.so\.(\d{1,2})(\.\d+)?", library.name)
    return found[1] if found else ""


def _version_of_toolkit(folder: Path) -> str:
    try:
        versions = json.loads((folder / "version.json").read_text(encoding="utf-8"))
        return re.sub(r"[^\d.]", "", str(versions["cuda_cupti"]["version"]))
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _newest_first(path: Path) -> list[int]:
    """A key to sort by: names without a number are links to the current one and come first."""
    return [-int(number) for number in re.findall(r"\d+", path.name)]
