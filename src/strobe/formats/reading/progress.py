"""The progress of reading a large file on stderr: a bar if that is a terminal, and partial answers."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from strobe import native
from strobe.model.kinds import ROLES
from strobe.model.terminal import show_progress, talk, visible_line
from strobe.model.units import format_bytes, format_count, format_ns

# Seconds until the first partial answer; each further one takes three times as long to come.
FIRST_ANSWER_S = 5.0
_EACH_KIND = 5  # regions shown, of those on a device and of the others
_NAME_LETTERS = 90
_DEVICE = ("kernel", "copy")


class Progress:
    """Shows the progress of an import into `folder`, and its partial answers. `talk`: whether to print anything."""

    def __init__(self, folder: Path, total_bytes: Callable[[], int], talk: bool) -> None:
        self._total, self._done = total_bytes, 0
        self._talk, self._bar = talk, talk and sys.stderr.isatty()
        self._begun_s = time.monotonic()
        self._shown_s = 0.0  # when the bar was drawn, 0: it is not on the screen
        self._answer_s = FIRST_ANSWER_S
        self._totals = native.ImportTotals(str(folder)) if talk else None

    def add(self, n: int) -> bool:
        """Take note of `n` more bytes (of the file as it lies on the disk) that are read; return True."""
        self._done += n
        now = time.monotonic()
        if self._talk and now - self._begun_s >= self._answer_s:
            self._answer_s *= 3
            self._answer()
        if self._bar and now - self._shown_s > 0.1 and now - self._begun_s > 0.3:
            self._shown_s = now
            total, part = self._part()
            show_progress(f"importing {format_bytes(total)} [{'#' * int(30 * part):30}] {part:4.0%} ")
        return True

    def end(self, why: str) -> None:
        """Remove the bar; `why`: a message if the import was stopped."""
        self._clear()
        self._totals = None
        if why:
            talk(f"import {why}")

    def _part(self) -> tuple[int, float]:
        total = max(self._total(), 1)
        return total, min(self._done / total, 1.0)

    def _clear(self) -> None:
        if self._shown_s:
            show_progress("")
            self._shown_s = 0.0

    def _answer(self) -> None:
        assert self._totals is not None
        found = [(name.decode("utf-8", "replace"), ROLES[role], n, ns) for name, role, n, ns in self._totals.regions()]
        if not found:
            return  # the beginning of the file may hold something else
        on_device = [each for each in found if each[1] in _DEVICE]
        others = [each for each in found if each[1] not in _DEVICE]
        total, part = self._part()
        lines = [
            f"{part:.0%} of {format_bytes(total)} read, {format_count(self._totals.span_count)} spans; "
            "most time so far, with what is called from there (Ctrl-C: stop here, and show what was read)"
        ]
        for name, role, count, total_ns in on_device[:_EACH_KIND] + others[:_EACH_KIND]:
            shown = visible_line(name[:_NAME_LETTERS])
            lines.append(f"  {format_ns(total_ns):>12} {format_count(count):>12} x  {role:10} {shown}")
        self._clear()
        talk("\n".join(lines))
