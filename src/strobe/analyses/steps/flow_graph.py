"""Flow graph: how far the event flow graph describes a run, and when it stops growing.

List the processes, or with `by=step` the steps of all of them.

A node is a kind of event, an edge a transition between two (Aguilar, Fürlinger, Laure: MPI Trace Compression Using
Event Flow Graphs, Euro-Par 2014). The events are those that the step was found in; of operators only those that no
other one called. chains: nodes after what only follows each other is drawn as one. sequence_bytes: the order of the
events as numbers of 1, 2 or 4 bytes; graph_bytes: the graph and, in its edges, the same order. compression =
sequence_bytes / graph_bytes. stable_from: the first step after which no step adds a node; null: the last step still
does. A path is the sequence of events of a step. Steps that were folded into statistics have no events here.
"""

from strobe.model.columns import RANK, STEP, Column, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "How regular is the program: how small is its flow graph, and from which step on is it stable?",
    needs=("spans",),
    options=(one_of("by", "One row per process, or per step.", "process", "step"),),
    columns=(
        RANK,
        Column("process", "uint32", "", "number of the process"),
        *when(
            Column("stream", "string", "", "which events: calls, operators, kernels, mpi, loops"),
            Column("events", "int64", "", "events"),
            Column("nodes", "int64", "", "kinds of events"),
            Column("edges", "int64", "", "transitions between them"),
            Column("chains", "int64", "", "nodes after chains are drawn as one"),
            Column("loops", "int64", "", "loops of the graph"),
            Column("events_per_node", "float64", "", "mean events of a node"),
            Column("sequence_bytes", "int64", "bytes", "size of the order of the events"),
            Column("graph_bytes", "int64", "bytes", "size of the graph with the order"),
            Column("compression", "float64", "", "sequence_bytes / graph_bytes"),
            Column("paths", "int64", "", "different sequences of events of its steps"),
            Column("stable_from", "int64", "", "first step from which on no node is new, null: none"),
            by="process",
        ),
        *when(
            STEP,
            Column("events", "int64", "", "events of the step"),
            Column("new_nodes", "int64", "", "kinds of events that no step before had"),
            Column("nodes", "int64", "", "kinds of events up to its end"),
            Column("new_path", "bool", "", "no step before had the same sequence of events"),
            Column("paths", "int64", "", "different sequences up to its end"),
            by="step",
        ),
    ),
)
