"""All options of recording: those of the recorder and of every adapter; their presets, and which adapters record.

Not for the measured program, except where it records itself: descriptions of all adapters are imported.
"""

from __future__ import annotations

import os

from strobe import registry
from strobe.model.option import Option
from strobe.record.adapter import described
from strobe.record.options.recorder_options import OWN_OPTIONS, PRESETS, Setting, moment, preset, words

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from strobe.record.adapter import Adapter


# In the order in which they start.
ADAPTERS: dict[str, Adapter] = {
    adapter.name: adapter
    for adapter in sorted(map(described, registry.names("record.adapters")), key=lambda each: (each.order, each.name))
}
SHORT_NAMES = {adapter.short: adapter.name for adapter in ADAPTERS.values() if adapter.short != adapter.name}
OPTIONS: dict[str, Option] = {
    option.name: option
    for group in (OWN_OPTIONS, *(adapter.options for adapter in ADAPTERS.values()))
    for option in group
}
# Of each preset, the values of its options.
PRESET_OPTIONS: dict[str, dict[str, str]] = {
    name: {
        option: text for adapter in ADAPTERS.values() for option, text in adapter.preset_options.get(name, {}).items()
    }
    for name in PRESETS
}


def traced(text: str) -> tuple[str, ...]:
    """Read the words of `--trace`. Raises ValueError for one that is not an adapter."""
    chosen_adapters("auto", without_graph(text)[0])
    return words(text)


OPTIONS["trace"].parse = traced


def text_of(option: Option, value: object) -> str:
    """Return a value from Python or TOML as text. Raises ValueError for a type that the option does not take."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, list | tuple) and option.many:
        return option.many.join(text_of(option, each) for each in value)
    if isinstance(value, list | tuple) and option.name == "trace":
        return ",".join(map(str, value))
    raise ValueError(f"{type(value).__name__} is not a value of '{option.name}'")


def checked(option: Option, value: object, origin: str, where: str) -> Setting:
    """Return a value from Python, TOML or text as a setting. Raises ValueError, with the place, if it is wrong."""
    try:
        text = text_of(option, value)
        option.read(text)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return Setting(text, origin)


def given_in_python(keywords: Mapping[str, object]) -> dict[str, Setting]:
    """Return the options that are given as keywords; those that are None are not given.

    Raises TypeError for a keyword that is not an option, ValueError for a wrong value.
    """
    by_keyword = {option.keyword: option for option in OPTIONS.values()}
    settings = {}
    for keyword, value in keywords.items():
        if keyword not in by_keyword:
            raise TypeError(f"'{keyword}' is not an option. Options: {', '.join(sorted(by_keyword))}.")
        if value is None:
            continue
        option = by_keyword[keyword]
        settings[option.name] = checked(option, value, "the program", keyword)
    return settings


def given_in_environment(environment: Mapping[str, str]) -> dict[str, Setting]:
    """Return the options that the environment sets. Raises ValueError for a wrong value."""
    settings = {}
    for name, option in OPTIONS.items():
        if text := environment.get(option.variable, ""):
            settings[name] = checked(option, text, f"{option.variable} in the environment", option.variable)
    return settings


def combined(layers: Iterable[Mapping[str, Setting]]) -> dict[str, Setting]:
    """Return the value of every option: of the first layer that has one, else of the preset, else the default.

    Raises ValueError for a window that ends before it begins.
    """
    given: dict[str, Setting] = {}
    for layer in layers:
        given = {**layer, **given}
    chosen = given["preset"].text if "preset" in given else OPTIONS["preset"].default_text
    of_preset = {name: Setting(text, f"preset {chosen}") for name, text in PRESET_OPTIONS[chosen].items()}
    settings = {name: Setting(option.default_text, "default") for name, option in OPTIONS.items()} | of_preset | given
    if settings["flight"].text:
        for name in ("max-size", "max-overhead", "min-duration", "armed"):
            option = OPTIONS[name]
            if option.read(settings[name].text) not in (option.read(option.default_text), 0):
                raise ValueError(f"--flight keeps everything in detail for its time: --{name} does not go with it")
    start, stop = settings["start"], settings["stop"]
    if start.text and stop.text:
        begin, end = moment(start.text), moment(stop.text)
        if begin.kind == end.kind in ("step", "sec") and end.number <= begin.number:
            raise ValueError(f"--stop {stop.text} does not come after --start {start.text}")
    return settings


def job_settings(settings: Mapping[str, Setting]) -> dict[str, dict[str, str]]:
    """Return the values and origins of options as job.json has them."""
    return {name: {"value": setting.text, "origin": setting.origin} for name, setting in settings.items()}


def adapters_of(name: str) -> list[str]:
    """Return the names of the adapters of a preset, in the order of starting."""
    return [adapter.name for adapter in ADAPTERS.values() if name in adapter.presets]


def chosen_adapters(preset_name: str = "auto", changes: str = "", *, needed: Sequence[str] = ()) -> tuple[str, ...]:
    """Names of the adapters of a preset after `changes` ("+python,-torch", or a plain list that replaces the preset).

    `needed` belong to every preset: the program needs them. Raises ValueError with a sentence that names the unknown
    word and the known ones.
    """
    each_change = words(changes)
    whole = [*adapters_of(preset(preset_name)), *needed]
    chosen = dict.fromkeys(whole) if not each_change or each_change[0][0] in "+-" else {}
    for word in each_change:
        name = _adapter_and_levels(word)[0]
        if name not in ADAPTERS:
            known = ", ".join(sorted(adapter.short for adapter in ADAPTERS.values()))
            raise ValueError(f"'{word.lstrip('+-')}' is not an adapter. Adapters: {known}.")
        _check_levels(word)
        if word[0] == "-":
            chosen.pop(name, None)
        else:
            chosen[name] = None
    return tuple(name for name in ADAPTERS if name in chosen)


def _adapter_and_levels(word: str) -> tuple[str, list[str]]:
    """Split a word of `--trace`: `+cuda+memory+events` is the adapter cuda, with two levels."""
    name, *levels = word.lstrip("+-").split("+")
    return SHORT_NAMES.get(name, name), levels


def _check_levels(word: str) -> None:
    name, wanted = _adapter_and_levels(word)
    known = ADAPTERS[name].levels
    for level in wanted:
        if level not in known:
            there = f"Levels: {', '.join(known)}." if known else f"{name} has no levels."
            raise ValueError(f"'{level}' in '{word}' is not a level. {there}")
    if wanted and word[0] == "-":
        raise ValueError(f"'{word}' both removes {name} and asks for levels of it")


def levels(changes: str) -> tuple[str, ...]:
    """Return the levels that the words of `--trace` ask for: `cuda+memory`."""
    asked: dict[str, None] = {}
    for word in changes.split(","):
        name, wanted = _adapter_and_levels(word.strip())
        asked.update(dict.fromkeys(f"{name}+{level}" for level in wanted))
    return tuple(asked)


def traced_adapters(
    settings: dict[str, Setting], environment: Mapping[str, str] | None = None, command: Sequence[str] = ()
) -> tuple[str, ...]:
    """Names of the adapters that settings choose; `graph` among the words of `trace` sets `keep` to 0.

    `command` is the program in its `environment`: it may need an adapter that the preset has not.
    """
    changes, graph_only = without_graph(settings["trace"].text)
    if graph_only:
        settings["keep"] = Setting("0", f"graph in --trace ({settings['trace'].origin})")
    needed = [each.name for each in ADAPTERS.values() if command and each.needed_by(environment or {}, command)]
    chosen = chosen_adapters(settings["preset"].text, changes, needed=needed)
    return tuple(name for name, adapter in ADAPTERS.items() if adapter.wanted(settings, name in chosen))


def without_graph(changes: str) -> tuple[str, bool]:
    """Split `graph` from the words of `--trace`: it is not an adapter, but stands for `--keep 0`."""
    every = [word.strip() for word in changes.split(",")]
    others = [word for word in every if word.lstrip("+") != "graph"]
    return ",".join(others), len(others) < len(every)


def unknown_variables(environment: Iterable[str]) -> list[str]:
    """Return the names in the environment that begin with STROBE_ and are not options."""
    known = {option.variable for option in OPTIONS.values()}
    known |= {"STROBE_SESSION", "STROBE_DISABLE", "STROBE_CACHE", "STROBE_LEVELS", "STROBE_RULES"}
    known |= {variable for adapter in ADAPTERS.values() for variable in adapter.variables}
    return sorted(name for name in environment if name.startswith("STROBE_") and name not in known)
