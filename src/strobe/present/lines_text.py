"""Line counts in the layout of line_profiler: each function with its source, in the order of the file."""

from __future__ import annotations

from collections.abc import Sequence

from strobe.sums.source_lines import CountedFunction, source_of

_HEAD = f"{'Line #':>6} {'Hits':>9} {'Time':>12} {'Per Hit':>8} {'% Time':>8}  Line Contents\n"


def lines_text(functions: Sequence[CountedFunction], unit_s: float = 1e-6, strip_zeros: bool = False) -> str:
    """Return the text; times are in units of `unit_s` seconds. `strip_zeros` leaves out functions that never ran."""
    parts = [f"Timer unit: {unit_s:g} s\n"]
    scale = 1e-9 / unit_s
    for each in sorted(functions, key=lambda each: (each.file, each.function_line or 0)):
        if strip_zeros and not each.lines:
            continue
        parts.append(f"\nTotal time: {each.total_ns / 1e9:g} s\nFile: {each.file}\n")
        parts.append(f"Function: {each.name} at line {each.function_line or min(each.lines, default=0)}\n\n")
        parts.append(_HEAD + "=" * (len(_HEAD) - 1) + "\n")
        source = source_of(each, 0)
        for number in sorted({*each.lines, *source.lines}):
            text = source.lines.get(number, "")
            hits, ns = each.lines.get(number, (0, 0))
            if number in each.lines:
                share = 100 * ns / each.total_ns if each.total_ns else 0.0
                per_hit = f"{ns * scale / hits:8.1f}" if hits else ""
                columns = f"{number:6} {hits:9} {ns * scale:12.1f} {per_hit:8} {share:8.1f}"
            else:
                columns = f"{number:6} {'':9} {'':12} {'':8} {'':8}"
            parts.append(f"{columns}  {text}".rstrip() + "\n")
    return "".join(parts)
