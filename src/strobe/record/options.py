"""The options of recording, in one table. `--name`, `STROBE_NAME`, `name = ` in a file and a keyword of
`strobe.record()` are the same option; its value travels as text, so that it fits everywhere.

An option that a part of the recorder needs is a row here and nothing else: the command line, the environment, files,
`strobe config`, job.json and docs/reference follow. In the program an adapter reads `settings.options["name"]`.
Imports nothing that the measured program would not import itself.
"""

from __future__ import annotations

import os

from strobe.record.filters import filter_file

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypedDict

    class CoreSettings(TypedDict):
        """Fields of `strobe_options`."""

        metrics_period_ms: int
        counters: str
        keep: int
        min_duration_ns: int
        throttle_calls: int
        throttle_ns: int
        max_bytes: int
        max_overhead: float


GROUPS = {
    "what": "what to record",
    "how much": "how much of it",
    "where": "where it goes",
    "ranks": "processes and ranks",
    "say": "what strobe says",
}
SHORT_NAMES = {
    "python": "python_calls",
    "samples": "python_samples",
    "lines": "source_lines",
    "torch": "torch_ops",
    "distributed": "torch_distributed",
    "loader": "data_loader",
    "metrics": "counters",
}
# What an adapter records only where it is asked for: --trace +cuda+memory. Without it a program does not pay for it.
LEVELS = {"cuda": ("memory", "events")}
# Values of options that belong together. `trace` is here a plain list of adapters, in the order of starting; others in
# record/adapters/ are there to ask for.
PRESETS: dict[str, dict[str, str]] = {
    "auto": {"trace": "python_calls,torch_ops,torch_distributed,data_loader,itt,nvtx,cuda,functions,counters"},
    "light": {"trace": "torch_ops,torch_distributed,data_loader,itt,nvtx,cuda,functions,counters"},
    "sampling": {
        "trace": "python_samples,torch_ops,torch_distributed,data_loader,itt,nvtx,cuda,functions,counters",
        "sample": "1000",
    },
}


class Option:
    """A row of the table: `parse` makes a value of its text, or raises ValueError with a sentence."""

    __slots__ = ("adapter", "default", "flags", "group", "help", "many", "metavar", "name", "parse", "paths")

    def __init__(
        self,
        name: str,
        group: str,
        default: str,
        parse: Callable[[str], object],
        help: str,
        *,
        metavar: str = "",
        flags: tuple[str, ...] = (),
        many: str = "",
        paths: bool = False,
        adapter: str = "",
    ) -> None:
        self.name = name
        self.group = group
        self.default = default
        self.parse = parse
        self.help = help
        self.metavar = metavar or name.upper()
        self.flags = flags  # other spellings on the command line
        self.many = many  # what stands between several values; "": there is one
        self.paths = paths  # in a file: relative to the folder of the file
        self.adapter = adapter  # that this option, where it has a value, asks for beside those of `trace`

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return "STROBE_" + self.name.upper().replace("-", "_")

    @property
    def keyword(self) -> str:
        """Its name in Python."""
        return self.name.replace("-", "_") + ("_" if self.name == "for" else "")


class Setting:
    """The text of an option, and who said so."""

    __slots__ = ("origin", "text")

    def __init__(self, text: str, origin: str) -> None:
        self.text = text
        self.origin = origin


def yes_or_no(text: str) -> bool:
    """Read 1, yes, true, on and their opposites. Raises ValueError."""
    word = text.strip().lower()
    if word in ("1", "yes", "true", "on"):
        return True
    if word in ("0", "no", "false", "off", ""):
        return False
    raise ValueError(f"'{text}' is neither yes nor no")


def kept_iterations(text: str) -> int | None:
    """Return how many iterations `--keep TEXT` keeps in detail: a number, or None for `all`. Raises ValueError."""
    if text == "all":
        return None
    if not text.isascii() or not text.isdigit() or int(text) >= 2**31:
        raise ValueError(f"cannot keep '{text}' iterations; a number, or 'all'")
    return int(text)


def nanoseconds(text: str) -> int:
    """Read a time with its unit: 500ns, 2us, 1.5ms, 3s. Raises ValueError."""
    for unit, size in (("ns", 1), ("us", 1000), ("ms", 10**6), ("s", 10**9)):
        if text.endswith(unit):
            try:
                value = float(text.removesuffix(unit)) * size
            except ValueError:
                break
            if 0 <= value < 2**62:
                return round(value)
            break
    raise ValueError(f"'{text}' is no time with a unit: 500ns, 2us, 1ms, 3s")


def throttle(text: str) -> tuple[int, int]:
    """Read `--throttle N:TIME`: calls and nanoseconds; (0, 0) for `off`. Raises ValueError."""
    if text.strip().lower() in ("off", "no", "0"):
        return 0, 0
    calls, _, time = text.partition(":")
    if not calls.isascii() or not calls.isdigit() or not 0 < int(calls) < 2**62:
        raise ValueError(f"'{text}' is not like 100000:2us, nor off")
    return int(calls), nanoseconds(time or "2us")


def per_second(text: str) -> float:
    """Read how often a second: 0 (never) to 10000. Raises ValueError."""
    try:
        value = float(text or 0)
    except ValueError:
        raise ValueError(f"'{text}' is no number of samples a second") from None
    if not 0 <= value <= 10000 or 0 < value < 0.1:
        raise ValueError(f"cannot take {text} samples a second; 0 for none, or 0.1 to 10000")
    return value


def preset(text: str) -> str:
    """Read the name of a preset. Raises ValueError."""
    if text not in PRESETS:
        raise ValueError(f"no preset '{text}'; there are: {', '.join(PRESETS)}")
    return text


def traced(text: str) -> tuple[str, ...]:
    """Read the words of `--trace`. Raises ValueError for one that is no adapter."""
    adapters("auto", without_graph(text)[0])
    return tuple(filter(None, (word.strip() for word in text.split(","))))


def one_of(*choices: str) -> Callable[[str], str]:
    """Return a reader of one of some words."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"'{text}' is none of: {', '.join(choices)}")
        return text

    return read


def separated(by: str) -> Callable[[str], tuple[str, ...]]:
    """Return a reader of several values with `by` between them."""
    return lambda text: tuple(filter(None, text.split(by)))


class Moment:
    """When a recording window opens or closes: `kind` is step, sec (`number`: ns), call (of `name`), or paused."""

    __slots__ = ("kind", "name", "number")

    def __init__(self, kind: str, number: int = 0, name: str = "") -> None:
        self.kind = kind
        self.number = number
        self.name = name


def moment(text: str) -> Moment:
    """Read `step:K`, `sec:S` (or `10s`), `call:MODULE.FUNCTION` (`:N`: its N-th call), `paused`. Raises ValueError."""
    kind, colon, rest = text.partition(":")
    if text == "paused":
        return Moment("paused")
    if kind == "sec" or (not colon and text[:1] in "0123456789."):
        return Moment("sec", int(seconds(rest if colon else text) * 1e9))
    if kind == "step" and rest.isascii() and rest.isdigit():
        return Moment("step", int(rest))
    name, _, times = rest.partition(":")
    if kind == "call" and name and (not times or (times.isascii() and times.isdigit() and int(times) > 0)):
        return Moment("call", int(times or 1), name if "." in name else f"__main__.{name}")
    raise ValueError(f"'{text}' is no moment; there are: step:100, sec:30 (or 30s), call:module.function, paused")


def gpu_period(text: str) -> int:
    """Read how often GPUs are asked, in ns; 0 for `off`. Raises ValueError."""
    if text.strip().lower() in ("off", "no", "0"):
        return 0
    period = round(seconds(text) * 1e9)
    if not 10**7 <= period <= 60 * 10**9:
        raise ValueError(f"cannot read GPUs every {text}; 10ms to 60s, or off")
    return period


_UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "": 1.0}


def seconds(text: str) -> float:
    """Read a duration: `10s`, `500ms`, `5min`, `1h`, or a number of seconds. Raises ValueError."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    try:
        value = float(number) * _UNITS[text[len(number) :]]
    except (ValueError, KeyError):
        value = -1
    if not 0 <= value < 1e9:
        raise ValueError(f"'{text}' is no duration; there are: 10s, 500ms, 5min, 1h")
    return value


def length(text: str) -> float:
    """Read a duration that is more than nothing. Raises ValueError."""
    value = seconds(text)
    if not value:
        raise ValueError(f"'{text}' is no time to record; there are: 10s, 500ms, 5min, 1h")
    return value


_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def size(text: str) -> int:
    """Read a number of bytes: `500M`, `2G` (powers of 1024), or a number. Raises ValueError."""
    word = text.strip().lower().removesuffix("b").removesuffix("i")
    number = word.rstrip("kmgt")
    try:
        value = int(float(number) * _SIZES[word[len(number) :]])
    except (ValueError, KeyError, OverflowError):
        value = 0
    if not 1 << 20 <= value < 1 << 60:
        raise ValueError(f"'{text}' is no size of a trace; there are: 500M, 2G (at least 1M)")
    return value


def share(text: str) -> float:
    """Read a share: `5%`; the sign is needed, 0.05 may mean either. Raises ValueError."""
    number, percent, rest = text.strip().partition("%")
    try:
        value = float(number) / 100 if percent and not rest else 0
    except ValueError:
        value = 0
    if not 0 < value <= 10:
        raise ValueError(f"'{text}' is no share; there are: 5%, 0.5%, with the percent sign")
    return value


COUNTER_GROUPS = (
    *("cpu", "memory", "switches", "faults", "io", "network", "cgroup", "load"),  # what everybody gets
    *("threads", "pss", "hardware"),
)


def counters(text: str) -> tuple[str, ...]:
    """Read groups of counters with commas. Raises ValueError."""
    words = tuple(filter(None, (word.strip() for word in text.split(","))))
    for word in words:
        if word not in COUNTER_GROUPS:
            raise ValueError(f"no counters '{word}'; there are: {', '.join(COUNTER_GROUPS)}")
    return words


def or_nothing(read: Callable[[str], object]) -> Callable[[str], object]:
    """Return a reader that lets an empty text pass: None."""
    return lambda text: read(text) if text else None


_ROWS = (
    Option("preset", "what", "auto", preset, f"values that go together: {', '.join(PRESETS)}", metavar="NAME"),
    Option(
        "trace",
        "what",
        "",
        traced,
        "+python,-torch: change the preset; python,torch: replace it; +cuda+memory+events: more of one; "
        "graph: nothing in detail",
        metavar="LIST",
        flags=("-t",),
    ),
    Option(
        "include",
        "what",
        "",
        separated(os.pathsep),
        "record these functions, too: a folder or file (has a slash), or a dotted name, wildcards too; again for each",
        metavar="PATTERN",
        many=os.pathsep,
        paths=True,
    ),
    Option(
        "exclude",
        "what",
        "",
        separated(os.pathsep),
        "do not record these functions: numpy.linalg, *.helper, ./tests; again for each",
        metavar="PATTERN",
        many=os.pathsep,
        paths=True,
    ),
    Option(
        "filter",
        "what",
        "",
        filter_file,
        "a filter file of Score-P: SCOREP_FILE_NAMES and SCOREP_REGION_NAMES blocks",
        metavar="FILE",
        paths=True,
    ),
    Option("include-imports", "what", "no", yes_or_no, "record what runs because of an import, too"),
    Option(
        "throttle",
        "how much",
        "100000:2us",
        throttle,
        "a function called N times that takes less than TIME on average is not recorded any more; off: never",
        metavar="N:TIME|off",
    ),
    Option(
        "min-duration",
        "how much",
        "",
        or_nothing(nanoseconds),
        "functions that take less are counted and summed up, not kept in detail: 10us, 1ms",
        metavar="TIME",
    ),
    Option(
        "sample",
        "what",
        "",
        per_second,
        "look so often a second what every Python thread does; 0: never",
        metavar="HZ",
        adapter="python_samples",
    ),
    Option(
        "counters",
        "what",
        "",
        counters,
        f"counters of each process, only these: {', '.join(COUNTER_GROUPS)}; else all but the last three",
        metavar="LIST",
    ),
    Option(
        "counters-per-region",
        "what",
        "",
        separated(","),
        "CPU time, page faults and context switches of each execution of these strobe.region(), by name: load,step-*",
        metavar="GLOBS",
        many=",",
    ),
    Option(
        "gpu-metrics",
        "what",
        "100ms",
        gpu_period,
        "how often to read load, memory, clocks, power and temperature of NVIDIA GPUs; off: never",
        metavar="TIME|off",
    ),
    Option(
        "cuda-graph-trace",
        "what",
        "node",
        one_of("node", "graph"),
        "of CUDA graphs: each kernel with the code that captured it, or only each launch as a whole, which costs less",
        metavar="node|graph",
    ),
    Option(
        "with-torch-profiler",
        "what",
        "yield",
        one_of("yield", "keep", "only"),
        "who records GPUs while torch.profiler runs: yield (it; we take its events), keep (we), only (it, we never)",
        metavar="WHO",
    ),
    Option(
        "lines",
        "what",
        "",
        separated(","),
        "count the lines of these functions: module.function, Class.method, file.py, * and ? as in a shell",
        metavar="PATTERN",
        many=",",
        adapter="source_lines",
    ),
    Option(
        "keep",
        "how much",
        "10",
        kept_iterations,
        "iterations of the main loop to keep in detail, of the others statistics",
        metavar="N|all",
    ),
    Option(
        "start",
        "how much",
        "",
        or_nothing(moment),
        "record from there on: step:100, sec:30 (or 30s), call:module.function, paused (for a signal, strobe.start())",
        metavar="WHEN",
    ),
    Option(
        "stop",
        "how much",
        "",
        or_nothing(moment),
        "and up to there: step:110 (before that step), sec:60, call:module.function (after that call)",
        metavar="WHEN",
    ),
    Option("for", "how much", "", or_nothing(length), "so long from the start on: 60s, 5min", metavar="TIME"),
    Option(
        "signal",
        "how much",
        "",
        or_nothing(one_of("USR1", "USR2")),
        "this signal to the program closes and opens the window: USR1, USR2",
    ),
    Option(
        "max-size",
        "how much",
        "",
        or_nothing(size),
        "of the trace: 2G, 500M; on the way there detail is given up, which the summary says",
        metavar="SIZE",
    ),
    Option(
        "max-overhead",
        "how much",
        "",
        or_nothing(share),
        "CPU time of the recorder beside the program's: 5%; beyond it detail is given up, which the summary says",
        metavar="SHARE",
    ),
    Option(
        "output",
        "where",
        "",
        str,
        "where to save; %n program, %p our pid, %t time; -2, -3, ... is added where there is something already",
        metavar="PATTERN",
        flags=("-o",),
    ),
    Option("summary", "say", "short", one_of("short", "none"), "at the end, on stderr: short, none"),
    Option("json", "say", "no", yes_or_no, "the summary as JSON, on stderr"),
    Option("quiet", "say", "no", yes_or_no, "no summary, no talk", flags=("-q",)),
)
OPTIONS: dict[str, Option] = {option.name: option for option in _ROWS}


_NONE = 0xFFFFFFFF  # UINT32_MAX


def core_settings(options: Mapping[str, str], adapters: Iterable[str]) -> CoreSettings:
    """What the core itself keeps to in every process, with Python or without.

    The names are those of the fields of `strobe_options` (native/include/strobe.h). Raises ValueError for a text that
    is no value.
    """
    kept = kept_iterations(options["keep"])
    throttle_calls, throttle_ns = throttle(options["throttle"])
    return {
        "metrics_period_ms": 0 if "counters" in adapters else _NONE,
        "counters": ",".join(counters(options["counters"])),
        "keep": 0 if kept is None else kept or _NONE,  # 0 keeps all
        "min_duration_ns": nanoseconds(options["min-duration"]) if options["min-duration"] else 0,
        "throttle_calls": throttle_calls,
        "throttle_ns": throttle_ns,
        "max_bytes": size(options["max-size"]) if options["max-size"] else 0,
        "max_overhead": share(options["max-overhead"]) if options["max-overhead"] else 0.0,
    }


def text_of(option: Option, value: object) -> str:
    """Return the text of a value as Python or TOML has it. Raises ValueError for a kind that no option takes."""
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
    raise ValueError(f"{type(value).__name__} is no value for '{option.name}'")


def given_in_python(keywords: Mapping[str, object]) -> dict[str, Setting]:
    """Return the options that are given as keywords; None stands for what is not given.

    Raises TypeError for a keyword that is no option, ValueError for a value that is none.
    """
    by_keyword = {option.keyword: option for option in OPTIONS.values()}
    settings = {}
    for keyword, value in keywords.items():
        if keyword not in by_keyword:
            raise TypeError(f"there is no option '{keyword}'; there are: {', '.join(sorted(by_keyword))}")
        if value is None:
            continue
        option = by_keyword[keyword]
        try:
            text = text_of(option, value)
            option.parse(text)
        except ValueError as error:
            raise ValueError(f"{keyword}: {error}") from None
        settings[option.name] = Setting(text, "the program")
    return settings


def given_in_environment(environment: Mapping[str, str]) -> dict[str, Setting]:
    """Return the options that the environment sets. Raises ValueError for a value that is none."""
    settings = {}
    for name, option in OPTIONS.items():
        text = environment.get(option.variable, "")
        if not text:
            continue
        try:
            option.parse(text)
        except ValueError as error:
            raise ValueError(f"{option.variable}: {error}") from None
        settings[name] = Setting(text, f"{option.variable} in the environment")
    return settings


def combined(layers: Iterable[Mapping[str, Setting]]) -> dict[str, Setting]:
    """Return the value of every option: of the first layer that has one, else of the preset, else the default.

    Raises ValueError for a window that ends before it begins.
    """
    said: dict[str, Setting] = {}
    for layer in layers:
        for name, setting in layer.items():
            said.setdefault(name, setting)
    chosen = said["preset"].text if "preset" in said else OPTIONS["preset"].default
    # What a preset traces is no value of --trace, which changes it.
    of_preset = {name: Setting(text, f"preset {chosen}") for name, text in PRESETS[chosen].items() if name != "trace"}
    settings = {name: Setting(option.default, "default") for name, option in OPTIONS.items()} | of_preset | said
    start, stop = settings["start"], settings["stop"]
    if start.text and stop.text:
        begin, end = moment(start.text), moment(stop.text)
        if begin.kind == end.kind in ("step", "sec") and end.number <= begin.number:
            raise ValueError(f"--stop {stop.text} does not come after --start {start.text}")
    return settings


def job_settings(settings: Mapping[str, Setting]) -> dict[str, dict[str, str]]:
    """Return the values and origins of options as job.json has them."""
    return {name: {"value": setting.text, "origin": setting.origin} for name, setting in settings.items()}


def known_adapters() -> tuple[str, ...]:
    """Names of all adapters: a file in record/adapters/ is one by being there."""
    from strobe import registry

    return tuple(dict.fromkeys([*PRESETS["auto"]["trace"].split(","), *registry.names("record.adapters")]))


def adapters(preset_name: str = "auto", changes: str = "", *, mpi: bool = False) -> tuple[str, ...]:
    """Names of the adapters of a preset after `changes` ("+python,-torch", or a plain list that replaces the preset).

    With `mpi`, the program will call MPI: then that adapter belongs to every preset.

    Raises ValueError with a sentence that names the unknown word and the known ones.
    """
    words = [word.strip() for word in changes.split(",") if word.strip()]
    every = known_adapters()
    whole = PRESETS[preset(preset_name)]["trace"].split(",") + (["mpi"] if mpi else [])
    chosen = dict.fromkeys(whole) if not words or words[0][0] in "+-" else {}
    for word in words:
        name = _adapter_and_levels(word)[0]
        if name not in every:
            known = ", ".join(sorted({*SHORT_NAMES, *every} - {*SHORT_NAMES.values()}))
            raise ValueError(f"cannot trace '{word.lstrip('+-')}'; there are: {known}")
        _check_levels(word)
        if word[0] == "-":
            chosen.pop(name, None)
        else:
            chosen[name] = None
    return tuple(name for name in every if name in chosen)


def _adapter_and_levels(word: str) -> tuple[str, list[str]]:
    """Split a word of `--trace`: `+cuda+memory+events` is the adapter cuda, with two levels."""
    name, *levels = word.lstrip("+-").split("+")
    return SHORT_NAMES.get(name, name), levels


def _check_levels(word: str) -> None:
    name, wanted = _adapter_and_levels(word)
    known = LEVELS.get(name, ())
    for level in wanted:
        if level not in known:
            there = f"there are: {', '.join(known)}" if known else f"{name} has none"
            raise ValueError(f"'{level}' in '{word}' is no level; {there}")
    if wanted and word[0] == "-":
        raise ValueError(f"'{word}' leaves {name} out, and asks for more of it")


def levels(changes: str) -> tuple[str, ...]:
    """Return the levels that the words of `--trace` ask for: `cuda+memory`."""
    asked: dict[str, None] = {}
    for word in changes.split(","):
        name, wanted = _adapter_and_levels(word.strip())
        asked.update(dict.fromkeys(f"{name}+{level}" for level in wanted))
    return tuple(asked)


def traced_adapters(settings: dict[str, Setting], *, mpi: bool = False) -> tuple[str, ...]:
    """Names of the adapters that settings choose; `graph` among the words of `trace` sets `keep` to 0."""
    changes, graph_only = without_graph(settings["trace"].text)
    if graph_only:
        settings["keep"] = Setting("0", f"graph in --trace ({settings['trace'].origin})")
    chosen = adapters(settings["preset"].text, changes, mpi=mpi)
    if "python_samples" in chosen and not settings["sample"].text:
        settings["sample"] = Setting("1000", f"samples in --trace ({settings['trace'].origin})")
    asked = [option.adapter for name, option in OPTIONS.items() if option.adapter and settings[name].text]
    never = ["python_samples"] if settings["sample"].text and not per_second(settings["sample"].text) else []
    return tuple(name for name in known_adapters() if (name in chosen or name in asked) and name not in never)


def without_graph(changes: str) -> tuple[str, bool]:
    """Split `graph` from the words of `--trace`: it says that nothing is to be kept in detail, and is no adapter."""
    words = [word.strip() for word in changes.split(",")]
    others = [word for word in words if word.lstrip("+") != "graph"]
    return ",".join(others), len(others) < len(words)


def unknown_variables(environment: Iterable[str]) -> list[str]:
    """Names in the environment that look like options of ours and are none."""
    known = {option.variable for option in OPTIONS.values()} | {"STROBE_SESSION", "STROBE_DISABLE", "STROBE_CACHE"}
    known |= {
        "STROBE_LEVELS",
        "STROBE_CUPTI",
        "STROBE_CUPTI_CANDIDATES",
        "STROBE_CUPTI_VERDICT",
    }  # native/adapters/cupti/library.h
    return sorted(name for name in environment if name.startswith("STROBE_") and name not in known)
