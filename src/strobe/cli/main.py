"""`strobe`: picks the verb. Verbs are the files of this folder and all analyses."""

from __future__ import annotations

import os
import sys

from strobe import registry
from strobe.errors import StrobeError, UsageError

EXAMPLES = """\
strobe records a program, finds the loop that dominates it, and shows where the time goes.

  strobe run train.py --epochs 1       record an unchanged program; summary at the end
  strobe view                          open the last run in the browser
  strobe operators --top 10            which operators take the time (of the last run)
  strobe summary train.strobe --json   any answer as data: --json, --csv, --format md
"""
# The order in which people meet the verbs; what is not listed here comes behind, by name.
_ORDER = ("summary", "steps", "operators", "profile", "sql", "info", "view")


class _PandasLater:
    """Says no to the first two imports of pandas: those are pyarrow's, of its Python and of its C++ part, which only
    want to know whether their first array is one of pandas, and wait a second for the answer. Whoever needs pandas asks
    again, and gets it.
    """

    def __init__(self) -> None:
        self._times = 2

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            self._times -= 1
            if not self._times:
                sys.meta_path.remove(self)
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")


def entry_point() -> None:
    """Run the command line and leave with its exit code."""
    sys.meta_path.insert(0, _PandasLater())
    sys.exit(main(sys.argv[1:]))


def main(words: list[str]) -> int:
    """Run one command; return its exit code. The user's mistakes are one sentence on stderr, never a traceback."""
    try:
        code = _dispatch(words)
        sys.stdout.flush()
        return code
    except StrobeError as error:
        print(f"strobe: {error}", file=sys.stderr)
        return error.exit_code
    except (FileNotFoundError, SystemError):  # 3.13.0 raises SystemError for a module's missing attribute there
        try:
            os.getcwd()
        except FileNotFoundError:
            print("strobe: the folder that you are in has been removed: change into another one", file=sys.stderr)
            return StrobeError.exit_code
        raise
    except BrokenPipeError:
        # The reader of our output has left (`strobe ... | head`): nothing is wrong, and Python must not complain at
        # exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(short_help())
        return 0
    if words[0] in ("-H", "--help-all"):
        print(long_help())
        return 0
    if words[0] in ("-V", "--version"):
        from strobe import __version__

        print(f"strobe {__version__}")
        return 0
    verbs, analyses = registry.names("cli"), registry.names("analyses")
    first, rest = words[0], words[1:]
    if first not in verbs and first not in analyses:
        if not _names_a_trace(first):
            raise UsageError(
                f"no verb or trace '{first}'{_did_you_mean(first, [*verbs, *analyses])}", do="strobe --help"
            )
        # `strobe FILE` is its summary, and `strobe FILE VERB ...` reads as well as `strobe VERB FILE ...`.
        if first.endswith(".py") and os.path.isfile(first):
            raise UsageError(f"'{first}' is a Python script, no trace", do=f"To record it: strobe run {first}")
        verb = rest.pop(0) if rest and rest[0] in {*verbs, *analyses} - {"run"} else "summary"
        first, rest = verb, [first, *rest]
    if first in verbs:
        from strobe.model.verb import Verb

        plugin = registry.load("cli", first)
        assert isinstance(plugin, Verb)
        return plugin.run(rest)
    from strobe.cli.options import answer
    from strobe.model.plugins import Analysis

    analysis = registry.load("analyses", first)
    assert isinstance(analysis, Analysis)
    return answer(first, analysis, rest)


def short_help() -> str:
    """Return at most 24 lines: examples first, then the verbs. Imports no verb."""
    looking = {*registry.names("cli"), *registry.names("analyses")} - {"run", "config"}
    ordered = [verb for verb in _ORDER if verb in looking] + sorted(looking - {*_ORDER})
    return f"""{EXAMPLES}
record   run [options] SCRIPT [arguments]   also: -m MODULE, -c CODE, -- COMMAND
look     {_wrapped(ordered)}

Names of runs: a path, last, last~1. `strobe FILE` is `strobe summary FILE`.
Readers take --json --csv --format --where --sort --top --columns -o; stdout is data, stderr is talk.
Exit codes of readers: 0 ok, 1 finding, 2 usage, 3 inconclusive, 4 unreadable input, 5 partial.
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
    for kind in ("cli", "analyses"):
        for name in registry.names(kind):
            plugin = registry.load(kind, name)
            assert isinstance(plugin, (Analysis, Verb))
            lines.append(f"{name:12} {plugin.question if isinstance(plugin, Analysis) else plugin.help}")
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
