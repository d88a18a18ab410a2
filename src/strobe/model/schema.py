"""Every table of a trace: columns, Arrow types, units, meaning. The one source; docs and the web's types are made
from it.

Times are integer nanoseconds since the trace's zero (`zero_ns` of job.json). Ids are global within a trace unless
said otherwise. A change here needs an entry in docs/format/CHANGELOG.md.
"""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Column:
    """One column: its Arrow type by name, the unit of its values ("" where there is none), and what it means.

    `extra` columns are the first to go where a terminal has no room for all.
    """

    name: str
    type: str
    unit: str
    meaning: str
    extra: bool = False


PROCESSES = (
    Column("process", "uint32", "", "id: 0 is the process that the user started"),
    Column("pid", "int64", "", "number the operating system gave it"),
    Column("parent_pid", "int64", "", "pid of its parent"),
    Column("main", "bool", "", "whether it is the program the user started"),
    Column("started_ns", "int64", "ns", "when recording began"),
    Column("ended_ns", "int64", "ns", "last moment known to be recorded"),
    Column("end_state", "string", "", "closed (orderly), exited (os._exit), lost (killed or crashed), running"),
    Column("exit_code", "int64", "", "exit code of the process, null where unknown"),
    Column("argv", "string", "", "command line"),
    Column("host", "string", "", "name of the machine"),
    Column("python", "string", "", "version of its Python"),
    Column("rank", "int64", "", "its rank in MPI_COMM_WORLD, null where it has none"),
)

LOCATIONS = (
    Column("location", "uint32", "", "id of the sequence of events (a thread, a stream)"),
    Column("process", "uint32", "", "process it belongs to"),
    Column("name", "string", "", "name of the thread"),
    Column("thread_id", "int64", "", "number the operating system gave the thread"),
    Column("kind", "string", "", "thread, stream"),
    Column("span_count", "int64", "", "spans recorded in it"),
    Column("first_ns", "int64", "ns", "start of its first span"),
    Column("last_ns", "int64", "ns", "end of its last span"),
)

REGIONS = (
    Column("region", "uint32", "", "id"),
    Column("name", "string", "", "name of the function, operator, range"),
    Column("paradigm", "string", "", "who reported it: one of PARADIGMS in model/kinds.py"),
    Column(
        "role",
        "string",
        "",
        "what it is: one of ROLES",
    ),
    Column(
        "group",
        "string",
        "",
        "what it is summed and coloured as: one of GROUPS",
    ),
    Column("file", "string", "", "source file, empty where unknown"),
    Column("line", "uint32", "", "first line of the definition, 0 where unknown"),
    Column("module", "string", "", "module or library"),
)

CALL_PATHS = (
    Column("call_path", "uint32", "", "id of the chain of regions from the root"),
    Column("parent", "uint32", "", "call path without its last region, null at the root"),
    Column("region", "uint32", "", "last region of the chain"),
    Column("depth", "uint16", "", "regions above it: 0 at the root"),
)

SPANS = (
    Column("location", "uint32", "", "where it ran"),
    Column("row", "int64", "", "number of the span in its location, in order of start; (location, row) is its id"),
    Column("start_ns", "int64", "ns", "start"),
    Column("duration_ns", "int64", "ns", "end minus start"),
    Column(
        "self_ns",
        "int64",
        "ns",
        "duration minus the durations of the spans directly inside it; holds what was folded there (see statistics)",
    ),
    Column("region", "uint32", "", "what was executed"),
    Column("call_path", "uint32", "", "its region and all regions around it"),
    Column("depth", "uint16", "", "number of spans around it"),
    Column("parent", "int64", "", "row of the span directly around it, null at the root"),
    Column("complete", "bool", "", "false where it was still open when recording ended: then it is cut there"),
)

METRICS = (
    Column("metric", "string", "", "name"),
    Column("process", "uint32", "", "process that was measured"),
    Column("location", "uint32", "", "location that was measured, null for the whole process"),
    Column("time_ns", "int64", "ns", "when it was read"),
    Column("value", "float64", "", "reading, in the unit of the column `unit`"),
    Column("unit", "string", "", "unit of the value"),
)

STEPS = (
    Column("process", "uint32", "", "process that runs the loop", extra=True),
    Column("step", "int64", "", "number of the step in its process, from 0"),
    Column(
        "start_ns", "int64", "ns", "when the program asked for the step's data, or the loop's body began", extra=True
    ),
    Column("duration_ns", "int64", "ns", "until the next step begins, or the loop's body ends"),
    Column("class", "string", "", "path through the loop: train, train+validation, ...; partial if cut off"),
    Column("data_wait_ns", "int64", "ns", "waiting for data"),
    Column("forward_ns", "int64", "ns", "forward operators, those of a validation too"),
    Column("backward_ns", "int64", "ns", "backward pass"),
    Column("optimizer_ns", "int64", "ns", "optimizer: update and zeroing of gradients"),
    Column("rest_ns", "int64", "ns", "everything else; the five parts add up to the duration"),
    Column("steady", "bool", "", "false for the slow steps of the warm-up and for steps that are cut off", extra=True),
    Column("outlier", "bool", "", "takes much longer than its class usually does"),
    Column("cause", "string", "", "of a slow step: the part that exceeds its median the most (its column without _ns)"),
    Column("loop", "uint32", "", "main loop that it is an iteration of, see `loops`: the phase of the run", extra=True),
    Column(
        "detail",
        "string",
        "",
        "all (its spans are there), part (some are, those of its end), none (folded into statistics)",
    ),
    Column(
        "drift",
        "float64",
        "",
        "by how much its class has changed for good by then, as a part of what it began with",
        extra=True,
    ),
    Column(
        "events",
        "uint32",
        "",
        "events in it that loops are looked for in, null where it was not recorded as a step",
        extra=True,
    ),
    Column(
        "path_hash",
        "uint64",
        "",
        "equal where the same events came in the same order, null where `events` is",
        extra=True,
    ),
)

LOOPS = (
    Column("process", "uint32", "", "process that runs the loop", extra=True),
    Column("loop", "uint32", "", "number of the loop in its process, in order of time"),
    Column("kind", "string", "", "what marks a step: hint, range, optimizer, zero_grad, data_wait, structure"),
    Column("name", "string", "", "region that marks a step"),
    Column("steps", "int64", "", "steps of the loop"),
    Column("kept_steps", "int64", "", "steps whose spans are in the trace; statistics hold the others"),
    Column("start_ns", "int64", "ns", "when its first step begins", extra=True),
    Column("end_ns", "int64", "ns", "when its last step ends", extra=True),
    Column(
        "accepted_step",
        "int64",
        "",
        "first step after the loop was found while the program ran, null if later",
        extra=True,
    ),
    Column(
        "confidence", "string", "", "how sure we are that this is the loop that matters: high, medium, low", extra=True
    ),
    Column("reason", "string", "", "how it was found", extra=True),
)

STATISTICS = (
    Column("location", "uint32", "", "where it ran"),
    Column("call_path", "uint32", "", "what was executed, and all regions around it"),
    Column("class", "string", "", "class of the folded steps that it ran in, null outside of every step"),
    Column("count", "uint64", "", "executions that were folded; 0 where only what ran directly inside of spans was"),
    Column("total_ns", "int64", "ns", "sum of their durations"),
    Column(
        "self_ns", "int64", "ns", "the same without direct children; below 0 where the spans' own time holds too much"
    ),
    Column("min_ns", "int64", "ns", "shortest, 0 where the count is 0"),
    Column("max_ns", "int64", "ns", "longest"),
    Column("sum_squares", "float64", "ns2", "sum of the squares of the durations", extra=True),
    Column(
        "histogram",
        "list<uint32>",
        "",
        "executions by duration in 64 buckets, two an octave: from 2^(i/2) ns on",
        extra=True,
    ),
)

QUALITY = (
    Column("process", "uint32", "", "process it is about, null where its file cannot be read"),
    Column("pid", "int64", "", "its number in the operating system"),
    Column("what", "string", "", "what was counted, or `ended`, `size_bytes`, ..."),
    Column("value", "int64", "", "how much, null where `text` says it"),
    Column("text", "string", "", "in words"),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "processes": PROCESSES,
    "locations": LOCATIONS,
    "regions": REGIONS,
    "call_paths": CALL_PATHS,
    "spans": SPANS,
    "metrics": METRICS,
    "steps": STEPS,
    "loops": LOOPS,
    "statistics": STATISTICS,
    "quality": QUALITY,
}
