"""An asyncio service that quotes exchange rates over a local socket, with its five clients in the same process.

Planted: the desk's one asyncio.Lock is held while the rate is asked from a bank far away (12 ms), so that five requests
that could wait for the bank together do so one after the other. Truth: 400 requests, a step ends when one was answered;
limited by the lock (one may say synchronisation, or io: the bank). Asking before taking the lock needs a fifth of the
measured time at the bank, the rest of it is the gain. Requests overlap, so there are no phases.
"""

import asyncio
import json
import time

from truth import problem, tile, write

CLIENTS, EACH = 5, 80
PAIRS = ["EURUSD", "EURGBP", "USDJPY", "EURCHF", "GBPNOK", "AUDNZD"]


class Bank:
    """Far away."""

    def __init__(self):
        self.spent = 0

    async def rate(self, pair):
        began = time.monotonic_ns()
        await asyncio.sleep(0.012)
        self.spent += time.monotonic_ns() - began
        return 0.5 + sum(map(ord, pair)) % 97 / 60


class Desk:
    def __init__(self, bank):
        self.bank = bank
        self.lock = asyncio.Lock()
        self.position = dict.fromkeys(PAIRS, 0.0)
        self.cuts = []

    def ladder(self, rate, amount):
        """Prices for growing parts of the amount."""
        steps = []
        for k in range(1, 41):
            part = amount * k / 40
            spread = 0.0004 + 0.00001 * part**0.5
            steps.append({"amount": round(part, 2), "bid": round(rate - spread, 5), "ask": round(rate + spread, 5)})
        return steps

    async def quote(self, order):
        async with self.lock:
            rate = await self.bank.rate(order["pair"])
            self.position[order["pair"]] += order["amount"]
        return self.ladder(rate, order["amount"])

    async def handle(self, reader, writer):
        while line := await reader.readline():
            answer = await self.quote(json.loads(line))
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
            self.cuts.append(time.monotonic_ns())
        writer.close()


async def client(number, port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    worst = 0.0
    for k in range(EACH):
        order = {"pair": PAIRS[(number + k) % len(PAIRS)], "amount": 100.0 * (1 + k % 9)}
        writer.write(json.dumps(order).encode() + b"\n")
        answer = json.loads(await reader.readline())
        worst = max(worst, answer[-1]["ask"])
    writer.close()
    await writer.wait_closed()
    return worst


async def main():
    bank = Bank()
    desk = Desk(bank)
    server = await asyncio.start_server(desk.handle, "127.0.0.1", 0, limit=1 << 20)
    port = server.sockets[0].getsockname()[1]
    desk.cuts.append(time.monotonic_ns())
    worst = await asyncio.gather(*(client(number, port) for number in range(CLIENTS)))
    server.close()
    print(f"{len(desk.cuts) - 1} quotes, highest ask {max(worst):.4f}")
    write(
        tile(desk.cuts, "request"),
        unit="request",
        limiting="lock",
        limiting_also=["synchronisation", "io"],
        problem=problem(
            "the desk's lock is held while the bank is asked",
            "exchange_desk.py:Desk.quote",
            "lock",
            wasted_ns=bank.spent * (CLIENTS - 1) // CLIENTS,
        ),
    )


asyncio.run(main())
