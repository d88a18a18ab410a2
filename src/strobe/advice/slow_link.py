"""Rule `rank.slow_link`: messages between two ranks, or nodes, take much longer per byte than those between others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_bytes, format_ns, format_share
from strobe.ranks.call_path_texts import call_path_text
from strobe.ranks.clock_errors import clock_errors, on_one_host
from strobe.ranks.messages import numbered
from strobe.ranks.step_waits import MOST_ROWS
from strobe.ranks.waits.message_calls import messages
from strobe.steps.step_times import in_steady_steps
from strobe.steps.steps import find_steps
from strobe.tables.column_arrays import Columns, Floats, Ints
from strobe.trace.definition_rows import process_rows, processes_of_locations
from strobe.trace.trace import Trace

LEAST_SHARE = 0.05  # of the receiver's steps: less is not worth a line
_LEAST_COUNT = 8  # messages of a pair
_LEAST_OTHERS = 3  # pairs to compare with
_SLOW = 2.0  # times as long: rings and trees of switches make differences up to that
_SPREAD = 4.0  # mean absolute deviations of the other pairs
_IN_CALLS = 0.1  # of the transfer, which the sender may spend outside of MPI: a message may stand still meanwhile


@dataclass(frozen=True)
class _Messages(Columns):
    """Messages whose transfer is known: how long it took; sender and receiver are processes.

    location, call_path: of the call that received it. start_ns: when the send began.
    """

    sender: Ints
    receiver: Ints
    size_bytes: Ints
    took_ns: Ints
    error_ns: Ints
    start_ns: Ints
    location: Ints
    call_path: Ints


@dataclass(frozen=True)
class _Slow:
    """Messages of a pair, the usual ns per byte of others, what receivers lose, and the one that loses most of it."""

    messages: _Messages
    usual: float
    total_ns: float
    receiver: int
    lost_ns: float
    of_nodes: bool


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for the pair of ranks, or of nodes, that loses most by slow messages of a size class.

    Pairs within nodes are compared with such pairs, others with others. Slow: the median of ns per byte is at least
    twice the median of the other pairs, and beyond their spread; the difference is longer than twice the error of the
    clocks. Only messages whose transfer is known: see `_messages`.
    """
    if sum(reader.tables().get("messages", 0) for reader in trace.readers) > MOST_ROWS:
        return
    found = _messages(trace)
    near = on_one_host(trace, found.sender, found.receiver)
    hosts = np.unique([each.host or "" for each in process_rows(trace)], return_inverse=True)[1]
    ranks, nodes = numbered(found.sender, found.receiver), numbered(hosts[found.sender], hosts[found.receiver])
    size_class = np.frexp(found.size_bytes.astype(np.float64))[1]
    slow: list[_Slow] = []
    for each in np.unique(size_class).tolist():
        of_class = size_class == each
        for chosen, pair, of_nodes in ((near, ranks, False), (~near, ranks, False), (~near, nodes, True)):
            which = of_class & chosen
            slow += _slow(found.chosen(which), pair[which], of_nodes=of_nodes)
    for worst in sorted(slow, key=lambda each: (-each.total_ns, each.of_nodes))[:1]:
        steps = next(each for each in find_steps(trace).processes if each.process == worst.receiver)
        duration_ns = steps.duration_ns[steps.steady]
        if worst.lost_ns >= LEAST_SHARE * duration_ns.sum():
            yield _finding(trace, worst, duration_ns)


def _messages(trace: Trace) -> _Messages:
    """Return the messages in steady steps that nothing but their transfer held up, where clocks have a known error.

    The receiver was in the call that completes this message, and nothing else, when the send began; and the sender
    stayed in MPI. All else may be waiting: for the receiver to look, or for another message of the same call.
    """
    log, process = messages(trace), np.array(processes_of_locations(trace), dtype=np.int64)
    ends, calls, send, receive = log.ends, log.calls, log.send, log.receive
    call = numbered(ends.place, calls.begin_ns)
    alone = np.bincount(call)[call[receive]] == 1 if len(call) else np.zeros(0, dtype=bool)
    sent, got = calls.chosen(send), calls.chosen(receive)
    took = ends.time_ns[receive] - sent.asked_ns
    known = (sent.call_path >= 0) & (got.call_path >= 0) & alone & (ends.size_bytes[send] > 0) & (took > 0)
    known &= (got.begin_ns <= sent.asked_ns) & (sent.begin_ns - sent.asked_ns <= _IN_CALLS * took)
    sender, receiver = process[ends.place[send]], process[ends.place[receive]]
    steady = in_steady_steps(find_steps(trace).processes, receiver, sent.asked_ns)
    errors = clock_errors(trace)
    near = on_one_host(trace, sender, receiver)
    known &= steady & (near | ((errors[sender] >= 0) & (errors[receiver] >= 0)))
    error_ns = np.where(near, 0, errors[sender] + errors[receiver])
    location, size = ends.place[receive], ends.size_bytes[send]
    found = _Messages(sender, receiver, size, took, error_ns, sent.asked_ns, location, got.call_path)
    return found.chosen(known)


def _slow(found: _Messages, pair: Ints, *, of_nodes: bool) -> Iterator[_Slow]:
    """Yield the pairs whose messages are slow; all are of one size class."""
    order = np.argsort(pair, kind="stable")
    every = np.split(order, np.flatnonzero(np.diff(pair[order])) + 1)
    every = [each for each in every if len(each) >= _LEAST_COUNT]
    per_byte = found.took_ns / found.size_bytes
    medians: Floats = np.array([np.median(per_byte[each]) for each in every])
    for at, each in enumerate(every if len(every) > _LEAST_OTHERS else ()):
        own, others = found.chosen(each), np.delete(medians, at)
        usual = float(np.median(others))
        spread = _SPREAD * float(np.abs(others - usual).mean())
        unsure_ns = 2 * max(int(own.error_ns.max()), int(found.error_ns.max()))
        excess = own.took_ns - usual * own.size_bytes
        if medians[at] < max(_SLOW * usual, usual + spread) or np.median(excess) <= unsure_ns:
            continue
        lost = np.bincount(own.receiver, excess)
        yield _Slow(own, usual, float(excess.sum()), int(lost.argmax()), float(lost.max()), of_nodes)


def _finding(trace: Trace, slow: _Slow, duration_ns: Ints) -> Finding:
    own, rows, steps = slow.messages, process_rows(trace), len(duration_ns)
    ends = rows[int(own.sender[0])], rows[int(own.receiver[0])]
    nodes = [f"node {each.host}" for each in ends]
    sender, receiver = nodes if slow.of_nodes else [f"rank {each.rank}" for each in ends]
    times = np.median(own.took_ns / own.size_bytes) / slow.usual
    longest = int(own.took_ns.argmax())
    place = f"on {nodes[0]}" if nodes[0] == nodes[1] else f"between {nodes[0]} and {nodes[1]}"
    return Finding(
        rule="rank.slow_link",
        what=f"messages of {format_bytes(float(np.median(own.size_bytes)))} from {sender} to {receiver} take "
        f"{format_ns(float(np.median(own.took_ns)))}, {times:.1f} times as long per byte as those of other "
        f"{'nodes' if slow.of_nodes else 'ranks'}: rank {rows[slow.receiver].rank} loses "
        f"{format_ns(slow.lost_ns / steps)} of a step, {format_share(slow.lost_ns / int(duration_ns.sum()))}",
        do=f"look at what connects them {place}: adapter, cable, switch, which cores the ranks have; strobe messages",
        where=call_path_text(trace, int(own.call_path[longest]), peers=False),
        gain_high_ns=round(slow.lost_ns / steps),
        confidence="medium",
        evidence=(
            {
                "start_ns": int(own.start_ns[longest]),
                "duration_ns": int(own.took_ns[longest]),
                "location": int(own.location[longest]),
            },
        ),
    )


RULE = Rule("rank.slow_link", "Messages of a pair of ranks or nodes are much slower than those of others", run)
