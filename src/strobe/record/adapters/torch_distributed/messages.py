"""What programs wait for of gloo: messages (send, recv, isend, irecv), each with a row of `messages`, and collectives.

PyTorch's dispatcher knows what is asked for, `Work.wait` when it is over. The work that the dispatcher gives and the
one that the program waits for are one object as long as somebody holds it: until then we do, one a thread. A message
that is never waited for has no row. The wait itself is a span, also that for a collective, which runs on a thread of
gloo's: what the thread that asked for it waits is communication that no computation hides.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from _thread import _local  # threading may be a module of the program

from strobe.native import core

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping
    from typing import Any

    from strobe.record.adapters.torch_distributed.hooks import Group

    # Group, text of the direction, peer, tag, bytes, number, when it was asked for in ticks.
    Message = tuple[Group, int, int, int, int, int, int]

_TORCH, _POINT_TO_POINT = 2, 9  # model/kinds.py: paradigm, role
_MESSAGE, _SINCE_BEGIN = 1, 0x8000  # strobe.h: kind of a row, which has the time of its request


class Messages:
    """The messages that are under way."""

    def __init__(self) -> None:
        self._pending: MutableMapping[Any, Message | None] = weakref.WeakKeyDictionary()  # None: of a collective
        self._held = _local()
        self._numbers = itertools.count()
        self._work: Any = None
        self._waits: tuple[Any, Any] = None, None  # ours, PyTorch's

    def start(self, work: Any) -> Callable[..., Any]:
        """Put our `wait` into the class of works, and return it."""
        # Named like the ranges in which PyTorch runs collectives: what waits there communicates.
        region = core.region("gloo:wait", _TORCH, _POINT_TO_POINT, module="PyTorch")
        pending, original = self._pending, work.wait
        enter, leave = core.enter, core.leave

        @functools.wraps(original)
        def wait(own: Any, *args: Any, **kwargs: Any) -> Any:
            if own not in pending:
                return original(own, *args, **kwargs)
            message = pending.pop(own)
            if message is None:
                enter(region)
                try:
                    return original(own, *args, **kwargs)
                finally:
                    leave(region)
            core.message_wait_begin(region)
            began = core.ticks()
            try:
                done = original(own, *args, **kwargs)
                self._over(own, message, began)
                return done
            finally:
                core.message_wait_end(region)

        self._work, self._waits = work, (wait, original)
        work.wait = wait
        return wait

    def stop(self) -> None:
        """Put PyTorch's own back, and let go of all works."""
        ours, original = self._waits
        if ours is not None and self._work.wait is ours:
            self._work.wait = original
        self._waits = None, None
        self._pending.clear()
        self._held = _local()

    def asked(self, group: Group, direction: int, peer: int, tag: int, size_bytes: int) -> Message:
        """Return a message that is asked for now; `peer`: in the group, NOTHING_32 where any may have sent it."""
        return group, direction, peer, tag, size_bytes, next(self._numbers), core.ticks()

    def pending(self, work: Any, message: Message | None) -> None:
        """Remember a message, or that it is a collective of gloo, by what the dispatcher has given for it."""
        try:
            # Collectives return their tensors, too, before the work.
            self._held.work = own = self._work.unbox(work[-1] if isinstance(work, (tuple, list)) else work)
            self._pending[own] = message
        except Exception as error:  # never into the program
            core.count(f"messages_not_read: {type(error).__name__}", 1)

    def _over(self, work: Any, message: Message, began: int) -> None:
        group, direction, peer, tag, size_bytes, number, asked = message
        self._held.work = None
        try:
            if peer == core.NOTHING_32:
                peer = work._source_rank()
            in_job = group.ranks[peer] if 0 <= peer < len(group.ranks) else core.NOTHING_32
            # A send has the time at which it was asked for, a receive that at which it is over.
            sent, now = direction == core.text("send"), core.ticks()
            kind, at = (_MESSAGE | _SINCE_BEGIN, asked) if sent else (_MESSAGE, now)
            sides, ends, which = _two(direction, group.text), _two(in_job, peer), _two(tag, number % 2**31)
            core.row(kind, sides, ends, which, size_bytes, now - began, now - asked, at)
        except Exception as error:  # never into the program
            core.count(f"messages_not_read: {type(error).__name__}", 1)


def _two(first: int, second: int) -> int:
    """Two numbers of 32 bits as one (STROBE_TWO)."""
    return second << 32 | first & 0xFFFFFFFF
