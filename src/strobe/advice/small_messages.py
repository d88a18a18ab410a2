"""Rule `rank.small_messages`: a rank sends another many small messages in a row where one would do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_bytes, format_ns, format_share
from strobe.ranks.call_path_texts import call_path_text
from strobe.ranks.collectives import collectives
from strobe.ranks.messages import MessageEnds, message_ends, numbered
from strobe.ranks.waits.message_calls import Calls, calls_of
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.selection import select_steps
from strobe.steps.step_times import in_steady_steps, step_of_process
from strobe.steps.steps import find_steps
from strobe.sums.path_statistics import is_own_function, location_statistics
from strobe.tables.column_arrays import Ints, rows_by
from strobe.trace.definition_rows import processes_of_locations, region_rows
from strobe.trace.trace import Trace

LEAST_SHARE = 0.05  # of the sender's steps, in the calls
_LEAST_COUNT = 16  # messages in a row
_SMALL = 4096  # bytes, in the mean: less than what a message costs by itself on usual networks (5 us at 1 GB/s)
_LEAST = 0.7
MOST_ROWS = 5_000_000  # of messages: some seconds


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for the pair of ranks, and call, whose runs of small messages take most of the sender's steps.

    A run: sends of one call to the same rank in a step, without another message or collective of the sender in between.
    Time: in the calls that complete the sends. At least 70 % of that is saved but for one message of each run, at most
    that part of the time in the function that sends: what it receives is as many messages, and has its own cost.
    """
    if sum(reader.tables().get("messages", 0) for reader in trace.readers) > MOST_ROWS:
        return
    findings, process = list[Finding](), np.array(processes_of_locations(trace), dtype=np.int64)
    ends = message_ends(trace)
    ends = ends.chosen(np.lexsort((ends.time_ns, ends.place)))
    calls = calls_of(trace, ends)
    run_of, length = _runs(trace, ends, calls)
    many = ends.sent & (length[run_of] >= _LEAST_COUNT) & (calls.call_path >= 0) & (ends.size_bytes >= 0)
    steps = {each.process: each for each in find_steps(trace).processes}
    (candidates,) = np.nonzero(many & in_steady_steps(steps.values(), process[ends.place], ends.time_ns))
    for own_process, rows in rows_by(process[ends.place[candidates]]):
        each, at = steps[own_process], candidates[rows]
        pair = numbered(ends.receiver[at], calls.call_path[at])
        first = np.unique(np.stack((pair, calls.begin_ns[at])), axis=1, return_index=True)[1]  # a call counts once
        spent = np.bincount(pair[first], (calls.end_ns - calls.begin_ns)[at[first]])
        at, spent_ns, duration_ns = at[pair == spent.argmax()], int(spent.max()), each.duration_ns[each.steady]
        if ends.size_bytes[at].mean() <= _SMALL and spent_ns >= LEAST_SHARE * duration_ns.sum():
            runs = length[np.unique(run_of[at])]
            most_ns = max(spent_ns, _caller_ns(trace, each, int(calls.call_path[at[0]]), int(ends.place[at[0]])))
            findings.append(_finding(trace, ends.chosen(at), calls.chosen(at), (spent_ns, most_ns), duration_ns, runs))
    yield from sorted(findings, key=lambda each: -each.gain_high_ns)[:1]


def _runs(trace: Trace, ends: MessageEnds, calls: Calls) -> tuple[Ints, Ints]:
    """Return the number of the run of each message, of ends in order of place and time, and the length of each run."""
    met, process = collectives(trace), np.array(processes_of_locations(trace), dtype=np.int64)[ends.place]
    begun, step = np.zeros((2, len(ends)), dtype=np.int64)
    met_at = {place: np.sort(met.start_ns[rows]) for place, rows in rows_by(met.location)}
    for place, own in rows_by(ends.place):
        if place in met_at:
            begun[own] = np.searchsorted(met_at[place], ends.time_ns[own])
    for each, own in rows_by(process):
        step[own] = step_of_process(trace, each, ends.time_ns[own])
    kind = (ends.place, ends.sender, ends.receiver, ends.communicator, calls.call_path, step, begun)
    run_of: Ints = np.cumsum(np.diff(numbered(*kind), prepend=-1) != 0) - 1
    return run_of, np.bincount(run_of)


def _caller_ns(trace: Trace, steps: ProcessSteps, call_path: int, location: int) -> int:
    """Return the time in the program's own function that makes a call, in steady steps, ns; 0 if it is the step."""
    rows = np.flatnonzero(steps.steady) + steps.first_number
    sums = location_statistics(trace, select_steps(trace, {steps.process: rows}), location)
    caller = int(sums.parent[call_path])
    if caller < 0 or not is_own_function(region_rows(trace)[int(sums.region[caller])]) or not sums.calls[caller]:
        return 0
    return int(sums.total_ns[caller])


def _finding(
    trace: Trace,
    sent: MessageEnds,
    calls: Calls,
    spent: tuple[int, int],
    duration_ns: Ints,
    lengths: Ints,
) -> Finding:
    """Return the finding about messages, in runs of such lengths, in steps that last so long.

    spent: ns in the calls that send, and in the function that makes them.
    """
    spent_ns, most_ns = spent
    steps, at = len(duration_ns), int((calls.end_ns - calls.begin_ns).argmax())
    text = call_path_text(trace, int(calls.call_path[0]), peers=False)
    call, _, callers = text.partition(" < ")
    return Finding(
        rule="rank.small_messages",
        what=f"rank {sent.sender[0]} sends rank {sent.receiver[0]} {np.median(lengths):.0f} messages of "
        f"{format_bytes(float(sent.size_bytes.mean()))} in a row, {len(sent) / steps:.4g} a step: "
        f"{format_ns(spent_ns / steps)} of its step, {format_share(spent_ns / int(duration_ns.sum()))}, in {call}",
        do=f"collect what {callers.partition(' < ')[0] or call} sends in one buffer, and send that once "
        "(MPI_Type_vector for what is not contiguous)",
        where=text,
        gain_low_ns=round(spent_ns / steps * _LEAST * (1 - len(lengths) / len(sent))),
        gain_high_ns=round(most_ns / steps * (1 - len(lengths) / len(sent))),
        evidence=(
            {
                "start_ns": int(calls.begin_ns[at]),
                "duration_ns": int(calls.end_ns[at] - calls.begin_ns[at]),
                "location": int(sent.place[at]),
            },
        ),
    )


RULE = Rule("rank.small_messages", "A rank sends many small messages where one would do", run)
