"""`strobe config`: the options of recording as they count in this folder, and who said each."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from strobe.cli.options import verbatim
from strobe.errors import UsageError
from strobe.model.verb import Verb
from strobe.record.option_layers import project_file, settle, user_file
from strobe.record.options import GROUPS, OPTIONS, Setting, traced_adapters, unknown_variables

_DESCRIPTION = """\
The options of recording as `strobe run` would find them in this folder: value and origin of each.
The command line counts first, then the environment (STROBE_NAME), the project (strobe.toml, or [tool.strobe] in
pyproject.toml, here or above), the user ($XDG_CONFIG_HOME/strobe.toml, ~/.config/strobe.toml), the preset.
"""


def run(words: list[str]) -> int:
    """Print the values and origins, as a table or as JSON."""
    parser = verbatim("config", _DESCRIPTION)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these options")
    parser.add_argument("--json", action="store_true", help="as JSON: by name, value, origin, default and meaning")
    arguments = parser.parse_args(words)
    if unknown := [name for name in arguments.names if name not in OPTIONS]:
        raise UsageError(f"there is no option '{unknown[0]}'", do=f"There are: {', '.join(OPTIONS)}.")
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
                "value": settings[name].text,
                "origin": settings[name].origin,
                "default": OPTIONS[name].default,
                "group": OPTIONS[name].group,
                "meaning": OPTIONS[name].help,
            }
            for name in shown
        }
        print(json.dumps({"options": rows, "adapters": adapters, "files": files}, indent=2))
    else:
        print("\n".join(_lines(settings, shown)))
        if not arguments.names:
            print(f"these adapters record, where they find something\n  {', '.join(adapters)}")
    for name in unknown_variables(os.environ):
        print(f"strobe: {name} in the environment is no option of strobe", file=sys.stderr)
    return 0


def _lines(settings: Mapping[str, Setting], shown: list[str]) -> list[str]:
    rows = [(name, settings[name].text or "-", settings[name].origin) for name in shown]
    wide = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = []
    for group, title in GROUPS.items():
        of_group = [row for row in rows if OPTIONS[row[0]].group == group]
        lines += [title] if of_group else []
        lines += [f"  {name:<{wide[0]}}  {text:<{wide[1]}}  {origin}" for name, text, origin in of_group]
    return lines


VERB = Verb("config", "Values of the options of recording here, and where each comes from", run)
