"""What reaches a terminal: names in traces come from anybody, and must not command it."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path

import pytest

from strobe import registry
from strobe.api.trace import open_trace
from strobe.cli.main import main, spelled
from strobe.model.terminal import visible, visible_line
from strobe.present.html_parts import escape

# They change something in a terminal: the clipboard, its title, colours, C1, the order of letters, nothing at all.
EVIL = "\x1b]52;c;ZXZpbA==\x07 \x1b]0;title\x07 \x1b[31m \x9b31m \u202e\u2066 \u200b\ufeff \x7f\b\x00\rover\ue000"
WORD = EVIL.replace("\x00", "")  # no command line has a NUL
OURS = re.compile("\x1b\\[[01]m")  # bold headings
PROGRESS = re.compile("\r(importing|generating| +\r)")
RUN = """
import json, sys
from strobe.cli.main import main
for words in json.loads(sys.argv[1]):
    print("%%%", " ".join(words).encode("unicode_escape").decode(), flush=True)
    try:
        code = main(words)
    except SystemExit as ended:
        code = ended.code
    print("%%% ended with", code, flush=True)
"""


def evil_file(folder: Path) -> Path:
    """Return a file of another tool: twenty steps with operators and kernels, and every text an evil one."""
    events: list[dict[str, object]] = [
        {"ph": "M", "pid": 1, "tid": 1, "name": "process_name", "args": {"name": f"program {EVIL}"}},
        {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": f"thread {EVIL}"}},
    ]
    for step in range(20):
        at = 1000 * step
        whole = {"ph": "X", "pid": 1, "tid": 1, "name": f"ProfilerStep#{step}", "cat": "user_annotation"}
        events.append({**whole, "ts": at, "dur": 900})
        for number, kind in enumerate(("python_function", "cpu_op", "cuda_runtime", "user_annotation")):
            about = {"file": f"file {EVIL}", EVIL: EVIL, "External id": number, "correlation": 10 * step + number}
            event = {"ph": "X", "pid": 1, "tid": 1, "name": f"{kind} {EVIL}", "cat": kind, "args": about}
            events.append({**event, "ts": at + 10 + 200 * number, "dur": 150})
        kernel = {"ph": "X", "pid": 0, "tid": 7, "name": f"kernel {EVIL}", "cat": "kernel", "ts": at + 500, "dur": 90}
        events.append({**kernel, "args": {"device": 0, "stream": 7, "correlation": 10 * step + 2}})
    path = folder / "evil \x1b[31m\u202e.json"
    path.write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": 0}}), encoding="utf-8")
    return path


def shown(words: list[list[str]], folder: Path, columns: int = 120) -> str:
    """Return what a terminal gets from some commands."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "STROBE_CACHE": str(folder / "cache")}
    command = [sys.executable, "-c", RUN, json.dumps(words)]
    read = b""
    with subprocess.Popen(command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs):
        os.close(theirs)
        with suppress(OSError):  # the terminal has been closed
            while part := os.read(ours, 1 << 16):
                read += part
    os.close(ours)
    return read.decode().replace("\r\n", "\n")  # as the terminal driver ends lines


def commands(text: str) -> set[str]:
    """Return the characters of a text that a terminal obeys, or that cannot be seen."""
    ours = PROGRESS.sub("", OURS.sub("", text))
    obeyed = ("Cc", "Cf", "Zl", "Zp", "Co")
    return {each for each in ours if each not in "\n\t" and unicodedata.category(each) in obeyed}


def test_no_verb_sends_a_terminal_a_command_from_a_trace(tmp_path: Path) -> None:
    file = str(evil_file(tmp_path))
    others = [file, f"nothing {WORD}"]
    verbs = {
        "import": [file],
        "summary": [file],
        "snapshot": [file],
        "sql": [file, "select * from regions"],
        "view": others[1:],
        "clocks": [file],
        "export": [file, "-o", f"out {WORD}.csv"],
        "cut": [file, "-o", "cut\x1b[31m", "--time", "1ms-9ms"],
        "filter": [file],
        "generate": [file, "-o", "made\x1b[31m", "--ranks", "2", "--spans", "100"],
        "check": ["--baseline", *others],
        "bench": others[1:],
        "metrics": others[1:],
        "run": [f"nothing {WORD}.py"],
        "config": others[1:],
        "doctor": ["folder\x1b[31m"],
        "cc": others[1:],
        "mcp": others[1:],
        "job": ["record", "--for", "1s", "--trace", *others[1:]],
        "repair": [file],
        "attach": others[1:],
        "sample": others[1:],
        "top": [file],
    }
    assert sorted(verbs) == sorted(registry.names("cli.verbs"))
    words = [[verb, *rest] for verb, rest in verbs.items()]
    words += [[spelled(name), file] for name in registry.names("analyses")]
    words += [["profile", file, f"--{form}"] for form in ("json", "csv")] + [["summary", file, "--format", "nvprof"]]
    words += [["ranges", file, "--where", WORD], ["ranges", file, "--columns", WORD], [file, "operators"]]
    text = shown(words, tmp_path)
    assert "Traceback" not in text
    assert text.count("%%% ended with") == len(words)
    assert text.count("%%% ended with 0") > len(registry.names("analyses"))
    parts = dict(zip((" ".join(each[:1] + each[2:]) for each in words), text.split("\n%%% ended with"), strict=False))
    assert {name: sorted(found) for name, part in parts.items() if (found := commands(part))} == {}
    for verb in ("summary", "profile", "kernels", "snapshot"):
        assert r"\x1b" in parts[verb], verb


def test_columns_are_as_wide_as_what_is_shown_of_their_names(tmp_path: Path) -> None:
    text = shown([["kernels", str(evil_file(tmp_path)), "--columns", "name,calls"]], tmp_path, 400)
    heading, row = (line for line in OURS.sub("", text).splitlines() if line.startswith(("name ", "kernel ")))
    assert heading.endswith("calls")
    assert len(heading) == len(row)


def test_data_in_a_pipe_is_exact_and_text_is_visible(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(evil_file(tmp_path))
    name = next(each for each in open_trace(file).kernels().column("name") if str(each).startswith("kernel"))
    assert "\x1b" in str(name)
    assert main(["kernels", file, "--columns", "name", "--csv"]) == 0
    assert str(name) in capsys.readouterr().out
    assert main(["kernels", file, "--columns", "name", "--json"]) == 0
    assert [row["name"] for row in json.load(io.StringIO(capsys.readouterr().out))["rows"]] == [name]
    assert main(["kernels", file, "--columns", "name"]) == 0  # it may end at a terminal: strobe kernels | head
    assert capsys.readouterr().out.splitlines()[1] == visible_line(str(name))


def test_what_can_be_seen_stays_as_it_is() -> None:
    for text in ("größer als 日本 → µs 🙂", "a\tb\nc", "", "\\x1b"):
        assert visible(text) == text
    assert visible("\udc80\u2028\x85") == r"\udc80\u2028\x85"
    assert visible_line("one\ttwo\nthree") == "one two three"
    assert escape("<\u202e\x1b>") == r"&lt;\u202e\x1b&gt;"
