"""Collectives: who ran the same one, and when each of them arrived there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from strobe.gpu.devices import devices
from strobe.native import core
from strobe.ranks.clock_errors import clock_errors
from strobe.ranks.collective_columns import NOBODY, Collectives, Party
from strobe.ranks.collective_kernels import hands_over, on_host
from strobe.ranks.collective_log import Executions, as_collectives, folded_executions, on_threads, read_all
from strobe.ranks.collective_matching import matched
from strobe.ranks.messages import places
from strobe.sums.groups import Groups, Texts
from strobe.sums.side_columns import NeedsWholeLogError, parts_of
from strobe.tables.column_arrays import alike
from strobe.trace.definition_rows import processes_of_locations, ranks_of, regions_where
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace


@cached_on_trace
def collectives(trace: Trace) -> Collectives:
    """Return the collectives of a trace, matched among ranks; computed once per open trace.

    They are kernels of NCCL and its like, whose start on the GPU is the arrival (from then on the kernel waits for the
    others; see `executions`), calls of MPI and collectives of gloo; those of iterations that were folded, too. If no
    kernels are recorded, calls of NCCL arrive when they begin. Executions of one collective have the
    same group and number (PyTorch 2.2 and later write it, Seq, and calls of NCCL in a communicator are counted). If the
    number is unknown, the executions of a kind in a group are matched by their order, if all parties ran it equally
    often and those matched ran at the same moment (or the group is a communicator of MPI, of which all are recorded);
    else, where all need all, those that overlap in time: nobody is done before the last one has come. Calls of MPI
    without a recorded communicator count as of one group. A kernel SendRecv may be an all-to-all or messages of a pair:
    either way who comes early waits. Collectives among neighbours are matched as those of their communicator.
    """
    return matched(*read_all(trace))


def collective_parts(trace: Trace, *, whole: bool) -> Iterator[Collectives]:
    """Yield the collectives of a trace in parts that fit into memory, each collective in one, or all at once.

    In parts are those of communicators of MPI, all of whose ranks are in the trace, with known errors of the clocks: a
    rank's n-th one of a kind is the n-th of all others. Raises NeedsWholeLogError if there are others, or ranks lack.
    """
    count = 1 if whole else parts_of(trace, "folded_collectives")
    process = np.array(processes_of_locations(trace), dtype=np.int64)
    parties = [Party(number, rank, None, on_gpu=False) for number, rank in enumerate(ranks_of(trace))]
    (first, *_) = [*(at for at, each in enumerate(trace.readers) if each.tables().get("folded_collectives")), 0]
    errors = clock_errors(trace, first)
    if count == 1 or devices(trace) or regions_where(trace, hands_over).any() or (errors < 0).any():
        yield collectives(trace)
        return
    lines, texts, relevant = Groups(), Texts(), regions_where(trace, on_host)
    detail = {party.process: found for party, found in on_threads(trace, texts, on_host, to_gpu=False, folded=False)}
    waiting, waiting_line = Executions.joined(()), np.zeros(0, dtype=np.int64)
    seen, last_ns = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)  # by line and party
    for number in range(count):
        folded = folded_executions(trace, relevant, texts, (number, count))
        until_ns = np.full(len(parties), NOBODY if number < count - 1 else -NOBODY)
        core.most_at(until_ns, process[folded.location], folded.start_ns)
        early = {at: found.start_ns <= until_ns[at] for at, found in detail.items()}
        read = Executions.joined([folded, *(found.chosen(early[at]) for at, found in detail.items())])
        detail = {at: found.chosen(~early[at]) for at, found in detail.items()}
        party = process[read.location]
        if (np.diff(party) < 0).any() or ((np.diff(read.start_ns) < 0) & (np.diff(party) == 0)).any():
            read = read.chosen(np.lexsort((read.start_ns, party)))
            party = process[read.location]
        line = lines.numbers([read.kind, read.group, read.ranks, read.counted])
        groups = len(lines) * len(parties)
        seen = np.append(seen, np.zeros(groups - len(seen), dtype=np.int64))
        last_ns = np.append(last_ns, np.full(groups - len(last_ns), NOBODY))
        group = line * len(parties) + party
        if (read.counted != 2).any() or (read.start_ns < last_ns[group]).any():
            raise NeedsWholeLogError
        sequence = seen[group] + places(group)
        seen += np.bincount(group, minlength=groups)
        core.most_at(last_ns, group, read.start_ns)
        read, line = Executions.joined([waiting, replace(read, sequence=sequence)]), np.append(waiting_line, line)
        _, collective = alike((line, read.sequence))
        complete = np.bincount(collective)[collective] == read.size
        at = core.in_order_of(process[read.location], len(parties))
        at = at[complete[at]]
        waiting, waiting_line = read.chosen(~complete), line[~complete]
        read, line, which = read.chosen(at), line[at], np.where(read.size[at] > 1, collective[at], -1)
        found = as_collectives(parties, lines, texts, process[read.location], line, read, which, errors)
        del folded, read, party, group, sequence, line, collective, complete, at, which  # before the next part is read
        yield found
        del found
    if len(waiting):
        raise NeedsWholeLogError
