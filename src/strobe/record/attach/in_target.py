"""What the program runs when it is attached to: finds strobe for its Python, and begins to record.

The text of this file, with a call of `_begin` behind it, is the script that the main thread of the program executes
between two of its instructions, in a namespace of its own. So it imports nothing that could be missing, and nothing
that it raises reaches the program. Modules are loaded without the import system until tools of the program
(sys.settrace, sys.setprofile, sys.monitoring) cannot see it any more.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from typing import Any


def _begin(
    script: str,
    packages: list[str],
    cores: list[str],
    version: str,
    answer: str,
    session: str,
    steps: int,
    for_ns: int,
    rank: tuple[int, int] | None,
) -> None:
    """Load strobe, and begin a window. The file `script` is removed, as a sign that it runs.

    `packages` are the folders of a strobe that fits, `cores` the files of its core; both empty: strobe is looked for
    where the program imports from. `version` is what it must be. Then a file `answer` is there, which has the reason if
    nothing is recorded.
    """
    import posix
    import sys

    core, why = None, ""
    attached: Any = None
    try:
        posix.unlink(script)
        if sys.is_finalizing():
            raise RuntimeError("it is about to end")
        own = "strobe" in sys.modules  # the program has imported it itself
        if not own and "_strobe_attached" in sys.modules:  # recorded before: record/program/attached.py
            sys.modules.update(vars(sys.modules["_strobe_attached"])["recorder"])
        strobe = sys.modules.get("strobe")
        if strobe is not None:
            packages, cores = list(strobe.__path__), []
        elif not packages:
            packages = _packages()
        core = sys.modules.get("strobe._native") or _core(packages, cores)
        core.hide_from_tools(True)
        if strobe is None:
            strobe = _package(packages)
        vars(strobe)["_native"] = core
        globals()["__file__"] = strobe.__file__  # this code is the recorder's
        if strobe.__version__ != version:
            raise RuntimeError(f"it has strobe {strobe.__version__}, and this is strobe {version}")
        from strobe.record.program import attached as recording

        attached = recording
        attached.begin(session, steps, for_ns, rank, keeps_modules=own)
    except BaseException as error:
        why = str(getattr(error, "strerror", None) or error) or type(error).__name__
    finally:
        _answer(answer, why)
        try:
            if attached is not None and not why:
                attached.lasts(for_ns)
        finally:
            if core is not None and hasattr(core, "hide_from_tools"):
                core.hide_from_tools(False)


def _answer(path: str, text: str) -> None:
    """Write a file that is whole once it is there. Where the folder is gone, nobody waits."""
    import _io
    import posix

    try:
        with _io.open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        posix.rename(path + ".new", path)
    except OSError:
        pass


def _packages() -> list[str]:
    """Return the folders of the strobe that the program would import."""
    import sys

    for finder in sys.meta_path:
        spec = finder.find_spec("strobe", None) if hasattr(finder, "find_spec") else None
        if spec is not None:
            return list(spec.submodule_search_locations or ())
    return []


def _exists(file: str) -> bool:
    import posix

    try:
        posix.stat(file)
    except OSError:
        return False
    return True


def _core(packages: list[str], cores: list[str]) -> Any:
    """Load strobe._native."""
    import _imp
    import sys

    names = cores or [f"{folder}/_native{suffix}" for folder in packages for suffix in _imp.extension_suffixes()]
    for file in filter(_exists, names):
        make: Any = type(sys.implementation)  # a plain namespace
        core: Any = _imp.create_dynamic(make(name="strobe._native", origin=file))
        _imp.exec_dynamic(core)
        if not hasattr(core, "hide_from_tools"):
            raise RuntimeError("the strobe that is installed for its Python is of another version")
        core.__file__ = file
        sys.modules["strobe._native"] = core
        return core
    raise RuntimeError(f"strobe is missing for its Python {sys.version.split()[0]}, {sys.executable}")


def _package(packages: list[str]) -> Any:
    """Load strobe itself."""
    import _frozen_importlib
    import _frozen_importlib_external

    file = next(filter(_exists, [f"{folder}/__init__.py" for folder in packages]))
    locate = _frozen_importlib_external.spec_from_file_location
    load: Any = vars(_frozen_importlib)["_load"]
    return load(locate("strobe", file, submodule_search_locations=packages))
