"""What exports hold of a process so that it is read again as it was (native/formats/importing/exported_process.h)."""

from __future__ import annotations

from strobe.trace.definition_rows import Process
from strobe.trace.trace import Trace


def process_facts(trace: Trace, number: int, row: Process, zero_ns: int) -> dict[str, object]:
    """Return all that is known of a process (a `row` of the table), with times from `zero_ns` before the trace's."""
    facts = trace.readers[number].process()
    note = {key: value for key, value in (("rank", row.rank), ("ranks", facts.get("ranks"))) if value is not None}
    return {
        "pid": row.pid,
        "parent_pid": row.parent_pid,
        "description": {"argv": facts["argv"], "host": row.host, "python": row.python, "main": row.main},
        **({"note": note} if note else {}),
        "started_ns": row.started_ns + zero_ns,
        "ended_ns": row.ended_ns + zero_ns,
        "end_state": row.end_state,
        "exit_code": -1 if row.exit_code is None else row.exit_code,
    }
