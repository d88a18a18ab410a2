"""Who opens a large file is told what takes most time in it long before its end is read."""

import json
import re

import pytest

from strobe.api import imports
from strobe.formats.reading import progress

KERNEL = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7}
ROUNDS = 40_000
LINE = re.compile(r"^ +([\d.]+ \w+) +([\d ]+) x  (\w+) +(.+)$", re.MULTILINE)


def write_trace(path, long="long"):
    """A kernel of 30 us, one of 10 us, and an operator of 1 us around a smaller one, over and over."""
    events = []
    for i in range(ROUNDS):
        at = 100 * i
        events += [
            KERNEL | {"name": long, "ts": at, "dur": 30},
            KERNEL | {"name": "short", "ts": at + 40, "dur": 10},
            {"ph": "X", "cat": "cpu_op", "name": "aten::outer", "pid": 1, "tid": 1, "ts": at, "dur": 1},
            {"ph": "X", "cat": "cpu_op", "name": "aten::inner", "pid": 1, "tid": 1, "ts": at, "dur": 0.5},
        ]
    path.write_text(json.dumps({"traceEvents": events}))


def seconds(text):
    number, unit = text.split()
    return float(number) * {"s": 1.0, "ms": 1e-3, "us": 1e-6}[unit]


def test_a_partial_answer_comes_before_the_end_and_counts_what_was_read(tmp_path, monkeypatch, capsys):
    write_trace(tmp_path / "large.json")
    monkeypatch.setattr(progress, "FIRST_ANSWER_S", 1e-9)  # as if every piece took long
    folder = imports.opened(tmp_path / "large.json")
    told = capsys.readouterr().err
    answers = told.split("strobe: ")[1:]
    assert len(answers) > 2
    for answer in answers:
        assert int(re.match(r"(\d+)%", answer)[1]) <= 100  # 99.6 % are told as 100
        lines = LINE.findall(answer)
        assert [name for *_, name in lines] == ["long", "short", "aten::outer", "aten::inner"]  # devices first
        counts = [int(count.replace(" ", "")) for _, count, *_ in lines]
        assert 0 < counts[0] <= ROUNDS
        assert max(counts) - min(counts) <= 1
        assert int(re.search(r"read, ([\d ]+) spans", answer)[1].replace(" ", "")) == sum(counts)
        for (time, _, role, _), count, each in zip(lines, counts, [30e-6, 10e-6, 1e-6, 0.5e-6], strict=True):
            assert seconds(time) == pytest.approx(count * each, rel=5e-3)
            assert role == ("kernel" if each >= 10e-6 else "operator")
    shown = [int(re.search(r"read, ([\d ]+) spans", answer)[1].replace(" ", "")) for answer in answers]
    assert shown == sorted(set(shown))
    assert shown[-1] < 4 * ROUNDS
    assert folder.is_dir()


def test_small_files_and_silent_imports_say_nothing(tmp_path, monkeypatch, capsys):
    write_trace(tmp_path / "quiet.json")
    imports.opened(tmp_path / "quiet.json")
    monkeypatch.setattr(progress, "FIRST_ANSWER_S", 1e-9)
    (tmp_path / "other.json").write_text((tmp_path / "quiet.json").read_text())
    imports.opened(tmp_path / "other.json", talk=False)
    assert capsys.readouterr().err == ""


def test_names_that_a_terminal_would_obey_are_shown_as_escapes(tmp_path, monkeypatch, capsys):
    write_trace(tmp_path / "hostile.json", long="\x1b]0;owned\x07")
    monkeypatch.setattr(progress, "FIRST_ANSWER_S", 1e-9)
    imports.opened(tmp_path / "hostile.json")
    told = capsys.readouterr().err
    assert "owned" in told
    assert "\x1b" not in told
