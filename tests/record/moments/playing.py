"""Programs in their moments: run alone, run with a recording in the middle, and compared."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from strobe.api.trace import open_trace
from strobe.errors import RecordError
from strobe.record.attach.attaching import attach
from strobe.record.options.all_options import combined, given_in_python, traced_adapters
from strobe.trace.after_run.closing import close_trace
from tests.record.moments.in_main_thread import IN_MAIN_THREAD
from tests.record.moments.moment import BEGIN, Moment
from tests.record.moments.of_the_rest import OF_THE_REST

_MPI = Path(__file__).parents[3] / ".venv/mpich/lib/libmpi.so.12"
MOMENTS = IN_MAIN_THREAD | OF_THE_REST


_MOST_COMPARED = 3000  # spans, each with each
_CROSSING = """
select count(*) as n from spans a join spans b using (location) where b.start_ns > a.start_ns
and b.start_ns < a.start_ns + a.duration_ns and b.start_ns + b.duration_ns > a.start_ns + a.duration_ns
"""


@dataclass(frozen=True)
class Outcome:
    """What a program printed, and how it ended."""

    output: str
    errors: str
    code: int


def play(
    moment: Moment,
    place: Path,
    visit: Callable[[int, Callable[[], None]], None] | None = None,
    python: str = sys.executable,
) -> Outcome:
    """Run a program in a folder of its own; `visit` is called in its moment with its process id, and with what lets it
    end, which is called afterwards in any case.
    """
    place.mkdir(parents=True, exist_ok=True)
    for name in ("READY", "DONE"):
        (place / name).unlink(missing_ok=True)
    (place / "program.py").write_text(BEGIN + moment.text + "\n", encoding="utf-8")
    named = {f"MOMENT_{name}": str(place / name) for name in ("READY", "DONE")} | {"MOMENT_MPI": str(_MPI)}
    environment = {name: text for name, text in os.environ.items() if not name.startswith("STROBE_")} | named
    files = [place / "output", place / "errors"]
    with (
        files[0].open("wb") as out,
        files[1].open("wb") as err,
        subprocess.Popen(
            [python, "program.py"], cwd=place, env=environment, stdin=subprocess.PIPE, stdout=out, stderr=err
        ) as process,
    ):
        end = time.monotonic() + 30
        while not (place / "READY").exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.002)

        def let_end() -> None:
            (place / "DONE").touch()

        try:
            if visit is not None:
                visit(process.pid, let_end)
            else:
                time.sleep(0.3)
        finally:
            let_end()
            process.communicate(b"a line\n", timeout=60)
    output, errors = (file.read_text(encoding="utf-8") for file in files)
    return Outcome(output.replace("x" * 1000 + "\n", ""), errors, process.returncode)


def trace_faults(folder: Path, moment: Moment) -> list[str]:
    """Return in words what is wrong with the trace of a program."""
    close_trace(folder)
    trace = open_trace(folder)
    faults = []
    if trace.unreadable:
        faults.append(f"unreadable: {trace.unreadable}")
    crossing = trace.sql(_CROSSING).to_pylist()[0]["n"] if trace.span_count < _MOST_COMPARED else 0
    if crossing:
        faults.append(f"{crossing} spans that do not nest")
    ticks = trace.sql("select count(*) as n from totals where name = 'tick'").to_pylist()[0]["n"]
    if moment.ticks and not ticks:
        faults.append("no call of tick")
    states = {row["end_state"] for row in trace.sql("select end_state from processes").to_pylist()}
    if not (moment.ends or moment.kills) and "lost" in states:
        faults.append(f"end states {states}")
    return faults


def attached_faults(moment: Moment, alone: Outcome, place: Path, for_ns: int = 300_000_000) -> list[str]:
    """Run a program with a recording in its middle; return in words what was not as without it, and in the trace."""
    folders, faults = [], []

    def visit(pid: int, let_end: Callable[[], None]) -> None:
        given: dict[str, object] = {"output": str(place / "t"), "quiet": True, "keep": "all"}
        settings = combined([given_in_python(given)])
        try:
            done = attach(
                [pid],
                str(place / "t"),
                adapters=traced_adapters(settings),
                options=settings,
                steps=0,
                for_ns=100 * for_ns if moment.ends else for_ns,
                wait_s=20.0,
                begun=lambda *_: (time.sleep(0.2), let_end()) if moment.ends else None,
            )
        except RecordError as error:
            if not moment.refused or moment.refused not in str(error):
                faults.append(f"refused: {error}")
        else:
            folders.append(Path(done.folder))
            faults.extend(done.endings if not moment.ends else ())

    attached = play(moment, place, visit)
    if attached != alone:
        faults.append(f"{str(attached)[:400]} instead of {str(alone)[:400]}")
    if attached.code != moment.code:
        faults.append(f"exit code {attached.code}")
    for folder in folders:
        faults += trace_faults(folder, moment)
    return faults
