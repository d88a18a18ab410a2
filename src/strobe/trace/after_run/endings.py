"""How processes ended, in words."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from strobe.model.units import format_ns
from strobe.trace.archive import Job, whole_number
from strobe.trace.info import LEFT, STILL_RUNNING
from strobe.trace.processes.process_facts import ProcessFacts


def endings(processes: Sequence[ProcessFacts], programs: Sequence[str], job: Job, zero_ns: int) -> list[str]:
    """Return in words how each process ended, and until when it is recorded (ns since the trace's zero).

    programs: what each became by exec, or "".
    """
    return [_ending(*each, job, zero_ns) for each in zip(processes, programs, strict=True)]


def _ending(process: ProcessFacts, program: str, job: Job, zero_ns: int) -> str:
    state = process.get("end_state", "")
    until = format_ns(max(0, process.get("ended_ns", 0) - zero_ns))
    code = process.get("exit_code")
    killed = _signal_name(job) if process.get("main") else ""
    failure = process.get("failure", "")
    if code is None and process.get("main"):
        code = whole_number(job.ended.get("exit_code"))
    if failure:
        how = f"ended with exit code {code}" if code is not None else f"killed by {killed}" if killed else "ended"
        until = format_ns(max(0, process.get("failed_ns", 0) - zero_ns))
        return f"{how}; recording had stopped: {failure}; complete up to {until}"
    if state == "closed":
        return f"ended with exit code {code}" if code is not None else "ended"
    if state == "left":
        return f"ran on when this trace was written; complete up to {until}" if job.flight else LEFT
    if state == "exited":
        shown = f" with exit code {code}" if code is not None else ""
        return f"left by os._exit{shown}; complete up to {until}"
    if state == "running":
        return f"{STILL_RUNNING}; complete up to {until}"
    if state == "cut":
        how = f"ended with exit code {code}" if code is not None else f"killed by {killed}" if killed else "ended"
        return f"{how}; the end of its file is damaged or missing; recorded up to {until}"
    if program:
        return f"became {program}; complete up to {until}"
    if killed:
        return f"killed by {killed}; complete up to {until}"
    return f"ended without a word (killed or crashed); complete up to {until}"


def _signal_name(job: Job) -> str:
    number = whole_number(job.ended.get("signal"))
    if not number:
        return ""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
