"""`strobe cc -- make`: build C, C++ and Fortran programs so that `strobe run` records their functions."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

from strobe.cli.options import add_options, verbatim
from strobe.errors import RecordError, UsageError
from strobe.model.cache_folder import cache_folder, make_cache_folder
from strobe.model.option import Option
from strobe.model.verb import Verb
from strobe.record.options.filters import filter_file

_DESCRIPTION = """\
Run a build with compilers that put a hook of the recorder into every function of C, C++ and Fortran
(-finstrument-functions -g).
The programs run as before, with or without strobe; `strobe run -- ./program` records their functions.
"""
_EPILOG = """\
examples:
  strobe cc -- make                             strobe cc -- cmake -B build
  strobe cc gcc -O2 -o solver solver.c          strobe cc --exclude-file /usr/include -- pip install .
  strobe cc --filter solver.filter -- make      strobe filter solver.strobe -o solver.filter
  gcc mine.c $(strobe cc --flags)               for programs that call functions of strobe.h
"""
_OPTIONS = (
    Option(
        "exclude_file",
        "Put no hooks into functions of files whose path contains PART. Can be repeated.",
        many=",",
        metavar="PART",
    ),
    Option(
        "exclude_function",
        "Put no hooks into functions whose name contains PART. Can be repeated.",
        many=",",
        metavar="PART",
    ),
    Option(
        "filter",
        "Put no hooks into functions that this Score-P filter file excludes. Compiles each file twice.",
        metavar="FILE",
    ),
    Option("flags", "Print the compiler flags for a program that includes strobe.h.", bool, False),
)
_WITH_VALUE = ("--exclude-file", "--exclude-function", "--filter")
# The environment variable of build tools for each compiler.
COMPILERS = {
    "cc": "CC",
    "gcc": "CC",
    "clang": "CC",
    "c++": "CXX",
    "g++": "CXX",
    "clang++": "CXX",
    "gfortran": "FC",
}
_WRAPPER = """\
#!/bin/sh
# Made by `strobe cc`: the compiler, with the hooks of strobe.
link=yes
for word do
  case "$word" in
    -c|-S|-E|-M|-MM|-fsyntax-only|--version|-dumpversion|-dumpmachine|-dumpspecs|-print-*|--print-*|-\\#\\#\\#) link= ;;
    -v|--help|--help=*) [ $# -eq 1 ] && link= ;;
  esac
done
if [ -n "$link" ] && [ $# -gt 0 ]; then
  exec {before} {real} {flags} "$@" -x none {archive} -ldl
fi
exec {before} {real} {flags} "$@"
"""


def run(words: list[str]) -> int:
    """Parse the command line; replace this process by the build, or print flags."""
    at = next((i for i, word in enumerate(words) if word == "--" or not _is_option(words, i)), len(words))
    reader = verbatim("cc", _DESCRIPTION, usage="strobe cc [options] COMMAND [arguments]", epilog=_EPILOG)
    add_options(reader, _OPTIONS)
    options, command = reader.parse_args(words[:at]), words[at:]
    if command[:1] == ["--"]:
        command = command[1:]
    if options.flags:
        print(flags())
        return 0
    if not command:
        raise UsageError("no build command given", do="strobe cc -- make")
    lists = (("file", options.exclude_file), ("function", options.exclude_function))
    left_out = [f"-finstrument-functions-exclude-{kind}-list={','.join(each)}" for kind, each in lists if each]
    folder = wrappers(left_out, _filtering(options.filter))
    environment = {**os.environ, "PATH": os.pathsep.join([folder, os.environ.get("PATH", os.defpath)])}
    for name, variable in COMPILERS.items():
        if name in ("cc", "c++") and os.path.exists(os.path.join(folder, name)):
            environment[variable] = os.path.join(folder, name)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        known = 126 if isinstance(error, PermissionError) else 127
        raise RecordError(f"cannot run '{command[0]}': {error.strerror}", exit_code=known) from error


def _filtering(path: str | None) -> str:
    """Return what runs a compiler so that functions of a filter are left out. Raises UsageError if it is not one."""
    if not path:
        return ""
    try:
        filter_file(path)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return shlex.join([sys.executable, "-m", "strobe.cli.compile_filter", os.path.abspath(path)])


def _is_option(words: list[str], at: int) -> bool:
    """Return whether a word is an option of strobe or the value of one."""
    return words[at].startswith("-") or (at > 0 and words[at - 1] in _WITH_VALUE)


def _folders() -> tuple[str, str]:
    """Return the folders of strobe.h and of the libraries."""
    from strobe.record.launch.run_program import library_folder

    lib = library_folder()
    return os.path.join(os.path.dirname(lib), "include"), lib


def flags() -> str:
    """Return the flags of a compiler for a program that includes strobe.h."""
    include, lib = _folders()
    return shlex.join([f"-I{include}", f"-L{lib}", "-lstrobe", f"-Wl,-rpath,{lib}"])


def wrappers(more: list[str], before: str = "") -> str:
    """Return a folder with a wrapper for each installed compiler. It is kept, because CMake stores its path.

    `before`: what runs the compiler, if not the shell.

    Raises RecordError if no compiler is installed, or if the folder cannot be written.
    """
    import hashlib

    _, lib = _folders()
    archive = shlex.quote(os.path.join(lib, "libstrobe_functions.a"))
    added = shlex.join(["-finstrument-functions", "-fno-omit-frame-pointer", "-g", *more])
    made: dict[str, str] = {}
    for name, variable in COMPILERS.items():
        words = shlex.split(os.environ.get(variable, "")) if name in ("cc", "c++") else []
        words = words or [name]
        if os.sep not in words[0]:  # looked for by the wrapper it would be the wrapper itself
            words[0] = _real(words[0])
        if words[0]:
            made[name] = _WRAPPER.format(before=before, real=shlex.join(words), flags=added, archive=archive)
    if not made:
        raise RecordError("no compiler of C, C++ or Fortran is installed", do="Install gcc or clang.", exit_code=127)
    digest = hashlib.sha256(repr(sorted(made.items())).encode()).hexdigest()[:16]
    folder = os.path.join(cache_folder(), f"cc-{digest}")
    try:
        make_cache_folder(os.path.basename(folder))
        for name, text in made.items():
            path = os.path.join(folder, name)
            with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as stream:
                stream.write(text)
            os.chmod(f"{path}.{os.getpid()}", 0o755)
            os.replace(f"{path}.{os.getpid()}", path)
    except OSError as error:
        do = "Name another folder in STROBE_CACHE."
        raise RecordError(f"cannot write into '{folder}': {error.strerror}", do=do, exit_code=126) from error
    return folder


def _real(name: str) -> str:
    """Return the path of a compiler, never of one of our wrappers (a build in a build); empty if there is none."""
    path = os.pathsep.join(
        folder
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if not os.path.basename(folder).startswith("cc-") or os.path.dirname(folder) != cache_folder()
    )
    return shutil.which(name, path=path) or ""


VERB = Verb("cc", "Build a C, C++ or Fortran program so that its functions can be recorded", run)
