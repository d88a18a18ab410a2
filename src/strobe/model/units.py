"""Numbers for people: durations, bytes, counts and shares. The name of each function has the unit of its argument."""

from __future__ import annotations

_TIME_STEPS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"))


def format_ns(value_ns: float) -> str:
    """Format a duration with about four significant digits: `812 ns`, `14.52 us`, `12.30 s`, `6 min 12 s`."""
    if value_ns < 0:
        return "-" + format_ns(-value_ns)
    if value_ns >= 120e9:
        minutes, seconds = divmod(round(value_ns / 1e9), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
    for size, unit in _TIME_STEPS:
        if value_ns >= size * 0.99995:
            return f"{_four_digits(value_ns / size)} {unit}"
    return f"{value_ns:.0f} ns"


def format_interval_ns(low_ns: float, high_ns: float) -> str:
    """Format an interval with one unit for both ends: `48.0..66.0 ms`; `up to 66.0 ms` from 0 on."""
    if low_ns <= 0:
        return f"up to {format_ns(high_ns)}"
    for size, unit in _TIME_STEPS:
        if high_ns >= size * 0.99995:
            low, high = _three_digits(low_ns / size), _three_digits(high_ns / size)
            return f"{low}..{high} {unit}" if low != high else f"{high} {unit}"
    return f"{low_ns:.0f}..{high_ns:.0f} ns"


def format_bytes(size_bytes: float) -> str:
    """Format a size in powers of 1000: `512 B`, `38.2 MB`."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size_bytes >= size:
            return f"{_three_digits(size_bytes / size)} {unit}"
    return f"{size_bytes:.0f} B"


def format_count(value: int) -> str:
    """Format a count with thin groups of three digits: `1 180`."""
    return f"{value:,}".replace(",", " ")


def format_number_of(value: int, noun: str) -> str:
    """Format how many there are of a noun with a regular plural: `1 step`, `1 180 steps`."""
    return f"{format_count(value)} {noun}{'' if value == 1 else 's'}"


def format_share(share: float) -> str:
    """Format a share from 0 to 1 as percent: `31 %`, `4.2 %`, `0.3 %`, `<0.1 %`."""
    percent = 100 * share
    if 0 < percent < 0.05:
        return "<0.1 %"
    return f"{percent:.0f} %" if percent >= 9.95 or percent == 0 else f"{percent:.1f} %"


def _four_digits(value: float) -> str:
    return f"{value:.2f}" if value < 99.995 else f"{value:.1f}"


def _three_digits(value: float) -> str:
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"
