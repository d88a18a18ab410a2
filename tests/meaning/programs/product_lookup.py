"""A small lookup service on asyncio streams: it answers a mistyped product name with the closest one in the catalogue.

Server and client run in one process; the client sends one request after the other over a local socket. The handler
computes edit distances in Python, which holds the event loop for the whole request.
Truth: 200 requests, limited by Python; the gain is measured against the same search in NumPy, run after the requests.
"""

import asyncio
import random
from time import monotonic_ns

import numpy as np
from truth import problem, tile, write

rng = random.Random(11)
CATALOGUE = ["".join(rng.choices("aeioulnrst -", k=rng.randint(8, 14))) for _ in range(800)]


def distance(a, b):
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        current = [i]
        for j, y in enumerate(b, 1):
            current.append(min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (x != y)))
        previous = current
    return previous[-1]


def closest(name):
    return min(CATALOGUE, key=lambda other: distance(name, other))


def closest_in_numpy(name, table, lengths):
    ramp = np.arange(table.shape[1] + 1)
    row = np.tile(ramp, (len(table), 1))
    for i, x in enumerate(name, 1):
        best = np.minimum(row[:, 1:] + 1, row[:, :-1] + (table != ord(x)))
        best = np.concatenate([np.full((len(table), 1), i), best], axis=1)
        row = np.minimum.accumulate(best - ramp, axis=1) + ramp
    return CATALOGUE[int(row[np.arange(len(table)), lengths].argmin())]


async def handle(reader, writer):
    while line := await reader.readline():
        writer.write(closest(line.decode().rstrip("\n")).encode() + b"\n")
        await writer.drain()
    writer.close()


async def ask(port, names, cuts):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answers = []
    cuts.append(monotonic_ns())
    for name in names:
        writer.write(name.encode() + b"\n")
        answers.append((await reader.readline()).decode().rstrip("\n"))
        cuts.append(monotonic_ns())
    writer.close()
    return answers


async def main():
    names = [name[1] + name[0] + name[2:-3] + name[-2:] for name in rng.choices(CATALOGUE, k=200)]
    server, cuts = await asyncio.start_server(handle, "127.0.0.1", 0), []
    answers = await asyncio.create_task(ask(server.sockets[0].getsockname()[1], names, cuts))
    server.close()
    await asyncio.sleep(0.05)
    table = np.array([[ord(c) for c in name.ljust(14, "~")] for name in CATALOGUE])
    lengths = np.array([len(name) for name in CATALOGUE])
    began = monotonic_ns()
    assert [closest_in_numpy(name, table, lengths) for name in names[:40]] == answers[:40]
    repaired = 5 * (monotonic_ns() - began)
    saved = cuts[-1] - cuts[0] - repaired
    what = problem("distances in Python", "product_lookup.py:distance", "python", wasted_ns=saved)
    write(tile(cuts, "request"), unit="request", limiting="python", problem=what)


asyncio.run(main())
