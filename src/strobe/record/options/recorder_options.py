"""The options of recording, in one table. `--name`, `STROBE_NAME`, `name = ` in a file and a keyword of
`strobe.record()` are the same option; its value travels as text, so that it fits everywhere.

An option of the recorder is a row here, an option of an adapter is in its description. The command line, the
environment, files, `strobe config`, job.json and docs/reference follow. `all_options.py` puts them together. In the
program an adapter reads `settings.options["name"]`.
Imports nothing that the measured program would not import itself.
"""

from __future__ import annotations

import os

from strobe.model.durations import EXAMPLES, duration_ns
from strobe.model.option import Option
from strobe.model.private_files import PRIVATE, UMASK
from strobe.record.adapter import described
from strobe.record.flight_requests import AUTOMATIC, triggers
from strobe.record.options.filters import filter_file

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
        flight_ns: int
        flight_bytes: int


GROUPS = {
    "what": "what to record",
    "how much": "how much to record",
    "where": "where to save it",
    "messages": "messages at the end",
}
# Sets of options and of adapters; each adapter names those that it belongs to.
PRESETS = ("auto", "light", "sampling")


class Setting:
    """The text of an option, and where it comes from."""

    __slots__ = ("origin", "text")

    def __init__(self, text: str, origin: str) -> None:
        self.text = text
        self.origin = origin


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit()


def kept_iterations(text: str) -> int | None:
    """Return how many iterations `--keep TEXT` keeps in detail: a number, or None for `all`. Raises ValueError."""
    if text == "all":
        return None
    if not _is_whole(text) or int(text) >= 2**31:
        raise ValueError(f"'{text}' is not a number of iterations. Use a whole number, or all.")
    return int(text)


def throttle(text: str) -> tuple[int, int]:
    """Read `--throttle N:TIME`: calls and nanoseconds; (0, 0) for `off`. Raises ValueError."""
    if text.strip().lower() in ("off", "no", "0"):
        return 0, 0
    calls, _, time = text.partition(":")
    if not _is_whole(calls) or not 0 < int(calls) < 2**62:
        raise ValueError(f"'{text}' is neither CALLS:TIME, such as 100000:2us, nor off")
    return int(calls), duration_ns(time or "2us")


def per_second(text: str) -> float:
    """Read a number of samples per second: 0 (none) to 10000. Raises ValueError."""
    try:
        value = float(text or 0)
    except ValueError:
        raise ValueError(f"'{text}' is not a number of samples per second") from None
    if not 0 <= value <= 10000 or 0 < value < 0.1:
        raise ValueError(f"cannot take {text} samples per second. Use 0 for none, or 0.1 to 10000.")
    return value


def preset(text: str) -> str:
    """Read the name of a preset. Raises ValueError."""
    if text not in PRESETS:
        raise ValueError(f"'{text}' is not a preset. Presets: {', '.join(PRESETS)}.")
    return text


def words(text: str) -> tuple[str, ...]:
    """Read words with commas between them."""
    return tuple(filter(None, (word.strip() for word in text.split(","))))


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
        return Moment("sec", duration_ns(rest if colon else text, "s"))
    if kind == "step" and _is_whole(rest):
        return Moment("step", int(rest))
    name, _, times = rest.partition(":")
    if kind == "call" and name and (not times or (_is_whole(times) and int(times) > 0)):
        return Moment("call", int(times or 1), name if "." in name else f"__main__.{name}")
    raise ValueError(f"'{text}' is not a moment. Use step:100, sec:30 (or 30s), call:module.function, or paused.")


def gpu_period(text: str) -> int:
    """Read the time between two readings of GPUs, in ns; 0 for `off`. Raises ValueError."""
    if text.strip().lower() in ("off", "no", "0"):
        return 0
    period = duration_ns(text, "s")
    if not 10**7 <= period <= 60 * 10**9:
        raise ValueError(f"cannot read GPUs every {text}. Use 10ms to 60s, or off.")
    return period


def length(text: str) -> int:
    """Read a duration above 0, in ns; a number without a unit counts seconds. Raises ValueError."""
    value_ns = duration_ns(text, "s")
    if not value_ns:
        raise ValueError(f"cannot record for '{text}'. Use a duration above 0: {EXAMPLES}.")
    return value_ns


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
        raise ValueError(f"'{text}' is not a size of a trace. Use at least 1M, for example 500M or 2G.")
    return value


def share(text: str) -> float:
    """Read a share: `5%`. The percent sign is required, because 0.05 is ambiguous. Raises ValueError."""
    number, percent, rest = text.strip().partition("%")
    try:
        value = float(number) / 100 if percent and not rest else 0
    except ValueError:
        value = 0
    if not 0 < value <= 10:
        raise ValueError(f"'{text}' is not a share. Use a number above 0 with a percent sign, such as 5% or 0.5%.")
    return value


COUNTER_GROUPS = (
    *("cpu", "threads", "machine", "memory", "switches", "faults", "io", "network", "cgroup", "load"),  # the default
    *("pss", "hardware"),
)


def counters(text: str) -> tuple[str, ...]:
    """Read groups of counters with commas. Raises ValueError."""
    groups = words(text)
    for group in groups:
        if group not in COUNTER_GROUPS:
            raise ValueError(f"'{group}' is not a group of counters. Groups: {', '.join(COUNTER_GROUPS)}.")
    return groups


OWN_OPTIONS = (
    Option(
        "preset",
        f"Named set of recording options: {', '.join(PRESETS)}.",
        default="auto",
        group="what",
        parse=preset,
        metavar="NAME",
    ),
    Option(
        "trace",
        "Adapters to record with. +python,-torch changes the preset; python,torch replaces it; +cuda+memory+events "
        "adds levels of one adapter; graph keeps no iteration in detail.",
        group="what",
        parse=words,  # and adapters, in all_options.py
        metavar="LIST",
        also=("-t",),
    ),
    Option(
        "include",
        "Record these functions as well: a folder or file (with a slash) or a dotted name, wildcards allowed. "
        "Can be repeated.",
        group="what",
        parse=separated(os.pathsep),
        metavar="PATTERN",
        many=os.pathsep,
        paths=True,
    ),
    Option(
        "exclude",
        "Do not record these functions: numpy.linalg, *.helper, ./tests. Can be repeated.",
        group="what",
        parse=separated(os.pathsep),
        metavar="PATTERN",
        many=os.pathsep,
        paths=True,
    ),
    Option(
        "filter",
        "Read a Score-P filter file with SCOREP_FILE_NAMES and SCOREP_REGION_NAMES blocks.",
        group="what",
        parse=filter_file,
        metavar="FILE",
        paths=True,
    ),
    Option(
        "include-imports", "Also record code that runs because of an import.", default="no", group="what", type=bool
    ),
    Option(
        "throttle",
        "Stop recording a function after N calls that took less than TIME on average; off disables throttling.",
        default="100000:2us",
        group="how much",
        parse=throttle,
        metavar="N:TIME|off",
    ),
    Option(
        "min-duration",
        "Count and sum up calls shorter than TIME instead of keeping them in detail: 10us, 1ms.",
        group="how much",
        parse=duration_ns,
        metavar="TIME",
    ),
    Option(
        "counters",
        f"Record only these groups of counters of each process: {', '.join(COUNTER_GROUPS)}. By default all but the "
        "last three.",
        group="what",
        parse=counters,
        metavar="LIST",
    ),
    Option(
        "counters-per-region",
        "Record CPU time, page faults and context switches of each execution of these strobe.region() names: "
        "load,step-*.",
        group="what",
        parse=separated(","),
        metavar="GLOBS",
        many=",",
    ),
    Option(
        "keep",
        "Iterations of the main loop to keep in detail; the others become statistics.",
        default="10",
        group="how much",
        parse=kept_iterations,
        metavar="N|all",
    ),
    Option(
        "start",
        "Start recording at this moment: step:100, sec:30 (or 30s), call:module.function, or paused (until a signal "
        "or strobe.start()).",
        group="how much",
        parse=moment,
        metavar="WHEN",
    ),
    Option(
        "stop",
        "Stop recording at this moment: step:110 (before that step), sec:60, or call:module.function (after that "
        "call).",
        group="how much",
        parse=moment,
        metavar="WHEN",
    ),
    Option("for", "Stop recording after this time: 60s, 5min.", group="how much", parse=length, metavar="TIME"),
    Option(
        "signal",
        "Let this signal to the program pause and resume recording; of a flight recorder, write a trace: USR1, USR2.",
        group="how much",
        choices=("USR1", "USR2"),
        metavar="SIGNAL",
    ),
    Option(
        "armed",
        "Load everything, and record nothing until strobe job record asks for it.",
        default="no",
        group="how much",
        type=bool,
    ),
    Option(
        "flight",
        "Flight recorder: keep only the last minutes, all in detail, and write a trace of them when something happens: "
        "10min.",
        group="how much",
        parse=length,
        metavar="TIME",
    ),
    Option(
        "flight-size",
        "Largest size of the folder of a flight recorder; it keeps less than --flight to stay below it.",
        default="2G",
        group="how much",
        parse=size,
        metavar="SIZE",
    ),
    Option(
        "flight-on",
        "What a flight recorder writes a trace for by itself: slow-step (of 3 times the median; slow-step:5), "
        "exception, oom, none.",
        default=",".join(AUTOMATIC),
        group="how much",
        parse=triggers,
        metavar="LIST",
    ),
    Option(
        "max-size",
        "Largest size of the trace: 2G, 500M. Detail is dropped to stay below it; the summary reports that.",
        group="how much",
        parse=size,
        metavar="SIZE",
    ),
    Option(
        "max-overhead",
        "Largest CPU time of the recorder, as a share of the program's: 5%. Detail is dropped to stay below it; the "
        "summary reports that.",
        group="how much",
        parse=share,
        metavar="SHARE",
    ),
    Option(
        "output",
        "Name of the trace: %n is the program, %p the process id of strobe, %t the time. -2, -3, ... is appended if "
        "the name is taken.",
        group="where",
        metavar="PATTERN",
        also=("-o",),
    ),
    Option(
        "access",
        "Who may read the trace: private (its user only), umask (whoever the umask lets).",
        default=PRIVATE,
        group="where",
        choices=(PRIVATE, UMASK),
        metavar="WHO",
    ),
    Option(
        "summary",
        "Summary at the end, on stderr: short, none.",
        default="short",
        group="messages",
        choices=("short", "none"),
        metavar="KIND",
    ),
    Option("json", "Print the summary as JSON, on stderr.", default="no", group="messages", type=bool),
    Option("quiet", "Print neither a summary nor messages.", default="no", group="messages", type=bool, also=("-q",)),
)


_NONE = 0xFFFFFFFF  # UINT32_MAX


def core_settings(options: Mapping[str, str], adapters: Iterable[str]) -> CoreSettings:
    """Return the settings of the core in every process, with Python or without.

    The names are those of the fields of `strobe_options` (native/include/strobe.h). Raises ValueError for a wrong
    value.
    """
    kept = kept_iterations(options["keep"])
    throttle_calls, throttle_ns = throttle(options["throttle"])
    settings: CoreSettings = {
        "metrics_period_ms": _NONE,
        "counters": ",".join(counters(options["counters"])),
        "keep": 0 if kept is None else kept or _NONE,  # 0 keeps all
        "min_duration_ns": duration_ns(options["min-duration"]) if options["min-duration"] else 0,
        "throttle_calls": throttle_calls,
        "throttle_ns": throttle_ns,
        "max_bytes": size(options["max-size"]) if options["max-size"] else 0,
        "max_overhead": share(options["max-overhead"]) if options["max-overhead"] else 0.0,
        "flight_ns": length(options["flight"]) if options["flight"] else 0,
        "flight_bytes": size(options["flight-size"]),
    }
    for name in adapters:
        settings.update(described(name).core)  # type: ignore[typeddict-item]
    if settings["flight_ns"]:
        settings["keep"] = 0  # statistics of folded iterations are of the whole run
    return settings
