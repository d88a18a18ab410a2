"""The text of counted lines: as Python counts lines, and whatever has become of the file."""

from pathlib import Path

import pytest

from strobe.present.lines_text import lines_text
from strobe.sums.source_lines import CountedFunction, source_of

pytestmark = pytest.mark.every_python


def counted(path: Path, first: int, *lines: int) -> CountedFunction:
    return CountedFunction(str(path), "f", first, dict.fromkeys(lines, (0, 5)))


def test_a_form_feed_is_no_end_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("a = 1\n\x0c\ndef f():\n    x = '\x1c\u2028'\n    return x\n", encoding="utf-8")
    source = source_of(counted(path, 3, 4), 0)
    assert {number: text.split()[0] for number, text in source.lines.items()} == {3: "def", 4: "x", 5: "return"}


def test_a_file_that_is_not_what_it_was_shows_what_was_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    for text in ("x = (\n1,\n2\n", "def f():\n        a\n    b\n"):
        path.write_text(text, encoding="utf-8")
        assert [*source_of(counted(path, 1, 2), 0).lines][:2] == [1, 2]


def test_a_line_that_was_never_hit_has_no_time_per_hit(tmp_path: Path) -> None:
    shown = lines_text([counted(tmp_path / "gone.py", 1, 7)])
    assert shown.splitlines()[-1].split() == ["7", "0", "0.0", "100.0"]
