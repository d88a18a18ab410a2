"""Every question to a trace: all analyses, all routes of the server, the verbs that print. A finding is a text."""

from __future__ import annotations

import contextlib
import io
import os
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import strobe
from strobe import registry
from strobe.cli.main import main
from strobe.errors import StrobeError
from strobe.model.option import Option
from strobe.server.routing.endpoints import highest
from strobe.server.routing.routes import endpoints
from strobe.server.trace_context import TraceContext

# The questions that answer most of the others' causes: what the short test asks.
MAIN = ("info", "steps", "profile", "operators", "structure", "breakdown", "samples", "idle", "waits", "what_if")
_VERBS = ("summary", "snapshot", "info", "steps")
_TEXTS = {"query": "SELECT count(*), sum(duration_ns) FROM spans", "of": "group.host", "name": "backward"}


def findings(folder: Path, *, all_of_them: bool = True, stated: bool = True) -> list[str]:
    """Ask a trace everything; return what ended in anything but an answer or one sentence.

    `stated`: `strobe info` must name something that is lost.
    """
    wrong: list[str] = []

    def ask(what: str, answer: Callable[[], object]) -> object:
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always", RuntimeWarning)
                found = answer()
            wrong.extend(
                f"{what}: warning: {str(each.message)[:200]} at {each.filename}:{each.lineno}"
                for each in warned
                if issubclass(each.category, RuntimeWarning)
            )
            return found
        except StrobeError as error:
            if len(str(error)) > 2000:
                wrong.append(f"{what}: no sentence: {str(error)[:300]}")
        except Exception as error:
            wrong.append(f"{what}: {_place(error)}")
        return None

    try:
        trace = strobe.open(folder)
    except StrobeError:
        return []  # refused in a sentence
    except Exception as error:
        return [f"open: {_place(error)}"]
    with trace:
        for name in registry.names("analyses") if all_of_them else MAIN:
            if name != "compare":  # asks for another trace
                ask(name, lambda name=name: trace.ask(name))  # type: ignore[misc]
        ask("sql", lambda: trace.sql("SELECT count(*), sum(duration_ns), max(parent) FROM spans"))
        context = TraceContext(trace, folder)
        for endpoint in endpoints():
            if endpoint.name.startswith("table/") or (endpoint.name == "sql" and not all_of_them):
                continue  # asked above
            for pairs in _requests(context, endpoint.parameters):
                ask(
                    endpoint.name,
                    lambda endpoint=endpoint, pairs=pairs: endpoint.body(  # type: ignore[misc]
                        context, endpoint.values(context, pairs)
                    ),
                )
        facts = ask("lost", lambda: dict(trace.ask("info").rows()))
        # Cut between two chunks, a file is that of a process that was killed there.
        if stated and facts and facts["lost"] == "nothing" and "killed or crashed" not in str(trace.endings):
            wrong.append("the loss is not stated")
    for verb in _VERBS if all_of_them else ("summary",):
        code, text = _printed([verb, os.fspath(folder)])
        if code not in (0, 2, 3, 4):
            wrong.append(f"strobe {verb}: exit code {code}: {text[-300:]}")
    return wrong


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
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            code = main(words)
        except SystemExit as left:
            code = int(left.code or 0)
    return code, out.getvalue() + errors.getvalue()


def _place(error: Exception) -> str:
    frames = [each for each in traceback.extract_tb(error.__traceback__) if "/strobe/" in each.filename]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} at {where}: {str(error)[:200]}"
