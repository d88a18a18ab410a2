"""Messages between ranks in a time range one by one, as lines from the send to the receive; few enough to be seen."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from strobe.errors import InconclusiveError
from strobe.ranks.links import MOST_INDEXED, matched_ends, size_of_messages
from strobe.server.routing.endpoints import MB, TIME_RANGE, route
from strobe.server.trace_context import TraceContext

# More lines than this cover what they lead to.
MOST_LINES = 500


class MessageLines(TypedDict):
    """Messages column by column: see `message_lines`."""

    count: int
    from_location: list[int]
    sent_ns: list[int]
    to_location: list[int]
    received_ns: list[int]


@route("window/message_lines", *TIME_RANGE, most_bytes=MB, slow=True)
def message_lines(context: TraceContext, start_ns: int, end_ns: int) -> MessageLines:
    """The messages of a time range, from the send to the receive.

    Those of which any part of the way lies in [start_ns, end_ns): from when it was sent until it had been received. In
    order of sending; where there are more than `MOST_LINES` there is only their `count`. Raises InconclusiveError where
    the run has too many messages to match while one waits.
    """
    if size_of_messages(context.trace) > MOST_INDEXED:
        raise InconclusiveError(f"the run has more than {MOST_INDEXED} messages: they are not drawn one by one")
    ends, send, receive = matched_ends(context.trace)
    inside = (ends.time_ns[send] < end_ns) & (ends.time_ns[receive] > start_ns)
    send, receive = send[inside], receive[inside]
    shown = np.argsort(ends.time_ns[send], kind="stable")[: MOST_LINES if len(send) <= MOST_LINES else 0]
    return {
        "count": len(send),
        "from_location": ends.place[send[shown]].tolist(),
        "sent_ns": ends.time_ns[send[shown]].tolist(),
        "to_location": ends.place[receive[shown]].tolist(),
        "received_ns": ends.time_ns[receive[shown]].tolist(),
    }
