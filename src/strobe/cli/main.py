"""`strobe`: picks the verb. Each file in `verbs/` and each analysis is one."""

from __future__ import annotations

import os
import sys

from strobe import registry
from strobe.cli import installed, lean_imports
from strobe.errors import StrobeError, UsageError
from strobe.model import exit_codes
from strobe.model.private_files import folder_mode
from strobe.model.terminal import for_people, talk

EXAMPLES = """\
strobe records a program, finds the loop that dominates it, and shows where the time goes.

  strobe run train.py --epochs 1       record an unchanged program; summary at the end
  strobe view                          open the last run in the browser
  strobe operators --top 10            which operators take the time (of the last run)
  strobe summary train.strobe --json   any answer as data: --json, --csv, --format md
"""
# The order in which people meet the verbs; the others follow by name.
_ORDER = ("summary", "steps", "operators", "profile", "sql", "info", "view")
# Verbs that start other programs, which inherit the environment.
_STARTS_PROGRAMS = ("run", "metrics", "cc")
# Verbs whose files hold what a trace holds.
_WRITES_TRACES = ("import", "cut", "generate", "export")


def entry_point() -> None:
    """Run the command line and leave with its exit code."""
    lean_imports.without_pandas()
    sys.exit(main(sys.argv[1:]))


def main(words: list[str]) -> int:
    """Run one command; return its exit code (`model/exit_codes.py`).

    What the user can mend is one sentence on stderr. Only a bug in strobe prints a traceback.
    """
    with for_people():
        return _main(words)


def _main(words: list[str]) -> int:
    try:
        code = _dispatch(words)
        sys.stdout.flush()
        return code
    except StrobeError as error:
        talk(str(error))
        return error.exit_code
    except BrokenPipeError:  # the reader of the output has left (`strobe ... | head`): nothing is wrong
        _drop_output()
        return exit_codes.READER_LEFT
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and (missing := installed.missing_for_reading()):
            talk(str(installed.cannot_read(missing)))
            return exit_codes.FAILED
        if sentence := _system_message(error):
            talk(sentence)
            _drop_output()
            return exit_codes.NOT_RECORDED if words[:1] == ["run"] else exit_codes.FAILED
        import traceback

        traceback.print_exc()
        talk("this is a bug in strobe; please report it with the lines above")
        return exit_codes.INTERNAL


def _system_message(error: Exception) -> str:
    """Return what the operating system refused, as a sentence; "" for errors of other kinds."""
    try:
        os.getcwd()
    except FileNotFoundError:  # 3.13.0 raises SystemError for a module's missing attribute there
        return "the current folder has been removed: change into another one"
    if not isinstance(error, OSError) or not error.strerror:
        return ""
    where = f"'{error.filename}'" if error.filename else "the output"
    return f"cannot read or write {where}: {error.strerror}"


def _drop_output() -> None:
    """Send what is still buffered for stdout nowhere, so that Python does not fail on it again at exit."""
    from contextlib import suppress

    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(short_help())
        return exit_codes.OK
    if words[0] in ("-H", "--help-all"):
        print(long_help())
        return exit_codes.OK
    if words[0] in ("-V", "--version"):
        from strobe import __version__

        print(f"strobe {__version__}")
        return exit_codes.OK
    verbs, analyses = registry.names("cli.verbs"), registry.names("analyses")
    first, rest = words[0], words[1:]
    if _module(first) not in {*verbs, *analyses}:
        if (missing := installed.missing_for_reading()) and not first.endswith(".py"):
            raise installed.cannot_read(missing)
        if not _names_a_trace(first):
            near = _did_you_mean(first, [spelled(name) for name in (*verbs, *analyses)])
            raise UsageError(f"'{first}' is neither a verb nor a trace{near}", do="strobe --help")
        # `strobe FILE` is its summary, and `strobe FILE VERB ...` reads as well as `strobe VERB FILE ...`.
        if first.endswith(".py") and os.path.isfile(first):
            raise UsageError(f"'{first}' is a Python script, not a trace", do=f"To record it: strobe run {first}")
        verb = rest.pop(0) if rest and _module(rest[0]) in {*verbs, *analyses} - {"run"} else "summary"
        first, rest = verb, [first, *rest]
    name = _module(first)
    if name not in _STARTS_PROGRAMS:
        lean_imports.without_blas_threads()
    if name in verbs:
        return _run_verb(name, rest)
    from strobe.cli import analysis_verbs
    from strobe.model.plugins import Analysis

    analysis = registry.load("analyses", name)
    assert isinstance(analysis, Analysis)
    return analysis_verbs.run(spelled(name), analysis, rest)


def _run_verb(name: str, words: list[str]) -> int:
    from strobe.model.verb import Verb

    plugin = registry.load("cli.verbs", name)
    assert isinstance(plugin, Verb)
    if name not in _WRITES_TRACES or folder_mode() != 0o700:
        return plugin.run(words)
    before = os.umask(0o077)
    try:
        return plugin.run(words)
    finally:
        os.umask(before)


def spelled(name: str) -> str:
    """Return the verb of a plug-in: `gpu-trace` for `gpu_trace.py`."""
    return name.replace("_", "-")


def _module(verb: str) -> str:
    """Return the plug-in of a verb; the spelling of Python, `gpu_trace`, is a verb, too."""
    return verb.replace("-", "_")


def short_help() -> str:
    """Return at most 24 lines: examples first, then the verbs. Imports no verb."""
    looking = {spelled(name) for name in (*registry.names("cli.verbs"), *registry.names("analyses"))} - {
        "run",
        "config",
    }
    ordered = [verb for verb in _ORDER if verb in looking] + sorted(looking - {*_ORDER})
    return f"""{EXAMPLES}
record   run [options] SCRIPT [arguments]   also: -m MODULE, -c CODE, -- COMMAND
look     {_wrapped(ordered)}

A run is a path, last, or last~1. `strobe FILE` is `strobe summary FILE`.
Readers take --json --csv --format --where --sort --top --columns -o. Data goes to stdout, messages to stderr.
{exit_codes.SHORT}
`run` ends as the program ended; 125 if recording could not start, 126 or 127 if the program could not.
More: strobe VERB --help, strobe --help-all"""


def _wrapped(verbs: list[str]) -> str:
    """Return the verbs in lines that fit a terminal; without textwrap, which imports regular expressions."""
    lines = [""]
    for verb in verbs:
        if len(lines[-1]) + len(verb) > 100:
            lines.append("")
        lines[-1] += f"{verb} "
    return "\n         ".join(line.rstrip() for line in lines)


def long_help() -> str:
    """Return every verb with the question that it answers."""
    from strobe.model.plugins import Analysis
    from strobe.model.verb import Verb

    lines = [short_help(), ""]
    for kind in ("cli.verbs", "analyses"):
        for name in registry.names(kind):
            plugin = registry.load(kind, name)
            assert isinstance(plugin, (Analysis, Verb))
            lines.append(f"{spelled(name):12} {plugin.question if isinstance(plugin, Analysis) else plugin.help}")
    return "\n".join(lines)


def _names_a_trace(word: str) -> bool:
    return (
        word.partition("~")[0] == "last"
        or os.path.exists(word)
        or os.path.isdir(word + ".strobe")
        or "/" in word
        or "." in word
    )


def _did_you_mean(word: str, known: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, known, n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


if __name__ == "__main__":
    entry_point()
