"""Connections: how long they may take to send a request, and how many there may be.

Whoever can reach the port can hold connections open without a token. Those are few, wait for a short time only, and
count for nobody: where there are too many of them, the one that has waited longest is closed. Connections that have
shown the token are counted on their own.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_log = logging.getLogger(__name__)


@dataclass
class Connections:
    """The limits, and the connections of one server.

    `head_s`: seconds in which the head of a request must have come. `body_s`: seconds without a byte of its body.
    `most_strange`: connections without the token. `most`: connections with it; a browser opens six.
    """

    head_s: float = 10.0
    body_s: float = 30.0
    most_strange: int = 256
    most: int = 512
    strange: dict[_Connection, None] = field(default_factory=dict)  # in order of their age
    known: set[_Connection] = field(default_factory=set)
    warned: bool = False

    def protocol(self) -> Any:  # uvicorn takes a class, or what makes an instance of one
        """Return what serves one connection under these limits."""
        return partial(_Connection, self)

    def warn(self) -> None:
        """Write one line, however often something is refused."""
        if not self.warned:
            self.warned = True
            _log.warning("strobe: connections that sent no request in time, or were too many, are closed")


class _Connection(H11Protocol):
    """One connection. A request that is let in calls `scope["state"]["let_in"]`."""

    def __init__(self, all_of_them: Connections, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._all = all_of_them
        self._timer: asyncio.TimerHandle | None = None
        self.app_state = {**self.app_state, "let_in": self._let_in}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        strange = self._all.strange
        strange[self] = None
        if len(strange) > self._all.most_strange:
            next(iter(strange))._drop()
        self._wait(self._all.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._stop_waiting()
        self._all.strange.pop(self, None)
        self._all.known.discard(self)

    def data_received(self, data: bytes) -> None:
        """Read on, and limit the time until the rest of the request comes."""
        super().data_received(data)
        if self.conn.their_state is h11.SEND_BODY and self in self._all.known:
            self._stop_waiting()
            self._wait(self._all.body_s)
        elif self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._wait(self._all.head_s)
        else:
            self._stop_waiting()

    def _let_in(self) -> bool:
        """Count this connection among those with the token; return False where there are too many."""
        if self not in self._all.known and len(self._all.known) >= self._all.most:
            self._all.warn()
            return False
        self._all.strange.pop(self, None)
        self._all.known.add(self)
        return True

    def _wait(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(seconds, self._late)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if self.flow.read_paused:  # we are the slow ones
            self._wait(self._all.body_s)
        else:
            self._drop()

    def _drop(self) -> None:
        self._all.warn()
        self._all.strange.pop(self, None)
        self.transport.abort()
