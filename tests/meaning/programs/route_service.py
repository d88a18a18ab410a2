"""An asyncio service that answers route questions over a local socket, and the client that asks it one after the other.

Truth: 700 requests, as the client sees them. For each request `road_graph` builds the same graph anew from the list of roads
in pure Python, more than half of the time; keeping it saves the measured time. Python is the limit. Requests in
which a full garbage collection falls (about every 33rd) stand out.
"""

import asyncio
import gc
import heapq
import json
import math
import random
import time

from truth import problem, tile, write

rnd = random.Random(21)
PLACES = {f"p{i}": (rnd.random() * 100, rnd.random() * 100) for i in range(700)}
NAMES = list(PLACES)
ROADS = [(NAMES[i], NAMES[(i + 1) % 700], 80) for i in range(700)]
ROADS += [(*rnd.sample(NAMES, 2), rnd.choice((30, 50, 100))) for _ in range(1700)]
spent = 0
cuts = []
collected = {}


def on_gc(phase, info):
    if phase == "stop" and info["generation"] == 2 and cuts:
        collected[len(cuts) - 1] = "a full garbage collection, as the graphs make many objects"


def road_graph():
    graph = {name: [] for name in PLACES}
    for a, b, limit in ROADS:
        (xa, ya), (xb, yb) = PLACES[a], PLACES[b]
        hours = math.hypot(xa - xb, ya - yb) / limit
        if (b, hours) not in graph[a]:
            graph[a].append((b, hours))
            graph[b].append((a, hours))
    for edges in graph.values():
        edges.sort(key=lambda e: e[1])
    return graph


def shortest(graph, start, goal):
    best = {start: 0.0}
    heap = [(0.0, start)]
    while heap:
        cost, here = heapq.heappop(heap)
        if here == goal:
            return cost
        if cost > best[here]:
            continue
        for there, hours in graph[here]:
            new = cost + hours
            if new < best.get(there, math.inf):
                best[there] = new
                heapq.heappush(heap, (new, there))
    return None


async def serve(reader, writer):
    global spent
    while line := await reader.readline():
        ask = json.loads(line)
        t = time.monotonic_ns()
        graph = road_graph()
        spent += time.monotonic_ns() - t
        answer = {"hours": shortest(graph, ask["from"], ask["to"])}
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answers = []
    gc.callbacks.append(on_gc)
    cuts.append(time.monotonic_ns())
    for _ in range(700):
        a, b = rnd.sample(NAMES, 2)
        writer.write(json.dumps({"from": a, "to": b}).encode() + b"\n")
        await writer.drain()
        answers.append(json.loads(await reader.readline())["hours"])
        cuts.append(time.monotonic_ns())
    gc.callbacks.remove(on_gc)
    writer.close()
    await writer.wait_closed()
    await asyncio.sleep(0.05)
    server.close()
    return answers


answers = asyncio.run(main())
print(f"{len(answers)} routes, mean {sum(answers) / len(answers):.2f} h")
assert all(h is not None for h in answers)
write(
    tile(cuts, "request"),
    unit="request",
    limiting="python",
    phases_ns={"graph": spent},
    outliers=collected,
    problem=problem(
        "the same graph is built anew for each request", "route_service.py:road_graph", "python", wasted_ns=spent
    ),
)
