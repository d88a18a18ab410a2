"""Real programs, started plainly and under `strobe run`, in a folder of their own."""

import contextlib
import importlib.metadata
import os
import pty
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy

import strobe

STROBE = str(Path(sys.executable).with_name("strobe"))
TIMEOUT_S = 120


@dataclass(frozen=True)
class Outcome:
    """What a program left behind: its streams, how it ended, and its trace where there is one."""

    stdout: str
    stderr: str
    returncode: int
    trace: Path

    @property
    def visible(self) -> tuple[str, str, int]:
        """Everything that a user of the program can see of it."""
        return self.stdout, self.stderr, self.returncode


def nvtx_headers() -> Path:
    """The folder of the genuine NVTX's headers."""
    files = importlib.metadata.files("nvidia-nvtx") or []
    (found,) = (file for file in files if file.name == "nvToolsExtPayload.h")
    return Path(str(found.locate())).parents[1]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The tests' own environment without anything that would change a recording."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("STROBE_", "PYTEST_", "COVERAGE"))}
    # What is counted here are spans: none become statistics or are left out, unless a test asks for it.
    return {**kept, "STROBE_KEEP": "all", "STROBE_THROTTLE": "off", **(extra or {})}


class Workshop:
    """A folder with programs in it, and the two ways to start one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.trace = folder / "out.strobe"

    def write(self, name: str, code: str) -> Path:
        """A file of the program's folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(code), encoding="utf-8")
        return path

    def command(self, *words: str) -> list[str]:
        """`strobe run` without its summary, so that stderr is the program's own."""
        return [STROBE, "run", "--quiet", "-o", str(self.trace), *words]

    def plain(self, *words: str, **options: object) -> Outcome:
        """What `python WORDS` does; a leading `--` means that the words are a command of their own."""
        return self._finish([*words[1:]] if words[0] == "--" else [sys.executable, *words], **options)

    def recorded(self, *words: str, **options: object) -> Outcome:
        """What `strobe run WORDS` does."""
        return self._finish(self.command(*words), **options)

    def _finish(
        self,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        before: Callable[[], None] | None = None,
    ) -> Outcome:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment(env),
            input=stdin,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=TIMEOUT_S,
            preexec_fn=before,
        )
        return Outcome(done.stdout, done.stderr, done.returncode, self.trace)

    def start(self, *words: str, env: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        """`strobe run WORDS` in a process group of its own, still running; it prints `ready` when it is."""
        return self._start(self.command(*words), env)

    def start_plain(self, *words: str, env: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        """The same without strobe."""
        return self._start([sys.executable, *words], env)

    def start_in_terminal(self, *words: str) -> "Terminal":
        """`strobe run WORDS` as the foreground job of a terminal of its own, once it has printed `ready`."""
        return Terminal(self.command(*words), self.folder)

    def _start(self, command: Sequence[str], env: Mapping[str, str] | None) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("ready"), (line, process.communicate(timeout=TIMEOUT_S))
        return process


class Terminal:
    """A command on a pseudo terminal, where Ctrl-C is what a person types: the kernel signals the whole group."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], list(command), environment())
        self.text = ""
        self.read_until("ready\r\n")  # the whole line: the interrupt must not fall into its print

    def read_until(self, word: str) -> None:
        """Wait until the program has printed a word."""
        while word not in self.text:
            self.text += os.read(self._master, 4096).decode()

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._master, keys)

    def finish(self) -> int:
        """Read what is still to come; return the exit code, negative for a signal."""
        with contextlib.suppress(OSError):  # EIO: the other side is closed
            while chunk := os.read(self._master, 4096):
                self.text += chunk.decode()
        os.close(self._master)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def spans_of(trace: Path, function: str) -> int:
    """How many executions of a Python function a trace holds, over all its processes."""
    opened = strobe.open(trace)
    wanted = [number for number, name in names_of_regions(opened).items() if name == function]
    locations = range(len(opened.locations))
    return sum(int(numpy.isin(opened.span_arrays(location)["region"], wanted).sum()) for location in locations)


def functions_of_processes(trace: Path) -> list[set[str]]:
    """For every recorded process that ran something, the functions that ran in it."""
    opened = strobe.open(trace)
    names = names_of_regions(opened)
    found: dict[object, set[str]] = {}
    for location, process in enumerate(opened.locations.column("process")):
        for number in numpy.unique(opened.span_arrays(location)["region"]).tolist():
            found.setdefault(process, set()).add(names[number])
    return list(found.values())


def names_of_regions(opened: strobe.Trace) -> dict[int, str]:
    """The names of all regions, Python functions without their classes."""
    columns = (opened.regions.column(name) for name in ("region", "name"))
    return {int(number): str(name).rpartition(".")[2] for number, name in zip(*columns, strict=True)}


def quality_of(trace: Path, what: str) -> int:
    """Sum of one number of the quality table over all processes."""
    table = strobe.open(trace).sql(f"select coalesce(sum(value), 0)::bigint as n from quality where what = '{what}'")
    return int(table.to_pylist()[0]["n"])
