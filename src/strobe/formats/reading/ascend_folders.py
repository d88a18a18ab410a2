"""Which files in the folders of Ascend profilers repeat others, so that nothing is opened twice.

NAME_ascend_pt/  (MindSpore: NAME_ascend_ms)
    ASCEND_PROFILER_OUTPUT/  what was made of FRAMEWORK and PROF_*
    FRAMEWORK/
    profiler_info_RANK.json
    PROF_*/
        device_*/, host/     what msprof recorded; older ones export into timeline/ and summary/ there
        mindstudio_profiler_output/
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable
from pathlib import PurePath

_MADE = "ASCEND_PROFILER_OUTPUT"
_SOURCES = re.compile(r"PROF_.*|FRAMEWORK")
_FIXED = ("trace_view.json", "kernel_details.csv", "op_statistic.csv", "step_trace_time.csv")
_EXPORTED = ("msprof_{}.json", "op_summary_{}.csv", "op_statistic_{}.csv")
_OF_ITERATION = re.compile(r".+?_(\d+_\d+_\d+)\.(?:json|csv)")


def repeated(files: Iterable[PurePath]) -> set[PurePath]:
    """Return those of some files that others repeat, or that are read together with others."""
    names: dict[PurePath, set[str]] = {}
    for file in files:
        names.setdefault(file.parent, set()).add(file.name)
    return {folder / name for folder, inside in names.items() for name in inside if _is_repeated(folder, name, names)}


def together(name: str, names: Collection[str]) -> list[str]:
    """Return those of the names in a folder that belong to the same recording as a file: timeline, tasks, sums.

    What msprof exports is named by the second. So all of it belongs together if there is one file of each kind.
    """
    by_kind = {kind: set(fnmatch.filter(names, kind.format("*"))) for kind in _EXPORTED}
    exported = [each for found in by_kind.values() for each in sorted(found)]
    if any(len(found) > 1 for found in by_kind.values()):
        begin, _, end = next((kind.partition("{}") for kind, found in by_kind.items() if name in found), ("", "", ""))
        when = name.removeprefix(begin).removesuffix(end)
        exported = [each for kind in _EXPORTED if begin and (each := kind.format(when)) in names]
    return [each for each in (*(fixed for fixed in _FIXED if fixed in names), *exported) if each != name]


def _is_repeated(folder: PurePath, name: str, names: dict[PurePath, set[str]]) -> bool:
    for above in (folder, *folder.parents):
        if _SOURCES.fullmatch(above.name) and names.get(above.parent / _MADE):
            return True
        if above.name == "mindstudio_profiler_output" and fnmatch.filter(names.get(above.parent, ()), "msprof_*.db"):
            return True
    if fnmatch.fnmatch(name, "msprof_*.json"):
        return any(each.startswith("op_summary_") for each in together(name, names[folder]))
    if folder.name in ("timeline", "summary"):
        iteration = _OF_ITERATION.fullmatch(name)
        whole = names.get(folder.parent / "timeline", set())
        return iteration is not None and f"msprof_{iteration[1]}.json" in whole and not name.startswith("msprof_")
    return False
