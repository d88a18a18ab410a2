"""The token in the address that the browser is started with: other users see the arguments of its process."""

from __future__ import annotations

import hmac
import os
import secrets
import time
from contextlib import suppress

GOOD_S = 60.0
_ESTABLISHED = "01"


class LaunchToken:
    """A token that is good once, for a minute, and only for a connection of this user where the system knows whose a
    connection is. It is exchanged for the token of the page.
    """

    def __init__(self, good_s: float = GOOD_S) -> None:
        self.text = secrets.token_urlsafe(12)
        self._until_s = time.monotonic() + good_s

    def is_in(self, path: str) -> bool:
        """Return whether a path ends with this token, used or not."""
        last = path.rstrip("/").rpartition("/")[2]
        return hmac.compare_digest(last.encode("utf-8", "surrogatepass"), self.text.encode())

    def use(self, client: tuple[str, int] | None, server: tuple[str, int] | None) -> bool:
        """Return whether the token is good for a connection from `client` to `server`; it is used up then."""
        good = time.monotonic() < self._until_s and _owners(client, server) <= {os.geteuid()}
        if good:
            self._until_s = 0.0
        return good


def _owners(client: tuple[str, int] | None, server: tuple[str, int] | None) -> set[int]:
    """Return the user at the other end of a connection from this machine; nobody where that is not known."""
    owners: set[int] = set()
    if client is None or server is None:
        return owners
    ends = [f"{client[1]:04X}", f"{server[1]:04X}"]
    for table in ("tcp", "tcp6"):  # only Linux has them
        with suppress(OSError), open(f"/proc/net/{table}", encoding="ascii") as lines:
            # number, local address:port, the other end's, state, queues, timer, retransmits, user, ...
            rows = [line.split() for line in lines][1:]
            found = (row for row in rows if [row[1].rpartition(":")[2], row[2].rpartition(":")[2]] == ends)
            owners |= {int(row[7]) for row in found if row[3] == _ESTABLISHED}
    return owners
