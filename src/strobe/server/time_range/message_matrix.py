"""The communication matrix of a time range as a picture: pairs of ranks in at most 256 x 256 tiles."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from strobe.model.schema import Column
from strobe.ranks.messages import ONE_SIDED
from strobe.ranks.transfers import MESSAGE, log
from strobe.server.routing.endpoints import MB, TIME_RANGE, parameter, route
from strobe.server.trace_context import TraceContext
from strobe.tables.column_arrays import alike
from strobe.tables.table import make_table

MOST_TILES = 256
KINDS = {"message": (MESSAGE,), "one_sided": ONE_SIDED}
COLUMNS = (
    Column("sender", "int64", "", "tile of the senders"),
    Column("receiver", "int64", "", "tile of the receivers"),
    Column("messages", "int64", "", "messages of all pairs of ranks in the tile"),
    Column("most_messages", "int64", "", "those of the pair that has most"),
    Column("total_bytes", "int64", "bytes", "bytes of all pairs of ranks in the tile"),
    Column("most_bytes", "int64", "bytes", "those of the pair that has most"),
)


@route(
    "window/messages",
    *TIME_RANGE,
    parameter("kind", "messages, or one-sided communication", str, "message", choices=tuple(KINDS)),
    parameter("tiles", "rows and columns of the picture", default=MOST_TILES, least=1, most=MOST_TILES),
    columns=COLUMNS,
    most_bytes=8 * MB,
    slow=True,
)
def message_matrix(
    context: TraceContext, start_ns: int, end_ns: int, kind: str = "message", tiles: int = MOST_TILES
) -> pa.Table:
    """Who sent how much to whom in a time range, in at most `tiles` x `tiles` tiles of ranks.

    Messages that began in [start_ns, end_ns) count, also those of folded steps. A row is a tile that has some.
    Tile k has the ranks from k * `ranks_per_tile` on. Metadata: `ranks` (the highest one of the trace + 1) and
    `ranks_per_tile`.
    """
    found = log(context.trace)
    every, kinds = found.transfers, [found.texts.number(each) for each in KINDS[kind]]
    inside = (every.time_ns >= start_ns) & (every.time_ns < end_ns) & np.isin(every.kind, kinds)
    (at,) = np.nonzero(inside & (every.sender >= 0) & (every.receiver >= 0))
    first, pair = alike((every.sender[at], every.receiver[at]))
    messages, size = np.zeros((2, len(first)), dtype=np.int64)
    np.add.at(messages, pair, every.count[at])
    np.add.at(size, pair, np.maximum(0, every.size_bytes[at]))
    known = (each for each in context.trace.processes.integers("rank") if each is not None)
    ranks = 1 + max(every.sender.max(initial=-1), every.receiver.max(initial=-1), *known, -1)
    per_tile = max(1, -(-ranks // tiles))
    sender, receiver = (column[at[first]] // per_tile for column in (every.sender, every.receiver))
    begin, tile = alike((sender, receiver))
    sums = np.zeros((4, len(begin)), dtype=np.int64)
    for k, (join, values) in enumerate(
        ((np.add, messages), (np.maximum, messages), (np.add, size), (np.maximum, size))
    ):
        join.at(sums[k], tile, values)
    names = (column.name for column in COLUMNS)
    cells = dict(zip(names, (sender[begin], receiver[begin], *sums), strict=True))
    table = make_table(COLUMNS, cells, name="message_matrix").to_arrow()
    about = {"ranks": str(ranks), "ranks_per_tile": str(per_tile)}
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **about})
