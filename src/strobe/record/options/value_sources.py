"""Where the values of the options come from: command line, environment, project, user, preset, default.

Files are read before the measured program begins, never in the program.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from strobe.model.option import Option
from strobe.record.options.all_options import OPTIONS, checked, combined, given_in_environment, text_of
from strobe.record.options.filters import anchored, in_folder
from strobe.record.options.recorder_options import Setting


def settle(given: Mapping[str, str], environment: Mapping[str, str], folder: str) -> dict[str, Setting]:
    """Return the value of every option for a program that is started in `folder`.

    `given` is the command line: text by name. Raises ValueError with the place of a wrong value or an unknown
    name.
    """
    user = user_file(environment)
    return combined(
        [
            {name: checked(OPTIONS[name], text, "command line", f"--{name}") for name, text in given.items()},
            given_in_environment(environment),
            _of_file(project_file(folder)),
            _of_file(user if os.path.isfile(user) else ""),
        ]
    )


def user_file(environment: Mapping[str, str]) -> str:
    """Return the path of the user's own file, which need not exist; "" without a home."""
    home = environment.get("HOME", "")
    configuration = environment.get("XDG_CONFIG_HOME") or (os.path.join(home, ".config") if home else "")
    return os.path.join(configuration, "strobe.toml") if configuration else ""


def project_file(folder: str) -> str:
    """Return the nearest file with options of strobe in or above a folder, "" if there is none.

    That is strobe.toml, or a pyproject.toml with a table [tool.strobe]. Raises ValueError for a file that is not TOML.
    """
    here = os.path.abspath(folder)
    while True:
        own, shared = os.path.join(here, "strobe.toml"), os.path.join(here, "pyproject.toml")
        if os.path.isfile(own):
            return own
        if os.path.isfile(shared) and _table(shared) is not None:
            return shared
        above = os.path.dirname(here)
        if above == here:
            return ""
        here = above


def _table(path: str) -> dict[str, object] | None:
    """The table of strobe in a file; None for a pyproject.toml without one."""
    import tomllib

    shared = os.path.basename(path) == "pyproject.toml"
    try:
        with open(path, "rb") as stream:
            content = stream.read()
        if shared and b"strobe" not in content:
            return None
        whole = tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from None
    if not shared:
        return whole
    tool = whole.get("tool")
    table = tool.get("strobe") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ValueError(f"{path}: tool.strobe is not a table")
    return table


def _of_file(path: str) -> dict[str, Setting]:
    if not path:
        return {}
    found = {}
    for key, value in (_table(path) or {}).items():
        name = key.replace("_", "-")
        if name not in OPTIONS:
            raise ValueError(f"{path}: '{key}' is not an option. Options: {', '.join(OPTIONS)}.")
        value = _from_folder(OPTIONS[name], value, os.path.dirname(path))
        found[name] = checked(OPTIONS[name], value, path, f"{path}: {key}")
    return found


def _from_folder(option: Option, value: object, folder: str) -> object:
    """Let the paths of an option begin in a folder."""
    if not option.paths:
        return value
    try:
        text = text_of(option, value)
    except ValueError:
        return value  # not a value of the option
    parts = text.split(option.many) if option.many else [text]
    return option.many.join(
        anchored(part, folder) if option.many else in_folder(part, folder) for part in parts if part
    )
