"""Who sends how much to whom, and how fast: the communication matrix, and messages by size, tag, call and more.

Sum the messages of MPI and gloo, and one-sided communication, those of folded steps included.

A message is a send and its receive: the n-th send of a sender, receiver, communicator and tag is the n-th receive,
in the order in which they were asked for. It has as many bytes as were sent. duration = completion of the receive -
begin of the send, which a late receiver makes long; transfer = completion of the receive - the later one of the
begin of the send and the begin of the call that asked for it; rate = bytes / transfer, of those whose transfer takes
at least twice the error of the clocks. Late sender and late receiver are those of strobe waits, where they are longer
than the error of the clocks; of a call that completes several messages, the longest wait counts. A message of which
the trace has one end counts, without times. What a rank sends to itself counts, too. With --step, a message is of the
step in which its send began.

A put or an atomic operation goes from its origin to its target, a get from its target to its origin; the bytes of an
atomic operation are those of both ways.

Bytes of the whole run are exact: what the totals of the recording (message_totals) have beyond its messages is in
the row of the pair, whose number of messages is then null.

With --collectives as-data, collectives of MPI count where the call defines who sends what to whom: broadcast and
scatter (from the root), gather and reduce (to the root), all-gather and all-to-all (from each to each, itself
included). All-reduce, reduce-scatter, scan and all-to-all with counts of its own for each rank do not define it;
strobe collectives has their bytes. Of an all-gather or all-to-all in place, bytes come out too low by (n-1)/n.
"""

from strobe.model.columns import STEP, Column, when
from strobe.model.option import Option, one_of
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "Who sends how much to whom, and how fast?",
    options=(
        one_of("by", "What a row is of.", "pair", "size", "tag", "communicator", "step", "call", "node", "cluster"),
        Option("step", "Steps to include: steady, all, 14, 10..20.", default="all"),
        Option("step_class", "Only steps of this class.", default=None, also=("--class",)),
        one_of("collectives", "Whether to count collectives as messages.", "none", "as-data"),
    ),
    raises=("`step` or `step_class` are not of steps of this trace",),
    columns=(
        Column("kind", "string", "", "message, put, get, atomic; of collectives: broadcast, ..."),
        *when(
            Column("sender", "int64", "", "rank of the sender, null if unknown"),
            Column("receiver", "int64", "", "rank of the receiver, null if unknown"),
            by="pair",
        ),
        *when(
            Column("from_bytes", "int64", "bytes", "messages from this size to less than twice as large"),
            by="size",
        ),
        *when(Column("tag", "int64", "", "tag of the message, null without one"), by="tag"),
        *when(Column("communicator", "string", "", "name of the communicator"), by="communicator"),
        *when(STEP, by="step"),
        *when(
            Column("sender_call", "string", "", "call that completed the send, and what called it"),
            Column("receiver_call", "string", "", "the same of the receive"),
            by="call",
        ),
        *when(
            Column("sender_host", "string", "", "host of the sender"),
            Column("receiver_host", "string", "", "host of the receiver"),
            by="node",
        ),
        *when(
            Column("sender_cluster", "int64", "", "cluster of the sender, as strobe clusters numbers them"),
            Column("receiver_cluster", "int64", "", "cluster of the receiver"),
            by="cluster",
        ),
        Column("messages", "int64", "", "how many, null if not all are in the trace"),
        Column("unmatched", "int64", "", "those of which the trace has one end", extra=True),
        Column("total_bytes", "int64", "bytes", "bytes sent"),
        Column("min_bytes", "int64", "bytes", "smallest", extra=True),
        Column("mean_bytes", "float64", "bytes", "mean size"),
        Column("max_bytes", "int64", "bytes", "largest", extra=True),
        Column("duration_mean_ns", "float64", "ns", "from the begin of the send to the end of the receive, mean"),
        Column("duration_max_ns", "int64", "ns", "the same, most", extra=True),
        Column("transfer_mean_ns", "float64", "ns", "from when both had begun to the end of the receive, mean"),
        Column("transfer_max_ns", "int64", "ns", "the same, most", extra=True),
        Column("rate_gb_s", "float64", "GB/s", "bytes by transfer time"),
        *when(
            Column("late_sender_ns", "int64", "ns", "what the receiver waited for the sender, as in strobe waits"),
            Column("late_receiver_ns", "int64", "ns", "what the sender waited for the receiver"),
            by=("pair", "node"),
        ),
    ),
)
