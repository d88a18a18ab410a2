"""Files that their own tool converts: programs of the test stand in for the tools."""

import gzip
import os
import time
from pathlib import Path

import pytest

from strobe.formats.reading.conversion import INPUT, OUTPUT, converted
from strobe.formats.reading.inputs import inputs_of


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a program `tool` that is found first; the test writes its text."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    path = folder / "tool"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a $(touch pwned) file"
    path.write_text("content")
    return path


def test_what_a_tool_prints_or_writes_is_read(tool: Path, file: Path) -> None:
    tool.write_text('#!/bin/sh\nif [ "$1" = -o ]; then cat "$3" > "$2"; else echo printed; cat "$1"; fi\n')
    source = inputs_of(file)[0]
    with converted(source, ["tool", INPUT], ".txt") as printed:
        assert b"".join(printed.chunks()) == b"printed\ncontent"
    assert not printed.path.exists()
    with converted(source, ["tool", "-o", OUTPUT, INPUT], ".sqlite") as written:
        assert written.local_path().suffix == ".sqlite"
        assert b"".join(written.chunks()) == b"content"
    assert not written.path.exists()
    assert not (file.parent / "pwned").exists()


@pytest.mark.parametrize("packed", [False, True])
def test_a_tool_that_asks_for_a_name_gets_it(tool: Path, file: Path, packed: bool) -> None:
    tool.write_text('#!/bin/sh\ncase "$1" in *.rec) cat "$1";; esac\n')
    if packed:
        file.write_bytes(gzip.compress(b"content"))
    source = inputs_of(file)[0]
    with converted(source, ["tool", INPUT], ".txt", named=".rec") as printed:
        assert b"".join(printed.chunks()) == b"content"
    source.close()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("echo 'no such version' >&2; echo more >&2; exit 3", "tool failed: no such version;"),
        ("exit 3", "tool failed;"),
        ("exit 0", "tool wrote nothing;"),
        ("sleep 60", "tool took longer than 0.2 s;"),
    ],
)
def test_a_tool_that_does_not_do_it_is_named_with_the_command(tool: Path, file: Path, text: str, reason: str) -> None:
    tool.write_text(f"#!/bin/sh\n{text}\n")
    begun_s = time.monotonic()
    with (
        pytest.raises(ValueError, match="to see more, type: tool ") as refused,
        converted(inputs_of(file)[0], ["tool", "-o", OUTPUT, INPUT], ".sqlite", longest_s=0.2),
    ):
        pass
    assert reason in str(refused.value)
    assert f"tool -o '{file}.sqlite' '{file}'" in str(refused.value)
    assert time.monotonic() - begun_s < 30


def test_a_tool_that_is_not_installed_is_named_with_the_command(file: Path) -> None:
    with (
        pytest.raises(ValueError, match="it needs no-such-tool, which is not installed here") as refused,
        converted(inputs_of(file)[0], ["no-such-tool", INPUT], ".txt"),
    ):
        pass
    assert f"type: no-such-tool '{file}' > '{file}.txt'" in str(refused.value)


def test_a_tool_ends_with_the_import_that_is_stopped(tool: Path, file: Path) -> None:
    tool.write_text("#!/bin/sh\nsleep 60\n")
    source = inputs_of(file)[0]
    source.tick = lambda _: False
    with pytest.raises(ValueError, match="tool was stopped"), converted(source, ["tool", INPUT], ".txt"):
        pass


def test_what_a_tool_made_is_read_until_the_import_is_stopped(tool: Path, file: Path) -> None:
    tool.write_text("#!/bin/sh\nhead -c 1000000 /dev/zero\n")
    source = inputs_of(file)[0]
    with converted(source, ["tool", INPUT], ".txt") as printed:
        source.tick = lambda _: False
        assert sum(map(len, printed.chunks())) < 1_000_000
