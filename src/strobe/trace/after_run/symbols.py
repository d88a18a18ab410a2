"""Names, files and lines of C, C++ and Fortran functions, of callers of MPI and OpenSHMEM, of constructs of OpenACC and
of sampled call stacks, found after the run from the files that held them.

The recorder notes an address in a file (`0x1139` of `/usr/local/bin/solver`). `addr2line` (binutils) finds its name and
source line; without it the file's own table of symbols has the names. They are kept in `symbols.json` of the trace,
because the program may be built anew later.
"""

from __future__ import annotations

import json
import mmap
import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import numpy as np

from strobe.model.private_files import opener

FILE = "symbols.json"
MPI, COMPILER, OPENMP, PTHREAD, SHMEM, OPENACC = 7, 10, 11, 12, 13, 14  # model/kinds.py: paradigm
_OUTLINED = re.compile(r"\._omp_fn\.\d+|\.omp_outlined\S*")  # compilers make functions of parallel regions
_TIMEOUT_S = 120
# What gfortran makes of a procedure of a module; and, in files of Fortran, of one in another one, and of one outside.
_OF_MODULE = re.compile(r"__(\w+?)_MOD_(\w+)")
_ALONE = re.compile(r"(\w+?)(\.\d+|_)")
_FORTRAN = re.compile(r".*\.(f|for|ftn|fpp|f77|f90|f95|f03|f08)", re.IGNORECASE)
_OF_SYSTEM = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/")  # whose lines are not the user's
_SYMTAB, _DYNSYM, _NAMED = 2, 11, (1, 2, 10)  # of variables, functions, and functions chosen at start-up (IFUNC)
_SYMBOL = np.dtype("<u4,u1,u1,<u2,<u8,<u8")
_SYMBOL.names = ("name", "info", "other", "home", "value", "size")
# An address in a call stack: of a function that ran, of what is waited for (behind the function that waits, in
# brackets), or of a call (behind @).
_ADDRESS = re.compile(r"([(@])?(/[^\n]*?)\+(0x[0-9a-f]+)(?=$|\n|\))", re.MULTILINE)

Region = tuple[int, str, int, int, str, int, str]  # id, name, paradigm, role, file, line, module
Place = tuple[str, str, int]  # name, file, line
Address = tuple[str, str]  # path of a file, address in it
CallSites = dict[str, Address]  # by text in the `file` of a region ("exchange+0x1f")


def is_address(region: Region) -> bool:
    """Whether a region is an address in a file that has no name yet."""
    return region[2] == COMPILER and region[1].startswith("0x")


def resolve(
    folder: Path, functions: Set[Address], callers: Set[Address], variables: Set[Address] = frozenset()
) -> None:
    """Find the places of functions and of callers, and the names of variables, and keep them beside the trace.

    The name of a caller begins with the functions that were inlined there. Raises OSError if they cannot be written.
    """
    wanted: dict[str, set[str]] = {}
    for module, address in functions | callers | variables:
        wanted.setdefault(module, set()).add(address)
    if not wanted:
        return
    found: dict[str, Mapping[str, Place]] = dict(known_places(folder))
    for module, addresses in wanted.items():
        new = sorted(addresses - found.get(module, {}).keys(), key=lambda text: int(text, 16))
        if new:
            places = {
                at: (" < ".join([*map(_with_line, frames[:-1]), frames[-1][0]]), *frames[-1][1:])
                if (module, at) in callers
                else frames[-1]
                for at, frames in _places(module, new, {at for of, at in variables if of == module}).items()
            }
            found[module] = {**found.get(module, {}), **places}
    text = json.dumps(found, ensure_ascii=False)
    with open(folder / (FILE + ".tmp"), "w", encoding="utf-8", opener=opener) as file:
        file.write(text + "\n")
    (folder / (FILE + ".tmp")).replace(folder / FILE)


def known_places(folder: Path) -> Mapping[str, Mapping[str, Place]]:
    """Return the places of addresses that are known, by file and address; none if symbols.json is damaged."""
    path = folder / FILE
    try:
        facts = path.stat()
    except OSError:
        return {}
    return _read(path, facts.st_ino, facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=2)  # every process of a trace asks
def _read(path: Path, *_: int) -> Mapping[str, Mapping[str, Place]]:
    with suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
        read = json.loads(path.read_text(encoding="utf-8"))
        return {
            str(module): {str(at): (str(name), str(file), int(line)) for at, (name, file, line) in places.items()}
            for module, places in read.items()
        }
    return {}


def with_places(region: Region, places: Mapping[str, Mapping[str, Place]], sites: CallSites) -> Region:
    """Return a region with the name of its address (without one, it is made from its file), a call of MPI or
    OpenSHMEM or construct of OpenMP with the lines of its callers where they are known, a construct of OpenACC with its
    file and line."""
    number, address, paradigm, role, text, first_line, module = region
    if paradigm in (MPI, OPENMP, PTHREAD, SHMEM) and text:
        peers, separator, path = text.rpartition("; ")
        shown = (_shown(site, places, sites) for site in path.split(" < "))
        return number, address, paradigm, role, peers + separator + " < ".join(shown), first_line, module
    if paradigm == OPENACC and text in sites:
        object_file, at = sites[text]
        _, file, line = places.get(object_file, {}).get(at) or ("", "", 0)
        return (number, address, paradigm, role, file, line, module) if line else region
    if not is_address(region):
        return region
    name, file, line = places.get(module, {}).get(address) or ("", "", 0)
    short = module.rpartition("/")[2]
    return number, name or f"{short}+{address}", paradigm, role, file, line, short


def addresses_in(texts: Iterable[str], before: str | None) -> set[Address]:
    """Return the addresses in call stacks. before: `(` of variables, `@` of calls, None of functions."""
    found = (each for text in texts if "+0x" in text for each in _ADDRESS.finditer(text))
    return {(each[2], each[3]) for each in found if each[1] == before}


def with_names(texts: Sequence[str], places: Mapping[str, Mapping[str, Place]]) -> list[str]:
    """Return call stacks of native programs with `function (file:line)` for addresses; without line numbers, or of the
    system's libraries, with the library, if it is one; `solver+0x1139` where nothing is known."""

    def shown(found: re.Match[str]) -> str:
        before, module, address = found.groups(default="")
        short = module.rpartition("/")[2]
        name, file, line = places.get(module, {}).get(address) or (f"{short}+{address}", "", 0)
        if before == "(":
            return before + name
        if before and line:
            return _with_line((name, file, line))
        own = line and not module.startswith(_OF_SYSTEM)
        where = f"{file}:{line}" if own else short if ".so" in short else ""
        return f"{name} ({where})" if where else name

    return [_ADDRESS.sub(shown, text) if "+0x" in text else text for text in texts]


def _shown(site: str, places: Mapping[str, Mapping[str, Place]], sites: CallSites) -> str:
    module, address = sites.get(site, ("", ""))
    place = places.get(module, {}).get(address)
    return _with_line(place) if place and place[2] else site


def _with_line(place: Place) -> str:
    name, file, line = place
    name = _OUTLINED.sub("", name)
    return f"{name} ({file.rpartition('/')[2]}:{line})"


def _places(module: str, addresses: Sequence[str], variables: Set[str]) -> dict[str, list[Place]]:
    """Return the functions at each address, innermost first: those that were inlined there, then the one around; or
    the variable."""
    tool, code = shutil.which("addr2line"), [address for address in addresses if address not in variables]
    places = _addr2line(tool, module, code) if tool and code else {}
    # Without debug information, addr2line takes the nearest symbol before, however far: only the size of that tells.
    doubtful = [address for address in addresses if not any(file for _, file, _ in places.get(address, ()))]
    known = _symbols(module, doubtful) if doubtful else {}
    named = {address: places.get(address) or known[address] for address in doubtful if address in known}
    return {at: place for at, place in places.items() if at not in doubtful} | named


def _addr2line(tool: str, module: str, addresses: Sequence[str]) -> dict[str, list[Place]]:
    try:
        done = subprocess.run(
            [tool, "-a", "-i", "-f", "-C", "-e", module],
            input="\n".join(addresses) + "\n",
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    answers: list[list[str]] = []
    for line in done.stdout.splitlines():
        if line.startswith("0x"):  # the address, before its functions
            answers.append([])
        elif answers:
            answers[-1].append(line)
    if done.returncode or len(answers) != len(addresses):
        return {}
    places: dict[str, list[Place]] = {}
    for address, lines in zip(addresses, answers, strict=True):
        for name, where in zip(lines[::2], lines[1::2], strict=False):
            file, _, number = where.partition(" (discriminator")[0].rpartition(":")
            if not name.startswith("??"):
                known_file = not file.startswith("??")
                line_no = int(number) if known_file and number.isdigit() else 0
                place = of_fortran(name, file), file if known_file else "", line_no
                places.setdefault(address, []).append(place)
    return places


def _symbols(module: str, addresses: Sequence[str]) -> dict[str, list[Place]]:
    """Names from the symbol tables of an ELF file of 64 bits, little-endian; mangled names are shown readably."""
    try:
        with open(module, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return dict(_named(data, addresses))
    except (OSError, struct.error, IndexError, ValueError):
        return {}


def _named(data: mmap.mmap, addresses: Sequence[str]) -> Iterator[tuple[str, list[Place]]]:
    """Yield the addresses that lie inside of a function or variable, with its name; of several the last one."""
    if data[:6] != b"\x7fELF\x02\x01":
        return
    wanted = np.array([int(address, 16) for address in addresses], dtype=np.uint64)
    (offset,), (entry, count) = struct.unpack_from("<Q", data, 0x28), struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + entry * i) for i in range(count)]
    for section in sections:
        if section[1] not in (_SYMTAB, _DYNSYM):
            continue
        texts = sections[section[6]]
        # A copy: views of a mapping would keep it open.
        symbols = np.frombuffer(data[section[4] : section[4] + section[5] // 24 * 24], dtype=_SYMBOL)
        symbols = symbols[np.isin(symbols["info"] & 15, _NAMED) & (symbols["home"] != 0)]
        symbols = symbols[np.lexsort((symbols["size"], symbols["value"]))]
        found = np.searchsorted(symbols["value"], wanted, side="right") - 1
        for address, value, at in zip(addresses, wanted.tolist(), found.tolist(), strict=True):
            if at >= 0 and value < int(symbols["value"][at]) + max(1, int(symbols["size"][at])):
                begin = texts[4] + int(symbols["name"][at])
                name = data[begin : data.find(b"\0", begin)].decode("utf-8", "replace")
                yield address, [(readable(name), "", 0)]


def of_fortran(name: str, file: str) -> str:
    """Return the name of a procedure of gfortran's (`module::procedure`) as the source has it; others as they are."""
    if parts := _OF_MODULE.fullmatch(name):
        return "::".join(parts.groups())
    alone = _ALONE.fullmatch(name) if _FORTRAN.fullmatch(file) and name != "MAIN__" else None
    return alone[1] if alone else name


def readable(name: str) -> str:
    """Return the C++ name behind a mangled one, as the C++ library of this machine has it; others as they are."""
    if not name.startswith("_Z"):
        return of_fortran(name, "")
    import ctypes

    try:
        demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except (OSError, AttributeError):
        return name
    demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    text = demangle(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    shown = ctypes.cast(text, ctypes.c_char_p).value or b""
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free(text)
    return shown.decode("utf-8", "replace")
