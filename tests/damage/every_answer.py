"""Every question to a trace: all analyses, all routes of the server, all verbs that read one. A finding is a text."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import strobe
from strobe import registry
from strobe.api import exports
from strobe.cli.main import main
from strobe.errors import StrobeError
from strobe.model.option import Option
from strobe.server.routing.bodies import Body
from strobe.server.routing.endpoints import highest
from strobe.server.routing.routes import endpoints
from strobe.server.trace_context import TraceContext
from strobe.tables.table import Table
from strobe.trace import archive
from strobe.trace.quality import counters

# The questions that answer most of the others' causes: what the short test asks.
MAIN = ("info", "steps", "profile", "operators", "structure", "breakdown", "samples", "idle", "waits", "what_if")
MOST_S = 30.0
_TEXTS = {"query": "SELECT count(*), sum(duration_ns) FROM spans", "of": "group.host", "name": "backward"}
# Verbs that read no recorded trace, serve one until they are stopped, or run a program.
_ELSEWHERE = {
    "bench",
    "cc",
    "config",
    "doctor",
    "filter",
    "generate",
    "import",
    "job",
    "mcp",
    "metrics",
    "run",
    "sample",
    "top",
    "view",
}
# What describes the files rather than the run.
_OF_FILES = ("size", "size_bytes")
_COLUMN_OF_FILES = {"score": "bytes"}
_WITH_SIZES = ("route meta", "route report", "route summary")
_WITH_QUALITY = ("route report",)  # has the damaged chunks of the quality table, also where nothing is lost


@dataclass
class Answers:
    """The answers to every question, as digests; `wrong`: what ended in anything but an answer or one sentence."""

    digests: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    lost: str = ""  # as `strobe info` states it
    refused: bool = False
    chunks_damaged: int = 0
    sizes: list[int] = field(default_factory=list)  # of the files, before and after: tiles may be made anew

    def ask(self, what: str, answer: Callable[[], object]) -> object:
        """Ask one question; return the answer, None where there is none."""
        begun = time.monotonic()
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always", RuntimeWarning)
                found = answer()
            self.wrong.extend(
                f"{what}: warning: {str(each.message)[:200]} at {each.filename}:{each.lineno}"
                for each in warned
                if issubclass(each.category, RuntimeWarning)
            )
        except StrobeError as error:
            if len(str(error)) > 2000:
                self.wrong.append(f"{what}: no sentence: {str(error)[:300]}")
            found = f"refused: {error}"
        except Exception as error:
            self.wrong.append(f"{what}: {_place(error)}")
            return None
        if time.monotonic() - begun > MOST_S:
            self.wrong.append(f"{what}: took {time.monotonic() - begun:.0f} s")
        self.digests[what] = _digest(found)
        return found

    def differing(self, sound: Answers) -> list[str]:
        """Return the questions whose answers are not those of the sound trace; a changed size is no other figure."""
        sized = _WITH_SIZES if self.sizes != sound.sizes else _WITH_QUALITY if self.chunks_damaged else ("\0",)
        changed = [what for what, digest in self.digests.items() if sound.digests.get(what) != digest]
        return [what for what in changed if not what.startswith(sized)]


def findings(
    folder: Path, sound: Answers | None = None, *, all_of_them: bool = True, verbs: tuple[int, int] = (0, 1)
) -> list[str]:
    """Ask a trace everything; return what went wrong, a text each.

    `verbs`: the first that is tried, and every how many.

    `sound`: the answers of the trace before it was damaged. Where any differ, `strobe info` must state a loss.
    """
    found = answers_of(folder, all_of_them=all_of_them, verbs=verbs)
    if sound and not found.refused and found.lost == "nothing" and (differing := found.differing(sound)):
        found.wrong.append(f"figures differ and no loss is stated: {', '.join(sorted(differing)[:5])}")
    return found.wrong


def answers_of(folder: Path, *, all_of_them: bool = True, verbs: tuple[int, int] = (0, 1)) -> Answers:
    """Ask a trace everything, or the questions of the short test."""
    found = Answers()
    try:
        trace = strobe.open(folder)
    except StrobeError as error:
        found.refused = True  # in a sentence
        found.digests["open"] = str(error)
        return found
    except Exception as error:
        found.wrong.append(f"open: {_place(error)}")
        return found
    with trace:
        found.sizes = _sizes(folder)
        for name in registry.names("analyses") if all_of_them else MAIN:
            if name not in ("compare", "info"):  # compare asks for another trace
                found.ask(name, lambda name=name: _of_the_run(name, trace.ask(name)))  # type: ignore[misc]
        found.ask("sql", lambda: trace.sql("SELECT count(*), sum(duration_ns), max(parent) FROM spans"))
        context = TraceContext(trace, folder)
        for endpoint in endpoints():
            if endpoint.name.startswith("table/") or (endpoint.name == "sql" and not all_of_them):
                continue  # asked above
            for number, pairs in enumerate(_requests(context, endpoint.parameters)):
                found.ask(
                    f"route {endpoint.name} {number}",
                    lambda endpoint=endpoint, pairs=pairs: endpoint.body(  # type: ignore[misc]
                        context, endpoint.values(context, pairs)
                    ),
                )
        facts = found.ask("info", lambda: {k: v for k, v in trace.ask("info").rows() if k not in _OF_FILES})
        found.lost = str(facts["lost"]) if isinstance(facts, dict) else ""
        found.chunks_damaged = counters(trace)["chunks_damaged"]
        found.sizes += _sizes(folder)
    with tempfile.TemporaryDirectory(prefix="strobe-verbs-") as work:
        asked = islice(_verbs(folder, Path(work)), verbs[0], None, verbs[1])
        for verb, words in asked if all_of_them else [("summary", ["summary", str(folder)])]:
            code, text = _printed(words)
            if code not in (0, 2, 3, 4) or "Traceback" in text:
                found.wrong.append(f"strobe {verb}: exit code {code}: {text[-300:]}")
    return found


def _verbs(folder: Path, work: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the words of every verb that reads a trace: those of analyses are asked for above, but for a few."""
    trace, more = (
        os.fspath(folder),
        {
            "check": ["--baseline", os.fspath(work / "baseline.json"), "--save"],
            "cut": ["-o", os.fspath(work / "cut"), "--anonymise"],
            "repair": ["-o", os.fspath(work / "repaired")],
        },
    )
    for verb in registry.names("cli.verbs"):
        if verb == "sql":
            yield verb, [verb, _TEXTS["query"], trace]
        elif verb == "export":
            for name in exports.writers():
                yield f"{verb} {name}", [verb, trace, "--to", name, "-o", os.fspath(work / name)]
        elif verb not in _ELSEWHERE:
            yield verb, [verb, trace, *more.get(verb, [])]
    for verb in ("info", "steps", "compare"):
        yield verb, [verb, trace, *([trace] if verb == "compare" else [])]


def _sizes(folder: Path) -> list[int]:
    return [size for _, size, _ in archive.states(folder)]


def _of_the_run(name: str, table: Table) -> Table:
    """Return an answer without the column that describes the files."""
    return table.select([column for column in table.columns if column != _COLUMN_OF_FILES.get(name)])


def _digest(answer: object) -> str:
    if isinstance(answer, Table):
        text = repr((answer.columns, sorted(map(repr, answer.rows()))))
    elif isinstance(answer, Body):
        text = repr(bytes(answer.data))
    else:
        text = repr(answer)
    return hashlib.sha256(text.encode()).hexdigest()


def _requests(context: TraceContext, parameters: tuple[Option, ...]) -> Iterator[list[tuple[str, str]]]:
    """Yield requests of a route: the whole run, of the first and of the last thing that is asked for."""
    begin, end = context.bounds
    for last in (False, True):
        pairs = []
        for each in parameters:
            if not each.required:
                continue
            most = highest(each, context) if each.of else each.least + (1 if last else 0)
            value = str(max(0, most) if last else each.least)
            if each.name in _TEXTS:
                value = _TEXTS[each.name]
            elif each.choices:
                value = each.choices[-1 if last else 0]
            elif each.name == "start_ns":
                value = str(max(0, begin))
            elif each.name == "end_ns":
                value = str(max(1, end))
            elif each.name in ("at_ns", "time_ns"):
                value = str(max(0, (begin + end) // 2))
            elif each.name == "level":
                value = "20"
            elif each.name in ("width", "bins"):
                value = "50"
            pairs.append((each.name, value))
        yield pairs


def _printed(words: list[str]) -> tuple[int, str]:
    out, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = main(words)
        except SystemExit as left:
            code = int(left.code or 0)
        except Exception as error:
            return 1, f"Traceback: {_place(error)}"
    texts = [each.buffer.getvalue().decode() for each in (out, errors) if isinstance(each.buffer, io.BytesIO)]
    return code, "".join(texts)


def _place(error: Exception) -> str:
    frames = [each for each in traceback.extract_tb(error.__traceback__) if "/strobe/" in each.filename]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} at {where}: {str(error)[:200]}"
