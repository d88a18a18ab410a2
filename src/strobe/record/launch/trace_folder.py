"""The trace folder as the recorder makes it: its name, its manifest job.json at the start and at the end."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from strobe.errors import RecordError, UsageError
from strobe.model import manifest
from strobe.model.private_files import folder_mode, opener
from strobe.record.command_line import without_secrets
from strobe.record.launch.machine import cpu_model, driver_version
from strobe.record.options.session_settings import json_text

SUFFIX = ".strobe"
FORMAT_VERSION = 1


def default_name(command: Sequence[str]) -> str:
    """`train.strobe` for `python train.py`, `package.module.strobe` for `-m`, the program's name for other commands."""
    words = list(command)
    name = os.path.basename(words[0]) if words else "run"
    if name.startswith("python") and len(words) > 1:
        if words[1] == "-m" and len(words) > 2:
            name = words[2]
        elif words[1] == "-c":
            name = "code"
        else:
            name = os.path.basename(words[1])
    return name.removesuffix(".py").removesuffix(".ipynb") + SUFFIX


def expand(pattern: str, command: Sequence[str]) -> str:
    """Fill in %n (name of the program), %p (our process id), %t (time), %% (a percent sign). Raises UsageError."""
    values = {
        "n": default_name(command).removesuffix(SUFFIX),
        "p": str(os.getpid()),
        "t": time.strftime("%Y%m%d-%H%M%S"),
        "\0": "%",
    }
    text, *parts = pattern.replace("%%", "%\0").split("%")
    for part in parts:
        if part[:1] not in values:
            raise UsageError(
                f"'%{part[:1]}' means nothing in '{pattern}'", do="There are %n %p %t, and %% for a percent sign."
            )
        text += values[part[:1]] + part[1:]
    return text


def job_of(folder: str) -> str | None:
    """Return the name of the parallel job whose ranks may still join a trace, or ""; None while it has no manifest."""
    try:
        with open(os.path.join(folder, "job.json"), encoding="utf-8") as stream:
            text = stream.read()
    except OSError:
        return None
    import json

    try:
        job = json.loads(text)
        return "" if "ended" in job else str(job["settings"].get("job", ""))
    except (ValueError, KeyError, AttributeError):
        return ""


def create(
    path: str | os.PathLike[str],
    command: Sequence[str],
    settings: Mapping[str, object],
    access: str = "",
    *,
    working_directory: str = "",
) -> str:
    """Make a new trace folder and its manifest; returns its absolute path. An existing trace is never overwritten:
    `-2`, `-3`, ... is put in. `working_directory` is that of the program, by default ours.

    `access`: who may read it, private or umask. Raises RecordError when the folder cannot be made.
    """
    wanted = os.path.abspath(os.fspath(path))
    if not wanted.endswith(SUFFIX):
        wanted += SUFFIX
    if why := _why_not(wanted):
        shown = wanted.replace("\n", "\\n")
        raise RecordError(f"a trace cannot be written to '{shown}': its path {why}", do="Name another place with -o.")
    stem = wanted.removesuffix(SUFFIX)
    folder, number = wanted, 1
    while True:
        try:
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            os.mkdir(folder, folder_mode(access))
            break
        except FileExistsError:
            if not os.path.isdir(os.path.dirname(folder)):
                raise RecordError(
                    f"cannot make '{folder}': '{os.path.dirname(folder)}' is not a folder",
                    do="Name another place with -o.",
                ) from None
            number += 1
            folder = f"{stem}-{number}{SUFFIX}"
        except OSError as error:
            raise RecordError(f"cannot make '{folder}': {error.strerror}", do="Name another place with -o.") from error
    from strobe.native import core

    job = {
        "format": "strobe",
        "format_version": FORMAT_VERSION,
        "command": without_secrets(command),
        "working_directory": working_directory or os.getcwd(),
        "host": os.uname().nodename,
        "zero_ns": time.clock_gettime_ns(time.CLOCK_MONOTONIC),
        "started_unix_ns": time.time_ns(),
        "node": core.node_name(),
        "wall": list(core.wall_clock()),
        "machine": {"cpu": cpu_model(), "driver": driver_version()},
        "settings": dict(settings),
    }
    try:
        _write(folder, json_text(job))
    except OSError as error:
        raise RecordError(
            f"cannot write into '{folder}': {error.strerror}", do="Name another place with -o."
        ) from error
    return folder


def _why_not(path: str) -> str:
    """Return why the recorder, which is told a path in a line of UTF-8, cannot use it; "" if it can."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return "is not in UTF-8"
    return "has a line break" if "\n" in path else ""


def remove(folder: str) -> None:
    """Remove a trace folder in which nothing was recorded, with what was made at its begin."""
    try:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
    except OSError:
        pass  # whoever cannot write there cannot remove it either


def finish(folder: str, ended: Mapping[str, object]) -> None:
    """Note in the manifest how the run ended: `exit_code` or `signal`.

    A manifest that cannot be written stays as it was.
    """
    facts = {**ended, "ended_ns": time.clock_gettime_ns(time.CLOCK_MONOTONIC)}
    try:
        with open(os.path.join(folder, "job.json"), encoding="utf-8") as stream:
            text = manifest.unsealed(stream.read())
        _write(folder, text + ', "ended": ' + json_text(facts) + "}")
    except OSError:
        pass  # the trace opens without it


def _write(folder: str, text: str) -> None:
    path = os.path.join(folder, "job.json")
    with open(path + ".tmp", "w", encoding="utf-8", opener=opener) as stream:
        stream.write(manifest.sealed(text) + "\n")
    os.replace(path + ".tmp", path)
