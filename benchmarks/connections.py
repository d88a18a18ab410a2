"""Six connections to a server, as a browser has. A connection is closed when its answer is no longer needed.

httpx cannot replace a browser here: a request that is cancelled at the wrong moment blocks a connection of its pool
forever, until none is left. A benchmark of viewers who leave would measure that.
"""

import asyncio
import gzip
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

AT_ONCE = 6
# An answer that has not come after this time will not come.
ANSWER_S = 120
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True)
class Answer:
    """What came: the body as it was sent."""

    status: int
    headers: dict[str, str]
    sent: bytes

    @property
    def body(self) -> bytes:
        """The body as it was meant."""
        return gzip.decompress(self.sent) if self.headers.get("content-encoding") == "gzip" else self.sent

    def json(self) -> Any:
        return json.loads(self.body)


class Connections:
    """Asks a server below an address. Requests that find no free connection wait for one."""

    def __init__(self, address: str) -> None:
        self._to = urlsplit(address)
        self._room = asyncio.Semaphore(AT_ONCE)
        self._idle: list[Streams] = []

    async def get(self, question: str) -> Answer:
        """Return the answer. Raises OSError or EOFError where none comes; who cancels this closes the connection."""
        async with self._room:
            streams = await self._connected()
            try:
                async with asyncio.timeout(ANSWER_S):
                    answer = await self._ask(streams, question)
            except BaseException:
                streams[1].close()
                raise
            self._idle.append(streams)
            return answer

    def close(self) -> None:
        """Close what is idle."""
        for _, writer in self._idle:
            writer.close()

    async def _connected(self) -> Streams:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof():
                return reader, writer
            writer.close()  # the server closes idle connections
        return await asyncio.open_connection(self._to.hostname, self._to.port)

    async def _ask(self, streams: Streams, question: str) -> Answer:
        reader, writer = streams
        head = [f"GET {self._to.path}{question} HTTP/1.1", f"Host: {self._to.netloc}", "Accept-Encoding: gzip"]
        writer.write("\r\n".join([*head, "", ""]).encode())
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return Answer(int(first.split()[1]), headers, await reader.readexactly(int(headers["content-length"])))
