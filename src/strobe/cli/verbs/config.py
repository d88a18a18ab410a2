"""`strobe config`: the recording options in effect in this folder, and the origin of each."""

from __future__ import annotations

import os
from collections.abc import Mapping

from strobe.cli.options import add_option, verbatim
from strobe.errors import UsageError
from strobe.model.option import Option
from strobe.model.terminal import talk
from strobe.model.verb import Verb
from strobe.record.options.all_options import OPTIONS, traced_adapters, unknown_variables
from strobe.record.options.recorder_options import GROUPS, Setting
from strobe.record.options.value_sources import project_file, settle, user_file

_DESCRIPTION = """\
Print the recording options that `strobe run` would use in this folder: the value and origin of each. The command
line has precedence, then the environment (STROBE_NAME), the project (strobe.toml, or [tool.strobe] in pyproject.toml,
here or above), the user ($XDG_CONFIG_HOME/strobe.toml, ~/.config/strobe.toml), and the preset.
"""


def run(words: list[str]) -> int:
    """Print the values and origins, as a table or as JSON."""
    parser = verbatim("config", _DESCRIPTION)
    parser.add_argument("names", nargs="*", metavar="NAME", help="Show only these options.")
    add_option(parser, Option("json", "Print JSON: by name, value, origin, default and meaning.", bool, False))
    arguments = parser.parse_args(words)
    if unknown := [name for name in arguments.names if name not in OPTIONS]:
        raise UsageError(f"'{unknown[0]}' is not an option", do=f"Options: {', '.join(OPTIONS)}.")
    try:
        settings = settle({}, os.environ, os.getcwd())
        adapters = traced_adapters(settings)
        files = {"project": project_file(os.getcwd()), "user": user_file(os.environ)}
    except ValueError as error:
        raise UsageError(str(error)) from error
    shown = arguments.names or list(OPTIONS)
    if arguments.json:
        import json

        rows = {
            name: {
                "value": _as_json(settings[name].text),
                "origin": settings[name].origin,
                "default": _as_json(OPTIONS[name].default_text),
                "group": OPTIONS[name].group,
                "meaning": OPTIONS[name].help,
            }
            for name in shown
        }
        print(json.dumps({"options": rows, "adapters": adapters, "files": files}, indent=2))
    else:
        print("\n".join(_lines(settings, shown)))
        if not arguments.names:
            print(f"adapters that record if they find anything\n  {', '.join(adapters)}")
    for name in unknown_variables(os.environ):
        talk(f"{name} in the environment is not an option of strobe")
    return 0


def _as_json(text: str) -> bool | int | str | None:
    """Return the text of a value as JSON has it: a number, true, false, or null where the option has no value."""
    if text.isascii() and text.isdigit():
        return int(text)
    return {"": None, "yes": True, "no": False}.get(text, text)


def _lines(settings: Mapping[str, Setting], shown: list[str]) -> list[str]:
    from strobe.present.aligned import aligned_rows

    rows = aligned_rows([(name, settings[name].text or "-", settings[name].origin) for name in shown])
    lines: list[str] = []
    for group, title in GROUPS.items():
        of_group = [f"  {row}" for name, row in zip(shown, rows, strict=True) if OPTIONS[name].group == group]
        lines += [title, *of_group] if of_group else []
    return lines


VERB = Verb("config", "Values of the recording options here, and the origin of each", run)
